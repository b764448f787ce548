//! The bottom of the screen: what gets the keys, and what is drawn there. A question is above a picker, and that above the
//! composer.

use std::{mem, time::Duration};

use super::lower::{Action, Draft, Drawn, Key, News, Panel, ProposedText, Theme};
use crate::cli::{
    client::{
        approval::{QuestionLook, QuestionStep, Settled},
        question::QuestionKind,
        question_queue::QuestionQueue,
        question_subject::{QuestionPlace, wrap_indented},
    },
    render::{
        text::{Line, Style},
        wrap::wrap,
    },
};
use castor_client::{
    call::Call,
    questions::{Answer, Question},
};

/// Nobody has read a question that came up so shortly before a key: the key meant something else.
const GLANCE: Duration = Duration::from_millis(400);
const AWAY_HINT: &str = "tab answers the question; until then you type your message";

pub struct Bottom {
    composer: Box<dyn Panel>,
    /// On top of the composer.
    picker: Option<Box<dyn Panel>>,
    questions: QuestionQueue,
    /// The question gets the keys, and not the composer.
    is_answering: bool,
    shown_at: Duration,
    /// What was typed and not read yet was typed before the question was shown.
    is_outdated: bool,
    /// For the scrollback.
    lines: Vec<Line>,
    /// For the agent, besides answers.
    words: Vec<String>,
    /// Of the screen.
    pub width: usize,
}

impl Bottom {
    pub fn new(composer: Box<dyn Panel>) -> Self {
        Self {
            composer,
            picker: None,
            questions: QuestionQueue::default(),
            is_answering: false,
            shown_at: Duration::ZERO,
            is_outdated: false,
            lines: Vec::new(),
            words: Vec::new(),
            width: 80,
        }
    }

    pub fn key(&mut self, key: &Key, now: Duration, out: &mut Vec<Action>) {
        if self.is_answering && !self.questions.is_empty() {
            return self.key_at_question(key, now, out);
        }
        if *key == Key::Tab && !self.questions.is_empty() {
            self.is_answering = true;
            return;
        }
        match &mut self.picker {
            Some(it) => it.key(key, out),
            None => self.composer.key(key, out),
        }
    }

    fn key_at_question(&mut self, key: &Key, now: Duration, out: &mut Vec<Action>) {
        let is_unread = now.saturating_sub(self.shown_at) < GLANCE;
        let begins_message = self.questions.first().is_some_and(|it| it.kind.is_begun_message(key));
        match is_unread || begins_message {
            // A key too many for the question before it.
            true if is_unread && self.questions.is_next() && !begins_message => (),
            // The rest of a message has letters that are answers, too.
            true => {
                self.typed_before(key, out);
                self.is_answering = self.composer.is_empty();
            }
            false => match self.look(key) {
                Some(it) => out.push(it),
                None => self.key_of_question(key, now),
            },
        }
    }

    /// What a key opens in a program of the user's.
    fn look(&self, key: &Key) -> Option<Action> {
        let first = self.questions.first()?;
        let QuestionKind::Approval(question) = &first.kind else { return None };
        Some(match question.look(key)? {
            QuestionLook::Edit(it) => Action::EditProposal(it),
            QuestionLook::Page(rest) if rest.is_empty() => Action::Page(first.text.lines.clone()),
            QuestionLook::Page(rest) => Action::Page(first.text.lines.iter().take(1).cloned().chain(rest).collect()),
        })
    }

