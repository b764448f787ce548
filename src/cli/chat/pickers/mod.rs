//! Pickers of the chat: sessions, messages to go back to, options. Pure, as the composer is.

pub mod list;
pub mod options;
pub mod rewind;
pub mod sessions;

#[cfg(test)]
mod tests;
