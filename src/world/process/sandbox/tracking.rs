//! What git could not note down of branches: a confined command cannot write git's settings, and git goes on without, says
//! that it did, and ends well. Which branch follows which is noted down here in its place. It runs nothing, and any
//! command may print these lines: so it is done only where the branch, its upstream and the remote are there, and the
//! branch has no settings yet.

use std::{
    borrow::Cow,
    fs::File,
    io::{self, Read, Write},
    os::{fd::OwnedFd, unix::fs::MetadataExt},
    path::{Component, Path},
};

use nix::{
    fcntl::{OFlag, openat},
    sys::stat::Mode,
    unistd::{UnlinkatFlags, geteuid, unlinkat},
};

use super::{aside::is_repository, held::open_folder, repository};
use crate::base::{path::AbsPath, sandbox::Confinement};

/// Longer settings are nobody's.
const MAX: u64 = 1 << 20;
/// How many lines of one command are heard.
const LINES: usize = 20;

/// What commands say whose output may be cut.
const VERBS: &[&str] = &["branch", "checkout", "push", "switch", "worktree"];

/// Before the file, and behind it.
const FAILED: (&str, &str) = ("error: could not write config file ", ": ");
const DELETED: &str = "Deleted branch ";

/// What came of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Noted {
    /// For the model and people, a line each.
    pub words: Vec<String>,
    /// Git told of its failure, too: with this all is said about it.
    pub settles: bool,
}

/// One that follows another, as git says it.
#[derive(Debug, PartialEq, Eq)]
struct Follows<'l> {
    branch: &'l str,
    upstream: &'l str,
    rebases: bool,
}

/// Notes down what git says in `output` that it did, and did not. `None`: it says no such thing.
pub fn note_down(it: &Confinement, cwd: &AbsPath, command: &str, output: &str) -> Option<Noted> {
    let mut said = output.lines().filter(|it| follows(it).is_some() || it.starts_with(DELETED)).take(LINES).peekable();
    said.peek().filter(|_| !it.read_only)?;
    let mut files = output.lines().filter_map(failed_at).map(|it| cwd.join(it));
    let named = files.next();
    // `git checkout -b x origin/x | tail -1`: where git tells of no failure there may be none, and `cat log` is no git.
    let settles = named.is_some();
    if !settles && !VERBS.iter().any(|it| command.contains(it)) {
        return None;
    }
    let here = || cwd.as_path().ancestors().map(|it| it.join(".git")).find(|it| it.is_dir());
    let config = named.or_else(|| AbsPath::new(here()?.join("config")))?;
    // Of two repositories nobody knows which line is of which.
    let git = Git::of(it, &config).filter(|_| files.all(|it| it == config))?;
    let mut words = Vec::new();
    for line in said {
        words.extend(match follows(line).map(|it| git.note(&it)) {
            Some(Ok(it)) => it,
            Some(Err(why)) => Some(why).filter(|_| settles),
            None => git.left_over(line).filter(|_| settles),
        });
    }
    words.dedup();
    Some(Noted { words, settles }).filter(|it| it.settles || !it.words.is_empty())
}

/// What a command printed, but for what git says of settings that it could not write: that may be all that it was denied,
/// and need not be.
pub fn without_failures(output: &str) -> Cow<'_, str> {
    match output.contains(FAILED.0) {
        true => output.lines().filter(|it| failed_at(it).is_none()).collect::<Vec<_>>().join("\n").into(),
        false => output.into(),
    }
}

fn failed_at(line: &str) -> Option<&str> {
    line.strip_prefix(FAILED.0)?.rsplit_once(FAILED.1).map(|it| it.0)
}

/// The words of git since 2.35, and those before.
fn follows(line: &str) -> Option<Follows<'_>> {
    let rest = line.strip_prefix("branch '").or_else(|| line.strip_prefix("Branch '"))?;
    let (branch, rest) = rest.split_once("' set up to track ")?;
    let (rest, rebases) = rest.strip_suffix(" by rebasing.").map_or((rest.strip_suffix('.')?, false), |it| (it, true));
    // Of a remote branch it says "'feat' from 'origin'".
    let quoted = rest.strip_prefix("local branch ").unwrap_or(rest);
    let upstream = quoted.strip_prefix('\'')?.strip_suffix('\'')?;
    Some(Follows { branch, upstream, rebases }).filter(|_| !upstream.contains('\''))
}

