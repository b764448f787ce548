//! The destructive class: what cannot be taken back is asked about in every mode, unless a rule of the user names it.

mod called;
mod checks;
mod clears;
mod code;
mod computed;
mod devices;
mod fed;
mod handed;
mod known;
mod permissions;
mod place;
mod plain;
mod prints;
mod stores;
mod table;
mod texts;
mod told;
mod tries;
mod verbs;

pub(super) use devices::is_device;
pub(super) use fed::starts_from_input;
pub(super) use place::{Place, works_elsewhere};
use table::{Row, When, published_by, rows_of};
use texts::{called_in, in_code, in_own_words, rows_in};
pub(super) use verbs::looks;

use super::{
    checked_out,
    danger::git_words,
    rules::{Matcher, Rule, Tier},
    shell::{Command, Word, WordKind, base_name},
};
use crate::base::log::Decision;

/// The words that make a command destructive, such as `git push --force`. A rule that has them all knows of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Signs(Vec<String>);

/// What makes the command destructive, if it is. What it hides counts by the words that can be seen, and as
/// destructive when none can.
pub(super) fn signs(command: &Command, place: &Place) -> Option<Signs> {
    let apart: Place;
    let contained = command.carried && place.contains;
    let place = match contained || works_elsewhere(command, place) {
        true => {
            apart = place.apart();
            &apart
        }
        false => place,
    };
    if command.opaque {
        // `git -c a=b push -f` says what it does, whatever else it runs.
        let told = || {
            let own = command
                .name()
                .map(base_name)
                .filter(|it| matches!(*it, "cargo" | "ex" | "git" | "nvim" | "tmux" | "vi" | "vim"))?;
            told(command, own, place)
        };
        let input = command.input.as_ref().map(|it| it.text.as_str());
        let program = command.name().map(base_name).unwrap_or_default();
        let more = || {
            let device = devices::named(command, program, place.script);
            let handed = || handed::signs(command, program, place).or_else(|| handed::in_input(input?));
            let coded = || in_code(command.code.as_deref()?, program, command);
            device.or_else(handed).or_else(coded).or_else(|| fed::signs(command, program, place))
        };
        let hidden =
            || hidden(&command.text, command).filter(|it| it.0 != [UNSEEN] || !plain::is_plain(command, place.script));
        return told().or_else(hidden).or_else(more);
    }
    let program = base_name(command.name()?).to_ascii_lowercase();
    let repairs = program.starts_with("fsck.") && !command.args().iter().any(|it| it.text == "-n");
    if repairs || program == "mkfs" || program.starts_with("mkfs.") || program.starts_with("newfs") {
        return Some(Signs(vec![program]));
    }
    let program = command.name().and_then(called::by_package).unwrap_or_else(|| normal(&program));
    if program == "kill" && command.args().iter().any(|it| it.kind == WordKind::Expanded) {
        let all = computed::lists_all_processes(place.script).map(|it| Signs(vec!["kill".to_owned(), it.to_owned()]));
        if all.is_some() {
            return all;
        }
    }
    let by_code = command.code.as_deref().and_then(|it| in_code(it, program, command));
    let by_code =
        by_code.or_else(|| code::put_in(command, program, place.script)).or_else(|| code::called(command, place));
    let by_words = || {
        let device = || devices::named(command, program, place.script);
        told(command, program, place).or_else(device).or_else(|| handed::signs(command, program, place))
    };
    by_code.or_else(by_words).or_else(|| fed::signs(command, program, place))
}

/// `git.exe`, `php8.2`, and `grm` as others' systems call GNU's `rm`.
fn normal(program: &str) -> &str {
    const GNU: &[&str] =
        &["gchgrp", "gchmod", "gchown", "gcp", "gdd", "gln", "gmv", "grm", "gshred", "gtar", "gtruncate"];
    let program = program.strip_suffix(".exe").unwrap_or(program);
    let plain = program.trim_end_matches(|it: char| it.is_ascii_digit() || it == '.');
    match program {
        _ if GNU.contains(&program) => program.strip_prefix('g').unwrap_or(program),
        _ if ["perl", "php", "python", "ruby", "pip"].contains(&plain) => plain,
        _ => program,
    }
}

