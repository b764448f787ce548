//! Lines that would be kept from the network half-way: asked about before.

use super::*;
use crate::{
    base::{
        ids::CallId,
        sandbox::Granted,
        tool::{Beyond, Reach, ToolCall, Which},
    },
    engine::policy::{done_before, words},
};

/// What the world looks at before such a line runs.
fn far(command: &str) -> String {
    let all = words("run_shell_command", &json!({ "command": command })).far;
    let shown = all.iter().map(|it| match &it.remote {
        None => it.words.clone(),
        Some(remote) => {
            let which = match &remote.which {
                Which::Named(it) => it.as_str(),
                Which::Any => "any",
                Which::Upstream => "upstream",
                Which::Modules => "modules",
            };
            format!("{} ({which} in {:?})", it.words, remote.dir)
        }
    });
    shown.collect::<Vec<_>>().join(", ")
}

#[test]
fn what_surely_needs_the_network_behind_what_changes_something_is_found() {
    for (command, want) in [
        ("git commit -m x && git push", "git push (upstream in \"\")"),
        ("git commit -m x; cd sub", ""),
        ("git switch -c f && git push -u origin f", "git push (origin in \"\")"),
        ("git checkout -b f || git push --tags -o ci.skip up HEAD:f", "git push (up in \"\")"),
        ("cd sub && make && git -C deep fetch", "git fetch (any in \"sub/deep\")"),
        ("cd sub; make && git fetch", ""),
        ("make && git push https://h.example/x main", "git push"),
        ("make && git push git@h.example:x main", "git push"),
        ("make && git push http://localhost:1/x main", ""),
        ("make && git push ../up main", ""),
        ("make && git push file:///up main", ""),
        ("make && git push \"$R\" main", ""),
        ("make && git -c remote.origin.url=../x push origin", ""),
        ("make && git --git-dir x push", ""),
        ("make && git push --dry-run", ""),
        ("git init && git remote add up git@h.example:x && git push -u up main", "git push"),
        ("git init && git remote add -t main up ../x && git push -u up main", ""),
        ("make && git clone --depth 1 https://h.example/x y", "git clone"),
        ("make && git clone ../x y", ""),
        ("make && git remote update; git remote -v", "git remote update (any in \"\")"),
        ("make && git submodule update --init", "git submodule update (modules in \"\")"),
        ("make && git submodule update", ""),
        ("npm version patch && npm publish", "npm publish"),
        ("npm version patch && npm publish --dry-run", ""),
        ("make && docker push x && yarn npm publish", "yarn npm publish"),
        ("make && npm install", ""),
        ("make && npm i -D left-pad", "npm i"),
        ("make && npm i ./x ../y.tgz file:z", ""),
        ("make && npm i --registry http://localhost:4873 x", ""),
        ("make && pnpm add x && yarn add y", "pnpm add, yarn add"),
        ("make && cargo install --path .", ""),
        ("make && cargo install ripgrep", "cargo install"),
        ("make && cargo install --git https://h.example/x", "cargo install"),
        ("make && pip install -r r.txt -e .", ""),
        ("make && v/bin/pip install -q x", "pip install"),
        ("make && python3 -m pip install x", "pip install"),
        ("make && gh pr create --fill && gh auth status; gh --version", "gh pr"),
        ("make && curl -sL \"https://h.example/$x\" | tar xz", "curl"),
        ("make && curl http://127.0.0.1:80 -H 'Referer: https://h.example'", ""),
        ("make && curl -s $URL; wget --help", ""),
        ("make && ssh -i k u@h.example ls", "ssh"),
        ("make && ssh -V; ssh localhost ls", ""),
        ("make && scp x h.example:y; rsync -a . h.example:z; rsync -a a b", "scp, rsync"),
    ] {
        assert_eq!(far(command), want, "{command}");
    }
}

