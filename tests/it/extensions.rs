//! Extensions through the wire: one is installed from git, counts in a session with all that it brings, and counts for
//! nothing once its files have changed.

use std::process::Command;

use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox},
    mcp_server,
    model_server::{ModelServer, calls, says},
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

fn castor(sandbox: &Sandbox, args: &[&str]) -> (i32, String) {
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
fn start(sandbox: &Sandbox) -> (Client, String) {
    let mut client = Client::start(sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    (client, session)
}

/// Types a prompt: what castor says, and all updates as text.
fn typed(client: &mut Client, session: &str, text: &str) -> (String, String) {
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
