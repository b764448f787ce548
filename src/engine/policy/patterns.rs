//! Command patterns of rules: matched exactly where a rule allows, generously where it restricts.

use std::{borrow::Cow, cell::OnceCell};

use serde_json::Value;

use super::{
    rule::{ArgsMatcher, Rule, stable_text},
    shell::{ShellCommand, ShellWord, base_name},
};
use castor_base::log::Decision;

/// The certainty of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MatchCertainty {
    No,
    /// Words of it are only known to the shell.
    Maybe,
    Yes,
}

impl From<bool> for MatchCertainty {
    fn from(it: bool) -> Self {
        if it { Self::Yes } else { Self::No }
    }
}

/// A command as rules are held against it, with the ways to spell it that many of them ask for.
pub struct CommandSpelling<'a> {
    pub command: &'a ShellCommand,
    /// Its name, if that is written out, and its program.
    name: Option<(&'a str, &'a str)>,
    /// The call's arguments.
    args: &'a Value,
    /// The call's whole text, if that is another.
    whole: Option<&'a str>,
    /// Its words as one line, or its text where not all of them are literal; then what else it may be written as.
    lines: OnceCell<Vec<Cow<'a, str>>>,
    first_words: OnceCell<Vec<String>>,
    /// The arguments as text, with this command in place of the whole one; and as they are.
    json: OnceCell<(String, Option<String>)>,
}

impl<'a> CommandSpelling<'a> {
    /// `whole`: the call's text, for the command that stands for all of it.
    pub fn new(command: &'a ShellCommand, whole: Option<&'a str>, args: &'a Value) -> Self {
        let whole = whole.filter(|it| *it != command.text);
        let name = command.name().map(|it| (it, base_name(it)));
        let (lines, first_words, json) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        Self { command, name, args, whole, lines, first_words, json }
    }

    /// The same without what stands beside the command in its line; `None`: nothing does.
    pub fn without_line(&self) -> Option<Self> {
        self.whole.map(|_| Self::new(self.command, None, self.args))
    }

    /// The first is the one that counts for a rule that allows.
    fn lines(&self) -> &[Cow<'a, str>] {
        self.lines.get_or_init(|| {
            let text = Cow::Borrowed(self.command.text.as_str());
            let line = self.command.literal_line().map_or_else(|| text.clone(), Cow::Owned);
            let mut res = vec![line];
            for it in [Some(text), self.whole.map(Cow::Borrowed), plain_line(self.command).map(Cow::Owned)] {
                res.extend(it.filter(|it| !res.contains(it)));
            }
            res
        })
    }

    /// The first words of all that rules are held against, in lower case; `None`: its name is not written out.
    pub fn first_words(&self) -> Option<&[String]> {
        let (name, program) = self.name?;
        let read = || {
            let mut words = vec![name];
            for it in [program].into_iter().chain(self.lines().iter().filter_map(|it| it.split(' ').next())) {
                words.extend(Some(it).filter(|it| !words.contains(it)));
            }
            words.into_iter().map(str::to_ascii_lowercase).collect()
        };
        Some(self.first_words.get_or_init(read))
    }

    fn json(&self) -> &(String, Option<String>) {
        let whole = || self.whole.map(|_| stable_text(self.args, None));
        self.json.get_or_init(|| (stable_text(self.args, Some(&self.command.text)), whole()))
    }
}

impl Rule {
    /// For one command of a shell call.
    pub fn matches_command(&self, spelling: &CommandSpelling) -> MatchCertainty {
        let generous = self.decision != Decision::Allow;
        match &self.matcher {
            ArgsMatcher::Any | ArgsMatcher::Broken | ArgsMatcher::NotTools(_) => MatchCertainty::Yes,
            ArgsMatcher::Never | ArgsMatcher::PlanFile => MatchCertainty::No,
            ArgsMatcher::Args(it) => {
                let (own, whole) = spelling.json();
                MatchCertainty::from(
                    it.is_match(own) || generous && whole.as_ref().is_some_and(|text| it.is_match(text)),
                )
            }
            ArgsMatcher::Prefixes(list) => {
                list.iter().map(|it| prefix_hit(it, spelling, generous)).max().unwrap_or(MatchCertainty::No)
            }
            ArgsMatcher::Command(it) => {
                let lines = spelling.lines().iter().take(if generous { usize::MAX } else { 1 });
                MatchCertainty::from(lines.into_iter().any(|line| it.is_match(line)))
            }
        }
    }
}

