//! `castor doctor` from outside: what it finds, what it says, and what it keeps to itself.

use std::{fs, os::unix::fs::PermissionsExt, process::Stdio};

use serde_json::{Value, json};

use crate::{
    client::{Client, Namespaces, Sandbox},
    model_server::{ModelServer, gives},
    schemas,
};

/// Exit code and output.
fn doctor(sandbox: &mut Sandbox, flags: &[&str]) -> (Option<i32>, String) {
    sandbox.args = ["doctor"].iter().chain(flags).map(Into::into).collect();
    let output = sandbox.command().stdin(Stdio::null()).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

fn as_json(sandbox: &mut Sandbox) -> (Option<i32>, Value) {
    let (code, text) = doctor(sandbox, &["--json"]);
    let report = serde_json::from_str(&text).unwrap_or_else(|it| panic!("{it}: {text}"));
    schemas::check("doctor", &report).unwrap();
    (code, report)
}

/// A server that lists its models.
fn listing() -> String {
    ModelServer::answering(|_| Some(gives(&json!({"data": [{"id": "m"}], "models": [{"name": "models/m"}]})))).url
}

/// A home where a key is set, and a session failed.
fn used() -> Sandbox {
    let mut sandbox = Sandbox::new();
    sandbox.write("empty.jsonl", "");
    let script = sandbox.home().join("../empty.jsonl");
    sandbox.args.extend(["--fake-responses".into(), script.into()]);
    let servers =
        json!({"files": {"command": "mcp-files", "args": ["--token", "canary-arg"], "env": {"KEY": "canary-env"}}});
    let excluded = json!({"excluded": ["files"]});
    let settings = json!({"model": {"name": "gemini-4-hydrogen"}, "mcp": excluded, "mcpServers": servers, "tols": {}});
    sandbox.write("home/.castor/settings.json", &settings.to_string());
    fs::set_permissions(sandbox.home().join(".castor"), fs::Permissions::from_mode(0o700)).unwrap();
    sandbox.env.push(("GEMINI_API_KEY".into(), "canary-key-1234".into()));
    sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), listing()));
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let id = client.new_session(&sandbox.workspace()).unwrap();
    let prompt = json!({"sessionId": id, "prompt": [{"type": "text", "text": "go"}]});
    assert!(client.call("session/prompt", prompt).unwrap().0["error"].is_object());
    client.end().unwrap();
    sandbox
}

