//! Paths that a repository's git configuration names: hooks, includes and programs. They are protected like `.git`
//! itself.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use super::{git_config::settings, repository};
use crate::disk;
use castor_base::path::AbsPath;

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

/// A file of git's; no text where there is no such file.
pub(super) fn text_of(path: &Path) -> io::Result<String> {
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
    // A pipe that was put there since would never end.
    let text = AbsPath::new(path).ok_or(io::ErrorKind::InvalidInput.into()).and_then(|it| disk::read_head(&it, MAX));
    let text = text.map_err(|it| io::Error::new(it.kind(), format!("{}: {it}", path.display())))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn read(path: &Path, depth: usize, res: &mut Vec<ConfigPath>) -> io::Result<()> {
    for (section, key, value) in settings(&text_of(path)?) {
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

    use super::paths_in;

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
