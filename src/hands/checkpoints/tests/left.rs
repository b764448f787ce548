//! What agents left and nobody looked at, through the log of checkpoints.

use std::{fs, ops::Range, time::SystemTime};

use super::{Bed, bed, call, has_git, id, never, undo};
use crate::{
    checkpoints::{Checkpoints, Retention, forget_session, hash_of, sweep},
    provenance::{LineSet, LookedBytes, Provenance},
};
use castor_base::checkpoint::Scope;

impl Bed {
    fn provenance(&self) -> Provenance {
        Provenance::new(&self.home, std::slice::from_ref(&self.root))
    }

    /// What is unseen: the path below the root, and the agent's lines.
    fn unseen(&self) -> Vec<String> {
        let all = self.provenance().unseen().unwrap();
        let name = |it: &std::path::Path| it.strip_prefix(&self.root).unwrap().display().to_string();
        let lines = |it: &Option<LineSet>| it.as_ref().map_or("all".to_owned(), |it| format!("{:?}", ranges(it)));
        all.iter().map(|it| format!("{} {}", name(&it.path), lines(&it.lines))).collect()
    }

    fn is_unseen(&self, path: &str) -> bool {
        self.provenance().first_unseen(&self.root.join(path)).unwrap().is_some()
    }

    /// A person looks at a text; `None`: at whatever is there.
    fn look(&self, path: &str, text: Option<&str>) {
        let hash = text.map(|it| hash_of(it.as_bytes()));
        self.provenance().look(&[LookedBytes { path: self.root.join(path), hash, lines: None }]).unwrap();
    }

    #[track_caller]
    fn check(&self, want: &[&str]) {
        assert_eq!(self.unseen(), want);
        let first = self.provenance().first_unseen(&self.root).unwrap();
        assert_eq!(first.is_none(), want.is_empty(), "{first:?}");
    }

    /// A person does something between two calls, and the next look sees it.
    fn person(&self, checkpoints: &Checkpoints, act: impl FnOnce()) {
        act();
        call(checkpoints, "nothing", || ());
    }

    fn git(&self) -> bool {
        let has = has_git();
        if has {
            self.sh("git init -q -b main . && git add -A && git commit -qm one");
        }
        has
    }
}

fn ranges(lines: &LineSet) -> Vec<Range<usize>> {
    let mut res: Vec<Range<usize>> = Vec::new();
    for at in lines.iter().copied() {
        match res.last_mut() {
            Some(last) if last.end == at => last.end += 1,
            _ => res.push(at..at + 1),
        }
    }
    res
}

#[test]
fn what_a_call_leaves_is_unseen_until_a_person_changes_or_sees_it() {
    let bed = bed();
    bed.write("mine", "1\n2\n3\n");
    bed.write("whole", "x\n");
    let checkpoints = bed.opened("s");
    bed.check(&[]);
    call(&checkpoints, "c", || {
        bed.write("mine", "1\nagent two\nagent three\n");
        bed.write("new/file", "one\ntwo\n");
        std::os::unix::fs::symlink("mine", bed.path("link")).unwrap();
        bed.sh("chmod +x whole");
    });
    bed.check(&["link all", "mine [1..3]", "new/file [0..2]"]);
    let found = bed.provenance().first_unseen(&bed.root.join("new")).unwrap().unwrap();
    assert_eq!((found.by, found.is_folder), (Some(("s".into(), "c".into())), false));
    // The disk as it is now counts, before anything has walked over it.
    bed.write("mine", "1\nagent two\nperson\n");
    bed.check(&["link all", "mine [1..2]", "new/file [0..2]"]);
    bed.person(&checkpoints, || bed.write("mine", "0\n1\n  agent two\nperson\n"));
    bed.check(&["link all", "mine [2..3]", "new/file [0..2]"]);
    bed.person(&checkpoints, || bed.write("mine", "1\nperson\n"));
    bed.check(&["link all", "new/file [0..2]"]);
    // Exactly those bytes, in that place.
    bed.look("new/file", Some("other\n"));
    bed.check(&["link all", "new/file [0..2]"]);
    bed.look("new/file", Some("one\ntwo\n"));
    bed.check(&["link all"]);
    call(&checkpoints, "d", || bed.write("new/file", "one\nevil\n"));
    bed.check(&["link all", "new/file [1..2]"]);
    call(&checkpoints, "e", || bed.write("new/file", "one\ntwo\n"));
    bed.check(&["link all"]);
    checkpoints.close();
    bed.check(&["link all"]);
}

