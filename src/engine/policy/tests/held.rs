//! Commands that write what a sandbox holds of a repository: asked about before they fail half-way, and a yes opens it.

use super::*;
use crate::{
    base::{
        ids::CallId,
        sandbox::{Denial, Granted},
        tool::{Beyond, Change, Output, Repository, Reworked, ToolCall},
    },
    engine::policy::{
        decide::{Opinion, verdict as verdict_of},
        half_done, words,
    },
};

fn verdict(rules: &Rules, mode: Mode, interactive: bool, command: &str, git: Option<&str>) -> super::super::Verdict {
    let args = json!({ "command": command });
    let repository = |git| Repository { dir: String::new(), git };
    let repositories = git.and_then(AbsPath::new).map(repository).into_iter().collect();
    let targets = Targets {
        command: Some(command.to_owned()),
        beyond: Box::new(Beyond { repositories, ..Beyond::default() }),
        ..Targets::default()
    };
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
    check(
        "git remote add r x && git sparse-checkout set y; git remote rm r",
        "ask /w/.git/config /w/.git/config.worktree /w/.git/info",
    );
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
        // Elsewhere is another repository, perhaps one that nobody holds.
        ("git -C lib config user.name x", "allow"),
        ("cd lib && git config user.name x", "allow"),
        ("git --git-dir=lib/.git config user.name x", "allow"),
    ] {
        check(command, want);
    }
}

#[test]
fn settings_of_a_repository_elsewhere_are_those_of_where_the_command_leads() {
    let check = |command: &str, dir: &str, interactive, want: &str| {
        let args = json!({ "command": command });
        assert_eq!(words("run_shell_command", &args).repositories, [dir], "{command}");
        let git = AbsPath::new("/w/.git/modules/lib").unwrap();
        let own = Repository { dir: String::new(), git: AbsPath::new("/w/.git").unwrap() };
        let repositories = vec![own, Repository { dir: dir.to_owned(), git }];
        let targets = Targets { beyond: Box::new(Beyond { repositories, ..Beyond::default() }), ..targets(command) };
        assert_eq!(opened(&decided(&targets, &args, interactive)), want, "{command}");
    };
    let config = "ask /w/.git/modules/lib/config";
    check("git -C lib branch -m a b", "lib", true, config);
    check("git -C lib branch -m a b", "lib", false, "deny");
    check("git -C lib config user.name x", "lib", false, "allow");
    check("cd lib && git remote add r x", "lib", true, config);
    check("cd /w/lib && git -C deep remote add r x", "/w/lib/deep", true, config);
    check("git -C lib submodule update", "lib", true, &format!("{config} /w/.git/modules/lib/modules"));
    for command in ["git remote add r x", "cd a; cd b; git remote add r x", "git -C $x remote add r x"] {
        let args = json!({ "command": command });
        assert!(words("run_shell_command", &args).repositories.is_empty(), "{command}");
    }
}

