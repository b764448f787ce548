//! The chat without a terminal and without an agent: `scenarios/*.txt`, each with what comes of it below the bar.
//!
//! ```text
//! size 40x20         of the terminal; 80x24 otherwise
//! at 400             milliseconds
//! type TEXT          keys; \n is Enter, \e Escape, \t Tab, \x03 and the like a byte
//! before TEXT        the same, typed and not read before a question came up
//! open               the session is there; `open foreign`: of another agent, without steering
//! text … | {…}       a piece of the answer; another session/update
//! ask ID COMMAND     the agent wants to run that
//! fallback ID        the agent wants to go on with another model
//! propose ID TEXT    the agent wants to write that into notes.md, where `one` stands
//! edited TEXT        the editor left that of the proposal
//! late TEXT          words that came too late for the turn
//! withdraw ID        and does not any more
//! end {…}            the answer to the prompt; `end failed …`: an error
//! gone …             the agent is gone
//! show               here the screen is kept
//! ```
//! Effects are kept as they come, behind `→`.

use std::{fmt::Write, fs, path::Path, time::Duration};

use expect_test::expect_file;
use serde_json::{Value, json};

use super::{
    composer::Composer,
    effects::Effect,
    lower::{Draft, ProposedText},
    state::Chat,
};
use crate::cli::{
    client::keys::{KeyDecoder, KeyPress},
    render::{painter::Painter, text::Line},
};
use castor_base::question::{Choice, Field, FieldKind, Form};
use castor_client::{
    failure::Failure,
    opening::OpenedSession,
    questions::{Question, QuestionSubject},
};
use castor_wire::acp::client::{ClientEvent, read_text, read_value};

mod burst;
mod fuzz;

const BAR: &str = "\n=====\n";

struct Stage {
    chat: Chat,
    painter: Painter,
    terminal: vt100::Parser,
    size: (usize, usize),
    now: Duration,
    /// Ids of the questions, in their order.
    asked: Vec<String>,
    proposed: Option<ProposedText>,
    kept: String,
}

impl Stage {
    fn new(columns: usize, rows: usize) -> Self {
        Self {
            chat: Chat::new(Box::new(Composer::default()), "/w", true),
            painter: Painter::new(false),
            terminal: vt100::Parser::new(rows as u16, columns as u16, 0),
            size: (columns, rows),
            now: Duration::ZERO,
            asked: Vec::new(),
            proposed: None,
            kept: String::new(),
        }
    }

