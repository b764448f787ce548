//! The test of plainness: whether a repository is as `git init`, `clone`, `worktree add` or `submodule add` leave it.
//!
//! A list of what may be there, never of what may not. No git is started: it would obey what is looked at. What is half
//! made passes, as long as all that is there so far may be there.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{
    committed,
    git_config::settings,
    git_config_paths::{paths_in, text_of},
    repository::{is_repository, read},
    submodules,
};
use crate::{base::sandbox::SELF_COMMONDIR, world::disk};

type Shape = fn(&str) -> bool;

/// Sections, keys in them, and how their values look.
const PLAIN: &[(&str, &[&str], Shape)] = &[
    ("core", &["filemode", "bare", "symlinks", "ignorecase", "precomposeunicode"], is_bool),
    ("core", &["repositoryformatversion", "sparsecheckout", "sparsecheckoutcone"], is_bool),
    ("core", &["logallrefupdates", "autocrlf", "safecrlf", "eol"], is_word),
    // Its folder says that it is its own.
    ("core", &["worktree"], is_text),
    ("extensions", &["worktreeconfig", "relativeworktrees"], is_bool),
    ("extensions", &["objectformat", "refstorage", "partialclone"], is_word),
    ("index", &["sparse"], is_bool),
    ("remote", &["url", "pushurl"], is_url),
    ("remote", &["fetch"], is_refspec),
    ("remote", &["mirror", "promisor"], is_bool),
    ("remote", &["tagopt"], |it| matches!(it, "--tags" | "--no-tags")),
    ("remote", &["partialclonefilter"], is_refspec),
    // A remote may also be an address, by which programs are started.
    ("branch", &["remote", "rebase", "vscode-merge-base"], is_word),
    ("branch", &["merge"], is_refspec),
    ("submodule", &["active"], is_text),
    ("submodule", &["url"], is_url),
    ("submodule", &["update"], |it| matches!(it, "checkout" | "rebase" | "merge" | "none")),
    ("user", &["email", "name"], is_text),
    ("init", &["defaultbranch"], is_word),
    ("commit", &["gpgsign"], |it| it == "false"),
    ("tag", &["gpgsign"], |it| it == "false"),
    ("gc", &["auto"], is_word),
    ("pull", &["rebase", "ff"], is_word),
];
/// Others are programs of their own: `git-remote-SCHEME`.
const SCHEMES: &str = "https http ssh git file git+ssh ssh+git";
/// From these alone objects may come that are not there yet, at any look at them.
const PROMISED: &str = "https://";
const INFO: &[&str] = &["exclude", "refs", "sparse-checkout"];
/// What git obeys in a folder, beside hooks.
const OBEYED: &[&str] = &[
    "commondir",
    "config",
    "config.worktree",
    "gitdir",
    "info/attributes",
    "objects/info/alternates",
    "objects/info/http-alternates",
];
/// By which git finds it, where it has another name than `.git`.
const KEYS: &[&str] = &["HEAD", "commondir", "config.worktree", "gitdir"];

/// The judge of one repository.
pub(super) struct Plainness<'a> {
    /// Whether a folder was there before, as it is.
    pub is_known: &'a dyn Fn(&Path) -> bool,
    /// Whether a folder is judged by itself whenever something changed it.
    pub is_seen: &'a dyn Fn(&Path) -> bool,
    /// Whoever makes it is still at work: one end of a worktree comes before the other.
    pub running: bool,
}

/// Whether a folder has git run and obey nothing.
pub fn is_plain(git: &Path) -> bool {
    let judge = Plainness { is_known: &|_| false, is_seen: &|_| false, running: false };
    fs::symlink_metadata(git).is_ok_and(|it| it.is_dir()) && judge.judge(git)
}