#[test]
fn all_is_well() {
    let mut sandbox = used();
    let (code, it) = as_json(&mut sandbox);
    assert_eq!((code, &it["ok"], &it["todo"]), (Some(0), &json!(true), &json!([])), "{it:#}");
    let steps: Vec<&str> = it["handshake"].as_array().unwrap().iter().filter_map(|it| it["name"].as_str()).collect();
    assert_eq!(steps, ["initialize", "session/new", "session/prompt", "session/delete"], "{it:#}");
    assert!(
        it["handshake"].as_array().unwrap().iter().all(|it| it["ms"].is_u64() && it["problem"].is_null()),
        "{it:#}"
    );
    assert_eq!(it["version"], env!("CARGO_PKG_VERSION"));
    assert!(it["settings"]["files"][0].as_str().unwrap().ends_with("settings.json (user)"), "{it:#}");
    let values = &it["settings"]["values"];
    let model = values.as_array().unwrap().iter().find(|it| it["key"] == "model.name").unwrap();
    assert_eq!(model["value"], "gemini-4-hydrogen");
    assert!(model["source"].as_str().unwrap().ends_with("settings.json (user)"), "{model}");
    assert!(it["settings"]["warnings"].to_string().contains("tols"), "{it:#}");
    assert_eq!((&it["keys"]["methods"][0]["place"], &it["home"]["mode"]), (&json!("GEMINI_API_KEY"), &json!("700")));
    assert_eq!(it["mcpServers"], json!([]), "the only one is excluded");
    assert!(it["folder"]["trust"].as_str().unwrap().starts_with("trusted ("), "{it:#}");
    assert!(it["lastRequest"].as_str().unwrap().ends_with(", attempt 1: configured"), "{it:#}");
    let errors = it["errors"].as_array().unwrap();
    assert!(errors.len() == 1 && errors[0]["message"].as_str().unwrap().contains("No more mock responses"), "{it:#}");
    let editors: Vec<&str> = it["editors"].as_array().unwrap().iter().filter_map(|it| it["editor"].as_str()).collect();
    assert_eq!(editors, ["Zed", "VS Code", "JetBrains", "Neovim", "Emacs"]);
    let program = sandbox.watched().client().display().to_string();
    assert!(
        it["editors"].as_array().unwrap().iter().all(|it| it["text"].as_str().unwrap().contains(&program)),
        "{it:#}"
    );
    assert!(!it.to_string().contains("canary"), "{it:#}");

    assert!(it["model"]["reach"]["ms"].is_u64() && it["sandbox"]["has"].is_string(), "{it:#}");

    let (code, text) = doctor(&mut sandbox, &["--all"]);
    assert!(code == Some(0) && text.ends_with("\nAll is well.\n") && text.contains("Zed: "), "{text}");
    let (code, short) = doctor(&mut sandbox, &[]);
    assert!(code == Some(0) && short.ends_with("\nAll is well.\n") && !(text + &short).contains("canary"), "{short}");
    let rows: Vec<&str> = short.lines().map(|it| it.split_whitespace().next().unwrap_or_default()).collect();
    assert_eq!(
        rows,
        ["castor", "handshake", "model", "models", "sandbox", "folder", "warning", "`castor", "All"],
        "{short}"
    );
    assert!(short.contains("gemini-4-hydrogen (GOOGLE_GEMINI_BASE_URL) answers"), "{short}");
    let sessions = fs::read_dir(sandbox.home().join(".castor/sessions")).unwrap();
    let logs = sessions.filter(|it| it.as_ref().unwrap().path().extension().is_some_and(|it| it == "jsonl"));
    assert_eq!(logs.count(), 1, "its own session is gone");
}

#[test]
fn last_line_names_what_is_missing() {
    let mut sandbox = Sandbox::new();
    let (code, text) = doctor(&mut sandbox, &[]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("\n  model     none: no API key\n"), "{text}");
    assert!(
        text.lines()
            .last()
            .unwrap()
            .starts_with("To do: No API key for Gemini. Run `castor auth login` (free key: https://"),
        "{text}"
    );
    sandbox.env.push(("GEMINI_API_KEY".into(), "canary-key-1234".into()));
    sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), listing()));
    let home = sandbox.home().join(".castor");
    fs::set_permissions(&home, fs::Permissions::from_mode(0o777)).unwrap();
    let (code, it) = as_json(&mut sandbox);
    assert_eq!(code, Some(1), "{it:#}");
    assert!(it["todo"][0].as_str().unwrap().contains("chmod 700"), "{it:#}");
}

/// As `castor policy check` says it.
#[test]
fn the_sandbox_is_the_one_of_this_folder() {
    let mut sandbox = Sandbox::new();
    let said = |it: &mut Sandbox| as_json(it).1["sandbox"]["level"].as_str().unwrap().to_owned();
    assert!(said(&mut sandbox).starts_with("workspace-write, without network; this system has"));
    sandbox.env.push(("CASTOR_TRUST_WORKSPACE".into(), "false".into()));
    let want = "read-only, as the folder is not trusted, without network; this system has";
    assert!(said(&mut sandbox).starts_with(want), "{}", said(&mut sandbox));
}

/// With a model of another provider's it is that one's key that counts.
#[test]
fn the_key_of_the_configured_model() {
    let mut sandbox = Sandbox::new();
    let provider = json!({"baseUrl": listing(), "apiKeyEnv": "OPENAI_API_KEY"});
    let settings = json!({"model": {"name": "openai/gpt"}, "providers": {"openai": provider}});
    sandbox.write("home/.castor/settings.json", &settings.to_string());
    let (code, it) = as_json(&mut sandbox);
    assert_eq!(code, Some(1), "{it:#}");
    assert!(it["todo"][0].as_str().unwrap().contains("No API key for openai: set OPENAI_API_KEY"), "{it:#}");
    sandbox.env.push(("OPENAI_API_KEY".into(), "canary-key-1234".into()));
    let (code, it) = as_json(&mut sandbox);
    assert_eq!((code, &it["keys"]["active"]), (Some(0), &json!("openai")), "{it:#}");
    assert!(!it.to_string().contains("canary"), "{it:#}");
}

