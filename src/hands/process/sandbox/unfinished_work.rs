//! Git's unfinished work, such as a rebase that stopped: what a command leaves in it starts no program later.
//!
//! Git reads two kinds of programs there: lines of a list of steps, and the name of a strategy, which is a program's.

use std::{
    collections::BTreeSet,
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use super::{git_config::settings, git_config_paths::text_of};

/// Where a repository, or its linked worktree, has such work.
const FOLDERS: &[&str] = &["rebase-apply", "rebase-merge", "sequencer"];
const STEPS: &[&str] = &["git-rebase-todo", "git-rebase-todo.backup", "todo"];
/// Git's own strategies start nothing else.
const STRATEGIES: &[&str] = &["octopus", "ort", "ours", "recursive", "resolve", "subtree"];
/// The step that does nothing.
const NO_STEP: &str = "noop";

/// A file or folder in a repository, and something in it that would start a program.
pub(super) type StartedProgram = (PathBuf, String);

/// What unfinished work in a repository's folder would start.
pub(super) fn find_programs(place: &Path) -> BTreeSet<StartedProgram> {
    let mut res = BTreeSet::new();
    for folder in FOLDERS.iter().map(|it| place.join(it)).filter(|it| it.symlink_metadata().is_ok()) {
        // Where a link leads, anybody writes it later.
        let files = STEPS.iter().chain(&["opts", "strategy"]).map(|it| folder.join(it));
        let mut links = std::iter::once(folder.clone()).chain(files.clone());
        if let Some((path, target)) = links.find_map(|it| Some((it.clone(), fs::read_link(&it).ok()?))) {
            res.insert((path, target.display().to_string()));
            continue;
        }
        for file in files {
            let found = match text_of(&file) {
                Ok(text) => programs_in(&file, &text),
                Err(why) => vec![why.to_string()],
            };
            res.extend(found.into_iter().map(|it| (file.clone(), it)));
        }
    }
    res
}

fn programs_in(file: &Path, text: &str) -> Vec<String> {
    let is_own = |it: &String| it.is_empty() || STRATEGIES.contains(&it.as_str());
    let named: Vec<String> = if file.ends_with("strategy") {
        vec![text.trim().to_owned()]
    } else if file.ends_with("opts") {
        settings(text).into_iter().filter(|it| it.1 == "strategy").map(|it| it.2).collect()
    } else {
        return text.lines().filter(|it| is_command(it)).map(str::to_owned).collect();
    };
    named.into_iter().filter(|it| !is_own(it)).collect()
}

fn is_command(line: &str) -> bool {
    matches!(line.split_whitespace().next(), Some("x" | "exec"))
}

/// Puts a list of steps without its commands in the place of one that has another name now.
pub(super) fn write_harmless(file: &Path, aside: &Path) -> bool {
    let is_steps = file.file_name().is_some_and(|it| STEPS.iter().any(|name| it == *name));
    let Some(text) = text_of(aside).ok().filter(|_| is_steps && !aside.is_symlink()) else { return true };
    let lines = text.lines().map(|it| if is_command(it) { NO_STEP } else { it });
    let text: String = lines.flat_map(|it| [it, "\n"]).collect();
    // Another one there would be newer, and is looked at the next time.
    let made = fs::OpenOptions::new().write(true).create_new(true).open(file);
    made.is_ok_and(|mut it| it.write_all(text.as_bytes()).is_ok())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{find_programs, write_harmless};

    #[test]
    fn steps_and_strategies_that_start_programs_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let git = dir.path().join(".git");
        let check = |file: &str, text: &str, want: &[&str]| {
            let path = git.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            let found = find_programs(&git);
            fs::remove_file(&path).unwrap();
            let found: Vec<&str> = found.iter().map(|it| it.1.as_str()).collect();
            assert_eq!(found, want, "{file}: {text}");
        };
        check("rebase-merge/git-rebase-todo", "pick 12 exec\n# exec a\nnoop\n", &[]);
        check("rebase-merge/git-rebase-todo", "pick 12\n \texec a\nx b\r\nexecute\n", &[" \texec a", "x b"]);
        check("rebase-merge/git-rebase-todo.backup", "x sh x", &["x sh x"]);
        check("sequencer/todo", "exec a", &["exec a"]);
        check("rebase-apply/git-rebase-todo", "exec a", &["exec a"]);
        check("rebase-merge/strategy", "ort\n", &[]);
        check("rebase-merge/strategy", "evil\n", &["evil"]);
        check("rebase-merge/strategy", "ort evil", &["ort evil"]);
        check("sequencer/opts", "[options]\n\tmainline = 1\n\tstrategy = ours\n", &[]);
        check("sequencer/opts", "[options] Strategy = \"evil\"", &["evil"]);
        check("rebase-merge/message", "exec a", &[]);
        std::os::unix::fs::symlink("../elsewhere", git.join("sequencer/todo")).unwrap();
        assert_eq!(find_programs(&git).len(), 1);
        fs::remove_dir_all(git.join("sequencer")).unwrap();
        std::os::unix::fs::symlink("../elsewhere", git.join("sequencer")).unwrap();
        assert_eq!(find_programs(&git).len(), 1);
    }

    #[test]
    fn steps_go_on_without_their_commands() {
        let dir = tempfile::tempdir().unwrap();
        let at = |it: &str| dir.path().join(it);
        fs::write(at("todo.castor-aside"), "pick 12 x\nexec a\nx b\n# c").unwrap();
        assert!(write_harmless(&at("todo"), &at("todo.castor-aside")));
        assert_eq!(fs::read_to_string(at("todo")).unwrap(), "pick 12 x\nnoop\nnoop\n# c\n");
        assert!(!write_harmless(&at("todo"), &at("todo.castor-aside")));
        assert!(write_harmless(&at("strategy"), &at("todo.castor-aside")) && !at("strategy").exists());
    }
}
