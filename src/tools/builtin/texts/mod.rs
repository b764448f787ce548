//! Texts of files: lines, edits, snippets and encodings.

pub(super) mod change;
pub(super) mod edit_rule;
pub(super) mod file_lines;
pub(super) mod placeholder;
pub(super) mod snippet;
pub(super) mod text_file;
