//! The result of a tool call in a few words: lines, matches, `+n −m`, an exit code, the reason of a failure.

use serde_json::Value;

use super::{
    call::{label, printed, relative, shown_part},
    command_output,
};
use crate::cli::{
    render::{
        diff::diff,
        text::{Color, Line, Style},
        words::count,
        wrap::wrap,
    },
    terminal_text::clean_line,
};
use castor_base::tool::ToolKind;
use castor_client::call::Call;
use castor_wire::acp::client::CallDiff;

/// Lines of an edit that are shown at once.
const DIFF_LINES: usize = 20;
/// Characters of a result that is one line of text.
const MAX_WORDS: usize = 60;
/// How castor begins the text of a command that printed nothing.
const NO_OUTPUT: &str = "(no output";
const MAX_REASON: usize = 600;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    Done,
    /// It did what it was to do, and there is something to know about it.
    Noted,
    Failed,
}

pub struct CallResult {
    pub mark: Mark,
    /// They stand behind what the call does.
    pub words: Vec<(String, Style)>,
    pub below: Vec<Line>,
}

pub fn of(call: &Call, cwd: &str, width: usize) -> CallResult {
    let mut res = CallResult { mark: Mark::Done, words: Vec::new(), below: Vec::new() };
    if call.is_failed() {
        res.fail(call, cwd, width);
    } else if call.diffs().next().is_some() {
        res.show_diffs(call, cwd, width);
    } else if call.is_command() {
        res.show_command(call, width);
    } else {
        res.words.extend(summary(call).map(|it| (it, Style::DIM)));
    }
    res
}

impl CallResult {
    fn fail(&mut self, call: &Call, cwd: &str, width: usize) {
        self.mark = Mark::Failed;
        let mut texts = call.texts().filter(|it| !it.trim().is_empty()).map(shown_part);
        let reason = texts.next().unwrap_or("failed".into()).replace(&format!("{cwd}/"), "");
        let reason = clean_line(command_output::unfence(&reason), MAX_REASON);
        if label(call, cwd).chars().count() + reason.chars().count() + 4 <= width {
            self.words.push((reason, Style::color(Color::Red)));
        } else {
            self.below.extend(indented(&reason, Style::color(Color::Red), width));
        }
        if let Some(output) = texts.next().filter(|_| call.is_command()) {
            self.below.extend(command_output::whole(&output, width, command_output::MAX_LINES));
        }
    }

    fn show_diffs(&mut self, call: &Call, cwd: &str, width: usize) {
        let contents: Vec<&CallDiff> = call.diffs().collect();
        let (mut added, mut removed) = (0, 0);
        for it in &contents {
            let (path, new) = (relative(&it.path, cwd), it.new_text.as_deref().unwrap_or_default());
            let view = diff(&path, it.old_text.as_deref(), new, Some(DIFF_LINES), width - 2);
            (added, removed) = (added + view.added, removed + view.removed);
            if call.was_shown() {
                continue;
            }
            if contents.len() > 1 {
                self.below.push(Line::new(&format!("  {path}"), Style::BOLD));
            }
            self.below.extend(view.lines.iter().map(indent));
        }
        self.words.extend(changed_lines(added as u64, removed as u64));
        if let Some(note) = call.output("editNote").and_then(Value::as_str) {
            self.below.extend(indented(note, Style::color(Color::Yellow), width));
        }
    }

    fn show_command(&mut self, call: &Call, width: usize) {
        let output = printed(call);
        let output = if output.starts_with(NO_OUTPUT) { "" } else { &*output };
        let code = call.output("exitCode").or_else(|| call.output("exit_code")).and_then(Value::as_i64);
        let signal = call.output("signal").and_then(Value::as_str);
        let ending = match (code, signal) {
            (_, Some(signal)) => Some(format!("ended by {}", clean_line(signal, MAX_WORDS))),
            (Some(0) | None, None) => None,
            (Some(code), None) => Some(format!("exit code {code}")),
        };
        if let Some(it) = ending {
            self.mark = Mark::Failed;
            self.words.push((it, Style::color(Color::Red)));
            self.below.extend(command_output::whole(output, width, command_output::MAX_LINES));
        } else {
            self.words.extend(lines_in_words(command_output::unfence(output)).map(|it| (it, Style::DIM)));
        }
        if let Some(note) = call.output("sandbox").and_then(Value::as_str) {
            if self.mark == Mark::Done {
                self.mark = Mark::Noted;
            }
            self.below.extend(indented(note, Style::color(Color::Yellow), width));
        }
    }
}

/// As `+n −m`, in the colours of a diff; nothing where no line changed.
pub fn changed_lines(added: u64, removed: u64) -> Option<(String, Style)> {
    let style = match (added, removed) {
        (0, 0) => return None,
        (_, 0) => Style::color(Color::Green),
        (0, _) => Style::color(Color::Red),
        _ => Style::PLAIN,
    };
    Some((format!("+{added} −{removed}"), style))
}

/// Of what looked for something.
fn summary(call: &Call) -> Option<String> {
    let number = |key: &str| call.output(key).and_then(Value::as_u64);
    if let Some(matches) = number("matches") {
        let files = number("files").map(|it| format!(" in {}", count(it, "file", "files"))).unwrap_or_default();
        return Some(format!("{}{files}", count(matches, "match", "matches")));
    }
    if let Some(n) = number("count") {
        return Some(count(n, "file", "files"));
    }
    if let (Some(first), Some(last), Some(total)) = (number("startLine"), number("endLine"), number("totalLines")) {
        return Some(format!("lines {first}–{last} of {total}"));
    }
    let text = shown_part(call.texts().next()?);
    match call.kind {
        Some(ToolKind::Read) if !text.is_empty() => Some(count(text.lines().count() as u64, "line", "lines")),
        _ => lines_in_words(&text),
    }
}

/// One short line stands for itself.
fn lines_in_words(text: &str) -> Option<String> {
    let text = text.trim();
    let short = text.chars().count() <= MAX_WORDS;
    match text.lines().count() as u64 {
        0 => None,
        1 if short => Some(clean_line(text, MAX_WORDS)),
        n => Some(count(n, "line", "lines")),
    }
}

fn indented(text: &str, style: Style, width: usize) -> Vec<Line> {
    let lines = text.lines().map(|it| Line::new(&format!("  {it}"), style));
    lines.flat_map(|it| wrap(&it, width, "  ")).collect()
}

fn indent(line: &Line) -> Line {
    let mut res = Line::plain("  ");
    res.spans.extend(line.spans.iter().cloned());
    res
}
