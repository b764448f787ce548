//! Approvals, forms and links of `castor run` on the terminal, one question at a time.

#[cfg(test)]
mod tests;

use std::{collections::VecDeque, future, mem};

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::{
    approval::{self, ApprovalQuestion, QuestionStep, Settled, reject_once},
    client_requests::{Answer, Question, QuestionSubject},
    form::FormInProgress,
    keys::{KeyDecoder, KeyPress},
    line_editor::LineEditor,
    question::QuestionKind,
    question_subject::{QuestionPlace, QuestionText},
    terminal::{self, KeyTerminal, TypedBytes},
};
use crate::app::cli::{
    render::{
        text::{Line, Style},
        wrap::wrap,
    },
    terminal_text::clean_line,
};

const DEFAULT_WIDTH: usize = 80;
const MAX_TITLE: usize = 300;
const MAX_URL: usize = 4_096;
const MAX_WITHDRAWN: usize = 64;
/// Characters of a line that was hardly meant for the agent.
const MAX_STRAY: usize = 3;

/// The source of typed answers.
pub enum Keyboard {
    /// No user is there: nothing is ever asked.
    Nobody,
    /// The terminal, opened for the first question, or when what is typed is listened to.
    Terminal,
    Lines(mpsc::Receiver<String>),
    Keys(KeyInput),
}

/// Single keys of a terminal.
pub struct KeyInput {
    typed: mpsc::Receiver<TypedBytes>,
    decoder: KeyDecoder,
    terminal: Option<KeyTerminal>,
    /// What was read with a lower number was typed before the present question.
    discards: u64,
}

impl KeyInput {
    fn new(typed: mpsc::Receiver<TypedBytes>, terminal: Option<KeyTerminal>) -> Self {
        Self { typed, decoder: KeyDecoder::default(), terminal, discards: 0 }
    }

    async fn next(&mut self) -> Typed {
        let resumed = async {
            match &self.terminal {
                Some(it) => it.resumed().await,
                None => future::pending().await,
            }
        };
        tokio::select! {
            biased;
            it = self.typed.recv() => it.map_or(Typed::End, Typed::Bytes),
            () = resumed => Typed::Resumed,
        }
    }

    /// What was typed so far, and is no answer to what comes up now.
    fn discard(&mut self) -> Vec<KeyPress> {
        let mut keys = Vec::new();
        while let Ok(it) = self.typed.try_recv() {
            keys.extend(self.decoder.decode(&it.bytes));
        }
        // The rest of a paste comes with its end, which must not be lost.
        if self.decoder.is_in_paste() {
            return keys;
        }
        self.decoder = KeyDecoder::default();
        self.discards = self.terminal.as_ref().map_or(self.discards + 1, KeyTerminal::discard);
        keys
    }
}

/// What came from the user.
pub enum Typed {
    Line(String),
    Bytes(TypedBytes),
    /// The user came back after a stop, to a screen with other things on it.
    Resumed,
    /// There is nothing more to listen to.
    End,
}

pub struct TerminalAsker {
    typing: Keyboard,
    /// Paths are shown as they are seen from here.
    cwd: String,
    /// Columns of the screen.
    width: usize,
    waiting: VecDeque<Pending>,
    /// Requests that were taken back before their question got here: it comes by way of a handler's task.
    withdrawn: VecDeque<String>,
    /// How many were answered since none waited.
    answered: usize,
    /// What is typed without a question is for the agent.
    listens: bool,
    /// A line for the agent that is not finished.
    editor: LineEditor,
    steering_lines: Vec<String>,
    /// What goes to the scrollback.
    lines: Vec<Line>,
    /// The lines come from the terminal itself.
    at_terminal: bool,
    /// Something has to be drawn.
    is_stale: bool,
}

/// The first one that waits is the one that is shown.
struct Pending {
    request: String,
    kind: QuestionKind,
    text: QuestionText,
    answer: oneshot::Sender<Answer>,
}

