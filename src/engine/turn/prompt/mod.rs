//! The prompt of a turn: templates and mentions in it, and the files that belong to it.

pub(super) mod command_template;
pub(super) mod expansion;
pub(super) mod memory_discovery;
pub mod memory_reading;
pub(super) mod named_paths;
