//! Extensions through the wire: one is installed from git, counts in a session with all that it brings, and counts for
//! nothing once its files have changed.

use std::{
    io::Write,
    net::TcpListener,
    process::{Command, Stdio},
    thread,
};

use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox},
    mcp_server,
    model_server::{self, ModelServer, calls, says},
};

/// Runs a program in the workspace: its exit code, and what it printed.
fn run(sandbox: &Sandbox, program: &str, args: &[&str]) -> (i32, String) {
    let mut command = Command::new(program);
    command.args(args).current_dir(sandbox.workspace()).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("HOME", sandbox.home()).env("CASTOR_HOME", sandbox.home().join(".castor"));
    command.env("CASTOR_TRUST_WORKSPACE", "true");
    let out = command.output().unwrap();
    let text = [out.stdout, out.stderr].map(|it| String::from_utf8(it).unwrap()).concat();
    (out.status.code().unwrap(), text)
}

/// A command of castor's in the workspace: its exit code, and what it printed.
pub fn castor(sandbox: &Sandbox, args: &[&str]) -> (i32, String) {
    run(sandbox, env!("CARGO_BIN_EXE_castor"), args)
}

/// An extension that brings one of everything, in a repository with a hook, a submodule's name and a filter.
fn write_repository(sandbox: &Sandbox) -> String {
    let program = std::env::current_exe().unwrap();
    let manifest = json!({
        "name": "demo", "version": "1.0",
        "mcpServers": {"sums": {"command": program, "args": mcp_server::ARGS, "env": {"MCP_SERVER": "${MCP_KIND}"}}},
        "settings": [{"name": "Kind", "description": "Which server", "envVar": "MCP_KIND"}],
    });
    sandbox.write("repo/gemini-extension.json", &manifest.to_string());
    sandbox.write("repo/GEMINI.md", "Say please.");
    sandbox.write("repo/commands/greet.toml", "prompt = 'Greet {{args}}.'\ndescription = 'Greets'");
    sandbox.write("repo/skills/tidy/SKILL.md", "---\nname: tidy\ndescription: Tidies up\n---\nSweep.");
    sandbox.write("repo/agents/helper.md", "---\nname: helper\ndescription: Helps\n---\nHelp.");
    sandbox.write("repo/policies/p.toml", "[[rule]]\ntoolName = 'glob'\ndecision = 'deny'\npriority = 1\n");
    sandbox.write("repo/note.sh", "cat > /dev/null\necho here >> \"$workspacePath/hooked\"\n");
    let hook = json!({"type": "command", "command": "sh \"${extensionPath}${/}note.sh\""});
    let hooks = json!({"hooks": {"BeforeAgent": [{"hooks": [hook]}]}});
    sandbox.write("repo/hooks/hooks.json", &hooks.to_string());
    sandbox.write("repo/.gitattributes", "*.md filter=evil\n");
    commit_repository(sandbox)
}

/// Makes a repository of the folder `repo` beside the workspace. Returns its commit.
pub fn commit_repository(sandbox: &Sandbox) -> String {
    let repo = sandbox.workspace().parent().unwrap().join("repo").display().to_string();
    let git = |args: &[&str]| {
        let identity = ["-C", &repo, "-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"];
        let (code, text) = run(sandbox, "git", &[&identity[..], args].concat());
        assert_eq!(code, 0, "{text}");
        text.trim().to_owned()
    };
    git(&["init", "--quiet"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "-m", "one"]);
    git(&["rev-parse", "HEAD"])
}

