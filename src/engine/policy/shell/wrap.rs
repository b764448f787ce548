//! Commands that run other commands, as a table: what is left of their words is looked at on its own.

use super::{Input, Word, carriers, evaluate};

/// What a command runs besides itself.
pub(super) enum Inner {
    Nothing,
    /// Something, but its words do not tell what.
    Hidden,
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
    wrapper("exec", "cl", "a"),
    wrapper("command", "pvV", ""),
    wrapper("builtin", "", ""),
    Wrapper { assigns: true, ..wrapper("coproc", "", "") },
    Wrapper { assigns: true, ..wrapper("!", "", "") },
    wrapper("caffeinate", "dimsu", "tw"),
    Wrapper { long: &["--null", "--no-run-if-empty", "--verbose"], ..wrapper("xargs", "0rtxpo", "InPdLsaEJRS") },
];

/// Commands that run what other words, files or their input say.
const HIDING: &[&str] = &[
    "alias",
    "ash",
    "at",
    "batch",
    "bind",
    "busybox",
    "bwrap",
    "capsh",
    "chroot",
    "cmd",
    "cmd.exe",
    "complete",
    "cpulimit",
    "crontab",
    "csh",
    "dbus-run-session",
    "elvish",
    "enable",
    "entr",
    "expect",
    "firejail",
    "fish",
    "flock",
    "gdb",
    "hyperfine",
    "ksh",
    "lldb",
    "ltrace",
    "mksh",
    "nsenter",
    "nu",
    "parallel",
    "perf",
    "powershell",
    "proot",
    "pwsh",
    "rbash",
    "rlwrap",
    "runuser",
    "screen",
    "script",
    "sem",
    "setarch",
    "sg",
    "ssh",
    "start-stop-daemon",
    "strace",
    "su",
    "systemd-run",
    "tcsh",
    "tmux",
    "toybox",
    "trap",
    "unshare",
    "uxterm",
    "valgrind",
    "watch",
    "x86_64",
    "xonsh",
    "xterm",
    "xvfb-run",
    "yash",
];

const SHELLS: &[&str] = &["sh", "bash", "zsh", "dash"];
const FIND_EXEC: &[&str] = &["-exec", "-execdir", "-ok", "-okdir"];

/// Variables whose value is a command line that programs run.
pub(super) const RUN_BY_NAME: &[&str] = &[
    "BROWSER",
    "EDITOR",
    "FCEDIT",
    "GIT_ASKPASS",
    "GIT_EDITOR",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "LESSCLOSE",
    "LESSOPEN",
    "MANPAGER",
    "PAGER",
    "PROMPT_COMMAND",
    "RUSTC_WRAPPER",
    "SSH_ASKPASS",
    "VISUAL",
];

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

/// Whether a shell or an interpreter runs what it reads: no file and no code among its words.
fn reads_input(name: &str, args: &[Word]) -> bool {
    let known = SHELLS.contains(&name) || INTERPRETERS.iter().any(|it| it.0 == name);
    known
        && args.iter().all(|it| matches!(it.literal(), Some("-" | "-s" | "-e" | "-u" | "-x" | "-eu" | "-ex" | "-eux")))
}

/// Interpreters, with the options before code.
const INTERPRETERS: &[(&str, &[&str])] = &[
    ("python", &["-c"]),
    ("python2", &["-c"]),
    ("python3", &["-c"]),
    ("node", &["-e", "--eval", "-p", "--print"]),
    ("deno", &["eval"]),
    ("bun", &["-e", "--eval"]),
    ("perl", &["-e", "-E"]),
    ("ruby", &["-e"]),
    ("php", &["-r"]),
    ("lua", &["-e"]),
    ("osascript", &["-e"]),
];

/// The words from the one with code on; of `awk` all of them.
fn code(name: &str, args: &[Word]) -> Option<String> {
    let from = match name {
        "awk" | "gawk" | "mawk" => 0,
        _ => {
            let (_, options) = INTERPRETERS.iter().find(|it| it.0 == name)?;
            args.iter().position(|it| {
                let clustered = |option: &&str| {
                    !it.text.starts_with("--") && option.len() == 2 && {
                        it.text.starts_with('-') && option.chars().nth(1).is_some_and(|letter| it.text.contains(letter))
                    }
                };
                options.iter().any(|option| it.text == *option || clustered(option))
            })?
        }
    };
    let words: Vec<&str> = args.get(from..)?.iter().map(|it| it.text.as_str()).collect();
    Some(words.join(" "))
}

