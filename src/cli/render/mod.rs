//! Rendering of a conversation: events in, styled lines out, for terminals and pages. Nothing in here reads or writes.

pub mod ansi;
pub mod clip;
pub mod columns;
pub mod diff;
pub mod end_line;
pub mod highlight;
pub mod markdown;
pub mod painter;
pub mod text;
pub mod view;
pub mod words;
pub mod wrap;
