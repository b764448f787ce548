//! `castor sessions` on a real store.
#![allow(clippy::disallowed_methods)]

use std::fs;

use clap::Parser;
use serde_json::{Value, json};

use super::{CommandContext, CommandLook, SessionsArgs, run};
use castor_base::{clock::Now, ids::SessionId, path::AbsPath};
use castor_store::sessions::SessionStore;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: SessionsArgs,
}

struct Bed {
    _dir: tempfile::TempDir,
    root: AbsPath,
    store: SessionStore,
    look: CommandLook,
}

fn bed() -> Bed {
    let dir = tempfile::tempdir().unwrap();
    let root = AbsPath::new(dir.path()).unwrap();
    fs::create_dir(root.join("w")).unwrap();
    Bed { _dir: dir, store: SessionStore::new(root.join("home")), look: CommandLook::default(), root }
}

impl Bed {
    fn cwd(&self) -> AbsPath {
        self.root.join("w")
    }

    fn castor(&self, line: &[&str]) -> Result<String, (String, u8)> {
        self.castor_asking(line, None)
    }

    fn castor_asking(&self, line: &[&str], answer: Option<bool>) -> Result<String, (String, u8)> {
        let args = Line::try_parse_from([&["sessions"], line].concat()).unwrap_or_else(|it| panic!("{it}")).args;
        let mut out = Vec::new();
        let cwd = self.cwd();
        let mut yes = |_: &str| answer == Some(true);
        let ask = answer.map(|_| &mut yes as &mut dyn FnMut(&str) -> bool);
        let mut context = CommandContext {
            store: &self.store,
            cwd: &cwd,
            now: Now { unix_ms: 1_700_000_000_000, seed: 7 },
            out: &mut out,
            ask,
            look: self.look.clone(),
        };
        let done = run(&args.verb, &mut context);
        done.map(|()| String::from_utf8(out).unwrap()).map_err(|it| (it.why, it.code))
    }

