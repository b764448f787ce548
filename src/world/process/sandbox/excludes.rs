//! What git is told to pass by while stand-ins are there: `git clean -d` and `git stash -u` would fail at them half-way.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use super::named;

/// In the folder for temporary files, which commands may write: it can make git pass by what is theirs.
const NAME: &str = "excludes-of-git";

/// The variables by which git finds it, and leaves alone what it cannot write, unless the user sets some of the kind.
pub(super) fn variables(tmp: &Path, is_set: impl Fn(&str) -> bool) -> Vec<(String, String)> {
    if is_set("GIT_CONFIG_COUNT") {
        return Vec::new();
    }
    let file = tmp.join(NAME).display().to_string();
    // `git gc` and `git repack` write lists for who fetches by plain HTTP (`info/refs`), beside what git obeys.
    let said = [("core.excludesFile", file.as_str()), ("repack.updateServerInfo", "false")];
    let pairs = said.iter().enumerate().flat_map(|(at, (key, value))| {
        [(format!("GIT_CONFIG_KEY_{at}"), (*key).to_owned()), (format!("GIT_CONFIG_VALUE_{at}"), (*value).to_owned())]
    });
    std::iter::once(("GIT_CONFIG_COUNT".to_owned(), said.len().to_string())).chain(pairs).collect()
}

/// Writes what the user has git pass by, and the stand-ins. Where it cannot be written, git knows of neither.
pub(super) fn write(tmp: &Path, standing: &BTreeSet<&Path>, home: Option<&Path>) {
    let own = home.and_then(named::excludes).and_then(|it| fs::read_to_string(it).ok()).unwrap_or_default();
    let mut tops = BTreeSet::new();
    let names = standing.iter().filter_map(|it| pattern(it, &mut tops));
    let text: String = [own, String::new()].into_iter().chain(names).collect::<Vec<_>>().join("\n") + "\n";
    let file = tmp.join(NAME);
    let is_there = fs::read(&file).is_ok_and(|it| it == text.as_bytes());
    if !is_there && let Err(it) = replace(&file, &text) {
        tracing::warn!("stand-ins may be in the way of git: {}: {it}", file.display());
    }
}

/// A command may have put a link there.
fn replace(file: &Path, text: &str) -> io::Result<()> {
    let new = file.with_extension("new");
    _ = fs::remove_file(&new);
    let mut to = fs::OpenOptions::new().write(true).create_new(true).open(&new)?;
    io::Write::write_all(&mut to, text.as_bytes())?;
    fs::rename(&new, file)
}

/// From the top of its repository. `tops`: those that were met.
fn pattern(path: &Path, tops: &mut BTreeSet<PathBuf>) -> Option<String> {
    let above = path.parent()?;
    let known = tops.iter().find(|it| above.starts_with(it)).cloned();
    let top = known.or_else(|| above.ancestors().find(|it| it.join(".git").exists()).map(Path::to_owned))?;
    let rest = path.strip_prefix(&top).ok()?.to_str()?;
    tops.insert(top);
    let escaped: String =
        rest.chars().flat_map(|it| "*?[]\\!#".contains(it).then_some('\\').into_iter().chain([it])).collect();
    (!rest.starts_with(".git/")).then(|| format!("/{escaped}"))
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs};

    use super::write;

    #[test]
    fn stand_ins_come_behind_what_the_user_has_git_pass_by() {
        let dir = tempfile::tempdir().unwrap();
        let at = |it: &str| dir.path().join(it);
        for it in ["home", "tmp", "ws/.git/hooks", "ws/a[b/.idea", "other/.vscode"] {
            fs::create_dir_all(at(it)).unwrap();
        }
        fs::write(at("home/.gitconfig"), "[core]\n\texcludesFile = ~/own").unwrap();
        fs::write(at("home/own"), "*.swp").unwrap();
        // A command may have put it there.
        std::os::unix::fs::symlink(at("home/own"), at("tmp/excludes-of-git")).unwrap();
        let standing = ["other/.vscode", "ws/.git/hooks", "ws/.vscode", "ws/a[b/.idea"].map(at);
        write(&at("tmp"), &standing.iter().map(AsRef::as_ref).collect(), Some(&at("home")));
        let said = fs::read_to_string(at("tmp/excludes-of-git")).unwrap();
        assert_eq!(said, "*.swp\n\n/.vscode\n/a\\[b/.idea\n");
        assert_eq!(fs::read_to_string(at("home/own")).unwrap(), "*.swp");
        write(&at("tmp"), &BTreeSet::new(), None);
        assert_eq!(fs::read_to_string(at("tmp/excludes-of-git")).unwrap().trim(), "");
    }
}
