//! What castor starts by itself reaches what an agent wrote only inside the sandbox: hooks and servers of the user's own.
#![cfg(target_os = "linux")]

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::Command,
    thread,
    time::Instant,
};

use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox, WATCHDOG},
    model_server::{ModelServer, calls, says},
    remote_server::{Answer, Remote, http},
};

/// Programs of the user's, by the file that each of them runs: a line for a shell in the workspace. `PROJECT` is the folder.
const KINDS: &[(&str, &str)] = &[
    ("npm run -s lint", "package.json"),
    ("make -s lint", "Makefile"),
    ("bash PROJECT/x.sh", "x.sh"),
    ("sh x.sh", "x.sh"),
    ("python3 -m pkg", "pkg/__main__.py"),
    ("python3 srv.py", "srv.py"),
    ("./srv.py", "srv.py"),
    ("node srv.js", "srv.js"),
    ("node -e 'require(\"./srv.js\")'", "srv.js"),
    ("sh -c 'cd sub && ./x'", "sub/x"),
    ("env X=1 ./sub/x", "sub/x"),
    ("linked", "sub/x"),
    ("python3 -c 'import mod'", "mod.py"),
    (". ./env.sh", "env.sh"),
    ("cat x.sh | sh", "x.sh"),
    ("git -c alias.x='!sh x.sh' x", "x.sh"),
    ("find . -maxdepth 1 -name x.sh -exec sh {} +", "x.sh"),
    ("npx --no-install tool", "node_modules/.bin/tool"),
];

/// What the agent writes: each file makes the marker of the one who runs it.
const ATTACK: &str = r#"
mkdir -p pkg sub node_modules/.bin
mark='touch "$HOME/ran-${KIND:-any}"'
printf '{"scripts": {"lint": "sh x.sh"}}' >package.json
printf 'lint:\n\t@sh x.sh\n' >Makefile
printf '#!/bin/sh\n%s\n' "$mark" | tee x.sh env.sh sub/x >node_modules/.bin/tool
printf '#!/usr/bin/env python3\nimport os\nopen(os.environ["HOME"] + "/ran-" + os.environ.get("KIND", "any"), "w")\n' | tee srv.py mod.py >pkg/__main__.py
printf 'require("fs").writeFileSync(process.env.HOME + "/ran-" + (process.env.KIND || "any"), "")\n' >srv.js
chmod +x x.sh srv.py sub/x node_modules/.bin/tool
echo written
"#;

pub fn bed(mode: &str, settings: &Value) -> Sandbox {
    let mut sandbox = Sandbox::new();
    sandbox.write("home/.castor/settings.json", &settings.to_string());
    sandbox.write("ws/.git/HEAD", "ref: refs/heads/main");
    for it in ["x.sh", "env.sh", "mod.py", "srv.py", "srv.js", "Makefile", "package.json", "pkg/__main__.py", "sub/x"] {
        sandbox.write(format!("ws/{it}"), "\n");
    }
    fs::create_dir_all(sandbox.home().join("bin")).unwrap();
    symlink(sandbox.workspace().join("sub/x"), sandbox.home().join("bin/linked")).unwrap();
    let path = std::env::var("PATH").unwrap();
    sandbox.env.push(("PATH".into(), format!("{}:{path}", sandbox.home().join("bin").display())));
    sandbox.args.extend(["--approval-mode", mode].map(Into::into));
    sandbox
}

fn line(sandbox: &Sandbox, kind: &str) -> String {
    kind.replace("PROJECT", &sandbox.workspace().display().to_string())
}

/// The markers in the home folder.
pub fn ran(sandbox: &Sandbox) -> Vec<String> {
    let all = fs::read_dir(sandbox.home()).unwrap().flatten();
    let mut all: Vec<String> = all.filter_map(|it| it.file_name().into_string().ok()).collect();
    all.retain(|it| it.starts_with("ran-"));
    all.sort();
    all
}

/// The same programs, started by somebody outside: each marks.
fn control(sandbox: &Sandbox) {
    for (n, (kind, _)) in KINDS.iter().enumerate() {
        let mut shell = Command::new("bash");
        shell.args(["-c", &line(sandbox, kind)]).current_dir(sandbox.workspace()).env_clear();
        shell.envs(sandbox.env.iter().map(|(name, it)| (name, it))).env("HOME", sandbox.home());
        let out = shell.env("KIND", n.to_string()).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(sandbox.home().join(format!("ran-{n}")).exists(), "{kind} runs nothing of the workspace: {said}");
    }
}

