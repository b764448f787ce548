//! Paths that a repository's git configuration names: hooks, includes and programs. They are protected like `.git`
//! itself.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use super::{
    git_config::{Setting, settings},
    repository,
};
use crate::{base::path::AbsPath, world::disk};

/// Longer settings are an error.
const MAX: u64 = 1 << 20;
/// Files that include files.
const DEPTH: usize = 5;

/// Something that git obeys, as it is written: relative to one of several folders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ConfigPath {
    pub path: PathBuf,
    /// Git obeys all of it; else it counts only where it is a file.
    pub is_whole: bool,
    pub is_folder: bool,
}

/// The user's part in what git obeys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct UserGitConfig {
    /// What git calls `~`.
    pub home: Option<PathBuf>,
    /// The folder of hooks that the user's own settings name, if it is another one in each repository. What else they name
    /// is theirs. Settings that cannot be read are none to git either.
    pub names: Vec<ConfigPath>,
}

impl UserGitConfig {
    pub fn look(home: Option<&Path>) -> Self {
        let mut names = Vec::new();
        for name in [".gitconfig", ".config/git/config"] {
            _ = home.map(|home| read(&home.join(name), 0, &mut names));
        }
        names.retain(|it| it.is_folder && it.path.is_relative() && !it.path.starts_with("~"));
        Self { home: home.map(Path::to_owned), names }
    }
}

impl ConfigPath {
    /// Where that is for git in a folder.
    pub fn place(&self, top: &Path, home: Option<&Path>) -> Option<PathBuf> {
        let path = match (self.path.strip_prefix("~"), home) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => top.join(&self.path),
        };
        disk::real_path(&AbsPath::new(path)?).ok().map(|it| it.as_path().to_owned())
    }
}

/// What the settings of a repository around `path`, or around one of `roots`, name and `path` belongs to: git obeys it.
///
/// # Errors
/// When settings cannot be read: they may name anything.
pub fn named_by_config(path: &Path, roots: &[AbsPath], home: Option<&Path>) -> io::Result<Option<PathBuf>> {
    let around = roots.iter().map(AbsPath::as_path).chain([path]).flat_map(Path::ancestors);
    let of_user = UserGitConfig::look(home);
    for top in around.collect::<BTreeSet<_>>() {
        let Some(git) = repository::git_folder_of(top) else { continue };
        for it in paths_in(&git)?.iter().chain(&of_user.names) {
            let Some(place) = it.place(top, home) else { continue };
            let is_it = it.is_whole || place == path && place.is_file();
            if is_it && path.starts_with(&place) {
                return Ok(Some(place));
            }
        }
    }
    Ok(None)
}

/// What the settings in a git folder name.
///
/// # Errors
/// When they are there and cannot be read: what they name is unknown, and could be made.
pub(super) fn paths_in(git: &Path) -> io::Result<Vec<ConfigPath>> {
    let mut res = Vec::new();
    for name in ["config", "config.worktree"] {
        read(&git.join(name), 0, &mut res)?;
    }
    Ok(res)
}

/// The settings in a file of git's, none where there is no such file.
fn settings_in(path: &Path) -> io::Result<Vec<Setting>> {
    text_of(path).map(|it| settings(&it))
}