/// What makes a repository of what git finds there: these names go where it is not plain.
pub(super) fn keys_of(place: &Path) -> Vec<PathBuf> {
    if place.ends_with(".git") {
        return vec![place.to_owned()];
    }
    KEYS.iter().map(|it| place.join(it)).filter(|it| it.symlink_metadata().is_ok()).collect()
}

/// Places that a git folder has within it: of linked worktrees and of submodules.
pub(super) fn places_within(git: &Path) -> impl Iterator<Item = PathBuf> {
    let is_own = fs::symlink_metadata(git).is_ok_and(|it| it.is_dir());
    let trees = fs::read_dir(git.join("worktrees")).into_iter().flatten().filter_map(Result::ok).map(|it| it.path());
    trees.chain(submodules::of(&git.join("modules"))).filter(move |_| is_own)
}

/// The hash of all that git obeys in a place. A placeholder counts for nothing.
pub(super) fn obeyed_hash(place: &Path) -> String {
    let hooks = entries(&place.join("hooks")).into_iter().flatten().filter(|it| !it.ends_with(".sample"));
    let names = OBEYED.iter().map(ToString::to_string).chain(hooks.map(|it| format!("hooks/{it}")));
    let paths = names.map(|it| place.join(it)).chain([place.to_owned()]);
    let texts = paths.map(|it| (text_of(&it).unwrap_or_default(), it));
    let texts =
        texts.filter(|(text, path)| !text.is_empty() && (!path.ends_with("commondir") || !is_own_commondir(text)));
    disk::hash(texts.map(|(text, path)| format!("{}\0{text}\0", path.display())).collect::<String>().as_bytes())
}

fn is_own_commondir(text: &str) -> bool {
    SELF_COMMONDIR.text() == Some(text)
}

/// Names in a folder; `None`: it is a link, or cannot be read.
fn entries(folder: &Path) -> Option<Vec<String>> {
    match fs::symlink_metadata(folder) {
        Err(_) => Some(Vec::new()),
        Ok(it) if !it.is_dir() => None,
        Ok(_) => {
            let names = fs::read_dir(folder).ok()?;
            names.map(|it| Some(it.ok()?.file_name().to_string_lossy().into_owned())).collect()
        }
    }
}

