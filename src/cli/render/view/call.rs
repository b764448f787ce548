//! A tool call in a few words: what it does, what it printed, how long it took.

use std::{borrow::Cow, time::Duration};

use crate::cli::{render::words, terminal_text::clean_line};
use castor_base::{text, tool::ToolKind};
use castor_client::call::{Call, MAX_PRINTED};

/// Characters of what a call does.
const MAX_LABEL: usize = 200;
const MAX_FENCE: usize = 100;

/// What it does, in one wording from its start to its end.
pub fn label(call: &Call, cwd: &str) -> String {
    clean_line(&verb(call, cwd).unwrap_or_else(|| title(call)), MAX_LABEL)
}

fn verb(call: &Call, cwd: &str) -> Option<String> {
    let path = || Some(relative(call.path()?, cwd));
    let pattern = call.input("pattern");
    match call.kind? {
        ToolKind::Execute => Some(command(call)),
        ToolKind::Read => Some(format!("read {}", path()?)),
        ToolKind::Edit if call.input("content").is_some() => Some(format!("write {}", path()?)),
        ToolKind::Edit => Some(format!("edit {}", path()?)),
        ToolKind::Delete => Some(format!("delete {}", path()?)),
        ToolKind::Search if pattern.is_none() => Some(format!("list {}", path()?)),
        ToolKind::Search => Some(format!("search \"{}\"{}", pattern?, place(call, cwd))),
        ToolKind::Move | ToolKind::Think | ToolKind::Fetch | ToolKind::SwitchMode | ToolKind::Other => None,
    }
}

/// A command's first line, and how many follow; a title that is no command stands for itself.
fn command(call: &Call) -> String {
    let (title, command) = (call.title(), call.input("command").unwrap_or_default());
    let whole = if title.is_empty() || command.starts_with(title) { command } else { title };
    let mut lines = whole.trim().lines();
    let first = lines.next().unwrap_or_default();
    match lines.count() as u64 {
        0 => first.to_owned(),
        n => format!("{first} … +{}", words::count(n, "line", "lines")),
    }
}

fn place(call: &Call, cwd: &str) -> String {
    let place = call.path().map(|it| relative(it, cwd)).filter(|it| it != ".");
    place.map(|it| format!(" in {it}")).unwrap_or_default()
}

/// As the agent words it, without the code marks of Markdown.
fn title(call: &Call) -> String {
    if call.title().is_empty() { call.id.clone() } else { call.title().replace('`', "") }
}

/// A path as it is seen from the working folder.
pub fn relative(path: &str, cwd: &str) -> String {
    match path.strip_prefix(cwd) {
        Some("") => ".".to_owned(),
        Some(rest) => rest.strip_prefix('/').unwrap_or(path).to_owned(),
        None => path.to_owned(),
    }
}

/// What a command printed, as far as it is known: a content is a whole, pieces are not.
pub fn printed(call: &Call) -> Cow<'_, str> {
    let fenced = call.texts().find(|it| it.starts_with("```"));
    match (call.pieces.is_empty(), fenced) {
        (_, Some(it)) => shown_part(it),
        (true, None) => shown_part(call.texts().next().unwrap_or_default()),
        (false, None) => Cow::Borrowed(&call.pieces),
    }
}

/// A long text is shown as its end, with the fence that it begins with.
pub fn shown_part(text: &str) -> Cow<'_, str> {
    if text.len() <= MAX_PRINTED {
        return Cow::Borrowed(text);
    }
    let fence = text.lines().next().filter(|it| it.starts_with("```") && it.len() < MAX_FENCE);
    Cow::Owned(format!("{}\n{}", fence.unwrap_or_default(), text::tail(text, MAX_PRINTED)))
}

/// Whether a tool that is no command says how far it is, as those of MCP servers do.
pub fn has_progress(call: &Call) -> bool {
    call.texts().any(|it| it.starts_with("```"))
}

/// How long it runs, in words; `None`: it does not, or not for a second.
pub fn run_time(call: &Call, now: Duration) -> Option<String> {
    words::duration(call.run_time(now)?)
}

/// How long it ran; `None`: it did not, or not for a second.
pub fn took(call: &Call) -> Option<String> {
    words::duration(call.took()?)
}
