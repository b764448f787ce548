//! Session export as Markdown, HTML or JSON, from the session's facts.

mod agent_story;
mod answer;
mod call;
mod html;
mod markdown;
mod spending;
mod story;
mod title;

pub use agent_story::{AgentLogs, AgentStory, ExportedStory};
pub use call::EndedCall;
pub use html::html;
pub use markdown::markdown;
pub use spending::{Spending, compact, grouped, plotted_cost, plotted_tokens};
pub use story::{Story, StoryItem, StorySpeaker};
pub use title::plain_title;

use schemars::JsonSchema;
use serde::Serialize;

use super::time;
use castor_base::{ids::SessionId, log::Entry, path::AbsPath};

/// The word by which castor knows its own exports again.
pub const FORMAT: &str = "castor-session";
/// Of the JSON form: version 1 had events of version 1.
pub const VERSION: u32 = 2;

/// What `castor sessions export --format json` writes: one object.
#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportOutput<'a> {
    /// `castor-session`.
    format: &'a str,
    /// Of this form.
    version: u32,
    session: SessionHeadOutput<'a>,
    /// The lines of its log.
    entries: &'a [Entry],
    /// The logs of its sub-agents, and of theirs. The first line of each says which call it belongs to.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    agents: &'a [Vec<Entry>],
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SessionHeadOutput<'a> {
    session_id: &'a SessionId,
    cwd: &'a AbsPath,
    title: Option<&'a str>,
    /// The one that answered last.
    model: &'a str,
    created_at: String,
    updated_at: String,
}

/// Everything, for programs; `castor sessions import` reads it.
pub fn json(story: &Story<'_>, entries: &[Entry], agents: &AgentLogs) -> String {
    let head = &story.head;
    let session = SessionHeadOutput {
        session_id: head.id,
        cwd: head.cwd,
        title: head.title,
        model: head.model,
        created_at: time::iso(head.created_ms),
        updated_at: time::iso(head.updated_ms),
    };
    let output = ExportOutput { format: FORMAT, version: VERSION, session, entries, agents: agents.all() };
    serde_json::to_string_pretty(&output).unwrap_or_default() + "\n"
}

#[cfg(test)]
pub mod tests;