#[test]
fn what_may_be_done_twice_changes_nothing() {
    for command in [
        "git push",
        "git add -A && git push",
        "git status; ls -la && git push",
        "cd sub && git --no-pager log -1 && echo \"$x\" && git push",
        "cd sub && mkdir -p x && export A=b && touch y && git push",
        "git fetch && git pull && git push",
        ". .venv/bin/activate && cargo test && git push",
        "curl https://h.example; npm i x; git push",
        "timeout 9 git push",
        "timeout 9 git push; git commit -m x",
        "set -e; git pull; git commit -m x",
    ] {
        assert_eq!(far(command), "", "{command}");
    }
    for command in [
        "bash -c 'git commit -m x && git push'",
        "git commit -m x 2>&1 | tail -1; git push 2>&1 | tail -1",
        "git commit -m x && timeout 60 git push",
        "git commit -m x && X=1 git push",
        "if git commit -m x; then git push; fi",
        "mkdir x && git push",
        "echo x >> log && git push",
        ". setup.sh && git push",
        "$CMD && git push",
        "cat x | python3 x.py; git push",
        "xargs rm < x; git push",
        "env A=b make && git push",
        "bash -c 'git commit -m x' && git push",
    ] {
        assert_eq!(far(command), "git push (upstream in \"\")", "{command}");
    }
    assert_eq!(far(&format!("{}git push", "make; ".repeat(300))), "");
}

fn decided(mode: Mode, interactive: bool, command: &str, far: Option<&str>) -> Verdict {
    let args = json!({ "command": command });
    let (command, far) = (Some(command.to_owned()), far.map(|it| Reach { words: it.to_owned(), cache: None }));
    let targets = Targets { command, beyond: Box::new(Beyond { far, ..Beyond::default() }), ..Targets::default() };
    let query = Query::new("run_shell_command", ToolKind::Execute, &args, &targets);
    decide(&rules(""), &Query { mode, interactive, ..query })
}

/// One question is for all that would be asked about, before and after.
#[test]
fn it_is_asked_about_once_and_a_yes_is_for_the_network() {
    let line = "git commit -m x && git push";
    let why = "`git push` needs the network: asked before anything runs, so that nothing is done twice, and a yes is for \
               that, too";
    let said = decided(Mode::Yolo, true, line, Some("git push"));
    assert_eq!((said.decision, said.why.as_deref(), &said.grant), (Decision::Ask, Some(why), &Some(Grant::Network)));
    assert!(said.leave().network);
    let said = decided(Mode::Default, true, line, Some("git push"));
    let prefixes = ["git commit", "git push"].map(str::to_owned).to_vec();
    assert_eq!((said.why.as_deref(), said.leave().network), (Some(why), true));
    assert_eq!(said.grant, Some(Grant::Commands { prefixes }));
    let said = decided(Mode::Yolo, true, "rm -r x; git push", Some("git push"));
    let both = format!("destructive: rm -r; {why}");
    assert_eq!((said.why, said.network, said.grant), (Some(both), true, None));
    // Package managers stop without their caches, too.
    let cache = AbsPath::new("/h/.npm");
    let (words, command) = ("npm publish".to_owned(), Some("npm version patch && npm publish".to_owned()));
    let beyond = Box::new(Beyond { far: Some(Reach { words, cache: cache.clone() }), ..Beyond::default() });
    let (args, targets) = (json!({}), Targets { command, beyond, ..Targets::default() });
    let query = Query::new("run_shell_command", ToolKind::Execute, &args, &targets);
    let said = decide(&rules(""), &Query { mode: Mode::Yolo, ..query });
    assert_eq!(said.leave().write, cache.into_iter().map(Granted::Folder).collect::<Vec<_>>());
    assert!(said.why.unwrap().contains("needs the network, and to write below /h/.npm: asked before"));
    // Where nobody can be asked it may try, and what is denied is denied.
    let said = decided(Mode::Yolo, false, line, Some("git push"));
    assert_eq!((said.decision, said.network), (Decision::Allow, false));
    let said = decided(Mode::Default, false, line, Some("git push"));
    assert_eq!((said.decision, said.network), (Decision::Deny, false));
    let said = decided(Mode::Yolo, true, line, None);
    assert_eq!((said.decision, said.network), (Decision::Allow, false));
}

#[test]
fn what_a_second_run_does_twice_is_known() {
    let call = |command: &str| ToolCall {
        id: CallId::from("c"),
        name: "run_shell_command".to_owned(),
        args: json!({ "command": command }),
    };
    for yes in ["git commit -m x && make", "sh a.sh; sh b.sh", "npm version patch && git push", "echo x > a; make"] {
        assert!(done_before(&call(yes)), "{yes}");
    }
    for no in ["make", "git commit -m x; git status", "mkdir -p x && cargo test && make", "timeout 9 make", "("] {
        assert!(!done_before(&call(no)), "{no}");
    }
}
