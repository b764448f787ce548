//! Settings of git and of package managers that name what they run, or where git finds more of them: to write one is to
//! write configuration. And the commands that write any, which a sandbox holds whole.

use std::collections::BTreeSet;

use super::{
    Query,
    danger::git_words,
    decide::Opinion,
    destroy::Signs,
    reworks,
    shell::{Command, Script, Word, base_name},
};
use crate::base::{log::Decision, path::AbsPath};

/// In lower case; a star stands for any ending, or for what is between.
const RUN: &[&str] = &[
    "alias.*",
    "core.askpass",
    "core.attributesfile",
    "core.editor",
    "core.fsmonitor",
    "core.gitproxy",
    "core.hookspath",
    "core.pager",
    "core.sshcommand",
    "core.worktree",
    "credential.*",
    "diff.*command",
    "diff.*textconv",
    "diff.external",
    "difftool.*",
    "filter.*",
    "gpg.*program",
    "include.*",
    "includeif.*",
    "init.templatedir",
    "interactive.difffilter",
    "merge.*driver",
    "mergetool.*",
    "pager.*",
    "protocol.*",
    "remote.*receivepack",
    "remote.*uploadpack",
    "remote.*vcs",
    "sequence.editor",
    "submodule.*update",
    "trailer.*",
    "uploadpack.packobjectshook",
    "url.*",
];
/// With one of these nothing is set.
const READS: &[&str] = &["--get", "--list", "-l", "--unset", "--remove-section", "--rename-section"];
const VERBS: &[&str] = &["get", "list", "unset", "remove-section", "rename-section", "edit"];
/// Values that run nothing of anybody's.
const HARMLESS: &[&str] = &["", "0", "1", ":", "cache", "cat", "false", "less", "osxkeychain", "store", "true"];

/// Of a repository's own folder, what the commands write that change settings by their very words. Those that note down
/// which branch follows which (`git push -u`) are not here: that is done for them.
const CONFIG: &[&str] = &["config"];
const MODULES: &[&str] = &["config", "modules", "../.gitmodules"];
const SPARSE: &[&str] = &["config", "config.worktree", "info"];
/// As a question names the user's own settings.
const OF_USER: &str = "~/.gitconfig";
/// Files of other settings than the repository's own.
const ELSEWHERE: &[&str] = &["--global", "--system", "--file", "-f", "--blob"];
const BRANCH: &[&str] = &["--copy", "--edit-description", "--move", "--set-upstream-to", "--unset-upstream"];
const REMOTE: &[&str] = &["add", "remove", "rename", "rm", "set-branches", "set-url"];
const SUBMODULE: &[&str] = &["absorbgitdirs", "add", "deinit", "init", "set-branch", "set-url", "sync", "update"];
/// More of them are not looked for.
const MAX_REPOSITORIES: usize = 8;
const SPARSE_CHECKOUT: &[&str] = &["add", "disable", "init", "reapply", "set"];

/// What a command has git change by its very words, and a sandbox holds.
pub(super) struct Held {
    pub places: Vec<AbsPath>,
    /// A folder outside that git would make.
    pub folder: Option<AbsPath>,
    /// No less would do: git makes a file beside the settings, in a folder that cannot be opened.
    pub unconfined: bool,
    /// A rule that allows just this has these words in it.
    pub signs: Signs,
    pub words: String,
}

impl Held {
    pub fn gives(&self) -> Vec<AbsPath> {
        self.folder.iter().cloned().collect()
    }

    /// It would fail, often half-way, and ask then: a yes before is for writing there, too.
    pub fn question(&self) -> Opinion {
        self.beside(Opinion::new(Decision::Ask, self.words.clone()))
    }

    /// The same together with another reason.
    pub fn beside(&self, other: Opinion) -> Opinion {
        let another = other.why.filter(|it| *it != self.words);
        let why = another.map_or_else(|| self.words.clone(), |it| format!("{it}; {}", self.words));
        let unconfined = other.unconfined || self.unconfined;
        let opens = [other.opens, self.places.clone()].concat();
        Opinion { why: Some(why), opens, gives: [other.gives, self.gives()].concat(), unconfined, ..other }
    }
}