    /// A log in which "hello" was asked.
    fn log(&self, id: &str, cwd: &AbsPath) -> AbsPath {
        let lines = [
            json!({"at": 1, "fact": "created", "version": 1, "castor": "0", "session": id, "cwd": cwd, "roots": [cwd],
                "mode": "default", "model": "m"}),
            json!({"at": 2, "fact": "event", "event": {"id": "s-0", "streamId": "s", "timestamp": 2, "type": "message",
                "role": "user", "messageId": "m1", "content": [{"type": "text", "text": "hello\u{1b}[2J <b>"}]}}),
            json!({"at": 3, "fact": "event", "event": {"id": "s-1", "streamId": "s", "timestamp": 3,
                "type": "session_update", "title": "Greeting\u{1b}[2J"}}),
        ];
        let path = self.root.join(format!("home/sessions/{id}.jsonl"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, lines.iter().map(|it| format!("{it}\n")).collect::<String>()).unwrap();
        path
    }
}

#[test]
fn lists_this_folder_or_all() {
    let bed = bed();
    assert!(bed.castor(&["list"]).unwrap().starts_with("No session of "));
    bed.log("session-a", &bed.cwd());
    bed.log("session-b", &bed.root.join("elsewhere"));
    let (why, code) = bed.castor(&["list", "--cwd", "../elsewhere"]).unwrap_err();
    assert!(why.contains("elsewhere cannot be looked into") && why.contains("--all"), "{why}");
    assert_eq!(code, 42);
    fs::create_dir(bed.root.join("elsewhere")).unwrap();
    let here = bed.castor(&["list"]).unwrap();
    assert!(here.contains("\nion-a  ") && here.ends_with("  Greeting⟨U+001B⟩[2J\n"), "{here:?}");
    assert_eq!(bed.castor(&["list", "--all"]).unwrap().lines().count(), 3);
    let json: Value = serde_json::from_str(&bed.castor(&["list", "--cwd", "../elsewhere", "--json"]).unwrap()).unwrap();
    assert_eq!(json.as_array().unwrap().len(), 1);
    assert_eq!(json[0]["sessionId"], "session-b");
}

mod agents;
mod listing;

#[test]
fn shows_and_exports_what_is_meant() {
    let bed = bed();
    bed.log("session-a", &bed.cwd());
    for word in ["latest", "session-a", "sessio", "ion-a"] {
        let text = bed.castor(&["show", word]).unwrap();
        assert!(text.contains("title    Greeting\n") && text.contains("\n> hello <b>\n"), "{text}");
    }
    assert!(!bed.castor(&["show", "latest"]).unwrap().contains('\u{1b}'));
    bed.log("session-b", &bed.cwd());
    for (word, words) in [("session", "session names 2 sessions"), ("ses", "5 characters at least")] {
        let (why, code) = bed.castor(&["show", word]).unwrap_err();
        assert!(why.contains(words) && code == 42, "{why}");
    }
    let (why, _) = bed.castor(&["show", "session"]).unwrap_err();
    assert!(["\n  ion-a  ", "\n  ion-b  ", "  Greeting"].iter().all(|it| why.contains(it)), "{why}");
    assert_eq!(bed.castor(&["show", "nothing"]).unwrap_err().1, 42);
    assert_eq!(bed.castor(&["show", "../w"]).unwrap_err().1, 42);

    assert!(bed.castor(&["export", "session-a"]).unwrap().starts_with("# Greeting"));
    assert!(bed.castor(&["export", "session-a", "--format", "html"]).unwrap().starts_with("<!doctype html>"));
    let said = bed.castor(&["export", "session-a", "-o", "out.json"]).unwrap();
    assert!(said.starts_with("Wrote "), "{said}");
    let json: Value = serde_json::from_slice(&fs::read(bed.cwd().join("out.json")).unwrap()).unwrap();
    assert_eq!(json["format"], "castor-session");
    for (words, part) in [
        (&["-o", "out.json"][..], "--force"),
        (&["-o", "."], "is a folder"),
        (&["-o", "no/out.md"], "no: "),
        (&["-o", "out.json/a"], "is not a folder"),
        (&["-o", "out.pdf"], ".pdf is no format"),
    ] {
        let (why, code) = bed.castor(&[&["export", "session-a"], words].concat()).unwrap_err();
        assert!(why.contains(part) && code == 42, "{why}");
    }
    assert!(bed.castor(&["export", "session-a", "-o", "out.json", "--force"]).unwrap().starts_with("Wrote "));

    let there = bed.castor(&["import", "out.json"]).unwrap();
    assert!(there.contains("was imported before"), "{there}");
    bed.castor(&["delete", "session-a", "--yes"]).unwrap();
    assert!(bed.castor(&["import", "out.json"]).unwrap().starts_with("Imported session session-a"));
    assert!(bed.castor(&["show", "session-a"]).unwrap().contains("Greeting"));
}

#[test]
fn delete_needs_confirmation_and_spares_open_sessions() {
    let bed = bed();
    let path = bed.log("session-a", &bed.cwd());
    let (why, code) = bed.castor(&["delete", "session-a"]).unwrap_err();
    assert!(why.contains("--yes") && code == 42, "{why}");
    assert!(bed.castor_asking(&["delete", "session-a"], Some(false)).is_err());
    let (_, held) = bed.store.open(&SessionId::from("session-a")).unwrap();
    let (why, _) = bed.castor(&["delete", "session-a", "--yes"]).unwrap_err();
    assert!(why.contains(&format!("(process {})", std::process::id())), "{why}");
    assert!(bed.castor(&["repair", "session-a"]).unwrap_err().0.contains("is open in another"));
    drop(held);
    let scratch = bed.root.join("home/tmp/session-a");
    fs::create_dir_all(&scratch).unwrap();
    fs::write(scratch.join("out.txt"), "x").unwrap();
    assert_eq!(bed.castor_asking(&["delete", "session-a"], Some(true)).unwrap(), "Removed session session-a\n");
    assert!(!path.as_path().exists() && !scratch.as_path().exists());
    assert_eq!(fs::read_dir(bed.root.join("home/sessions")).unwrap().count(), 0, "nothing stays behind");
}

#[test]
fn repairs_and_says_what_was_lost() {
    let bed = bed();
    let path = bed.log("session-a", &bed.cwd());
    assert!(bed.castor(&["repair", "session-a"]).unwrap().contains("is sound (lines: 3)"));
    let sound = fs::read_to_string(&path).unwrap();
    let torn = sound.replacen('\n', "\nrub\u{1b}bish\n", 1) + "{\"at\":9,";
    fs::write(&path, &torn).unwrap();
    let shown = bed.castor(&["show", "session-a"]).unwrap();
    assert!(shown.contains("\ndamaged  2 places, passed over; `castor sessions repair session-a`"), "{shown}");
    let said = bed.castor(&["repair", "session-a"]).unwrap();
    assert!(said.contains("lines kept: 3, damaged places: 2") && said.contains("\n  line 2, 8 bytes: "), "{said}");
    assert_eq!(fs::read_to_string(&path).unwrap(), sound);
    assert_eq!(fs::read_to_string(format!("{path}.bak-1")).unwrap(), torn);
}

/// Scripts can read the id; the parent keeps its bytes.
#[test]
fn forks_print_only_the_new_id() {
    let bed = bed();
    let parent = bed.log("session-a", &bed.cwd());
    let before = fs::read(&parent).unwrap();
    let id = bed.castor(&["fork", "session-a"]).unwrap();
    let child = bed.root.join(format!("home/sessions/{}.jsonl", id.trim_end()));
    let first = |text: String| serde_json::from_str::<Value>(text.lines().next().unwrap()).unwrap();
    let created = first(fs::read_to_string(child).unwrap());
    assert_eq!((&created["parent"], &created["session"]), (&json!("session-a"), &json!(id.trim_end())));
    assert_eq!(fs::read(&parent).unwrap(), before);
    let shown = bed.castor(&["show", id.trim_end()]).unwrap();
    assert!(shown.contains("Greeting") && shown.contains(" (fork)\n"), "{shown}");
    let (why, code) = bed.castor(&["fork", "session-a", "--at", "m9"]).unwrap_err();
    assert!(why.contains("session-a has no message m9"), "{why}");
    assert_eq!(code, 42);
    assert_eq!(bed.castor(&["fork", "session-b"]).unwrap_err().1, 42);
}
