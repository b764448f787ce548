//! Guarded paths in policy: secret files are asked about in every mode, configuration files for file tools.

use std::path::Path;

use super::{
    patterns::git_words,
    persistent::PATTERN_FIRST,
    query::Query,
    rule::{ArgsMatcher, Rule, Tier},
    safe,
    shell::{Script, ShellCommand, ShellWord, WordKind, base_name},
    verdict::PartialVerdict,
};
use castor_base::{
    guarded_names::{CONFIG, GuardedNames, SECRET_RULE, SECRETS},
    log::{Decision, Mode},
    path::AbsPath,
    tool::{Access, TargetPath, ToolKind},
};

const OBEYED: &str = "configuration that castor, an editor, a shell or git obeys";
const NAMED: &str = "what .git/config names";
const MASKED: &str = "what commands do not see";
const KEPT: &str = "what no command writes";

/// A guarded target of a call, and the reason for the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    reason: &'static str,
    /// The entry, for rules that name it.
    name: &'static str,
}

impl std::fmt::Display for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let more = if SECRETS.starts.contains(&self.name) { "*" } else { "" };
        write!(f, "{}: {}{more}", self.reason, self.name)
    }
}

impl Guard {
    fn secret(name: &'static str) -> Self {
        Self { reason: SECRET_RULE, name }
    }

    /// Tells whether it is about a file of secrets.
    pub fn is_secret(&self) -> bool {
        self.reason == SECRET_RULE
    }

    /// Tells whether a rule of the user's, or an administrator's, allows just this: it has the entry in it.
    pub fn is_named_by(&self, rule: &Rule) -> bool {
        let signs = self.name.split(['*', ' ']).map(|it| it.trim_matches('/')).filter(|it| !it.is_empty());
        let all = |has: &dyn Fn(&str) -> bool| signs.clone().all(has);
        let written = |pattern: &str| all(&|sign| pattern.replace('\\', "").contains(sign));
        let allows = rule.decision == Decision::Allow && rule.tier >= Tier::User;
        allows
            && match &rule.matcher {
                ArgsMatcher::Prefixes(list) => {
                    list.iter().any(|prefix| all(&|sign| prefix.iter().any(|it| it.ends_with(sign))))
                }
                ArgsMatcher::Args(it) => written(it.as_str()),
                ArgsMatcher::Command(it) => written(it.as_str()),
                _ => false,
            }
    }
}

/// What is guarded of a file that a tool touches, by its name or by its real place.
pub fn guard_of_target(target: &TargetPath) -> Option<Guard> {
    // Temporary files lie in castor's own folder, which has another name to whoever reads them.
    let places = [&target.path, if target.temporary { &target.path } else { &target.real }];
    let public = target.access == Access::Read && places.into_iter().all(|it| is_public_key(&it.to_string()));
    let secret = places.into_iter().find_map(|it| SECRETS.find(it.as_path())).filter(|_| !public);
    if let Some(name) = secret {
        return Some(Guard::secret(name));
    }
    if target.held && target.access == Access::Read {
        return Some(Guard::secret(MASKED));
    }
    let obeyed = || places.into_iter().find_map(|it| CONFIG.find(it.as_path()));
    let obeyed = || obeyed().or_else(|| target.named.then_some(NAMED));
    let obeyed = || obeyed().or_else(|| places.into_iter().find_map(makes_repository));
    let obeyed = || obeyed().or_else(|| target.held.then_some(KEPT));
    let name = (target.access == Access::Write).then(obeyed).flatten()?;
    Some(Guard { reason: OBEYED, name })
}

/// A folder with a file of that name in it may count as a repository, whose configuration git obeys.
fn makes_repository(path: &AbsPath) -> Option<&'static str> {
    path.as_path().file_name().is_some_and(|it| it.eq_ignore_ascii_case("HEAD")).then_some("HEAD")
}