#[test]
fn the_agents_bytes_are_the_agents_wherever_a_person_puts_them() {
    let bed = bed();
    let checkpoints = bed.opened("s");
    call(&checkpoints, "c", || {
        bed.write("a", "evil one\nevil two\n");
        bed.write("b", "first\n");
    });
    call(&checkpoints, "d", || bed.write("b", "second\n"));
    bed.person(&checkpoints, || fs::rename(bed.path("a"), bed.path("moved")).unwrap());
    bed.check(&["b [0..1]", "moved [0..2]"]);
    bed.person(&checkpoints, || _ = fs::copy(bed.path("moved"), bed.path("copy")).unwrap());
    bed.check(&["b [0..1]", "copy [0..2]", "moved [0..2]"]);
    // Moved and changed at once.
    bed.person(&checkpoints, || {
        fs::remove_file(bed.path("moved")).unwrap();
        bed.write("again", "person\nevil one\n    evil two\n");
    });
    bed.check(&["again [1..3]", "b [0..1]", "copy [0..2]"]);
    // What an agent left before, and comes back.
    bed.person(&checkpoints, || bed.write("b", "person\n"));
    bed.person(&checkpoints, || bed.write("b", "first\n"));
    bed.check(&["again [1..3]", "b all", "copy [0..2]"]);
}

#[test]
fn an_undo_brings_back_what_was_seen_and_what_was_not() {
    let bed = bed();
    bed.write("mine", "mine\n");
    bed.write("gone", "gone\n");
    let checkpoints = bed.opened("s");
    call(&checkpoints, "c", || bed.write("new", "one\n"));
    call(&checkpoints, "d", || {
        bed.write("mine", "agent\n");
        bed.write("new", "two\n");
        fs::remove_file(bed.path("gone")).unwrap();
    });
    bed.check(&["mine [0..1]", "new [0..1]"]);
    undo(&checkpoints, "r", &["d"]);
    bed.check(&["new all"]);
    undo(&checkpoints, "r2", &["r"]);
    bed.check(&["mine all", "new all"]);
}

#[test]
fn what_is_built_is_unseen_as_a_whole_from_the_first_command_on() {
    let bed = bed();
    bed.write(".gitignore", "node_modules\n");
    bed.write("node_modules/x/a", "0\n");
    let checkpoints = bed.opened("s");
    bed.check(&[]);
    let tool = |name: &str, path: &str, text: &str| {
        let scope = Scope::Files(vec![bed.root.join(path)]);
        checkpoints.before(&id(name), &scope, &never).unwrap();
        bed.write(path, text);
        checkpoints.after(&id(name)).unwrap();
    };
    tool("t", "mine", "x\n");
    bed.check(&["mine [0..1]"]);
    call(&checkpoints, "c", || ());
    bed.check(&["mine [0..1]", "node_modules all"]);
    let inside = bed.root.join("node_modules/x/a");
    assert!(bed.provenance().first_unseen(&inside).unwrap().unwrap().is_folder);
    bed.look("node_modules/x/a", Some("0\n"));
    assert!(!bed.is_unseen("node_modules/x/a"));
    bed.write("node_modules/x/a", "1\n");
    assert!(bed.is_unseen("node_modules/x/a"));
    bed.look("node_modules", None);
    bed.check(&["mine [0..1]"]);
    call(&checkpoints, "d", || ());
    bed.check(&["mine [0..1]", "node_modules all"]);
    bed.person(&checkpoints, || fs::remove_dir_all(bed.path("node_modules")).unwrap());
    bed.check(&["mine [0..1]"]);
}

