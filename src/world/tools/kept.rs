//! Where the roots keep secrets, by name: for commands that would come upon them, and for files that are the same under
//! another name.

use std::{collections::VecDeque, ffi::OsStr, path::Path};

use crate::{
    base::{guarded::SECRETS, path::AbsPath},
    world::disk::{self, FileId},
};

/// Entries that are looked at, those that lie higher first. Behind these, a file of secrets is guarded under its own name
/// only.
const MAX_ENTRIES: usize = 5_000;
const MAX_FOUND: usize = 200;
/// Folders with too much in them for every command: they are passed by, unless somebody names them or what is in them.
const PASSED_BY: &[&str] = &["node_modules", ".git", "target", ".venv", "dist", "build", "__pycache__"];

/// What the roots hold, by name.
#[derive(Debug, Default)]
pub struct Kept {
    /// Files of secrets.
    pub secrets: Vec<AbsPath>,
    /// Links, wherever they lead: who follows them may come upon more.
    pub links: Vec<AbsPath>,
    /// Folders that were passed by.
    passed_by: Vec<AbsPath>,
    /// Those of them, or below them, that were looked into after all.
    named: Vec<AbsPath>,
    /// Entries that were looked at for these.
    spent: usize,
}

/// Names are looked at, and no content. Blocks.
pub fn look(roots: &[AbsPath]) -> Kept {
    let mut res = Kept::default();
    for root in roots {
        res.walk([root.clone()].into(), MAX_ENTRIES, true);
    }
    res
}

impl Kept {
    /// Looks into a folder that was passed by, or one below it: somebody names it. Blocks.
    pub fn look_into(&mut self, real: &AbsPath, roots: &[&AbsPath]) {
        let is_below = |root: &&AbsPath| {
            let below = real.as_path().strip_prefix(root.as_path());
            below.is_ok_and(|it| it.iter().any(is_passed_by))
        };
        let known = self.named.iter().any(|it| real.is_within(it)) || !roots.iter().any(is_below);
        let is_folder = || disk::metadata(real).is_ok_and(|it| it.is_dir);
        if !known && self.spent < MAX_ENTRIES && is_folder() {
            self.named.push(real.clone());
            self.spent += self.walk([real.clone()].into(), MAX_ENTRIES - self.spent, false);
        }
    }

    /// Of a folder outside the roots, only what its own name is the first part of is known: `config.json` in `.docker`.
    /// Blocks.
    pub fn look_outside(&mut self, real: &AbsPath) {
        let begun = |entry: &str, rest: &Path| rest.iter().count() < entry.split('/').count();
        for (_, rest) in SECRETS.paths_below(real.as_path()).into_iter().filter(|it| begun(it.0, &it.1)) {
            let path = real.join(rest);
            if path != *real && !self.secrets.contains(&path) && disk::metadata(&path).is_ok() {
                self.secrets.push(path);
            }
        }
    }

    /// Looks below `folders`, the higher before the lower; how many entries that took.
    fn walk(&mut self, mut folders: VecDeque<AbsPath>, max: usize, passes: bool) -> usize {
        let (mut n_secrets, mut n_links, mut n) = (0, 0, 0);
        while let Some(folder) = folders.pop_front() {
            for (name, kind) in disk::entries(&folder, max - n) {
                n += 1;
                let path = folder.join(&name);
                if kind.is_dir() && passes && is_passed_by(&name) {
                    self.passed_by.push(path);
                } else if kind.is_dir() {
                    folders.push_back(path);
                } else if kind.is_symlink() && n_links < MAX_FOUND {
                    n_links += 1;
                    self.links.push(path);
                } else if kind.is_file() && n_secrets < MAX_FOUND && SECRETS.find(path.as_path()).is_some() {
                    n_secrets += 1;
                    self.secrets.push(path);
                }
            }
            if n >= max {
                break;
            }
        }
        n
    }
}

fn is_passed_by(name: &OsStr) -> bool {
    name.to_str().is_some_and(|it| PASSED_BY.contains(&it))
}

/// A hard link is no link that could be followed: the file has two names, and only one of them says what it is.
pub struct Aliases {
    kept: Vec<(FileId, AbsPath)>,
}

impl Aliases {
    /// Blocks.
    pub fn look(roots: &[AbsPath]) -> Self {
        Self::of(&look(roots))
    }

    /// Of what was found, and of what lies in the folders that were passed by: files with two names are rare, and who asks
    /// has one. Blocks.
    pub fn of(kept: &Kept) -> Self {
        let mut more = Kept::default();
        more.walk(kept.passed_by.iter().cloned().collect(), MAX_ENTRIES, false);
        let shared = |it: &AbsPath| Some((disk::shared_id(it)?, it.clone()));
        Self { kept: kept.secrets.iter().chain(&more.secrets).filter_map(shared).collect() }
    }

    /// The file of secrets that `path` is another name of. Blocks.
    pub fn secret_of(&self, path: &AbsPath) -> Option<&AbsPath> {
        let id = disk::shared_id(path)?;
        self.kept.iter().find(|(it, _)| *it == id).map(|(_, it)| it).filter(|it| *it != path)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods)]

    use std::fs;

    use super::{Aliases, MAX_ENTRIES, look};
    use crate::world::tools::testing::Ground;

    fn ground() -> Ground {
        let ground = Ground::new(&[
            (".env", "x"),
            ("build/.env", "x"),
            ("build/deep/node_modules/k.pem", "x"),
            ("src/target/id_rsa", "x"),
        ]);
        fs::hard_link(ground.cwd.join("build/.env"), ground.cwd.join("hard")).unwrap();
        ground
    }

    #[test]
    fn what_is_passed_by_is_looked_into_when_it_is_named() {
        let ground = ground();
        let roots = ground.ctx().roots;
        let check = |named: &[&str], want: &[&str]| {
            let mut kept = look(&roots);
            for it in named {
                kept.look_into(&ground.cwd.join(it), &roots.iter().collect::<Vec<_>>());
            }
            let found: Vec<_> = kept.secrets.iter().map(|it| it.shown_from(&ground.cwd)).collect();
            assert_eq!(found, want, "{named:?}");
        };
        check(&[], &[".env"]);
        check(&["src", "build/.env", "nothing/build"], &[".env"]);
        check(&["build"], &[".env", "build/.env", "build/deep/node_modules/k.pem"]);
        check(&["build", "build/deep"], &[".env", "build/.env", "build/deep/node_modules/k.pem"]);
        check(&["build/deep"], &[".env", "build/deep/node_modules/k.pem"]);
        check(&["src/target"], &[".env", "src/target/id_rsa"]);
    }

    #[test]
    fn another_name_of_a_secret_in_a_folder_that_is_passed_by() {
        let ground = ground();
        let aliases = Aliases::look(&ground.ctx().roots);
        assert_eq!(aliases.secret_of(&ground.cwd.join("hard")), Some(&ground.cwd.join("build/.env")));
        assert_eq!(aliases.secret_of(&ground.cwd.join("build/.env")), None);
    }

    /// However much lies deeper.
    #[test]
    fn what_lies_higher_is_looked_at_first() {
        let ground = ground();
        (0..MAX_ENTRIES).for_each(|it| ground.write(&format!("build/a/{it}"), b""));
        let aliases = Aliases::look(&ground.ctx().roots);
        assert!(aliases.secret_of(&ground.cwd.join("hard")).is_some());
    }
}
