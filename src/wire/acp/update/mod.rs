//! Parts of updates: calls, text, sub-agents and usage.

pub(super) mod activities;
pub(super) mod call_content;
pub(super) mod child_view;
pub(super) mod replay;
pub(super) mod reported_calls;
pub mod subagents;
pub(super) mod text_chunks;
pub mod tool_calls;
pub(super) mod usage;
