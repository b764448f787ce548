//! Programs that start what a word of theirs says: editors, version control with settings, what joins two ends.

use super::{
    Row,
    When::{Holds, Words},
    row,
};
use crate::engine::policy::destroy::told;

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    row("dotnet", &["script", "eval"], Holds(told::scripted)),
    row("ed", &[], Holds(told::reads)),
    row("ex", &[], Holds(told::edits)),
    row("hg", &[], Holds(told::sets)),
    row("jj", &[], Holds(told::sets)),
    row("mvn", &[], Holds(told::scripted)),
    row("mvnw", &[], Holds(told::scripted)),
    row("nc", &[], Holds(told::serves)),
    row("ncat", &[], Holds(told::serves)),
    row("nvim", &[], Holds(told::edits)),
    row("socat", &[], Holds(told::joins)),
    row("tmux", &[], Holds(told::types)),
    row("vi", &[], Holds(told::edits)),
    row("vim", &[], Holds(told::edits)),
    row("vim", &[], Words(&["Delete!"])),
    row("yt-dlp", &[], Holds(told::executes)),
];
