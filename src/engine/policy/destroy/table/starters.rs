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
    row("latex", &[], Holds(told::typesets)),
    row("latexmk", &[], Holds(told::typesets)),
    row("lualatex", &[], Holds(told::typesets)),
    row("luatex", &[], Holds(told::typesets)),
    row("mlr", &[], Holds(told::starts)),
    row("mvn", &[], Holds(told::scripted)),
    row("mvnw", &[], Holds(told::scripted)),
    row("nc", &[], Holds(told::serves)),
    row("ncat", &[], Holds(told::serves)),
    row("nvim", &[], Holds(told::edits)),
    row("pdflatex", &[], Holds(told::typesets)),
    row("pdftex", &[], Holds(told::typesets)),
    row("socat", &[], Holds(told::joins)),
    row("tmux", &[], Holds(told::types)),
    row("vi", &[], Holds(told::edits)),
    row("vim", &[], Holds(told::edits)),
    row("vim", &[], Words(&["Delete!"])),
    row("xelatex", &[], Holds(told::typesets)),
    row("yt-dlp", &[], Holds(told::executes)),
];
