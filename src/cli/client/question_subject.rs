//! The subject of a question: the command, diff or text that would be approved, cut to what fits on a screen.

use serde_json::Value;

use crate::cli::{
    render::{
        diff::{DiffView, diff},
        text::{Color, Line, Span, Style},
        wrap::wrap,
    },
    terminal_text::clean_line,
};
use castor_base::{shown_text::show_text, tool::ToolKind};
use castor_client::call::Call;
use castor_wire::acp::client::CallDiff;

/// Lines of a diff or of other content that a question shows at once.
const MAX_LINES: usize = 20;
/// The most lines that are ever shown of one text.
const MAX_WHOLE: usize = 5_000;
/// Characters of the subject in a record.
const MAX_SHORT: usize = 60;
const MAX_TITLE: usize = 300;
/// Columns that a diff is indented by.
const INDENT: &str = "  ";

/// Where a question is shown.
pub struct QuestionPlace<'a> {
    /// Paths are seen from here.
    pub cwd: &'a str,
    pub width: usize,
    /// A pager and an editor can be run from there.
    pub runs_programs: bool,
}

/// What an edit would write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProposedText {
    pub path: String,
    pub text: String,
}

/// What a question says before it is answered.
#[derive(Debug, Default, PartialEq)]
pub struct QuestionText {
    /// A few words for the record.
    pub short: String,
    /// For the scrollback.
    pub lines: Vec<Line>,
    /// All of a text that was cut, for a look at it.
    pub cut: Vec<Line>,
    /// Why it is asked.
    pub reasons: Vec<String>,
    /// What it would write, where that can be edited.
    pub proposed: Option<ProposedText>,
    /// It can be looked at in a pager.
    pub has_pager: bool,
    /// Of a tool call, which has a line of its own when it is allowed.
    pub is_call: bool,
}

impl QuestionText {
    /// A message that is the question itself.
    pub fn of_message(message: &str) -> Self {
        let message = show_text(message);
        let mut lines = message.trim().lines();
        let first = lines.next().unwrap_or_default();
        let mut res = Self { short: clean_line(first, MAX_SHORT), ..Self::default() };
        res.lines.push(heading(first));
        let rest: Vec<Line> = lines.map(|it| Line::plain(&format!("  {it}"))).collect();
        res.push_at_most(rest, MAX_WHOLE);
        res
    }

    /// Says which sub-agent asks, unless its words say so already.
    pub fn name_agent(&mut self, agent: &str) {
        let agent = format!("{}: ", clean_line(agent, MAX_SHORT));
        if self.short.starts_with(&agent) {
            return;
        }
        self.short = clean_line(&format!("{agent}{}", self.short), MAX_SHORT);
        if let Some(it) = self.lines.first_mut() {
            it.spans.insert(1.min(it.spans.len()), Span::new(&agent, Style::BOLD));
        }
    }

    /// What goes to the scrollback; the rest stays for the panel.
    pub fn without_reasons(&mut self) -> Self {
        Self { short: self.short.clone(), lines: std::mem::take(&mut self.lines), ..Self::default() }
    }

    /// A tool call that waits for approval.
    pub fn of_call(call: &Call, place: &QuestionPlace<'_>) -> Self {
        let Some(title) = &call.title else {
            return Self::of_message(call.texts().next().unwrap_or("a tool call"));
        };
        let title = clean_line(title, MAX_TITLE);
        let diffs: Vec<&CallDiff> = call.diffs().collect();
        let command = call.input("command");
        let is_edit = command.is_none() && call.kind == Some(ToolKind::Edit) && !diffs.is_empty();
        let is_write = call.raw_input.as_ref().is_some_and(|it| it.get("content").is_some());
        let mut res = match command {
            Some(command) => Self::of_command(&title, command),
            None if is_edit => Self::of_edit(&diffs, is_write, place),
            None => Self { short: clean_line(&title, MAX_SHORT), lines: vec![heading(&title)], ..Self::default() },
        };
        if !is_edit {
            res.push_diffs(&diffs, true, place);
        }
        if call.kind == Some(ToolKind::Other) {
            res.push_arguments(call.raw_input.as_ref());
        }
        for it in call.texts() {
            res.push_text(it);
        }
        res.is_call = true;
        res.has_pager = place.runs_programs && !(diffs.is_empty() && res.cut.is_empty());
        res.proposed = match &diffs[..] {
            [one] if is_edit && place.runs_programs => proposed_text(one),
            _ => None,
        };
        res
    }

    /// The command in whole, once: a title that only repeats it is left out.
    fn of_command(title: &str, command: &str) -> Self {
        let words = |it: &str| it.split_whitespace().collect::<Vec<_>>().join(" ");
        let command = show_text(command);
        let is_title = words(&command).starts_with(words(title).trim_end_matches('…').trim_end());
        let mut lines = command.trim_end().lines();
        let mut res = Self::default();
        if is_title {
            let first = lines.next().unwrap_or_default();
            res.short = clean_line(first, MAX_SHORT);
            res.lines.push(heading(first));
        } else {
            res.short = clean_line(title, MAX_SHORT);
            res.lines.push(heading(title));
        }
        let mark = if is_title { "  " } else { "  $ " };
        let rest = lines.map(|it| Line::new(&format!("{mark}{it}"), Style::BOLD)).collect();
        res.push_at_most(rest, MAX_WHOLE);
        res
    }