    fn act(&mut self, step: &str) {
        let (verb, rest) = step.split_once(' ').unwrap_or((step, ""));
        match verb {
            "at" => self.now = Duration::from_millis(rest.parse().unwrap()),
            "size" => self.resize(rest),
            "type" => keys(rest).iter().for_each(|it| self.chat.key(it, self.now)),
            "before" => keys(rest).iter().for_each(|it| self.chat.typed_before(it, self.now)),
            "first" => self.chat.submit_first(Draft { text: rest.to_owned(), files: Vec::new() }, self.now),
            "open" => self.open(rest != "foreign"),
            "text" => {
                let text = rest.replace("\\n", "\n");
                self.update(
                    &json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}),
                );
            }
            "ask" => self.ask(rest),
            "propose" => self.propose(rest),
            "fallback" => self.ask_for_fallback(rest),
            "edited" => {
                let proposed = self.proposed.take().unwrap();
                self.chat.answer_with_edit(&proposed, &rest.replace("\\n", "\n"), self.now);
            }
            "late" => self.chat.send_after_turn(rest.to_owned(), self.now),
            "withdraw" => {
                let at = self.asked.iter().position(|id| id == rest).unwrap();
                self.chat.withdraw(at as u64, self.now);
            }
            "end" => self.end(rest),
            "gone" => self.chat.end(rest, self.now),
            "show" => self.show(),
            _ if step.starts_with('{') => self.update(&serde_json::from_str(step).unwrap()),
            _ => panic!("{step}"),
        }
        self.chat.take_outdated();
        self.note_effects();
        self.draw();
    }

    fn note_effects(&mut self) {
        for it in self.chat.take_effects() {
            match it {
                Effect::Page(lines) => {
                    let text: Vec<String> = lines.iter().map(Line::text).collect();
                    writeln!(self.kept, "→ Page\n{}", text.join("\n")).unwrap();
                }
                Effect::EditProposal(it) => {
                    writeln!(self.kept, "→ {it:?}").unwrap();
                    self.proposed = Some(it);
                }
                Effect::Answer(number, answer) => {
                    writeln!(self.kept, "→ {}: {answer:?}", self.asked[number as usize]).unwrap();
                }
                Effect::Ask(it) => writeln!(self.kept, "→ {it:?}").unwrap(),
                it => writeln!(self.kept, "→ {it:?}").unwrap(),
            }
        }
    }

    fn open(&mut self, is_castor: bool) {
        let name = if is_castor { "castor" } else { "other" };
        let agent = json!({"agentInfo": {"name": name}, "_meta": {"steering": {"supported": is_castor}}});
        let agent = read_value(agent).unwrap();
        let modes = json!({"currentModeId": "default", "availableModes": [{"id": "default"}, {"id": "yolo"}]});
        let session = read_value(json!({"modes": modes})).unwrap();
        let opened = OpenedSession { id: "s1".to_owned(), agent, session, ..OpenedSession::default() };
        self.chat.opened(&opened, self.now);
    }

    fn update(&mut self, update: &Value) {
        self.chat.update("s1", &ClientEvent::read(update), self.now);
    }

    fn ask(&mut self, rest: &str) {
        let (id, command) = rest.split_once(' ').unwrap();
        let call = json!({"toolCallId": id, "title": command, "kind": "execute", "rawInput": {"command": command}});
        self.ask_about(id, call);
    }

    fn propose(&mut self, rest: &str) {
        let (id, text) = rest.split_once(' ').unwrap();
        let text = text.replace("\\n", "\n");
        let diff = json!({"type": "diff", "path": "/w/notes.md", "oldText": "one\n", "newText": text});
        let call = json!({"toolCallId": id, "title": "Writing to notes.md", "kind": "edit", "content": [diff],
            "rawInput": {"file_path": "notes.md", "content": text}});
        self.ask_about(id, call);
    }

    fn ask_for_fallback(&mut self, id: &str) {
        let options = [("retry_once", "Go on with the smaller one"), ("stop", "Stop")];
        let choice =
            |(value, title): (&str, &str)| Choice { value: value.into(), title: title.into(), description: None };
        let kind = FieldKind::Choice { options: options.map(choice).into() };
        let name = "choice".to_owned();
        let field = Field { name, title: None, description: None, required: true, kind, default: None };
        let message = "The model does not answer. Go on with another one?".to_owned();
        let form = Form { message: message.clone(), fields: vec![field] };
        self.put(id, QuestionSubject::Form { message, form });
    }

    fn ask_about(&mut self, id: &str, call: Value) {
        let options = json!([{"optionId": "allow_once", "name": "Allow once", "kind": "allow_once"},
            {"optionId": "reject_once", "name": "Reject", "kind": "reject_once"}]);
        let asked = read_value(json!({"toolCall": call, "options": options})).unwrap();
        self.put(id, QuestionSubject::Permission(asked));
    }

    fn put(&mut self, id: &str, about: QuestionSubject) {
        let number = self.asked.len() as u64;
        let question = Question { number, session: None, agent: None, call: Some(id.to_owned()), about };
        self.asked.push(id.to_owned());
        self.chat.ask(question, self.now);
    }

    fn end(&mut self, rest: &str) {
        let answer = match rest.strip_prefix("failed ") {
            Some(why) => Err(Failure::input(why)),
            None if rest == "cancelled" => Err(Failure::cancelled()),
            None => Ok(read_text(if rest.is_empty() { "{}" } else { rest }).unwrap()),
        };
        self.chat.prompted(answer, self.now);
    }

    fn resize(&mut self, size: &str) {
        let (columns, rows) = size.split_once('x').unwrap();
        self.size = (columns.parse().unwrap(), rows.parse().unwrap());
        self.terminal.screen_mut().set_size(self.size.1 as u16, self.size.0 as u16);
    }

    fn draw(&mut self) {
        let (width, height) = self.size;
        let frame = self.chat.draw(self.now, width, height);
        assert!(frame.live.len() < height.max(2), "{} rows of {height}", frame.live.len());
        assert!(frame.live.iter().all(|it| it.width() <= width), "{:?}", frame.live);
        assert!(frame.cursor.is_none_or(|it| it.0 < frame.live.len() && it.1 <= width), "{:?}", frame.cursor);
        let text = self.painter.draw_with_cursor(&frame.finished, frame.live, frame.cursor, width);
        self.terminal.process(text.as_bytes());
    }

    fn show(&mut self) {
        let rows: Vec<String> = self.terminal.screen().rows(0, 500).map(|it| it.trim_end().to_owned()).collect();
        let used = rows.iter().rposition(|it| !it.is_empty()).map_or(0, |it| it + 1);
        writeln!(self.kept, "--- {} ms\n{}", self.now.as_millis(), rows[..used].join("\n")).unwrap();
    }
}

/// Backslashes as in the list above.
fn keys(text: &str) -> Vec<KeyPress> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('\\') {
        bytes.extend(before.bytes());
        let (byte, length) = match behind.as_bytes().first() {
            Some(b'n') => (b'\r', 1),
            Some(b'e') => (0x1b, 1),
            Some(b't') => (b'\t', 1),
            Some(b'x') => (u8::from_str_radix(&behind[1..3], 16).unwrap(), 3),
            _ => panic!("{text}"),
        };
        bytes.push(byte);
        rest = &behind[length..];
    }
    bytes.extend(rest.bytes());
    let mut decoder = KeyDecoder::new(true);
    let mut keys = decoder.decode(&bytes);
    keys.extend(decoder.pause());
    keys
}

#[allow(clippy::disallowed_methods)]
fn check(path: &Path) {
    let file = fs::read_to_string(path).unwrap();
    let scenario = file.split(BAR).next().unwrap().trim_end();
    let mut stage = Stage::new(80, 24);
    scenario.lines().filter(|it| !it.is_empty() && !it.starts_with('#')).for_each(|it| stage.act(it));
    expect_file![path].assert_eq(&format!("{scenario}\n{BAR}{}", stage.kept));
}

#[test]
#[allow(clippy::disallowed_methods)]
fn scenarios_end_as_they_did() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli/chat/scenarios");
    let only = std::env::var("SCREEN").unwrap_or_default();
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 5, "{}", paths.len());
    paths.iter().filter(|it| it.to_string_lossy().contains(&only)).for_each(|it| check(it));
}
