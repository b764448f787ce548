//! The questions that wait for an answer of the user's, the first of them shown.

use std::{collections::VecDeque, mem};

use super::{
    approval::{self, ApprovalQuestion, Settled},
    form::FormInProgress,
    question::QuestionKind,
    question_subject::{QuestionPlace, QuestionText},
};
use crate::cli::{
    render::text::{Line, Style},
    terminal_text::clean_line,
};
use castor_client::{
    call::Call,
    questions::{Answer, Question, QuestionSubject},
};

const MAX_URL: usize = 4_096;

#[derive(Debug, Default)]
pub struct QuestionQueue {
    waiting: VecDeque<PendingQuestion>,
    /// Answers for the agent, by the number of their question.
    answers: Vec<(u64, Answer)>,
    /// How many were answered since none waited.
    answered: usize,
}

/// The first one that waits is the one that is shown.
#[derive(Debug)]
pub struct PendingQuestion {
    number: u64,
    pub kind: QuestionKind,
    pub text: QuestionText,
}

/// What is left of a question that is settled.
#[derive(Debug, Default)]
pub struct SettledRecord {
    /// For the scrollback: keys leave no trace of an answer.
    pub line: Option<Line>,
    /// Words for the agent besides the answer.
    pub words: Option<String>,
}

impl QuestionQueue {
    pub fn first(&self) -> Option<&PendingQuestion> {
        self.waiting.front()
    }

    pub fn first_mut(&mut self) -> Option<&mut PendingQuestion> {
        self.waiting.front_mut()
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether the first one came up by the answer of another.
    pub fn is_next(&self) -> bool {
        self.answered > 0
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    pub fn answer(&mut self, number: u64, answer: Answer) {
        self.answers.push((number, answer));
    }

    pub fn take_answers(&mut self) -> Vec<(u64, Answer)> {
        mem::take(&mut self.answers)
    }

    /// Takes a question about `call`. `takes_words`: a no may have a reason. Whether it waits now: one without options does
    /// not.
    pub fn push(&mut self, question: Question, call: &Call, place: &QuestionPlace<'_>, takes_words: bool) -> bool {
        let agent = question.agent.unwrap_or_default();
        let (kind, mut text) = match question.about {
            QuestionSubject::Permission(asked) => {
                let options = approval::options(&asked.options);
                if options.is_empty() {
                    self.answer(question.number, Answer::Cancelled);
                    return false;
                }
                let mut text = QuestionText::of_call(call, place);
                if !agent.is_empty() {
                    text.name_agent(&agent);
                }
                let shown = text.without_reasons();
                (QuestionKind::Approval(ApprovalQuestion::new(text, options, takes_words)), shown)
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
        self.waiting.push_back(PendingQuestion { number: question.number, kind, text });
        true
    }

    /// The place of the question with this number.
    pub fn find(&self, number: u64) -> Option<usize> {
        self.waiting.iter().position(|question| question.number == number)
    }

    /// Settles a question.
    pub fn settle(&mut self, at: usize, settled: Settled) -> SettledRecord {
        let Some(it) = self.waiting.remove(at) else { return SettledRecord::default() };
        self.answer(it.number, settled.answer);
        let mut res = SettledRecord { line: None, words: settled.words };
        // Of those behind the first nothing was shown.
        if at > 0 {
            return res;
        }
        if !settled.record.is_empty() {
            let mut line = Line::new(&format!("? {}  ", it.text.short), Style::DIM);
            line.push(&settled.record, Style::PLAIN);
            res.line = Some(line);
        }
        self.answered = if self.waiting.is_empty() { 0 } else { self.answered + 1 };
        res
    }

    /// The keys of the first question, and which of how many it is. `own`: what to say in place of its keys.
    pub fn hint(&self, own: Option<&str>) -> String {
        let Some(first) = self.first() else { return String::new() };
        let hint = own.map_or_else(|| first.kind.hint(), str::to_owned);
        let count = self.answered + self.waiting.len();
        match count > 1 && !hint.is_empty() {
            true => format!("{} of {count} · {hint}", self.answered + 1),
            false => hint,
        }
    }
}
