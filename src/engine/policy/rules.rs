//! Rules: what they match, and their one order. First match wins.

use std::borrow::Cow;

use regex::Regex;
use serde_json::Value;

use super::{
    checkers::Checker,
    danger,
    derived::{self, Lists},
    destroy, load,
    names::Who,
    plans,
    shell::{Command, SPAWNS, Word, WordKind, base_name},
};
use crate::base::{
    log::{Decision, Lasting, Mode},
    path::AbsPath,
};

/// Where a rule comes from. A rule of a higher tier precedes every rule of a lower one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    Default = 1,
    Extension = 2,
    Workspace = 3,
    User = 4,
    Admin = 5,
}

/// One rule of a policy file.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Exact names, `*`, or (never for allow) a name that ends with `*`.
    pub tools: Vec<String>,
    pub who: Who,
    pub decision: Decision,
    pub tier: Tier,
    /// 0 to 999, within the tier.
    pub priority: u16,
    /// Empty: all.
    pub modes: Vec<Mode>,
    /// Whether it holds only when somebody can be asked, or only when not.
    pub interactive: Option<bool>,
    pub matcher: Matcher,
    pub allow_redirection: bool,
    pub deny_message: Option<String>,
    pub source: Source,
    pub examples: Examples,
}

/// Where a rule is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// For people: a file, or a setting.
    pub file: String,
    /// From 1; 0: there are no lines.
    pub line: usize,
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            0 => f.write_str(&self.file),
            line => write!(f, "{}:{line}", self.file),
        }
    }
}

/// What must hold of the arguments.
#[derive(Clone, Debug)]
pub enum Matcher {
    Any,
    /// Nothing: the rule says something that cannot be held.
    Never,
    /// Any tool but these, and no tool of an MCP server.
    NotTools(Vec<String>),
    /// A rule that restricts, but cannot be read, stands here: what the others would allow is asked about.
    Broken,
    /// A file of a plan.
    PlanFile,
    /// Over the arguments as JSON with sorted keys, each pair between NUL characters.
    Args(Regex),
    /// Leading words of a shell command.
    Prefixes(Vec<Vec<String>>),
    /// Beginning of a shell command.
    Command(Regex),
}

/// Calls the rule matches and does not, such as `run_shell_command git status`; checked by tests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Examples {
    pub matches: Vec<String>,
    pub not_matches: Vec<String>,
}

/// How surely a rule speaks of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Hit {
    No,
    /// Words of it are only known to the shell.
    Maybe,
    Yes,
}

/// A command as rules are held against it, with the ways to spell it that many of them ask for.
pub(super) struct Spelt<'a> {
    command: &'a Command,
    /// Its words as one line, or its text where not all of them are literal.
    line: Cow<'a, str>,
    /// The call's whole text, if that is another.
    whole: Option<&'a str>,
    /// As it would be typed plainly, where it is not.
    plain: Option<String>,
    args: &'a Value,
}

impl<'a> Spelt<'a> {
    pub fn command(&self) -> &'a Command {
        self.command
    }

    /// `whole` is the call's text, `args` are its arguments.
    pub fn new(command: &'a Command, whole: &'a str, args: &'a Value) -> Self {
        let line = command.literal_line().map_or(Cow::Borrowed(command.text.as_str()), Cow::Owned);
        let whole = Some(whole).filter(|it| *it != command.text);
        Self { command, line, whole, plain: plain_line(command), args }
    }

    /// Whether it is fed what may start programs: `ed <<< '!x'`, `sqlite3 y <<< '.shell x'`.
    fn may_start(&self) -> bool {
        let fed = self.command.input.is_some() || self.command.piped;
        let signs = self.command.name().filter(|_| fed).and_then(|it| destroy::starts_from_input(base_name(it)));
        let line = self.whole.unwrap_or(&self.command.text);
        let input = self.command.input.as_ref().map_or("", |it| it.text.as_str());
        signs.is_some_and(|it| it.iter().any(|it| line.contains(it) || input.contains(it)))
    }

    /// Its other spellings: its text, the whole call's, and the plain one, where they do not say the same.
    fn texts(&self) -> impl Iterator<Item = &str> {
        let text = Some(self.command.text.as_str()).filter(|it| *it != self.line);
        text.into_iter().chain(self.whole).chain(self.plain.as_deref())
    }
}