/// What the words say, as the world is told to look it up.
#[test]
fn what_git_does_to_files_is_read_from_its_words() {
    let check = |command: &str, want: &str| {
        let works = words("run_shell_command", &json!({ "command": command })).reworks;
        let said = works.iter().map(|it| {
            let changes: Vec<String> = it.changes.iter().map(|it| format!("{it:?}").replace('"', "")).collect();
            let about = [&it.dir].into_iter().filter(|it| !it.is_empty()).map(|it| format!("in {it}"));
            let paths = it.paths.iter().map(|it| format!("at {it}"));
            changes.into_iter().chain(about).chain(paths).collect::<Vec<_>>().join(" ")
        });
        assert_eq!(said.collect::<Vec<_>>().join("; "), want, "{command}");
    };
    for command in [
        "git status && git log && git diff x && git add . && git commit -am x && git push && git fetch",
        "git stash list; git stash drop; git stash show -p",
        "git reset x; git reset --soft HEAD~1",
        "git checkout -b new; git switch -c new; git checkout -qb \"$x\" --quiet",
        "git restore --staged x; git rm --cached x; git apply --check x; git merge --quit; git bisect log",
        "git worktree list; git worktree prune -n; git branch x; git tag x; git cherry-pick -h",
        "ls; echo git stash",
    ] {
        check(command, "");
    }
    check("git stash", "Dirty");
    check("git stash push -um \"$x\" -- a b", "Dirty Untracked at a at b");
    check("git stash pop; git stash apply 2", "Stash(stash@{0}); Stash(stash@{2})");
    check("git checkout main", "ToOrPath(main)");
    check("git checkout -f main -- '*.rs'", "To(main) Dirty");
    check("git checkout -- .vscode", "Dirty at .vscode");
    check("git checkout -b new origin/main", "To(origin/main)");
    check("git checkout -", "To(@{-1})");
    check("git checkout $x", "Unknown");
    check("git switch main; cd sub", "To(main)");
    // Where that is.
    for command in [
        "cd src; git switch x",
        "{ cd src; git switch x; }",
        "cd src || exit 1; git switch x",
        "pushd src >/dev/null; git switch x; popd",
        "cd src; cd ../b; cd -; git switch x",
        "cd \"$PWD\" && cd src && git switch x",
    ] {
        check(command, "To(x) in src");
    }
    check("(cd src && git switch x)", "To(x) in src; To(x)");
    check("bash -c 'cd src && git switch x'", "To(x) in src");
    check("cd ~/x && git switch x; cd; git stash", "To(x) in ~/x; Dirty in ~");
    check("cd \"$(git rev-parse --show-toplevel)\" && git restore a", "Dirty");
    check("git --work-tree=. --git-dir ./.git stash", "Dirty");
    for command in ["git --git-dir=x stash", "GIT_DIR=x git stash", "cd $x && git stash", "git -C $x stash"] {
        check(command, "Unknown");
    }
    let alias = |it: &str| words("run_shell_command", &json!({ "command": it })).reworks;
    let works = alias("git co x");
    let [Change::Alias { name, means }] = works[0].changes.as_slice() else { panic!("it is no alias") };
    assert!(name == "co" && means.iter().any(|it| it.0 == "switch" && it.1.changes == [Change::To("x".to_owned())]));
    check("cd sub && git switch main", "To(main) in sub");
    check("git -C a -C b switch -C new main", "To(main) in a/b");
    check("git restore -s x --source=y a", "To(y) To(x) Dirty at a");
    check("git reset --hard x", "To(x) Dirty");
    check("git merge --no-autostash -m 'a b' x", "Merged(x)");
    check("git merge --autostash x", "Merged(x) Dirty");
    check("git merge x", "Merged(x) DirtyIf(merge.autoStash)");
    check("git -c merge.AutoStash merge x; git -c merge.autostash=no merge y", "Merged(x) Dirty; Merged(y)");
    check("git merge --abort", "Dirty To(ORIG_HEAD) Commits([ORIG_HEAD, ^HEAD])");
    check("git pull", "Merged(@{upstream}) Unknown DirtyIf(merge.autoStash) DirtyIf(rebase.autoStash)");
    check("git pull -r origin x", "Merged(@{upstream}) Unknown Dirty");
    check("git fetch && git merge origin/x", "Merged(origin/x) DirtyIf(merge.autoStash) Unknown");
    check("git commit -am x && git switch y", "To(y) Dirty");
    check("git rebase --onto a b c", "To(c) To(a) To(b) Commits([c, ^b]) DirtyIf(rebase.autoStash)");
    check("git cherry-pick -e a b; git revert --no-edit a..b", "Commits([a, b]); Commits([a..b])");
    // Of each sub-command other options take the next word.
    check("git checkout -m x; git switch -mq x", "ToOrPath(x); To(x)");
    check("git checkout --conflict diff3 x; git checkout --conflict=merge x", "ToOrPath(x); ToOrPath(x)");
    check(
        "git cherry-pick -x a; git cherry-pick -xm 1 a; git revert -m1 b",
        "Commits([a]); Commits([a]); Commits([b])",
    );
    check("git rebase --no-autostash -x make b", "To(b) Commits([HEAD, ^b])");
    check("git checkout --confl diff3 x", "ToOrPath(diff3) ToOrPath(x) Unknown");
    check("git restore -sx -- a", "To(x) Dirty at a");
    check("git am < x; git apply a.diff", "Unknown; Patch(a.diff)");
    check("git bisect good", "Unknown");
    check("git mv a b; git rm -r c", "Moved at a at b; Moved at c");
    check("git worktree add -b new ../t main", "Tree(../t)");
    check("git worktree add ../t -b new && cd ../t && ls", "Tree(../t)");
    check("git worktree remove -f ../t; git worktree prune", "Trees([../t]); Trees([])");
    check("git clean -fd; git clean -fdxe b a; git clean -nd", "Untracked at .; Ignored at a");
    check("git sparse-checkout set a; git submodule -q deinit -f x", "Unknown; Moved at x");
    check("git worktree move a b", "Trees([a, b])");
    check("git clone --depth 1 x@y:z/a.git; cd ..; git clone ../b/.git c", "Clone(a); Clone(c) in ..");
    check("timeout 9 git stash; bash -c 'git stash'", "Dirty; Dirty");
}

