//! Files that a command names in a language of its own: patterns that it reads by itself, scripts, command lines in a word.

use super::glued::joined;
use super::shell::{Command, Word, WordKind, base_name};

/// Programs whose scripts read and write files.
const SCRIPTED: &[&str] = &["ed", "ex", "gsed", "nvim", "psql", "sed", "sqlite3", "vi", "vim"];

/// What it names so, as the shell would.
pub(super) fn names(command: &Command) -> Vec<Word> {
    let name = command.name().map(base_name).unwrap_or_default();
    let words = super::paths::read_args(command);
    let literal = || words.iter().filter_map(Word::literal);
    match name {
        "git" => literal().flat_map(pathspecs).collect(),
        "rg" => literal().filter(|it| is_pattern(it)).filter_map(glob).collect(),
        _ if command.opaque || SCRIPTED.contains(&name) => {
            let whole = literal().filter_map(joined);
            literal().flat_map(pieces).chain(whole.flat_map(|it| pieces(&it))).collect()
        }
        _ => Vec::new(),
    }
}

fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// `:(top).env`, `*.env`: a star at the start finds names that begin with a dot, too. What is left out is not read.
fn pathspecs(text: &str) -> Vec<Word> {
    let (magic, plain) = match text.strip_prefix(":(") {
        Some(rest) => rest.split_once(')').unwrap_or_default(),
        None => ("", text.strip_prefix(":/").unwrap_or(text)),
    };
    if magic.contains("exclude") || plain.starts_with([':', '-']) {
        return Vec::new();
    }
    let kind = if is_pattern(plain) { WordKind::Pattern } else { WordKind::Literal };
    let word = |text: &str, kind| Word { text: text.to_owned(), kind };
    let tail = plain.trim_start_matches(['*', '/']);
    let whole = (tail.len() < plain.len() && !is_pattern(tail)).then(|| word(tail, WordKind::Literal));
    // A plain word is looked at already.
    let own = plain.len() < text.len() || kind == WordKind::Pattern;
    own.then(|| word(plain, kind)).into_iter().chain(whole).collect()
}

/// `-g '.env*'` finds hidden files, though rg leaves them out else.
fn glob(text: &str) -> Option<Word> {
    let plain = text.trim_start_matches("-g").trim_start_matches("--glob=").trim_start_matches("**/");
    plain.starts_with('.').then(|| Word { text: plain.to_owned(), kind: WordKind::Pattern })
}

/// The words of a script, or of a command line, within a word.
fn pieces(text: &str) -> Vec<Word> {
    if !text.contains(char::is_whitespace) {
        return Vec::new();
    }
    let parts = text.split(|it: char| it.is_whitespace() || ";{}()<>|&'\"".contains(it));
    parts.filter(|it| !it.is_empty()).map(Word::literally).collect()
}