impl Rule {
    /// In place of a file that cannot be read: everything is asked about.
    pub fn unread(tier: Tier, file: &str) -> Self {
        load::stand_in_for_file(tier, file)
    }

    /// Its place in the order: tier + priority / 1000, in thousandths.
    pub fn effective(&self) -> u32 {
        self.tier as u32 * 1000 + u32::from(self.priority)
    }

    /// For people, when it spoke of `tool`: `default/write.toml: run_shell_command`.
    pub fn name(&self, tool: &str) -> String {
        // It stands for a whole file.
        if self.is_broken() && self.source.line == 0 {
            return format!("{} cannot be read; what it may deny is asked about", self.source);
        }
        format!("{}: {}", self.source, self.in_words(tool))
    }

    fn in_words(&self, tool: &str) -> String {
        let tools = self.shown_tools(tool);
        let what = match &self.matcher {
            Matcher::Any | Matcher::Never | Matcher::NotTools(_) | Matcher::PlanFile => String::new(),
            Matcher::Broken => " (a rule that cannot be read)".to_owned(),
            Matcher::Args(it) => match Lasting::file_of(it.as_str()) {
                Some(file) => format!(" of {file}"),
                None => format!(" {it}"),
            },
            Matcher::Command(it) => format!(" {it}"),
            Matcher::Prefixes(it) => format!(" {}", it.iter().map(|it| it.join(" ")).collect::<Vec<_>>().join(", ")),
        };
        format!("{tools}{what}")
    }

    pub(super) fn is_specific(&self) -> bool {
        matches!(self.matcher, Matcher::Args(_) | Matcher::Prefixes(_) | Matcher::Command(_))
    }

    pub(super) fn is_broken(&self) -> bool {
        matches!(self.matcher, Matcher::Broken)
    }

    /// For calls that are no shell command.
    pub(super) fn matches_args(&self, args: &Value) -> bool {
        match &self.matcher {
            Matcher::Any | Matcher::Broken | Matcher::NotTools(_) => true,
            Matcher::Args(it) => it.is_match(&stable(args, None)),
            Matcher::Prefixes(_) | Matcher::Command(_) | Matcher::PlanFile | Matcher::Never => false,
        }
    }

    /// For one command of a shell call. What restricts is matched generously, what allows is matched to the letter.
    pub(super) fn matches_command(&self, spelt: &Spelt) -> Hit {
        let Spelt { command, args, .. } = *spelt;
        let generous = self.decision != Decision::Allow;
        let hit = match &self.matcher {
            Matcher::Any | Matcher::Broken | Matcher::NotTools(_) => return Hit::Yes,
            Matcher::Never | Matcher::PlanFile => return Hit::No,
            Matcher::Args(it) => Hit::from(
                it.is_match(&stable(args, Some(&command.text))) || (generous && it.is_match(&stable(args, None))),
            ),
            Matcher::Prefixes(list) => list.iter().map(|it| prefix_hit(it, spelt, generous)).max().unwrap_or(Hit::No),
            Matcher::Command(it) => {
                Hit::from(it.is_match(&spelt.line) || generous && spelt.texts().any(|text| it.is_match(text)))
            }
        };
        match hit == Hit::No && generous && (command.opaque || self.may_be_in_code(command) || spelt.may_start()) {
            true => Hit::Maybe,
            false => hit,
        }
    }

