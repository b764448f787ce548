//! Programs that run code in another language: from their words, or from their input.

use super::{Input, Word, wrap::Inner};

struct Interpreter {
    /// Without a version at its end.
    name: &'static str,
    /// Options before code.
    code: &'static [&'static str],
    /// Short options that take the next word.
    valued: &'static [&'static str],
    /// Words with which it only says something, or runs something that has a name.
    looks: &'static [&'static str],
    /// It runs its input where no file is named.
    reads: bool,
}

const fn row(name: &'static str, code: &'static [&'static str]) -> Interpreter {
    Interpreter { name, code, valued: &[], looks: &["--version", "--help", "-h", "-v"], reads: true }
}

const fn only_words(name: &'static str, code: &'static [&'static str]) -> Interpreter {
    Interpreter { reads: false, ..row(name, code) }
}

const PYTHON: Interpreter = Interpreter {
    valued: &["-W", "-X", "-Q"],
    looks: &["--version", "-V", "-VV", "--help", "-h", "-m"],
    ..row("", &["-c"])
};

const NODE: Interpreter = Interpreter {
    valued: &["-r", "--require", "--import"],
    looks: &["--version", "--help", "-h", "-v", "--test", "--run", "--v8-options", "--watch"],
    ..row("", &["-e", "--eval", "-p", "--print"])
};

const INTERPRETERS: &[Interpreter] = &[
    Interpreter { name: "python", ..PYTHON },
    Interpreter { name: "pypy", ..PYTHON },
    Interpreter { name: "ipython", ..PYTHON },
    Interpreter { name: "node", ..NODE },
    Interpreter { name: "nodejs", ..NODE },
    row("ts-node", &["-e", "--eval", "-p", "--print"]),
    row("tsx", &["-e", "--eval", "-p", "--print"]),
    only_words("deno", &["eval"]),
    only_words("bun", &["-e", "--eval", "-p", "--print"]),
    Interpreter { valued: &["-I"], looks: &["--version", "--help", "-h", "-v", "-V"], ..row("perl", &["-e", "-E"]) },
    row("raku", &["-e"]),
    Interpreter { valued: &["-I", "-r"], ..row("ruby", &["-e"]) },
    Interpreter { valued: &["-I", "-r"], ..row("jruby", &["-e"]) },
    Interpreter { looks: &["--version", "--help", "-h", "-v", "-i", "-m", "-S", "--ini"], ..row("php", &["-r"]) },
    row("lua", &["-e"]),
    row("luajit", &["-e"]),
    row("osascript", &["-e"]),
    row("tclsh", &[]),
    row("julia", &["-e", "-E", "--eval", "--print"]),
    only_words("R", &["-e"]),
    only_words("Rscript", &["-e"]),
    only_words("erl", &["-eval"]),
    only_words("elixir", &["-e", "--eval", "--rpc-eval"]),
    only_words("groovy", &["-e"]),
    only_words("scala", &["-e"]),
    only_words("guile", &["-c"]),
    only_words("racket", &["-e", "--eval"]),
    only_words("sbcl", &["--eval"]),
    only_words("ocaml", &["-e"]),
    only_words("swift", &["-e"]),
    only_words("clojure", &["-e", "--eval"]),
    only_words("clj", &["-e", "--eval"]),
    only_words("bb", &["-e", "--eval"]),
];

const AWK: &[&str] = &["awk", "gawk", "mawk", "nawk"];
pub(super) const STREAMS: &[&str] = &["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];

fn find(name: &str) -> Option<&'static Interpreter> {
    let plain = name.trim_end_matches(|it: char| it.is_ascii_digit() || matches!(it, '.' | '-'));
    INTERPRETERS.iter().find(|it| it.name == name || it.name == plain)
}

/// The code that such a program runs, if it is one and runs any that can be seen.
pub(super) fn inner(name: &str, args: &[Word], input: Option<&Input>) -> Option<Inner> {
    if AWK.contains(&name) {
        return Some(awk(args));
    }
    let interpreter = find(name)?;
    if let Some(code) = interpreter.code(args) {
        return Some(code);
    }
    match (interpreter.reads_input(args), input) {
        (true, Some(input)) => Some(Inner::Code(input.text.clone())),
        (true, None) => Some(Inner::Unseen),
        (false, _) => None,
    }
}

impl Interpreter {
    /// The words from the one with code on.
    fn code(&self, args: &[Word]) -> Option<Inner> {
        let stuck = |it: &Word| {
            let clustered = |option: &&&str| {
                let letter = option.chars().nth(1).filter(|_| option.len() == 2);
                letter.is_some_and(|letter| it.text.contains(letter))
            };
            it.text.starts_with('-') && !it.text.starts_with("--") && self.code.iter().any(|option| clustered(&option))
        };
        let exact = |it: &Word| self.code.iter().any(|option| it.text.split('=').next() == Some(option));
        let from = args.iter().position(|it| exact(it) || stuck(it)).filter(|at| !self.has_file_before(args, *at))?;
        let words = args.get(from..)?;
        // All of it is what only the shell knows.
        let expands = |it: &Word| {
            let text = it.text.trim_start_matches('"');
            it.literal().is_none()
                && (text.starts_with("$(")
                    || text.starts_with('`')
                    || text.starts_with('$') && !text.contains(char::is_whitespace))
        };
        if words.get(1).is_some_and(expands) || words.first().is_some_and(Word::is_unknown) {
            return Some(Inner::Unseen);
        }
        Some(Inner::Code(joined(words)))
    }

    /// `python -m x -c y`, `node x.js -e y`: that is the program's own option.
    fn has_file_before(&self, args: &[Word], at: usize) -> bool {
        let mut words = args.iter().take(at);
        while let Some(word) = words.next() {
            match word.literal() {
                Some("-m") if self.looks.contains(&"-m") => return true,
                Some(it) if self.valued.contains(&it) => _ = words.next(),
                Some(it) if !it.starts_with('-') && self.reads => return !self.code.contains(&it),
                _ => (),
            }
        }
        false
    }

    fn reads_input(&self, mut args: &[Word]) -> bool {
        while let Some((first, rest)) = args.split_first() {
            args = rest;
            match first.literal() {
                None => return self.reads && first.is_unknown(),
                Some(it) if STREAMS.contains(&it) => return true,
                Some(it) if self.looks.contains(&it) => return false,
                Some(it) if self.valued.contains(&it) => args = rest.get(1..).unwrap_or_default(),
                Some(it) if it.starts_with('-') => (),
                Some(_) => return false,
            }
        }
        self.reads
    }
}

fn joined(words: &[Word]) -> String {
    words.iter().map(|it| it.text.as_str()).collect::<Vec<_>>().join(" ")
}

fn awk(args: &[Word]) -> Inner {
    let file =
        args.iter().zip(args.iter().skip(1)).any(|it| it.0.text == "-f" && STREAMS.contains(&it.1.text.as_str()));
    let program = args.iter().find(|it| !it.text.starts_with('-'));
    let code = joined(args);
    match file || program.is_some_and(Word::is_unknown) || awk_runs_unknown(&code) {
        true => Inner::Unseen,
        false => Inner::Code(code),
    }
}

/// `system($0)`, `print | cmd`, `cmd | getline`: commands that are put together when it runs, or read by a shell.
fn awk_runs_unknown(code: &str) -> bool {
    let literal_call = |rest: &str| {
        let inside = rest.trim_start().strip_prefix('(').map(str::trim_start);
        // `systems`, `system time` call nobody.
        let Some(inside) = inside else { return true };
        let quoted = inside.strip_prefix('"').and_then(|it| it.split_once('"'));
        quoted.is_some_and(|(text, rest)| !text.ends_with('\\') && rest.trim_start().starts_with(')'))
    };
    if code.match_indices("system").any(|(at, it)| !literal_call(code.get(at + it.len()..).unwrap_or_default())) {
        return true;
    }
    let code = code.replace("||", "");
    code.split([';', '{', '}', '\n']).any(|statement| {
        let Some((before, after)) = statement.rsplit_once('|') else { return false };
        let (before, after) = (before.trim(), after.trim_start_matches('&').trim_start());
        if after.starts_with("getline") {
            return !before.ends_with('"');
        }
        let to_shell = || {
            let command = after.strip_prefix('"').unwrap_or_default().split(['"', ' ']).next().unwrap_or_default();
            super::is_shell(super::base_name(command))
        };
        let prints = before.starts_with("print");
        prints && (after.starts_with(|it: char| it.is_alphabetic() || matches!(it, '$' | '(' | '_')) || to_shell())
    })
}

/// What starts other programs in such code: beside it nobody knows which.
pub(in crate::engine::policy) const SPAWNS: &[&str] = &[
    "IO.popen",
    "Popen",
    "child_process",
    "execSync",
    "execvp",
    "os.exec",
    "passthru",
    "popen",
    "proc_open",
    "qx",
    "shell_exec",
    "spawn",
    "subprocess",
    "system \"",
    "system '",
    "system(",
];

/// The file with code that such a program runs.
pub(super) fn file<'a>(name: &str, args: &'a [Word]) -> Option<&'a Word> {
    const VERBS: &[&str] = &["run", "test", "watch"];
    const VALUED: &[&str] = &["-o", "-O", "+o"];
    let interpreter = find(name);
    if interpreter.is_some_and(|it| it.code(args).is_some()) {
        return None;
    }
    let valued = |it: &str| interpreter.map_or(VALUED, |it| it.valued).contains(&it);
    let mut words = args.iter();
    while let Some(word) = words.next() {
        match word.text.as_str() {
            "-m" | "-c" => return None,
            it if valued(it) => _ = words.next(),
            it if it.starts_with(['-', '+']) || VERBS.contains(&it) => (),
            _ => return Some(word),
        }
    }
    None
}

/// Whether it runs code in a language that is no shell's.
pub(in crate::engine::policy) fn is_language(name: &str) -> bool {
    AWK.contains(&name) || is_one(name)
}

pub(super) fn is_one(name: &str) -> bool {
    find(name).is_some()
}