/// Why an allowed call is worth a question, by what it touches or asks. `rule` is the one that allows it.
pub fn ask_about_paths(query: &Query, rule: Option<&Rule>) -> Option<PartialVerdict> {
    // castor's own folder is guarded; this place in it is for the model.
    if rule.is_some_and(Rule::is_for_plans) {
        return None;
    }
    let paths = &query.targets.paths;
    let ask = |why: &str| Some(PartialVerdict::new(Decision::Ask, why));
    let named = |it: &Guard| rule.is_some_and(|rule| it.is_named_by(rule));
    // castor's own folder is masked from commands; a folder in it that was opened for reading is the user's word.
    let is_opened = |at: &TargetPath| at.access == Access::Read && query.grants.iter().any(|it| it.opens(&at.real));
    let guard = |target: &TargetPath| guard_of_target(target).filter(|it| it.name != MASKED || !is_opened(target));
    if let Some(it) = paths.iter().filter_map(guard).find(|it| !named(it)) {
        return ask(&it.to_string());
    }
    let outside = |it: &&TargetPath| !it.in_roots;
    // Secrets or the network, never both unasked: an address can carry out what a command read.
    if query.sandbox.exposed && !query.targets.hosts.is_empty() && rule.is_none_or(|it| it.tier < Tier::User) {
        return ask("a command of this session could read secrets, and an address can carry them out");
    }
    if query.mode == Mode::Yolo {
        // Castor's own hands have no more rights than a command.
        if paths.iter().any(|it| it.hidden && it.access == Access::Read && !is_opened(it))
            && rule.is_none_or(|it| it.tier < Tier::User)
        {
            return ask("it lies in your home folder, of which commands see tools only");
        }
        // Reading elsewhere is what the mode is for. Who takes what a command changes for bounded by the folder is right
        // where there is a sandbox; tools write by themselves and have none.
        let writes = paths.iter().any(|it| outside(&it) && it.access == Access::Write);
        let named = rule.is_some_and(|it| it.tier >= Tier::User && it.is_specific());
        let asks = writes && !named && query.targets.command.is_none();
        return asks.then(|| ask("it writes outside the workspace")).flatten();
    }
    if paths.iter().any(|it| outside(&it) && !is_opened(it)) {
        return ask("path outside the workspace");
    }
    // An edit of nobody knows what.
    let edits = matches!(query.kind, ToolKind::Edit | ToolKind::Delete | ToolKind::Move);
    let blind = edits && !paths.iter().any(|it| it.access == Access::Write);
    if blind { ask("it does not say which file it changes") } else { None }
}

/// Commands to which the name of such a file is only a name; and git's.
const NAMES_ONLY: &[&str] = &[
    "[", "[[", "basename", "dirname", "echo", "ls", "printf", "readlink", "realpath", "stat", "test", "type", "which",
];
const GIT_NAMES_ONLY: &[&str] = &["add", "check-ignore", "commit", "ls-files", "push", "rm", "status"];

/// Guarded paths in a line.
#[derive(Default)]
pub struct GuardedWords {
    /// By the place of its command.
    pub guards: Vec<(usize, Guard)>,
    /// Configuration that the line says it writes, from where it starts: a yes to the line is one to that.
    pub config_writes: Vec<String>,
}

/// Finds the file of secrets that a word of a line plainly names: by its own text, and joined with the folder that the
/// line went to before. What a pattern or a variable may come to nobody guesses. `dir`: where the line starts, if that
/// is said. Where no sandbox holds it, the same for configuration that programs obey.
pub fn guarded_words(script: &Script, dir: Option<&str>, confined: bool) -> GuardedWords {
    let (mut folder, mut res) = (dir.map(str::to_owned), GuardedWords::default());
    let mut redirects = script.redirects.iter().peekable();
    for (at, command) in script.commands.iter().enumerate() {
        let word = guarded_word(command, folder.as_deref(), confined);
        res.config_writes
            .extend(word.and_then(|it| config(it.1, folder.as_deref())).filter(|_| !safe::is_read_only(command)));
        let mut found = word.map(|it| it.0);
        if let Some(to) = folder_of(command) {
            folder = Some(match folder.take() {
                Some(it) if !to.starts_with(['/', '~']) => format!("{it}/{to}"),
                _ => to,
            });
        }
        while let Some(it) = redirects.next_if(|it| it.commands_before <= at + 1) {
            res.config_writes.extend(config(&it.target, folder.as_deref()).filter(|_| it.writes));
            found = found.or_else(|| find(&it.target, folder.as_deref(), confined || !it.writes));
        }
        res.guards.extend(found.map(|it| (at, it)));
    }
    res
}

/// Configuration that a word names, and nothing else.
fn config(word: &ShellWord, folder: Option<&str>) -> Option<String> {
    let text = word.literal()?;
    let path = Path::new(folder.unwrap_or_default()).join(text);
    CONFIG.find(&path).map(|_| path.to_string_lossy().into_owned())
}

