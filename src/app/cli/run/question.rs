//! A question of any kind: keys or a line in, a panel and at last the answer out.

use super::{
    approval::{ApprovalQuestion, QuestionStep, Settled},
    client_requests::Answer,
    form::{FormEvent, FormInProgress},
    keys::KeyPress,
    menu::{Menu, MenuOption},
};
use crate::app::cli::render::{text::Line, wrap::wrap};

/// What is asked, and how it is answered.
#[derive(Debug)]
pub enum QuestionKind {
    Approval(ApprovalQuestion),
    Form(FormInProgress),
    /// A page to open, with its address.
    Page(Menu, String),
}

impl QuestionKind {
    pub fn page(url: String) -> Self {
        let opened = MenuOption::new("opened", "I have opened it").with_letter('y');
        Self::Page(Menu::new(vec![opened, MenuOption::new("not_now", "Do not open it")]), url)
    }

    pub fn key(&mut self, key: &KeyPress) -> QuestionStep {
        match self {
            Self::Approval(it) => it.key(key),
            Self::Form(form) => {
                let event = form.key(key);
                settle_form(form, event).unwrap_or(QuestionStep::Open)
            }
            Self::Page(menu, _) => match (key, menu.key(key)) {
                (KeyPress::Esc, _) | (_, Some(1)) => settle(Answer::Declined, "not opened"),
                (_, Some(_)) => settle(Answer::Filled(None), "opened"),
                _ => QuestionStep::Open,
            },
        }
    }

    /// What the line comes to, or what to show in place of an answer.
    pub fn line(&mut self, line: &str) -> Result<Answer, String> {
        match self {
            Self::Approval(it) => match it.menu.option_for_line(line).map(|at| it.choose(at)) {
                Some(QuestionStep::Settled(it)) => Ok(it.answer),
                _ => Err(it.explain(line)),
            },
            Self::Form(form) => match form.take(line) {
                FormEvent::Open(more) => Err(more),
                FormEvent::Done(content) => Ok(Answer::Filled(Some(content))),
                FormEvent::Declined => Ok(Answer::Declined),
            },
            Self::Page(menu, _) => match menu.option_for_line(line) {
                Some(0) => Ok(Answer::Filled(None)),
                Some(_) => Ok(Answer::Declined),
                None => Err("  y or n: ".to_owned()),
            },
        }
    }

    pub fn draw(&self, width: usize) -> Vec<Line> {
        match self {
            Self::Approval(it) => it.draw(width),
            Self::Form(it) => it.draw(width),
            Self::Page(menu, url) => {
                let mut lines = wrap(&Line::plain(&format!("  {url}")), width, "  ");
                lines.extend(menu.draw(width));
                lines
            }
        }
    }

    pub fn hint(&self) -> String {
        match self {
            Self::Approval(it) => it.hint(),
            Self::Form(it) => it.hint(),
            Self::Page(..) => "esc declines".to_owned(),
        }
    }

    /// The options and the prompt of a terminal without single keys.
    pub fn prompt(&self) -> String {
        match self {
            Self::Approval(it) => {
                let reasons: String = it.text.reasons.iter().map(|it| format!("  {it}\n")).collect();
                reasons + &it.prompt()
            }
            Self::Form(it) => it.prompt(),
            Self::Page(_, url) => format!("  {url}\n  open it, then answer y; n to decline: "),
        }
    }
}

fn settle(answer: Answer, record: &str) -> QuestionStep {
    QuestionStep::Settled(Settled::new(answer, record))
}

fn settle_form(form: &FormInProgress, event: FormEvent) -> Option<QuestionStep> {
    match event {
        FormEvent::Open(_) => None,
        FormEvent::Declined => Some(settle(Answer::Declined, "not answered")),
        FormEvent::Done(content) => {
            let record = form.record(&content);
            Some(settle(Answer::Filled(Some(content)), &record))
        }
    }
}