/// They are started as a session starts them, and those that do not come are named.
#[test]
fn servers_that_do_not_start_are_named() {
    let mut sandbox = used();
    let settings = json!({"model": {"name": "gemini-4-hydrogen"},
        "mcpServers": {"files": {"command": "mcp-files", "args": ["canary-arg"]}, "ends": {"command": "false"}}});
    sandbox.write("home/.castor/settings.json", &settings.to_string());
    let (code, text) = doctor(&mut sandbox, &[]);
    assert_eq!(code, Some(1), "{text}");
    let todo: Vec<&str> = text.lines().filter(|it| it.starts_with("To do: ")).collect();
    let [todo] = todo[..] else { panic!("{text}") };
    assert!(todo.starts_with("To do: MCP servers: "), "{text}");
    // castor itself works.
    assert!(text.contains(" ms, on the demo model\n") && text.contains("\n  servers   FAILED\n"), "{text}");
    for it in ["\"files\" is not available: mcp-files could not be started", "\"ends\" is not available"] {
        assert!(todo.contains(it), "{text}");
    }
    let (code, it) = as_json(&mut sandbox);
    assert_eq!((code, &it["handshake"][4]["name"]), (Some(1), &json!("MCP servers")), "{it:#}");
    let servers = json!([{"name": "files", "where": "mcp-files"}, {"name": "ends", "where": "false"}]);
    assert_eq!(it["mcpServers"], servers, "{it:#}");
    assert!(!text.contains("canary") && !it.to_string().contains("canary"), "{text}");
    let sessions = fs::read_dir(sandbox.home().join(".castor/sessions")).unwrap();
    let logs = sessions.filter(|it| it.as_ref().unwrap().path().extension().is_some_and(|it| it == "jsonl"));
    assert_eq!(logs.count(), 1, "its own sessions are gone");
}

/// A home that cannot hold sessions: the handshake shows it.
#[test]
fn a_broken_home_fails_the_handshake() {
    let mut sandbox = Sandbox::new();
    sandbox.write("home/.castor", "a file, not a folder");
    let (code, it) = as_json(&mut sandbox);
    assert_eq!(code, Some(1), "{it:#}");
    let steps = it["handshake"].as_array().unwrap();
    assert!(steps.last().unwrap()["name"] == "session/new" && steps.last().unwrap()["problem"].is_string(), "{it:#}");
    assert!(it["todo"][0].as_str().unwrap().starts_with("session/new: "), "{it:#}");
}

/// Files that do not count as they are written, a model that nobody serves, a key of a file.
#[test]
fn doctor_reports_broken_files_and_models() {
    let mut sandbox = Sandbox::new();
    sandbox.write("home/.gemini/settings.json", "{\"model\": ");
    sandbox.write("home/.castor/policies/mine.toml", "[[rule]]\ntoolName = 'x'\ndecision = 'maybe'\npriority = 1\n");
    sandbox.write("home/.castor/.env", "GEMINI_API_KEY=canary-key-1234\n");
    // Nobody listens there.
    sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), "http://127.0.0.1:1".into()));
    let (code, it) = as_json(&mut sandbox);
    let todo: Vec<&str> = it["todo"].as_array().unwrap().iter().filter_map(|it| it.as_str()).collect();
    assert!(code == Some(1) && todo.len() == 3, "{it:#}");
    assert!(todo[0].contains(".gemini/settings.json:1:") && todo[0].contains("not valid JSON"), "{it:#}");
    assert!(todo[1].contains("policies/mine.toml") && todo[1].contains("maybe"), "{it:#}");
    assert!(todo[2].starts_with("the model cannot be reached: ") && todo[2].contains("127.0.0.1:1"), "{it:#}");
    let place = it["keys"]["methods"][0]["place"].as_str().unwrap();
    assert!(place.starts_with("GEMINI_API_KEY in ") && place.ends_with(".castor/.env"), "{it:#}");
    let (_, text) = doctor(&mut sandbox, &[]);
    assert_eq!(text.matches("\nTo do: ").count(), 3, "{text}");
    assert!(!text.contains("canary") && !it.to_string().contains("canary"), "{text}");
}

