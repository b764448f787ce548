//! Content of a tool call that has ended, as the client is shown it.

use agent_client_protocol_schema::v1::ToolCallContent;

use crate::acp::{terminals, update::tool_calls};
use castor_base::{
    ansi::plain,
    content::{Part, joined_text},
    shown_text::show_text,
    tool::{Display, ToolError},
};

/// The end of a call whose output is in a terminal.
pub(in crate::acp) fn terminal_result(
    terminal: &str,
    summary: Option<&str>,
    error: Option<&ToolError>,
) -> Vec<ToolCallContent> {
    let words = error.map(|it| it.message.as_str()).or(summary);
    words
        .map(|it| tool_calls::text_content(&show_text(it)))
        .into_iter()
        .chain([terminals::terminal_content(terminal)])
        .collect()
}

pub(in crate::acp) fn result_content(
    content: &[Part],
    display: Option<&Display>,
    summary: Option<&str>,
    error: Option<&ToolError>,
    (proposed, printed): (Option<&Display>, &str),
) -> Vec<ToolCallContent> {
    let mut res = Vec::new();
    if let Some(error) = error {
        res.push(tool_calls::text_content(&show_text(&error.message)));
        // What was proposed or printed stays visible when the call was refused or cancelled.
        res.extend(display.or(proposed).into_iter().flat_map(tool_calls::question_content));
        if display.is_none() && !printed.is_empty() {
            // A drawn terminal's codes are nothing to read.
            res.push(tool_calls::output_content(&plain(printed).0));
        }
        return res;
    }
    match (display, summary) {
        (Some(display), _) => res.extend(tool_calls::display_content(display)),
        (None, Some(summary)) => res.push(tool_calls::text_content(&show_text(summary))),
        (None, None) => match joined_text(content) {
            // Without any content some clients show the raw output.
            text if text.is_empty() => res.push(tool_calls::text_content("(no output)")),
            text => res.push(tool_calls::text_content(&text)),
        },
    }
    res
}