/// The model gets nothing of a client but a session in the workspace.
pub fn start(sandbox: &Sandbox) -> (Client, String) {
    let mut client = Client::start(sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    (client, session)
}

/// Types a prompt: what castor says, and all updates as text.
pub fn typed(client: &mut Client, session: &str, text: &str) -> (String, String) {
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
    let (_, messages) = client.call("session/prompt", params).unwrap();
    let updates = || messages.iter().map(|it| &it["params"]["update"]);
    let is_chunk = |it: &&Value| it["sessionUpdate"] == "agent_message_chunk";
    let said = updates().filter(is_chunk).filter_map(|it| it["content"]["text"].as_str()).collect();
    (said, updates().map(Value::to_string).collect())
}

#[test]
fn an_extension_from_git_counts_until_it_changes() {
    let mut sandbox = Sandbox::new();
    let commit = write_repository(&sandbox);
    // The user's own configuration must not reach git.
    let evil = "[filter \"evil\"]\n\tsmudge = echo evil\n[core]\n\thooksPath = /nonexistent\n";
    sandbox.write("home/.gitconfig", evil);
    let url = format!("file://{}", sandbox.workspace().parent().unwrap().join("repo").display());
    let (code, text) = castor(&sandbox, &["extensions", "install", &url]);
    assert!(
        code == 1 && text.contains("nobody can be asked here") && text.contains("command: /greet Greets"),
        "{text}"
    );
    for wrong in ["--ref=-x", "--ref=no-such-branch"] {
        let (code, text) = castor(&sandbox, &["extensions", "install", &url, wrong, "--consent"]);
        assert_eq!(code, 1, "{text}");
    }
    let (code, text) = castor(&sandbox, &["extensions", "install", &url, "--ref", &commit, "--consent"]);
    assert!(code == 0 && text.contains(&format!("{url} at {commit}\n")), "{text}");
    let installed = sandbox.home().join(".castor/extensions/demo");
    assert!(!installed.join(".git").exists());
    assert_eq!(std::fs::read_to_string(installed.join("GEMINI.md")).unwrap(), "Say please.", "no filter ran");
    let values = sandbox.home().join(".castor/extensions/demo.values.json");
    std::fs::write(&values, r#"{"MCP_KIND": "x"}"#).unwrap();
    std::fs::set_permissions(&values, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();

    let echo = calls("mcp_sums_echo", &json!({"text": "a"}));
    let model = ModelServer::start(vec![
        calls("glob", &json!({"pattern": "*"})),
        echo,
        says("Done."),
        says("Hi."),
        says("Hello."),
    ]);
    sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), model.url.clone()));
    sandbox.env.push(("GEMINI_API_KEY".into(), "k".into()));
    sandbox.write("home/.castor/settings.json", r#"{"mcpServers": {"sums": {"trust": true}}}"#);
    let (mut client, session) = start(&sandbox);
    let (said, _) = typed(&mut client, &session, "/extensions");
    assert!(said.starts_with("- `demo` 1.0 (on): 1 MCP server, 1 hook file, 1 command, 1 skill, 1 agent, "), "{said}");
    let (said, updates) = typed(&mut client, &session, "/greet the world");
    assert!(said.ends_with("Done.") && updates.contains("echo: a"), "{updates}");
    let asked: Vec<String> = model.asked().into_iter().map(|it| it.body).collect();
    for part in ["Say please.", "Greet the world.", "Tidies up", "helper", "mcp_sums_echo"] {
        assert!(asked[0].contains(part), "{part}: {}", asked[0]);
    }
    let last: Value = serde_json::from_str(&asked[1]).unwrap();
    let denied = last["contents"].as_array().unwrap().last().unwrap().to_string();
    assert!(denied.contains("Tool execution denied by policy."), "{denied}");
    let hooked = std::fs::read_to_string(sandbox.workspace().join("hooked")).unwrap();
    assert_eq!(hooked, "here\n");
    drop(client);

    std::fs::write(installed.join("note.sh"), "echo evil").unwrap();
    let (mut client, session) = start(&sandbox);
    let (_, updates) = typed(&mut client, &session, "hello");
    let said_so = "The extension demo is not used: changed since your yes: note.sh";
    assert!(updates.contains(said_so), "{updates}");
    let asked = model.asked().last().unwrap().body.clone();
    for part in ["Say please.", "mcp_sums_echo", "Tidies up"] {
        assert!(!asked.contains(part), "{part}: {asked}");
    }
    assert!(typed(&mut client, &session, "/greet x").0.starts_with("There is no command `/greet`."));
    assert_eq!(std::fs::read_to_string(sandbox.workspace().join("hooked")).unwrap(), "here\n");
    let (code, text) = castor(&sandbox, &["extensions", "update", "demo", "--consent"]);
    assert_eq!(code, 0, "{text}");
    let (said, _) = typed(&mut client, &session, "/extensions reload");
    assert!(said.contains("there is 1 extension"), "{said}");
    assert!(!typed(&mut client, &session, "/greet x").0.starts_with("There is no command"));
}

/// Commands come and go with the extension while a session runs; `--extensions` leaves others out.
#[test]
fn sessions_follow_the_users_switches() {
    let mut sandbox = Sandbox::new();
    let script = sandbox.write("script.jsonl", "");
    sandbox.args.extend(["--fake-responses".into(), script.into()]);
    for name in ["one", "two"] {
        let manifest = json!({"name": name, "version": "1"}).to_string();
        sandbox.write(format!("{name}/gemini-extension.json"), &manifest);
        sandbox.write(format!("{name}/commands/{name}.toml"), "prompt = 'x'\ndescription = 'X'");
        sandbox.write(format!("{name}/commands/help.toml"), "prompt = 'shadow'\ndescription = 'Shadow'");
        let (code, text) = castor(&sandbox, &["extensions", "link", &format!("../{name}"), "--consent"]);
        assert_eq!(code, 0, "{text}");
    }
    let (mut client, session) = start(&sandbox);
    let all = "- `/one` (extension): X\n- `/one.help` (extension): Shadow\n- `/two` (extension): X\n\
               - `/two.help` (extension): Shadow\n";
    let said = |client: &mut Client, session: &str| typed(client, session, "/commands");
    assert!(said(&mut client, &session).0.starts_with(all), "no name of castor's is taken");
    assert!(typed(&mut client, &session, "/help").0.contains("- `/help`: What can be typed here"));
    assert_eq!(castor(&sandbox, &["extensions", "disable", "two"]).0, 0);
    let (text, updates) = said(&mut client, &session);
    assert!(!text.contains("/two`") && updates.contains("available_commands_update"), "{text} {updates}");
    assert_eq!(castor(&sandbox, &["extensions", "enable", "two"]).0, 0);
    drop(client);
    sandbox.args.push("--extensions=two".into());
    let (mut client, session) = start(&sandbox);
    let (text, _) = said(&mut client, &session);
    assert!(!text.contains("/one`") && text.contains("/two`"), "{text}");
    assert!(typed(&mut client, &session, "/extensions").0.contains("`one` 1 (off: not among those of --extensions)"));
}

/// castor's own folder is hidden from commands, but for what the user agreed to: a skill's script runs, and cannot change.
#[test]
#[cfg(target_os = "linux")]
fn scripts_of_an_installed_extension_run_in_the_sandbox() {
    let mut sandbox = Sandbox::new();
    sandbox.write("repo/gemini-extension.json", r#"{"name": "demo", "version": "1"}"#);
    sandbox.write("repo/skills/tidy/SKILL.md", "---\nname: tidy\ndescription: Tidies up\n---\nRun tidy.sh.");
    sandbox.write("repo/skills/tidy/tidy.sh", "echo swept by the script");
    let (code, text) = castor(&sandbox, &["extensions", "install", "../repo", "--consent"]);
    assert_eq!(code, 0, "{text}");
    let home = sandbox.home().join(".castor");
    sandbox.write("home/.castor/credentials.json", "CANARY");
    let script = home.join("extensions/demo/skills/tidy/tidy.sh");
    let run = format!(
        "sh {0}; echo more >> {0} || echo not written; cat {1}/credentials.json || echo not read; ls {1}/extensions",
        script.display(),
        home.display()
    );
    let shell = calls("run_shell_command", &json!({"command": run}));
    let model = ModelServer::start(vec![shell, says("Done.")]);
    sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), model.url.clone()));
    sandbox.env.push(("GEMINI_API_KEY".into(), "k".into()));
    sandbox.args.extend(["--approval-mode", "yolo"].map(Into::into));
    let (mut client, session) = start(&sandbox);
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]});
    client.request_as(json!("go"), "session/prompt", params);
    // The paths are castor's own: the user is asked, and the sandbox holds after the yes.
    loop {
        let message = client.next().unwrap().unwrap();
        if message["method"] == "session/request_permission" {
            let options = message["params"]["options"].as_array().unwrap();
            let once = options.iter().find(|it| it["kind"] == "allow_once").unwrap();
            let outcome = json!({"outcome": {"outcome": "selected", "optionId": once["optionId"]}});
            client.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": outcome}));
        }
        if message["id"] == "go" {
            break;
        }
    }
    let last = model.asked().last().unwrap().body.clone();
    for part in ["swept by the script", "not written", "not read"] {
        assert!(last.contains(part), "{part}: {last}");
    }
    assert!(!last.contains("CANARY") && !last.contains("demo.json"), "{last}");
    assert_eq!(std::fs::read_to_string(script).unwrap(), "echo swept by the script");
}

