//! Results of `grep_search` as text.

use std::fmt::Write;

use serde_json::json;

use crate::builtin::{
    grep_search::{
        Call,
        search::{FileHits, SearchLimit, SearchResult},
    },
    walk::WalkPlan,
};
use castor_base::{path::AbsPath, tool::ToolOutput};

const MAX_TEXT_BYTES: usize = 200 * 1024;

pub fn report(call: &Call, plan: &WalkPlan, cwd: &AbsPath, found: &SearchResult) -> ToolOutput {
    let filter = call.include.as_ref().map(|it| format!(" (filter: \"{it}\")")).unwrap_or_default();
    let place = format!("for pattern \"{}\" in path \"{}\"{filter}", call.pattern, call.dir_shown);
    let late =
        if found.cut == SearchLimit::Late { " The search took too long and was stopped; narrow it down." } else { "" };
    if found.files.is_empty() {
        let text = format!("No matches found {place}.{late}");
        return ToolOutput { summary: Some("No matches found".to_owned()), ..ToolOutput::text(text) };
    }
    let count = if call.names_only { found.files.len() } else { found.hits };
    let (head, what) = match (call.names_only, count) {
        (true, 1) => ("Found 1 file with matches".to_owned(), "1 file".to_owned()),
        (true, _) => (format!("Found {count} files with matches"), format!("{count} files")),
        (false, 1) => ("Found 1 match".to_owned(), "1 match".to_owned()),
        (false, _) => (format!("Found {count} matches"), format!("{count} matches")),
    };
    let mut text = format!("{head} {place}");
    match found.cut {
        SearchLimit::No => (),
        SearchLimit::Enough => {
            _ = write!(text, " (results limited to {} matches for performance)", call.query.total);
        }
        SearchLimit::Late => text.push_str(" (the search took too long and was stopped; narrow it down)"),
    }
    text.push_str(":\n");
    let shown = |it: &FileHits| plan.shown(&it.path).relative_to(cwd);
    match call.names_only {
        true => push_bounded(&mut text, found.files.iter().map(|it| format!("{}\n", shown(it)))),
        false => {
            text.push_str("---\n");
            push_bounded(&mut text, found.files.iter().flat_map(|it| block(shown(it), it)));
        }
    }
    let limited = if found.cut == SearchLimit::No { "" } else { " (limited)" };
    ToolOutput {
        summary: Some(format!("Found {what}{limited}")),
        data: json!({"files": found.files.len(), "matches": found.hits}),
        ..ToolOutput::text(text.trim_end())
    }
}

/// The pieces of one file.
fn block(name: String, file: &FileHits) -> impl Iterator<Item = String> {
    let lines =
        file.lines.iter().map(|it| format!("L{}{} {}\n", it.number, if it.is_hit { ':' } else { '-' }, it.text));
    [format!("File: {name}\n")].into_iter().chain(lines).chain(["---\n".to_owned()])
}

fn push_bounded(text: &mut String, pieces: impl Iterator<Item = String>) {
    for it in pieces {
        if text.len() + it.len() > MAX_TEXT_BYTES {
            text.push_str("... (more matches not shown; narrow the search)\n");
            return;
        }
        text.push_str(&it);
    }
}
