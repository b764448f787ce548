//! base names: the words that every other room speaks. Values only; nothing here acts or decides.

pub mod ansi;
pub mod check;
pub mod content;
pub mod elicitation;
pub mod event;
pub mod fallback;
pub mod fs;
pub mod guarded;
pub mod history;
pub mod hook;
pub mod ids;
pub mod limits;
pub mod log;
pub mod mcp;
pub mod memory;
pub mod model;
pub mod money;
pub mod now;
pub mod path;
pub mod question;
pub mod sandbox;
pub mod schema;
pub mod terminal;
pub mod text;
pub mod tool;
pub mod trust;