/// Servers, hooks, rules and context as well: not before the user said yes to what they are now, and then without a new
/// session.
#[test]
fn all_that_it_brings_is_read_anew_after_the_users_yes() {
    let mut sandbox = Sandbox::new();
    let manifest = |servers: &Value| json!({"name": "demo", "version": "1", "mcpServers": servers}).to_string();
    sandbox.write("demo/gemini-extension.json", &manifest(&json!({})));
    sandbox.write("demo/GEMINI.md", "Say please.");
    let (code, text) = castor(&sandbox, &["extensions", "link", "../demo", "--consent"]);
    assert_eq!(code, 0, "{text}");
    let glob = calls("glob", &json!({"pattern": "*"}));
    let model = ModelServer::start(vec![says("1"), says("2"), glob, says("3")]);
    sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), model.url.clone()));
    sandbox.env.push(("GEMINI_API_KEY".into(), "k".into()));
    let (mut client, session) = start(&sandbox);
    typed(&mut client, &session, "one");

    let program = std::env::current_exe().unwrap();
    let server = json!({"command": program, "args": mcp_server::ARGS, "env": {"MCP_SERVER": "x"}});
    sandbox.write("demo/gemini-extension.json", &manifest(&json!({"sums": server})));
    sandbox.write("demo/GEMINI.md", "Say thanks.");
    sandbox.write("demo/policies/p.toml", "[[rule]]\ntoolName = 'glob'\ndecision = 'deny'\npriority = 1\n");
    let hook = json!({"type": "command", "command": "cat > /dev/null; echo here >> \"$GEMINI_PROJECT_DIR/hooked\""});
    let hooks = json!({"hooks": {"BeforeAgent": [{"hooks": [hook]}]}});
    sandbox.write("demo/hooks/hooks.json", &hooks.to_string());
    let (_, updates) = typed(&mut client, &session, "two");
    assert!(updates.contains("The extension demo is not used: changed since your yes"), "{updates}");
    assert!(!sandbox.workspace().join("hooked").exists());

    let (code, text) = castor(&sandbox, &["extensions", "update", "demo", "--consent"]);
    assert_eq!(code, 0, "{text}");
    let (said, updates) = typed(&mut client, &session, "three");
    assert!(said.ends_with('3'), "{updates}");
    let asked: Vec<String> = model.asked().into_iter().map(|it| it.body).collect();
    let has = |at: usize, part: &str| asked[at].contains(part);
    assert!(has(0, "Say please.") && !has(0, "mcp_sums_echo"), "{}", asked[0]);
    assert!(!has(1, "Say please.") && !has(1, "Say thanks.") && !has(1, "mcp_sums_echo"), "{}", asked[1]);
    assert!(has(2, "Say thanks.") && has(2, "mcp_sums_echo"), "{}", asked[2]);
    assert!(has(3, "Tool execution denied by policy."), "{}", asked[3]);
    assert_eq!(std::fs::read_to_string(sandbox.workspace().join("hooked")).unwrap(), "here\n");
}