    /// # Errors
    /// In words: the question is not there any more, or the changes cannot be told.
    pub fn answer_with_edit(
        &mut self,
        proposed: &ProposedText,
        edited: &str,
        now: Duration,
    ) -> Result<(), &'static str> {
        let settled = match self.questions.first().map(|it| &it.kind) {
            Some(QuestionKind::Approval(it)) => it.answer_with_edit(proposed, edited)?,
            _ => return Err("the question is gone, so the changes are lost"),
        };
        self.settle(0, settled);
        self.show(now);
        Ok(())
    }

    /// A key that was typed before the question came up: it is for the composer.
    pub fn typed_before(&mut self, key: &Key, out: &mut Vec<Action>) {
        // Enter would send what the user may want to see first.
        if !matches!(key, Key::Enter | Key::Esc) {
            self.composer.key(key, out);
        }
    }

    fn key_of_question(&mut self, key: &Key, now: Duration) {
        let Some(first) = self.questions.first_mut() else { return };
        match first.kind.key(key) {
            QuestionStep::Open => (),
            QuestionStep::Show(lines) => self.lines.extend(lines),
            QuestionStep::Settled(settled) => {
                self.settle(0, settled);
                self.show(now);
            }
        }
    }

    /// A line of a terminal without single keys; gives what to say where it is no answer.
    pub fn answer_line(&mut self, line: &str, now: Duration) -> String {
        let Some(first) = self.questions.first_mut() else { return String::new() };
        match first.kind.line(line) {
            Err(more) => more,
            Ok(answer) => {
                self.settle(0, Settled::new(answer, ""));
                self.show(now);
                String::new()
            }
        }
    }

    /// What a terminal without single keys shows of the first question, below its text.
    pub fn question_prompt(&self) -> String {
        self.questions.first().map(|it| it.kind.prompt()).unwrap_or_default()
    }

    /// Takes a question about `call`. Whether it is shown now: others wait for their turn.
    pub fn ask(&mut self, question: Question, call: &Call, cwd: &str, takes_words: bool, now: Duration) -> bool {
        let place = QuestionPlace { cwd, width: self.width, runs_programs: true };
        if !self.questions.push(question, call, &place, takes_words) || self.questions.len() > 1 {
            return false;
        }
        self.is_answering = self.composer.is_empty();
        self.show(now);
        true
    }

    fn show(&mut self, now: Duration) {
        let Some(first) = self.questions.first() else {
            self.is_answering = false;
            return;
        };
        self.lines.extend(first.text.lines.iter().cloned());
        (self.is_outdated, self.shown_at) = (true, now);
    }

    /// Answers for the agent, by the number of their question.
    pub fn take_answers(&mut self) -> Vec<(u64, Answer)> {
        self.questions.take_answers()
    }

    /// The agent takes a question back.
    pub fn withdraw(&mut self, number: u64, now: Duration) {
        let Some(at) = self.questions.find(number) else { return };
        self.settle(at, Settled::new(Answer::Withdrawn, "no longer asked"));
        if at == 0 {
            self.show(now);
        }
    }

    /// The turn is cancelled, and with it everything that was asked.
    pub fn cancel_questions(&mut self) {
        let mut record = "cancelled";
        while !self.questions.is_empty() {
            self.settle(0, Settled::new(Answer::Cancelled, record));
            record = "";
        }
        self.is_answering = false;
    }

    fn settle(&mut self, at: usize, settled: Settled) {
        let record = self.questions.settle(at, settled);
        self.lines.extend(record.line);
        self.words.extend(record.words);
    }

    pub fn is_asking(&self) -> bool {
        !self.questions.is_empty()
    }

    /// Whether a panel other than the composer is open.
    pub fn has_picker(&self) -> bool {
        self.picker.is_some()
    }

    pub fn open(&mut self, picker: Box<dyn Panel>) {
        self.picker = Some(picker);
    }

    pub fn close_picker(&mut self) {
        self.picker = None;
    }

    pub fn has_draft(&self) -> bool {
        !self.composer.is_empty()
    }

    pub fn take_draft(&mut self) -> Option<Draft> {
        self.composer.take_draft()
    }

    pub fn tell(&mut self, news: &News, out: &mut Vec<Action>) {
        self.composer.tell(news, out);
        if let Some(it) = &mut self.picker {
            it.tell(news, out);
        }
    }

    /// Whether a question came up since this was asked.
    pub fn take_outdated(&mut self) -> bool {
        mem::take(&mut self.is_outdated)
    }

    /// What goes to the scrollback: questions that came up, and records of answers.
    pub fn take_lines(&mut self) -> Vec<Line> {
        let lines = mem::take(&mut self.lines);
        lines.iter().flat_map(|it| wrap_indented(it, self.width)).collect()
    }

    pub fn take_words(&mut self) -> Vec<String> {
        mem::take(&mut self.words)
    }

    pub fn draw(&self, width: u16, height: u16, theme: &Theme) -> Drawn {
        let columns = usize::from(width);
        let mut res = Drawn::default();
        if let Some(first) = self.questions.first() {
            res.lines = first.kind.draw(columns);
            let own = (!self.is_answering).then_some(AWAY_HINT);
            let hint = Line::new(&format!("  {}", self.questions.hint(own)), Style::DIM);
            res.lines.extend(wrap(&hint, columns, "  "));
            if self.is_answering && self.composer.is_empty() {
                let above = res.lines.len().saturating_sub(height.into());
                return Drawn { lines: res.lines.split_off(above), cursor: None };
            }
        }
        let room = usize::from(height).saturating_sub(res.lines.len()).max(1);
        let room = u16::try_from(room).unwrap_or(height);
        let below = match &self.picker {
            Some(it) => it.draw(width, room, theme),
            None => self.composer.draw(width, room, theme),
        };
        let start = u16::try_from(res.lines.len()).unwrap_or_default();
        let cursor = below.cursor.filter(|_| !self.is_answering);
        res.cursor = cursor.map(|(row, column)| (start.saturating_add(row), column));
        res.lines.extend(below.lines);
        let above = res.lines.len().saturating_sub(height.into());
        res.cursor = res.cursor.and_then(|(row, column)| Some((row.checked_sub(u16::try_from(above).ok()?)?, column)));
        Drawn { lines: res.lines.split_off(above), ..res }
    }
}
