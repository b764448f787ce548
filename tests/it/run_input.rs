//! What `castor run` sends to the model: stdin of all kinds, and files that the prompt names.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    process::{Child, Command, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::model_server::{ModelServer, says};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

/// A folder, and a model that says "fine".
struct Ground {
    folder: TempDir,
    model: ModelServer,
}

impl Ground {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("ws")).unwrap();
        Self { folder, model: ModelServer::answering(|_| Some(says("fine"))) }
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join("ws").join(name), text).unwrap();
    }

    /// `castor run` with a pipe as stdin.
    fn spawn(&self, args: &[&str]) -> Child {
        let mut castor = Command::new(env!("CARGO_BIN_EXE_castor"));
        castor.arg("run").args(args).current_dir(self.folder.path().join("ws")).env("HOME", self.folder.path());
        castor.env("GOOGLE_GEMINI_BASE_URL", &self.model.url).env("GEMINI_API_KEY", "k");
        castor.args(["-m", "gemini-2.5-flash"]).env("CASTOR_TRUST_WORKSPACE", "true");
        castor.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Exit code and stderr of a run with this stdin.
    fn run(&self, args: &[&str], stdin: &[u8]) -> (i32, String) {
        let mut run = self.spawn(args);
        // It may refuse before it has read all.
        _ = run.stdin.take().unwrap().write_all(stdin);
        let output = run.wait_with_output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    }

    /// The parts of the last thing that the user said to the model.
    fn sent(&self) -> Vec<Value> {
        let asked = self.model.asked();
        let body: Value = serde_json::from_str(&asked.last().expect("nothing was asked").body).unwrap();
        body["contents"].as_array().unwrap().last().unwrap()["parts"].as_array().unwrap().clone()
    }

    fn sent_text(&self) -> String {
        self.sent().iter().filter_map(|it| it["text"].as_str()).collect::<Vec<_>>().join("\n")
    }
}

/// As `cargo test | castor run "explain"`, where the first byte takes longer than a second.
#[test]
fn late_stdin_is_part_of_the_prompt() {
    let ground = Ground::new();
    let mut run = ground.spawn(&["explain this failure"]);
    let mut stderr = BufReader::new(run.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert!(line.contains("waiting for stdin") && line.contains("--no-stdin"), "{line}");
    run.stdin.take().unwrap().write_all(b"E0308").unwrap();
    stderr.read_to_string(&mut line).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(0), "{line}");
    assert!(ground.sent_text().contains("E0308\n\n\nexplain this failure"), "{}", ground.sent_text());
}

/// Editors and CI leave pipes open that nobody writes to.
#[test]
fn an_open_pipe_is_not_read_with_no_stdin() {
    let ground = Ground::new();
    let mut run = ground.spawn(&["hello", "--no-stdin"]);
    let stdin = run.stdin.take();
    let mut answer = String::new();
    run.stdout.take().unwrap().read_to_string(&mut answer).unwrap();
    assert_eq!((run.wait().unwrap().code(), answer.as_str()), (Some(0), "fine\n"));
    drop(stdin);
}

#[test]
fn an_image_on_stdin_is_sent_as_one() {
    let ground = Ground::new();
    let (code, said) = ground.run(&["describe this"], PNG);
    assert_eq!(code, 0, "{said}");
    let data: Vec<Value> = ground.sent().iter().filter_map(|it| it.get("inlineData").cloned()).collect();
    let expected = serde_json::json!({ "mimeType": "image/png", "data": "iVBORw0KGgoAAAANSUhEUg==" });
    assert_eq!(data, [expected]);
}

#[test]
fn binary_on_stdin_is_refused() {
    let ground = Ground::new();
    for (stdin, says) in [(&b"\x7fELF\0\0"[..], "neither text nor media"), (b"caf\xe9", "not UTF-8")] {
        let (code, said) = ground.run(&["describe this"], stdin);
        assert_eq!(code, 42, "{said}");
        assert!(said.contains(says), "{said}");
    }
    assert!(ground.model.asked().is_empty());
}

/// Of `.env` the model gets the name; to read it, it has to ask. In piped text, `@` is a character.
#[test]
fn named_files_are_attached() {
    let ground = Ground::new();
    ground.write("calc.py", "def add(a, b): return a - b\n");
    ground.write("other.py", "OTHER\n");
    ground.write(".env", "TOKEN=canary-canary-canary\n");
    let (code, said) = ground.run(&["why is @calc.py wrong? see @.env and @gone.py"], b"@other.py");
    assert_eq!(code, 0, "{said}");
    let sent = ground.sent_text();
    assert!(sent.contains("return a - b") && sent.contains("why is @calc.py wrong?"), "{sent}");
    assert!(!sent.contains("canary") && !sent.contains("OTHER"), "{sent}");
    assert!(sent.contains("ws/.env"), "{sent}");
    for it in ["attached @calc.py", "@.env: it may hold secrets", "@gone.py: no such file"] {
        assert!(said.contains(it), "{it} in {said}");
    }
}
