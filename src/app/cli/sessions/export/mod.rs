//! Session export as Markdown, HTML or JSON, from the session's facts.

mod answer;
mod html;
mod markdown;
mod spending;
mod story;
mod title;

pub use html::html;
pub use markdown::markdown;
pub use story::{EndedCall, Story, StoryItem, StorySpeaker};
pub use title::plain_title;

use serde_json::json;

use super::time;
use crate::base::log::Entry;

/// The word by which castor knows its own exports again.
pub const FORMAT: &str = "castor-session";
/// Of the JSON form: version 1 had events of version 1.
pub const VERSION: u32 = 2;

/// Everything, for programs; `castor sessions import` reads it.
pub fn json(story: &Story<'_>, entries: &[Entry]) -> String {
    let head = &story.head;
    let session = json!({
        "sessionId": head.id,
        "cwd": head.cwd,
        "title": head.title,
        "model": head.model,
        "createdAt": time::iso(head.created_ms),
        "updatedAt": time::iso(head.updated_ms),
    });
    let value = json!({ "format": FORMAT, "version": VERSION, "session": session, "entries": entries });
    let mut res = serde_json::to_string_pretty(&value).unwrap_or_default();
    res.push('\n');
    res
}

#[cfg(test)]
mod tests;
