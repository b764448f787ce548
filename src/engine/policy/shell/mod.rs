//! The shell reader: every command that a line would run, or the reason why it is opaque. It evaluates no bash.
//!
//! The grammar is tree-sitter's; bash has the last word when the line runs. Where the two are known to differ (line
//! continuations inside words, escaped blanks, comments in back-quotes, here-documents with odd delimiters, words after a
//! redirection) the line is opaque: nobody may be misled by our reading.

mod grammar_gaps;
mod heredoc;
mod line;
mod opaque;
mod parse;
mod walk;
mod words;
mod wrappers;

pub use line::{CommandRole, MAX_BYTES, Redirect, Script, ShellCommand, ShellLine, base_name};
pub use parse::parse;
pub use words::{ShellWord, WordKind};
