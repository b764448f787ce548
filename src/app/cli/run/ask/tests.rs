//! Questions on a terminal: keys in; scrollback, panel and answers out.

use std::fmt::Write;

use expect_test::{Expect, expect};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::{KeyInput, Keyboard, TerminalAsker, Typed};
use crate::{
    app::cli::run::{
        client_requests::{Answer, Question, QuestionSubject},
        terminal::TypedBytes,
    },
    base::elicitation::ElicitationRequest,
    world::mcp::elicitation::parse,
};

/// A terminal with single keys, and what is seen on it.
struct Desk {
    asker: TerminalAsker,
    typed: mpsc::Sender<TypedBytes>,
    open: Vec<(String, oneshot::Receiver<Answer>)>,
    seen: String,
    width: usize,
}

impl Desk {
    fn new(width: usize) -> Self {
        let (typed, keys) = mpsc::channel(64);
        let asker = TerminalAsker::new(Keyboard::Keys(KeyInput::new(keys, None)), "/w");
        Self { asker, typed, open: Vec::new(), seen: String::new(), width }
    }

    fn step(&mut self, step: &str) {
        let (verb, rest) = step.split_once(' ').unwrap_or((step, ""));
        match verb {
            "steer" => self.asker.listen(true),
            "ask" => {
                let params: Value = serde_json::from_str(rest).unwrap();
                let call = params["toolCall"].clone();
                self.ask(QuestionSubject::Permission(params), &call);
            }
            "form" => match parse(&serde_json::from_str(rest).unwrap()).unwrap() {
                ElicitationRequest::Form(form) => {
                    self.ask(QuestionSubject::Form { message: form.message.clone(), form }, &Value::Null);
                }
                ElicitationRequest::Page { message, url, .. } => {
                    self.ask(QuestionSubject::Page { message, url }, &Value::Null);
                }
            },
            "withdraw" => _ = self.asker.withdraw(rest),
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

    fn ask(&mut self, about: QuestionSubject, call: &Value) {
        let (answer, settled) = oneshot::channel();
        let request = (self.open.len() + 1).to_string();
        self.open.push((request.clone(), settled));
        self.asker.ask(Question { request, about, answer }, call);
    }

    fn bytes(&self, text: &str) -> TypedBytes {
        let Keyboard::Keys(input) = &self.asker.typing else { panic!("no keys") };
        let text = text.replace("ESC", "\u{1b}").replace("UP", "\u{1b}[A").replace("DOWN", "\u{1b}[B");
        let bytes = text.replace("ENTER", "\n").replace("SPACE", " ").replace("BACK", "\u{7f}").into_bytes();
        TypedBytes { discards: input.discards, bytes, is_pause: false }
    }

    fn show(&mut self) {
        let width = self.width;
        for it in self.asker.take_lines() {
            _ = writeln!(self.seen, "{}", it.text().trim_end());
        }
        for it in self.asker.panel(width) {
            assert!(it.width() <= width, "{}", it.text());
            _ = writeln!(self.seen, "    | {}", it.text().trim_end());
        }
        for (request, settled) in &mut self.open {
            if let Ok(it) = settled.try_recv() {
                _ = writeln!(self.seen, "=> {request} {it:?}");
            }
        }
        for it in self.asker.take_steering() {
            _ = writeln!(self.seen, "=> to the agent: {it}");
        }
    }
}

fn check(script: &str, expected: Expect) {
    check_at(80, script, expected);
}

fn check_at(width: usize, script: &str, expected: Expect) {
    let mut desk = Desk::new(width);
    for step in script.lines().map(str::trim).filter(|it| !it.is_empty()) {
        let shown: String = step.chars().take(40).collect();
        _ = writeln!(desk.seen, "> {}", if step.starts_with("keys") { step } else { &shown });
        desk.step(step);
        desk.show();
    }
    expected.assert_eq(&desk.seen);
}

fn permission(call: Value) -> String {
    let options = json!([
        {"optionId": "allow_once", "name": "Allow", "kind": "allow_once"},
        {"optionId": "allow_session", "name": "Allow edits of files in the workspace for this session", "kind": "allow_always"},
        {"optionId": "allow_always_save", "name": "Allow write_file of this file in future sessions, too", "kind": "allow_always"},
        {"optionId": "allow_auto", "name": "Allow this, and all that is confined (mode auto)", "kind": "allow_always"},
        {"optionId": "reject_once", "name": "Reject", "kind": "reject_once"},
    ]);
    format!("ask {}", json!({"toolCall": call, "options": options}))
}

fn narrow(call: Value) -> String {
    let options = json!([
        {"optionId": "allow_once", "name": "Allow", "kind": "allow_once"},
        {"optionId": "reject_once", "name": "Reject", "kind": "reject_once"},
    ]);
    format!("ask {}", json!({"toolCall": call, "options": options}))
}

fn command(command: &str) -> Value {
    json!({"title": command, "rawInput": {"command": command}})
}

fn because(why: &str, mut call: Value) -> Value {
    call["content"] = json!([{"type": "content", "content": {"type": "text", "text": why}}]);
    call
}

#[test]
fn a_command_is_allowed_by_one_key() {
    let call = because("its output goes outside the workspace: ~/notes", command("echo x > ~/notes"));
    check(
        &format!("{}\nkeys q\nkeys y", permission(call)),
        expect![[r#"
        > ask {"toolCall":{"title":"echo x > ~/not
        ? echo x > ~/notes
            |   its output goes outside the workspace: ~/notes
            |   y  Allow
            |   a  Allow edits of files in the workspace for this session
            |   s  Allow write_file of this file in future sessions, too
            |   m  Allow this, and all that is confined (mode auto)
            | › n  Reject
            |   esc no · ? keys
        > keys q
            |   its output goes outside the workspace: ~/notes
            |   y  Allow
            |   a  Allow edits of files in the workspace for this session
            |   s  Allow write_file of this file in future sessions, too
            |   m  Allow this, and all that is confined (mode auto)
            | › n  Reject
            |   esc no · ? keys
        > keys y
        ? echo x > ~/notes  allowed once
        => 1 Selected("allow_once")
    "#]],
    );
}

#[test]
fn enter_takes_the_safe_option_until_an_arrow_moves() {
    let call = narrow(command("git push --force"));
    check(
        &format!("{call}\nkeys ENTER"),
        expect![[r#"
        > ask {"toolCall":{"title":"git push --for
        ? git push --force
            |   y  Allow
            | › n  Reject
            |   esc no · ? keys
        > keys ENTER
        ? git push --force  rejected
        => 1 Selected("reject_once")
    "#]],
    );
    check(
        &format!("{call}\nkeys UP\nkeys ENTER"),
        expect![[r#"
        > ask {"toolCall":{"title":"git push --for
        ? git push --force
            |   y  Allow
            | › n  Reject
            |   esc no · ? keys
        > keys UP
            | › y  Allow
            |   n  Reject
            |   esc no · ? keys
        > keys ENTER
        ? git push --force  allowed once
        => 1 Selected("allow_once")
    "#]],
    );
    check(
        &format!("{call}\nkeys ESC"),
        expect![[r#"
        > ask {"toolCall":{"title":"git push --for
        ? git push --force
            |   y  Allow
            | › n  Reject
            |   esc no · ? keys
        > keys ESC
        ? git push --force  rejected
        => 1 Selected("reject_once")
    "#]],
    );
}

#[test]
fn nothing_is_marked_where_nothing_is_safe() {
    let ask = r#"ask {"toolCall":{"title":"deploy"},"options":[{"optionId":"x","name":"Always","kind":"allow_always"},{"optionId":"z","name":"Never","kind":"reject_always"}]}"#;
    check(
        &format!("{ask}\nkeys ENTER\nkeys ESC"),
        expect![[r#"
        > ask {"toolCall":{"title":"deploy"},"opti
        ? deploy
            |   a  Always
            |   x  Never
            |   esc no · ? keys
        > keys ENTER
            |   a  Always
            |   x  Never
            |   esc no · ? keys
        > keys ESC
        ? deploy  rejected
        => 1 Cancelled
    "#]],
    );
}

#[test]
fn each_option_has_a_key_and_a_digit() {
    let call = permission(command("touch a"));
    for (key, expected) in [
        (
            "a",
            expect![[r#"
            ? touch a  allowed for this session
            => 1 Selected("allow_session")
        "#]],
        ),
        (
            "s",
            expect![[r#"
            ? touch a  allowed for this and future sessions
            => 1 Selected("allow_always_save")
        "#]],
        ),
        (
            "M",
            expect![[r#"
            ? touch a  allowed; the mode is auto now
            => 1 Selected("allow_auto")
        "#]],
        ),
        (
            "5",
            expect![[r#"
            ? touch a  rejected
            => 1 Selected("reject_once")
        "#]],
        ),
        (
            "6",
            expect![[r#"
                |   y  Allow
                |   a  Allow edits of files in the workspace for this session
                |   s  Allow write_file of this file in future sessions, too
                |   m  Allow this, and all that is confined (mode auto)
                | › n  Reject
                |   esc no · ? keys
        "#]],
        ),
    ] {
        let mut desk = Desk::new(80);
        desk.step(&call);
        desk.show();
        desk.seen.clear();
        desk.step(&format!("keys {key}"));
        desk.show();
        expected.assert_eq(&desk.seen);
    }
}

#[test]
fn a_command_of_several_lines_is_shown_once() {
    check_at(
        40,
        &narrow(command("set -e\nmake a-target-with-a-name-that-is-longer-than-the-screen\nls")),
        expect![[r#"
        > ask {"toolCall":{"title":"set -e\nmake a
        ? set -e
          make a-target-with-a-name-that-is-longer-than-the-screen
          ls
            |   y  Allow
            | › n  Reject
            |   esc no · ? keys
    "#]],
    );
    let call = json!({"title": "clean up", "rawInput": {"command": "rm -rf build\nls"}});
    check(
        &narrow(call),
        expect![[r#"
        > ask {"toolCall":{"title":"clean up","raw
        ? clean up
          $ rm -rf build
          $ ls
            |   y  Allow
            | › n  Reject
            |   esc no · ? keys
    "#]],
    );
}

#[test]
fn an_edit_shows_its_diff() {
    let diff = json!({"title": "calc.py: a - b => a + b", "content": [
        {"type": "diff", "path": "/w/src/calc.py", "oldText": "one\na - b\n", "newText": "one\na\u{1b}[2J + b\n"},
    ]});
    check(
        &format!("{}\nkeys a", permission(diff)),
        expect![[r#"
        > ask {"toolCall":{"title":"calc.py: a - b
        ? edit src/calc.py  +1 −1
          1   one
          2 - a - b
          2 + a[2J + b
            |   y  Allow
            |   a  Allow edits of files in the workspace for this session
            |   s  Allow write_file of this file in future sessions, too
            |   m  Allow this, and all that is confined (mode auto)
            | › n  Reject
            |   esc no · ? keys
        > keys a
        ? edit src/calc.py  allowed for this session
        => 1 Selected("allow_session")
    "#]],
    );
}

#[test]
fn a_long_diff_is_cut_and_shown_whole_on_demand() {
    let text: String = (1..=30).map(|it| format!("line {it}\n")).collect();
    let diff =
        json!({"title": "Writing to new.txt", "content": [{"type": "diff", "path": "/w/new.txt", "newText": text}]});
    check(
        &format!("{}\nkeys d\nkeys d\nkeys y", narrow(diff)),
        expect![[r#"
        > ask {"toolCall":{"title":"Writing to new
        ? create new.txt  +30 −0
           1 + line 1
           2 + line 2
           3 + line 3
           4 + line 4
           5 + line 5
           6 + line 6
           7 + line 7
           8 + line 8
           9 + line 9
          10 + line 10
          11 + line 11
          12 + line 12
          13 + line 13
          14 + line 14
          15 + line 15
          16 + line 16
          17 + line 17
          18 + line 18
          19 + line 19
          20 + line 20
          … 10 more lines
            |   y  Allow
            | › n  Reject
            |   esc no · d shows all · ? keys
        > keys d
           1 + line 1
           2 + line 2
           3 + line 3
           4 + line 4
           5 + line 5
           6 + line 6
           7 + line 7
           8 + line 8
           9 + line 9
          10 + line 10
          11 + line 11
          12 + line 12
          13 + line 13
          14 + line 14
          15 + line 15
          16 + line 16
          17 + line 17
          18 + line 18
          19 + line 19
          20 + line 20
          21 + line 21
          22 + line 22
          23 + line 23
          24 + line 24
          25 + line 25
          26 + line 26
          27 + line 27
          28 + line 28
          29 + line 29
          30 + line 30
            | ? create new.txt
            |   y  Allow
            | › n  Reject
            |   esc no · ? keys
        > keys d
            | ? create new.txt
            |   y  Allow
            | › n  Reject
            |   esc no · ? keys
        > keys y
        ? create new.txt  allowed once
        => 1 Selected("allow_once")
    "#]],
    );
}

#[test]
fn a_no_can_say_why() {
    let ask = narrow(command("rm -rf src"));
    check(
        &format!("steer\n{ask}\nkeys w\nkeys use trashxBACK\nkeys ENTER"),
        expect![[r#"
        > steer
        > ask {"toolCall":{"title":"rm -rf src","r
        ? rm -rf src
            |   y  Allow
            | › n  Reject
            |   w  Reject, and say why
            |   esc no · ? keys
        > keys w
            |   no, because ›
            |   enter answers no and tells the agent why · esc goes back
        > keys use trashxBACK
            |   no, because › use trash
            |   enter answers no and tells the agent why · esc goes back
        > keys ENTER
        ? rm -rf src  rejected: use trash
        => 1 Selected("reject_once")
        => to the agent: use trash
    "#]],
    );
    check(
        &format!("steer\n{ask}\nkeys w\nkeys ESC\nkeys y"),
        expect![[r#"
        > steer
        > ask {"toolCall":{"title":"rm -rf src","r
        ? rm -rf src
            |   y  Allow
            | › n  Reject
            |   w  Reject, and say why
            |   esc no · ? keys
        > keys w
            |   no, because ›
            |   enter answers no and tells the agent why · esc goes back
        > keys ESC
            |   y  Allow
            | › n  Reject
            |   w  Reject, and say why
            |   esc no · ? keys
        > keys y
        ? rm -rf src  allowed once
        => 1 Selected("allow_once")
    "#]],
    );
    check(
        &format!("steer\n{ask}\nkeys w\nkeys ENTER"),
        expect![[r#"
        > steer
        > ask {"toolCall":{"title":"rm -rf src","r
        ? rm -rf src
            |   y  Allow
            | › n  Reject
            |   w  Reject, and say why
            |   esc no · ? keys
        > keys w
            |   no, because ›
            |   enter answers no and tells the agent why · esc goes back
        > keys ENTER
        ? rm -rf src  rejected
        => 1 Selected("reject_once")
    "#]],
    );
    // This agent takes no words.
    check(
        &format!("{ask}\nkeys w"),
        expect![[r#"
        > ask {"toolCall":{"title":"rm -rf src","r
        ? rm -rf src
            |   y  Allow
            | › n  Reject
            |   esc no · ? keys
        > keys w
            |   y  Allow
            | › n  Reject
            |   esc no · ? keys
    "#]],
    );
}

#[test]
fn help_explains_the_keys() {
    check(
        &format!("{}\nkeys ?\nkeys ?", narrow(command("ls"))),
        expect![[r#"
        > ask {"toolCall":{"title":"ls","rawInput"
        ? ls
            |   y  Allow
            | › n  Reject
            |   esc no · ? keys
        > keys ?
            |   y  Allow
            | › n  Reject
            |   A letter or a digit answers at once. Arrows move, and enter takes the marked
            |   option.
            |   Esc says no. Ctrl-C cancels the turn.
            |   What was typed before a question appears never answers it.
            |   esc no · ? keys
        > keys ?
            |   y  Allow
            | › n  Reject
            |   esc no · ? keys
    "#]],
    );
}

#[test]
fn questions_wait_for_their_turn() {
    let [a, b, c] = ["a", "b", "c"].map(|it| narrow(command(it)));
    check(
        &format!("{a}\n{b}\n{c}\nkeys y\nwithdraw 2\nkeys n"),
        expect![[r#"
        > ask {"toolCall":{"title":"a","rawInput":
        ? a
            |   y  Allow
            | › n  Reject
            |   esc no · ? keys
        > ask {"toolCall":{"title":"b","rawInput":
            |   y  Allow
            | › n  Reject
            |   1 of 2 · esc no · ? keys
        > ask {"toolCall":{"title":"c","rawInput":
            |   y  Allow
            | › n  Reject
            |   1 of 3 · esc no · ? keys
        > keys y
        ? a  allowed once
        ? b
            |   y  Allow
            | › n  Reject
            |   2 of 3 · esc no · ? keys
        => 1 Selected("allow_once")
        > withdraw 2
        ? b  no longer asked
        ? c
            |   y  Allow
            | › n  Reject
            |   3 of 3 · esc no · ? keys
        => 2 Withdrawn
        > keys n
        ? c  rejected
        => 3 Selected("reject_once")
    "#]],
    );
    check(
        &format!("{a}\n{b}\ncancel"),
        expect![[r#"
        > ask {"toolCall":{"title":"a","rawInput":
        ? a
            |   y  Allow
            | › n  Reject
            |   esc no · ? keys
        > ask {"toolCall":{"title":"b","rawInput":
            |   y  Allow
            | › n  Reject
            |   1 of 2 · esc no · ? keys
        > cancel
        ? a  cancelled
        => 1 Cancelled
        => 2 Cancelled
    "#]],
    );
}

#[test]
fn two_questions_share_no_keystroke() {
    let [a, b] = ["a", "b"].map(|it| narrow(command(it)));
    check(
        &format!("{a}\n{b}\nkeys yy\nlate y\nkeys n"),
        expect![[r#"
        > ask {"toolCall":{"title":"a","rawInput":
        ? a
            |   y  Allow
            | › n  Reject
            |   esc no · ? keys
        > ask {"toolCall":{"title":"b","rawInput":
            |   y  Allow
            | › n  Reject
            |   1 of 2 · esc no · ? keys
        > keys yy
        ? a  allowed once
        ? b
            |   y  Allow
            | › n  Reject
            |   2 of 2 · esc no · ? keys
        => 1 Selected("allow_once")
        > late y
            |   y  Allow
            | › n  Reject
            |   2 of 2 · esc no · ? keys
        > keys n
        ? b  rejected
        => 2 Selected("reject_once")
    "#]],
    );
}

#[test]
fn what_was_typed_before_is_no_answer() {
    let ask = narrow(command("a"));
    check(
        &format!("early y\n{ask}\nkeys n"),
        expect![[r#"
        > early y
        > ask {"toolCall":{"title":"a","rawInput":
        ? a
            |   y  Allow
            | › n  Reject
            |   esc no · ? keys
        > keys n
        ? a  rejected
        => 1 Selected("reject_once")
    "#]],
    );
    // Words for the agent stay theirs, and the question waits until they are sent.
    check(
        &format!("steer\nkeys use \nearly tab\n{ask}\nkeys y\nkeys ENTERy\nkeys y"),
        expect![[r#"
        > steer
        > keys use
            | › use
        > early tab
            | › use
        > ask {"toolCall":{"title":"a","rawInput":
        ? a
            |   y  Allow
            | › n  Reject
            |   w  Reject, and say why
            | › usetab
            |   finish your line first: enter sends it, esc drops it
        > keys y
            |   y  Allow
            | › n  Reject
            |   w  Reject, and say why
            | › usetaby
            |   finish your line first: enter sends it, esc drops it
        > keys ENTERy
        › usetaby
            |   y  Allow
            | › n  Reject
            |   w  Reject, and say why
            |   esc no · ? keys
        => to the agent: usetaby
        > keys y
        ? a  allowed once
        => 1 Selected("allow_once")
    "#]],
    );
    check(
        &format!("steer\nkeys no\n{ask}\nkeys ESC\nkeys y"),
        expect![[r#"
        > steer
        > keys no
            | › no
        > ask {"toolCall":{"title":"a","rawInput":
        ? a
            |   y  Allow
            | › n  Reject
            |   w  Reject, and say why
            | › no
            |   finish your line first: enter sends it, esc drops it
        > keys ESC
            |   y  Allow
            | › n  Reject
            |   w  Reject, and say why
            |   esc no · ? keys
        > keys y
        ? a  allowed once
        => 1 Selected("allow_once")
    "#]],
    );
}

#[test]
fn a_paste_answers_nothing() {
    let ask = narrow(command("a"));
    check(
        &format!("{ask}\nkeys ESC[200~yENTERyESC[201~\nkeys n"),
        expect![[r#"
        > ask {"toolCall":{"title":"a","rawInput":
        ? a
            |   y  Allow
            | › n  Reject
            |   esc no · ? keys
        > keys ESC[200~yENTERyESC[201~
            |   y  Allow
            | › n  Reject
            |   esc no · ? keys
        > keys n
        ? a  rejected
        => 1 Selected("reject_once")
    "#]],
    );
    // It began before the question came, and its end comes after.
    check(
        &format!("early ESC[200~y\n{ask}\nkeys yESC[201~\nkeys n"),
        expect![[r#"
        > early ESC[200~y
        > ask {"toolCall":{"title":"a","rawInput":
        ? a
            |   y  Allow
            | › n  Reject
            |   esc no · ? keys
        > keys yESC[201~
            |   y  Allow
            | › n  Reject
            |   esc no · ? keys
        > keys n
        ? a  rejected
        => 1 Selected("reject_once")
    "#]],
    );
}

#[test]
fn words_for_the_agent_are_edited() {
    check(
        "steer\nkeys use tabz\nkeys BACKs\nkeys ENTER\nkeys  ENTER\nkeys ESC",
        expect![[r#"
        > steer
        > keys use tabz
            | › use tabz
        > keys BACKs
            | › use tabs
        > keys ENTER
        › use tabs
        => to the agent: use tabs
        > keys  ENTER
        > keys ESC
    "#]],
    );
}

#[test]
fn trust_has_letters_and_a_safe_default() {
    let form = r#"form {"message":"Do you trust the folder /w?\n- .castor/settings.json\nThey would start:\n- MCP server ours","requestedSchema":{"type":"object","properties":{"decision":{"type":"string","title":"Trust","oneOf":[{"const":"trust_folder","title":"Trust this folder"},{"const":"trust_parent","title":"Trust everything in /"},{"const":"not_now","title":"Not now"},{"const":"never","title":"Never"}]}},"required":["decision"]}}"#;
    check(
        &format!("{form}\nkeys ENTER"),
        expect![[r#"
        > form {"message":"Do you trust the folder
        ? Do you trust the folder /w?
          - .castor/settings.json
          They would start:
          - MCP server ours
            |   y  Trust this folder
            |   a  Trust everything in /
            | › n  Not now
            |   x  Never
            |   esc declines
        > keys ENTER
        ? Do you trust the folder /w?  Not now
        => 1 Filled(Some({"decision": String("not_now")}))
    "#]],
    );
    check(
        &format!("{form}\nkeys y"),
        expect![[r#"
        > form {"message":"Do you trust the folder
        ? Do you trust the folder /w?
          - .castor/settings.json
          They would start:
          - MCP server ours
            |   y  Trust this folder
            |   a  Trust everything in /
            | › n  Not now
            |   x  Never
            |   esc declines
        > keys y
        ? Do you trust the folder /w?  Trust this folder
        => 1 Filled(Some({"decision": String("trust_folder")}))
    "#]],
    );
    check(
        &format!("{form}\nkeys ESC"),
        expect![[r#"
        > form {"message":"Do you trust the folder
        ? Do you trust the folder /w?
          - .castor/settings.json
          They would start:
          - MCP server ours
            |   y  Trust this folder
            |   a  Trust everything in /
            | › n  Not now
            |   x  Never
            |   esc declines
        > keys ESC
        ? Do you trust the folder /w?  not answered
        => 1 Declined
    "#]],
    );
}

const FORM: &str = r#"form {"message":"The agent has 4 questions.","requestedSchema":{"type":"object","properties":{
"0":{"type":"string","title":"Which database?","oneOf":[{"const":"s","title":"SQLite","description":"one file"},{"const":"p","title":"Postgres"}]},
"1":{"type":"array","title":"Which parts?","items":{"anyOf":[{"const":"a","title":"API"},{"const":"b","title":"Page"}]},"minItems":1},
"2":{"type":"string","title":"What name?","minLength":2},
"3":{"type":"boolean","title":"Tests?"}},"required":["0","1","2","3"]}}"#;

#[test]
fn a_form_asks_field_by_field() {
    let form = FORM.replace('\n', "");
    let keys = "keys ENTER\nkeys 2\nkeys ENTER\nkeys 1\nkeys 2\nkeys UPSPACE\nkeys ENTER\nkeys xENTER\nkeys BACKabcENTER\nkeys y";
    check(
        &format!("{form}\n{keys}"),
        expect![[r#"
        > form {"message":"The agent has 4 questio
        ? The agent has 4 questions.
            |   1/4 Which database?
            |   1  SQLite  one file
            |   2  Postgres
            |   esc declines
        > keys ENTER
            |   1/4 Which database?
            |   1  SQLite  one file
            |   2  Postgres
            |   esc declines
        > keys 2
            |   2/4 Which parts?
            | › 1  [ ] API
            |   2  [ ] Page
            |   digits or space mark · enter sends · esc declines
        > keys ENTER
            |   2/4 Which parts?
            | › 1  [ ] API
            |   2  [ ] Page
            |   that has too few choices
            |   digits or space mark · enter sends · esc declines
        > keys 1
            |   2/4 Which parts?
            | › 1  [x] API
            |   2  [ ] Page
            |   digits or space mark · enter sends · esc declines
        > keys 2
            |   2/4 Which parts?
            |   1  [x] API
            | › 2  [x] Page
            |   digits or space mark · enter sends · esc declines
        > keys UPSPACE
            |   2/4 Which parts?
            | › 1  [ ] API
            |   2  [x] Page
            |   digits or space mark · enter sends · esc declines
        > keys ENTER
            |   3/4 What name?
            |   ›
            |   enter sends · esc declines
        > keys xENTER
            |   3/4 What name?
            |   › x
            |   that has too few characters
            |   enter sends · esc declines
        > keys BACKabcENTER
            |   4/4 Tests?
            |   y  Yes
            |   n  No
            |   esc declines
        > keys y
        ? The agent has 4 questions.  Postgres · Page · abc · yes
        => 1 Filled(Some({"0": String("p"), "1": Array [String("b")], "2": String("abc"), "3": Bool(true)}))
    "#]],
    );
    check(
        &format!("{form}\nkeys 1\nkeys ESC"),
        expect![[r#"
        > form {"message":"The agent has 4 questio
        ? The agent has 4 questions.
            |   1/4 Which database?
            |   1  SQLite  one file
            |   2  Postgres
            |   esc declines
        > keys 1
            |   2/4 Which parts?
            | › 1  [ ] API
            |   2  [ ] Page
            |   digits or space mark · enter sends · esc declines
        > keys ESC
        ? The agent has 4 questions.  not answered
        => 1 Declined
    "#]],
    );
}

#[test]
fn an_accepted_plan_is_not_asked_about_again() {
    let form = r#"form {"message":"Review the plan plan.md:\n\n1. Write hello.txt.","requestedSchema":{"type":"object","properties":{"decision":{"type":"string","title":"The plan","oneOf":[{"const":"default","title":"Accept, and ask before each change"},{"const":"edit","title":"Change the plan"},{"const":"reject","title":"Reject, and stay in plan mode"}]},"feedback":{"type":"string","title":"What should be different (leave it empty if you accept)"}},"required":["decision"]}}"#;
    check(
        &format!("{form}\nkeys 1"),
        expect![[r#"
        > form {"message":"Review the plan plan.md
        ? Review the plan plan.md:

          1. Write hello.txt.
            |   1  Accept, and ask before each change
            |   e  Change the plan
            | › n  Reject, and stay in plan mode
            |   esc declines
        > keys 1
        ? Review the plan plan.md:  Accept, and ask before each change
        => 1 Filled(Some({"decision": String("default")}))
    "#]],
    );
    check(
        &format!("{form}\nkeys e\nkeys with testsENTER"),
        expect![[r#"
        > form {"message":"Review the plan plan.md
        ? Review the plan plan.md:

          1. Write hello.txt.
            |   1  Accept, and ask before each change
            |   e  Change the plan
            | › n  Reject, and stay in plan mode
            |   esc declines
        > keys e
            |   What should be different
            |   ›
            |   enter skips · esc declines
        > keys with testsENTER
        ? Review the plan plan.md:  Change the plan · with tests
        => 1 Filled(Some({"decision": String("edit"), "feedback": String("with tests")}))
    "#]],
    );
    check(
        &format!("{form}\nkeys n\nkeys ENTER"),
        expect![[r#"
        > form {"message":"Review the plan plan.md
        ? Review the plan plan.md:

          1. Write hello.txt.
            |   1  Accept, and ask before each change
            |   e  Change the plan
            | › n  Reject, and stay in plan mode
            |   esc declines
        > keys n
            |   What should be different
            |   ›
            |   enter skips · esc declines
        > keys ENTER
        ? Review the plan plan.md:  Reject, and stay in plan mode
        => 1 Filled(Some({"decision": String("reject")}))
    "#]],
    );
}

#[test]
fn a_page_is_opened_by_the_user() {
    let page = r#"form {"mode":"url","message":"Sign in to the server.","url":"https://example.org/login?a=1","elicitationId":"e"}"#;
    check(
        &format!("{page}\nkeys y"),
        expect![[r#"
        > form {"mode":"url","message":"Sign in to
        ? Sign in to the server.
            |   https://example.org/login?a=1
            |   y  I have opened it
            | › n  Do not open it
            |   esc declines
        > keys y
        ? Sign in to the server.  opened
        => 1 Filled(None)
    "#]],
    );
    check(
        &format!("{page}\nkeys ENTER"),
        expect![[r#"
        > form {"mode":"url","message":"Sign in to
        ? Sign in to the server.
            |   https://example.org/login?a=1
            |   y  I have opened it
            | › n  Do not open it
            |   esc declines
        > keys ENTER
        ? Sign in to the server.  not opened
        => 1 Declined
    "#]],
    );
}

#[test]
fn fields_without_need_are_skipped_by_enter() {
    let form = r#"form {"message":"More?","requestedSchema":{"type":"object","properties":{"n":{"type":"integer","title":"How many?","default":7,"maximum":9},"t":{"type":"string","title":"Note"},"b":{"type":"boolean","title":"Sure?","default":false}}}}"#;
    check(
        &format!("{form}\nkeys 1ENTER\nkeys BACKENTER\nkeys ENTER\nkeys ENTER"),
        expect![[r#"
        > form {"message":"More?","requestedSchema
        ? More?
            |   1/3 How many?
            |   › 7
            |   enter sends · esc declines
        > keys 1ENTER
            |   1/3 How many?
            |   › 71
            |   that is too large
            |   enter sends · esc declines
        > keys BACKENTER
            |   2/3 Note
            |   ›
            |   enter skips · esc declines
        > keys ENTER
            |   3/3 Sure?
            |   y  Yes
            | › n  No
            |   esc declines
        > keys ENTER
        ? More?  7 · no
        => 1 Filled(Some({"n": Number(7), "b": Bool(false)}))
    "#]],
    );
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

    fn question(request: &str, params: Value) -> (Question, oneshot::Receiver<Answer>) {
        let (answer, settled) = oneshot::channel();
        (Question { request: request.into(), about: QuestionSubject::Permission(params), answer }, settled)
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
            let (question, mut settled) = question("1", params);
            asker.ask(question, &json!({}));
            assert_eq!(settled.try_recv().unwrap(), expected);
        }
    }

    #[test]
    fn questions_wait_for_their_turn() {
        let (_keep, lines) = mpsc::channel(1);
        let mut asker = TerminalAsker::new(Keyboard::Lines(lines), "/w");
        let (first, mut one) = question("1", options());
        let (second, mut two) = question("2", options());
        let (third, mut three) = question("3", options());
        let shown = asker.ask(first, &because("danger", json!({"title": "A"})));
        assert_eq!(shown, "? A\n  danger\n  y) Allow once\n  a) Always\n  n) Reject\n  y, a, n: ");
        assert_eq!(asker.ask(second, &json!({"title": "B"})), "");
        assert_eq!(asker.ask(third, &json!({"title": "C"})), "");
        assert_eq!(asker.answer(typed("9")), "  one of y, a, n: ");
        assert!(one.try_recv().is_err());
        assert!(asker.answer(typed(" Yes ")).starts_with("? B"));
        assert_eq!(one.try_recv().unwrap(), Answer::Selected("once".into()));
        assert!(asker.withdraw("2").contains("? C"));
        assert_eq!(two.try_recv().unwrap(), Answer::Withdrawn);
        assert_eq!(asker.withdraw("4"), "");
        let (fourth, mut four) = question("4", options());
        assert_eq!(asker.ask(fourth, &json!({})), "");
        assert_eq!(four.try_recv().unwrap(), Answer::Withdrawn);
        assert_eq!(asker.answer(Typed::End), "");
        assert_eq!(three.try_recv().unwrap(), Answer::Cancelled);
        assert!(asker.panel(80).is_empty() && asker.take_lines().is_empty());
    }

    #[test]
    fn what_was_typed_before_is_no_answer() {
        let (to, lines) = mpsc::channel(4);
        let mut asker = TerminalAsker::new(Keyboard::Lines(lines), "/w");
        to.try_send("y".into()).unwrap();
        asker.ask(question("1", options()).0, &json!({}));
        assert!(matches!(&mut asker.typing, Keyboard::Lines(it) if it.is_empty()));
        assert_eq!(asker.take_steering(), [""; 0]);
    }

    #[test]
    fn what_is_typed_without_a_question_is_for_the_agent() {
        let (to, lines) = mpsc::channel(4);
        let mut asker = TerminalAsker::new(Keyboard::Lines(lines), "/w");
        asker.listen(true);
        assert_eq!(asker.answer(typed("use tabs")), "");
        // It was on its way when the question came up.
        to.try_send("y".into()).unwrap();
        let (question, mut settled) = question("1", options());
        asker.ask(question, &json!({}));
        assert_eq!(
            (asker.take_steering(), settled.try_recv().is_err()),
            (vec!["use tabs".to_owned(), "y".into()], true)
        );
        asker.answer(typed("y"));
        assert_eq!(settled.try_recv().unwrap(), Answer::Selected("once".into()));
        assert_eq!(asker.take_steering(), [""; 0], "an answer is nothing else");
    }
}
