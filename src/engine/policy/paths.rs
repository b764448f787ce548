//! Paths that are asked about: outside the roots, configuration that would run things, and where secrets are kept.

use std::path::PathBuf;

use super::{
    destroy::Signs,
    glued,
    leads::Leads,
    pieces::ANY,
    places, public_keys,
    shell::{Command, Redirect, Script, Word, WordKind, base_name},
};
use crate::base::{
    guarded::{CONFIG, Guarded, SECRETS},
    path::AbsPath,
    tool::{Access, TargetPath, Targets},
};

/// One question speaks of no more names of configuration.
const MAX_TOGETHER: usize = 8;
/// Names that a command's words had better not say: beside the guarded ones, folders that have secrets among the rest.
const ROUGHLY_SECRET: &[&str] = &[".castor", ".config", ".docker", ".gemini"];

/// What of a call, or of one command, is guarded, and why that is worth a question in every mode.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    reason: &'static str,
    /// The entry, for rules that name it.
    pub name: &'static str,
    /// Where that is, of configuration that a command names plainly; all of it.
    pub places: Vec<AbsPath>,
    /// What else it names of that.
    also: Vec<&'static str>,
}

const OBEYED: &str = "configuration that castor, an editor, a shell or git obeys";
const NAMED: &str = "what .git/config names";
const KEPT: &str = "secrets may be kept there";
const PRINTED: &str = "it prints what is secret";

impl Guard {
    /// What a yes to it opens, and names, besides.
    fn with(self, config: Option<&Self>) -> Self {
        let Some(config) = config else { return self };
        let named = std::iter::once(config.name).chain(config.also.iter().copied()).filter(|it| *it != self.name);
        let also = if config.places.is_empty() { Vec::new() } else { named.collect() };
        Self { places: config.places.clone(), also, ..self }
    }

    fn new(reason: &'static str, name: &'static str) -> Self {
        Self { reason, name, places: Vec::new(), also: Vec::new() }
    }

    /// A rule that allows just this has the entry in it.
    pub fn signs(&self) -> Signs {
        Signs::new(self.name.split(['*', ' ']).map(|it| it.trim_matches('/').to_owned()).filter(|it| !it.is_empty()))
    }
}

impl std::fmt::Display for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let more = if SECRETS.starts.contains(&self.name) { "*" } else { "" };
        write!(f, "{}: {}{more}", self.reason, self.name)?;
        self.also.iter().try_for_each(|it| write!(f, ", {it}"))
    }
}

/// What is guarded of a file, by its name or by its real place.
pub(super) fn guard(target: &TargetPath) -> Option<Guard> {
    let places = [&target.path, &target.real];
    let find = |list: Guarded| places.into_iter().find_map(|it| list.find(it.as_path()));
    let public = target.access == Access::Read && places.into_iter().all(|it| public_keys::is_one(&it.to_string()));
    let secret = find(SECRETS).filter(|_| !public).map(|name| Guard::new(KEPT, name));
    secret.or_else(|| {
        let obeyed = || find(CONFIG).or_else(|| target.named.then_some(NAMED));
        let obeyed = || obeyed().or_else(|| places.into_iter().find_map(makes_repository));
        let name = (target.access == Access::Write).then(obeyed).flatten()?;
        Some(Guard::new(OBEYED, name))
    })
}

/// The same of a place.
pub(super) fn guard_of_place(real: &AbsPath, writes: bool) -> Option<Guard> {
    let access = if writes { Access::Write } else { Access::Read };
    guard(&TargetPath { path: real.clone(), real: real.clone(), access, line: None, in_roots: true, named: false })
}

/// A folder with a file of that name in it may count as a repository, whose configuration git obeys.
fn makes_repository(path: &AbsPath) -> Option<&'static str> {
    path.as_path().file_name().is_some_and(|it| it.eq_ignore_ascii_case("HEAD")).then_some("HEAD")
}

/// Commands that only look at names, and git's that only take a file in or show it: they may say what they like.
const LOOKS: &[&str] = &[
    "[", "[[", "basename", "dirname", "echo", "ls", "printf", "readlink", "realpath", "stat", "test", "type", "which",
];
/// Those that read configuration to say what is wrong with it, or to show it.
const LINTS: &[&str] = &["actionlint", "bat", "batcat", "yamllint"];
const GIT_LOOKS: &[&str] = &["add", "check-ignore", "commit", "log", "ls-files", "push", "status"];
/// Options behind which `git commit` takes in a file by name.
const COMMIT_READS: &[&str] = &["-F", "--file", "-t", "--template"];

