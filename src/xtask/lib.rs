//! xtask writes what the repository keeps of castor's own tables, and weighs its crates.
#![allow(clippy::disallowed_methods, reason = "no agent runs here")]

pub mod docs;
pub mod weight;
