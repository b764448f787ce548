//! Output that goes out of the workspace: the question names each file, and a yes opens just those.

use std::collections::BTreeSet;

use super::{
    Query,
    decide::Opinion,
    git_settings,
    leads::{self, Leads},
    paths, places,
    shell::{self, Redirect, Script, Word, WordKind},
};
use crate::base::{
    guarded::TOOLS,
    log::Decision,
    path::AbsPath,
    tool::{Output, Targets},
};

/// Files of one command that its output goes to.
const MAX_OUTPUTS: usize = 16;
/// So many characters of names a question says. What it does not say no yes opens.
const MAX_SAID: usize = 200;
/// Where things are thrown away.
const THROWN_AWAY: &[&str] = &["/tmp", "/var/tmp"];
/// No files.
const OF_THE_SYSTEM: &[&str] = &["/dev", "/proc", "/sys"];

/// Where a script's output goes, as far as that is out of the roots.
pub(super) struct Outside {
    /// As the script says it.
    names: Vec<String>,
    /// Where that is, if anybody knows.
    files: Vec<AbsPath>,
}

impl Outside {
    /// What only the shell knows is not guessed at. Places that are thrown away do not count for `only_kept` where they are
    /// said: `make > /tmp/log` is everyday, and where there is a sandbox, that asks about it or stops it. `../x` is the
    /// neighbour of the workspace, wherever that lies.
    pub fn of(script: &Script, query: &Query, leads: &Leads, only_kept: bool) -> Option<Self> {
        let here = query.roots.first().filter(|_| !places::moves(script));
        let outside = |word: &Word, here: Option<&AbsPath>| leads_out(word, here, query.roots, only_kept);
        // Where a `cd` goes first, what is said counts from nowhere that is known.
        let stays = |it: &Redirect| it.behind.is_empty() && !script.going.moved && !script.has_definitions;
        let from = |at: &Word, it: &Redirect| if *at == it.target && !stays(it) { here } else { query.roots.first() };
        let led = |it: &Redirect| {
            let first = places::of_redirect(it, script).into_iter().find(|at| outside(at, from(at, it)));
            first.or_else(|| Some(it.target.clone()).filter(|it| leads.leave(it)))
        };
        let filled = |it: &&Word| match places::from_start(it, script) {
            Some(began) if outside(&began, query.roots.first()) => Some(began),
            began if leads.leave(it) || began.is_none() && outside(it, here) => Some((*it).clone()),
            _ => None,
        };
        let redirected = script.redirects.iter().filter(|it| it.writes).filter_map(led);
        let told = script.commands.iter().flat_map(shell::filled).filter_map(|it| filled(&it));
        let mut res = Self { names: Vec::new(), files: Vec::new() };
        let mut said = 0;
        for word in redirected.chain(told) {
            said += word.text.chars().count();
            if !res.names.is_empty() && said > MAX_SAID {
                break;
            }
            if res.names.contains(&word.text) {
                continue;
            }
            let files = files(&word, script, query.targets).filter(|_| said <= MAX_SAID);
            res.files.extend(files);
            res.names.push(word.text);
        }
        (!res.names.is_empty()).then_some(res)
    }

    /// Whether a yes opens anything.
    pub fn is_known(&self) -> bool {
        !self.files.is_empty()
    }

    pub fn question(self) -> Opinion {
        let why = format!("its output goes outside the workspace: {}", self.names.join(", "));
        let files: BTreeSet<AbsPath> = self.files.into_iter().collect();
        let gives = files.into_iter().collect();
        Opinion { gives, ..Opinion::new(Decision::Ask, why) }
    }
}

fn leads_out(word: &Word, here: Option<&AbsPath>, roots: &[AbsPath], only_kept: bool) -> bool {
    let home = ["~", "$HOME", "${HOME}", "\"$HOME", "\"${HOME}"].iter().any(|it| word.text.starts_with(it));
    let said = word.literal().is_some_and(|it| it.starts_with('/'));
    let path = match word.literal() {
        Some(it) if said => AbsPath::new(it),
        Some(it) => here.map(|here| here.join(it)),
        None => None,
    };
    let within = |path: &AbsPath, list: &[&str]| list.iter().any(|it| path.as_path().starts_with(it));
    let passes = |path: &AbsPath| said && (within(path, OF_THE_SYSTEM) || only_kept && within(path, THROWN_AWAY));
    home || path.is_some_and(|path| !roots.iter().any(|it| path.is_within(it)) && !passes(&path))
}

/// Where a word's file really is. What is guarded, or held for the tools of a home folder, no such yes opens.
fn files<'q>(word: &Word, script: &Script, targets: &'q Targets) -> impl Iterator<Item = AbsPath> + use<'q> {
    let name = if targets.beyond.outputs.is_empty() { None } else { spelt(word, script) };
    let is_free = |it: &&Output| {
        let real = it.real.as_path();
        let guarded = paths::guard_of_place(&it.real, true).is_some() || TOOLS.find(real).is_some();
        !guarded && !OF_THE_SYSTEM.iter().any(|it| real.starts_with(it))
    };
    targets
        .beyond
        .outputs
        .iter()
        .filter(move |it| name.as_ref() == Some(&it.name))
        .filter(is_free)
        .map(|it| it.real.clone())
}

/// What a script's output goes to, for who looks where that is.
pub(super) fn outputs(script: &Script) -> Vec<String> {
    let redirected = script.redirects.iter().filter(|it| it.writes).flat_map(|it| places::of_redirect(it, script));
    let filled = script.commands.iter().flat_map(shell::filled);
    let filled = filled.map(|it| places::from_start(it, script).unwrap_or_else(|| it.clone()));
    let names: BTreeSet<String> = redirected.chain(filled).filter_map(|it| spelt(&it, script)).collect();
    names.into_iter().take(MAX_OUTPUTS).chain(git_settings::settings_of_user(script)).collect()
}

/// The one file that a word is, if it is one. In quotes `~` is a name like others.
fn spelt(word: &Word, script: &Script) -> Option<String> {
    let is_plain = |it: &str| !it.contains(['$', '`', '\\', '"', '\'', '*', '?', '[', '{', '\n', '\0']);
    match word.kind {
        WordKind::Literal => Some(word.text.clone()).filter(|it| !it.is_empty() && !it.starts_with('~')),
        WordKind::Pattern => Some(word.text.clone()).filter(|it| is_plain(it)),
        // Where no script sets it, it comes to nothing here, and counts from the user's home.
        WordKind::Expanded => match leads::spelt(word, script).as_slice() {
            [rest, home] if home.strip_prefix('~') == Some(rest) && is_plain(rest) => {
                let text = word.text.replacen("${HOME}", "$HOME", 1).replace(['"', '\''], "");
                (text.strip_prefix("$HOME") == Some(rest)).then(|| home.clone())
            }
            _ => None,
        },
    }
}