/// Answers requests over HTTP, and counts them.
fn serve(answer: impl Fn(&str, &str) -> Vec<u8> + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut socket in listener.incoming().map_while(Result::ok) {
            let asked = model_server::read(socket.try_clone().unwrap());
            let place = asked.head.split(' ').nth(1).unwrap_or_default();
            let _ = socket.write_all(&answer(place, &asked.body));
        }
    });
    port
}

fn moved(to: &str) -> Vec<u8> {
    let head = "HTTP/1.1 301 Moved Permanently\r\nContent-Length: 0\r\nConnection: close\r\n";
    format!("{head}Location: {to}\r\n\r\n").into_bytes()
}

/// The address of a repository sends git to another one, of this machine's network perhaps: nothing goes there.
#[test]
fn a_repository_that_redirects_is_not_followed() {
    let sandbox = Sandbox::new();
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let place = elsewhere.local_addr().unwrap().to_string();
    for place in [place.as_str(), "169.254.169.254", "[::1]:1", "me:canary@192.168.0.1"] {
        let to = format!("http://{place}/x.git/info/refs");
        let port = serve(move |_, _| moved(&to));
        let (code, text) =
            castor(&sandbox, &["extensions", "install", &format!("http://127.0.0.1:{port}/x.git"), "--consent"]);
        let said = format!("the repository moved to http://{}/x.git", place.trim_start_matches("me:canary@"));
        assert!(code == 1 && text.contains(&said) && !text.contains("canary"), "{text}");
    }
    assert!(elsewhere.accept().is_err(), "git followed");
}