    /// Whether code in another language may run what the rule speaks of: it names the words, or what starts programs.
    fn may_be_in_code(&self, command: &Command) -> bool {
        let Some(code) = command.code.as_deref() else { return false };
        let spawns = || SPAWNS.iter().any(|it| code.contains(it));
        let names = |word: &String| {
            code.match_indices(word.as_str()).any(|(at, _)| {
                let part = |it: Option<char>| it.is_some_and(|it| it.is_alphanumeric() || it == '_');
                let (before, behind) = (code.get(..at), code.get(at + word.len()..));
                !part(before.and_then(|it| it.chars().next_back())) && !part(behind.and_then(|it| it.chars().next()))
            })
        };
        match &self.matcher {
            Matcher::Prefixes(list) => spawns() || list.iter().any(|it| it.iter().all(names)),
            Matcher::Command(_) => spawns(),
            _ => false,
        }
    }
}

impl From<bool> for Hit {
    fn from(it: bool) -> Self {
        if it { Self::Yes } else { Self::No }
    }
}

fn prefix_hit(prefix: &[String], spelt: &Spelt, generous: bool) -> Hit {
    let mut res = words_hit(prefix, &spelt.command.words, generous);
    if generous && res != Hit::Yes {
        res = res.max(behind_options(prefix, spelt.command));
    }
    match generous {
        true => res,
        // A prefix that allows must be written out.
        false => Hit::from(res == Hit::Yes),
    }
}

/// `kubectl -n x delete` is `kubectl delete`: options of the program, and what may be their values, stand between.
fn behind_options(prefix: &[String], command: &Command) -> Hit {
    let (Some(name), Some((program, sub))) = (command.name().map(base_name), prefix.split_first()) else {
        return Hit::No;
    };
    match sub.is_empty() || !name.eq_ignore_ascii_case(program) {
        true => Hit::No,
        false => follow(name, sub, command.args()),
    }
}

/// Whether these words follow, with options between them; options among them may stand anywhere behind.
fn follow(program: &str, sub: &[String], args: &[Word]) -> Hit {
    let Some((want, rest)) = sub.split_first() else { return Hit::Yes };
    if want.starts_with('-') {
        let said = args.iter().take_while(|it| it.text != "--").any(|it| it.text == *want);
        return if said { follow(program, rest, args) } else { Hit::No };
    }
    let hit = |args: &&[Word]| match args.split_first() {
        Some((word, behind)) if word.literal() == Some(want) => follow("", rest, behind),
        Some((word, _)) if word.literal().is_none() => Hit::Maybe,
        _ => Hit::No,
    };
    destroy::sub_commands(program, args).iter().map(hit).max().unwrap_or(Hit::No)
}

/// The command as it would be typed plainly, where it is not: by a path, with odd quotes or blanks, behind options of git.
fn plain_line(command: &Command) -> Option<String> {
    let name = base_name(command.name()?);
    let args = if name == "git" { danger::git_words(command.args()) } else { command.args() };
    let words = || [name].into_iter().chain(args.iter().map(|it| it.text.as_str()));
    // Most are plain.
    let mut rest = command.text.as_str();
    let mut next = |it: &str| rest.strip_prefix(it).map(|behind| rest = behind.strip_prefix(' ').unwrap_or(behind));
    let plain = words().all(|it| next(it).is_some());
    (!plain).then(|| words().collect::<Vec<_>>().join(" "))
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

/// The arguments with sorted keys; patterns can hold on to the NUL characters around each pair, which no JSON text
/// has in it. `command` takes the place of the argument of that name.
fn stable(args: &Value, command: Option<&str>) -> String {
    let Value::Object(map) = args else { return args.to_string() };
    let mut pairs: Vec<(&String, String)> = map
        .iter()
        .map(|(key, value)| match command {
            Some(command) if key == "command" => (key, Value::from(command).to_string()),
            _ => (key, sorted(value).to_string()),
        })
        .collect();
    pairs.sort();
    let pairs: Vec<String> =
        pairs.iter().map(|(key, value)| format!("\0{}:{value}\0", Value::from(key.as_str()))).collect();
    format!("{{{}}}", pairs.join(","))
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Object(map) => {
            let mut pairs: Vec<(&String, &Value)> = map.iter().collect();
            pairs.sort_by_key(|it| it.0);
            Value::Object(pairs.into_iter().map(|(key, value)| (key.clone(), sorted(value))).collect())
        }
        other => other.clone(),
    }
}

