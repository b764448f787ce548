//! `sed` that only prints: its scripts can write and run, its options edit in place, and dialects differ. What is not
//! plainly one of the commands that look is not believed.

use super::Word;

/// Options without a value, by their letters.
const FLAGS: &[u8] = b"nErsuz";
const LONG: &[&str] = &["--quiet", "--silent", "--regexp-extended", "--null-data", "--separate", "--unbuffered"];
/// Commands of one letter that take nothing, and neither read, write nor run.
const PLAIN: &[char] = &['p', 'd', 'q', '=', 'n', 'N', 'D', 'P', 'g', 'G', 'h', 'H', 'x', 'l'];

pub(super) fn looks(args: &[Word]) -> bool {
    let Some(scripts) = scripts(args) else { return false };
    !scripts.is_empty() && scripts.iter().all(|it| it.literal().is_some_and(only_prints))
}

/// Whether the word is a script, which names no file.
pub(super) fn is_script(word: &Word, args: &[Word]) -> bool {
    scripts(args).is_some_and(|it| it.iter().any(|it| std::ptr::eq(*it, word)))
}

/// `None`: there are options that nobody here knows.
fn scripts(args: &[Word]) -> Option<Vec<&Word>> {
    let (mut scripts, mut first) = (Vec::new(), None);
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let option = word.text.strip_prefix('-').filter(|it| !it.is_empty());
        let Some(letters) = option else {
            first = first.or(Some(word));
            continue;
        };
        // To some dialects the first operand is the last of the options.
        if first.is_some() {
            return None;
        }
        let plain = |it: &str| it.bytes().all(|it| FLAGS.contains(&it));
        match letters.strip_suffix('e').filter(|it| plain(it)) {
            Some(_) => scripts.extend(words.next()),
            None if plain(letters) || LONG.contains(&word.text.as_str()) => (),
            None => return None,
        }
    }
    if scripts.is_empty() {
        scripts.extend(first);
    }
    Some(scripts)
}

fn only_prints(script: &str) -> bool {
    let mut rest = script.trim_start_matches([' ', '\t', ';', '\n']);
    while !rest.is_empty() {
        let Some(behind) = command(rest) else { return false };
        let behind = behind.trim_start_matches([' ', '\t']);
        if !behind.is_empty() && !behind.starts_with([';', '\n']) {
            return false;
        }
        rest = behind.trim_start_matches([' ', '\t', ';', '\n']);
    }
    true
}

/// What follows the first command, if that is one of those that look.
fn command(text: &str) -> Option<&str> {
    let mut rest = address(text)?;
    if let Some(second) = rest.strip_prefix(',') {
        rest = address(second)?;
    }
    let rest = rest.trim_start_matches([' ', '!']);
    if let Some(it) = rest.strip_prefix(PLAIN) {
        return Some(it);
    }
    let behind = rest.strip_prefix('s')?;
    let delimiter = behind.chars().next().filter(|it| it.is_ascii_punctuation() && *it != '\\')?;
    let rest = until(behind.get(1..)?, delimiter)?;
    let rest = until(rest, delimiter)?;
    Some(rest.trim_start_matches(|it: char| it.is_ascii_digit() || "gpiIM".contains(it)))
}

/// What follows an address; nothing need be one.
fn address(text: &str) -> Option<&str> {
    match text.strip_prefix('/') {
        Some(inside) => until(inside, '/'),
        None if text.starts_with('$') => text.get(1..),
        None => Some(text.trim_start_matches(|it: char| it.is_ascii_digit() || matches!(it, '~' | '+'))),
    }
}

/// What follows the next such sign that is not escaped. Within brackets dialects do not agree on what ends it.
fn until(text: &str, delimiter: char) -> Option<&str> {
    let (mut escaped, mut bracket) = (false, false);
    for (at, it) in text.char_indices() {
        match it {
            '\n' => return None,
            _ if escaped => escaped = false,
            '\\' if bracket => return None,
            '\\' => escaped = true,
            _ if it == delimiter && bracket => return None,
            _ if it == delimiter => return text.get(at + it.len_utf8()..),
            '[' => bracket = true,
            ']' => bracket = false,
            _ => (),
        }
    }
    None
}
