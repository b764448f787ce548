//! Approvals, forms and links of `castor run` on the terminal, one question at a time.

use std::{collections::VecDeque, future, mem};

use serde_json::Value;
use similar::TextDiff;
use tokio::sync::{mpsc, oneshot};

use super::{
    client_requests::{Answer, Question, QuestionSubject},
    form::{FormEvent, FormInProgress, yes_or_no},
    terminal,
};
use crate::app::cli::terminal_text::{clean, clean_line, is_unprintable};

/// Lines of a diff or of other content that a question shows.
const MAX_LINES: usize = 200;
const MAX_TITLE: usize = 300;
const MAX_URL: usize = 4_096;
const MAX_WITHDRAWN: usize = 64;
/// The longest text whose diff is worked out; beyond that only its size is shown.
const MAX_DIFF_BYTES: usize = 1 << 20;

/// The source of typed answers.
pub enum Keyboard {
    /// No user is there: nothing is ever asked.
    Nobody,
    /// The terminal, opened for the first question, or when what is typed is listened to.
    Terminal,
    Lines(mpsc::Receiver<String>),
}

/// One line from the terminal, or its end.
pub enum TypedLine {
    Line(String),
    End,
}

pub struct TerminalAsker {
    typing: Keyboard,
    waiting: VecDeque<Pending>,
    /// Requests that were taken back before their question got here: it comes by way of a handler's task.
    withdrawn: VecDeque<String>,
    /// What is typed without a question is for the agent.
    listens: bool,
    steering_lines: Vec<String>,
    /// The lines come from the terminal itself.
    at_terminal: bool,
}

/// The first one that waits is the one that is shown.
struct Pending {
    request: String,
    text: String,
    kind: AnswerKind,
    answer: oneshot::Sender<Answer>,
}

enum AnswerKind {
    Options(Vec<Choice>),
    Form(FormInProgress),
    Page,
}

impl AnswerKind {
    /// What the line comes to, or what to show in place of an answer.
    fn take(&mut self, line: &str) -> Result<Answer, String> {
        match self {
            Self::Options(options) => match choose(line, options) {
                Some(it) => Ok(Answer::Selected(it.id.clone())),
                None => Err(format!("  a number from 1 to {}, y or n: ", options.len())),
            },
            Self::Form(form) => match form.take(line) {
                FormEvent::Open(more) => Err(more),
                FormEvent::Done(content) => Ok(Answer::Filled(Some(content))),
                FormEvent::Declined => Ok(Answer::Declined),
            },
            Self::Page => match yes_or_no(line) {
                Some(true) => Ok(Answer::Filled(None)),
                Some(false) => Ok(Answer::Declined),
                None => Err("  y or n: ".to_owned()),
            },
        }
    }
}

/// One of the answers an agent offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    pub id: String,
    pub name: String,
    pub kind: String,
}

impl TerminalAsker {
    pub fn new(typing: Keyboard) -> Self {
        Self {
            typing,
            waiting: VecDeque::new(),
            withdrawn: VecDeque::new(),
            listens: false,
            steering_lines: Vec::new(),
            at_terminal: false,
        }
    }

    /// From now on lines typed without a question are steering; `false`: they are dropped.
    pub fn listen(&mut self, listens: bool) {
        self.listens = listens;
        if listens {
            self.open();
        }
    }

    /// What was typed for the agent.
    pub fn take_steering(&mut self) -> Vec<String> {
        mem::take(&mut self.steering_lines)
    }

    /// Takes a question about `call`; gives what to show now. Without a terminal the answer is the narrow no.
    pub fn ask(&mut self, question: Question, call: &Value) -> String {
        if let Some(at) = self.withdrawn.iter().position(|it| *it == question.request) {
            self.withdrawn.remove(at);
            _ = question.answer.send(Answer::Withdrawn);
            return String::new();
        }
        let title = clean_line(call.get("title").and_then(Value::as_str).unwrap_or("a tool call"), MAX_TITLE);
        let (kind, text) = match question.about {
            QuestionSubject::Permission(params) => {
                let options = choices(&params);
                if matches!(self.typing, Keyboard::Nobody) || options.is_empty() {
                    _ = question.answer.send(reject_once(&options));
                    return format!("castor: denied, because nobody can be asked: {title}\n");
                }
                let text = describe(&title, call, &options);
                (AnswerKind::Options(options), text)
            }
            QuestionSubject::Form { message, form } => {
                let filling = FormInProgress::new(form);
                let text = question_text(&message) + &filling.prompt();
                (AnswerKind::Form(filling), text)
            }
            QuestionSubject::Page { message, url } => {
                let url = clean_line(&url, MAX_URL);
                (
                    AnswerKind::Page,
                    format!("{}  {url}\n  open it, then answer y; n to decline: ", question_text(&message)),
                )
            }
        };
        if matches!(self.typing, Keyboard::Nobody) {
            _ = question.answer.send(Answer::Declined);
            return "castor: not answered, because nobody can be asked\n".to_owned();
        }
        self.open();
        self.waiting.push_back(Pending { request: question.request, text, kind, answer: question.answer });
        match self.waiting.len() {
            1 => self.show(),
            _ => String::new(),
        }
    }