/// A repository in which commands write.
struct Git {
    folder: OwnedFd,
    path: AbsPath,
    config: String,
}

impl Git {
    fn of(it: &Confinement, config: &AbsPath) -> Option<Self> {
        let git = config.parent().filter(|_| config.as_path().ends_with("config"))?;
        let is_written = it.roots.iter().chain(&it.gits).any(|it| git.is_within(it)) && !it.keeps(config);
        let is_itself = git.as_path().canonicalize().is_ok_and(|it| it == git.as_path());
        if !is_written || !is_itself || !is_repository(git.as_path()) {
            return None;
        }
        let folder = open_folder(git.as_path()).ok()?;
        let mut text = String::new();
        let file = open_config(&folder, OFlag::O_RDONLY).ok()?;
        file.take(MAX).read_to_string(&mut text).ok()?;
        Some(Self { folder, path: git, config: text })
    }

    /// What was noted down; `None`: it was there already.
    fn note(&self, it: &Follows) -> Result<Option<String>, String> {
        let Follows { branch, upstream, .. } = it;
        let missed = |why: &str| {
            Err(format!(
                "Unlike what git says, {branch} does not track {upstream}: commands cannot write {}, and {why}.",
                self.path.join("config")
            ))
        };
        let Some((remote, merge)) = self.upstream(it) else { return missed("castor does not know this upstream") };
        let rebase = if it.rebases { "\trebase = true\n" } else { "" };
        let section = format!("[branch \"{branch}\"]\n\tremote = {remote}\n\tmerge = {merge}\n{rebase}");
        let own = self.section("branch", branch);
        match own {
            // As it was before.
            Some(own) if section.lines().skip(1).all(|it| own.contains(&it.trim())) => return Ok(None),
            Some(_) => return missed("the branch has settings already"),
            None => (),
        }
        match self.append(&section) {
            Ok(()) => Ok(Some(format!(
                "castor noted down in {} that {branch} tracks {upstream}, as commands cannot write there themselves.",
                self.path.join("config")
            ))),
            Err(it) => missed(&format!("neither could castor: {it}")),
        }
    }

    /// Remote and branch.
    fn upstream(&self, Follows { branch, upstream, .. }: &Follows) -> Option<(String, String)> {
        if !self.has("refs/heads", branch) {
            return None;
        }
        let of_remote = upstream.match_indices('/').find_map(|(at, _)| {
            let (remote, name) = (upstream.get(..at)?, upstream.get(at + 1..)?);
            let fetches = format!("fetch = +refs/heads/*:refs/remotes/{remote}/*");
            let is_known = self.section("remote", remote).is_some_and(|it| it.contains(&fetches.as_str()));
            let is_there = is_known && self.has(&format!("refs/remotes/{remote}"), name);
            is_there.then(|| (remote.to_owned(), format!("refs/heads/{name}")))
        });
        let of_own = self.has("refs/heads", upstream).then(|| (".".to_owned(), format!("refs/heads/{upstream}")));
        match (of_remote, of_own) {
            (Some(_), Some(_)) => None,
            (one, other) => one.or(other),
        }
    }

    /// What is left of a branch that is gone: nothing that anybody obeys, but a new branch of that name has it.
    fn left_over(&self, line: &str) -> Option<String> {
        let branch = line.strip_prefix(DELETED)?.split_once(" (was ")?.0;
        self.section("branch", branch)?;
        Some(format!("The settings of the deleted branch {branch} are left in {}.", self.path.join("config")))
    }

    /// The lines of a section, if there is one.
    fn section(&self, kind: &str, name: &str) -> Option<Vec<&str>> {
        let header = format!("[{kind} \"{name}\"]");
        let lines = || self.config.lines().map(str::trim);
        let at = lines().position(|it| it.starts_with(&header))?;
        Some(lines().skip(at + 1).take_while(|it| !it.starts_with('[')).collect())
    }