/// `here`: where its words count from, if that is known.
pub(super) fn held(command: &Command, query: &Query, script: &Script, here: Option<&AbsPath>) -> Option<Held> {
    if command.name().map(base_name) != Some("git") {
        return None;
    }
    let settings = || settings(command, query, script, here);
    let Some(mut res) = reworks::held(command, query, script) else { return settings() };
    if let Some(other) = settings() {
        res.places.extend(other.places);
        res.words = format!("{}; {}", other.words, res.words);
    }
    Some(res)
}

/// Where nobody can be asked, it may try what then fails as a whole.
fn settings(command: &Command, query: &Query, script: &Script, here: Option<&AbsPath>) -> Option<Held> {
    let of_user = || of_user(command, query).filter(|_| query.interactive);
    let Some((sub, places)) = written(command) else { return of_user() };
    let halves = sub == "branch" && git_words(command.args()).iter().any(moves_branch);
    if !query.interactive && !halves {
        return None;
    }
    let is_here = here.is_some() && reworks::globals(command).iter().all(|it| !reworks::leads(it));
    let dir = if is_here { String::new() } else { reworks::folder(command, script)? };
    let git = &query.targets.beyond.repositories.iter().find(|it| it.dir == dir)?.git;
    let shown = |it: &&str| match is_here {
        true => it.strip_prefix("../").map_or(format!(".git/{it}"), str::to_owned),
        false => git.join(it).to_string(),
    };
    // Of a submodule, and of a linked work tree, it lies elsewhere.
    let is_beside = |it: &&&str| !it.starts_with("../") || git.as_path().ends_with(".git");
    let places: Vec<&str> = places.iter().filter(is_beside).copied().collect();
    let shown: Vec<String> = places.iter().map(shown).collect();
    let words = format!("the sandbox keeps commands from what it writes: {}", shown.join(", "));
    let signs = Signs::new(["git", sub].map(str::to_owned).into_iter());
    let places = places.iter().map(|it| git.join(it)).collect();
    Some(Held { places, folder: None, unconfined: false, signs, words })
}

/// The user's own settings. The world says where they are, where a sandbox holds commands.
fn of_user(command: &Command, query: &Query) -> Option<Held> {
    let is_there = query.targets.beyond.outputs.iter().any(|it| it.name == OF_USER);
    if !is_there || !sets_of_user(command) {
        return None;
    }
    let words = format!("git would write {OF_USER}, which the sandbox keeps: a yes runs all of it without the sandbox");
    let signs = Signs::new(["git", "config", "--global"].map(str::to_owned).into_iter());
    Some(Held { places: Vec::new(), folder: None, unconfined: true, signs, words })
}

/// Where they are, if a script writes them.
pub(super) fn settings_of_user(script: &Script) -> Option<String> {
    script.commands.iter().any(sets_of_user).then(|| OF_USER.to_owned())
}

fn sets_of_user(command: &Command) -> bool {
    if command.name().map(base_name) != Some("git") {
        return false;
    }
    let Some((sub, args)) = git_words(command.args()).split_first() else { return false };
    let is_global = |it: &Word| it.text == "--global";
    sub.text == "config" && args.iter().any(is_global) && {
        let rest: Vec<Word> = args.iter().filter(|it| !is_global(it)).cloned().collect();
        sets(&rest)
    }
}

/// The folders, other than its own, in which a script writes settings.
pub(super) fn repositories(script: &Script) -> Vec<String> {
    let writes = script.commands.iter().filter(|it| written(it).is_some());
    let dirs: BTreeSet<String> = writes.filter_map(|it| reworks::folder(it, script)).collect();
    dirs.into_iter().filter(|it| !it.is_empty()).take(MAX_REPOSITORIES).collect()
}

/// The sub-command, and what it writes.
fn written(command: &Command) -> Option<(&str, &'static [&'static str])> {
    if command.name().map(base_name) != Some("git") {
        return None;
    }
    let (sub, args) = git_words(command.args()).split_first()?;
    let verb = args.iter().find(|it| !it.text.starts_with('-')).map_or("", |it| it.text.as_str());
    let places = match sub.text.as_str() {
        "branch" if args.iter().any(changes_branch) => CONFIG,
        "config" if sets(args) => CONFIG,
        "remote" if REMOTE.contains(&verb) => CONFIG,
        "sparse-checkout" if SPARSE_CHECKOUT.contains(&verb) => SPARSE,
        "submodule" if SUBMODULE.contains(&verb) => MODULES,
        _ => return None,
    };
    Some((&sub.text, places))
}

