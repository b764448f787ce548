//! Commands that run other commands, as a table: what is left of their words is looked at on its own.

use super::{
    Input, Word, carriers, evaluate, hiding, interpreters,
    variables::{Obeyed, obeyed},
    xargs,
};

/// What a command runs besides itself.
pub(super) enum Inner {
    Nothing,
    /// Something, but its words do not tell what.
    Hidden,
    /// Something that stands nowhere in them: it is read from somewhere else.
    Unseen,
    /// The command itself, by its other name.
    Same(Vec<Word>),
    /// Other commands.
    Words(Vec<Vec<Word>>),
    /// One of these, perhaps.
    Carried(Vec<Vec<Word>>),
    /// Code in another language.
    Code(String),
    /// A script; `transparent` when it is all that the command does.
    Script {
        text: String,
        transparent: bool,
    },
}

struct Wrapper {
    name: &'static str,
    /// Short options without a value.
    flags: &'static str,
    /// Short options with one.
    valued: &'static str,
    /// Long options without a value; `--name=value` is always taken for one word.
    long: &'static [&'static str],
    /// Operands before the command.
    operands: usize,
    /// Whether `NAME=value` may come first.
    assigns: bool,
}

const fn wrapper(name: &'static str, flags: &'static str, valued: &'static str) -> Wrapper {
    Wrapper { name, flags, valued, long: &[], operands: 0, assigns: false }
}

/// An option that is not in here hides the command: it may take the next word, or be one that runs something.
const WRAPPERS: &[Wrapper] = &[
    Wrapper { assigns: true, long: &["--ignore-environment", "--null"], ..wrapper("env", "i0v", "uC") },
    Wrapper {
        assigns: true,
        long: &["--preserve-env", "--non-interactive", "--set-home", "--login"],
        ..wrapper("sudo", "AbEHikKnPSs", "ughpCrtUDRT")
    },
    wrapper("doas", "nLs", "uC"),
    Wrapper { long: &["--keep-cwd", "--disable-internal-agent"], ..wrapper("pkexec", "", "") },
    Wrapper {
        long: &["--no-new-privs", "--clear-groups", "--keep-groups", "--init-groups"],
        ..wrapper("setpriv", "d", "")
    },
    wrapper("prlimit", "", ""),
    Wrapper { operands: 1, ..wrapper("taskset", "ac", "") },
    Wrapper { operands: 1, ..wrapper("chrt", "abdfiorRv", "TPD") },
    wrapper("linux32", "RBFILSTXZv3", ""),
    wrapper("linux64", "RBFILSTXZv3", ""),
    wrapper("i386", "RBFILSTXZv3", ""),
    wrapper("numactl", "a", "NCmip"),
    wrapper("fakeroot", "u", "lsb"),
    wrapper("chronic", "ev", ""),
    wrapper("unbuffer", "p", ""),
    Wrapper { assigns: true, long: &["--portability", "--verbose"], ..wrapper("time", "pvaq", "of") },
    wrapper("nohup", "", ""),
    wrapper("nice", "", "n"),
    wrapper("ionice", "t", "cn"),
    wrapper("setsid", "cfw", ""),
    wrapper("stdbuf", "", "ioe"),
    Wrapper { operands: 1, long: &["--foreground", "--preserve-status", "--verbose"], ..wrapper("timeout", "v", "sk") },
    Wrapper {
        operands: 1,
        long: &["--foreground", "--preserve-status", "--verbose"],
        ..wrapper("gtimeout", "v", "sk")
    },
    wrapper("exec", "cl", "a"),
    wrapper("command", "pvV", ""),
    wrapper("builtin", "", ""),
    Wrapper { assigns: true, ..wrapper("coproc", "", "") },
    Wrapper { assigns: true, ..wrapper("!", "", "") },
    wrapper("caffeinate", "dimsu", "tw"),
    // zsh's own.
    wrapper("nocorrect", "", ""),
    wrapper("noglob", "", ""),
    wrapper("-", "", ""),
    Wrapper { operands: 1, ..wrapper("repeat", "", "") },
];

const SHELLS: &[&str] = &["sh", "bash", "zsh", "dash"];

/// Words of the grammar: as a command's name they tell that it was read wrongly.
const RESERVED: &[&str] = &[
    "{", "}", "if", "then", "elif", "else", "fi", "do", "done", "for", "while", "until", "case", "esac", "function",
    "select", "in", "]]", "", "((", "))",
];