/// As renamed repositories of the usual hosts are.
#[test]
fn a_repository_that_moved_on_its_site_is_found() {
    let sandbox = Sandbox::new();
    write_repository(&sandbox);
    let repository = sandbox.workspace().parent().unwrap().join("repo");
    let upload = move |more: &[&str], body: &str| {
        let mut git = Command::new("git");
        git.args(["upload-pack", "--stateless-rpc"]).args(more).arg(&repository);
        let mut child = git.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(body.as_bytes()).unwrap();
        child.wait_with_output().unwrap().stdout
    };
    let page = |kind: &str, body: &[u8]| {
        let kind = format!("application/x-git-upload-pack-{kind}");
        let n = body.len();
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {n}\r\nConnection: close\r\n\r\n");
        [head.as_bytes(), body].concat()
    };
    let port = serve(move |place, body| match place.split('?').next().unwrap_or_default() {
        "/old.git/info/refs" => moved("/new.git/info/refs?service=git-upload-pack"),
        "/new.git/info/refs" => {
            let refs = upload(&["--advertise-refs"], "");
            page("advertisement", &[b"001e# service=git-upload-pack\n0000", refs.as_slice()].concat())
        }
        _ => page("result", &upload(&[], body)),
    });
    let old = format!("http://127.0.0.1:{port}/old.git");
    let new = format!("http://127.0.0.1:{port}/new.git");
    sandbox
        .write("home/.castor/settings.json", &json!({"security": {"allowedExtensions": ["/old\\.git$"]}}).to_string());
    let (code, text) = castor(&sandbox, &["extensions", "install", &old, "--consent"]);
    assert!(code == 1 && text.contains("security.allowedExtensions"), "a rule is about where it is now: {text}");
    sandbox.write("home/.castor/settings.json", "{}");
    let (code, text) = castor(&sandbox, &["extensions", "install", &old, "--consent"]);
    assert!(code == 0 && text.contains(&format!("It moved to {new}")), "{text}");
    let (_, text) = castor(&sandbox, &["extensions", "show", "demo"]);
    assert!(text.contains(&new), "{text}");
}