impl TerminalAsker {
    pub fn new(typing: Keyboard, cwd: &str) -> Self {
        Self {
            typing,
            cwd: cwd.to_owned(),
            width: DEFAULT_WIDTH,
            waiting: VecDeque::new(),
            withdrawn: VecDeque::new(),
            answered: 0,
            listens: false,
            editor: LineEditor::default(),
            steering_lines: Vec::new(),
            lines: Vec::new(),
            at_terminal: false,
            is_stale: false,
        }
    }

    /// From now on lines typed without a question are steering; `false`: they are dropped.
    pub fn listen(&mut self, listens: bool) {
        self.listens = listens;
        self.is_stale = true;
        if listens {
            self.open();
        } else {
            self.editor = LineEditor::default();
        }
    }

    /// What was typed for the agent.
    pub fn take_steering(&mut self) -> Vec<String> {
        mem::take(&mut self.steering_lines)
    }

    /// Whether scrollback or panel changed since this was asked.
    pub fn take_change(&mut self) -> bool {
        mem::take(&mut self.is_stale)
    }

    /// What goes to the scrollback: questions that came up, and records of answers.
    pub fn take_lines(&mut self) -> Vec<Line> {
        let lines = mem::take(&mut self.lines);
        lines.iter().flat_map(|it| wrap_indented(it, self.width)).collect()
    }

    /// Whether single keys answer; else lines do.
    pub fn takes_keys(&self) -> bool {
        matches!(self.typing, Keyboard::Keys(_))
    }

    /// What stands at the bottom of the screen.
    pub fn panel(&mut self, width: usize) -> Vec<Line> {
        self.width = width;
        if !self.takes_keys() {
            return Vec::new();
        }
        let mut lines = Vec::new();
        let first = self.waiting.front();
        if let Some(it) = first {
            lines.extend(it.kind.draw(width));
        }
        if !self.editor.is_empty() {
            lines.extend(wrap(&self.editor.draw("› "), width, "  "));
        }
        let Some(first) = first else { return lines };
        let mut hint = match self.editor.is_empty() {
            true => first.kind.hint(),
            false => "finish your line first: enter sends it, esc drops it".to_owned(),
        };
        let count = self.answered + self.waiting.len();
        if count > 1 && !hint.is_empty() {
            hint = format!("{} of {count} · {hint}", self.answered + 1);
        }
        if hint.is_empty() {
            return lines;
        }
        lines.extend(wrap(&Line::new(&format!("  {hint}"), Style::DIM), width, "  "));
        lines
    }

    /// Takes a question about `call`; gives what to show now. Without a terminal the answer is the narrow no.
    pub fn ask(&mut self, question: Question, call: &Value) -> String {
        self.is_stale = true;
        if let Some(at) = self.withdrawn.iter().position(|it| *it == question.request) {
            self.withdrawn.remove(at);
            _ = question.answer.send(Answer::Withdrawn);
            return String::new();
        }
        if matches!(self.typing, Keyboard::Nobody) {
            return refuse(question, call);
        }
        let agent = question.agent.unwrap_or_default();
        let (kind, mut text) = match question.about {
            QuestionSubject::Permission(params) => {
                let options = approval::options(&params);
                if options.is_empty() {
                    _ = question.answer.send(Answer::Cancelled);
                    return String::new();
                }
                let mut text = QuestionText::of_call(call, &QuestionPlace { cwd: &self.cwd, width: self.width });
                if !agent.is_empty() {
                    text.name_agent(&agent);
                }
                let shown = text.without_reasons();
                (QuestionKind::Approval(ApprovalQuestion::new(text, options, self.listens)), shown)
            }
            QuestionSubject::Form { message, form } => {
                let text = QuestionText::of_message(&message);
                (QuestionKind::Form(FormInProgress::new(form)), text)
            }
            QuestionSubject::Page { message, url, renews } => {
                (QuestionKind::page(clean_line(&url, MAX_URL), renews), QuestionText::of_message(&message))
            }
        };
        if !agent.is_empty() {
            text.name_agent(&agent);
        }
        self.open();
        self.waiting.push_back(Pending { request: question.request, kind, text, answer: question.answer });
        match self.waiting.len() {
            1 => self.show(true),
            _ => String::new(),
        }
    }

