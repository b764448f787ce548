//! Commands that write what a sandbox holds of a repository: asked about before they fail half-way, and a yes opens it.

use super::*;

fn verdict(rules: &Rules, mode: Mode, interactive: bool, command: &str, git: Option<&str>) -> super::super::Verdict {
    let args = json!({ "command": command });
    let (command, git) = (Some(command.to_owned()), git.and_then(AbsPath::new));
    let targets = Targets { command, git, ..Targets::default() };
    let roots = [AbsPath::new("/w").unwrap()];
    let query = Query::new("run_shell_command", ToolKind::Execute, &args, &targets);
    decide(rules, &Query { mode, interactive, roots: &roots, ..query })
}

/// The decision in yolo, and what a yes opens.
fn check(command: &str, want: &str) {
    let said = verdict(&rules(""), Mode::Yolo, true, command, Some("/w/.git"));
    let opens: Vec<String> = said.opens.iter().map(ToString::to_string).collect();
    let got = [vec![word(said.decision).to_owned()], opens].concat().join(" ");
    assert_eq!(got, want, "{command}");
    assert_eq!(said.grant, None, "{command}");
}

#[test]
fn what_writes_settings_is_asked_about_and_a_yes_opens_them() {
    for command in [
        "git branch --move a b",
        "git branch -M a",
        "git branch --set-upstream-to=origin/x",
        "git branch -u origin/x",
        "git config --add a.b c",
        "git config --unset user.name",
        "git config -e",
        "git config set a.b c",
        "git config user.name x",
        "git fetch && git remote rm x",
        "git remote add r ../up && git fetch r",
        "git remote set-url origin x",
    ] {
        check(command, "ask /w/.git/config");
    }
    for command in ["git submodule update --init --recursive", "git submodule --quiet add ../lib x"] {
        check(command, "ask /w/.git/config /w/.git/modules /w/.gitmodules");
    }
    check("git sparse-checkout set src", "ask /w/.git/config /w/.git/config.worktree /w/.git/info");
    // Where there is another reason, one yes is for both.
    check("git config core.hooksPath x", "ask /w/.git/config");
    check("git submodule deinit -f x", "ask /w/.git/config /w/.git/modules /w/.gitmodules");
    for (command, want) in [
        ("git branch --contains x --sort=-committerdate", "allow"),
        ("git branch x origin/x", "allow"),
        ("git checkout -b x origin/x", "allow"),
        ("git config --get user.name", "allow"),
        ("git config --global user.name x", "allow"),
        ("git config get user.name", "allow"),
        ("git config list", "allow"),
        ("git config user.name", "allow"),
        ("git push -u origin x", "allow"),
        ("git remote -v", "allow"),
        ("git remote show origin", "allow"),
        ("git submodule status", "allow"),
        ("git worktree add ../t x", "allow"),
        // Elsewhere is another repository: the sandbox asks, if it must.
        ("git -C lib config user.name x", "allow"),
        ("cd lib && git config user.name x", "allow"),
    ] {
        check(command, want);
    }
}

#[test]
fn who_is_not_held_is_not_asked_and_where_nobody_is_there_it_may_try() {
    let decision = |mode, interactive, git| {
        let said = verdict(&rules(""), mode, interactive, "git remote add r x", git);
        (said.decision, said.opens.len())
    };
    assert_eq!(decision(Mode::Yolo, true, None), (Decision::Allow, 0));
    assert_eq!(decision(Mode::Yolo, false, Some("/w/.git")), (Decision::Allow, 0));
    assert_eq!(decision(Mode::Default, true, Some("/w/.git")), (Decision::Ask, 1));
    assert_eq!(decision(Mode::Default, true, None), (Decision::Ask, 0));
}

/// One that allows `git` speaks of no settings.
#[test]
fn a_rule_that_names_it_opens_it() {
    let check = |prefix: &str, mode, want: (Decision, usize)| {
        let rules = rules(&rule("allow", &format!("commandPrefix='{prefix}'")));
        let said = verdict(&rules, mode, true, "git fetch && git remote add r x", Some("/w/.git"));
        assert_eq!((said.decision, said.opens.len()), want, "{prefix}");
    };
    check("git remote", Mode::Yolo, (Decision::Allow, 1));
    check("git", Mode::Yolo, (Decision::Ask, 1));
    check("git", Mode::Default, (Decision::Ask, 1));
    // Somebody is asked about the rest, and its yes is for the whole.
    check("git remote", Mode::Default, (Decision::Ask, 1));
}