pub(super) fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// `/usr/bin/env` is `env`.
pub(in crate::engine::policy) fn base_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

pub(in crate::engine::policy) fn is_shell(name: &str) -> bool {
    SHELLS.contains(&name)
}

/// Whether a shell runs what it reads: no file and no script among its words.
fn reads_input(args: &[Word]) -> bool {
    match behind_flags(args) {
        [] => true,
        [first, ..] => first.literal().is_some_and(|it| it == "-" || it == "-s" || interpreters::STREAMS.contains(&it)),
    }
}

/// Options of a shell that change nothing about which script it runs; an `o` at their end takes a word.
const SHELL_FLAGS: &str = "aBbefhkmnpTtuvxEHP";

/// What follows such options.
fn behind_flags(mut args: &[Word]) -> &[Word] {
    const LONG: &[&str] = &["--login", "--noprofile", "--norc", "--posix"];
    const NAMED: &[&str] =
        &["errexit", "errtrace", "functrace", "noglob", "nounset", "pipefail", "verbose", "xtrace", "noexec"];
    while let Some((first, rest)) = args.split_first() {
        if first.literal().is_some_and(|it| LONG.contains(&it) || matches!(it, "-l" | "-i")) {
            args = rest;
            continue;
        }
        let flags = first.literal().and_then(|it| it.strip_prefix(['-', '+'])).unwrap_or_default();
        let named = flags.ends_with('o');
        let plain = flags.strip_suffix('o').unwrap_or(flags).chars().all(|it| SHELL_FLAGS.contains(it));
        let known = || rest.first().and_then(Word::literal).is_some_and(|it| NAMED.contains(&it));
        if flags.is_empty() || !plain || named && !known() {
            break;
        }
        args = rest.get(usize::from(named)..).unwrap_or_default();
    }
    args
}

/// What the words run, with a here-document as input.
pub(super) fn inner(words: &[Word], input: Option<&Input>) -> Inner {
    let Some((name, args)) = words.split_first() else { return Inner::Nothing };
    let Some(name) = name.literal().map(base_name) else { return Inner::Hidden };
    // zsh's `=git`
    if let Some(program) = name.strip_prefix('=').filter(|it| !it.is_empty()) {
        return Inner::Same(std::iter::once(Word::literally(program)).chain(args.iter().cloned()).collect());
    }
    if SHELLS.contains(&name) {
        return match input.filter(|_| reads_input(args)) {
            Some(input) if input.literal => Inner::Script { text: input.text.clone(), transparent: false },
            Some(_) => Inner::Hidden,
            None => shell(args),
        };
    }
    if hiding::HIDING.contains(&name) || evaluate::hides_in_subscript(name, args) {
        return if hiding::reads_commands(name, args) { Inner::Unseen } else { Inner::Hidden };
    }
    if let Some(it) = interpreters::inner(name, args, input) {
        return it;
    }
    match name {
        "eval" => eval(args),
        "source" | "." if args.first().is_some_and(|it| carriers::is_stream(&it.text)) => sourced(args, input),
        "trap" => trap(args),
        // `coproc NAME { …; }`: the grammar takes all for words.
        // `coproc S { sh; }` runs what others write to it.
        "coproc" if args.iter().any(|it| it.literal() == Some("{")) && hiding::ends_in_shell(args) => Inner::Unseen,
        "coproc" if args.iter().any(|it| it.literal().is_some_and(is_reserved)) => Inner::Hidden,
        "bfs" | "find" | "gfind" => xargs::find(args),
        "xargs" | "gxargs" => xargs::xargs(args),
        "command" if looks_up(args) => Inner::Nothing,
        _ => match WRAPPERS.iter().find(|it| it.name == name) {
            Some(it) => behind(it, args),
            None => carriers::inner(name, args),
        },
    }
}

/// `command -v x`, `command -pV x`: it says what `x` is, and runs nothing.
pub(in crate::engine::policy) fn looks_up(args: &[Word]) -> bool {
    let flags = |it: &&Word| {
        let flags = it.literal().and_then(|it| it.strip_prefix('-')).unwrap_or_default();
        !flags.is_empty() && flags.bytes().all(|it| b"pvV".contains(&it))
    };
    args.iter().take_while(flags).any(|it| it.text.contains(['v', 'V']))
}

