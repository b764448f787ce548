//! `castor sessions show`: a session's outline, one line for each event.

use std::fmt::Write as _;

use super::export::{EndedCall, Story, StoryItem, StorySpeaker};
use crate::cli::terminal_text::clean;
use castor_base::{
    content::{Part, joined_text},
    text,
};
use castor_store::sessions::SessionStore;
use castor_wire::acp::session::iso_time;

/// Characters of a line.
const MAX: usize = 100;

/// All text of the session is cleaned of what a terminal would obey.
pub fn outline(story: &Story<'_>, store: &SessionStore, n_damaged: usize) -> String {
    let it = &story.head;
    let mut rows = vec![
        ("session", it.id.to_string()),
        ("title", text::first_line(it.title.unwrap_or("-"), MAX)),
        ("folder", it.cwd.to_string()),
        ("model", it.model.to_owned()),
        ("mode", it.mode.as_str().to_owned()),
        ("began", iso_time(it.created_ms)),
        ("last", iso_time(it.updated_ms)),
        ("prompts", story.n_prompts().to_string()),
        ("tools", story.calls().count().to_string()),
        ("tokens", it.spent.tokens_in_words()),
    ];
    rows.extend(it.spent.cost_in_words().map(|cost| ("cost", cost)));
    if let Some(parent) = it.parent {
        rows.push(("fork of", parent.to_string()));
    }
    if let Some(path) = store.log_file(it.id) {
        let len = store.log_len(it.id).unwrap_or_default();
        rows.push(("log", format!("{path} ({len} bytes)")));
    }
    if n_damaged > 0 {
        let places = if n_damaged == 1 { "1 place".to_owned() } else { format!("{n_damaged} places") };
        rows.push(("damaged", format!("{places}, passed over; `castor sessions repair {}` mends the log", it.id)));
    }
    let mut out = String::new();
    for (name, value) in rows {
        // Writing to a String cannot fail.
        _ = writeln!(out, "{name:8} {}", clean(&value));
    }
    out.push('\n');
    for (item, mark) in story.marked_items() {
        if let Some(line) = line(item) {
            _ = writeln!(out, "{}{mark}", clean(&line));
        }
    }
    out
}

fn line(item: &StoryItem<'_>) -> Option<String> {
    let short = |it: &str| text::first_line(it, MAX);
    Some(match item {
        StoryItem::Message { who: StorySpeaker::User, parts, .. } => format!("> {}", short(&joined_text(parts))),
        StoryItem::Message { who: StorySpeaker::Agent, parts, .. } => {
            let said = parts.iter().filter_map(Part::as_text).find(|it| !it.trim().is_empty())?;
            format!("  {}", short(said))
        }
        StoryItem::Call(it) => {
            let (end, code) = match it.end {
                EndedCall::Unknown => ("?", String::new()),
                EndedCall::Succeeded => ("+", String::new()),
                EndedCall::Exit(code) => ("!", format!(" (exit code {code})")),
                EndedCall::Failed(_) => ("!", String::new()),
            };
            format!("  {end} {}: {}{code}", it.name, short(it.title))
        }
        StoryItem::Plan(_) => return None,
        StoryItem::Error(it) => format!("  ! {}", short(it)),
        StoryItem::Note(it) => format!("  - {}", short(it)),
    })
}
