//! ACP version 2, a draft: the same values in its shapes, which are those of the crate's types.

pub mod errors;
pub mod initialize;
pub mod messages;
pub mod options;
pub mod permission;
pub mod session;
pub mod states;
#[cfg(test)]
mod tests;
mod tool_calls;
pub mod updates;

use agent_client_protocol_schema::v2::{ContentBlock, TextContent};
use serde::{Serialize, de::DeserializeOwned};

use super::initialize::{AcpVersion, ClientFeatures};
use castor_base::{event::ToolProgress, terminal::Screen};

/// Whether a replay shows this terminal again. castor's own belong to the conversation; a terminal that the client does not
/// have would make it refuse the whole update.
pub(super) fn keeps_terminal(features: ClientFeatures, progress: &ToolProgress) -> bool {
    features.version == AcpVersion::V2 && matches!(progress, ToolProgress::Attached { screen: Screen::Drawn { .. } })
}

/// A value that both versions write in the same way. `None`: they do not.
fn same_json<T: DeserializeOwned>(it: &impl Serialize) -> Option<T> {
    serde_json::from_value(serde_json::to_value(it).ok()?).ok()
}

fn text_block(text: &str) -> ContentBlock {
    ContentBlock::Text(TextContent::new(text))
}