/// `-m`, `-M`, `-c`, `-C`, `-u` and their long forms.
fn changes_branch(option: &Word) -> bool {
    let text = option.text.as_str();
    match text.strip_prefix("--") {
        Some(_) => BRANCH.iter().any(|it| text.split('=').next() == Some(it)),
        None => text.starts_with('-') && text.contains(['m', 'M', 'c', 'C', 'u']),
    }
}

/// It does so, and leaves the settings as they were where it cannot write them.
fn moves_branch(option: &Word) -> bool {
    let text = option.text.as_str();
    match text.strip_prefix("--") {
        Some(_) => matches!(text, "--copy" | "--move"),
        None => text.starts_with('-') && text.contains(['m', 'M', 'c', 'C']),
    }
}

/// Whether `git config` changes the repository's own settings.
fn sets(args: &[Word]) -> bool {
    const CHANGES: &[&str] =
        &["--add", "--edit", "--remove-section", "--rename-section", "--replace-all", "--unset", "-e"];
    let any = |list: &[&str]| args.iter().any(|it| list.iter().any(|start| it.text.starts_with(start)));
    let operands: Vec<&str> = args.iter().map(|it| it.text.as_str()).filter(|it| !it.starts_with('-')).collect();
    match operands.first() {
        _ if any(ELSEWHERE) || any(&["--get", "--list", "-l"]) => false,
        Some(&("get" | "list")) => false,
        Some(&("edit" | "remove-section" | "rename-section" | "set" | "unset")) => true,
        _ => any(CHANGES) || operands.len() > 1,
    }
}

/// Settings of package managers that name what they run, by who writes them, and where.
const MANAGERS: &[(&str, &[&str], &str)] = &[
    ("go", &["-toolexec"], "go env"),
    ("npm", &["editor", "git", "init-module", "node-options", "script-shell", "shell"], ".npmrc"),
    ("pnpm", &["editor", "git", "node-options", "script-shell", "shell"], ".npmrc"),
    ("yarn", &["plugins", "script-shell", "yarn-path", "yarnPath"], ".yarnrc.yml"),
];

/// Where the command sets such a setting.
pub(super) fn sets_what_runs(command: &Command) -> Option<&'static str> {
    match command.name().map(base_name)? {
        "git" if of_git(command) => Some(if sets_of_user(command) { ".gitconfig" } else { ".git" }),
        "git" => None,
        name => of_manager(name, command.args()),
    }
}

/// `npm config set script-shell x`, `npm set git=x`, `go env -w GOFLAGS=-toolexec=x`
fn of_manager(name: &str, args: &[Word]) -> Option<&'static str> {
    let (_, keys, place) = MANAGERS.iter().find(|it| it.0 == name)?;
    let texts = || args.iter().map(|it| it.text.as_str());
    if name == "go" {
        let writes = texts().next() == Some("env") && texts().any(|it| it == "-w");
        return texts().any(|it| writes && keys.iter().any(|key| it.contains(key))).then_some(place);
    }
    let mut operands = texts().filter(|it| !it.starts_with('-'));
    let first = operands.next()?;
    let sets = first == "set" || matches!(first, "c" | "config") && operands.next() == Some("set");
    // `--location project` puts a word between.
    operands.find(|it| sets && keys.contains(&it.split('=').next().unwrap_or_default())).map(|_| *place)
}

fn of_git(command: &Command) -> bool {
    let words = git_words(command.args());
    let Some((_, args)) = words.split_first().filter(|it| it.0.text == "config") else { return false };
    if args.iter().any(|it| READS.iter().any(|start| it.text.starts_with(start))) {
        return false;
    }
    // `--file x` and its like take a word more: any may be the key.
    let operands: Vec<&Word> = args.iter().filter(|it| !it.text.starts_with('-')).collect();
    if operands.first().is_some_and(|it| VERBS.contains(&it.text.as_str())) {
        return false;
    }
    let pairs = operands.iter().zip(operands.iter().skip(1));
    pairs.into_iter().any(|(key, value)| runs(&key.text) && !HARMLESS.contains(&value.text.as_str()))
}

fn runs(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    RUN.iter().any(|it| match it.split_once('*') {
        Some((start, end)) => key.len() >= start.len() + end.len() && key.starts_with(start) && key.ends_with(end),
        None => *it == key,
    })
}
