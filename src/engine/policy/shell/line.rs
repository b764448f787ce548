//! A parsed command line: the commands that it would run, or the reason why it is opaque.

use super::words::ShellWord;

/// Longer lines are not read.
pub const MAX_BYTES: usize = 64 * 1024;
/// Lines within lines (`bash -c "bash -c …"`) and substitutions within substitutions beyond this are not read.
pub const MAX_DEPTH: usize = 8;

/// The role of a command in its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CommandRole {
    /// It runs by itself.
    Own,
    /// It runs others, which are listed beside it, and does more than that: `xargs rm`, `env X=1 make`.
    Wrapper,
    /// It does nothing but run others, which are listed beside it: `bash -c 'ls'`, `time make`.
    Transparent,
}

/// A command that would run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShellCommand {
    /// The name first, quoting resolved.
    pub words: Vec<ShellWord>,
    /// As written.
    pub text: String,
    pub role: CommandRole,
}

impl ShellCommand {
    pub fn new(words: Vec<ShellWord>, text: String) -> Self {
        Self { words, text, role: CommandRole::Own }
    }

    /// The program, when it is written out.
    pub fn name(&self) -> Option<&str> {
        self.words.first().and_then(ShellWord::literal)
    }

    /// The same without its folder: `/usr/bin/env` is `env`.
    pub fn program(&self) -> Option<&str> {
        self.name().map(base_name)
    }

    /// The words after the name.
    pub fn args(&self) -> &[ShellWord] {
        self.words.get(1..).unwrap_or_default()
    }

    /// The words as one line, when all of them are literal.
    pub fn literal_line(&self) -> Option<String> {
        let words: Option<Vec<&str>> = self.words.iter().map(ShellWord::literal).collect();
        words.map(|it| it.join(" "))
    }
}

/// `/usr/bin/env` is `env`.
pub fn base_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// A redirection, other than to descriptors and `/dev/null`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    pub target: ShellWord,
    pub writes: bool,
    /// How many of the line's commands stand before it.
    pub commands_before: usize,
}

/// The commands of a line, with what else it does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    pub commands: Vec<ShellCommand>,
    pub redirects: Vec<Redirect>,
    /// It sets variables, in loops too.
    pub assigns: bool,
    /// It has `$( )`, back-quotes or `<( )`.
    pub substitutes: bool,
}

impl Script {
    /// Tells whether something is written to a file.
    pub fn writes_files(&self) -> bool {
        self.redirects.iter().any(|it| it.writes)
    }

    /// Tells whether its commands are all there is to it.
    pub fn is_simple(&self) -> bool {
        !self.assigns && !self.substitutes && self.redirects.is_empty()
    }
}

/// A whole line, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShellLine {
    /// It runs these commands and no others.
    Plain(Script),
    /// It may run anything. `seen` is what could be read of it: for rules that restrict.
    Opaque { why: &'static str, seen: Script },
}

impl ShellLine {
    /// All that could be read.
    pub fn script(&self) -> &Script {
        match self {
            Self::Plain(it) | Self::Opaque { seen: it, .. } => it,
        }
    }

    /// Why it is opaque, if it is.
    pub fn why_opaque(&self) -> Option<&'static str> {
        match self {
            Self::Plain(_) => None,
            Self::Opaque { why, .. } => Some(why),
        }
    }
}