/// What the words run, with a here-document as input.
pub(super) fn inner(words: &[Word], input: Option<&Input>) -> Inner {
    let Some((name, args)) = words.split_first() else { return Inner::Nothing };
    let Some(name) = name.literal().map(base_name) else { return Inner::Hidden };
    if let Some(input) = input.filter(|_| reads_input(name, args)) {
        return match (SHELLS.contains(&name), input.literal) {
            (true, true) => Inner::Script { text: input.text.clone(), transparent: false },
            (true, false) => Inner::Hidden,
            (false, _) => Inner::Code(input.text.clone()),
        };
    }
    if SHELLS.contains(&name) {
        return shell(args);
    }
    if HIDING.contains(&name) || evaluate::hides_in_subscript(name, args) {
        return Inner::Hidden;
    }
    if let Some(code) = code(name, args) {
        return Inner::Code(code);
    }
    match name {
        "eval" => eval(args),
        "find" | "gfind" => find(args),
        _ => match WRAPPERS.iter().find(|it| it.name == name) {
            Some(it) => behind(it, args),
            None => carriers::inner(name, args),
        },
    }
}

/// `sh -c 'script'`; a script from standard input is hidden, one from a file is like any other program.
fn shell(args: &[Word]) -> Inner {
    match args {
        [option, script] if matches!(option.literal(), Some("-c" | "-lc")) => match script.literal() {
            Some(text) => Inner::Script { text: text.to_owned(), transparent: option.literal() == Some("-c") },
            None => Inner::Hidden,
        },
        [file, ..] if file.literal().is_some_and(|it| !it.starts_with(['-', '+'])) => Inner::Nothing,
        [option] if matches!(option.literal(), Some("--version" | "--help")) => Inner::Nothing,
        _ => Inner::Hidden,
    }
}

fn eval(args: &[Word]) -> Inner {
    let words: Option<Vec<&str>> = args.iter().map(Word::literal).collect();
    match words {
        Some(words) => Inner::Script { text: words.join(" "), transparent: false },
        None => Inner::Hidden,
    }
}

fn find(args: &[Word]) -> Inner {
    if args.iter().any(|it| it.literal().is_none() && it.text.starts_with('-')) {
        return Inner::Hidden;
    }
    let mut res = Vec::new();
    let mut rest = args;
    while let Some(at) = rest.iter().position(|it| it.literal().is_some_and(|it| FIND_EXEC.contains(&it))) {
        let after = rest.get(at + 1..).unwrap_or_default();
        let end = after.iter().position(|it| matches!(it.literal(), Some(";" | "+"))).unwrap_or(after.len());
        res.push(after.get(..end).unwrap_or_default().to_vec());
        rest = after.get(end..).unwrap_or_default();
    }
    match res.is_empty() {
        true => Inner::Nothing,
        false => Inner::Words(res),
    }
}

fn behind(wrapper: &Wrapper, mut args: &[Word]) -> Inner {
    // To these anything with `=` in it is an assignment, to bash only what begins with a name.
    let programs = ["env", "sudo"];
    let mut operands = wrapper.operands;
    while let Some((first, rest)) = args.split_first() {
        let Some(text) = first.literal() else { return Inner::Hidden };
        if let Some(skipped) = option(wrapper, text) {
            let Some(skipped) = skipped else { return Inner::Hidden };
            args = rest.get(skipped..).unwrap_or_default();
        } else if wrapper.assigns && text.contains('=') && (programs.contains(&wrapper.name) || names_variable(text)) {
            // `env PAGER='rm x' git log`
            if text.split_once('=').is_some_and(|it| RUN_BY_NAME.contains(&it.0) && it.1.contains(' ')) {
                return Inner::Hidden;
            }
            args = rest;
        } else if operands > 0 {
            operands -= 1;
            args = rest;
        } else {
            return Inner::Words(vec![args.to_vec()]);
        }
    }
    Inner::Nothing
}

/// `None`: not an option. `Some(None)`: one that nobody here knows. Else how many words its value takes.
fn option(wrapper: &Wrapper, text: &str) -> Option<Option<usize>> {
    if text == "--" {
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