/// `sh -c 'script'`; a script from standard input is hidden, one from a file is like any other program.
fn shell(args: &[Word]) -> Inner {
    // `-c`, `-lc`, `-ec`
    let flags = |it: &Word| it.literal()?.strip_prefix('-')?.strip_suffix('c').map(str::to_owned);
    let reads_script =
        |it: &Word| flags(it).filter(|it| it.chars().all(|it| matches!(it, 'i' | 'l') || SHELL_FLAGS.contains(it)));
    match behind_flags(args) {
        // What follows the script are its `$0`, `$1`; before it there may be more options: `bash -c -x 'ls'`.
        [option, rest @ ..] if reads_script(option).is_some() => {
            match behind_flags(rest).first().and_then(Word::literal) {
                Some(text) if !text.starts_with(['-', '+']) => {
                    // What such a shell reads first is the user's own.
                    let plain = !args.iter().take_while(|it| it.text != text).any(starts_otherwise);
                    Inner::Script { text: text.to_owned(), transparent: plain }
                }
                _ => Inner::Hidden,
            }
        }
        _ if runs_found_file(args) => Inner::Nothing,
        // It only reads it.
        [_] if matches!(args, [flag, file] if flag.literal() == Some("-n") && file.text.starts_with('"')) => {
            Inner::Nothing
        }
        [file, ..] if file.literal().is_some_and(|it| !it.starts_with(['-', '+']) && !is_stream(it)) => Inner::Nothing,
        [option] if matches!(option.literal(), Some("--version" | "--help")) => Inner::Nothing,
        _ => Inner::Hidden,
    }
}

/// `-l`, `-lc`, `--login`: a shell that reads a profile.
fn starts_otherwise(option: &Word) -> bool {
    let text = option.text.as_str();
    text.starts_with("--") || text.starts_with('-') && text.contains(['l', 'i'])
}

/// What is no file with a script in it.
fn is_stream(path: &str) -> bool {
    path.starts_with("/dev/") || path.starts_with("/proc/")
}

/// `find -exec sh -n {}`
fn runs_found_file(args: &[Word]) -> bool {
    let file = args.iter().find(|it| !it.literal().is_some_and(|it| it.starts_with('-') && !it.contains(['c', 's'])));
    file.is_some_and(|it| it.text == xargs::FOUND)
}

/// `source /dev/stdin <<E`, `. <(curl …)`
fn sourced(args: &[Word], input: Option<&Input>) -> Inner {
    let reads = args.first().and_then(Word::literal).is_some_and(|it| interpreters::STREAMS.contains(&it));
    match input.filter(|it| reads && it.literal) {
        Some(input) => Inner::Script { text: input.text.clone(), transparent: false },
        None => Inner::Unseen,
    }
}

fn eval(args: &[Word]) -> Inner {
    let args = if args.first().is_some_and(|it| it.text == "--") { args.get(1..).unwrap_or_default() } else { args };
    let words: Option<Vec<&str>> = args.iter().map(Word::literal).collect();
    match words {
        Some(words) => Inner::Script { text: words.join(" "), transparent: false },
        None => Inner::Hidden,
    }
}

/// `trap 'script' EXIT`; without a signal, or with a dash, nothing will run.
fn trap(args: &[Word]) -> Inner {
    let ended = args.first().is_some_and(|it| it.text == "--");
    let args = if ended { args.get(1..).unwrap_or_default() } else { args };
    match args {
        [script, _, ..] => match script.literal() {
            // Behind `--` only a dash by itself is no script.
            Some(it) if matches!(it, "" | "-") || !ended && it.starts_with('-') => Inner::Nothing,
            Some(it) => Inner::Script { text: it.to_owned(), transparent: false },
            None => Inner::Hidden,
        },
        _ => Inner::Nothing,
    }
}

fn behind(wrapper: &Wrapper, mut args: &[Word]) -> Inner {
    // To these anything with `=` in it is an assignment, to bash only what begins with a name.
    let programs = ["env", "sudo"];
    let (mut operands, mut also) = (wrapper.operands, Vec::new());
    while let Some((first, rest)) = args.split_first() {
        if wrapper.assigns && assigns_harmlessly(first) {
            args = rest;
            continue;
        }
        let Some(text) = first.literal() else { return Inner::Hidden };
        if let Some(split) = split_by_env(wrapper, text, rest) {
            return split;
        }
        if let Some(skipped) = option(wrapper, text) {
            let Some(skipped) = skipped else { return Inner::Hidden };
            args = rest.get(skipped..).unwrap_or_default();
        } else if wrapper.assigns && text.contains('=') && (programs.contains(&wrapper.name) || names_variable(text)) {
            // `env PAGER='rm x' git log`
            let Some(runs) = runs_by_assignment(text) else { return Inner::Unseen };
            also.extend(runs);
            args = rest;
        } else if operands > 0 {
            operands -= 1;
            args = rest;
        } else {
            also.push(args.to_vec());
            return Inner::Words(also);
        }
    }
    if !also.is_empty() {
        return Inner::Words(also);
    }
    match STARTS_SHELL.contains(&wrapper.name) {
        true => Inner::Unseen,
        false => Inner::Nothing,
    }
}

