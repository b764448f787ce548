//! Shapes of drafts of the protocol, and of AIR: what stands in no schema of the protocol.

pub mod archive_filter;
pub mod auth_status;
pub mod draft_rewind;
pub mod providers;
pub mod quota;
pub mod session_metadata;
pub(super) mod system_prompt;
pub mod workspace_trust;

use schemars::JsonSchema;

use crate::acp::air::tasks;

/// Methods and updates, by name.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
pub struct Drafts {
    /// Of AIR.
    #[serde(rename = "_session/async_task/stop")]
    stop_task: Option<tasks::StopMethod>,
    /// Updates of session/update, of AIR.
    task_update: Option<tasks::TaskUpdate<'static>>,
    /// Of a draft of the protocol.
    #[serde(rename = "session/rewind")]
    draft_rewind: Option<draft_rewind::RewindMethod>,
    /// Of a draft of the protocol; its result is that of session/prompt.
    #[serde(rename = "session/edit_prompt")]
    draft_edit: Option<draft_rewind::EditMethod>,
    /// Of a draft of the protocol.
    #[serde(rename = "quota/read")]
    quota_read: Option<quota::ReadMethod>,
    /// An update of session/update, of the same draft.
    quota_update: Option<quota::QuotaUpdate<'static>>,
    /// Of a draft of the protocol.
    #[serde(rename = "trust/apply")]
    trust_apply: Option<workspace_trust::ApplyMethod>,
}
