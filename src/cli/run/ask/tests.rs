//! Questions on a terminal: keys in; scrollback, panel and answers out. The scenarios are in `scenarios`.

use std::{fmt::Write, time::Duration};

use expect_test::expect_file;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{Keyboard, TerminalAsker};
use crate::cli::client::{
    key_input::{KeyInput, Typed},
    terminal::TypedBytes,
};
use castor_base::elicitation::ElicitationRequest;
use castor_client::{
    Conversation,
    call::Call,
    questions::{Answer, Question, QuestionSubject},
};
use castor_wire::{acp::client::read_value, elicitation::parse};

const LASTING: &[(&str, &str)] = &[
    ("allow_session", "Allow edits of files in the workspace for this session"),
    ("allow_always_save", "Allow write_file of this file in future sessions, too"),
    ("allow_auto", "Allow this, and all that is confined (mode auto)"),
];

fn permission(params: Value) -> QuestionSubject {
    QuestionSubject::Permission(read_value(params).unwrap())
}

/// A terminal with single keys, and what is seen on it.
struct Desk {
    asker: TerminalAsker,
    typed: mpsc::Sender<TypedBytes>,
    n_asked: u64,
    width: usize,
}

impl Desk {
    fn new() -> Self {
        let (typed, keys) = mpsc::channel(64);
        let asker = TerminalAsker::new(Keyboard::Keys(KeyInput::new(keys, None)), "/w");
        Self { asker, typed, n_asked: 0, width: 80 }
    }

    fn step(&mut self, step: &str) {
        let (verb, rest) = step.split_once(' ').unwrap_or((step, ""));
        match verb {
            "columns" => self.width = rest.parse().unwrap(),
            "command" => {
                let command = rest.replace("\\n", "\n");
                self.approve(&json!({"title": command, "rawInput": {"command": command}}), &[]);
            }
            "call" => self.approve(&serde_json::from_str(rest).unwrap(), &[]),
            "session" => self.approve(&serde_json::from_str(rest).unwrap(), LASTING),
            "steer" => self.asker.listen(true),
            "ask" => {
                self.ask(permission(serde_json::from_str(rest).unwrap()));
            }
            "form" => match parse(&serde_json::from_str(rest).unwrap()).unwrap() {
                ElicitationRequest::Form(form) => {
                    self.ask(QuestionSubject::Form { message: form.message.clone(), form });
                }
                ElicitationRequest::Page { message, url, id } => {
                    let renews = id == "renews";
                    self.ask(QuestionSubject::Page { message, url, renews });
                }
            },
            "withdraw" => _ = self.asker.withdraw(rest.parse().unwrap()),
            "cancel" => self.asker.cancel_all(),
            // Typed, and not looked at before the next step.
            "early" => self.typed.try_send(self.bytes(rest)).unwrap(),
            // Read before the present question came up, and delivered after.
            "late" => {
                let bytes = TypedBytes { discards: 0, ..self.bytes(rest) };
                self.asker.answer(Typed::Bytes(bytes));
            }
            "keys" => {
                let bytes = self.bytes(rest);
                self.asker.answer(Typed::Bytes(bytes));
                let pause = TypedBytes { is_pause: true, ..self.bytes("") };
                self.asker.answer(Typed::Bytes(pause));
            }
            other => panic!("{other}"),
        }
    }

    fn ask(&mut self, about: QuestionSubject) {
        self.n_asked += 1;
        let question = Question { number: self.n_asked, session: None, agent: None, call: None, about };
        let call = question.note_in(&mut Conversation::default(), Duration::ZERO);
        self.asker.ask(question, &call);
    }

    fn bytes(&self, text: &str) -> TypedBytes {
        let Keyboard::Keys(input) = &self.asker.typing else { panic!("no keys") };
        let text = text.replace("ESC", "\u{1b}").replace("UP", "\u{1b}[A").replace("DOWN", "\u{1b}[B");
        let bytes = text.replace("ENTER", "\n").replace("SPACE", " ").replace("BACK", "\u{7f}").into_bytes();
        TypedBytes { discards: input.discards, bytes, is_pause: false }
    }

    /// As castor asks about a call.
    fn approve(&mut self, call: &Value, lasting: &[(&str, &str)]) {
        let mut options = vec![json!({"optionId": "allow_once", "name": "Allow", "kind": "allow_once"})];
        let lasting = lasting.iter().map(|(id, name)| json!({"optionId": id, "name": name, "kind": "allow_always"}));
        options.extend(lasting);
        options.push(json!({"optionId": "reject_once", "name": "Reject", "kind": "reject_once"}));
        self.ask(permission(json!({"toolCall": call, "options": options})));
    }

    fn show(&mut self) -> String {
        let mut seen = String::new();
        for it in self.asker.take_lines() {
            _ = writeln!(seen, "{}", it.text().trim_end());
        }
        for it in self.asker.panel(self.width) {
            assert!(it.width() <= self.width, "{}", it.text());
            _ = writeln!(seen, "    | {}", it.text().trim_end());
        }
        for (number, answer) in self.asker.take_answers() {
            _ = writeln!(seen, "=> {number} {answer:?}");
        }
        for it in self.asker.take_steering() {
            _ = writeln!(seen, "=> to the agent: {it}");
        }
        seen
    }
}