/// `env A="$X" make`: whatever the value is, nobody runs it.
fn assigns_harmlessly(word: &Word) -> bool {
    let name = word.text.split_once('=').map_or("", |it| it.0);
    let quoted = word.text.contains("=\"") && word.text.ends_with('"') && word.text.matches('"').count() == 2;
    word.literal().is_none()
        && quoted
        && !word.text.contains('@')
        && name != "PATH"
        && names_variable(&format!("{name}="))
        && obeyed(name, None) == Obeyed::No
}

/// The command that somebody runs because a variable is set to it, if any. `None`: it cannot be told.
pub(in crate::engine::policy) fn runs_by_assignment(text: &str) -> Option<Option<Vec<Word>>> {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    let plain = |it: &str| it.bytes().all(|it| it.is_ascii_alphanumeric() || b" _-./=+:,@%".contains(&it));
    match obeyed(name, Some(value)) {
        Obeyed::No => Some(None),
        Obeyed::Command if plain(value) => Some(Some(value.split_whitespace().map(Word::literally).collect())),
        Obeyed::Command | Obeyed::Unknown => None,
    }
}

/// Those that start a shell when there is nothing behind them, and it reads its input.
const STARTS_SHELL: &[&str] = &["sudo", "doas", "pkexec", "linux32", "linux64", "i386", "fakeroot"];

/// `env -S 'a b' c` is `env a b c`. What has quoting in it, or more in front of the `S`, is not taken apart.
fn split_by_env(wrapper: &Wrapper, text: &str, rest: &[Word]) -> Option<Inner> {
    if wrapper.name != "env" {
        return None;
    }
    // `-iS` is `-i -S`.
    let short = text.strip_prefix('-').map(|it| it.trim_start_matches(|it| wrapper.flags.contains(it)));
    let stuck = short.and_then(|it| it.strip_prefix('S')).or_else(|| text.strip_prefix("--split-string="));
    let (said, rest) = match stuck {
        Some("") => rest.split_first().map(|it| (it.0.literal(), it.1))?,
        Some(it) => (Some(it), rest),
        None if text == "--split-string" => rest.split_first().map(|it| (it.0.literal(), it.1))?,
        None => return None,
    };
    let Some(said) = said.filter(|it| !it.contains(['\\', '\'', '"', '$', '#'])) else { return Some(Inner::Hidden) };
    let words = ["env"].into_iter().chain(said.split_whitespace()).map(Word::literally);
    Some(Inner::Words(vec![words.chain(rest.iter().cloned()).collect()]))
}

/// `None`: not an option. `Some(None)`: one that nobody here knows. Else how many words its value takes.
fn option(wrapper: &Wrapper, text: &str) -> Option<Option<usize>> {
    // To env a dash by itself is `-i`.
    if text == "--" || text == "-" && wrapper.name == "env" {
        return Some(Some(0));
    }
    if let Some(long) = text.strip_prefix("--") {
        // GNU's env runs what follows `--split-string=`.
        let known = wrapper.long.contains(&text) || (long.contains('=') && !long.starts_with('s'));
        return Some(known.then_some(0));
    }
    let short = text.strip_prefix('-').filter(|it| !it.is_empty())?;
    // `nice -5`
    if wrapper.name == "nice" && short.bytes().all(|it| it.is_ascii_digit()) {
        return Some(Some(0));
    }
    for (at, letter) in short.char_indices() {
        if wrapper.valued.contains(letter) {
            return Some(Some(usize::from(at + letter.len_utf8() == short.len())));
        }
        if !wrapper.flags.contains(letter) {
            return Some(None);
        }
    }
    Some(Some(0))
}

/// `1A=b` and `*A=b` are programs' names to bash.
pub(super) fn names_variable(assignment: &str) -> bool {
    let name = assignment.split(['=', '[']).next().unwrap_or_default();
    let name = name.strip_suffix('+').unwrap_or(name);
    !name.starts_with(|it: char| it.is_ascii_digit())
        && !name.is_empty()
        && name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_')
}