    /// The next typed line, while there is a question or an agent that takes steering; else never.
    pub async fn typed(&mut self) -> TypedLine {
        match &mut self.typing {
            Keyboard::Lines(lines) if self.listens || !self.waiting.is_empty() => {
                lines.recv().await.map_or(TypedLine::End, TypedLine::Line)
            }
            _ => future::pending().await,
        }
    }

    /// Takes what was typed; gives what to show next.
    pub fn answer(&mut self, typed: TypedLine) -> String {
        let Some(first) = self.waiting.front_mut() else {
            match typed {
                TypedLine::Line(line) => self.steering_lines.push(line),
                // There is nothing more to listen to.
                TypedLine::End => self.listens = false,
            }
            return String::new();
        };
        let answer = match typed {
            TypedLine::End => Ok(Answer::Cancelled),
            TypedLine::Line(line) => first.kind.take(&line),
        };
        match answer {
            Err(more) => more,
            Ok(answer) => {
                self.send_answer(0, answer);
                self.show()
            }
        }
    }

    /// The agent takes a question back; gives what to show.
    pub fn withdraw(&mut self, request: &str) -> String {
        let Some(at) = self.waiting.iter().position(|it| it.request == request) else {
            if self.withdrawn.len() == MAX_WITHDRAWN {
                self.withdrawn.pop_front();
            }
            self.withdrawn.push_back(request.to_owned());
            return String::new();
        };
        self.send_answer(at, Answer::Withdrawn);
        match at {
            0 => format!("\n  (no longer asked)\n{}", self.show()),
            _ => String::new(),
        }
    }

    pub fn is_asking(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The turn is cancelled, and with it everything that was asked.
    pub fn cancel_all(&mut self) {
        for it in self.waiting.drain(..) {
            _ = it.answer.send(Answer::Cancelled);
        }
    }

    fn send_answer(&mut self, at: usize, answer: Answer) {
        if let Some(it) = self.waiting.remove(at) {
            _ = it.answer.send(answer);
        }
    }

    /// The first question that waits. What was typed before it was shown cannot mean it.
    fn show(&mut self) -> String {
        let Some(first) = self.waiting.front() else { return String::new() };
        if self.at_terminal {
            terminal::discard_typed();
        }
        if let Keyboard::Lines(lines) = &mut self.typing {
            while let Ok(line) = lines.try_recv() {
                if self.listens {
                    self.steering_lines.push(line);
                }
            }
        }
        first.text.clone()
    }

    fn open(&mut self) {
        if matches!(self.typing, Keyboard::Terminal) {
            self.typing = Keyboard::Lines(terminal::lines());
            self.at_terminal = true;
        }
    }
}

fn choices(params: &Value) -> Vec<Choice> {
    let text = |it: &Value, key: &str| it.get(key).and_then(Value::as_str).map(str::to_owned);
    let options = params.get("options").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let choice = |it: &Value| {
        let id = text(it, "optionId")?;
        let name = text(it, "name").unwrap_or_else(|| id.clone());
        Some(Choice { id, name, kind: text(it, "kind").unwrap_or_default() })
    };
    options.iter().filter_map(choice).collect()
}

/// No for this once; where that is not offered, no answer: `reject_always` would outlive this run.
fn reject_once(options: &[Choice]) -> Answer {
    let once = options.iter().find(|it| it.kind == "reject_once");
    once.map_or(Answer::Cancelled, |it| Answer::Selected(it.id.clone()))
}

fn choose<'a>(line: &str, options: &'a [Choice]) -> Option<&'a Choice> {
    let of_kind = |kind: &str| options.iter().find(|it| it.kind == kind);
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" => of_kind("allow_once"),
        "n" | "no" => of_kind("reject_once"),
        number => options.get(number.parse::<usize>().ok()?.checked_sub(1)?),
    }
}

fn question_text(message: &str) -> String {
    let mut res = String::new();
    push_block(&mut res, "", message);
    res.replace_range(..1.min(res.len()), "?");
    res
}

fn describe(title: &str, call: &Value, options: &[Choice]) -> String {
    let mut res = format!("? {title}\n");
    let command = call.pointer("/rawInput/command").and_then(Value::as_str);
    if let Some(command) = command.filter(|it| it.trim() != title) {
        push_block(&mut res, "$ ", command);
    }
    let content = call.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for it in content {
        match it.get("type").and_then(Value::as_str) {
            Some("diff") => push_block(&mut res, "", &diff(it)),
            Some("content") => {
                push_block(&mut res, "", it.pointer("/content/text").and_then(Value::as_str).unwrap_or_default());
            }
            _ => (),
        }
    }
    for (at, it) in options.iter().enumerate() {
        res.push_str(&format!("  {}) {}\n", at + 1, clean_line(&it.name, MAX_TITLE)));
    }
    res.push_str(&format!("  1-{}: ", options.len()));
    res
}