    /// What is typed next, while there is a question or an agent that takes steering; else never.
    pub async fn typed(&mut self) -> Typed {
        let is_wanted = self.listens || !self.waiting.is_empty();
        match &mut self.typing {
            Keyboard::Lines(lines) if is_wanted => lines.recv().await.map_or(Typed::End, Typed::Line),
            Keyboard::Keys(keys) if is_wanted => keys.next().await,
            _ => future::pending().await,
        }
    }

    /// Takes what was typed; gives what to show next on a terminal without single keys.
    pub fn answer(&mut self, typed: Typed) -> String {
        self.is_stale = true;
        match typed {
            Typed::Line(line) => return self.line(line),
            Typed::Bytes(bytes) => self.bytes(&bytes),
            Typed::Resumed => self.lines.extend(self.waiting.front().into_iter().flat_map(|it| it.text.lines.clone())),
            Typed::End if self.waiting.is_empty() => self.listens = false,
            Typed::End => {
                self.settle(0, Settled::new(Answer::Cancelled, "not answered"));
                return self.show(false);
            }
        }
        String::new()
    }

    fn line(&mut self, line: String) -> String {
        let Some(first) = self.waiting.front_mut() else {
            self.steering_lines.push(line);
            return String::new();
        };
        match first.kind.line(&line) {
            Err(more) => more,
            Ok(answer) => {
                self.settle(0, Settled::new(answer, ""));
                self.show(false)
            }
        }
    }

    fn bytes(&mut self, typed: &TypedBytes) {
        let Keyboard::Keys(input) = &mut self.typing else { return };
        let mut keys = input.decoder.decode(&typed.bytes);
        keys.extend(typed.is_pause.then(|| input.decoder.pause()).flatten());
        for key in keys {
            // An answer brings up the next question: the rest of these keys is older than that.
            if matches!(&self.typing, Keyboard::Keys(it) if it.discards == typed.discards) {
                self.key(&key);
            }
        }
    }

    /// A key for the line that is typed, or else for the question.
    fn key(&mut self, key: &KeyPress) {
        let Some(first) = self.waiting.front_mut().filter(|_| self.editor.is_empty()) else {
            self.edit(key);
            // The line is done, and its last key is no answer.
            if self.editor.is_empty() && self.is_asking() {
                self.discard_typed(false);
            }
            return;
        };
        match first.kind.key(key) {
            QuestionStep::Open => (),
            QuestionStep::Show(lines) => self.lines.extend(lines),
            QuestionStep::Settled(settled) => {
                self.settle(0, settled);
                self.show(false);
            }
        }
    }

    /// A key for the line to the agent.
    fn edit(&mut self, key: &KeyPress) {
        match key {
            _ if !self.listens => (),
            KeyPress::Esc => self.editor = LineEditor::default(),
            KeyPress::Enter => {
                let line = self.editor.take();
                if !line.trim().is_empty() {
                    let mut shown = Line::new("› ", Style::BOLD);
                    shown.push(&line, Style::PLAIN);
                    self.lines.push(shown);
                    self.steering_lines.push(line);
                }
            }
            _ => self.editor.key(key),
        }
    }

    /// The agent takes a question back; gives what to show.
    pub fn withdraw(&mut self, request: &str) -> String {
        self.is_stale = true;
        let Some(at) = self.waiting.iter().position(|it| it.request == request) else {
            if self.withdrawn.len() == MAX_WITHDRAWN {
                self.withdrawn.pop_front();
            }
            self.withdrawn.push_back(request.to_owned());
            return String::new();
        };
        self.settle(at, Settled::new(Answer::Withdrawn, "no longer asked"));
        match (at, &self.typing) {
            (0, Keyboard::Lines(_)) => format!("\n  (no longer asked)\n{}", self.show(false)),
            (0, _) => self.show(false),
            _ => String::new(),
        }
    }