/// Runs a prompt to its end; what it asked, and what it showed as thoughts.
pub fn prompt(client: &mut Client, session: &str, text: &str) -> (Vec<String>, Vec<String>) {
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
    client.request_as(json!("p"), "session/prompt", params);
    let (mut asked, mut thoughts) = (Vec::new(), Vec::new());
    loop {
        let it = client.next().unwrap().expect("more was to come");
        if it["method"] == "session/request_permission" {
            asked.push(it["params"]["toolCall"]["title"].to_string());
            let options = it["params"]["options"].as_array().unwrap();
            let yes = options.iter().find(|it| it["kind"] == "allow_once").unwrap_or(&options[0]);
            let chosen = json!({"outcome": {"outcome": "selected", "optionId": yes["optionId"]}});
            client.send(&json!({"jsonrpc": "2.0", "id": it["id"], "result": chosen}));
        } else if it["id"] == "p" {
            return (asked, thoughts);
        } else if it["params"]["update"]["sessionUpdate"] == "agent_thought_chunk" {
            thoughts.push(it["params"]["update"]["content"]["text"].as_str().unwrap_or_default().to_owned());
        }
    }
}

fn attack() -> Vec<String> {
    let order = |command: &str| calls("run_shell_command", &json!({"command": command}));
    vec![order(ATTACK), order("echo again"), says("Done.")]
}

pub fn with_model(sandbox: &mut Sandbox, answers: Vec<String>) -> ModelServer {
    let model = ModelServer::start([answers, vec![says("Done."); 8]].concat());
    sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), model.url.clone()));
    sandbox.env.push(("GEMINI_API_KEY".into(), "k".into()));
    model
}

fn hooks_run_inside(mode: &str) {
    let mut sandbox = bed(mode, &json!({}));
    let hook = |(n, (kind, _)): (usize, &(&str, &str))| json!({"type": "command", "command": line(&sandbox, kind), "env": {"KIND": n.to_string()}});
    let hooks: Vec<Value> = KINDS.iter().enumerate().map(hook).collect();
    let settings = json!({"hooks": {"AfterTool": [{"matcher": "run_shell_command", "hooks": hooks}]}});
    sandbox.write("home/.castor/settings.json", &settings.to_string());
    let _model = with_model(&mut sandbox, attack());
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    prompt(&mut client, &session, "go");
    assert!(client.end().unwrap().0.success());
    assert_eq!(ran(&sandbox), [""; 0], "{mode}");
    control(&sandbox);
}

#[test]
fn hooks_of_every_kind_run_inside_in_auto() {
    hooks_run_inside("auto");
}

#[test]
fn hooks_of_every_kind_run_inside_in_yolo() {
    hooks_run_inside("yolo");
}

#[test]
fn hooks_of_every_kind_run_inside_after_an_approval() {
    hooks_run_inside("default");
}

/// The agent rewrites what servers run, in one session; they start with the next one.
fn servers_run_inside(mode: &str) {
    let mut sandbox = bed(mode, &json!({}));
    let _model = with_model(&mut sandbox, attack());
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    prompt(&mut client, &session, "go");
    assert!(client.end().unwrap().0.success());
    let server = |(n, (kind, _)): (usize, &(&str, &str))| {
        let words = kind.split(' ').map(|it| line(&sandbox, it)).collect::<Vec<_>>();
        // What needs a shell has one.
        let plain = !kind.contains(['\'', '|', '"']) && !kind.starts_with('.') || kind.starts_with("./");
        let (command, args) = match plain {
            true => (words[0].clone(), words[1..].to_vec()),
            false => ("bash".to_owned(), vec!["-c".to_owned(), line(&sandbox, kind)]),
        };
        let it = json!({"command": command, "args": args, "env": {"KIND": n.to_string()}});
        (format!("s{n}"), it)
    };
    let servers: serde_json::Map<String, Value> = KINDS.iter().enumerate().map(server).collect();
    sandbox.write("home/.castor/settings.json", &json!({"mcpServers": servers, "mcp": {"maxRestarts": 0}}).to_string());
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    let (asked, _) = prompt(&mut client, &session, "hello");
    assert_eq!(asked, [""; 0], "{mode}");
    assert!(client.end().unwrap().0.success());
    assert_eq!(ran(&sandbox), [""; 0], "{mode}");
    control(&sandbox);
}

#[test]
fn servers_of_every_kind_run_inside_in_auto() {
    servers_run_inside("auto");
}

#[test]
fn servers_of_every_kind_run_inside_in_yolo() {
    servers_run_inside("yolo");
}

/// Commands that print keys for agents of others: those that reach the workspace are held, too.
#[test]
fn commands_for_keys_of_every_kind_run_inside() {
    let mut sandbox = bed("yolo", &json!({}));
    // Who is told no looks for its key.
    let remote = Remote::start(false, |_, _| Answer::Raw(http("401 Unauthorized", "text/plain", "no")));
    let card = format!("agent_card_url: http://127.0.0.1:{}\n", remote.port);
    for (n, (kind, _)) in KINDS.iter().enumerate() {
        let key = json!(format!("!{}", line(&sandbox, kind)));
        let keys = format!("name: a{n}\ndescription: d\n{card}");
        let file = format!("---\nkind: remote\n{keys}auth: {{type: apiKey, key: {key}}}\n---\n");
        sandbox.write(format!("home/.castor/agents/a{n}.md"), &file);
    }
    let key = "auth: {type: apiKey, key: \"!pwd >$HOME/where; echo key-of-mine\"}";
    let away = format!("---\nkind: remote\nname: far\ndescription: d\n{card}{key}\n---\n");
    sandbox.write("home/.castor/agents/far.md", &away);
    let names = (0..KINDS.len()).map(|n| format!("a{n}")).chain(["far".to_owned()]);
    let asked = names.map(|it| calls("invoke_agent", &json!({"agent_name": it, "prompt": "go"})));
    let answers = attack().into_iter().take(1).chain(asked).chain([says("Done.")]).collect();
    let _model = with_model(&mut sandbox, answers);
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    prompt(&mut client, &session, "go");
    assert!(client.end().unwrap().0.success());
    assert_eq!(ran(&sandbox), [""; 0]);
    // One that reaches nothing of it works as ever, and away from it.
    let place = fs::read_to_string(sandbox.home().join("where")).unwrap();
    assert_eq!(place.trim(), sandbox.home().join(".castor/away").display().to_string());
    control(&sandbox);
}