impl Plainness<'_> {
    pub fn judge(&self, place: &Path) -> bool {
        match fs::symlink_metadata(place) {
            Ok(it) if it.is_dir() => self.is_plain_folder(place),
            Ok(it) => it.is_file() && self.leads_to_plain(place),
            Err(_) => true,
        }
    }

    /// A `.git` file: what it leads to belongs to it, or is plain by itself.
    fn leads_to_plain(&self, file: &Path) -> bool {
        let Some(target) = target_of(file, "gitdir:") else { return false };
        let is_module = target.ancestors().any(|it| it.ends_with(".git/modules"));
        match target.parent().is_some_and(|it| it.ends_with("worktrees")) {
            true => self.is_plain_worktree(&target, Some(file)),
            false if is_module && (self.is_known)(&target) => true,
            false => (is_module || (self.is_seen)(&target)) && self.is_plain_folder(&target),
        }
    }

    /// An entry of a repository for a worktree, and the other end of it.
    fn is_plain_worktree(&self, entry: &Path, file: Option<&Path>) -> bool {
        let git = entry.parent().and_then(Path::parent);
        let common = target_of(&entry.join("commondir"), "");
        let is_whole = is_repository(entry);
        let leads_home = common.as_deref() == git && git.is_some();
        let back = target_of(&entry.join("gitdir"), "");
        let leads_back = match (&back, file) {
            (Some(back), Some(file)) => file.canonicalize().is_ok_and(|it| it == *back),
            (Some(back), None) => target_of(back, "gitdir:").as_deref() == entry.canonicalize().ok().as_deref(),
            (None, _) => self.running,
        };
        let top = file.and_then(Path::parent).filter(|_| is_whole);
        let is_safe = top.zip(git).is_none_or(|(top, git)| match (self.is_known)(git) {
            true => is_as_at_home(git, top),
            false => self.is_plain_folder(git),
        });
        (leads_home || self.running && !is_whole)
            && leads_back
            && is_safe
            && is_plain_config(&entry.join("config.worktree"))
    }

    fn is_plain_folder(&self, git: &Path) -> bool {
        if git.parent().is_some_and(|it| it.ends_with(".git/worktrees")) {
            return self.is_plain_worktree(git, None);
        }
        entries(git).is_some_and(|it| it.iter().all(|name| self.is_plain_part(git, name)))
    }

    /// One name in a git folder.
    fn is_plain_part(&self, git: &Path, name: &str) -> bool {
        let path = git.join(name);
        let within = |name: &str, wants: &dyn Fn(&str) -> bool| {
            entries(&git.join(name)).is_some_and(|it| it.iter().all(|it| wants(it)))
        };
        // Another folder or file in the place of its own.
        if let Ok(target) = fs::read_link(&path) {
            return is_probe(name, &target);
        }
        match name {
            "config" | "config.worktree" => is_plain_config(&path),
            "hooks" => within("hooks", &|it| it.ends_with(".sample")),
            "info" => within("info", &|it| INFO.contains(&it)),
            "branches" | "remotes" => within(name, &|_| false),
            "objects" => within("objects/info", &|it| !it.ends_with("alternates")),
            "commondir" => text_of(&path).is_ok_and(|it| is_own_commondir(&it)),
            "modules" => self.has_plain_modules(&path, 0),
            "worktrees" => within(name, &|it| self.is_plain_worktree(&path.join(it), None)),
            _ => true,
        }
    }

    /// Names of submodules may have slashes in them.
    fn has_plain_modules(&self, folder: &Path, depth: usize) -> bool {
        let is_git = |it: &Path| KEYS.iter().chain(&["config", "objects"]).any(|name| it.join(name).exists());
        let is_plain = |name: String| {
            let path = folder.join(name);
            match is_git(&path) {
                true => self.is_plain_folder(&path),
                false => !path.is_symlink() && path.is_dir() && self.has_plain_modules(&path, depth + 1),
            }
        };
        // Modules have modules.
        let level = depth + folder.iter().filter(|it| *it == "modules").count();
        level < MODULE_DEPTH && entries(folder).is_some_and(|it| it.into_iter().all(is_plain))
    }
}

/// What `git init` makes for a moment, to find out whether the disk has links. Git reads nothing of that name.
fn is_probe(name: &str, target: &Path) -> bool {
    name.len() == 7 && name.starts_with('t') && target == Path::new("testing")
}

/// Tops of a repository's linked worktrees.
pub(super) fn worktree_tops(git: &Path) -> impl Iterator<Item = PathBuf> {
    places_within(git).filter_map(|it| Some(target_of(&it.join("gitdir"), "")?.parent()?.to_owned()))
}

/// Whether all that settings name relative to a worktree is in it as in the repository's own: git would run it.
fn is_as_at_home(git: &Path, top: &Path) -> bool {
    let (Some(home), Ok(named)) = (git.parent(), paths_in(git)) else { return false };
    let places = named.iter().filter(|it| it.path.is_relative() && !it.path.starts_with("~"));
    let mut places =
        places.map(|it| (top.join(&it.path), it.is_whole)).filter(|it| it.1 && it.0.exists() || it.0.is_file());
    let is_same = |file: &PathBuf| {
        let at_home = file.strip_prefix(top).ok().and_then(|it| fs::read(home.join(it)).ok());
        at_home.is_some() && fs::read(file).ok() == at_home
    };
    places.all(|it| committed::files(&it.0).is_some_and(|it| it.iter().all(is_same)))
}

/// More slashes are in no name.
const MODULE_DEPTH: usize = 16;

/// Where a file leads: its one line, behind a word.
pub(super) fn target_of(file: &Path, word: &str) -> Option<PathBuf> {
    let text = read(file)?;
    file.parent()?.join(text.strip_prefix(word)?.trim()).canonicalize().ok()
}