#[test]
fn what_git_would_change_is_asked_about_and_a_yes_opens_it() {
    let path = |it: &str| AbsPath::new(it).unwrap();
    let works = Reworked { places: vec![path("/w/.npmrc"), path("/w/.vscode")], ..Reworked::default() };
    let check = |command: &str, interactive, reworked: &Reworked, want: &str| {
        let targets = Targets {
            beyond: Box::new(Beyond { reworked: Some(reworked.clone()), ..Beyond::default() }),
            ..targets(command)
        };
        let said = decided(&targets, &json!({ "command": command }), interactive);
        assert_eq!(opened(&said), want, "{command}");
        let given = said.opens.contains(&path("/t")).then(|| Granted::Folder(path("/t")));
        assert_eq!(said.gives, given.into_iter().collect::<Vec<_>>(), "{command}");
        said
    };
    let said = check("git stash -u", true, &works, "ask /w/.npmrc /w/.vscode");
    assert_eq!(said.why.unwrap(), "git would change what the sandbox keeps: .npmrc, .vscode");
    check("echo x && git switch y", true, &works, "ask /w/.npmrc /w/.vscode");
    check("git status", true, &works, "allow");
    check("git stash", false, &works, "deny");
    let perhaps = Reworked { perhaps: true, ..works };
    let said = check("git pull", true, &perhaps, "ask /w/.npmrc /w/.vscode");
    assert_eq!(said.why.unwrap(), "git may change what the sandbox keeps: .npmrc, .vscode");
    check("git pull", false, &perhaps, "allow");
    let folder = Reworked { folder: Some(path("/t")), ..Reworked::default() };
    let said = check("git worktree add ../t", true, &folder, "ask /t");
    assert_eq!(said.why.unwrap(), "git would write outside of the workspace, below /t");
    // Only what is made is open whole.
    let top = Reworked { top: Some(path("/t")), places: vec![path("/t/.vscode")], ..Reworked::default() };
    let at_top = |it: &Reworked| Targets {
        beyond: Box::new(Beyond { reworked: Some(it.clone()), ..Beyond::default() }),
        ..targets("git switch x")
    };
    let said = decided(&at_top(&top), &json!({ "command": "git switch x" }), true);
    assert_eq!((opened(&said).as_str(), said.gives), ("ask /t/.vscode", vec![Granted::Folder(path("/t"))]));
    let wide = Reworked { closed: true, ..top };
    let said = decided(&at_top(&wide), &json!({ "command": "git switch x" }), true);
    assert!(said.gives.is_empty() && said.why.unwrap().contains("too wide to be opened"));
    // One yes is for both reasons.
    let said = check("git reset --hard x", true, &perhaps, "ask /w/.npmrc /w/.vscode");
    assert!(said.why.unwrap().starts_with("destructive: git reset --hard; git may change"));
    let named = rules(&rule("allow", "commandPrefix='git stash'"));
    let targets =
        Targets { beyond: Box::new(Beyond { reworked: Some(folder), ..Beyond::default() }), ..targets("git stash") };
    let said = decide(&named, &Query::new("run_shell_command", ToolKind::Execute, &json!({}), &targets));
    assert_eq!((said.decision, said.gives), (Decision::Allow, vec![Granted::Folder(path("/t"))]));
}

#[test]
fn what_git_began_is_not_run_again() {
    let check = |command: &str, denial: &Denial, printed: &str, want: bool| {
        let args = json!({ "command": command });
        let call = ToolCall { id: CallId::from("c"), name: "run_shell_command".to_owned(), args };
        assert_eq!(half_done(&call, denial, printed).is_some(), want, "{command}");
    };
    let path = || AbsPath::new("/w/.npmrc").unwrap();
    let config = Denial::Config { path: path() };
    check("git merge x", &config, "", true);
    check("bash release.sh", &config, "error: unable to unlink old '.npmrc': Device or resource busy", true);
    check("bash release.sh", &config, "touch: .npmrc: Read-only file system", false);
    check("git add . && touch .npmrc", &config, "", false);
    check("git pull", &Denial::Network, "", false);
    check("git checkout x && npm ci", &Denial::Network, "", false);
    check("git rebase x && npm ci", &Denial::Network, "", false);
    check("git cherry-pick x && npm ci", &Denial::Network, "", true);
    check("git stash pop && npm ci", &Denial::Network, "", true);
    let write = Denial::Write { folder: path() };
    check("patch -p1 < x", &config, "", true);
    check("patch --dry-run -p1 < x", &config, "", false);
    check("git clone a ../b && touch c", &config, "", false);
    check("git checkout x && npm ci", &write, "", false);
    check("git worktree add ../x", &write, "", true);
}

