//! What `castor run` sends to the model: stdin of all kinds, files, images, instructions, a schema for the answer.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    process::{Child, Command, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    model_server::{ModelServer, says},
    watched_castor::WatchedCastor,
};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

/// A folder, and a model that says "fine".
struct Ground {
    folder: TempDir,
    model: ModelServer,
    castor: WatchedCastor,
}

impl Ground {
    fn new() -> Self {
        Self::answering(&["fine"])
    }

    /// The model says these, one after the other; the last one again and again.
    fn answering(answers: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("ws")).unwrap();
        let mut answers: Vec<String> = answers.iter().map(|it| (*it).to_owned()).collect();
        let model = ModelServer::answering(move |_| {
            let answer = answers[0].clone();
            if answers.len() > 1 {
                answers.remove(0);
            }
            Some(says(&answer))
        });
        Self { folder, model, castor: WatchedCastor::new() }
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join("ws").join(name), text).unwrap();
    }

    /// `castor run` with a pipe as stdin.
    fn spawn(&self, args: &[&str]) -> Child {
        let mut castor = Command::new(self.castor.client());
        castor.arg("run").args(args).current_dir(self.folder.path().join("ws")).env("HOME", self.folder.path());
        castor.env("GOOGLE_GEMINI_BASE_URL", &self.model.url).env("GEMINI_API_KEY", "k");
        castor.args(["-m", "gemini-3.8-flash"]).env("CASTOR_TRUST_WORKSPACE", "true");
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

    /// Exit code, stdout and stderr.
    fn answer(&self, args: &[&str], stdin: &[u8]) -> (i32, String, String) {
        let mut run = self.spawn(args);
        _ = run.stdin.take().unwrap().write_all(stdin);
        let output = run.wait_with_output().unwrap();
        let text = |it| String::from_utf8(it).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }

    /// The bodies of all requests.
    fn bodies(&self) -> Vec<Value> {
        self.model.asked().iter().map(|it| serde_json::from_str(&it.body).unwrap()).collect()
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
    for (stdin, says) in [(&b"\x7fELF\0\0"[..], "neither text nor media"), (b"\xff\xfe\xfd\xe9", "not UTF-8")] {
        let (code, said) = ground.run(&["describe this"], stdin);
        assert_eq!(code, 42, "{said}");
        assert!(said.contains(says), "{said}");
    }
    assert!(ground.model.asked().is_empty());
}

/// Logs of builds have such bytes.
#[test]
fn a_stray_byte_in_a_log_is_marked_and_told() {
    let ground = Ground::new();
    let (code, said) = ground.run(&["why?"], b"a.c: caf\xe9: error\n");
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("1 byte of stdin is not UTF-8"), "{said}");
    let body = ground.model.asked()[0].body.clone();
    assert!(body.contains("a.c: caf\u{fffd}: error"), "{body}");
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

/// Also from outside the workspace: the user named it. Text is none.
#[test]
fn images_are_attached() {
    let ground = Ground::new();
    fs::write(ground.folder.path().join("shot.png"), PNG).unwrap();
    ground.write("notes.txt", "text");
    let (code, said) = ground.run(&["describe these", "--image", "../shot.png"], b"");
    assert_eq!(code, 0, "{said}");
    let data: Vec<Value> = ground.sent().iter().filter_map(|it| it.get("inlineData").cloned()).collect();
    assert_eq!(data, [serde_json::json!({ "mimeType": "image/png", "data": "iVBORw0KGgoAAAANSUhEUg==" })]);
    for (image, says) in [("notes.txt", "notes.txt is no image"), ("gone.png", "gone.png: no such file")] {
        let (code, said) = ground.run(&["describe it", "--image", image], b"");
        assert_eq!(code, 42, "{said}");
        assert!(said.contains(says), "{said}");
    }
}

#[test]
fn instructions_replace_the_agents_own_or_are_added() {
    let ground = Ground::new();
    ground.write("rules.md", "Answer in Latin.");
    let instructions = |args: &[&str]| {
        let (code, said) = ground.run(args, b"");
        assert_eq!(code, 0, "{said}");
        ground.bodies().pop().unwrap()["systemInstruction"].to_string()
    };
    let own = instructions(&["hello"]);
    let added = instructions(&["hello", "--append-system-prompt", "@rules.md"]);
    let replaced = instructions(&["hello", "--system-prompt", "Answer in Greek."]);
    assert!(added.contains("Answer in Latin.") && added.len() > own.len(), "{added}");
    assert!(replaced.contains("Answer in Greek.") && replaced.len() < own.len() / 2, "{replaced}");
    for (args, says) in [
        (["hello", "--system-prompt", "@gone.md"], "gone.md cannot be read"),
        (["hello", "--append-system-prompt", " "], "--append-system-prompt is empty"),
    ] {
        let (code, said) = ground.run(&args, b"");
        assert_eq!(code, 42, "{said}");
        assert!(said.contains(says), "{said}");
    }
}

const SCHEMA: &str = r#"{"type": "object", "required": ["lines"], "properties": {"lines": {"type": "integer"}}}"#;

/// Only JSON that fits comes out, and the model may correct itself once.
#[test]
fn answers_fit_a_schema() {
    let ground = Ground::answering(&["It has {\"lines\": \"two\"}", "```json\n{ \"lines\": 2 }\n```"]);
    let (code, answer, said) = ground.answer(&["how many lines?", "--json-schema", SCHEMA], b"");
    assert_eq!((code, answer.as_str()), (0, "{\"lines\":2}\n"), "{said}");
    assert!(said.contains("asks once more: /lines: "), "{said}");
    let bodies: Vec<String> = ground.bodies().iter().map(Value::to_string).collect();
    assert_eq!(bodies.len(), 2);
    assert!(bodies[0].contains("must fit this JSON Schema") && bodies[1].contains("is not of type"), "{}", bodies[1]);
    // The object of -o json has the same.
    let ground = Ground::answering(&["{\"lines\": 3}"]);
    ground.write("schema.json", SCHEMA);
    let (_, object, _) = ground.answer(&["how many?", "--json-schema", "schema.json", "-o", "json"], b"");
    let object: Value = serde_json::from_str(&object).unwrap();
    assert_eq!(object["response"], "{\"lines\":3}", "{object}");
}

#[test]
fn an_answer_that_never_fits_has_its_own_exit_code() {
    let ground = Ground::answering(&["two"]);
    let (code, answer, said) = ground.answer(&["how many lines?", "--json-schema", SCHEMA], b"");
    assert_eq!((code, answer.as_str()), (57, ""), "{said}");
    assert!(said.contains("does not fit the schema: the answer is no JSON"), "{said}");
    assert_eq!(ground.model.asked().len(), 2);
    let (code, _, said) = ground.answer(&["how many lines?", "--json-schema", "gone.json"], b"");
    assert_eq!(code, 42, "{said}");
}

/// Each message of the user is a turn of one session; other events are passed over.
#[test]
fn events_on_stdin_are_prompts() {
    let ground = Ground::answering(&["first answer", "second answer"]);
    let events = concat!(
        r#"{"type":"message","role":"user","content":"one"}"#,
        "\n",
        r#"{"type":"agent_start"}"#,
        "\n",
        r#"{"type":"message","role":"user","content":[{"type":"text","text":"two"}]}"#,
        "\n",
    );
    let (code, answer, said) = ground.answer(&["--input-format", "events"], events.as_bytes());
    assert_eq!((code, answer.as_str()), (0, "first answer\nsecond answer\n"), "{said}");
    let bodies = ground.bodies();
    assert!(bodies[1]["contents"].to_string().contains("first answer"), "{}", bodies[1]);
    let ground = Ground::answering(&["yes"]);
    let (code, lines, said) = ground.answer(&["--input-format", "events", "-o", "events"], events.as_bytes());
    assert_eq!(code, 0, "{said}");
    assert_eq!(lines.matches(r#""type":"agent_end""#).count(), 2, "{lines}");
}

#[test]
fn what_is_no_event_ends_the_run() {
    let ground = Ground::new();
    let message: &[u8] = b"{\"type\":\"message\",\"role\":\"user\",\"content\":\"one\"}\nhello\n";
    let (code, _, said) = ground.answer(&["--input-format", "events"], message);
    assert_eq!(code, 42, "{said}");
    assert!(said.contains("line 2 of stdin is no event"), "{said}");
    for (args, stdin, says) in [
        (&["--input-format", "events"][..], &b""[..], "stdin has no message of the user"),
        (&["hello", "--input-format", "events"][..], message, "leave PROMPT out"),
        (&["--input-format", "events", "-o", "json"][..], message, "-o json is one object"),
    ] {
        let (code, _, said) = ground.answer(args, stdin);
        assert_eq!(code, 42, "{said}");
        assert!(said.contains(says), "{said}");
    }
}