/// Writable folders of the settings may be absent; that is reported once.
#[test]
fn doctor_reports_missing_writable_folders() {
    let mut sandbox = used();
    let settings = json!({"security": {"sandbox": {"writable": ["~/gone", "~/there"]}}});
    sandbox.write("home/.castor/settings.json", &settings.to_string());
    sandbox.write("home/there/x", "");
    let (_, it) = as_json(&mut sandbox);
    let warnings = it["settings"]["warnings"].to_string();
    assert!(warnings.contains("~/gone is not there") && !warnings.contains("~/there"), "{it:#}");
    assert!(it["sandbox"]["unseen"].is_null(), "{it:#}");
    for idx in 0..20_000 {
        std::fs::create_dir(sandbox.workspace().join(format!("a{idx}"))).unwrap();
    }
    let (_, it) = as_json(&mut sandbox);
    // Where nothing can confine, nobody looks.
    let unseen = it["sandbox"]["unseen"].as_str().is_some_and(|it| it.contains("more than 20000 folders"));
    assert!(unseen || it["sandbox"]["has"] == "nothing", "{it:#}");
}

#[test]
fn hooks_that_hold_answers_back_are_named() {
    let mut sandbox = used();
    let hook =
        |name: &str, observes: bool| json!({"type": "command", "command": "true", "name": name, "observes": observes});
    let hooks = json!([{"hooks": [hook("log", true), hook("mend", false), hook("off", false)]}]);
    let settings = json!({"hooks": {"AfterModel": hooks}, "hooksConfig": {"disabled": ["off"]}});
    sandbox.write("home/.castor/settings.json", &settings.to_string());
    let (_, it) = as_json(&mut sandbox);
    let warnings = it["settings"]["warnings"].as_array().unwrap();
    let told: Vec<&str> = warnings.iter().filter_map(Value::as_str).filter(|it| it.contains("AfterModel")).collect();
    let expected = "The AfterModel hook \"mend\" holds each answer back until it is whole. If it only listens, add \
                    \"observes\": true to it.";
    assert_eq!(told, [expected], "{it:#}");
}

/// Where castor mounts no layers above tools' folders, one line says what follows from it; and one how limits are held.
#[test]
fn what_commands_cannot_write_is_said_where_there_are_no_layers() {
    for namespaces in Namespaces::all() {
        let mut sandbox = Sandbox::new();
        sandbox.namespaces = namespaces;
        sandbox.args = ["doctor", "--all"].map(Into::into).to_vec();
        let out = sandbox.command().output().unwrap();
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let said = text.matches("cannot write in the folders of tools (~/.cargo,").count();
        let want = usize::from(namespaces == Namespaces::Bubblewrap);
        assert!(said == want || namespaces == Namespaces::Castor && !has_overlays(&sandbox), "{namespaces:?}: {text}");
        assert_eq!(
            text.matches("limits of processes and memory").count() + text.matches("each second").count(),
            1,
            "{text}"
        );
    }
}

/// Whether the kernel gives a user a layer, asked of other programs.
fn has_overlays(sandbox: &Sandbox) -> bool {
    let folder = sandbox.home().join("layer");
    for it in ["lower", "upper", "work", "place"] {
        std::fs::create_dir_all(folder.join(it)).unwrap();
    }
    let line = "mount -t overlay x -o lowerdir=lower,upperdir=upper,workdir=work,userxattr place";
    let mut unshare = std::process::Command::new("unshare");
    let out = unshare.args(["-Urm", "sh", "-c", line]).current_dir(folder).output();
    out.is_ok_and(|it| it.status.success())
}
