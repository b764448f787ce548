//! What verbs print of files that others wrote: nothing in it reaches a terminal as anything but text.

use std::process::Stdio;

use serde_json::json;

use crate::client::Sandbox;

/// Clears the screen, turns text round, makes a line of its own, and is not seen.
const ODD: &str = "x\u{1b}[2J\u{202e}y\nHook: on\u{200b}";

/// Streams of a verb in the workspace.
fn said(sandbox: &mut Sandbox, line: &[&str]) -> String {
    sandbox.args = line.iter().map(Into::into).collect();
    let cwd = sandbox.workspace();
    let output = sandbox.command().current_dir(cwd).stdin(Stdio::null()).output().unwrap();
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

/// No escape sequences, no reversed or hidden characters, no extra lines.
#[test]
fn foreign_names_are_shown_as_plain_text() {
    let mut sandbox = Sandbox::new();
    let hook = json!({"name": ODD, "type": "command", "command": "true"});
    let groups = json!([{"matcher": ODD, "hooks": [hook]}]);
    let servers = json!({"s\u{202e}": {"command": ODD}});
    let settings = json!({"hooks": {"BeforeTool": groups}, "mcpServers": servers, ODD: 1});
    sandbox.write("ws/.castor/settings.json", &settings.to_string());
    sandbox.write(format!("ws/.castor/skills/{ODD}/SKILL.md"), "x");
    sandbox.write(
        "ws/.castor/policies/p.toml",
        "[[rule]]\ndecision = 'deny'\npriority = 1\ntoolName = \"x\\u001b[2J\\u202ey\\nHook: on\\u200b\"",
    );
    let odd = json!({"matcher": ODD, "hooks": [{"type": ODD}, {"type": "command", "command": ODD}]});
    let odd = json!({"hooks": {"PreToolUse": [odd], "SessionStart": [{"matcher": ODD, "hooks": [hook]}]}});
    sandbox.write("ws/.claude/settings.json", &odd.to_string());
    let mut shown = 0;
    sandbox.write("ws/.castor/agents/odd.md", &format!("---\nname: {}\n---\n", json!(ODD)));
    let text =
        format!("---\nname: odd\ndescription: {0}\nmcp_servers: {{s: {{command: {0}}}}}\n---\n{ODD}", json!(ODD));
    sandbox.write("ws/.gemini/agents/odd.md", &text);
    for line in [
        &["agents", "list"][..],
        &["agents", "show", "odd"],
        &["agents", "show", ODD],
        &["agents", "check", "ws/.castor/agents/odd.md"],
        &["hooks", "list"],
        &["hooks", "migrate"],
        &["trust", "why"],
        &["policy", "list"],
        &["policy", "check", ODD],
        &["config", "explain", "hooks"],
        &["doctor"],
        &["doctor", "--json"],
        &["sessions", "list"],
        &["models"],
        &["permissions"],
        &["auth", "status"],
    ] {
        let text = said(&mut sandbox, line);
        let bad = text.chars().find(|it| it.is_control() && *it != '\n' || matches!(it, '\u{202e}' | '\u{200b}'));
        assert_eq!(bad, None, "{line:?}: {text:?}");
        assert!(!text.lines().any(|it| it.starts_with("Hook: on")), "{line:?}: {text}");
        shown += text.matches("\\u202e").count();
    }
    assert!(shown > 8, "{shown}");
}

/// Text that says which, and what to do: for who types, and on the wire.
#[test]
fn a_file_in_the_place_of_castors_folder_is_named() {
    let mut sandbox = Sandbox::new();
    std::fs::remove_dir_all(sandbox.home().join(".castor")).ok();
    sandbox.write("home/.castor", "mine");
    let file = sandbox.home().join(".castor");
    let why = format!(
        "{} is a file, where castor has its folder. Move it away, or set CASTOR_HOME to a folder.",
        file.display()
    );
    for line in [&["trust"][..], &["models"], &["sessions", "list"], &["permissions"], &["auth", "status"]] {
        let text = said(&mut sandbox, line);
        assert_eq!(text, format!("castor: {why}\n"), "{line:?}");
    }
    let text = said(&mut sandbox, &["run", "--model", "demo", "hi"]);
    assert!(text.contains(&why), "{text}");
    assert!(said(&mut sandbox, &["doctor"]).contains(&why));
    assert!(said(&mut sandbox, &["policy", "check", "ls"]).starts_with("allow"));
}
