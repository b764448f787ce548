//! Session export as Markdown. Each text stays inside its own block.

use std::fmt::Write as _;

use super::{
    story::{self, Call, CallContent, EndedCall, Story, StoryItem, StorySpeaker},
    time,
};
use crate::base::content::Part;

/// Longest line that a heading repeats of a call, in characters.
const MAX_HEADING: usize = 160;

pub fn markdown(story: &Story<'_>) -> String {
    let mut out = String::new();
    head(story, &mut out);
    for (item, mark) in story.marked_items() {
        out.push('\n');
        match item {
            StoryItem::Message { who, at_ms, parts, .. } => write_message(*who, mark, *at_ms, parts, &mut out),
            StoryItem::Call(it) => call(it, mark, &mut out),
            StoryItem::Plan(it) => {
                line(&mut out, format_args!("**Plan**{mark}\n"));
                for (status, text) in story::tasks(it) {
                    let mark = if status == "completed" { 'x' } else { ' ' };
                    line(&mut out, format_args!("- [{mark}] {}", span(text)));
                }
            }
            StoryItem::Error(it) => quoted(&format!("**Error.**{mark} "), it, &mut out),
            StoryItem::Note(it) => line(&mut out, format_args!("*{}*{mark}", span(it))),
        }
    }
    out
}

/// Writing to a String cannot fail.
fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    _ = out.write_fmt(text);
    out.push('\n');
}

fn head(story: &Story<'_>, out: &mut String) {
    let it = &story.head;
    line(out, format_args!("# {}\n", plain(it.title.unwrap_or("A session of castor"))));
    line(out, format_args!("- Session: {}", span(it.id.as_str())));
    if let Some(parent) = it.parent {
        line(out, format_args!("- Forked from: {}", span(parent.as_str())));
    }
    line(out, format_args!("- Folder: {}", span(&it.cwd.to_string())));
    line(out, format_args!("- Model: {}", span(it.model)));
    line(out, format_args!("- Time: {} to {}", time::plain(it.created_ms), time::plain(it.updated_ms)));
    if it.usage.total > 0 {
        line(out, format_args!("- Tokens: {} in, {} out", it.usage.input, it.usage.output));
    }
}

fn write_message(who: StorySpeaker, mark: &str, at_ms: u64, parts: &[Part], out: &mut String) {
    let name = if who == StorySpeaker::User { "User" } else { "Agent" };
    line(out, format_args!("## {name}{mark}\n\n*{}*", time::plain(at_ms)));
    for part in parts {
        out.push('\n');
        match part {
            Part::Text { text, .. } if who == StorySpeaker::Agent && stays_inside(text) => {
                line(out, format_args!("{text}"))
            }
            Part::Text { text, .. } => quoted("", text, out),
            Part::Thought { thought, .. } => quoted("*Thought:* ", thought, out),
            Part::Media { mime, data, .. } => {
                let size = data.len() / 4 * 3;
                line(out, format_args!("*Attached: {}, about {size} bytes*", span(mime)));
            }
            Part::Reference { uri, name, text, .. } => {
                let name = name.as_deref().unwrap_or_default();
                line(out, format_args!("*Attached: {} {}*", span(name), span(uri)));
                if let Some(text) = text {
                    fence("", text, out);
                }
            }
        }
    }
}

fn call(it: &Call<'_>, mark: &str, out: &mut String) {
    let end = match it.end {
        EndedCall::Unknown => "no end is known".to_owned(),
        EndedCall::Succeeded => "done".to_owned(),
        EndedCall::Exit(code) => format!("exit code {code}"),
        EndedCall::Failed(_) => "failed".to_owned(),
    };
    let title: String = it.title.chars().take(MAX_HEADING).collect();
    let answer = it.answer.as_ref().map(|it| format!(", {}", story::answer(it))).unwrap_or_default();
    line(out, format_args!("### Tool {}: {}{mark}\n\n*{end}{answer}*\n", span(it.name), span(&title)));
    fence("json", &serde_json::to_string_pretty(it.args).unwrap_or_default(), out);
    match &it.content {
        Some(CallContent::Diff { path, before, after }) => {
            line(out, format_args!("\n{}\n", span(&path.to_string())));
            fence("diff", &story::unified_diff(*before, after), out);
        }
        Some(CallContent::Terminal { text, exit }) => {
            let exit = exit.map(|it| format!("Exit code {it}")).unwrap_or_default();
            line(out, format_args!("\n{exit}"));
            fence("", text, out);
        }
        Some(CallContent::Text(text)) => {
            out.push('\n');
            fence("", text, out);
        }
        None if !it.output.is_empty() => {
            out.push('\n');
            fence("", &it.output, out);
        }
        None => (),
    }
    if let EndedCall::Failed(why) = it.end {
        out.push('\n');
        quoted("**Failed.** ", why, out);
    }
}

/// A block that its own text cannot close: its fence is longer than any in it.
fn fence(language: &str, text: &str, out: &mut String) {
    let ticks = "`".repeat(longest_run(text).max(2) + 1);
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    line(out, format_args!("{ticks}{language}\n{text}{end}{ticks}"));
}

/// Code within a line. It begins and ends with a blank where its text does so with a tick.
fn span(text: &str) -> String {
    let text: String = text.chars().map(|it| if it.is_control() { ' ' } else { it }).collect();
    if text.trim().is_empty() {
        return String::new();
    }
    let ticks = "`".repeat(longest_run(&text) + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}

fn longest_run(text: &str) -> usize {
    text.split(|it| it != '`').map(str::len).max().unwrap_or_default()
}

/// A quotation ends every block that was opened in it.
fn quoted(lead: &str, text: &str, out: &mut String) {
    let mut lead = lead;
    for it in text.lines() {
        line(out, format_args!("> {lead}{it}"));
        lead = "";
    }
}

/// Text for a heading, without what Markdown and HTML would read in it.
fn plain(text: &str) -> String {
    let mut res = String::new();
    for it in text.chars().map(|it| if it.is_control() { ' ' } else { it }) {
        if "\\`*_[]<>#&|~!".contains(it) {
            res.push('\\');
        }
        res.push(it);
    }
    res
}

/// Whether what follows a text is safe from it: its fences are closed, and it opens no HTML that goes on.
fn stays_inside(text: &str) -> bool {
    let mut open: Option<(char, usize)> = None;
    for line in text.lines() {
        let start = line.trim_start_matches([' ', '>', '\t']);
        let mark = start.chars().next().unwrap_or_default();
        let len = start.chars().take_while(|it| *it == mark).count();
        let is_fence = matches!(mark, '`' | '~') && len >= 3;
        match open {
            Some((of, least)) if is_fence && of == mark && len >= least && start.trim_end().len() == len => open = None,
            Some(_) => (),
            None if is_fence => open = Some((mark, len)),
            None if start.contains('<') => return false,
            None => (),
        }
    }
    open.is_none()
}