    /// A call that only edits: its diffs say all.
    fn of_edit(diffs: &[&CallDiff], is_write: bool, place: &QuestionPlace<'_>) -> Self {
        let short = match diffs {
            [one] => edit_name(one, is_write, place.cwd),
            more => format!("edit {} files", more.len()),
        };
        let mut res = Self { short: clean_line(&short, MAX_SHORT), lines: vec![heading(&short)], ..Self::default() };
        let (added, removed) = res.push_diffs(diffs, diffs.len() > 1, place);
        if let Some(head) = res.lines.first_mut().filter(|_| added + removed > 0) {
            head.push(&format!("  +{added}"), Style::color(Color::Green));
            head.push(&format!(" −{removed}"), Style::color(Color::Red));
        }
        res
    }

    /// Gives how many lines come and go.
    fn push_diffs(&mut self, diffs: &[&CallDiff], with_names: bool, place: &QuestionPlace<'_>) -> (usize, usize) {
        let limit = MAX_LINES / diffs.len().max(1);
        let views: Vec<DiffView> = diffs.iter().map(|it| file_diff(it, Some(limit), place.width)).collect();
        let (added, removed) = views.iter().fold((0, 0), |sum, it| (sum.0 + it.added, sum.1 + it.removed));
        let is_cut = views.iter().any(|it| it.hidden > 0);
        for (it, view) in diffs.iter().zip(views) {
            let name = with_names.then(|| Line::new(&format!("  {}", edit_name(it, false, place.cwd)), Style::BOLD));
            self.lines.extend(name.iter().cloned().chain(view.lines));
            if is_cut {
                self.cut.extend(name.into_iter().chain(file_diff(it, Some(MAX_WHOLE), place.width).lines));
            }
        }
        (added, removed)
    }

    /// What a tool of others gets: its title does not say.
    fn push_arguments(&mut self, arguments: Option<&Value>) {
        let members = arguments.and_then(Value::as_object).into_iter().flatten();
        let lines = members.flat_map(|(name, value)| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let text = format!("{name}: {text}");
            let text = show_text(&text);
            // Only a name stands that far to the left.
            let indents = std::iter::once("  ").chain(std::iter::repeat("      "));
            indents.zip(text.lines()).map(|(indent, it)| Line::plain(&format!("{indent}{it}"))).collect::<Vec<_>>()
        });
        self.push_cut(lines.collect());
    }

    /// One line says why it is asked; more are content to look at.
    fn push_text(&mut self, text: &str) {
        let text = show_text(text);
        let text = text.trim();
        match text.lines().count() {
            0 => (),
            1 => self.reasons.push(text.to_owned()),
            _ => self.push_cut(text.lines().map(|it| Line::plain(&format!("  {it}"))).collect()),
        }
    }

    fn push_cut(&mut self, lines: Vec<Line>) {
        if lines.len() > MAX_LINES + 1 {
            let more = lines.len() - MAX_LINES;
            self.lines.extend(lines.iter().take(MAX_LINES).cloned());
            self.lines.push(Line::new(&format!("  … {more} more lines"), Style::DIM));
            self.cut.extend(lines.into_iter().take(MAX_WHOLE));
            return;
        }
        self.lines.extend(lines);
    }

    fn push_at_most(&mut self, lines: Vec<Line>, most: usize) {
        let more = lines.len().saturating_sub(most);
        self.lines.extend(lines.into_iter().take(most));
        if more > 0 {
            self.lines.push(Line::new(&format!("  … {more} more lines"), Style::DIM));
        }
    }
}

fn proposed_text(diff: &CallDiff) -> Option<ProposedText> {
    Some(ProposedText { path: diff.path.clone(), text: diff.new_text.clone()? })
}

/// A question's first line.
pub fn heading(text: &str) -> Line {
    let mut line = Line::new("? ", Style { bold: true, ..Style::color(Color::Yellow) });
    line.push(text, Style::BOLD);
    line
}

/// What is done to which file, in the words of the call's own line.
fn edit_name(it: &CallDiff, is_write: bool, cwd: &str) -> String {
    let path = it.path.as_str();
    let is_edit = !is_write && it.old_text.is_some();
    let verb = if is_edit { "edit" } else { "write" };
    let shown = path.strip_prefix(cwd).and_then(|it| it.strip_prefix('/')).filter(|it| !it.is_empty());
    format!("{verb} {}", clean_line(shown.unwrap_or(path), MAX_TITLE))
}

fn file_diff(it: &CallDiff, limit: Option<usize>, width: usize) -> DiffView {
    let (old, new) = (it.old_text.as_deref(), it.new_text.as_deref().unwrap_or_default());
    let mut view = diff(&it.path, old, new, limit, width.saturating_sub(INDENT.len()));
    for line in &mut view.lines {
        line.spans.insert(0, Span::new(INDENT, Style::PLAIN));
    }
    view
}

/// The rest of a long line stands further to the right than its beginning, so that it is no line of its own.
pub fn wrap_indented(line: &Line, width: usize) -> Vec<Line> {
    let text = line.text();
    let depth = text.len() - text.trim_start_matches(' ').len();
    wrap(line, width, &" ".repeat((depth + 2).min(width / 2)))
}