#[test]
fn a_flood_makes_nothing_seen_and_eats_no_memory() {
    let bed = bed();
    bed.write("src/mine", "x\n");
    let checkpoints = bed.opened("s");
    call(&checkpoints, "first", || bed.write("src/evil", "evil\n"));
    call(&checkpoints, "flood", || {
        for n in 0..3_001 {
            let dir = bed.path(&format!("out/{}", n % 97));
            if n < 97 {
                fs::create_dir_all(&dir).unwrap();
            }
            fs::write(dir.join(n.to_string()), n.to_string()).unwrap();
        }
    });
    bed.check(&["out all", "src/evil [0..1]"]);
    let store = fs::read_dir(bed.home.join("checkpoints")).unwrap().next().unwrap().unwrap().path();
    assert!(fs::metadata(store.join("provenance")).unwrap().len() < 10_000);
    assert!(fs::metadata(store.join("provenance.past")).unwrap().len() < 200_000);
    // Many small floods, in files that were there.
    for n in 0..8 {
        call(&checkpoints, &format!("many{n}"), || {
            (0..900).for_each(|it| bed.write(&format!("m{n}/{it}"), format!("{n} {it}")));
        });
    }
    assert!(bed.unseen().len() <= 4_096 && bed.unseen().contains(&"src/evil [0..1]".to_owned()));
    for n in 0..8 {
        assert!(bed.is_unseen(&format!("m{n}/5")));
    }
    // One of the flood, elsewhere.
    bed.person(&checkpoints, || fs::rename(bed.path("out/0/97"), bed.path("97")).unwrap());
    assert!(bed.is_unseen("97"));
}

#[test]
fn what_is_damaged_or_dropped_is_said_and_unseen() {
    let bed = bed();
    let store = || fs::read_dir(bed.home.join("checkpoints")).unwrap().next().unwrap().unwrap().path();
    let note = || bed.provenance().unseen().unwrap().into_iter().find_map(|it| it.note).unwrap_or_default();
    let checkpoints = bed.opened("s");
    call(&checkpoints, "c", || bed.write("a", "x\n"));
    fs::write(store().join("provenance"), "no frame").unwrap();
    assert!(bed.unseen().contains(&" all".to_owned()) && note().contains("damaged"), "{:?}", bed.unseen());
    call(&checkpoints, "d", || ());
    assert!(bed.is_unseen("b"));
    bed.look("", None);
    bed.check(&[]);
    // Removed, and the log has all of it still.
    call(&checkpoints, "e", || bed.write("b", "x\n"));
    checkpoints.close();
    fs::remove_file(store().join("provenance")).unwrap();
    let checkpoints = bed.opened("s");
    bed.check(&["a [0..1]", "b [0..1]"]);
    checkpoints.close();
    // Removed, and the log forgot some of it.
    bed.opened("t").close();
    forget_session(&bed.home, &"s".into()).unwrap();
    fs::remove_file(store().join("provenance")).unwrap();
    bed.opened("t").close();
    assert!(note().contains("lacks a part"));
}

#[test]
fn a_sweep_keeps_what_nobody_looked_at() {
    let bed = bed();
    let checkpoints = bed.opened("s");
    call(&checkpoints, "c", || bed.write("a", "x\n"));
    checkpoints.close();
    forget_session(&bed.home, &"s".into()).unwrap();
    bed.check(&["a [0..1]"]);
    let retention = Retention { store: 0, used_since: SystemTime::now() + std::time::Duration::from_secs(60) };
    sweep(&bed.home, &retention, &|_| false).unwrap();
    bed.check(&["a [0..1]"]);
    let checkpoints = bed.opened("t");
    bed.check(&["a [0..1]"]);
    call(&checkpoints, "d", || bed.write("b", "x\ny\n"));
    bed.check(&["a [0..1]", "b [0..2]"]);
    bed.look("a", Some("x\n"));
    bed.check(&["b [0..2]"]);
}

#[test]
fn bytes_of_commits_from_before_the_session_are_nobodys() {
    let bed = bed();
    bed.write("a", "one\n");
    bed.write("b", "b\n");
    if !bed.git() {
        return;
    }
    bed.sh("git checkout -qb other && echo two > a && git commit -qam two && git checkout -q main");
    let checkpoints = bed.opened("s");
    call(&checkpoints, "c", || bed.sh("git checkout -q other"));
    bed.check(&[]);
    call(&checkpoints, "d", || bed.sh("echo evil > a && git commit -qam evil && git checkout -q main && echo new > b"));
    bed.check(&["b [0..1]"]);
    // A commit of the agent's is none from before, not even for the next session.
    call(&checkpoints, "e", || bed.sh("git checkout -q other"));
    bed.check(&["a [0..1]", "b [0..1]"]);
    call(&checkpoints, "f", || bed.sh("git checkout -q main"));
    checkpoints.close();
    let checkpoints = bed.opened("t");
    call(&checkpoints, "g", || bed.sh("git checkout -q other"));
    bed.check(&["a [0..1]", "b [0..1]"]);
    call(&checkpoints, "h", || bed.sh("git checkout -q main"));
    bed.person(&checkpoints, || bed.sh("git checkout -q other"));
    bed.check(&["a all", "b [0..1]"]);
}

