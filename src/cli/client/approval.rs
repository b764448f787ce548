//! Approval question: what a tool call would do, why it is asked, and the options of the answer.

use super::{
    keys::KeyPress,
    line_editor::LineEditor,
    menu::{Menu, MenuOption},
    question_subject::{ProposedText, QuestionText, heading},
};
use crate::cli::render::{
    text::{Color, Line, Style},
    wrap::wrap,
};
use castor_client::questions::Answer;
use castor_wire::acp::client::PermissionChoice;

const HELP: &[&str] = &[
    "A letter or a digit answers at once. Arrows move, and enter takes the marked option.",
    "Esc says no. Ctrl-C cancels the turn.",
    "What was typed before a question appears never answers it. A letter that is no answer begins a message.",
];

const HELP_FOR_LINES: &[&str] = &[
    "Type the letter or the number of an answer, then Enter. Ctrl-C cancels the turn.",
    "What was typed before a question appears never answers it.",
];

/// Bytes of the changes that the agent is told.
const MAX_CHANGES: usize = 16 << 10;

/// What a key or a line comes to.
#[derive(Debug, PartialEq)]
pub enum QuestionStep {
    Open,
    /// Lines for the scrollback; the question stays.
    Show(Vec<Line>),
    Settled(Settled),
}

/// What the user wants to see of a question in a program of theirs.
#[derive(Debug, PartialEq)]
pub enum QuestionLook {
    /// The rest of a text that was cut; empty: the question shows all of it.
    Page(Vec<Line>),
    Edit(ProposedText),
}

#[derive(Debug, PartialEq)]
pub struct Settled {
    pub answer: Answer,
    /// What is written down about it.
    pub record: String,
    /// Words for the agent besides the answer.
    pub words: Option<String>,
}

impl Settled {
    pub fn new(answer: Answer, record: impl Into<String>) -> Self {
        Self { answer, record: record.into(), words: None }
    }
}

/// A question with options that the agent named.
#[derive(Debug)]
pub struct ApprovalQuestion {
    pub text: QuestionText,
    pub menu: Menu,
    /// The reason for a no, while it is typed.
    why: Option<LineEditor>,
    /// The agent takes words beside the answer.
    takes_words: bool,
    shows_help: bool,
    /// All of a long text was shown, so that its name has left the screen.
    is_far: bool,
}

impl ApprovalQuestion {
    pub fn new(text: QuestionText, options: Vec<MenuOption>, takes_words: bool) -> Self {
        Self { text, menu: Menu::new(options), why: None, takes_words, shows_help: false, is_far: false }
    }

    pub fn key(&mut self, key: &KeyPress) -> QuestionStep {
        if self.why.is_some() {
            return self.key_of_reason(key);
        }
        if *key == KeyPress::Esc {
            return QuestionStep::Settled(Settled::new(reject_once(self.menu.options()), "rejected"));
        }
        if let Some(at) = self.menu.key(key) {
            return self.choose(at);
        }
        match key {
            KeyPress::Char('?') => self.shows_help = !self.shows_help,
            KeyPress::Char('w' | 'W') if self.offers_reason() => self.why = Some(LineEditor::default()),
            KeyPress::Char('d' | 'D') if self.offers_rest() => {
                self.is_far = true;
                return QuestionStep::Show(self.text.cut.clone());
            }
            _ => (),
        }
        QuestionStep::Open
    }

    /// Whether a letter, a digit or pasted text means something here.
    pub fn takes(&self, key: &KeyPress) -> bool {
        let means = match key {
            KeyPress::Char('?') => true,
            KeyPress::Char('w' | 'W') => self.offers_reason(),
            KeyPress::Char('d' | 'D') => self.offers_rest(),
            _ => false,
        };
        means || self.why.is_some() || self.menu.takes(key) || self.look(key).is_some()
    }

    fn key_of_reason(&mut self, key: &KeyPress) -> QuestionStep {
        let Some(editor) = &mut self.why else { return QuestionStep::Open };
        match key {
            KeyPress::Esc => self.why = None,
            KeyPress::Enter => {
                let words = editor.take().trim().to_owned();
                let answer = reject_once(self.menu.options());
                return QuestionStep::Settled(match words.as_str() {
                    "" => Settled::new(answer, "rejected"),
                    _ => Settled { answer, record: format!("rejected: {words}"), words: Some(words) },
                });
            }
            _ => editor.key(key),
        }
        QuestionStep::Open
    }

    pub fn choose(&self, at: usize) -> QuestionStep {
        let Some(it) = self.menu.get(at) else { return QuestionStep::Open };
        // The line of the call says that it was allowed. Where several answers allow it, it does not say which.
        let allows = self.menu.options().iter().filter(|it| it.kind == "allow_once").count();
        let is_plain = self.text.is_call && it.kind == "allow_once" && allows == 1;
        let record = if is_plain { String::new() } else { record(it) };
        QuestionStep::Settled(Settled::new(Answer::Selected(it.id.clone()), record))
    }

    fn offers_reason(&self) -> bool {
        let is_no = |it: &MenuOption| it.kind == "reject_once";
        self.takes_words && self.menu.options().iter().any(is_no) && self.menu.option_for_line("w").is_none()
    }

    /// Whether more of the text can be shown.
    fn offers_rest(&self) -> bool {
        !self.text.cut.is_empty() && !self.is_far
    }

