//! Everyday command lines: the decision of the default mode and of `auto` on each.

use super::*;

const LINES: &str = include_str!("everyday.txt");

/// How a line is decided on: in default, in auto, and whether it runs with everything read-only.
fn decided(line: &str) -> (Decision, Decision, bool) {
    let rules = RuleSet::shipped(own_tools());
    let verdict = |mode| shell(&rules, mode, true, line, &[]);
    let (default, auto) = (verdict(Mode::Default), verdict(Mode::Auto));
    (default.decision, auto.decision, auto.read_only)
}

/// A read-only line runs with everything read-only; the rows of `danger.toml` ask in every mode.
#[test]
fn each_line_is_treated_as_its_row_says() {
    let (mut n, mut wrong, mut sections) = (0, Vec::new(), Vec::<(&str, usize)>::new());
    for row in LINES.lines().map(str::trim).filter(|it| !it.is_empty() && !it.starts_with('#')) {
        if let Some(name) = row.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
            sections.push((name, 0));
            continue;
        }
        let (kind, line) = row.split_once(' ').unwrap();
        let want = match kind {
            "look" => (Decision::Allow, Decision::Allow, true),
            // Network and folders outside are what the sandbox keeps it from: that question comes with the denial.
            "confined" | "network" | "outside" => (Decision::Ask, Decision::Allow, false),
            "danger" => (Decision::Ask, Decision::Ask, false),
            other => panic!("{other}"),
        };
        let got = decided(&unescaped(line));
        wrong.extend((got != want).then(|| format!("{row}: {got:?}")));
        n += 1;
        sections.last_mut().unwrap().1 += 1;
    }
    println!("{} of {n}", n - wrong.len());
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(sections.len() == 6 && sections.iter().all(|it| it.1 >= 25), "{sections:?}");
}

/// In yolo the dangerous rows are asked about, too, and no others.
#[test]
fn yolo_asks_about_what_is_not_taken_back() {
    let rules = RuleSet::shipped(own_tools());
    for row in LINES.lines().filter(|it| it.starts_with(|it: char| it.is_ascii_lowercase())) {
        let (kind, line) = row.split_once(' ').unwrap();
        let want = if kind == "danger" { Decision::Ask } else { Decision::Allow };
        let got = shell(&rules, Mode::Yolo, true, &unescaped(line), &[]);
        assert_eq!(got.decision, want, "{row}: {}", got.rule);
        assert!(got.network);
    }
}

/// Whatever of what holds a command is missing: `auto` asks about it, and is not on offer.
#[test]
fn auto_needs_all_that_holds_a_command() {
    let (rules, whole) = (RuleSet::shipped(own_tools()), SandboxFacts::WHOLE);
    let missing = [
        SandboxFacts { available: false, ..whole },
        SandboxFacts { mounts: false, ..whole },
        SandboxFacts { trusted: false, plain_repository: false, ..whole },
        SandboxFacts { undoable: false, ..whole },
    ];
    for (sandbox, is_whole) in missing.into_iter().map(|it| (it, false)).chain([(whole, true)]) {
        for (command, looks) in [("make", false), ("ls src", true)] {
            let (args, targets) = (json!({ "command": command }), Targets::default());
            let query = Query::new("run_shell_command", ToolKind::Execute, &args, &targets);
            let verdict = |mode| decide(&rules, &Query { mode, sandbox, ..query });
            let want = if looks || is_whole { Decision::Allow } else { Decision::Ask };
            assert_eq!(verdict(Mode::Auto).decision, want, "{command} {sandbox:?}");
            assert_eq!(verdict(Mode::Default).offers_auto, is_whole && !looks, "{command} {sandbox:?}");
        }
    }
}

/// A database that is a file in a root is held and taken back as other files are.
#[test]
fn databases_in_files_of_a_root_ask_about_nothing() {
    let rules = rules("");
    let roots = [AbsPath::new("/w").unwrap()];
    let decision = |sandbox, mode, command: &str| {
        let args = json!({ "command": command });
        let targets = Targets { command: Some(command.to_owned()), ..Targets::default() };
        let query = Query::new("run_shell_command", ToolKind::Execute, &args, &targets);
        decide(&rules, &Query { sandbox, mode, roots: &roots, ..query }).decision
    };
    let inside = "
        sqlite3 data.db 'drop table t'
        sqlite3 /w/sub/data.db 'delete from t where id = 1'
        sqlite3 -batch db/x.sqlite 'DROP INDEX i'
        /usr/bin/sqlite3 ./data.db 'truncate table t'
        duckdb x.duckdb -c 'drop table t'
        cd sub && sqlite3 data.db 'drop table t'
        timeout 5 sqlite3 data.db 'drop table t'
        sqlite3 :memory: 'drop table t'";
    let outside = "
        sqlite3 /srv/data.db 'drop table t'
        sqlite3 ~/data.db 'drop table t'
        sqlite3 ../other/data.db 'delete from t'
        sqlite3 /w/../srv/data.db 'drop table t'
        sqlite3 $DB 'drop table t'
        duckdb $HOME/x.duckdb -c 'drop table t'
        cd /srv && sqlite3 data.db 'drop table t'
        psql -d data -c 'drop table t'
        mysql data -e 'drop table t'";
    let lines = |text: &'static str| text.lines().map(str::trim).filter(|it| !it.is_empty());
    for mode in [Mode::Auto, Mode::Yolo] {
        for command in lines(inside) {
            assert_eq!(decision(SandboxFacts::WHOLE, mode, command), Decision::Allow, "{mode:?} {command}");
            let bare = SandboxFacts { undoable: false, ..SandboxFacts::WHOLE };
            assert_eq!(decision(bare, mode, command), Decision::Ask, "{mode:?} {command}");
        }
        for command in lines(outside) {
            assert_eq!(decision(SandboxFacts::WHOLE, mode, command), Decision::Ask, "{mode:?} {command}");
        }
    }
}

/// A repository's configuration names programs that git starts, a toolchain's file what cargo is.
#[test]
fn nothing_of_a_folder_that_is_not_trusted_looks() {
    let rules = rules("");
    let check = |trusted, plain, command: &str, want: Decision| {
        let args = json!({ "command": command });
        let targets = Targets { command: Some(command.to_owned()), ..Targets::default() };
        let query = Query::new("run_shell_command", ToolKind::Execute, &args, &targets);
        for available in [true, false] {
            let plain_repository = trusted || plain;
            let sandbox =
                SandboxFacts { trusted, plain_repository, available, mounts: available, ..SandboxFacts::WHOLE };
            assert_eq!(decide(&rules, &Query { sandbox, ..query }).decision, want, "{command}");
        }
    };
    let led = "
        git status
        git diff
        git log -p
        git ls-files -m
        git -C . blame a
        /usr/bin/git status
        ls && git status
        timeout 5 git status
        sh -c 'git status'
        git rev-parse HEAD | head -1
        cargo --version
    ";
    for command in led.lines().map(str::trim).filter(|it| !it.is_empty()) {
        check(true, true, command, Decision::Allow);
        check(false, false, command, Decision::Ask);
    }
    check(false, false, "ls -la && cat a | wc -l", Decision::Allow);
    check(false, true, "git status && git diff | head", Decision::Allow);
    for command in
        ["git -C sub status", "cd sub && git status", "git --git-dir=sub/.git log", "git log; cargo --version"]
    {
        check(false, true, command, Decision::Ask);
    }
}
