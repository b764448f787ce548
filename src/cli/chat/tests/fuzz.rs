//! Random lives of the chat: keys, pastes, resizes, updates, questions and pickers, in any order. Whatever comes, nothing
//! panics, no line is wider than the screen, and the cursor stands on it.
//!
//! `CHAT_SECONDS` lets it go on for so long, `CHAT_SEED` plays one life again.

use std::{
    fmt::Write,
    panic::{AssertUnwindSafe, catch_unwind},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::super::{
    composer::Composer,
    lower::{AgentPhase, Draft, Key, News, Panel, SlashCommand},
    pickers::{
        options::{OptionPicker, OptionRow},
        rewind::{RewindPicker, RewindRow},
        sessions::{SessionPicker, SessionRow},
    },
    state::Chat,
};
use castor_client::{
    failure::Failure,
    opening::OpenedSession,
    questions::{Question, QuestionSubject},
};
use castor_wire::acp::client::{ClientEvent, PromptAnswer, read_value};

/// Steps of one life, and lives where no time is given.
const STEPS: usize = 300;
const LIVES: u64 = 40;
/// What is typed: letters, signs that mean something, wide and joined characters, marks, controls.
const TEXTS: &[&str] = &[
    "a",
    "b",
    " ",
    "x",
    "word ",
    "@",
    "@sr",
    "/",
    "/mo",
    "!",
    "#",
    "?",
    "\\",
    "\"",
    "日",
    "本語",
    "👩\u{200d}🚀",
    "🇩🇪",
    "e\u{301}",
    "\u{301}",
    "\u{200d}",
    "ﷺ",
    "\t",
    "\u{f0000}",
    "\u{202e}",
    "\u{7}",
    "لا",
    "1",
    "$",
    "^",
    "d",
    "w",
    "c",
    "y",
    "p",
    "i",
    "o",
    "u",
    "0",
    "G",
    "g",
    "f",
    "t",
    "r",
    ";",
];
const PASTES: &[&str] = &[
    "short",
    "two\nlines",
    "\n",
    "",
    "/tmp/a.png",
    "'/tmp/my shot.png' ./b.jpg",
    "a\r\nb\r\n",
    "\u{1b}[2J\u{1b}]0;t\u{7}x",
    "日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語",
    "l\nl\nl\nl\nl\nl\nl\nl\nl\nl\n",
];

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % n as u64).unwrap()
    }

    fn pick<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }

    fn text(&mut self) -> String {
        (0..self.below(12)).map(|_| self.pick(TEXTS)).collect()
    }

    fn key(&mut self) -> Key {
        let letter = |dice: &mut Self| char::from(b'a' + u8::try_from(dice.below(26)).unwrap());
        match self.below(40) {
            0..=11 => Key::Char(self.pick(TEXTS).chars().next().unwrap()),
            12..=14 => Key::Ctrl(letter(self)),
            15..=16 => Key::Alt(letter(self)),
            17 => Key::Paste(self.pick(PASTES).to_owned()),
            18 => Key::Paste(self.text().repeat(200)),
            19..=21 => Key::LineBreak,
            22..=23 => Key::Esc,
            it => [
                Key::Enter,
                Key::Tab,
                Key::BackTab,
                Key::Backspace,
                Key::Delete,
                Key::Up,
                Key::Down,
                Key::Left,
                Key::Right,
                Key::WordLeft,
                Key::WordRight,
                Key::Home,
                Key::End,
                Key::PageUp,
                Key::PageDown,
                Key::Ctrl('r'),
            ][it - 24]
                .clone(),
        }
    }
}

struct Life {
    dice: Dice,
    chat: Chat,
    size: (usize, usize),
    now: Duration,
    /// What was done, for the report.
    steps: Vec<String>,
}

impl Life {
    fn new(seed: u64) -> Self {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let composer = Composer::new(dice.below(3) == 0);
        let chat = Chat::new(Box::new(composer), "/w", true);
        Self { dice, chat, size: (80, 24), now: Duration::ZERO, steps: Vec::new() }
    }

    fn step(&mut self) {
        self.now += Duration::from_millis(self.dice.below(400) as u64);
        match self.dice.below(40) {
            0..=26 => {
                let key = self.dice.key();
                self.steps.push(format!("{key:?}"));
                self.chat.key(&key, self.now);
            }
            27..=28 => {
                self.size = (40 + self.dice.below(160), 2 + self.dice.below(58));
                self.steps.push(format!("{:?}", self.size));
            }
            29..=31 => self.news(),
            32..=35 => self.update(),
            36 => self.ask(),
            37 => self.open_picker(),
            38 => self.open_session(),
            _ => self.end_turn(),
        }
        self.chat.take_outdated();
        self.chat.take_effects();
        self.draw();
    }

    fn news(&mut self) {
        let texts: Vec<String> = (0..self.dice.below(30)).map(|_| self.dice.text()).collect();
        let news = match self.dice.below(7) {
            5 => News::Agent([AgentPhase::Idle, AgentPhase::Busy, AgentPhase::Gone][self.dice.below(3)]),
            0 => News::Files { query: String::new(), paths: texts },
            1 => News::History(texts),
            2 => News::Edited(texts.first().cloned()),
            3 => News::Castor(self.dice.below(2) == 0),
            4 => News::Draft(Draft { text: texts.join("\n"), files: vec!["/tmp/a.png".to_owned()] }),
            _ => News::Commands(
                texts
                    .into_iter()
                    .map(|it| SlashCommand { description: it.clone(), hint: Some(it.clone()), name: it })
                    .collect(),
            ),
        };
        self.steps.push(format!("{news:?}"));
        self.chat.tell(&news, self.now);
    }

