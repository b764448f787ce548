//! A day's work in `auto`: two hundred lines beside the user's own hooks and servers, and how many questions they cost.
#![cfg(target_os = "linux")]

mod first_commands;

use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt};

use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox},
    model_server::{ModelServer, calls, says},
    outside::python_server,
    repositories::commit_all,
};

/// Each of them is said five times, with another number.
const LINES: &[&str] = &[
    "ls -la",
    "git status --short",
    "cat src/app.js",
    "grep -rn run src | head -3",
    "sed -i 's/v1/w1/' src/app.js",
    "echo 'let v@ = @' >>src/app.js",
    "mkdir -p out/d@ && cp src/app.js out/d@/",
    "mv out/d@/app.js out/d@/b.js",
    "rm -rf out/d@",
    "find . -name '*.js' -not -path './node_modules/*'",
    "wc -l src/*.js",
    "python3 -c 'print(@)'",
    "git diff --stat",
    "git add -A && git commit -qm 'step @'",
    "git log --oneline -3",
    "git checkout -q -b b@",
    "git checkout -q main",
    "git branch -D b@",
    "git stash -q; git stash pop -q || true",
    "make -s lint",
    "tar czf out.tgz src && rm out.tgz",
    "test -f package.json && echo yes",
    "for f in src/*.js; do head -1 $f; done",
    "diff src/app.js src/b.js || true",
    "printf '%s\\n' @ >notes.txt",
    "touch src/t@.js",
    "awk '{print $1}' src/app.js | sort | uniq -c | head",
    "./run-tests.sh",
    "env | sort | head -3",
    "date",
    "xargs -n1 echo <notes.txt",
    "du -sh src",
    "git reset -q --hard HEAD",
    "git clean -fdq out",
    "git tag -f t@",
    "ln -sf app.js src/l@.js",
    "X=@; echo $X",
    "cd src && ls && cd ..",
    "git show --stat HEAD | head -5",
    "rm -f src/t@.js",
];
const TIMES: usize = 5;
/// Lines of one prompt.
const PART: usize = 20;
const SERVERS: &[&str] = &["npx", "uvx", "python", "docker"];

/// Every launcher here starts the same server, or the tool of that name that lies in the project.
const LAUNCHER: &str = r#"#!/bin/sh
case "$*" in
*prettier*) sed -i 's/ *$//' src/app.js ;;
*eslint*) grep -c let src/app.js ;;
*) exec python3 "$HOME/servers/s.py" ;;
esac
"#;

fn bed() -> Sandbox {
    let mut sandbox = Sandbox::new();
    sandbox.write("home/servers/s.py", &python_server("", ""));
    for name in ["npx", "uvx", "docker"] {
        let it = sandbox.write(format!("home/bin/{name}"), LAUNCHER);
        fs::set_permissions(it, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let hook = |command: &str| json!({"type": "command", "command": command});
    let hooks = ["npx prettier --write src/app.js", "npx eslint src", "./run-tests.sh"].map(hook);
    let server = sandbox.home().join("servers/s.py");
    let settings = json!({
        "hooks": {"AfterTool": [{"matcher": "run_shell_command", "hooks": hooks}]},
        "mcpServers": {
            "npx": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"]},
            "uvx": {"command": "uvx", "args": ["mcp-server-time"]},
            "python": {"command": "python3", "args": [server]},
            "docker": {"command": "docker", "args": ["run", "-i", "--rm", "mcp/time"]},
        },
    });
    sandbox.write("home/.castor/settings.json", &settings.to_string());
    sandbox.write("ws/src/app.js", "let run = 1\n");
    sandbox.write("ws/src/b.js", "let run = 2\n");
    sandbox.write("ws/package.json", "{}\n");
    sandbox.write("ws/Makefile", "lint:\n\t@grep -c let src/app.js\n");
    let tests = sandbox.write("ws/run-tests.sh", "#!/bin/sh\ntest -f src/app.js\n");
    fs::set_permissions(tests, fs::Permissions::from_mode(0o755)).unwrap();
    commit_all(&sandbox.workspace());
    let path = std::env::var("PATH").unwrap();
    sandbox.env.push(("PATH".into(), format!("{}:{path}", sandbox.home().join("bin").display())));
    sandbox.args.extend(["--approval-mode", "auto"].map(Into::into));
    sandbox
}

/// The model's answers: the lines, and at the end of each prompt a call of each server.
fn answers() -> Vec<String> {
    let mut res = Vec::new();
    for n in 0..TIMES {
        for (at, line) in LINES.iter().enumerate() {
            res.push(calls("run_shell_command", &json!({"command": line.replace('@', &n.to_string())})));
            if at % PART == PART - 1 {
                res.extend(SERVERS.iter().map(|it| calls(&format!("mcp_{it}_t"), &json!({}))));
                res.push(says("Done."));
            }
        }
    }
    res
}

/// The user says yes for as long as that is on offer: what is asked, by its title, and how many calls failed.
fn work(client: &mut Client, session: &str) -> (BTreeMap<String, usize>, usize) {
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]});
    client.request_as(json!("p"), "session/prompt", params);
    let (mut asked, mut n_failed) = (BTreeMap::new(), 0);
    loop {
        let it = client.next().unwrap().expect("more was to come");
        let update = &it["params"]["update"];
        if it["method"] == "session/request_permission" {
            *asked.entry(it["params"]["toolCall"]["title"].to_string()).or_default() += 1;
            let options = it["params"]["options"].as_array().unwrap();
            let kind = |kind: &str| options.iter().find(|it| it["kind"] == kind);
            let yes = kind("allow_always").or_else(|| kind("allow_once")).unwrap();
            let chosen: Value = json!({"outcome": {"outcome": "selected", "optionId": yes["optionId"]}});
            client.send(&json!({"jsonrpc": "2.0", "id": it["id"], "result": chosen}));
        } else if it["id"] == "p" {
            return (asked, n_failed);
        } else if update["sessionUpdate"] == "tool_call_update" && update["status"] == "failed" {
            n_failed += 1;
        }
    }
}

#[test]
fn a_day_of_two_hundred_lines_asks_once_for_a_line_of_the_settings_at_most() {
    let mut sandbox = bed();
    let model = ModelServer::start(answers());
    sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), model.url.clone()));
    sandbox.env.push(("GEMINI_API_KEY".into(), "k".into()));
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    let (mut asked, mut n_failed) = (BTreeMap::<String, usize>::new(), 0);
    for _ in 0..LINES.len() * TIMES / PART {
        let (more, n) = work(&mut client, &session);
        more.into_iter().for_each(|(title, n)| *asked.entry(title).or_default() += n);
        n_failed += n;
    }
    assert!(model.asked().len() >= LINES.len() * TIMES, "{} requests", model.asked().len());
    println!("{} lines: asked {asked:?}, failed {n_failed}", LINES.len() * TIMES);
    assert!(client.end().unwrap().0.success());
    assert!(asked.values().all(|it| *it == 1) && asked.len() <= SERVERS.len() + 3, "{asked:?}");
    assert!(!asked.keys().any(|it| it.contains("echo") || it.contains("git")), "{asked:?}");
    assert_eq!(n_failed, 0);
}