fn prefix_hit(prefix: &[String], spelling: &CommandSpelling, generous: bool) -> MatchCertainty {
    let Some((want, sub)) = prefix.split_first() else { return MatchCertainty::Yes };
    let Some((name, program)) = spelling.name else {
        return if generous && !spelling.command.words.is_empty() { MatchCertainty::Maybe } else { MatchCertainty::No };
    };
    // `/bin/rm` and, on disks that do not tell case, `RM` run rm.
    let same_program = program.eq_ignore_ascii_case(want);
    if name != want && !(generous && same_program) {
        return MatchCertainty::No;
    }
    let args = spelling.command.args();
    match words_hit(sub, args) {
        // A prefix that allows must be written out.
        it if !generous => MatchCertainty::from(it == MatchCertainty::Yes),
        // `kubectl -n x delete` is `kubectl delete`: options of the program, and what may be their values, stand between.
        it if it != MatchCertainty::Yes && same_program => it.max(follow(sub, without_toolchain(program, args))),
        it => it,
    }
}

fn words_hit(wanted: &[String], words: &[ShellWord]) -> MatchCertainty {
    for (at, want) in wanted.iter().enumerate() {
        match words.get(at).map(ShellWord::literal) {
            Some(Some(word)) if word == want => (),
            Some(None) => return MatchCertainty::Maybe,
            _ => return MatchCertainty::No,
        }
    }
    MatchCertainty::Yes
}

/// `cargo +nightly publish` is `cargo publish`: rustup runs it, and takes its own word away.
fn without_toolchain<'w>(program: &str, args: &'w [ShellWord]) -> &'w [ShellWord] {
    const PROXIED: &[&str] =
        &["cargo", "cargo-clippy", "cargo-fmt", "clippy-driver", "rust-analyzer", "rustc", "rustdoc", "rustfmt"];
    match args.split_first() {
        Some((it, rest)) if it.text.starts_with('+') && PROXIED.contains(&program) => rest,
        _ => args,
    }
}

/// Whether these words follow, with options between them; options among them may stand anywhere behind.
fn follow(sub: &[String], args: &[ShellWord]) -> MatchCertainty {
    let Some((want, rest)) = sub.split_first() else { return MatchCertainty::Yes };
    if want.starts_with('-') {
        let said = args.iter().take_while(|it| it.text != "--").any(|it| is_option(&it.text, want));
        return if said { follow(rest, args) } else { MatchCertainty::No };
    }
    let hit = |at: usize| match args.get(at) {
        Some(word) if word.literal() == Some(want) => follow(rest, args.get(at + 1..).unwrap_or_default()),
        Some(word) if word.literal().is_none() => MatchCertainty::Maybe,
        _ => MatchCertainty::No,
    };
    operands(args).into_iter().map(hit).max().unwrap_or(MatchCertainty::No)
}

/// So many words are looked at for the first that is no option.
const MAX_OPTIONS: usize = 32;

/// Where the first word may stand that is no option, nor the value of one.
fn operands(args: &[ShellWord]) -> Vec<usize> {
    // Whether it may stand here, and one word further.
    let (mut here, mut next, mut res) = (true, false, Vec::new());
    for (at, it) in args.iter().enumerate().take(MAX_OPTIONS) {
        let may_stand = here;
        (here, next) = (next, false);
        if !may_stand {
            continue;
        }
        if !it.text.starts_with('-') {
            res.push(at);
            continue;
        }
        (here, next) = (true, !it.text.contains('='));
    }
    res
}

/// `-fu` has `-f` in it; `--fo` is `--force`, as who parses options takes a beginning for the whole, and `--force=x`, too.
fn is_option(word: &str, want: &str) -> bool {
    let name = word.split('=').next().unwrap_or_default();
    let letter = want.strip_prefix('-').filter(|it| it.len() == 1);
    match letter {
        Some(it) => word.starts_with('-') && !word.starts_with("--") && word.contains(it),
        None => name == want || name.len() > 2 && name.starts_with("--") && want.starts_with(name),
    }
}

/// The command as it would be typed plainly: without the program's folder, behind options of git itself.
fn plain_line(command: &ShellCommand) -> Option<String> {
    let program = command.program()?;
    let args = if program == "git" { git_words(command.args()) } else { without_toolchain(program, command.args()) };
    Some([program].into_iter().chain(args.iter().map(|it| it.text.as_str())).collect::<Vec<_>>().join(" "))
}

/// A git command's words from its sub-command on.
pub fn git_words(mut args: &[ShellWord]) -> &[ShellWord] {
    const VALUED: &[&str] = &["-C", "-c", "--config-env", "--git-dir", "--namespace", "--work-tree"];
    while let Some((first, rest)) = args.split_first().filter(|it| it.0.text.starts_with('-')) {
        let valued = VALUED.contains(&first.text.as_str());
        args = if valued { rest.get(1..).unwrap_or_default() } else { rest };
    }
    args
}