/// Whether settings are regular, so that nobody reads them in another way, and all of them may be there.
fn is_plain_config(file: &Path) -> bool {
    // A pipe or a device says anything, at any time.
    let is_file = fs::symlink_metadata(file).map_or(true, |it| it.is_file());
    let Some(text) = Some(file).filter(|_| is_file).and_then(|it| text_of(it).ok()) else { return false };
    let all = settings(&text);
    let is_known = |(section, key, value): &(String, String, String)| {
        PLAIN.iter().any(|it| it.0 == section && it.1.contains(&key.as_str()) && it.2(value))
    };
    let values = |name: &str| all.iter().filter(move |it| it.1 == name).map(|it| it.2.as_str()).collect::<Vec<_>>();
    let is_promised = !values("promisor").is_empty() || !values("partialclone").is_empty();
    let belongs = |tree: &str| {
        let git = file.parent().unwrap_or(file);
        let back = target_of(&git.join(tree).join(".git"), "gitdir:");
        back.is_none() || back == git.canonicalize().ok()
    };
    text.lines().all(is_regular)
        && all.iter().all(is_known)
        && values("worktree").into_iter().all(belongs)
        && (!is_promised || values("url").iter().all(|it| it.starts_with(PROMISED)))
}

/// A header, a comment, or a key with its value: each on a line of its own.
fn is_regular(line: &str) -> bool {
    let it = line.trim_matches([' ', '\t']);
    let is_header = || {
        let Some(inner) = it.strip_prefix('[').and_then(|it| it.strip_suffix(']')) else { return false };
        let (name, below) = inner.split_once(' ').unwrap_or((inner, "\"\""));
        let below = below.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
        is_word(name) && below.is_some_and(|it| !it.contains(['"', '\\', '[', ']']))
    };
    let begins = it.chars().next();
    let is_known = match begins {
        None | Some('#' | ';') => true,
        Some('[') => is_header(),
        Some(first) => first.is_ascii_alphabetic() && !it.ends_with('\\'),
    };
    is_known && is_text(&it.replace('\t', ""))
}

fn is_bool(it: &str) -> bool {
    matches!(it, "true" | "false" | "yes" | "no" | "on" | "off" | "1" | "0")
}

fn is_text(it: &str) -> bool {
    !it.chars().any(char::is_control)
}

fn is_word(it: &str) -> bool {
    !it.starts_with('-') && it.chars().all(|it| it.is_alphanumeric() || "._/+@-".contains(it))
}

fn is_refspec(it: &str) -> bool {
    !it.starts_with('-') && it.chars().all(|it| it.is_alphanumeric() || "._/+@-:*^=".contains(it))
}