    fn update(&mut self) {
        let (text, other) = (self.dice.text(), self.dice.text());
        let id = format!("c{}", self.dice.below(4));
        let status = self.dice.pick(&["pending", "in_progress", "completed", "failed"]);
        let update = match self.dice.below(8) {
            0..=2 => json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}),
            3 => json!({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": text}}),
            4 => json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": text, "kind": "execute",
                "rawInput": {"command": other}, "status": status}),
            5 => json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status, "content": [
                {"type": "diff", "path": text, "oldText": other, "newText": self.dice.text()},
                {"type": "content", "content": {"type": "text", "text": other}}]}),
            6 => json!({"sessionUpdate": "plan", "entries": [{"content": text, "status": status, "priority": "low"}]}),
            _ => {
                json!({"sessionUpdate": "usage_update", "used": 5, "size": 10, "cost": {"amount": 0.1, "currency": text}})
            }
        };
        self.steps.push(update.to_string());
        self.chat.update("s1", &ClientEvent::read(&update), self.now);
    }

    fn ask(&mut self) {
        let (number, command) = (self.dice.below(9) as u64, self.dice.text());
        let id = format!("q{number}");
        let options = json!([{"optionId": "allow_once", "name": self.dice.text(), "kind": "allow_once"},
            {"optionId": "reject_once", "name": "Reject", "kind": "reject_once"}]);
        let call = json!({"toolCallId": id, "title": command, "kind": "execute", "rawInput": {"command": command}});
        let asked = read_value(json!({"toolCall": call, "options": options})).unwrap();
        let about = QuestionSubject::Permission(asked);
        self.steps.push(format!("ask {id}"));
        self.chat.ask(Question { number, session: None, agent: None, call: Some(id), about }, self.now);
        if self.dice.below(4) == 0 {
            self.chat.withdraw(self.dice.below(9) as u64, self.now);
        }
    }

    fn open_picker(&mut self) {
        let count = self.dice.below(30);
        let texts: Vec<String> = (0..count).map(|_| self.dice.text()).collect();
        self.steps.push("picker".to_owned());
        let picker: Box<dyn Panel> = match self.dice.below(3) {
            0 => {
                let row = |it: String| SessionRow {
                    id: it.clone(),
                    title: it.clone(),
                    folder: "/w".to_owned(),
                    changed: "2026-11-26T09:12:00Z".parse().ok(),
                    preview: vec![it],
                };
                let now = "2026-11-26T22:00:00[UTC]".parse().unwrap();
                Box::new(SessionPicker::new(texts.into_iter().map(row).collect(), "/w", now))
            }
            1 => {
                let row = |it: String| RewindRow { prompt: it.clone(), text: it, files: Vec::new() };
                Box::new(RewindPicker::new(texts.into_iter().map(row).collect()))
            }
            _ => {
                let values: Vec<Value> =
                    texts.iter().map(|it| json!({"value": it, "name": it, "description": it})).collect();
                let option = json!({"id": "o", "name": self.dice.text(), "currentValue": "a", "options": values});
                let option = read_value(option).and_then(|it| OptionRow::of(&it));
                Box::new(OptionPicker::new(option.into_iter().collect()))
            }
        };
        self.chat.open_picker(picker);
    }

    fn open_session(&mut self) {
        let agent = json!({"agentInfo": {"name": "castor"}, "_meta": {"steering": {"supported": true}}});
        let agent = read_value(agent).unwrap();
        let session = json!({"modes": {"currentModeId": "a", "availableModes": [{"id": "a"}, {"id": "b"}]}});
        let session = read_value(session).unwrap();
        let opened = OpenedSession { id: "s1".to_owned(), agent, session, ..OpenedSession::default() };
        self.steps.push("open".to_owned());
        if !self.chat.is_working() {
            self.chat.opened(&opened, self.now);
        }
    }

    fn end_turn(&mut self) {
        self.steps.push("end".to_owned());
        if self.chat.is_working() {
            let answer = if self.dice.below(3) == 0 {
                Err(Failure::input(self.dice.text()))
            } else {
                Ok(PromptAnswer::default())
            };
            self.chat.prompted(answer, self.now);
        }
    }

    fn draw(&mut self) {
        let (width, height) = self.size;
        let frame = self.chat.draw(self.now, width, height);
        for it in frame.finished.iter().chain(&frame.live) {
            assert!(it.width() <= width, "{} columns of {width}: {:?}", it.width(), it.text());
        }
        assert!(frame.live.len() < height.max(2), "{} rows of {height}", frame.live.len());
        if let Some((row, column)) = frame.cursor {
            assert!(row < frame.live.len() && column < width, "the cursor is at {row}, {column} of {width}");
        }
    }
}

fn live(seed: u64) {
    let mut life = Life::new(seed);
    let end = catch_unwind(AssertUnwindSafe(|| (0..STEPS).for_each(|_| life.step())));
    if end.is_err() {
        let mut last = String::new();
        let first = life.steps.len().saturating_sub(30);
        life.steps[first..].iter().for_each(|it| writeln!(last, "  {it}").unwrap());
        panic!("CHAT_SEED={seed}, {} steps; the last:\n{last}", life.steps.len());
    }
}

#[test]
#[allow(clippy::disallowed_methods)]
fn no_key_and_no_update_breaks_the_chat() {
    let number = |name: &str| std::env::var(name).ok().and_then(|it| it.parse::<u64>().ok());
    if let Some(seed) = number("CHAT_SEED") {
        return live(seed);
    }
    let (started, limit) = (Instant::now(), number("CHAT_SECONDS").map(Duration::from_secs));
    let mut seed = 0;
    while limit.map_or(seed < LIVES, |it| started.elapsed() < it) {
        seed += 1;
        live(seed);
    }
    println!("{seed} lives of {STEPS} steps");
}
