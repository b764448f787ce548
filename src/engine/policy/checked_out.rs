//! `git checkout docs`: a branch, or a path whose changes are thrown away? `git checkout -B main`: a new branch, or one
//! that is moved away from what only it has? The world looks; here stands what for.

use super::{
    danger::git_words,
    leads,
    shell::{Command, Script, Word, base_name},
};
use crate::base::tool::CheckedOut;

/// More of one script are not looked up.
const MAX: usize = 64;

/// What a script has git check out.
pub(super) fn all(script: &Script) -> Vec<CheckedOut> {
    let is_git = |it: &&Command| it.name().is_some_and(|it| matches!(base_name(it), "git" | "git.exe" | "hub"));
    let args = script.commands.iter().filter(is_git).filter_map(|it| match git_words(it.args()).split_first() {
        Some((sub, args)) if sub.text == "checkout" => Some(args),
        _ => None,
    });
    let mut res: Vec<CheckedOut> = Vec::new();
    for named in args.filter_map(named) {
        let Named { name, moves, .. } = &named;
        let spelt = leads::spelt(name, script).into_iter().map(|name| CheckedOut { name, moves: *moves });
        let new: Vec<CheckedOut> = spelt.filter(|it| !res.contains(it)).collect();
        res.extend(new.into_iter().take(MAX.saturating_sub(res.len())));
    }
    res
}

/// What the words behind `checkout` name.
pub(super) struct Named<'a> {
    /// The word that it stands in.
    pub word: &'a Word,
    pub name: Word,
    /// It is for a branch, which may be there.
    pub moves: bool,
}

/// `None`: it makes a branch, says which of both is meant, or names more.
pub(super) fn named(args: &[Word]) -> Option<Named<'_>> {
    if args.iter().any(|it| matches!(it.text.as_str(), "--" | "--orphan")) {
        return None;
    }
    let mut operands = args.iter().filter(|it| !it.text.starts_with('-'));
    let (first, second) = (operands.next(), operands.next());
    let only = |moves| first.filter(|_| second.is_none()).map(|word| Named { word, name: word.clone(), moves });
    match args.iter().find_map(|it| Some((it, branch_option(it)?))) {
        None => only(false),
        Some((_, ('B', ""))) => only(true),
        Some((word, ('B', stuck))) if first.is_none() => {
            Some(Named { word, name: Word { text: stuck.to_owned(), kind: word.kind }, moves: true })
        }
        Some(_) => None,
    }
}

/// `-b`, which makes a branch, or `-B`, which may move one, alone or behind others, with the name that sticks to it.
pub(super) fn branch_option(word: &Word) -> Option<(char, &str)> {
    let letters = word.text.strip_prefix('-').filter(|it| !it.starts_with('-'))?;
    let (at, letter) = letters.char_indices().find(|it| matches!(it.1, 'b' | 'B'))?;
    Some((letter, letters.get(at + 1..)?))
}