/// A server in Python with one tool.
const SERVER: &str = r#"
import json, os, socket, sys
# BEGIN
for line in sys.stdin:
    it = json.loads(line)
    if "id" not in it:
        continue
    said = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    if it["method"] == "tools/list":
        said = {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}
    if it["method"] == "tools/call":
        said = {"content": [{"type": "text", "text": "here"}]}
        # CALL
    print(json.dumps({"jsonrpc": "2.0", "id": it["id"], "result": said}), flush=True)
"#;

/// That server, with what it does first, and what it does in a call beyond answering `said`.
pub fn python_server(begin: &str, call: &str) -> String {
    let call: Vec<String> = call.lines().map(|it| format!("        {it}")).collect();
    SERVER.replace("# BEGIN", begin).replace("        # CALL", &call.join("\n"))
}

/// It says where it works, and writes beside itself.
const SAYS_WHERE: &str = "open(os.path.dirname(os.path.abspath(__file__)) + '/log', 'a').write(os.getcwd() + '\\n')";

fn waited(what: &Path) -> String {
    let start = Instant::now();
    loop {
        match fs::read_to_string(what) {
            Ok(it) if !it.is_empty() => return it,
            _ if start.elapsed() > WATCHDOG => panic!("{} was not written", what.display()),
            _ => thread::yield_now(),
        }
    }
}

#[test]
fn a_server_that_names_nothing_of_the_workspace_works_as_ever_and_away_from_it() {
    let mut sandbox = bed("auto", &json!({}));
    let server = sandbox.write("home/servers/s.py", &python_server(SAYS_WHERE, ""));
    let settings = json!({"mcpServers": {"s": {"command": "python3", "args": [server]}}});
    sandbox.write("home/.castor/settings.json", &settings.to_string());
    sandbox.env.push(("PYTHONPATH".into(), sandbox.workspace().display().to_string()));
    sandbox.write("ws/json.py", "import os; open(os.environ['HOME'] + '/ran-json', 'w')");
    let call = calls("mcp_s_t", &json!({}));
    let _model = with_model(&mut sandbox, vec![call, says("Done.")]);
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    prompt(&mut client, &session, "go");
    assert!(client.end().unwrap().0.success());
    let log = waited(&sandbox.home().join("servers/log"));
    assert_eq!(log.lines().next(), Some(sandbox.home().join(".castor/away").display().to_string().as_str()));
    assert_eq!(ran(&sandbox), [""; 0]);
}

/// Of a day's hooks and servers one asks, once, for what it lacks.
#[test]
fn nothing_nags() {
    let mut sandbox = bed("auto", &json!({}));
    let server = sandbox.write("home/servers/s.py", &python_server(SAYS_WHERE, ""));
    let it = json!({"command": "python3", "args": [server]});
    let hook = |command: &str| json!({"type": "command", "command": command});
    let hooks = [hook("sed -i 's/ *$//' x.sh"), hook("echo x >>$HOME/logs/all"), hook("true")];
    let settings = json!({
        "hooks": {"AfterTool": [{"hooks": hooks}]},
        "mcpServers": {"a": it, "b": it, "c": {"command": "python3", "args": ["no-such.py"]}, "d": it},
    });
    fs::create_dir(sandbox.home().join("logs")).unwrap();
    sandbox.write("home/.castor/settings.json", &settings.to_string());
    let order = |n: usize| calls("run_shell_command", &json!({"command": format!("echo {n} >>x.sh")}));
    let _model = with_model(&mut sandbox, (0..12).map(order).chain([says("Done.")]).collect());
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    let (asked, thoughts) = prompt(&mut client, &session, "go");
    assert!(client.end().unwrap().0.success());
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert!(asked[0].contains("write below") && asked[0].contains("logs"), "{asked:?}");
    assert!(!thoughts.iter().any(|it| it.contains("in your settings")), "{thoughts:?}");
    let written = fs::read_to_string(sandbox.home().join("logs/all")).unwrap();
    assert_eq!(written.lines().count(), 11, "each run after the answer");
    // Executable bits are as they were: nothing of this is a matter of rights.
    assert_eq!(fs::metadata(sandbox.workspace().join("x.sh")).unwrap().permissions().mode() & 0o111, 0);
}