/// By the table, and by what git is told to be called.
fn told(command: &Command, program: &str, place: &Place) -> Option<Signs> {
    if let Some(it) = git_alias(program, command.args()) {
        return Some(it);
    }
    let more = computed::said_elsewhere(command, program, place.script);
    let all: Vec<Word>;
    let args = match more.is_empty() {
        true => command.args(),
        false => {
            all = command.args().iter().cloned().chain(more).collect();
            &all
        }
    };
    // `hub` hands on to git what it does not do itself.
    let as_git = || (program == "hub").then(|| by_table("git", args, place)).flatten();
    let handed = || {
        let word = computed::handed_by_file(program, command.args(), place.script)?;
        Some(Signs(vec![program.to_owned(), word.text.clone()]))
    };
    let computed = || {
        let hangs = computed::hangs_on_a_word(program, args);
        computed::variants(args, place.script, hangs).iter().find_map(|it| by_table(program, it, place))
    };
    let module = || {
        let (module, args) = called::module(args).filter(|_| program == "python")?;
        by_table(module, args, place)
    };
    by_table(program, args, place).or_else(module).or_else(as_git).or_else(computed).or_else(handed)
}

fn by_table(program: &str, args: &[Word], place: &Place) -> Option<Signs> {
    if tries::only_tries(program, args) || tries::only_helps(program, args) {
        return None;
    }
    let starts = sub_commands(program, args);
    rows_of(program).find_map(|row| match row.sub {
        [] => row.signs(args, place),
        _ => starts.iter().find_map(|it| row.signs(it, place)),
    })
}

/// The sub-command with which it sends something to where others get it.
pub(super) fn publishes(command: &Command) -> Option<&'static [&'static str]> {
    let program = base_name(command.name()?);
    let mut all = published_by(program).peekable();
    all.peek()?;
    let starts = sub_commands(program, command.args());
    let leads = |sub: &[&str], words: &[Word]| {
        sub.len() <= words.len() && sub.iter().zip(words).all(|(it, word)| word.text == *it)
    };
    all.find(|sub| starts.iter().any(|it| leads(sub, it)))
}

/// Where a sub-command may begin: behind the program's options, and behind what may be the value of one.
pub(super) fn sub_commands<'a>(program: &str, args: &'a [Word]) -> Vec<&'a [Word]> {
    if program == "git" {
        return vec![git_words(args)];
    }
    // `make V=1 deploy`
    let assigns = |it: &Word| matches!(program, "gmake" | "make" | "rake") && it.text.contains('=');
    let (mut res, mut valued) = (Vec::new(), false);
    for (at, word) in args.iter().enumerate() {
        let option = word.text.starts_with(['-', '+']) || assigns(word);
        if !option {
            res.extend(args.get(at..));
        }
        if !option && !valued {
            break;
        }
        // `python -m x`: the module is what is called.
        let module = program == "python" && word.text == "-m";
        valued = word.text.starts_with('-') && !word.text.contains('=') && !module;
    }
    res
}

/// `git -c alias.x='!rm' x` runs anything, `git -c remote.origin.mirror=true push` deletes.
fn git_alias(program: &str, args: &[Word]) -> Option<Signs> {
    let globals = args.len() - git_words(args).len();
    let loosens = |it: &Word| it.text.split_once('=').is_some_and(|it| checks::loosens(it.0, it.1));
    // `core.hooksPath=h` has all that lies there run; none is run by what is empty.
    let hooks = |it: &Word| {
        let named = it.text.split_once('=').filter(|it| it.0.eq_ignore_ascii_case("core.hookspath"));
        named.is_some_and(|it| !matches!(it.1, "" | "/dev/null"))
    };
    let decides = |it: &&Word| it.text.contains("alias.") || it.text.contains('!') || loosens(it) || hooks(it);
    let sets = args.iter().take(globals).find(decides)?;
    (program == "git").then(|| Signs(vec!["git".to_owned(), sets.text.clone()]))
}

/// What stands behind a row's words.
struct Behind<'w> {
    args: &'w [Word],
    /// Which of the row's own words only the shell knows.
    hidden: Option<&'w Word>,
}

impl Row {
    /// `words` are those from the sub-command on.
    fn signs(&self, words: &[Word], place: &Place) -> Option<Signs> {
        let said = |word: &Word| Signs(vec![self.program.to_owned(), word.text.clone()]);
        let Behind { args, hidden } = match self.behind_sub(words) {
            Ok(it) => it?,
            Err(word) => return Some(said(word)),
        };
        let why = self.when.decides(args, place).or_else(|| self.when.may_be_in_unknown(args))?;
        if let Some(word) = hidden {
            return Some(said(word));
        }
        let words = [self.program].into_iter().chain(self.sub.iter().copied()).chain(why);
        Some(Signs(words.filter(|it| !it.is_empty()).map(str::to_owned).collect()))
    }