/// An address or a path at which git itself asks.
fn is_url(it: &str) -> bool {
    let rest = it.trim_start_matches(|it: char| it.is_ascii_alphanumeric() || "+-.".contains(it));
    let is_known = match it.split_once("://") {
        Some((scheme, host)) => SCHEMES.split(' ').any(|it| it == scheme) && !host.starts_with('-'),
        None => true,
    };
    is_known && is_text(it) && !it.starts_with('-') && !rest.starts_with("::")
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::{Plainness, is_plain, obeyed_hash};

    const CLONE: &str = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n[remote \"origin\"]\n\turl = https://h/x\n\
        \tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n";

    #[test]
    fn settings_that_git_itself_leaves_are_plain_and_no_others() {
        let dir = tempfile::tempdir().unwrap();
        let git = dir.path().canonicalize().unwrap().join(".git");
        fs::create_dir(&git).unwrap();
        let check = |config: &str, want: bool| {
            fs::write(git.join("config"), config).unwrap();
            assert_eq!(is_plain(&git), want, "{config}");
        };
        check(CLONE, true);
        check(&CLONE.replace('\n', "\r\n"), true);
        check("", true);
        check("# x\n[user]\n\tname = A B\n\temail = a@b ; c\n[commit]\n\tgpgsign = false\n", true);
        check("[submodule]\n\tactive = .\n[submodule \"a/b\"]\n\turl = ../b\n\tactive = true\n", true);
        for url in ["git@h:x/y.git", "/a/b", "../b", "ssh://git@h/x", "[::1]:x", "file:///a"] {
            check(&format!("[remote \"o\"]\n\turl = {url}\n"), true);
        }
        for url in ["ext::sh -c x", "ext://x", "a+b.c::x", "--upload-pack=x", "ssh://-oProxyCommand=x/y", "x://y"] {
            check(&format!("[remote \"o\"]\n\turl = {url}\n"), false);
            check(&format!("[submodule \"o\"]\n\turl = {url}\n"), false);
        }
        let promised = "[extensions]\n\tpartialClone = origin\n";
        check(&format!("{CLONE}{promised}"), true);
        check(&format!("{}{promised}", CLONE.replace("https:", "ssh:")), false);
        for it in [
            "core]\n\tfsmonitor = x",
            "core]\n\tfsmonitor = true",
            "core]\n\thooksPath = x",
            "core] bare = false",
            "core]\n\tpager = x",
            "core]\n\tsshCommand = x",
            "core]\n\tattributesFile = x",
            "core]\n\tbare = false \\\n",
            "core]\n\teditor = x",
            "core]\n\tgitProxy = x",
            "core]\n\taskPass = x",
            "core]\n\talternateRefsCommand = x",
            "include]\n\tpath = x",
            "includeIf \"gitdir:/\"]\n\tpath = x",
            "filter \"e\"]\n\tclean = x",
            "diff]\n\texternal = x",
            "diff \"e\"]\n\ttextconv = x",
            "alias]\n\tst = !x",
            "credential]\n\thelper = !x",
            "url \"ext::\"]\n\tinsteadOf = a",
            "protocol \"ext\"]\n\tallow = always",
            "remote \"o\"]\n\tuploadpack = x",
            "remote \"o\"]\n\tvcs = ext",
            "branch \"m\"]\n\tremote = ext::sh -c x",
            "submodule \"s\"]\n\tupdate = !x",
            "init]\n\ttemplateDir = x",
            "gpg]\n\tprogram = x",
            "commit]\n\tgpgsign = true",
            "core]\n\tbare = \u{1}",
            "core]\rbare = false",
            "remote \"a\\\"]\nx\"]\n\turl = x",
            "pager]\n\tlog = x",
            "merge \"x\"]\n\tdriver = x",
            "core]\n\tworktree = ..\u{7}",
        ] {
            check(&format!("[{it}"), false);
        }
        fs::remove_file(git.join("config")).unwrap();
        symlink("../x", git.join("config")).unwrap();
        assert!(!is_plain(&git), "a link");
    }

    #[test]
    fn parts_that_git_obeys_are_not_plain_and_what_is_half_made_is() {
        let dir = tempfile::tempdir().unwrap();
        let git = dir.path().canonicalize().unwrap().join(".git");
        let check = |file: &str, text: &str, want: bool| {
            _ = fs::remove_dir_all(&git);
            fs::create_dir_all(git.join(file).parent().unwrap()).unwrap();
            fs::write(git.join(file), text).unwrap();
            assert_eq!(is_plain(&git), want, "{file} {text}");
        };
        for it in ["hooks/pre-commit.sample", "info/exclude", "HEAD", "objects/info/packs", "config.lock", "index"] {
            check(it, "x", true);
        }
        for it in [
            "hooks/pre-commit",
            "info/attributes",
            "objects/info/alternates",
            "objects/info/http-alternates",
            "commondir",
            "branches/x",
            "remotes/x",
            "worktrees/x/gitdir",
            "modules/m/hooks/post-checkout",
        ] {
            check(it, "x", false);
        }
        check("config.worktree", "[core]\n\tsparseCheckout = true\n", true);
        check("config.worktree", "[core]\n\tfsmonitor = x\n", false);
        check("modules/a/b/config", "[core]\n\tbare = false\n", true);
        check("modules/a/b/config", "[core]\n\tfsmonitor = x\n", false);
        check("commondir", "././.\n", true);
        assert!(!is_plain(&git.join("commondir")) && !is_plain(&git.join("none")));
    }

    #[test]
    fn a_file_leads_to_what_is_plain_and_seen_and_a_worktree_to_both_of_its_ends() {
        let dir = tempfile::tempdir().unwrap();
        let at = |it: &str| dir.path().canonicalize().unwrap().join(it);
        let write = |path: &str, text: &str| {
            fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            fs::write(at(path), text).unwrap();
        };
        let judge = |place: &str, seen: bool, running: bool| {
            let (known, is_seen) = (at(".git"), |_: &_| seen);
            Plainness { is_known: &|it| it == known, is_seen: &is_seen, running }.judge(&at(place))
        };
        write("store/HEAD", "ref: refs/heads/main\n");
        write("own/.git", "gitdir: ../store\n");
        assert!(judge("own/.git", true, false) && !judge("own/.git", false, false));
        write("store/config", "[core]\nfsmonitor = x\n");
        assert!(!judge("own/.git", true, false));
        write("own/.git", "gitdir: ../none\n");
        assert!(!judge("own/.git", true, true));
        let entry = ".git/worktrees/tree";
        write("tree/.git", &format!("gitdir: {}\n", at(entry).display()));
        write(&format!("{entry}/gitdir"), &format!("{}\n", at("tree/.git").display()));
        // Its other end comes later.
        assert!(judge(entry, true, true) && !judge(entry, true, false) && judge("tree/.git", true, true));
        write(&format!("{entry}/HEAD"), "ref: refs/heads/main\n");
        write(&format!("{entry}/commondir"), "../..\n");
        assert!(judge(entry, true, false) && judge("tree/.git", true, false));
        // What the repository's own settings name is there as at home, or not at all.
        write(".git/config", "[core]\n\thooksPath = .hooks\n\tfsmonitor = ./mon\n");
        assert!(judge("tree/.git", true, false));
        for (file, text, want) in [("tree/.hooks/a", "x", false), (".hooks/a", "x", true), ("tree/mon", "x", false)] {
            write(file, text);
            assert_eq!(judge("tree/.git", true, false), want, "{file}");
        }
        fs::remove_file(at("tree/mon")).unwrap();
        write("forged/.git", &format!("gitdir: {}\n", at(entry).display()));
        assert!(!judge("forged/.git", true, false));
        write(&format!("{entry}/commondir"), "../../../store\n");
        assert!(!judge(entry, true, true) && !judge("tree/.git", true, true));
    }

    #[test]
    fn what_git_obeys_has_another_hash_when_it_changes_and_placeholders_change_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let git = dir.path().join(".git");
        fs::create_dir_all(git.join("hooks")).unwrap();
        let before = obeyed_hash(&git);
        for (name, text) in [("config.worktree", ""), ("commondir", "././.\n"), ("HEAD", "x"), ("hooks/a.sample", "x")]
        {
            fs::write(git.join(name), text).unwrap();
        }
        fs::create_dir(git.join("info")).unwrap();
        assert_eq!(obeyed_hash(&git), before);
        let mut all = vec![before];
        for (name, text) in
            [("config", "././.\n"), ("hooks/a", "x"), ("hooks/a", "y"), ("info/attributes", "x"), ("commondir", "x")]
        {
            fs::write(git.join(name), text).unwrap();
            assert!(!all.contains(&obeyed_hash(&git)), "{name}");
            all.push(obeyed_hash(&git));
        }
    }
}
