//! Rendering of a conversation: events in, styled lines out, for terminals and pages. Nothing in here reads or writes.

pub mod ansi;
pub mod diff;
pub mod highlight;
pub mod markdown;
pub mod text;
pub mod wrap;