    /// The words behind its own, between which options may stand: `docker compose -f x push`.
    ///
    /// # Errors
    /// Any number of words that only the shell knows.
    fn behind_sub<'w>(&self, mut words: &'w [Word]) -> Result<Option<Behind<'w>>, &'w Word> {
        let mut hidden = None;
        for (nth, sub) in self.sub.iter().enumerate() {
            let mut valued = false;
            loop {
                let Some((word, rest)) = words.split_first() else { return Ok(None) };
                words = rest;
                let option = nth > 0 && word.text.starts_with('-');
                match word.kind {
                    _ if option => valued = !word.text.contains('='),
                    WordKind::Expanded if !valued && is_in_folder(&word.text) => return Ok(None),
                    WordKind::Expanded if !valued && is_one_word(&word.text) => {
                        hidden = Some(word);
                        break;
                    }
                    WordKind::Expanded if !valued => return Err(word),
                    _ if word.text == *sub => break,
                    _ if !valued => return Ok(None),
                    _ => valued = false,
                }
            }
        }
        Ok(Some(Behind { args: words, hidden }))
    }
}

/// `tests/$f` is no sub-command, whatever follows.
fn is_in_folder(text: &str) -> bool {
    let fixed = text.trim_start_matches('"').split(['$', '`', '{']).next().unwrap_or_default();
    fixed.contains('/') && fixed.bytes().all(|it| it.is_ascii_alphanumeric() || b"_-./".contains(&it))
}

/// `"$X"` is one word, whatever it holds; `"$@"` is many.
fn is_one_word(text: &str) -> bool {
    let inner = text.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    inner.is_some_and(|it| !it.contains(['"', '@', '*', '!']))
}

impl When {
    /// What decides may be among the words that nobody knows.
    fn may_be_in_unknown<'a>(&self, args: &'a [Word]) -> Option<Vec<&'a str>> {
        let option = |it: &&str| it.starts_with('-');
        let (options, all_options) = match self {
            Self::Options(..) | Self::Permits => (true, true),
            Self::Begins(list) => (true, list.iter().all(option)),
            Self::Words(list) => (list.iter().any(option), false),
            _ => return None,
        };
        let at = args.iter().position(Word::is_unknown)?;
        let before = args.get(..at)?;
        // Nothing behind `--` is an option, and what follows two names is no sub-command.
        let ended = all_options && before.iter().any(|it| it.text == "--");
        let names = before.iter().filter(|it| !it.text.starts_with('-')).count();
        let may = if options { !ended } else { names < 2 };
        may.then(|| args.get(at).map(|it| it.text.as_str()).into_iter().collect())
    }

    /// What decides beside program and sub-command; `None`: it does not destroy.
    fn decides<'a>(&self, args: &'a [Word], place: &Place) -> Option<Vec<&'a str>> {
        let text = |it: &'a Word| vec![it.text.as_str()];
        let operands = || args.iter().filter(|it| !it.text.starts_with('-'));
        match self {
            Self::Always => Some(Vec::new()),
            Self::Options(short, long) => args.iter().find(|it| option_matches(it, short, long)).map(text),
            Self::Words(list) => said(args).find(|it| list.contains(&it.text.as_str())).map(text),
            Self::Begins(list) => {
                // `"+$B"` begins with a plus.
                let begins = |it: &&Word| match it.kind {
                    WordKind::Expanded => starts(it.text.trim_start_matches('"'), list),
                    _ => starts(&it.text, list),
                };
                said(args).find(begins).map(text)
            }
            Self::Unless(list) => (!args.iter().any(|it| list.contains(&it.text.as_str()))).then(Vec::new),
            Self::Holds(holds) => holds(args).map(|it| vec![it]),
            Self::HoldsBeside(holds) => holds(args).filter(|_| !place.has_only_build(args)).map(|it| vec![it]),
            Self::Undone => checked_out::named(args).filter(|it| place.undoes(it)).map(|it| text(it.word)),
            Self::HoldsOutside(holds) => {
                // `find target -name x`: what follows an option is no folder.
                let ends = |it: &Word| it.text.starts_with(['-', '(', '!']);
                let folders = args.get(..args.iter().position(ends).unwrap_or(args.len())).unwrap_or_default();
                // Build folders hold links to sources, `node_modules` above all: who follows them leaves.
                let follows = args.iter().any(|it| matches!(it.text.as_str(), "-L" | "-follow"));
                let fine = !follows && place.all_build(folders.iter());
                let fine = fine || args.iter().any(|it| it.text == "-delete") && place.finds_build(args, false);
                holds(args).filter(|_| !fine).map(|it| vec![it])
            }
            Self::OutsideBuild => {
                let fine = place.all_build(operands());
                // `rm x` and `rm -rf x` are two things to allow.
                let options = args.iter().filter(|it| it.text.starts_with('-') && it.text.len() > 1);
                (!fine).then(|| options.map(|it| it.text.as_str()).collect())
            }
            Self::Clears(when, folders) => clears::outside(args, when, folders, place),
            Self::Permits => permissions::gives(args, place),
            Self::Outside => operands().find(|it| place.is_outside(it)).map(text),
            Self::OntoOutside => {
                let target = args.iter().find(|it| it.text.starts_with("-t") || it.text.starts_with("--target"));
                let last = operands().next_back();
                let outside = target.is_some() || last.is_some_and(|it| place.is_outside(it));
                outside.then(|| last.map(text).unwrap_or_default())
            }
        }
    }
}

