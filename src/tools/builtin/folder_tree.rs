//! The tree of a session's folders, as the model is told of it at the start: names alone, what lies higher first.

use std::{collections::VecDeque, ffi::OsStr, path::Path};

use super::{
    ToolSettings,
    walk::{IgnoreRules, Matcher, is_excluded},
};
use crate::builtin::walk::Excludes;
use castor_base::{guarded_names::SECRETS, path::AbsPath, path_text, text::path_in_words};
use castor_hands::disk;

/// In all.
const MAX_ITEMS: usize = 200;
/// In all, margins included: about 600 tokens, as models cut names.
const MAX_BYTES: usize = 1_700;
/// Of one folder; how many more there are is said.
const MAX_OF_FOLDER: usize = 25;
/// Entries of one folder that are looked at.
const MAX_ENTRIES: usize = 1_000;

#[derive(Default)]
struct Tree {
    items: Vec<Item>,
    n_shown: usize,
    n_bytes: usize,
}

struct Item {
    /// `None`: the one root.
    text: Option<String>,
    depth: usize,
    children: Vec<usize>,
}

/// A folder whose entries are to be listed.
struct Folder {
    item: usize,
    path: AbsPath,
    /// Where ignore files begin to count.
    root: AbsPath,
}

/// A line for each; `None`: there is nothing. Blocks.
pub fn folder_tree(roots: &[AbsPath], settings: &ToolSettings) -> Option<String> {
    let rules = IgnoreRules::of_settings(settings);
    let (mut tree, mut folders) = (Tree::default(), VecDeque::new());
    for root in roots {
        let text = (roots.len() > 1).then(|| format!("{}/", path_in_words(&root.to_string())));
        tree.items.push(Item { text, depth: 0, children: Vec::new() });
        folders.push_back(Folder { item: tree.items.len() - 1, path: root.clone(), root: root.clone() });
    }
    while let Some(folder) = folders.pop_front() {
        if !tree.list(&folder, &rules, &mut folders) {
            break;
        }
    }
    tree.text(roots.len())
}

impl Tree {
    /// Adds what is in a folder; whether there is room for more.
    fn list(&mut self, folder: &Folder, rules: &IgnoreRules, folders: &mut VecDeque<Folder>) -> bool {
        let matcher = Matcher::new(&folder.root, &folder.path, rules);
        let all_secret = SECRETS.find(folder.path.as_path()).is_some();
        let mut entries = disk::entries(&folder.path, MAX_ENTRIES);
        entries.retain(|(name, kind)| {
            let path = folder.path.join(name);
            let hidden = is_excluded(path.as_path(), kind.is_dir(), Excludes::Core);
            !hidden && !all_secret && !is_secret(name, &path) && !matcher.is_ignored(&path, kind.is_dir())
        });
        let n_more = entries.len().saturating_sub(MAX_OF_FOLDER);
        for (name, kind) in entries.into_iter().take(MAX_OF_FOLDER) {
            let sign = if kind.is_dir() { "/" } else { "" };
            let Some(item) =
                self.add(folder.item, format!("{}{sign}", path_in_words(&path_text::to_text(name.as_ref()))))
            else {
                return false;
            };
            if kind.is_dir() {
                folders.push_back(Folder { item, path: folder.path.join(&name), root: folder.root.clone() });
            }
        }
        n_more == 0 || self.add(folder.item, format!("… {n_more} more")).is_some()
    }

    /// One below another, unless there is no room.
    fn add(&mut self, above: usize, text: String) -> Option<usize> {
        let at = self.items.len();
        let parent = self.items.get_mut(above)?;
        let depth = parent.depth + usize::from(parent.text.is_some());
        self.n_shown += 1;
        self.n_bytes += text.len() + depth + 1;
        if self.n_shown > MAX_ITEMS || self.n_bytes > MAX_BYTES {
            return None;
        }
        parent.children.push(at);
        self.items.push(Item { text: Some(text), depth, children: Vec::new() });
        Some(at)
    }

    fn text(&self, n_roots: usize) -> Option<String> {
        let (mut res, mut open): (Vec<String>, Vec<usize>) = (Vec::new(), (0..n_roots).rev().collect());
        while let Some(it) = open.pop().and_then(|at| self.items.get(at)) {
            res.extend(it.text.as_ref().map(|text| format!("{}{text}", " ".repeat(it.depth))));
            open.extend(it.children.iter().rev());
        }
        (self.items.len() > n_roots).then(|| res.join("\n"))
    }
}

/// Tells whether a name says that there are secrets. Most names are no part of a path that does, which takes longer to
/// tell.
fn is_secret(name: &OsStr, path: &AbsPath) -> bool {
    let is_end = |entry: &&str| entry.rsplit('/').next().is_some_and(|it| name.eq_ignore_ascii_case(it));
    SECRETS.find(Path::new(name)).is_some()
        || SECRETS.paths.iter().any(is_end) && SECRETS.find(path.as_path()).is_some()
}

#[cfg(test)]
mod tests {
    use super::{MAX_BYTES, folder_tree};
    use crate::builtin::{ToolSettings, testing::ToolFixture};

    #[test]
    fn higher_names_come_first_and_ignored_ones_never() {
        let ground = ToolFixture::new(&[
            (".gitignore", "/out/\n"),
            (".git/HEAD", ""),
            (".env", ""),
            ("node_modules/a/b.js", ""),
            ("out/x", ""),
            ("src/deep/c.rs", ""),
            ("src/a.rs", ""),
            ("README.md", ""),
            ("we\nird", ""),
        ]);
        let tree = |roots: &[_]| folder_tree(roots, &ToolSettings::default());
        let one = tree(std::slice::from_ref(&ground.cwd)).unwrap();
        assert_eq!(one, ".gitignore\nREADME.md\nsrc/\n a.rs\n deep/\n  c.rs\n\"we\\u{a}ird\"");
        let other = ground.cwd.join("src/deep");
        let both = tree(&[other.clone(), ground.cwd.join("out")]).unwrap();
        assert_eq!(both, format!("{other}/\n c.rs\n{}/\n x", ground.cwd.join("out")));
        assert_eq!(tree(&[ground.cwd.join("nowhere")]), None);
    }

    #[test]
    fn a_large_tree_is_cut() {
        let ground = ToolFixture::new(&[]);
        for folder in 0..40 {
            (0..40).for_each(|file| ground.write(&format!("folder{folder:02}/file{file:02}.txt"), b""));
        }
        let text = folder_tree(std::slice::from_ref(&ground.cwd), &ToolSettings::default()).unwrap();
        assert!(text.len() <= MAX_BYTES && text.lines().count() <= 200, "{text}");
        assert!(text.contains("folder24/") && !text.contains("folder25/") && text.contains("… 15 more"), "{text}");
        assert!(text.contains("\n file00.txt") && !text.contains("file25.txt"), "{text}");
    }
}
