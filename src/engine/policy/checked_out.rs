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
    let letters = |it: &Word| {
        let short = it.text.strip_prefix('-').filter(|it| !it.starts_with('-'))?;
        short.find(['b', 'B']).map(|at| short.split_at(at + 1)).map(|it| (it.0.to_owned(), it.1.to_owned()))
    };
    let mut operands = args.iter().filter(|it| !it.text.starts_with('-'));
    if args.iter().any(|it| matches!(it.text.as_str(), "--" | "--orphan")) {
        return None;
    }
    let (first, second) = (operands.next(), operands.next());
    match args.iter().find_map(|it| Some((it, letters(it)?))) {
        Some((word, (letters, stuck))) if letters.ends_with('B') && !stuck.is_empty() && first.is_none() => {
            let name = Word { text: stuck, kind: word.kind };
            Some(Named { word, name, moves: true })
        }
        Some((_, (letters, stuck))) if !letters.ends_with('B') || !stuck.is_empty() => None,
        found if second.is_none() => first.map(|word| Named { word, name: word.clone(), moves: found.is_some() }),
        _ => None,
    }
}
