//! What a turn costs on a database beside files: medians of turns that take their turns. `TURNS=2000` measures better, and
//! `CASTOR_BIN` names another binary, such as an optimized one.

use std::{
    io::Write,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{database, prompt, sandbox};
use crate::{
    client::{Client, Sandbox},
    kill9::chunk,
};

const N_TURNS: usize = 30;
const N_CHUNKS: usize = 20;

/// A client with a session, and how long its turns took.
struct Measured {
    client: Client,
    /// Its folders go with it.
    _sandbox: Sandbox,
    session: String,
    took: Vec<Duration>,
}

impl Measured {
    fn start(url: &str, answers: Vec<Vec<Value>>) -> Self {
        let mut sandbox: Sandbox = sandbox(url, answers);
        sandbox.write("ws/notes.txt", "one\ntwo\n");
        if let Some(it) = std::env::var_os("CASTOR_BIN") {
            sandbox.program = it;
        }
        let mut client = super::start(&sandbox);
        let session = client.new_session(&sandbox.workspace()).unwrap();
        Self { client, _sandbox: sandbox, session, took: Vec::new() }
    }

    fn turn(&mut self) {
        let begun = Instant::now();
        let (answer, told) = self.client.call("session/prompt", prompt(&self.session, "go")).unwrap();
        self.took.push(begun.elapsed());
        assert!(!json!(told).to_string().contains("\"failed\""), "{told:?}");
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    }

    /// The median, and the slowest of a hundred.
    fn figures(mut self) -> [Duration; 2] {
        self.client.end().unwrap();
        self.took.sort();
        [self.took[self.took.len() / 2], self.took[self.took.len() * 99 / 100]]
    }
}

#[test]
fn a_turn_beside_files() {
    let Some(url) = database() else { return };
    let n_turns = std::env::var("TURNS").map_or(N_TURNS, |it| it.parse().unwrap());
    let words = || (0..N_CHUNKS).map(|it| chunk(json!({"text": format!("word {it} ")}))).collect::<Vec<_>>();
    let read = || vec![chunk(json!({"functionCall": {"name": "read_file", "args": {"file_path": "notes.txt"}}}))];
    let kinds: [(&str, Vec<Vec<Value>>); 2] = [("words", vec![words()]), ("a call", vec![read(), words()])];
    for (what, answers) in kinds {
        let all = || std::iter::repeat_n(answers.clone(), n_turns).flatten().collect::<Vec<_>>();
        let [mut files, mut shared] = ["files", url.as_str()].map(|it| Measured::start(it, all()));
        for _ in 0..n_turns {
            files.turn();
            shared.turn();
        }
        let ([files, files_99], [shared, shared_99]) = (files.figures(), shared.figures());
        let more = shared.saturating_sub(files);
        let text = format!(
            "a turn of {what}: files {files:.2?} (99 %: {files_99:.2?}), Postgres {shared:.2?} (99 %: {shared_99:.2?}), \
             {more:.2?} more; median of {n_turns}"
        );
        _ = writeln!(std::io::stderr(), "{text}");
    }
}