/// All rules of a session, in the order they are asked.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    rules: Vec<Rule>,
    checkers: Vec<Checker>,
}

/// What a policy file says.
#[derive(Clone, Debug, Default)]
pub struct Written {
    pub rules: Vec<Rule>,
    pub checkers: Vec<Checker>,
}

impl Written {
    /// What holds in a folder, which is named as it really is.
    #[must_use]
    pub fn here(mut self, folder: &AbsPath) -> Self {
        let holds = |who: &Who| who.folder.as_ref().is_none_or(|it| folder.is_within(it));
        self.rules.retain(|it| holds(&it.who));
        self.checkers.retain(|it| holds(it.who()));
        self
    }
}

impl From<Vec<Rule>> for Written {
    fn from(rules: Vec<Rule>) -> Self {
        Self { rules, checkers: Vec::new() }
    }
}

const SHIPPED: &[(&str, &str)] = &[
    ("default/plan.toml", include_str!("shipped/plan.toml")),
    ("default/read-only.toml", include_str!("shipped/read-only.toml")),
    ("default/write.toml", include_str!("shipped/write.toml")),
    ("default/yolo.toml", include_str!("shipped/yolo.toml")),
];

impl Rules {
    /// What castor brings along.
    pub fn shipped() -> Self {
        // A shipped file that does not load allows nothing; tests see to it that all do.
        let files = SHIPPED.iter().filter_map(|(source, text)| Self::parse(text, Tier::Default, source).ok());
        // Nobody can open these files: their lines say nothing.
        let rules = files.flat_map(|it| it.0.rules).map(|mut it| {
            it.source.line = 0;
            it
        });
        Self::default().with(rules.chain([plans::rule()]).collect::<Vec<Rule>>())
    }

    /// What one file says, and what is wrong with what is left out. An error: the whole file is left out.
    pub fn parse(text: &str, tier: Tier, source: &str) -> Result<(Written, Vec<String>), String> {
        load::parse(text, tier, source)
    }

    /// As [`Rules::parse`], but a file that cannot be read at all makes everything a question: nobody knows what it
    /// would have denied.
    pub fn load(text: &str, tier: Tier, source: &str) -> (Written, Vec<String>) {
        load::parse(text, tier, source).unwrap_or_else(|why| (vec![Rule::unread(tier, source)].into(), vec![why]))
    }

    /// What settings say, as rules of the user.
    pub fn of_settings(lists: &Lists) -> Vec<Rule> {
        derived::rules(lists)
    }

    /// These rules and `more`, sorted; of equals the earlier comes first, but one that denies before all others.
    #[must_use]
    pub fn with(mut self, more: impl Into<Written>) -> Self {
        let Written { rules, checkers } = more.into();
        self.rules.extend(rules);
        self.checkers.extend(checkers);
        self.checkers.sort_by_key(|it| std::cmp::Reverse(it.effective()));
        self.rules.sort_by_key(|it| (std::cmp::Reverse(it.effective()), it.decision != Decision::Deny));
        self
    }

    /// In order.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> + Clone {
        self.rules.iter()
    }

    /// What was allowed for ever, in words.
    pub fn lasting(&self) -> impl Iterator<Item = String> {
        self.rules.iter().filter(|it| it.is_saved()).map(|it| it.in_words(&it.tools.join(", ")))
    }

    /// Who is heard beside them, in order.
    pub fn checkers(&self) -> &[Checker] {
        &self.checkers
    }
}
