//! Names that one command lists and a loop hands to another that prints files: `ls -A | while read f; do cat "$f"; done`.

use super::{
    super::{
        danger::git_words,
        shell::{Command, Script, Word, WordKind, base_name, changed, substitutes},
    },
    RGS, begins, entry,
    find::may_find,
    finds, is_in, name_of, named, takes, takes_in,
};
use crate::base::{
    path::AbsPath,
    tool::{Lead, Tracked},
};

/// What sets variables to what it reads.
const READERS: &[&str] = &["mapfile", "read", "readarray"];
/// What stands between who lists and who reads.
const FILTERS: &[&str] = &["awk", "cut", "egrep", "grep", "head", "sed", "sort", "tail", "tr", "uniq"];
/// More commands are not looked through for each that prints.
const MAX_COMMANDS: usize = 512;

/// What is met and where.
pub(super) struct Around<'a> {
    pub script: &'a Script,
    pub here: Option<&'a AbsPath>,
    pub met: &'a [(&'a AbsPath, &'a AbsPath)],
    pub leads: &'a [Lead],
    /// Those of secrets that are in git's index, if somebody looked.
    pub tracked: Option<&'a [Tracked]>,
}

/// The entry of the first file of secrets among what a variable in `command` may stand for.
pub(super) fn comes_upon(command: &Command, around: &Around) -> Option<&'static str> {
    let script = around.script;
    let open = command.args().iter().filter(|it| it.kind == WordKind::Expanded);
    let names: Vec<&str> = open.flat_map(|it| changed::names_in(&it.text)).filter(|it| !it.is_empty()).collect();
    if names.is_empty() || script.commands.len() > MAX_COMMANDS {
        return None;
    }
    let set = script.values.all.iter().filter(|it| it.name.as_deref().is_some_and(|it| names.contains(&it)));
    let substituted = set.filter(|it| substitutes(&it.word.text)).flat_map(|it| script.commands_in(&it.word.text));
    let is_read = |it: &Command| {
        it.name().is_some_and(|it| READERS.contains(&it))
            && it.args().iter().any(|it| names.iter().any(|name| it.text.split('[').next() == Some(name)))
    };
    let read = script.commands.iter().position(is_read).map(|at| listers(script, at)).unwrap_or_default();
    substituted.chain(read).find_map(|it| around.listed_by(it))
}

/// The same of what a command reads names from: `ls -A | tar cf x -T -`.
pub(super) fn handed(command: &Command, around: &Around) -> Option<&'static str> {
    let at = around.script.commands.iter().position(|it| std::ptr::eq(it, command))?;
    listers(around.script, at).into_iter().find_map(|it| around.listed_by(it))
}

/// Who may list what the command at `at` reads.
fn listers(script: &Script, at: usize) -> Vec<&Command> {
    let files: Vec<&str> = script.redirects.iter().filter(|it| !it.writes).map(|it| it.target.text.as_str()).collect();
    let before = script.commands.get(..at).unwrap_or_default().iter().rev();
    match files.is_empty() {
        // `done < <(ls -A)`: listed behind.
        false if files.iter().any(|it| it.starts_with("<(")) => script.commands.iter().collect(),
        false => Vec::new(),
        true => before.skip_while(|it| it.name().is_some_and(|it| FILTERS.contains(&it))).take(1).collect(),
    }
}

impl Around<'_> {
    /// Where nobody knows which names come.
    pub(super) fn any(&self) -> Option<&'static str> {
        self.met.iter().find_map(|it| entry(*it))
    }

    /// Of a search that prints names, or lines.
    pub(super) fn searched_by(&self, command: &Command) -> Option<&'static str> {
        let found = |it: &Word| {
            let path = self.here.filter(|_| it.kind == WordKind::Pattern)?.join(&it.text);
            self.met.iter().find(|met| finds(&path, met.0)).and_then(|it| entry(*it))
        };
        let taken = takes_in(command, self.script, self.here, self.met, self.leads);
        taken.or_else(|| command.args().iter().find_map(found))
    }

    pub(super) fn listed_by(&self, lister: &Command) -> Option<&'static str> {
        let (name, args) = (base_name(lister.name()?), lister.args());
        let has = |starts: &[&str]| args.iter().any(|it| starts.iter().any(|start| it.text.starts_with(start)));
        let first = |lists: &dyn Fn(&AbsPath) -> bool| {
            let passed = |it: &&(&AbsPath, &AbsPath)| lists(it.0) && !self.is_filtered(&name_of(it.0));
            self.met.iter().find(passed).and_then(|it| entry(*it))
        };
        match name {
            "find" | "gfind" => {
                let begins = begins(args, self.here);
                let below = |it: &AbsPath| {
                    begins.as_ref().is_none_or(|all| all.iter().any(|begin| is_in(it, begin, self.leads)))
                };
                first(&|it| below(it) && may_find(args, it))
            }
            "ls" => first(&|it| self.is_listed(args, it)),
            "fd" | "fdfind" if has(&["-H", "-u", "--hidden", "--unrestricted"]) => {
                first(&|it| named::is_listed(args, &name_of(it)))
            }
            "git" => {
                let words = git_words(args);
                let unknown = words.iter().any(|it| matches!(it.text.as_str(), "-o" | "--others"));
                let lists = unknown && words.first().is_some_and(|it| it.text == "ls-files");
                lists.then(|| first(&|_| true)).flatten()
            }
            _ if RGS.contains(&name) => takes_in(lister, self.script, self.here, self.met, self.leads),
            _ => None,
        }
    }

    /// Whether `ls` with these words lists a file.
    fn is_listed(&self, args: &[Word], file: &AbsPath) -> bool {
        let (options, operands): (Vec<&Word>, Vec<&Word>) = args.iter().partition(|it| it.text.starts_with('-'));
        let short = |letters: &[char]| options.iter().any(|it| !it.text.starts_with("--") && it.text.contains(letters));
        let all = short(&['a', 'A', 'f']) || options.iter().any(|it| it.text.starts_with("--al"));
        let hidden = name_of(file).starts_with('.');
        let lists = |folder: Option<AbsPath>| {
            // A place that is not known may be any.
            let Some(folder) = folder else { return true };
            if short(&['R']) { file.is_within(&folder) } else { file.as_path().parent() == Some(folder.as_path()) }
        };
        let place = |it: &&Word| match (self.here, it.kind) {
            (Some(here), WordKind::Pattern) => takes(&here.join(&it.text), file),
            _ => (all || !hidden) && lists(self.here.zip(it.literal()).map(|it| it.0.join(it.1))),
        };
        match operands.is_empty() {
            true => (all || !hidden) && lists(self.here.cloned()),
            false => operands.iter().any(place),
        }
    }

    /// Whether a `grep '\.rs$'` on the way lets nothing of that name pass.
    fn is_filtered(&self, name: &str) -> bool {
        let turned = |it: &Word| it.text.starts_with('-') && !matches!(it.text.as_str(), "-E" | "-F" | "-i");
        let fails = |it: &Command| {
            let greps = it.name().is_some_and(|it| matches!(it, "grep" | "egrep"));
            let pattern = it.args().iter().find(|it| !it.text.starts_with('-')).and_then(Word::literal);
            let ending = pattern.and_then(|it| it.strip_prefix("\\.")).and_then(|it| it.strip_suffix('$'));
            let plain = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_alphanumeric());
            let all = |it: &str| it.trim_matches(['(', ')']).split('|').all(|it| plain(it) && !name.ends_with(it));
            greps && !it.args().iter().any(turned) && ending.is_some_and(all)
        };
        self.script.commands.iter().any(fails)
    }
}
