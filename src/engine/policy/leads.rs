//! Names that lead elsewhere than they say: what a command names is looked up by the world, and judged by where it is.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    Query, checked_out, git_settings, made,
    names::current_name,
    network, outside,
    paths::{self, Guard},
    pieces::{self, ANY},
    places, reworks,
    shell::{Command, Script, Word, WordKind},
    shown,
};
use crate::base::{
    path::AbsPath,
    tool::{Lead, TargetPath, Targets, Words},
};

/// Names of one command that are looked up.
const MAX_NAMES: usize = 400;
/// Files of it that are looked for, as they may not be there.
const MAX_MADE: usize = 16;
/// A longer word is no path.
const MAX_LEN: usize = 4_096;
/// How many of them people are told.
const MAX_TOLD: usize = 5;

/// What a call's command names, as far as it may read or write that. Words that are only printed are not looked up.
pub fn words(tool: &str, args: &Value) -> Words {
    let text = args.get("command").and_then(Value::as_str);
    let text = text.filter(|_| current_name(tool) == "run_shell_command");
    // What cannot be read is not allowed by what it says.
    let Some(script) = text.and_then(|it| Script::parse(it).ok()) else { return Words::default() };
    let more = script.redirects.iter().map(|it| &it.target).chain(script.values.all.iter().map(|it| &it.word));
    let named = script.commands.iter().flat_map(paths::read_args).chain(more);
    let mut names: BTreeSet<String> = named.flat_map(|it| candidates(it, &script)).collect();
    // `git -C link status` works where that leads.
    let of_git = script.commands.iter().filter(|it| it.name() == Some("git")).flat_map(places::folders);
    names.extend(of_git.flat_map(|it| candidates(&it, &script)));
    names.extend(script.commands.iter().filter_map(|it| it.code.as_deref()).flat_map(quoted).map(str::to_owned));
    let more = names.len() > MAX_NAMES;
    let dirs = script.commands.iter().flat_map(|it| {
        let moves = places::is_cd(it).then(|| places::target(it)).flatten();
        let words = moves.cloned().into_iter().chain(places::folders(it));
        let named = words.flat_map(|it| spelt(&it, &script)).collect::<Vec<_>>();
        // `cd` alone goes home.
        let home = it.name() == Some("cd") && it.args().is_empty();
        named.into_iter().chain(home.then(|| "~".to_owned()))
    });
    Words {
        names: names.into_iter().take(MAX_NAMES).collect(),
        dirs: dirs.collect(),
        more,
        makes: script.commands.iter().filter_map(made::target).take(MAX_MADE).map(str::to_owned).collect(),
        shows: shown::may_show(&script),
        checked_out: checked_out::all(&script),
        reworks: reworks::all(&script),
        repositories: git_settings::repositories(&script),
        far: network::all(&script),
        outputs: outside::outputs(&script),
    }
}

