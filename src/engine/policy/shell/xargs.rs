//! What `xargs` and `find -exec` make of a command's words: those that they put in are known to nobody.

use super::{Word, wrap::Inner};

/// Short options of xargs without a value, with one, and with one that sticks to them or is not there.
const FLAGS: &str = "0rtxpo";
const VALUED: &str = "InPdLsaEJRS";
const STUCK: &str = "ile";
/// The long ones; `--name=value` is one word.
const LONG: &[&str] = &["--null", "--no-run-if-empty", "--verbose", "--interactive", "--exit", "--open-tty", "--eof"];
const LONG_VALUED: &[&str] = &["--arg-file", "--delimiter", "--max-args", "--max-procs", "--max-chars"];
const REPLACE: &str = "--replace";

/// What comes of one option.
enum Taken {
    /// It takes this many words more.
    Words(usize),
    /// From here on this stands for the input, once these many words more are skipped.
    Place(Option<String>, usize),
    Unknown,
}

/// The command behind xargs' own words, with what it appends or puts in as an unknown word.
pub(super) fn xargs(mut args: &[Word]) -> Inner {
    let mut place: Option<String> = None;
    while let Some((first, rest)) = args.split_first() {
        let Some(text) = first.literal() else { return Inner::Unseen };
        if text == "--" {
            args = rest;
            break;
        }
        if !text.starts_with('-') || text == "-" {
            break;
        }
        let skipped = match option(text) {
            Taken::Words(skipped) => skipped,
            Taken::Place(stuck, skipped) => {
                place = stuck.or_else(|| rest.first().and_then(Word::literal).map(str::to_owned));
                if place.as_deref().is_none_or(str::is_empty) {
                    return Inner::Unseen;
                }
                skipped
            }
            Taken::Unknown => return Inner::Unseen,
        };
        args = rest.get(skipped..).unwrap_or_default();
    }
    // Without a command it prints.
    if args.is_empty() {
        return Inner::Nothing;
    }
    let words = match place {
        Some(place) => args.iter().map(|it| filled(it, &place)).collect(),
        None => args.iter().cloned().chain([Word::unknown()]).collect(),
    };
    Inner::Words(vec![words])
}

fn filled(word: &Word, place: &str) -> Word {
    match word.text.contains(place) {
        true => Word::expanded(&word.text.replace(place, Word::UNKNOWN)),
        false => word.clone(),
    }
}

fn option(text: &str) -> Taken {
    if text.starts_with("--") {
        let (name, value) = text.split_once('=').map_or((text, None), |it| (it.0, Some(it.1)));
        return match value {
            _ if name == REPLACE => Taken::Place(Some(value.unwrap_or("{}").to_owned()), 0),
            // An abbreviation of it.
            _ if name.starts_with("--r") && !LONG.contains(&name) => Taken::Unknown,
            Some(_) => Taken::Words(0),
            None if LONG.contains(&name) => Taken::Words(0),
            None if LONG_VALUED.contains(&name) => Taken::Words(1),
            None => Taken::Unknown,
        };
    }
    let short = text.get(1..).unwrap_or_default();
    for (at, letter) in short.char_indices() {
        let stuck = short.get(at + letter.len_utf8()..).filter(|it| !it.is_empty());
        let skipped = usize::from(stuck.is_none());
        match letter {
            'I' | 'J' => return Taken::Place(stuck.map(str::to_owned), skipped),
            'i' => return Taken::Place(Some(stuck.unwrap_or("{}").to_owned()), 0),
            _ if VALUED.contains(letter) => return Taken::Words(skipped),
            _ if STUCK.contains(letter) => return Taken::Words(0),
            _ if FLAGS.contains(letter) => (),
            _ => return Taken::Unknown,
        }
    }
    Taken::Words(0)
}

/// Options of `find` that run what comes behind them.
const FIND_EXEC: &[&str] = &["-exec", "-execdir", "-ok", "-okdir"];
/// What find puts a file's name for.
pub(in crate::engine::policy) const FOUND: &str = "{}";

/// The commands that `find` runs. A script with `{}` in it is read as it stands.
pub(super) fn find(args: &[Word]) -> Inner {
    if args.iter().any(|it| it.literal().is_none() && it.text.starts_with('-')) {
        return Inner::Hidden;
    }
    let found = |it: &Word| match it.text.contains(FOUND) && !it.text.contains(char::is_whitespace) {
        true => Word::expanded(&it.text),
        false => it.clone(),
    };
    let mut res = Vec::new();
    let mut rest = args;
    while let Some(at) = rest.iter().position(|it| it.literal().is_some_and(|it| FIND_EXEC.contains(&it))) {
        let after = rest.get(at + 1..).unwrap_or_default();
        let end = end_of(after, rest.get(at).is_some_and(|it| it.text.starts_with("-exec")));
        res.push(after.get(..end).unwrap_or_default().iter().map(found).collect());
        rest = after.get(end..).unwrap_or_default();
    }
    match res.is_empty() {
        true => Inner::Nothing,
        false => Inner::Words(res),
    }
}

/// Where the words end that find runs: at a plus only behind `{}`, and never where it asks for each.
fn end_of(words: &[Word], plus: bool) -> usize {
    let names = std::iter::once(false).chain(words.iter().map(|it| it.text == FOUND));
    let ends = |(word, behind_name): (&Word, bool)| match word.literal() {
        Some(";") => true,
        Some("+") => plus && behind_name,
        _ => false,
    };
    words.iter().zip(names).position(ends).unwrap_or(words.len())
}