    pub fn is_asking(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The turn is cancelled, and with it everything that was asked.
    pub fn cancel_all(&mut self) {
        self.is_stale = true;
        let mut record = "cancelled";
        while self.is_asking() {
            self.settle(0, Settled::new(Answer::Cancelled, record));
            record = "";
        }
    }

    /// Sends the answer of a question, and writes it down where keys leave no trace of it.
    fn settle(&mut self, at: usize, settled: Settled) {
        let Some(it) = self.waiting.remove(at) else { return };
        _ = it.answer.send(settled.answer);
        self.steering_lines.extend(settled.words);
        if at > 0 {
            return;
        }
        if !settled.record.is_empty() && self.takes_keys() {
            let mut line = Line::new(&format!("? {}  ", it.text.short), Style::DIM);
            line.push(&settled.record, Style::PLAIN);
            self.lines.push(line);
        }
        self.answered = if self.waiting.is_empty() { 0 } else { self.answered + 1 };
    }

    /// The first question that waits. What was typed before it was shown cannot mean it.
    fn show(&mut self, is_new: bool) -> String {
        if !self.is_asking() {
            return String::new();
        }
        self.discard_typed(is_new);
        let typed = self.editor.text().trim();
        // A key too many for the question before it, rather than words for the agent: it would block this question.
        if typed.chars().count() <= MAX_STRAY && !typed.contains(char::is_whitespace) {
            self.editor = LineEditor::default();
        }
        let Some(first) = self.waiting.front() else { return String::new() };
        if self.takes_keys() {
            self.lines.extend(first.text.lines.iter().cloned());
            return String::new();
        }
        let lines = first.text.lines.iter().flat_map(|it| wrap_indented(it, self.width));
        let lines: String = lines.map(|it| it.text() + "\n").collect();
        lines + &first.kind.prompt()
    }

    /// Drops what was typed for something else. What was typed while nothing was asked is for the agent.
    fn discard_typed(&mut self, is_for_agent: bool) {
        match &mut self.typing {
            Keyboard::Lines(lines) => {
                if self.at_terminal {
                    terminal::discard_typed();
                }
                while let Ok(line) = lines.try_recv() {
                    if self.listens {
                        self.steering_lines.push(line);
                    }
                }
            }
            Keyboard::Keys(keys) => {
                let typed = keys.discard();
                for key in typed.iter().filter(|_| is_for_agent) {
                    self.edit(key);
                }
            }
            Keyboard::Nobody | Keyboard::Terminal => (),
        }
    }

    fn open(&mut self) {
        if matches!(self.typing, Keyboard::Terminal) {
            self.typing = match KeyTerminal::open() {
                Some((terminal, typed)) => Keyboard::Keys(KeyInput::new(typed, Some(terminal))),
                None => Keyboard::Lines(terminal::lines()),
            };
            self.at_terminal = true;
            self.width = terminal::columns();
        }
    }
}

/// The rest of a long line stands further to the right than its beginning, so that it is no line of its own.
fn wrap_indented(line: &Line, width: usize) -> Vec<Line> {
    let text = line.text();
    let depth = text.len() - text.trim_start_matches(' ').len();
    wrap(line, width, &" ".repeat((depth + 2).min(width / 2)))
}

/// The narrow no, as nobody is here to ask.
fn refuse(question: Question, call: &Value) -> String {
    let QuestionSubject::Permission(params) = question.about else {
        _ = question.answer.send(Answer::Declined);
        return "castor: not answered, because nobody can be asked\n".to_owned();
    };
    let title = call.get("title").and_then(Value::as_str).unwrap_or("a tool call");
    let agent = question.agent.map(|it| format!("{it}: ")).filter(|it| !title.starts_with(it.as_str()));
    let title = clean_line(&format!("{}{title}", agent.unwrap_or_default()), MAX_TITLE);
    _ = question.answer.send(reject_once(&approval::options(&params)));
    format!("castor: denied, because nobody can be asked: {title}\n")
}