/// What a word may name: itself, or what sticks to an option or behind a sign in it.
fn candidates(word: &Word, script: &Script) -> Vec<String> {
    spelt(word, script).iter().flat_map(|it| parts(it).map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// A word as the shell reads it, as far as that is known; what counts from home begins with `~`.
pub(super) fn spelt(word: &Word, script: &Script) -> Vec<String> {
    if word.kind != WordKind::Expanded {
        return vec![word.text.clone()];
    }
    let known = |it: &Word| pieces::spellings(it, script).into_iter().filter(|it| !it.contains(ANY));
    let from_home = behind_home(word).into_iter().flat_map(|it| known(&it).collect::<Vec<_>>());
    known(word).chain(from_home.map(|it| format!("~{it}"))).filter(|it| !it.is_empty()).collect()
}

/// What stands behind `$HOME`, in quotes or not.
fn behind_home(word: &Word) -> Option<Word> {
    let (quote, text) = word.text.split_at(usize::from(word.text.starts_with('"')));
    let rest = ["$HOME", "${HOME}"].iter().find_map(|it| text.strip_prefix(it))?;
    let ends = rest.is_empty() || rest.starts_with(['/', '"']);
    ends.then(|| Word { text: format!("{quote}{rest}"), kind: word.kind })
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    let option = text.strip_prefix('-').filter(|it| !it.starts_with('-'));
    let glued = option.and_then(|it| it.get(it.chars().next()?.len_utf8()..));
    let behind = text.split(['=', ':', ',', '@']).skip(1);
    let before = text.split_once([':', ',']).map(|it| it.0);
    let all = [Some(text), glued, before].into_iter().flatten().chain(behind);
    // What the kernel links to there is another thing for each process.
    let own = |it: &str| (it.starts_with("/dev/") || it.starts_with("/proc/")) && !it.contains("..");
    all.filter(move |it| {
        !matches!(*it, "" | "." | "/") && it.len() <= MAX_LEN && !it.contains(['\n', '\0']) && !own(it)
    })
}

/// What stands in quotes in code of another language.
pub(super) fn quoted(code: &str) -> impl Iterator<Item = &str> {
    let marks = ['\'', '"', '`'];
    let pieces = code.split(marks);
    pieces.filter(|it| !it.is_empty() && it.len() <= MAX_LEN && !it.contains(['\n', '\0']))
}

/// Where a command's names lead, by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Leads<'a>(BTreeMap<&'a str, Vec<&'a Lead>>);

impl<'a> Leads<'a> {
    pub fn of(query: &Query<'a>) -> Self {
        let mut res: BTreeMap<&str, Vec<&Lead>> = BTreeMap::new();
        for it in query.targets.leads.iter().filter(|it| !it.name.is_empty()) {
            res.entry(&it.name).or_default().push(it);
        }
        Self(res)
    }

    /// Whether a word, or a part of it, leads out of the roots.
    pub fn leave(&self, word: &Word) -> bool {
        self.any(word, |it| !it.in_roots)
    }

    /// Whether a word, or a part of it, leads to such a place.
    pub fn any(&self, word: &Word, is_such: impl Fn(&Lead) -> bool) -> bool {
        let leads = |it: &str| self.0.get(it).is_some_and(|all| all.iter().any(|it| is_such(it)));
        !self.0.is_empty() && parts(&word.text).any(leads)
    }

    /// What is guarded of where a command's words lead. `looks`: it is known to look only.
    pub fn guard_of_command(&self, command: &Command, script: &Script, looks: impl Fn() -> bool) -> Option<Guard> {
        if self.0.is_empty() {
            return None;
        }
        let looks = looks();
        let words = paths::read_args(command).iter().find_map(|it| self.guard(it, script, !looks));
        words.or_else(|| quoted(command.code.as_deref()?).find_map(|it| self.guard_of_name(it, true)))
    }

    /// The same for where a script's redirections lead.
    pub fn guard_of_redirects(&self, script: &Script) -> Option<Guard> {
        script.redirects.iter().find_map(|it| self.guard(&it.target, script, it.writes))
    }

    /// What is guarded of where a word leads.
    pub fn guard(&self, word: &Word, script: &Script, writes: bool) -> Option<Guard> {
        if self.0.is_empty() {
            return None;
        }
        candidates(word, script).iter().find_map(|it| self.guard_of_name(it, writes))
    }

    fn guard_of_name(&self, name: &str, writes: bool) -> Option<Guard> {
        self.0.get(name)?.iter().find_map(|it| paths::guard_of_place(&it.real, writes))
    }
}

/// For people: where a call's names lead, if not where they say.
pub fn leads_in_words(targets: &Targets, cwd: &AbsPath) -> Vec<String> {
    let said = |it: &Lead| match cwd.join(&it.name) == it.path {
        true => it.name.clone(),
        false => it.path.shown_from(cwd),
    };
    let of_command = strange(targets).map(|it| (said(it), &it.real, it.in_roots));
    let links = linked(targets).map(|it| (it.path.shown_from(cwd), &it.real, it.in_roots));
    let all: Vec<_> = links.chain(of_command).collect();
    let told = all.iter().take(MAX_TOLD).map(|(said, real, in_roots)| {
        let outside = (!in_roots).then(|| "outside the workspace".to_owned());
        let guarded = paths::guard_of_place(real, true).map(|it| it.to_string());
        let what: Vec<String> = outside.into_iter().chain(guarded).collect();
        let what = if what.is_empty() { String::new() } else { format!(" ({})", what.join("; ")) };
        format!("{said} leads to {}{what}.", real.shown_from(cwd))
    });
    let more = all.len().checked_sub(MAX_TOLD).filter(|it| *it > 0);
    told.chain(more.map(|it| format!("{it} more names lead elsewhere."))).collect()
}

/// Where they are.
pub fn real_places(targets: &Targets) -> impl Iterator<Item = &AbsPath> {
    linked(targets).map(|it| &it.real).chain(strange(targets).map(|it| &it.real)).take(MAX_TOLD)
}

fn linked(targets: &Targets) -> impl Iterator<Item = &TargetPath> {
    targets.paths.iter().filter(|it| it.path != it.real)
}

/// Names of a command that lead where it matters.
fn strange(targets: &Targets) -> impl Iterator<Item = &Lead> {
    let guarded = |it: &Lead| paths::guard_of_place(&it.real, true).is_some();
    // What is where it says is a reason of the question, and leads nowhere.
    let leads = targets.leads.iter().filter(|it| !it.name.is_empty() && it.path != it.real);
    leads.filter(move |it| !it.in_roots || guarded(it))
}