/// Options behind which text stands.
const TEXT: &[&str] = &[
    "--body",
    "--description",
    "--filter",
    "--filter-pattern",
    "--label",
    "--message",
    "--policy-arn",
    "--query",
    "--search",
    "--title",
];

/// The words that are no text: not the `delete` of `gh pr list --search delete`.
fn said(args: &[Word]) -> impl Iterator<Item = &Word> {
    let before = std::iter::once(None).chain(args.iter().map(Some));
    let is_text = |it: Option<&Word>| it.is_some_and(|it| TEXT.contains(&it.text.as_str()));
    args.iter().zip(before).filter(move |it| !is_text(it.1)).map(|it| it.0)
}

fn starts(text: &str, list: &[&str]) -> bool {
    list.iter().any(|it| text.starts_with(it))
}

/// `-rf` has `r` and `f`; `--for` is `--force`, and so may be `--f$X`.
fn option_matches(word: &Word, short: &str, long: &[&str]) -> bool {
    if word.kind == WordKind::Expanded {
        let fixed = word.text.trim_start_matches('"').split(['$', '`', '{', '"']).next().unwrap_or_default();
        return match fixed.strip_prefix('-') {
            Some(rest) if rest.starts_with('-') && !rest.contains('=') => long.iter().any(|it| it.starts_with(fixed)),
            Some("") => true,
            Some(rest) => !rest.starts_with('-') && rest.contains(|it| short.contains(it)),
            None => false,
        };
    }
    match word.text.strip_prefix('-') {
        Some(rest) if rest.starts_with('-') => {
            let name = word.text.split('=').next().unwrap_or_default();
            name.len() > 2 && long.iter().any(|it| it.starts_with(name))
        }
        Some(rest) => rest.contains(|it| short.contains(it)),
        None => false,
    }
}

fn named(program: &str, what: &str) -> Signs {
    Signs([program, what].iter().filter(|it| !it.is_empty()).map(|it| (*it).to_owned()).collect())
}

/// Stands for words that nobody sees; no rule has it in it.
const UNSEEN: &str = "what it runs is only known when it runs";

/// What hides behind a command whose words do not tell: judged by its text.
fn hidden(text: &str, command: &Command) -> Option<Signs> {
    if let Some(row) = rows_in(text) {
        return Some(Signs(vec![row.program.to_owned()]));
    }
    if let Some(it) = called_in(text) {
        return Some(Signs(vec![it.to_owned()]));
    }
    // A shell without a script reads its input; `$X` is anything.
    let blind = command.unseen || command.name().is_none_or(|it| super::shell::is_shell(base_name(it)));
    (blind || text.contains(['$', '`'])).then(|| Signs(vec![UNSEEN.to_owned()]))
}

impl Signs {
    pub fn new(words: impl Iterator<Item = String>) -> Self {
        Self(words.collect())
    }

    /// Whether the rule allows just this: the user's own, and with each of these words in it. `git push` does not
    /// speak of `git push --force`.
    pub fn named_by(&self, rule: &Rule) -> bool {
        let has_all = |has: &dyn Fn(&str) -> bool| self.0.iter().all(|it| has(it));
        rule.decision == Decision::Allow
            && rule.tier >= Tier::User
            && match &rule.matcher {
                Matcher::Any | Matcher::Never | Matcher::NotTools(_) | Matcher::Broken | Matcher::PlanFile => false,
                Matcher::Prefixes(list) => list.iter().any(|prefix| {
                    has_all(&|sign| {
                        prefix.iter().any(|it| {
                            base_name(it).eq_ignore_ascii_case(sign) || it.split('/').any(|it| it == sign) || it == sign
                        })
                    })
                }),
                Matcher::Args(it) | Matcher::Command(it) => {
                    let written = it.as_str().replace('\\', "");
                    has_all(&|sign| written.contains(sign))
                }
            }
    }
}

impl std::fmt::Display for Signs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}