#[test]
fn a_commit_that_a_person_writes_is_a_look_and_no_other() {
    let bed = bed();
    bed.write("a", "one\n");
    if !bed.git() {
        return;
    }
    let left = |name: &str, line: &str| {
        let checkpoints = bed.opened("s");
        call(&checkpoints, name, || bed.sh(line));
        checkpoints
    };
    // While a session has the folder open, whoever commits.
    let checkpoints = left("c", "echo evil > a; echo evil > b");
    bed.sh("git add -A && git commit -qm auto");
    bed.check(&["a [0..1]", "b [0..1]"]);
    checkpoints.close();
    bed.check(&["a [0..1]", "b [0..1]"]);
    left("d", "echo more >> a").close();
    bed.sh("git commit -qam mine");
    bed.check(&["b [0..1]"]);
    let checkpoints = left("e", "echo new > c && git add c && git commit -qm agents");
    bed.check(&["b [0..1]", "c [0..1]"]);
    checkpoints.close();
    // Amended, rebased, merged and pulled.
    bed.sh("git commit -q --amend -m again");
    bed.check(&["b [0..1]", "c [0..1]"]);
    bed.sh("git checkout -qb side HEAD~1 && echo x > x && git add x && git commit -qm side");
    bed.sh("git checkout -q main && git rebase -q side");
    bed.check(&["b [0..1]", "c [0..1]"]);
    bed.sh("git reset -q --hard HEAD~1 && git merge -q --no-edit ORIG_HEAD");
    bed.check(&["b [0..1]", "c [0..1]"]);
    // What a person takes apart and commits again was in the agent's commit before.
    bed.sh("git reset -q --soft HEAD~1 && git commit -qm mine");
    bed.check(&["b [0..1]", "c [0..1]"]);
}

/// What git itself notes with each command is nobody's program; what it obeys is.
#[test]
fn of_git_only_what_it_obeys_is_unseen() {
    let bed = bed();
    bed.write("a", "one\n");
    if !bed.git() {
        return;
    }
    let checkpoints = bed.opened("s");
    call(&checkpoints, "c", || {
        bed.sh("git commit -q --allow-empty -m two && git stash list && git tag t && git branch hooks/config");
        bed.write(".git/hooks/pre-commit", "evil\n");
        bed.write(".git/rebase-merge/git-rebase-todo", "exec evil\n");
    });
    bed.check(&[".git/hooks/pre-commit [0..1]", ".git/rebase-merge/git-rebase-todo [0..1]"]);
}

#[test]
fn what_an_agent_put_into_a_repository_is_its_own_wherever_it_comes_out() {
    let bed = bed();
    bed.write("a", "one\n");
    bed.write("p", "first\n");
    if !bed.git() {
        return;
    }
    bed.sh("git checkout -qb old && echo old > a && git commit -qam old && git checkout -q main");
    bed.write("p", "person\n");
    let checkpoints = bed.opened("s");
    let agent = |name: &str, line: &str| _ = call(&checkpoints, name, || bed.sh(line));
    let person = |line: &str| bed.person(&checkpoints, || bed.sh(line));
    // It comes and goes within one call.
    agent("c", "git checkout -qb f && echo evil > a && git commit -qm agents a && git checkout -q main");
    bed.check(&[]);
    person("git merge -q --no-edit f");
    bed.check(&["a all"]);
    person("git reset -q --keep HEAD~1");
    bed.check(&[]);
    agent("d", "echo hidden > a && git stash -q -- a");
    person("git stash pop -q");
    bed.check(&["a all"]);
    // In a pack.
    agent(
        "e",
        "git checkout -q a && git checkout -qb g && echo packed > a && git commit -qm x a && git checkout -q main",
    );
    agent("f", "git gc -q --prune=now");
    person("git checkout -q g -- a");
    bed.check(&["a all"]);
    // What commits from before have, and what a person wrote, is not.
    person("git checkout -q old -- a");
    bed.check(&[]);
    agent("g", "git stash -q -- p");
    person("git stash pop -q");
    assert!(!bed.is_unseen("p"));
}