/// What is guarded of what a command's words name, patterns of names too. `looks`: it is known to look only; `here`: where
/// its words count from, if that is known.
pub(super) fn guard_of_command(command: &Command, looks: impl Fn() -> bool, here: Option<&AbsPath>) -> Option<Guard> {
    let (name, args) = (command.name().map(base_name).unwrap_or_default(), read_args(command));
    // What is searched for names no file.
    let pattern = super::safe::pattern_at(name, args);
    // What is left out is not read.
    let leaves_out =
        |it: &Word| matches!(name, "egrep" | "fgrep" | "grep" | "rsync" | "tar") && it.text.starts_with("--exclude=");
    let args = || {
        let rest = args.iter().enumerate().filter(|it| Some(it.0) != pattern).map(|it| it.1);
        rest.filter(move |it| !leaves_out(it))
    };
    let words = || args().filter(|it| it.kind != WordKind::Expanded);
    let secret = words().find_map(find_secret).or_else(|| args().find_map(hinted_secret));
    let own =
        || super::languages::names(command).iter().find_map(|it| find_word(SECRETS, it).or_else(|| hinted_secret(it)));
    let secret =
        secret.or_else(own).or_else(|| secret_in_code(command.code.as_deref()?)).map(|name| Guard::new(KEPT, name));
    // What git shows it does not write.
    let lints = || LINTS.contains(&name) || name == "yq" && !args().any(edits);
    let shows = || name == "git" && args().next().is_some_and(|it| GIT_SHOWS.contains(&it.text.as_str()));
    let writes = || !(lints() || shows() || looks());
    let setting = || super::git_settings::sets_what_runs(command).map(|it| Guard::new(OBEYED, it));
    let vault = || super::vaults::prints(command).map(|name| Guard::new(PRINTED, name));
    let config = config_of_words(words(), here).filter(|_| writes());
    // What is both, as `.npmrc`, is opened by the same yes, and so is all else that it names.
    let secret = secret.map(|it| it.with(config.as_ref()));
    secret.or_else(vault).or(config).or_else(|| setting().filter(|_| writes()))
}

/// An option of `yq` with which it writes: `-i`, `-Pi`, `--inplace`, `--split-exp`.
fn edits(option: &Word) -> bool {
    match option.text.strip_prefix('-') {
        Some(long) if long.starts_with('-') => ["-in", "-sp"].iter().any(|it| long.starts_with(it)),
        Some(letters) => letters.contains(['i', 's']),
        None => option.kind == WordKind::Expanded,
    }
}

/// The file of secrets whose name a command hands on that does not read it: `realpath .env`.
pub(super) fn guard_of_names(command: &Command) -> Option<Guard> {
    let looks = command.name().is_some_and(|it| LOOKS.contains(&base_name(it)));
    let words = if looks { command.args() } else { &[] };
    words.iter().find_map(|it| find_word(SECRETS, it).or_else(|| hinted_secret(it))).map(|name| Guard::new(KEPT, name))
}

/// A file of secrets that code in another language names: what stands in quotes, if it is more than a plain word.
fn secret_in_code(code: &str) -> Option<&'static str> {
    let find = |code: &str| {
        let named = super::leads::quoted(code).flat_map(str::split_whitespace);
        let mut named = named.filter(|it| it.contains(['.', '_', '/'])).map(Word::literally);
        named.find_map(|it| find_word(SECRETS, &it))
    };
    find(code).or_else(|| find(&glued::joined(code)?))
}

/// The words that may name what a command reads.
pub(super) fn read_args(command: &Command) -> &[Word] {
    match command.name().map(base_name).unwrap_or_default() {
        it if LOOKS.contains(&it) => &[],
        "git" => git_reads(super::danger::git_words(command.args())),
        _ => command.args(),
    }
}

const GIT_SHOWS: &[&str] = &["blame", "commit", "diff", "log", "show"];

