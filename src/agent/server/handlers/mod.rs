//! Handlers of requests, by method.

pub(super) mod attach;
pub(super) mod auth;
pub(super) mod auth_status;
pub(super) mod definitions;
pub(super) mod draft_rewind;
pub(super) mod event_requests;
pub(super) mod folder_options;
pub(super) mod host_tools;
pub(super) mod list_page;
pub(super) mod listing;
pub(super) mod mcp_completion;
pub(super) mod providers;
pub(super) mod quota;
pub(super) mod requests;
pub(super) mod requests_v2;
pub(super) mod rewind;
pub(super) mod rewind_results;
pub(super) mod session_metadata;
pub(super) mod tool_list;
pub(super) mod workspace_trust;
