//! Read-only commands: the rows of `safe.toml`.

use std::{
    collections::HashMap,
    sync::{LazyLock, OnceLock},
};

use regex::Regex;
use serde::Deserialize;

use super::{
    patterns::git_words,
    shell::{CommandRole, Script, ShellCommand, ShellLine, ShellWord, parse},
};

/// A command that only looks, while what its row says holds.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SafeRow {
    /// The program, with its sub-command where it has one.
    pub prefix: String,
    /// Options with which it does more: a star stands for any ending, a single letter is found in `-abc`, too.
    #[serde(default)]
    not: Vec<String>,
    /// What all its other words must be, joined by blanks.
    args: Option<String>,
    #[serde(skip)]
    compiled: OnceLock<Option<Regex>>,
}

static ROWS: LazyLock<HashMap<String, Vec<SafeRow>>> = LazyLock::new(|| {
    let mut res = HashMap::<String, Vec<SafeRow>>::new();
    for row in read() {
        let program = row.prefix.split(' ').next().unwrap_or_default().to_owned();
        res.entry(program).or_default().push(row);
    }
    res
});

/// The rows as they are written.
pub fn read() -> Vec<SafeRow> {
    #[derive(Deserialize)]
    struct File {
        row: Vec<SafeRow>,
    }
    // A table that does not load makes nothing safe; a test sees to it that it does.
    toml::from_str::<File>(include_str!("safe.toml")).map(|it| it.row).unwrap_or_default()
}

/// Programs that start what the folder's own files name: a repository's configuration, a toolchain's file.
const LED_BY_THE_FOLDER: &[&str] = &["cargo", "git", "go", "pnpm", "rustc"];

/// Tells whether a command starts what nobody trusts in a folder that nobody trusts.
pub fn runs_folder_config(command: &ShellCommand) -> bool {
    command.program().is_some_and(|it| LED_BY_THE_FOLDER.contains(&it))
}

/// Tells whether a line does nothing but look, as far as its words say.
pub fn is_read_only_line(line: &str) -> bool {
    matches!(parse(line), ShellLine::Plain(it) if is_read_only_script(&it))
}

/// Tells whether all that a plain line does is look.
pub fn is_read_only_script(script: &Script) -> bool {
    !script.writes_files() && script.commands.iter().all(is_read_only)
}

/// Tells whether a command of a plain line only looks.
pub fn is_read_only(command: &ShellCommand) -> bool {
    if command.role == CommandRole::Transparent {
        return true;
    }
    // A program of another folder may be anything.
    let Some(name) = command.name() else { return false };
    let name = name.strip_prefix("/usr/bin/").or_else(|| name.strip_prefix("/bin/")).unwrap_or(name);
    let words = if name == "git" { git_words(command.args()) } else { command.args() };
    ROWS.get(name).into_iter().flatten().any(|it| it.holds(words))
}

impl SafeRow {
    fn holds(&self, words: &[ShellWord]) -> bool {
        let sub = self.prefix.split(' ').skip(1);
        let mut rest = words.iter();
        if !sub.into_iter().all(|want| rest.next().and_then(ShellWord::literal) == Some(want)) {
            return false;
        }
        let args = rest.as_slice();
        let acts = |word: &ShellWord| self.not.iter().any(|it| is_option(&word.text, it));
        !args.iter().any(acts) && self.fits(args)
    }

    fn fits(&self, args: &[ShellWord]) -> bool {
        let Some(written) = &self.args else { return true };
        let compiled = self.compiled.get_or_init(|| Regex::new(&format!("^(?:{written})$")).ok());
        let line = args.iter().map(|it| it.text.as_str()).collect::<Vec<_>>().join(" ");
        compiled.as_ref().is_some_and(|it| it.is_match(&line))
    }
}

fn is_option(word: &str, want: &str) -> bool {
    match (want.strip_suffix('*'), want.strip_prefix('-').filter(|it| it.len() == 1)) {
        (Some(start), _) => word.starts_with(start),
        (None, Some(letter)) => word.starts_with('-') && !word.starts_with("--") && word.contains(letter),
        (None, None) => word == want,
    }
}