/// The words of a git command that may name what it reads; none for one that says what it likes.
fn git_reads(words: &[Word]) -> &[Word] {
    let Some((sub, args)) = words.split_first() else { return &[] };
    // The file stays, and nothing of it is shown.
    if sub.text == "rm" && args.iter().any(|it| it.text == "--cached") {
        return &[];
    }
    let Some(name) = sub.literal().filter(|it| GIT_LOOKS.contains(it)) else { return words };
    if name == "log" {
        return if super::shown::patches(args) || args.iter().any(|it| it.text.starts_with("-G")) {
            words
        } else {
            &[]
        };
    }
    let options = if name == "commit" { COMMIT_READS } else { &[] };
    let short =
        |text: &str, option: &str| !text.starts_with("--") && option.chars().nth(1).is_some_and(|it| text.contains(it));
    let reads = |text: &str, option: &&str| match option.starts_with("--") {
        true => text.len() > 3 && text.split('=').next().is_some_and(|it| it.len() > 3 && option.starts_with(it)),
        false => text.starts_with('-') && short(text, option),
    };
    let at = args.iter().position(|it| options.iter().any(|option| reads(&it.text, option)));
    // The rest of it may be a message.
    at.and_then(|at| args.get(at..args.len().min(at + 2))).unwrap_or_default()
}

/// A variable that stands for a file of secrets, where a command that reads takes variables.
pub(super) fn guard_of_values(script: &Script, leads: &Leads) -> Option<Guard> {
    let secret = |it: &Word| match it.kind {
        WordKind::Expanded => None,
        _ => find_word(SECRETS, it),
    };
    let own = |it: &Word| secret(it).or_else(|| hinted_secret(it)).map(|name| Guard::new(KEPT, name));
    let found =
        script.values.all.iter().find_map(|it| own(&it.word).or_else(|| leads.guard(&it.word, script, false)))?;
    let open = |it: &Word| it.kind == WordKind::Expanded;
    let reads = |it: &Command| {
        let looks = it.name().map(base_name).is_some_and(|it| LOOKS.contains(&it));
        !looks && it.args().iter().any(open)
    };
    let takes = script.commands.iter().any(reads) || script.redirects.iter().any(|it| open(&it.target));
    takes.then_some(found)
}

/// The same for names that are put together from pieces: `f=.en; cat ${f}v`.
pub(super) fn guard_of_pieces(script: &Script) -> Option<Guard> {
    let named = |it: &Word| {
        let readings = super::pieces::readings(it, script);
        readings.iter().find_map(|it| match it.contains(ANY) {
            true => names(it).find_map(may_be_secret),
            false => {
                let kind = if it.contains(['*', '?', '[']) { WordKind::Pattern } else { WordKind::Literal };
                let word = Word { text: it.clone(), kind };
                find_secret(&word).or_else(|| hinted_secret(&word))
            }
        })
    };
    let open = |it: &&Word| it.kind == WordKind::Expanded;
    let targets = script.redirects.iter().map(|it| &it.target);
    let words = script.commands.iter().flat_map(read_args).chain(targets);
    words.filter(open).find_map(named).map(|name| Guard::new(KEPT, name))
}

/// Whether a name with something in it that nobody knows may be that of a file of secrets: by what it begins with, else by
/// what sticks to the unknown. What has nothing of its own, or an ending such as `.json`, says too little.
fn may_be_secret(name: &str) -> Option<&'static str> {
    let (before, rest) = name.split_once(ANY)?;
    let after = rest.rsplit(ANY).next().unwrap_or_default();
    let says = match before {
        "" => after.starts_with(char::is_alphanumeric),
        _ => before.starts_with('.') && before.len() > 1,
    };
    let fits = |it: &&&str| it.starts_with('.') && it.starts_with(before) && it.ends_with(after);
    let longer = |it: &&&str| it.len() > before.len() + after.len();
    SECRETS.names.iter().filter(|_| says).find(|it| fits(it) && longer(it)).copied()
}

/// What git is told on its input to print: `git cat-file --batch <<< HEAD:.env`.
pub(super) fn guard_of_objects(command: &Command, script: &Script) -> Option<Guard> {
    let batch = |it: &Word| it.text.starts_with("--batch");
    if command.name().map(base_name) != Some("git") || !command.args().iter().any(batch) {
        return None;
    }
    let echo = |it: &&Command| matches!(it.name(), Some("echo" | "printf"));
    let said =
        script.commands.iter().filter(echo).flat_map(Command::args).chain(script.values.all.iter().map(|it| &it.word));
    let texts = said.map(|it| it.text.as_str()).chain(command.input.as_ref().map(|it| it.text.as_str()));
    let mut words = texts.flat_map(str::split_whitespace).map(|it| Word::literally(it.trim_matches(['"', '\''])));
    words.find_map(|it| find_word(SECRETS, &it)).map(|name| Guard::new(KEPT, name))
}