/// Plays a file: `#` names a scenario with a new desk, `>` is a step, all else is what was seen.
fn check(name: &str) {
    let file = expect_file![format!("scenarios/{name}.txt")];
    let (mut desk, mut seen) = (Desk::new(), String::new());
    for line in file.data().lines() {
        if line.starts_with('#') {
            desk = Desk::new();
        } else if let Some(step) = line.strip_prefix("> ") {
            desk.step(step);
        } else {
            continue;
        }
        seen += &format!("{line}\n{}", desk.show());
    }
    file.assert_eq(&seen);
}

#[test]
fn keys_answer() {
    check("keys");
}

#[test]
fn subjects_are_shown_whole_and_once() {
    check("subjects");
}

#[test]
fn a_no_can_say_why() {
    check("reasons");
}

#[test]
fn nothing_answers_another_question() {
    check("queue");
}

#[test]
fn forms_are_filled_by_keys() {
    check("forms");
}

mod without_keys {
    use super::*;

    fn options() -> Value {
        json!({"options": [
            {"optionId": "once", "name": "Allow once", "kind": "allow_once"},
            {"optionId": "ever", "name": "Always", "kind": "allow_always"},
            {"optionId": "no", "name": "Reject", "kind": "reject_once"},
        ]})
    }

    fn call(told: Value) -> Call {
        Conversation::default().asked_call("", &read_value(told).unwrap())
    }

    fn question(number: u64, params: Value) -> Question {
        Question { number, session: None, agent: None, call: None, about: permission(params) }
    }

    fn typed(line: &str) -> Typed {
        Typed::Line(line.to_owned())
    }

    #[test]
    fn without_a_terminal_it_is_a_narrow_no() {
        let mut asker = TerminalAsker::new(Keyboard::Nobody, "/w");
        for (params, expected) in [
            (options(), Answer::Selected("no".into())),
            (json!({"options": [{"optionId": "x", "kind": "reject_always"}]}), Answer::Cancelled),
            (json!({"options": [{"optionId": "x", "kind": "perhaps"}]}), Answer::Cancelled),
            (json!({}), Answer::Cancelled),
        ] {
            asker.ask(question(1, params), &call(json!({})));
            assert_eq!(asker.take_answers(), [(1, expected)]);
        }
    }

    #[test]
    fn questions_wait_for_their_turn() {
        let (_keep, lines) = mpsc::channel(1);
        let mut asker = TerminalAsker::new(Keyboard::Lines(lines), "/w");
        let shown = asker.ask(
            question(1, options()),
            &call(
                json!({"title": "A", "content": [{"type": "content", "content": {"type": "text", "text": "danger"}}]}),
            ),
        );
        assert_eq!(shown, "? A\n  danger\n  y) Allow once\n  a) Always\n  n) Reject\n  y, a, n: ");
        assert_eq!(asker.ask(question(2, options()), &call(json!({"title": "B"}))), "");
        assert_eq!(asker.ask(question(3, options()), &call(json!({"title": "C"}))), "");
        let menu = "  y) Allow once\n  a) Always\n  n) Reject\n  y, a, n: ";
        let again = asker.answer(typed("9"));
        assert_eq!(again, format!("  That is none of the answers; ? explains them.\n{menu}"));
        let help = asker.answer(typed("?"));
        assert!(help.starts_with("  Type the letter") && help.ends_with(menu), "{help}");
        assert_eq!(asker.take_answers(), []);
        assert!(asker.answer(typed(" Yes ")).starts_with("? B"));
        assert_eq!(asker.take_answers(), [(1, Answer::Selected("once".into()))]);
        assert!(asker.withdraw(2).contains("? C"));
        assert_eq!(asker.take_answers(), [(2, Answer::Withdrawn)]);
        assert_eq!(asker.withdraw(4), "");
        assert_eq!(asker.answer(Typed::End), "");
        assert_eq!(asker.take_answers(), [(3, Answer::Cancelled)]);
        assert!(asker.panel(80).is_empty() && asker.take_lines().is_empty());
    }

    #[test]
    fn keys_before_a_question_do_not_answer_it() {
        let (to, lines) = mpsc::channel(4);
        let mut asker = TerminalAsker::new(Keyboard::Lines(lines), "/w");
        to.try_send("y".into()).unwrap();
        asker.ask(question(1, options()), &call(json!({})));
        assert!(matches!(&mut asker.typing, Keyboard::Lines(it) if it.is_empty()));
        assert_eq!(asker.take_steering(), [""; 0]);
    }

    #[test]
    fn keys_without_a_question_go_to_the_agent() {
        let (to, lines) = mpsc::channel(4);
        let mut asker = TerminalAsker::new(Keyboard::Lines(lines), "/w");
        asker.listen(true);
        assert_eq!(asker.answer(typed("use tabs")), "");
        // It was on its way when the question came up.
        to.try_send("y".into()).unwrap();
        asker.ask(question(1, options()), &call(json!({})));
        assert_eq!((asker.take_steering(), asker.take_answers()), (vec!["use tabs".to_owned(), "y".into()], vec![]));
        asker.answer(typed("y"));
        assert_eq!(asker.take_answers(), [(1, Answer::Selected("once".into()))]);
        assert_eq!(asker.take_steering(), [""; 0], "an answer is nothing else");
    }
}