fn text_of(path: &Path) -> io::Result<String> {
    match fs::metadata(path) {
        Ok(it) if it.is_file() && it.len() <= MAX => (),
        // Git fails at a folder, and so does nothing.
        Ok(it) if !it.is_file() => return Ok(String::new()),
        Err(it) if matches!(it.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(String::new());
        }
        Ok(_) => return Err(io::Error::other(format!("{} is too long to be git's settings", path.display()))),
        Err(it) => return Err(it),
    }
    let text = fs::read(path).map_err(|it| io::Error::new(it.kind(), format!("{}: {it}", path.display())))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// All settings of a git folder, with those of included files.
///
/// # Errors
/// A settings file cannot be read, or is too large.
pub fn all_settings(git: &Path) -> io::Result<Vec<Setting>> {
    let mut files = vec![(git.join("config"), 0), (git.join("config.worktree"), 0)];
    let mut res = Vec::new();
    while let Some((file, depth)) = files.pop() {
        for it in settings_in(&file)? {
            if depth < DEPTH && matches!(it.0.as_str(), "include" | "includeif") && it.1 == "path" {
                files.push((file.parent().unwrap_or(&file).join(&it.2), depth + 1));
            }
            res.push(it);
        }
    }
    Ok(res)
}

/// What `git init` and `git clone` write, and nothing else: sections, and keys in them.
const PLAIN: &[(&str, &[&str])] = &[
    (
        "core",
        &[
            "repositoryformatversion",
            "filemode",
            "bare",
            "logallrefupdates",
            "symlinks",
            "ignorecase",
            "precomposeunicode",
        ],
    ),
    ("extensions", &["objectformat", "refstorage"]),
    ("remote", &["url", "fetch"]),
    ("branch", &["remote", "merge", "rebase"]),
    ("submodule", &["active"]),
    ("user", &["email", "name"]),
];

/// Whether a repository has git run and obey nothing: it is as `git init` or `git clone` leave it.
pub fn is_plain(git: &Path) -> bool {
    let is_there = |name: &str| git.join(name).symlink_metadata().is_ok();
    let is_known = |(section, key, value): &Setting| {
        let known = PLAIN.iter().any(|(name, keys)| name == section && keys.contains(&key.as_str()));
        // `ext::sh -c x` runs it.
        known && !value.contains("::")
    };
    let is_sample =
        |it: io::Result<fs::DirEntry>| it.is_ok_and(|it| it.file_name().to_string_lossy().ends_with(".sample"));
    let hooks = fs::read_dir(git.join("hooks"));
    fs::symlink_metadata(git).is_ok_and(|it| it.is_dir())
        && !["commondir", "config.worktree", "worktrees"].into_iter().any(is_there)
        && !fs::symlink_metadata(git.join("hooks")).is_ok_and(|it| it.is_symlink())
        && hooks.map_or(true, |mut it| it.all(is_sample))
        && settings_in(&git.join("config")).is_ok_and(|it| it.iter().all(is_known))
        && !git.join("modules").exists()
}

fn read(path: &Path, depth: usize, res: &mut Vec<ConfigPath>) -> io::Result<()> {
    for (section, key, value) in settings_in(path)? {
        let named = |path: PathBuf, is_folder| ConfigPath { path, is_whole: true, is_folder };
        match (section.as_str(), key.as_str()) {
            _ if value.is_empty() => (),
            ("core", "hookspath") => res.push(named(value.into(), true)),
            ("core", "attributesfile") => res.push(named(value.into(), false)),
            ("include" | "includeif", "path") => {
                let file = path.parent().unwrap_or(path).join(&value);
                if depth < DEPTH {
                    read(&file, depth + 1, res)?;
                }
                res.push(named(file, false));
            }
            ("user" | "author" | "committer" | "branch" | "init" | "submodule", _) => (),
            // A command, perhaps: each of its words may be a program or a script.
            _ => {
                let words = value.split(|it: char| it.is_whitespace() || "\"'!;|&()$`<>=".contains(it));
                let words = words.filter(|it| !it.is_empty());
                res.extend(words.map(|it| ConfigPath { path: it.into(), is_whole: false, is_folder: false }));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{is_plain, paths_in};

    #[test]
    fn a_new_repository_that_runs_nothing_is_told_from_others() {
        let dir = tempfile::tempdir().unwrap();
        let git = dir.path().join(".git");
        let check = |config: &str, hook: &str, want: bool| {
            _ = fs::remove_dir_all(&git);
            fs::create_dir_all(git.join("hooks")).unwrap();
            fs::write(git.join("config"), config).unwrap();
            fs::write(git.join("hooks").join(hook), "x").unwrap();
            assert_eq!(is_plain(&git), want, "{config} {hook}");
        };
        let plain = "[core]\nbare = false\n[remote \"origin\"]\nurl = https://h/x\nfetch = +refs/*:refs/*\n";
        check(plain, "pre-commit.sample", true);
        check(plain, "pre-commit", false);
        check("[core]\nfsmonitor = ./x", "x.sample", false);
        check("[include]\npath = ../x", "x.sample", false);
        check("[remote \"o\"]\nurl = ext::sh -c x", "x.sample", false);
        check(plain, "x.sample", true);
        fs::write(git.join("commondir"), "..").unwrap();
        assert!(!is_plain(&git) && !is_plain(&git.join("config")));
    }

    #[test]
    fn what_settings_name_is_read_as_git_reads_it() {
        let dir = tempfile::tempdir().unwrap();
        let config = "# x\n[Core]\n\thooksPath = \"my hooks\" ; c\n[core \"a]b\"] fsmonitor = sh tools/mon.sh\n\
                      [alias]\n st = \"!./run \\\"x\\\"\"\n[include]\n path = ../more\n[user]\n name = some/body\n\
                      [core] attributesFile = at\\\ntr\n[core]\nhooksPath =\n";
        fs::create_dir(dir.path().join("git")).unwrap();
        fs::write(dir.path().join("git/config"), config).unwrap();
        fs::write(dir.path().join("more"), "[diff \"x\"]\ntextconv = ./conv\n").unwrap();
        let found = paths_in(&dir.path().join("git")).unwrap();
        let mut found: Vec<_> = found.iter().map(|it| (it.path.to_str().unwrap(), it.is_whole)).collect();
        let include = dir.path().join("git/../more");
        found.sort();
        let mut want = vec![
            ("./conv", false),
            ("./run", false),
            ("attr", true),
            ("my hooks", true),
            ("sh", false),
            ("tools/mon.sh", false),
            ("x", false),
            (include.to_str().unwrap(), true),
        ];
        want.sort();
        assert_eq!(found, want);
        fs::write(dir.path().join("git/config"), vec![b' '; (1 << 20) + 1]).unwrap();
        assert!(paths_in(&dir.path().join("git")).is_err());
    }
}
