//! A question of any kind: keys or a line in, a panel and at last the answer out.

use super::{
    approval::{ApprovalQuestion, QuestionStep, Settled},
    form::{FormEvent, FormInProgress},
    keys::KeyPress,
    menu::{Menu, MenuOption},
};
use crate::cli::render::{text::Line, wrap::wrap};
use castor_client::questions::Answer;

/// What is asked, and how it is answered.
#[derive(Debug)]
pub enum QuestionKind {
    Approval(ApprovalQuestion),
    Form(FormInProgress),
    /// A page to open.
    Page(PageQuestion),
}

#[derive(Debug)]
pub struct PageQuestion {
    menu: Menu,
    url: String,
    /// A credential is renewed there, or by a command in another terminal.
    renews: bool,
}

impl QuestionKind {
    pub fn page(url: String, renews: bool) -> Self {
        let (yes, no) = match renews {
            true => ("It is renewed: go on", "End the turn"),
            false => ("I have opened it", "Do not open it"),
        };
        let opened = MenuOption::new("opened", yes).with_letter('y');
        let menu = Menu::new(vec![opened, MenuOption::new("not_now", no)]);
        // Enter makes the request again, and opens nothing.
        let menu = if renews { menu.highlighting(0) } else { menu };
        Self::Page(PageQuestion { menu, url, renews })
    }

    pub fn key(&mut self, key: &KeyPress) -> QuestionStep {
        match self {
            Self::Approval(it) => it.key(key),
            Self::Form(form) => {
                let event = form.key(key);
                settle_form(form, event).unwrap_or(QuestionStep::Open)
            }
            Self::Page(PageQuestion { menu, renews, .. }) => match (key, menu.key(key)) {
                (KeyPress::Esc, _) | (_, Some(1)) => {
                    settle(Answer::Declined, if *renews { "not renewed" } else { "not opened" })
                }
                (_, Some(_)) => settle(Answer::Filled(None), if *renews { "renewed" } else { "opened" }),
                _ => QuestionStep::Open,
            },
        }
    }

    /// Whether a key is the beginning of a message: text that answers nothing here.
    pub fn is_begun_message(&self, key: &KeyPress) -> bool {
        let takes = match self {
            Self::Approval(it) => it.takes(key),
            Self::Form(it) => it.takes(key),
            Self::Page(it) => it.menu.takes(key),
        };
        matches!(key, KeyPress::Char(_) | KeyPress::Paste(_)) && !takes
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
            // Enter says that it is done.
            Self::Page(it) if it.renews && line.trim().is_empty() => Ok(Answer::Filled(None)),
            Self::Page(it) => match it.menu.option_for_line(line) {
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
            Self::Page(PageQuestion { menu, url, .. }) => {
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
            Self::Page(PageQuestion { url, renews: true, .. }) => {
                format!("  {url}\n  press Enter when it is renewed; n ends the turn: ")
            }
            Self::Page(PageQuestion { url, .. }) => format!("  {url}\n  open it, then answer y; n to decline: "),
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