fn diff(it: &Value) -> String {
    let text = |key: &str| it.get(key).and_then(Value::as_str).unwrap_or_default();
    let (path, old, new) = (text("path"), text("oldText"), text("newText"));
    if old.len() + new.len() > MAX_DIFF_BYTES {
        return format!("{path}: {} bytes become {} bytes", old.len(), new.len());
    }
    let old_path = if it.get("oldText").is_some_and(Value::is_string) { path } else { "/dev/null" };
    TextDiff::from_lines(old, new).unified_diff().context_radius(3).header(old_path, path).to_string()
}

/// Text from outside, indented and cut, with nothing in it that could redraw the question.
fn push_block(res: &mut String, mark: &str, text: &str) {
    let text = clean(text);
    let count = text.lines().count();
    for line in text.lines().take(MAX_LINES) {
        let line: String = line.chars().filter(|it| !is_unprintable(*it)).collect();
        res.push_str(&format!("  {mark}{line}\n"));
    }
    if count > MAX_LINES {
        res.push_str(&format!("  … {} more lines\n", count - MAX_LINES));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tokio::sync::{mpsc, oneshot};

    use super::{Keyboard, TerminalAsker, TypedLine, choices, describe};
    use crate::app::cli::run::client_requests::{Answer, Question, QuestionSubject};

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

    #[test]
    fn a_question_shows_what_would_be_done() {
        let call = json!({"title": "edit a.rs", "content": [
            {"type": "diff", "path": "/w/a.rs", "oldText": "one\ntwo\n", "newText": "one\n\u{1b}[2J2\n"},
        ]});
        assert_eq!(
            describe("edit a.rs", &call, &choices(&options())),
            "? edit a.rs\n  --- /w/a.rs\n  +++ /w/a.rs\n  @@ -1,2 +1,2 @@\n   one\n  -two\n  +2\n  1) Allow once\n  2) Always\n  \
             3) Reject\n  1-3: "
        );
        let call = json!({"rawInput": {"command": "rm -rf build\nls"}});
        assert!(describe("clean up", &call, &[]).starts_with("? clean up\n  $ rm -rf build\n  $ ls\n"));
    }

    #[test]
    fn without_a_terminal_it_is_a_narrow_no() {
        let mut asker = TerminalAsker::new(Keyboard::Nobody);
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
        let mut asker = TerminalAsker::new(Keyboard::Lines(lines));
        let (first, mut one) = question("1", options());
        let (second, mut two) = question("2", options());
        let (third, mut three) = question("3", options());
        assert!(asker.ask(first, &json!({"title": "A"})).starts_with("? A"));
        assert_eq!(asker.ask(second, &json!({"title": "B"})), "");
        assert_eq!(asker.ask(third, &json!({"title": "C"})), "");
        assert!(asker.answer(TypedLine::Line("9".into())).contains("1 to 3"));
        assert!(one.try_recv().is_err());
        assert!(asker.answer(TypedLine::Line(" Y ".into())).starts_with("? B"));
        assert_eq!(one.try_recv().unwrap(), Answer::Selected("once".into()));
        assert!(asker.withdraw("2").contains("? C"));
        assert_eq!(two.try_recv().unwrap(), Answer::Withdrawn);
        assert_eq!(asker.withdraw("4"), "");
        let (fourth, mut four) = question("4", options());
        assert_eq!(asker.ask(fourth, &json!({})), "");
        assert_eq!(four.try_recv().unwrap(), Answer::Withdrawn);
        assert_eq!(asker.answer(TypedLine::End), "");
        assert_eq!(three.try_recv().unwrap(), Answer::Cancelled);
    }

    #[test]
    fn what_was_typed_before_is_no_answer() {
        let (to, lines) = mpsc::channel(4);
        let mut asker = TerminalAsker::new(Keyboard::Lines(lines));
        to.try_send("y".into()).unwrap();
        asker.ask(question("1", options()).0, &json!({}));
        assert!(matches!(&mut asker.typing, Keyboard::Lines(it) if it.is_empty()));
        assert_eq!(asker.take_steering(), [""; 0]);
    }

    #[test]
    fn what_is_typed_without_a_question_is_for_the_agent() {
        let (to, lines) = mpsc::channel(4);
        let mut asker = TerminalAsker::new(Keyboard::Lines(lines));
        asker.listen(true);
        assert_eq!(asker.answer(TypedLine::Line("use tabs".into())), "");
        // It was on its way when the question came up.
        to.try_send("y".into()).unwrap();
        let (question, mut settled) = question("1", options());
        asker.ask(question, &json!({}));
        assert_eq!(
            (asker.take_steering(), settled.try_recv().is_err()),
            (vec!["use tabs".to_owned(), "y".into()], true)
        );
        asker.answer(TypedLine::Line("y".into()));
        assert_eq!(settled.try_recv().unwrap(), Answer::Selected("once".into()));
        assert_eq!(asker.take_steering(), [""; 0], "an answer is nothing else");
    }
}