    pub fn draw(&self, width: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        if self.is_far {
            lines.extend(wrap(&heading(&self.text.short), width, "  "));
        }
        for it in &self.text.reasons {
            lines.extend(wrap(&Line::new(&format!("  {it}"), Style::color(Color::Yellow)), width, "  "));
        }
        if let Some(editor) = &self.why {
            lines.extend(wrap(&editor.draw("  no, because › "), width, "    "));
            let hint = Line::new("  enter answers no and tells the agent why · esc goes back", Style::DIM);
            lines.extend(wrap(&hint, width, "  "));
            return lines;
        }
        lines.extend(self.menu.draw(width));
        if self.offers_reason() {
            let mut line = Line::new("  w ", Style { bold: true, ..Style::color(Color::Cyan) });
            line.push(" Reject, and say why", Style::PLAIN);
            lines.push(line);
        }
        if self.shows_help {
            lines.extend(HELP.iter().flat_map(|it| wrap(&Line::new(&format!("  {it}"), Style::DIM), width, "  ")));
        }
        lines
    }

    /// The options and the prompt of a terminal without single keys.
    pub fn prompt(&self) -> String {
        let options = self.menu.options().iter().enumerate();
        let options: String = options.map(|(at, it)| format!("  {}) {}\n", self.menu.key_name(at), it.label)).collect();
        format!("{options}  {}: ", self.menu.key_names())
    }

    /// What to show in place of an answer after a line that means no option.
    pub fn explain(&self, line: &str) -> String {
        let why = match line.trim() {
            "?" => HELP_FOR_LINES.iter().map(|it| format!("  {it}\n")).collect(),
            _ => "  That is none of the answers; ? explains them.\n".to_owned(),
        };
        why + &self.prompt()
    }

    /// What a key asks to look at, where programs can be run: all of a text, or what an edit would write.
    pub fn look(&self, key: &KeyPress) -> Option<QuestionLook> {
        match key {
            _ if self.why.is_some() => None,
            KeyPress::Char('p' | 'P') if self.offers_pager() => Some(QuestionLook::Page(self.text.cut.clone())),
            KeyPress::Char('e' | 'E') => self.editable().cloned().map(QuestionLook::Edit),
            _ => None,
        }
    }

    fn offers_pager(&self) -> bool {
        self.text.has_pager && self.menu.option_for_line("p").is_none()
    }

    /// What can be edited, where the agent hears of the changes.
    fn editable(&self) -> Option<&ProposedText> {
        self.text.proposed.as_ref().filter(|_| self.offers_reason() && self.menu.option_for_line("e").is_none())
    }

    /// No, with the changes that the user made to what the call would write.
    ///
    /// # Errors
    /// In words: this is no such question, or the changes are too many.
    pub fn answer_with_edit(&self, proposed: &ProposedText, edited: &str) -> Result<Settled, &'static str> {
        if self.editable() != Some(proposed) {
            return Err("the question is another one now, so the changes are lost");
        }
        let changes = similar::TextDiff::from_lines(&proposed.text, edited);
        let changes = changes.unified_diff().context_radius(3).to_string();
        if changes.len() > MAX_CHANGES {
            return Err("the changes are too many to tell the agent: answer no, and change the file yourself");
        }
        let path = &proposed.path;
        let words = format!(
            "The user said no to this text of {path} as it is, and edited it. Propose the same call again with these \
             changes to its text, and no others:\n```diff\n{changes}```"
        );
        let answer = reject_once(self.menu.options());
        Ok(Settled { answer, record: "rejected, with your changes".to_owned(), words: Some(words) })
    }

    pub fn hint(&self) -> String {
        if self.why.is_some() {
            return String::new();
        }
        let parts = [
            ("esc no", true),
            ("d shows all", self.offers_rest()),
            ("p pager", self.offers_pager()),
            ("e edit", self.editable().is_some()),
            ("? keys", true),
        ];
        parts.iter().filter(|it| it.1).map(|it| it.0).collect::<Vec<_>>().join(" · ")
    }
}

/// The options of a permission request.
pub fn options(choices: &[PermissionChoice]) -> Vec<MenuOption> {
    let option = |it: &PermissionChoice| {
        let name = it.name.as_ref().unwrap_or(&it.option_id);
        MenuOption { kind: it.kind.clone(), ..MenuOption::new(&it.option_id, name) }
    };
    choices.iter().map(option).collect()
}

/// No for this once; where that is not offered, no answer: `reject_always` would outlive this run.
pub fn reject_once(options: &[MenuOption]) -> Answer {
    let once = options.iter().find(|it| it.kind == "reject_once");
    once.map_or(Answer::Cancelled, |it| Answer::Selected(it.id.clone()))
}

fn record(option: &MenuOption) -> String {
    match (option.id.as_str(), option.kind.as_str()) {
        ("allow_once", "allow_once") => "allowed once".to_owned(),
        ("allow_session", "allow_always") => "allowed for this session".to_owned(),
        ("allow_always_save", "allow_always") => "allowed for this and future sessions".to_owned(),
        ("allow_auto", "allow_always") => "allowed; the mode is auto now".to_owned(),
        ("reject_once", "reject_once") => "rejected".to_owned(),
        _ => option.label.clone(),
    }
}