/// The same for a command that reads more than it names. Programs of the project that read its `.env` are not meant: that
/// is what the file is for. Nor does a sandbox hide such files: what runs would fail without a word.
pub(super) fn guard_of_reader(
    command: &Command,
    script: &Script,
    here: Option<&AbsPath>,
    targets: &Targets,
) -> Option<Guard> {
    super::readers::comes_upon(command, script, here, targets).map(|name| Guard::new(KEPT, name))
}

/// The same for where a script's redirections lead.
pub(super) fn guard_of_redirects(script: &Script, here: Option<&AbsPath>) -> Option<Guard> {
    let at = |it: &Redirect| places::of_redirect(it, script);
    let is_guarded = |at: &Word, writes: bool| find_secret(at).is_some() || writes && find_word(CONFIG, at).is_some();
    let found = |it: &Redirect| at(it).into_iter().find(|at| is_guarded(at, it.writes));
    let first = script.redirects.iter().find_map(found)?;
    let written: Vec<Word> = script.redirects.iter().filter(|it| it.writes).flat_map(at).collect();
    let config = config_of_words(written.iter(), here);
    find_secret(&first).map(|name| Guard::new(KEPT, name).with(config.as_ref())).or(config)
}

/// All of the configuration that words name.
fn config_of_words<'w>(words: impl Iterator<Item = &'w Word>, here: Option<&AbsPath>) -> Option<Guard> {
    let mut found = words.filter_map(|it| Some((find_word(CONFIG, it)?, here.zip(it.literal())))).take(MAX_TOGETHER);
    let place = |it: Option<(&AbsPath, &str)>| it.and_then(|(here, text)| named_config(here, text));
    let (name, first) = found.next()?;
    let mut res = Guard { places: place(first).into_iter().collect(), ..Guard::new(OBEYED, name) };
    for (name, it) in found {
        let more = place(it).filter(|it| !res.places.contains(it));
        if more.is_some() && name != res.name && !res.also.contains(&name) {
            res.also.push(name);
        }
        res.places.extend(more);
    }
    Some(res)
}

/// The whole of the configuration below `root` that a path names. Of a repository only what is named in it, never all.
fn named_config(root: &AbsPath, text: &str) -> Option<AbsPath> {
    let path = root.join(text);
    let below = path.as_path().strip_prefix(root.as_path()).ok()?;
    let name = CONFIG.find(below)?;
    if [".git", "git~1"].contains(&name) {
        return below.iter().nth(1).map(|_| path.clone());
    }
    let mut whole = PathBuf::new();
    below.iter().find_map(|it| {
        whole.push(it);
        CONFIG.find(&whole).map(|_| root.join(&whole))
    })
}

pub(super) fn find_word(list: Guarded, word: &Word) -> Option<&'static str> {
    list.find_names(names(&word.text).filter(|it| !matches!(*it, "" | ".")), word.text.starts_with('/'))
}

/// The entry of a file of secrets that a word names.
fn find_secret(word: &Word) -> Option<&'static str> {
    find_word(SECRETS, word).filter(|_| !public_keys::is_one(&word.text))
}

/// `.e*v`, `id_?sa`, `~/.ss{h,}/x`, `$HOME/.ssh/id`: what the shell makes of a word may be secret. A pattern that begins
/// with a star means everything but what begins with a dot, and no secret more than the rest.
fn hinted_secret(word: &Word) -> Option<&'static str> {
    let text = word.text.to_ascii_lowercase();
    // Code and messages are words, too.
    if word.kind == WordKind::Literal || text.contains(char::is_whitespace) || text.contains("$(") {
        return None;
    }
    let hinted = |name: &str| {
        let fixed = name.split(['*', '?', '[', '{', '$']).next().unwrap_or_default();
        let like = || SECRETS.names.iter().find(|it| super::readers::may_match(name, it)).copied();
        let begun = || SECRETS.starts.iter().find(|it| fixed.starts_with(**it)).copied();
        let ended = || SECRETS.ends.iter().find(|it| name.ends_with(**it)).copied();
        match (fixed.len() < name.len(), fixed.len()) {
            (true, 0 | 1) if fixed != "." => ended(),
            (true, _) => like().or_else(begun).or_else(ended),
            (false, _) => None,
        }
    };
    let found = find_word(SECRETS, word).or_else(|| names(&text).find_map(hinted));
    found.filter(|_| !public_keys::is_one(&word.text))
}

fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(['/', '\\', '=', ':', ',', '@'])
}

/// Whether a command's word may name something secret. Reading elsewhere is fine; guessing is not.
pub(super) fn is_secret(word: &Word) -> bool {
    if public_keys::is_one(&word.text) {
        return false;
    }
    let text = word.text.to_ascii_lowercase();
    // `-f.env`: the file sticks to its option.
    let glued =
        text.starts_with('-') && text.contains('.') && rough().any(|it| it.starts_with('.') && text.contains(it));
    let listed = find_word(SECRETS, word).is_some() || names(&text).any(|it| ROUGHLY_SECRET.contains(&it));
    // `.e*`, `~/.s*`, `/etc/sh*`: a pattern could find what is listed. `~/.gitconfig` is none.
    let open = text.contains(['*', '?', '[', '\\']) || text.starts_with("~+") || text.starts_with("~-");
    let pattern = word.kind == WordKind::Pattern
        && (text.starts_with('~') && text.contains("/.") && open
            || text.contains(".[")
            || names(&text).any(may_find_secret));
    glued || listed || pattern || is_kernel_file(word)
}

fn rough() -> impl Iterator<Item = &'static str> {
    SECRETS.names.iter().chain(ROUGHLY_SECRET).copied()
}

/// The same for a folder in which a command would run.
pub(super) fn is_secret_dir(dir: &str) -> bool {
    is_secret(&Word { text: dir.to_owned(), kind: WordKind::Literal })
}

fn may_find_secret(name: &str) -> bool {
    let Some(fixed) = name.split(['*', '?', '[']).next().filter(|it| it.len() < name.len()) else { return false };
    // A bare `*` does not find names that begin with a dot.
    !fixed.is_empty() && rough().any(|it| it.starts_with(fixed))
}

/// What the kernel tells everybody.
const PLAIN: &[&str] =
    &["/proc/cpuinfo", "/proc/meminfo", "/proc/version", "/proc/loadavg", "/proc/uptime", "/dev/null"];

pub(super) fn is_plain_kernel_file(word: &Word) -> bool {
    PLAIN.contains(&word.text.as_str())
}

/// Other processes' environment and memory, and devices.
fn is_kernel_file(word: &Word) -> bool {
    let path = word.text.rsplit(['=', ':']).next().unwrap_or_default();
    !PLAIN.contains(&path) && may_reach_kernel(word, false) || names(&word.text).any(|it| it == "environ")
}

/// Whether a word may lead into the kernel's folders, by dots and patterns too; a relative one, when commands run
/// `elsewhere`.
pub(super) fn may_reach_kernel(word: &Word, elsewhere: bool) -> bool {
    let path = word.text.rsplit(['=', ':']).next().unwrap_or_default();
    // The root may be here: at the start, and after dots that lead upwards.
    let mut at_root = elsewhere || path.starts_with(['/', '-', '~']);
    for name in path.split('/').filter(|it| !matches!(*it, "" | ".")) {
        let fixed = name.split(['*', '?', '[']).next().unwrap_or_default();
        let pattern = word.kind == WordKind::Pattern && fixed.len() < name.len();
        if at_root && ["proc", "dev", "sys"].iter().any(|it| *it == name || pattern && it.starts_with(fixed)) {
            return true;
        }
        // `-f/proc/1/maps`: the path sticks to its option.
        at_root = name == ".." || at_root && name.starts_with(['-', '~']);
    }
    false
}

/// Whether more lies below a path than anybody means: a home, the whole disk, what is above the workspace.
pub(super) fn is_wide(word: &Word) -> bool {
    let names: Vec<&str> = word.text.split('/').filter(|it| !matches!(*it, "" | ".")).collect();
    match names.as_slice() {
        it if it.contains(&"..") => true,
        [] => word.text.starts_with('/'),
        [_] => word.text.starts_with(['/', '~']),
        [homes, _] => word.text.starts_with('/') && matches!(*homes, "home" | "Users"),
        _ => false,
    }
}

/// Whether a redirection stays below the working directory and out of configuration, by what it says.
pub(super) fn is_plain_below(target: &Word) -> bool {
    let guarded = [SECRETS, CONFIG].into_iter().any(|it| find_word(it, target).is_some());
    target
        .literal()
        .is_some_and(|it| !guarded && !it.is_empty() && !it.starts_with('/') && !it.split('/').any(|it| it == ".."))
}
