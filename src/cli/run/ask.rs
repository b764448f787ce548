//! Approvals, forms and links of `castor run` on the terminal, one question at a time.

#[cfg(test)]
mod tests;

use std::{future, mem};

use tokio::sync::mpsc;

use crate::cli::{
    client::{
        approval::{self, QuestionStep, Settled, reject_once},
        key_input::{KeyInput, Typed},
        keys::KeyPress,
        line_editor::LineEditor,
        question_queue::{PendingQuestion, QuestionQueue},
        question_subject::{QuestionPlace, wrap_indented},
        terminal::{self, TypedBytes},
    },
    render::{
        text::{Line, Style},
        wrap::wrap,
    },
    terminal_text::clean_line,
};
use castor_client::{
    call::Call,
    questions::{Answer, Question, QuestionSubject},
};
use castor_hands::process::cbreak::KeyModes;

const DEFAULT_WIDTH: usize = 80;
const MAX_TITLE: usize = 300;
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

pub struct TerminalAsker {
    typing: Keyboard,
    /// Paths are shown as they are seen from here.
    cwd: String,
    /// Columns of the screen.
    width: usize,
    waiting: QuestionQueue,
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

impl TerminalAsker {
    pub fn new(typing: Keyboard, cwd: &str) -> Self {
        Self {
            typing,
            cwd: cwd.to_owned(),
            width: DEFAULT_WIDTH,
            waiting: QuestionQueue::default(),
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

    /// Answers for the agent, by the number of their question.
    pub fn take_answers(&mut self) -> Vec<(u64, Answer)> {
        self.waiting.take_answers()
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
        let first = self.waiting.first();
        if let Some(it) = first {
            lines.extend(it.kind.draw(width));
        }
        if !self.editor.is_empty() {
            lines.extend(wrap(&self.editor.draw("› "), width, "  "));
        }
        let own = (!self.editor.is_empty()).then_some("finish your line first: enter sends it, esc drops it");
        let hint = self.waiting.hint(own);
        if hint.is_empty() {
            return lines;
        }
        lines.extend(wrap(&Line::new(&format!("  {hint}"), Style::DIM), width, "  "));
        lines
    }

    /// Takes a question about `call`; gives what to show now. Without a terminal the answer is the narrow no.
    pub fn ask(&mut self, question: Question, call: &Call) -> String {
        self.is_stale = true;
        if matches!(self.typing, Keyboard::Nobody) {
            let (answer, said) = refuse(&question, call);
            self.waiting.answer(question.number, answer);
            return said;
        }
        self.open();
        let place = QuestionPlace { cwd: &self.cwd, width: self.width, runs_programs: false };
        match self.waiting.push(question, call, &place, self.listens) && self.waiting.len() == 1 {
            true => self.show(true),
            false => String::new(),
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
            Typed::Resumed => self.lines.extend(self.waiting.first().into_iter().flat_map(|it| it.text.lines.clone())),
            Typed::End if self.waiting.is_empty() => self.listens = false,
            Typed::End => {
                self.settle(0, Settled::new(Answer::Cancelled, "not answered"));
                return self.show(false);
            }
        }
        String::new()
    }

    fn line(&mut self, line: String) -> String {
        let Some(first) = self.waiting.first_mut() else {
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
        for key in input.decode(typed) {
            // An answer brings up the next question: the rest of these keys is older than that.
            if matches!(&self.typing, Keyboard::Keys(it) if it.is_current(typed)) {
                self.key(&key);
            }
        }
    }

    /// A key for the line that is typed, or else for the question.
    fn key(&mut self, key: &KeyPress) {
        let listens = self.listens;
        // A letter that is no answer begins a line, whose other letters are none either.
        let is_asked = |it: &&mut PendingQuestion| !(listens && it.kind.is_begun_message(key));
        let Some(first) = self.waiting.first_mut().filter(|_| self.editor.is_empty()).filter(is_asked) else {
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
    pub fn withdraw(&mut self, number: u64) -> String {
        self.is_stale = true;
        let Some(at) = self.waiting.find(number) else { return String::new() };
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
        let record = self.waiting.settle(at, settled);
        self.steering_lines.extend(record.words);
        self.lines.extend(record.line.filter(|_| self.takes_keys()));
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
        let Some(first) = self.waiting.first() else { return String::new() };
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
            self.typing = match KeyInput::open(KeyModes::QUESTIONS) {
                Some(it) => Keyboard::Keys(it),
                None => Keyboard::Lines(terminal::lines()),
            };
            self.at_terminal = true;
            self.width = terminal::columns();
        }
    }
}

/// The narrow no, as nobody is here to ask, and what is said about it.
fn refuse(question: &Question, call: &Call) -> (Answer, String) {
    let QuestionSubject::Permission(asked) = &question.about else {
        return (Answer::Declined, "castor: not answered, because nobody can be asked\n".to_owned());
    };
    let title = call.title.as_deref().unwrap_or("a tool call");
    let agent = question.agent.as_ref().map(|it| format!("{it}: ")).filter(|it| !title.starts_with(it.as_str()));
    let title = clean_line(&format!("{}{title}", agent.unwrap_or_default()), MAX_TITLE);
    let said = format!("castor: denied, because nobody can be asked: {title}\n");
    (reject_once(&approval::options(&asked.options)), said)
}