    /// Whether there is a reference of that name, alone or among those that git packed.
    fn has(&self, kind: &str, name: &str) -> bool {
        let is_odd = |it: char| it.is_control() || it.is_whitespace() || "\"'\\~^:?*[#;".contains(it);
        let is_plain = Path::new(name).components().all(|it| matches!(it, Component::Normal(_)));
        if name.is_empty() || name.starts_with('-') || name.contains(is_odd) || !is_plain {
            return false;
        }
        repository::has_reference(&self.path, &format!("{kind}/{name}"))
    }

    /// Behind all that is there, in the same file: mounts of others hold it. git is kept from it meanwhile as git does that.
    fn append(&self, section: &str) -> io::Result<()> {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
        drop(openat(&self.folder, "config.lock", flags, Mode::from_bits_truncate(0o666))?);
        let newline = if self.config.is_empty() || self.config.ends_with('\n') { "" } else { "\n" };
        let written = open_config(&self.folder, OFlag::O_WRONLY | OFlag::O_APPEND)
            .and_then(|mut it| it.write_all(format!("{newline}{section}").as_bytes()));
        unlinkat(&self.folder, "config.lock", UnlinkatFlags::NoRemoveDir)?;
        written
    }
}

/// A file of the user's own that has no other name.
fn open_config(folder: &OwnedFd, flags: OFlag) -> io::Result<File> {
    let flags = flags | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let file = File::from(openat(folder, "config", flags, Mode::empty())?);
    let about = file.metadata()?;
    let is_plain = about.is_file() && about.nlink() == 1 && about.len() <= MAX;
    match is_plain && about.uid() == geteuid().as_raw() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a plain file of the user's")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Follows, Noted, follows, note_down};
    use crate::base::{path::AbsPath, sandbox::Confinement};

    const CONFIG: &str = "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = ../up\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n\
                          [branch \"old\"]\n\tremote = origin\n\tmerge = refs/heads/old";

    #[test]
    fn what_git_says() {
        let said = |branch, upstream, rebases| Some(Follows { branch, upstream, rebases });
        assert_eq!(follows("branch 'x' set up to track 'origin/a'."), said("x", "origin/a", false));
        assert_eq!(follows("branch 'x' set up to track 'main' by rebasing."), said("x", "main", true));
        assert_eq!(follows("Branch 'x' set up to track local branch 'main'."), said("x", "main", false));
        for none in ["branch 'x' set up to track 'a'", "x", "branch 'x' set up to track remote branch 'a' from 'b'."] {
            assert_eq!(follows(none), None, "{none}");
        }
    }

    /// `lines` behind git's error; what is noted down of it, and what stands in the settings then behind what was there.
    fn check(lines: &str, words: Option<&[&str]>, want: &str) {
        let dir = tempfile::tempdir().unwrap();
        let root = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.as_path().parent().unwrap()).unwrap();
            fs::write(path.as_path(), text).unwrap();
        };
        let refs = ["heads/x", "heads/old", "heads/main", "heads/a/b", "remotes/origin/feat", "remotes/other/feat"];
        refs.iter().for_each(|it| write(&format!(".git/refs/{it}"), "1"));
        write(".git/HEAD", "ref: refs/heads/main");
        write(".git/objects/x", "");
        write(".git/packed-refs", "# x\n123 refs/remotes/origin/old\n123 refs/remotes/origin/a/c\n");
        write(".git/config", CONFIG);
        let config = root.join(".git/config");
        let output = format!("error: could not write config file {config}: Device or resource busy\n{lines}\n");
        let note = |it: &Confinement, output: &str| note_down(it, &root, "git branch", output);
        let noted = note(&Confinement::of(&root), &output);
        let filled = |it: &&str| it.replace("FILE", &config.to_string());
        let words = words.map(|it| Noted { words: it.iter().map(filled).collect(), settles: true });
        assert_eq!(noted, words, "{lines}");
        let text = fs::read_to_string(config.as_path()).unwrap();
        assert_eq!(text.strip_prefix(CONFIG), Some(want), "{lines}");
        assert!(!root.join(".git/config.lock").as_path().exists());
        let read_only = Confinement { read_only: true, ..Confinement::of(&root) };
        assert_eq!(note(&read_only, &output), None);
        assert_eq!(note(&Confinement::of(&root.join("elsewhere")), &output), None);
        // Git's error may be cut away: then only what is done is told.
        fs::write(config.as_path(), CONFIG).unwrap();
        let cut = note(&Confinement::of(&root), lines).map(|it| (it.settles, it.words));
        let done = words.map(|it| it.words).filter(|it| it.iter().any(|it| it.starts_with("castor noted")));
        assert_eq!(cut, done.map(|it| (false, it)), "{lines}");
    }

    #[test]
    fn what_git_could_not_note_down_is_noted_down() {
        let noted = |branch: &str, upstream: &str| {
            format!(
                "castor noted down in FILE that {branch} tracks {upstream}, as commands cannot write there themselves."
            )
        };
        check(
            "branch 'x' set up to track 'origin/feat'.",
            Some(&[&noted("x", "origin/feat")]),
            "\n[branch \"x\"]\n\tremote = origin\n\tmerge = refs/heads/feat\n",
        );
        check(
            "branch 'a/b' set up to track 'origin/a/c' by rebasing.",
            Some(&[&noted("a/b", "origin/a/c")]),
            "\n[branch \"a/b\"]\n\tremote = origin\n\tmerge = refs/heads/a/c\n\trebase = true\n",
        );
        check(
            "branch 'x' set up to track 'main'.",
            Some(&[&noted("x", "main")]),
            "\n[branch \"x\"]\n\tremote = .\n\tmerge = refs/heads/main\n",
        );
    }

    #[test]
    fn what_is_there_already_is_not_written_twice() {
        check("branch 'old' set up to track 'origin/old'.", Some(&[]), "");
        check("Deleted branch x (was 123).", Some(&[]), "");
        check("Deleted branch old (was 123).", Some(&["The settings of the deleted branch old are left in FILE."]), "");
    }

    /// Any command may print these lines.
    #[test]
    fn what_is_not_so_is_told_and_not_written() {
        let missed = |branch: &str, upstream: &str, why: &str| {
            format!("Unlike what git says, {branch} does not track {upstream}: commands cannot write FILE, and {why}.")
        };
        for (branch, upstream) in [
            ("none", "origin/feat"),
            ("x", "origin/none"),
            ("x", "other/feat"),
            ("x", "../up/new"),
            ("../heads/x", "origin/feat"),
            ("x", "origin/../origin/feat"),
            ("x\"]\t[core]\tfsmonitor=x", "origin/feat"),
        ] {
            let line = format!("branch '{branch}' set up to track '{upstream}'.");
            check(&line, Some(&[&missed(branch, upstream, "castor does not know this upstream")]), "");
        }
        let why = "the branch has settings already";
        check("branch 'old' set up to track 'origin/feat'.", Some(&[&missed("old", "origin/feat", why)]), "");
        check("all is well", None, "");
    }

    #[test]
    fn a_lock_of_gits_is_waited_for_by_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let root = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
        for it in [".git/refs/heads", ".git/refs/remotes/origin", ".git/objects"] {
            fs::create_dir_all(root.join(it).as_path()).unwrap();
        }
        let refs = [".git/refs/heads/x", ".git/refs/remotes/origin/feat"];
        refs.iter().for_each(|it| fs::write(root.join(it).as_path(), "1").unwrap());
        fs::write(root.join(".git/HEAD").as_path(), "ref: refs/heads/x").unwrap();
        fs::write(root.join(".git/config").as_path(), CONFIG).unwrap();
        fs::write(root.join(".git/config.lock").as_path(), "").unwrap();
        let output = "error: could not write config file .git/config: x\nbranch 'x' set up to track 'origin/feat'.";
        let noted = note_down(&Confinement::of(&root), &root, "git branch", output).unwrap();
        assert!(noted.words.iter().all(|it| it.contains("neither could castor")), "{noted:?}");
        assert_eq!(fs::read_to_string(root.join(".git/config").as_path()).unwrap(), CONFIG);
        assert!(root.join(".git/config.lock").as_path().exists(), "it is another's");
    }
}
