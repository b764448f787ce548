//! External safety checkers that answer, and those that fail. Shell scripts stand for programs.
#![allow(clippy::disallowed_methods)]

use std::{os::unix::fs::PermissionsExt, sync::Arc};

use serde_json::{Value, json};

use super::{ask, finding};
use crate::checkers::CheckSite;
use castor_base::{
    check::{Check, CheckFinding, Checker, CheckerAction, CheckerContext},
    ids::CallId,
    log::Decision,
    path::AbsPath,
    tool::ToolCall,
};
use castor_hands::{disk, process::Groups};

struct Ground {
    root: AbsPath,
    _temp: tempfile::TempDir,
}

impl Ground {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let root = disk::real_path(&AbsPath::new(temp.path()).unwrap()).unwrap();
        std::fs::create_dir(root.join("ws").as_path()).unwrap();
        Self { root, _temp: temp }
    }

    fn script(&self, name: &str, text: &str) -> String {
        let path = self.root.join(name);
        std::fs::write(path.as_path(), format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(path.as_path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        path.to_string()
    }

    fn site(&self) -> CheckSite {
        let ws = self.root.join("ws");
        let env = [("HOME", self.root.to_string()), ("PATH", "/usr/bin:/bin".to_owned())];
        let env = env.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        CheckSite { cwd: ws.clone(), roots: vec![ws], env, confined: None }
    }

    async fn ask_with(&self, program: &str, args: &[&str], wants: CheckerContext) -> Result<CheckFinding, String> {
        let args: Vec<String> = args.iter().map(|it| (*it).to_owned()).collect();
        let does =
            CheckerAction::External { program: program.to_owned(), args: args.clone(), sandbox: Default::default() };
        let checker =
            Checker { name: program.to_owned(), action: does, config: json!({"strict": true}), context: wants };
        let call = ToolCall { id: CallId::from("c"), name: "web_fetch".to_owned(), args: json!({"url": "x"}) };
        let history = wants.history.then(|| json!([{"user": {"text": "go"}, "model": {}}]));
        let check = Check { checker: Arc::new(checker), call, history };
        ask(&check, program, &args, &self.site(), &Groups::default()).await.map_err(|it| it.to_string())
    }

    async fn ask(&self, text: &str) -> Result<CheckFinding, String> {
        let program = self.script("check", text);
        self.ask_with(&program, &[], CheckerContext { environment: true, history: true }).await
    }
}

#[tokio::test]
async fn verdicts_and_failures() {
    let ground = Ground::new();
    let say = |json: &str| format!("cat > /dev/null; echo '{json}'");
    assert_eq!(ground.ask(&say(r#"{"decision": "allow", "more": 1}"#)).await, Ok(CheckFinding::allow()));
    let deny = CheckFinding { decision: Decision::Deny, reason: "no".to_owned() };
    assert_eq!(ground.ask(&say(r#"{"decision": "deny", "reason": "no"}"#)).await, Ok(deny.clone()));
    // Nobody has to read what is told.
    assert_eq!(ground.ask(r#"echo '{"decision": "deny", "reason": "no"}'"#).await, Ok(deny));
    let ask = CheckFinding { decision: Decision::Ask, reason: "sure?".to_owned() };
    assert_eq!(ground.ask(&say(r#"{"decision": "ask_user", "reason": "sure?"}"#)).await, Ok(ask));
    for (script, why) in [
        (r#"echo '{"decision": "allow"}'; exit 3"#, "it ended with exit code 3"),
        (r#"echo '{"decision": "allow"}'; kill -KILL $$"#, "it was ended by SIGKILL"),
        ("echo nonsense", "its answer is no verdict (nonsense): "),
        (r#"echo '{"decision": "allow"} {"decision": "deny"}'"#, "its answer is no verdict"),
        (r#"echo '{"decision": "maybe"}'"#, "its answer is no verdict"),
        (r#"echo '{"decision": "deny"}'"#, "it gave no reason"),
        ("", "its answer is no verdict"),
        ("while :; do echo 0123456789012345678901234567890123456789; done", "it said more than 64 KiB"),
        ("exec /nonexistent", "it ended with exit code"),
    ] {
        let said = ground.ask(script).await.unwrap_err();
        assert!(said.starts_with(why), "{script}: {said}");
    }
}

#[tokio::test]
async fn checker_gets_the_context_it_wants() {
    let ground = Ground::new();
    let program =
        ground.script("check", "cat > \"$HOME/told\"; pwd >> \"$HOME/told\"; echo '{\"decision\": \"allow\"}'");
    let told = |wants| async move {
        assert!(ground.ask_with(&program, &[], wants).await.is_ok());
        let text = std::fs::read_to_string(ground.root.join("told").as_path()).unwrap();
        let (json, cwd) = text.rsplit_once('}').unwrap();
        let ws = ground.root.join("ws").to_string();
        assert_eq!(cwd.trim(), ws);
        (serde_json::from_str::<Value>(&format!("{json}}}")).unwrap(), ws, ground, program)
    };
    let (all, ws, ground, program) = told(CheckerContext { environment: true, history: true }).await;
    let expected = json!({
        "protocolVersion": "1.0.0",
        "toolCall": { "id": "c", "name": "web_fetch", "args": { "url": "x" } },
        "context": {
            "environment": { "cwd": ws, "workspaces": [ws] },
            "history": { "turns": [{ "user": { "text": "go" }, "model": {} }] },
        },
        "config": { "strict": true },
    });
    assert_eq!(all, expected);
    ground.ask_with(&program, &[], CheckerContext { environment: false, history: false }).await.unwrap();
    let text = std::fs::read_to_string(ground.root.join("told").as_path()).unwrap();
    assert!(text.contains(r#""context":{}"#), "{text}");
}

/// A checker's program must not lie where the agent can write.
#[tokio::test]
async fn the_agent_cannot_be_its_own_judge() {
    let ground = Ground::new();
    let (inside, outside) = (ground.script("ws/check", "echo"), ground.script("check", "echo"));
    let wants = CheckerContext { environment: true, history: false };
    let lies = |it: Result<CheckFinding, String>| it.unwrap_err().ends_with("where the agent could change it");
    assert!(lies(ground.ask_with(&inside, &[], wants).await));
    std::os::unix::fs::symlink(&inside, ground.root.join("link").as_path()).unwrap();
    assert!(lies(ground.ask_with("~/link", &[], wants).await));
    assert!(lies(ground.ask_with("/bin/sh", &["check"], wants).await));
    assert!(lies(ground.ask_with("/bin/sh", &[&inside], wants).await));
    let gone = ground.ask_with("~/nothing", &[], wants).await.unwrap_err();
    assert!(gone.starts_with("it could not be started: "), "{gone}");
    let said = ground.ask_with("/bin/sh", &[&outside], wants).await.unwrap_err();
    assert!(said.starts_with("its answer is no verdict"), "{said}");
}

/// Dropping the question ends who was asked, with everybody it started.
#[tokio::test]
async fn dropped_check_kills_the_checker_processes() {
    let ground = Ground::new();
    let (reader, writer) = (ground.root.join("pipe").to_string(), ground.root.join("pipe"));
    nix::unistd::mkfifo(writer.as_path(), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let program = ground.script("check", "sleep 1000 & echo $$ $! > \"$HOME/pipe\"; wait");
    let question = ground.ask_with(&program, &[], CheckerContext { environment: false, history: false });
    let pids = tokio::select! {
        it = question => panic!("it answered: {it:?}"),
        it = tokio::fs::read_to_string(&reader) => it.unwrap(),
    };
    for pid in pids.split_whitespace() {
        let stat = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let is_alive = || stat().rsplit_once(')').is_some_and(|(_, it)| !it.trim_start().starts_with(['Z', 'X']));
        let mut tick = tokio::time::interval(std::time::Duration::from_millis(2));
        let gone = async {
            while is_alive() {
                tick.tick().await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(20), gone).await.expect("it is still there");
    }
}

#[test]
fn reasons_are_one_plain_line() {
    let said = json!({"decision": "deny", "reason": format!("\u{1b}[31mred\u{7}\nmore{}", "x".repeat(900))});
    let found = finding(said.to_string().as_bytes()).unwrap();
    assert_eq!(found.reason, "\\u{1b}[31mred\\u{7}");
    let said = json!({"decision": "deny", "reason": "x".repeat(900)});
    assert!(finding(said.to_string().as_bytes()).unwrap().reason.len() < 510);
}
