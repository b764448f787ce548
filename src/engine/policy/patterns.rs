//! How rules are held against a shell command: to the letter where they allow, generously where they restrict.

use std::cell::OnceCell;

use serde_json::Value;

use super::{
    rule::{Matcher, Rule, stable_text},
    shell::{Command, Word, WordKind, base_name},
};
use crate::base::log::Decision;

/// How surely a rule speaks of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hit {
    No,
    /// Words of it are only known to the shell.
    Maybe,
    Yes,
}

impl From<bool> for Hit {
    fn from(it: bool) -> Self {
        if it { Self::Yes } else { Self::No }
    }
}

/// A command as rules are held against it, with the ways to spell it that many of them ask for.
pub struct Spelling<'a> {
    pub command: &'a Command,
    /// The call's arguments.
    args: &'a Value,
    /// The call's whole text, if that is another.
    whole: Option<&'a str>,
    /// Its words as one line, or its text where not all of them are literal.
    line: OnceCell<String>,
    /// As it would be typed plainly.
    plain: OnceCell<Option<String>>,
    /// The arguments as text, with this command in place of the whole one; and as they are.
    json: OnceCell<(String, Option<String>)>,
}

impl<'a> Spelling<'a> {
    /// `whole`: the call's text, for the command that stands for all of it.
    pub fn new(command: &'a Command, whole: Option<&'a str>, args: &'a Value) -> Self {
        let whole = whole.filter(|it| *it != command.text);
        let (line, plain, json) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        Self { command, args, whole, line, plain, json }
    }

    /// The same without what stands beside the command in its line.
    pub fn alone(&self) -> Self {
        Self::new(self.command, None, self.args)
    }

    fn line(&self) -> &str {
        self.line.get_or_init(|| self.command.literal_line().unwrap_or_else(|| self.command.text.clone()))
    }

    /// Its other spellings, where they do not say the same.
    fn others(&self) -> impl Iterator<Item = &str> {
        let (line, text) = (self.line(), self.command.text.as_str());
        let plain = || plain_line(self.command).filter(|it| *it != line && *it != text);
        let plain = self.plain.get_or_init(plain).as_deref();
        [Some(text).filter(|it| *it != line), self.whole, plain].into_iter().flatten()
    }

    fn json(&self) -> &(String, Option<String>) {
        let whole = || self.whole.map(|_| stable_text(self.args, None));
        self.json.get_or_init(|| (stable_text(self.args, Some(&self.command.text)), whole()))
    }
}

impl Rule {
    /// For one command of a shell call.
    pub fn matches_command(&self, spelling: &Spelling) -> Hit {
        let generous = self.decision != Decision::Allow;
        match &self.matcher {
            Matcher::Any | Matcher::Broken | Matcher::NotTools(_) => Hit::Yes,
            Matcher::Never | Matcher::PlanFile => Hit::No,
            Matcher::Args(it) => {
                let (own, whole) = spelling.json();
                Hit::from(it.is_match(own) || generous && whole.as_ref().is_some_and(|text| it.is_match(text)))
            }
            Matcher::Prefixes(list) => {
                list.iter().map(|it| prefix_hit(it, spelling.command, generous)).max().unwrap_or(Hit::No)
            }
            Matcher::Command(it) => {
                Hit::from(it.is_match(spelling.line()) || generous && spelling.others().any(|text| it.is_match(text)))
            }
        }
    }
}

fn prefix_hit(prefix: &[String], command: &Command, generous: bool) -> Hit {
    let res = words_hit(prefix, &command.words, generous);
    match generous {
        true if res != Hit::Yes => res.max(behind_options(prefix, command)),
        true => res,
        // A prefix that allows must be written out.
        false => Hit::from(res == Hit::Yes),
    }
}

fn words_hit(prefix: &[String], words: &[Word], generous: bool) -> Hit {
    for (at, want) in prefix.iter().enumerate() {
        match words.get(at) {
            None => return Hit::No,
            Some(word) if word.kind == WordKind::Literal => {
                // `/bin/rm` and, on disks that do not tell case, `RM` run rm.
                let same_program = || generous && at == 0 && base_name(&word.text).eq_ignore_ascii_case(want);
                if word.text != *want && !same_program() {
                    return Hit::No;
                }
            }
            Some(_) => return Hit::Maybe,
        }
    }
    Hit::Yes
}

/// `kubectl -n x delete` is `kubectl delete`: options of the program, and what may be their values, stand between.
fn behind_options(prefix: &[String], command: &Command) -> Hit {
    let (Some(program), Some((want, sub))) = (command.program(), prefix.split_first()) else { return Hit::No };
    match sub.is_empty() || !program.eq_ignore_ascii_case(want) {
        true => Hit::No,
        false => follow(sub, without_toolchain(program, command.args())),
    }
}

/// `cargo +nightly publish` is `cargo publish`: rustup runs it, and takes its own word away.
fn without_toolchain<'w>(program: &str, args: &'w [Word]) -> &'w [Word] {
    const PROXIED: &[&str] =
        &["cargo", "cargo-clippy", "cargo-fmt", "clippy-driver", "rust-analyzer", "rustc", "rustdoc", "rustfmt"];
    match args.split_first() {
        Some((it, rest)) if it.text.starts_with('+') && PROXIED.contains(&program) => rest,
        _ => args,
    }
}

/// Whether these words follow, with options between them; options among them may stand anywhere behind.
fn follow(sub: &[String], args: &[Word]) -> Hit {
    let Some((want, rest)) = sub.split_first() else { return Hit::Yes };
    if want.starts_with('-') {
        let said = args.iter().take_while(|it| it.text != "--").any(|it| is_option(&it.text, want));
        return if said { follow(rest, args) } else { Hit::No };
    }
    let hit = |at: usize| match args.get(at) {
        Some(word) if word.literal() == Some(want) => follow(rest, args.get(at + 1..).unwrap_or_default()),
        Some(word) if word.literal().is_none() => Hit::Maybe,
        _ => Hit::No,
    };
    operands(args).into_iter().map(hit).max().unwrap_or(Hit::No)
}

/// So many words are looked at for the first that is no option.
const MAX_OPTIONS: usize = 32;

/// Where the first word may stand that is no option, nor the value of one.
fn operands(args: &[Word]) -> Vec<usize> {
    let (mut may_stand, mut res) = ([false; MAX_OPTIONS + 2], Vec::new());
    may_stand[0] = true;
    for (at, it) in args.iter().enumerate().take(MAX_OPTIONS) {
        if !may_stand[at] {
            continue;
        }
        if !it.text.starts_with('-') {
            res.push(at);
            continue;
        }
        may_stand[at + 1] = true;
        may_stand[at + 2] |= !it.text.contains('=');
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
fn plain_line(command: &Command) -> Option<String> {
    let program = command.program()?;
    let args = if program == "git" { git_words(command.args()) } else { without_toolchain(program, command.args()) };
    Some([program].into_iter().chain(args.iter().map(|it| it.text.as_str())).collect::<Vec<_>>().join(" "))
}

/// A git command's words from its sub-command on.
pub fn git_words(mut args: &[Word]) -> &[Word] {
    const VALUED: &[&str] = &["-C", "-c", "--config-env", "--git-dir", "--namespace", "--work-tree"];
    while let Some((first, rest)) = args.split_first().filter(|it| it.0.text.starts_with('-')) {
        let valued = VALUED.contains(&first.text.as_str());
        args = if valued { rest.get(1..).unwrap_or_default() } else { rest };
    }
    args
}