fn folder_of(command: &ShellCommand) -> Option<String> {
    let [to] = command.args() else { return None };
    (matches!(command.name(), Some("cd" | "pushd")) && to.kind != WordKind::Expanded).then(|| to.text.clone())
}

fn guarded_word<'c>(command: &'c ShellCommand, folder: Option<&str>, confined: bool) -> Option<(Guard, &'c ShellWord)> {
    let program = command.program().unwrap_or_default();
    let mut args = command.args();
    if program == "git" {
        args = git_words(args);
        let sub = args.first().and_then(ShellWord::literal).unwrap_or_default();
        // It takes a message from a file.
        let short = |it: &str| it.starts_with('-') && !it.starts_with("--") && it.contains(['F', 't']);
        let long = |it: &str| it.starts_with("--fi") || it.starts_with("--te");
        let reads = sub == "commit" && args.iter().any(|it| short(&it.text) || long(&it.text));
        if GIT_NAMES_ONLY.contains(&sub) && !reads {
            return None;
        }
    }
    if NAMES_ONLY.contains(&program) {
        return None;
    }
    let is_operand = |it: &&ShellWord| !it.text.starts_with('-');
    let given = args.iter().any(|it| ["-e", "-f", "--reg", "--file"].iter().any(|no| it.text.starts_with(no)));
    let pattern = args.iter().find(is_operand).filter(|_| PATTERN_FIRST.contains(&program) && !given);
    let left_out = |it: &ShellWord| ["--exclude", "--ignore", "!", ":!", ":^"].iter().any(|no| it.text.starts_with(no));
    let read = args.iter().filter(|it| !pattern.is_some_and(|no| std::ptr::eq(*it, no)) && !left_out(it));
    read.into_iter().find_map(|it| Some((find(it, folder, confined || safe::is_read_only(command))?, it)))
}

/// What is guarded of what a word names; configuration only where nothing else holds it.
fn find(word: &ShellWord, folder: Option<&str>, is_held: bool) -> Option<Guard> {
    let text = word.text.as_str();
    // What is in a substitution is listed by itself; messages and code are words, too.
    if text.contains("$(") || text.contains('`') || is_public_key(text) {
        return None;
    }
    let relative = folder.filter(|_| !text.starts_with(['/', '~', '-', '$']));
    let joined = relative.map(|it| format!("{it}/{text}")).filter(|it| !is_public_key(it));
    let entry = |list: &GuardedNames| {
        let own = |text: &str| list.find_names(names(text), text.starts_with('/'));
        own(text).or_else(|| joined.as_deref().and_then(own))
    };
    let config = || entry(&CONFIG).map(|name| Guard { reason: OBEYED, name });
    entry(&SECRETS).map(Guard::secret).or_else(|| if is_held { None } else { config() })
}

fn names(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split(['/', '\\', '=', ':', ',', '@']);
    parts.map(|it| it.trim_matches(['"', '\''])).filter(|it| !matches!(*it, "" | "."))
}

/// Keys for everybody in a folder of secrets: `~/.ssh/id_rsa.pub`. What has a sign in it at which a word may be two is none.
fn is_public_key(text: &str) -> bool {
    let Some((folder, name)) = text.trim_matches('"').rsplit_once('/') else { return false };
    let plain = |it: &str| it.chars().all(|it| it.is_alphanumeric() || "-_./~".contains(it));
    let above = folder.strip_suffix(".ssh").filter(|it| it.is_empty() || it.ends_with('/'));
    let other = |it: &str| SECRETS.find_names(names(it), it.starts_with('/')).is_some();
    name.strip_suffix(".pub").is_some_and(|it| !it.is_empty() && plain(&it.replace('*', "")))
        && above.is_some_and(|it| plain(it.trim_start_matches("$HOME")) && !other(it))
        && !base_name(folder).is_empty()
}

/// Tells whether output stays below the folder that it starts in, and out of what is guarded, by what the line says.
pub fn is_plain_below(target: &ShellWord) -> bool {
    let guarded = [&SECRETS, &CONFIG].into_iter().any(|it| it.find_names(names(&target.text), false).is_some());
    let below = |it: &str| !it.is_empty() && !it.starts_with('/') && !it.split('/').any(|it| it == "..");
    !guarded && target.literal().is_some_and(below)
}