fn targets(command: &str) -> Targets {
    Targets { command: Some(command.to_owned()), ..Targets::default() }
}

/// In yolo.
fn decided(targets: &Targets, args: &serde_json::Value, interactive: bool) -> super::super::Verdict {
    let roots = [AbsPath::new("/w").unwrap()];
    let query = Query::new("run_shell_command", ToolKind::Execute, args, targets);
    decide(&rules(""), &Query { mode: Mode::Yolo, interactive, roots: &roots, ..query })
}

/// The decision, and what a yes opens.
fn opened(said: &super::super::Verdict) -> String {
    let opens = said.opens.iter().map(ToString::to_string);
    std::iter::once(word(said.decision).to_owned()).chain(opens).collect::<Vec<_>>().join(" ")
}

#[test]
fn who_is_not_held_is_not_asked_and_where_nobody_is_there_it_may_try() {
    let decision = |mode, interactive, git| {
        let said = verdict(&rules(""), mode, interactive, "git remote add r x", git);
        (said.decision, said.opens.len())
    };
    assert_eq!(decision(Mode::Yolo, true, None), (Decision::Allow, 0));
    assert_eq!(decision(Mode::Yolo, false, Some("/w/.git")), (Decision::Allow, 0));
    // It would rename the branch, and lose what it follows.
    let renamed = verdict(&rules(""), Mode::Yolo, false, "git branch -m a", Some("/w/.git"));
    assert_eq!(renamed.decision, Decision::Deny);
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

/// A yes is for all of it without the sandbox, where the question says so and can be read to its end.
#[test]
fn settings_of_the_user_leave_the_sandbox_only_where_that_is_said() {
    let outputs =
        || Vec::from([Output { name: "~/.gitconfig".to_owned(), real: AbsPath::new("/h/.gitconfig").unwrap() }]);
    let check = |rules: &Rules, command: &str, want: (Decision, bool)| {
        let args = json!({ "command": command });
        let targets =
            Targets { beyond: Box::new(Beyond { outputs: outputs(), ..Beyond::default() }), ..targets(command) };
        let query = Query::new("run_shell_command", ToolKind::Execute, &args, &targets);
        let said = decide(rules, &Query { mode: Mode::Yolo, ..query });
        assert_eq!((said.decision, said.leave().unconfined), want, "{command}");
        let words = said.why.unwrap_or_default().contains("a yes runs all of it without the sandbox");
        assert_eq!(words, want.1, "{command}");
        assert_eq!(said.grant, None, "{command}");
    };
    let shipped = rules("");
    let named = |command: &str| words("run_shell_command", &json!({ "command": command })).outputs;
    for it in [
        "git config --global user.name x",
        "git config --global alias.x y",
        "rm -rf x; git config --global --unset a.b",
    ] {
        check(&shipped, it, (Decision::Ask, true));
        assert_eq!(named(it), ["~/.gitconfig"], "{it}");
    }
    for it in ["git config --global --get a.b", "git config --global -l", "git status --global x y"] {
        check(&shipped, it, (Decision::Allow, false));
        assert_eq!(named(it), Vec::<String>::new(), "{it}");
    }
    // Behind another reason, and on its own.
    let (args, targets) = (json!({}), Targets::default());
    let query = Query::new("run_shell_command", ToolKind::Execute, &args, &targets);
    for (before, len, want) in [(10, 20, true), (290, 20, false), (0, 300, true), (0, 301, false)] {
        let free = |why: usize| Opinion { unconfined: true, ..Opinion::new(Decision::Ask, "x".repeat(why)) };
        let opinion = match before {
            0 => free(len),
            before => Opinion::new(Decision::Ask, "y".repeat(before)).beside(Some(free(len))),
        };
        assert_eq!(verdict_of(&query, opinion, None).unconfined, want, "{before} {len}");
    }
    let by_rule = rules(&rule("allow", "commandPrefix='git config --global'"));
    check(&by_rule, "git config --global user.name x", (Decision::Allow, false));
    check(&by_rule, "git config --global user.name x; rm -rf x", (Decision::Ask, false));
}
