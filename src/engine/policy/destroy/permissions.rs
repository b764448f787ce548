//! `chmod`, `chown` and their like: who may do what with which files.

use super::{Place, checks};
use crate::engine::policy::shell::{Word, WordKind};

/// What makes it more than `chmod +x x.sh`: folders as a whole, files elsewhere, programs that run as somebody else.
pub(super) fn gives<'w>(args: &'w [Word], place: &Place) -> Option<Vec<&'w str>> {
    let at = args.iter().position(|it| !is_option(it));
    let (mode, paths) = args.get(at.unwrap_or(args.len())..).and_then(<[Word]>::split_first).unzip();
    let paths: &[Word] = paths.unwrap_or_default();
    if let Some(it) = mode.filter(|it| raises(&it.text) || takes_all(&it.text)) {
        return Some(vec![&it.text]);
    }
    let follows = args.iter().any(|it| is_option(it) && !it.text.starts_with("--") && it.text.contains(['H', 'L']));
    let recursive = args.iter().find(|it| is_recursive(it));
    if let Some(it) = recursive.filter(|_| follows || !place.all_build(paths.iter().filter(|it| !is_option(it)))) {
        return Some(vec![&it.text]);
    }
    if let Some(it) = checks::found(args) {
        return Some(vec![it]);
    }
    let runs = mode.is_some_and(|it| only_runs(&it.text));
    let far = |it: &&Word| it.text.contains("**") || is_elsewhere(it, place);
    paths.iter().find(far).filter(|_| !runs).map(|it| vec![it.text.as_str()])
}

/// `-R`, `-fv`, `--recursive`; not `-w`, which is a mode.
fn is_option(word: &Word) -> bool {
    let flags = word.text.strip_prefix('-').unwrap_or_default();
    flags.starts_with('-') || !flags.is_empty() && flags.bytes().all(|it| b"HLPRcfhnvx".contains(&it)) && flags != "x"
}

fn is_recursive(word: &Word) -> bool {
    match word.text.strip_prefix("--") {
        Some(long) => word.kind != WordKind::Expanded && long.len() > 2 && "recursive".starts_with(long),
        None => is_option(word) && word.text.contains('R'),
    }
}

/// `4755`, `u+s`: who runs it is somebody else then.
pub(super) fn raises(mode: &str) -> bool {
    match u32::from_str_radix(mode, 8) {
        Ok(bits) => bits & 0o6000 != 0,
        Err(_) => mode.split(',').any(|it| {
            let (whom, gives) = it.split_at(it.find(['+', '=']).unwrap_or(it.len()));
            gives.contains('s') && gives.bytes().skip(1).all(|it| b"rwxXst".contains(&it)) && is_whom(whom)
        }),
    }
}

/// `000`
fn takes_all(mode: &str) -> bool {
    mode.len() < 6 && u32::from_str_radix(mode, 8) == Ok(0)
}

/// `a+x`, `+x`: only letting files be run harms nobody.
pub(super) fn only_runs(mode: &str) -> bool {
    mode.strip_suffix("+x").or_else(|| mode.strip_suffix("+rx")).is_some_and(is_whom)
}

fn is_whom(text: &str) -> bool {
    text.bytes().all(|it| b"ugoa".contains(&it))
}

/// Written out, and below none of the roots. What a script made for itself in the folder for such things is its own.
fn is_elsewhere(word: &Word, place: &Place) -> bool {
    let own = ["/tmp/", "/var/tmp/"].iter().any(|it| word.text.starts_with(it)) && !word.text.contains("..");
    word.text.starts_with('/') && !own && place.is_outside(word)
}

/// `install -m 4755`
pub(super) fn installs(args: &[Word]) -> Option<&str> {
    let texts = || args.iter().map(|it| it.text.as_str());
    let apart = texts().zip(texts().skip(1)).filter(|it| matches!(it.0, "-m" | "--mode")).map(|it| it.1);
    let stuck = texts().filter_map(|it| it.strip_prefix("-m").or_else(|| it.strip_prefix("--mode=")));
    apart.chain(stuck).find(|it| raises(it))
}
