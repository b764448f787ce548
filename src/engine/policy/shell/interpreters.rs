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
    /// It runs its input also behind files.
    repl: bool,
    /// It runs its input where this is its first word, or a dash among them.
    at: &'static [&'static str],
}

const fn row(name: &'static str, code: &'static [&'static str]) -> Interpreter {
    let looks = &["--version", "--help", "-h", "-v"];
    Interpreter { name, code, valued: &[], looks, reads: true, repl: false, at: &[] }
}

const fn repl(name: &'static str, code: &'static [&'static str]) -> Interpreter {
    Interpreter { repl: true, ..row(name, code) }
}

/// `rails console`, `deno run -`
const fn at(name: &'static str, code: &'static [&'static str], at: &'static [&'static str]) -> Interpreter {
    Interpreter { at, ..only_words(name, code) }
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
    Interpreter { name: "py", ..PYTHON },
    Interpreter { name: "pypy", ..PYTHON },
    Interpreter { name: "ipython", ..PYTHON },
    Interpreter { name: "bpython", ..PYTHON },
    Interpreter { name: "ptpython", ..PYTHON },
    Interpreter { name: "sage", ..PYTHON },
    Interpreter { name: "jython", ..PYTHON },
    Interpreter { name: "micropython", ..PYTHON },
    Interpreter { name: "node", ..NODE },
    Interpreter { name: "nodejs", ..NODE },
    row("ts-node", &["-e", "--eval", "-p", "--print"]),
    row("tsx", &["-e", "--eval", "-p", "--print"]),
    at("deno", &["eval", "--eval"], &["repl", "-"]),
    at("bun", &["-e", "--eval", "-p", "--print"], &["repl", "-"]),
    at("uv", &[], &[]),
    at("bundle", &[], &["console"]),
    at("jupyter", &[], &["console"]),
    only_words("mongosh", &["--eval"]),
    Interpreter { valued: &["-I"], looks: &["--version", "--help", "-h", "-v", "-V"], ..row("perl", &["-e", "-E"]) },
    row("raku", &["-e"]),
    Interpreter { valued: &["-I", "-r"], ..row("ruby", &["-e"]) },
    Interpreter { valued: &["-I", "-r"], ..row("jruby", &["-e"]) },
    Interpreter {
        looks: &["--version", "--help", "-h", "-v", "-i", "-m", "-S", "--ini"],
        ..row("php", &["-r", "-R", "-B", "-E", "--execute"])
    },
    Interpreter { valued: &["-I", "-r"], ..repl("irb", &[]) },
    Interpreter { valued: &["-I", "-r"], ..repl("pry", &["-e", "--exec"]) },
    at("rails", &["runner", "r"], &["console", "c"]),
    at("manage.py", &["-c", "--command"], &["shell", "shell_plus"]),
    at("django-admin", &["-c", "--command"], &["shell", "shell_plus"]),
    at("flask", &[], &["shell"]),
    repl("psysh", &[]),
    only_words("wp", &["eval"]),
    only_words("drush", &["ev", "php-eval", "php:eval"]),
    row("lua", &["-e"]),
    row("luajit", &["-e"]),
    row("texlua", &["-e"]),
    row("fennel", &["-e", "--eval"]),
    row("hy", &["-c"]),
    row("osascript", &["-e"]),
    row("tclsh", &[]),
    row("wish", &[]),
    row("julia", &["-e", "-E", "--eval", "--print"]),
    Interpreter { looks: &["--version", "--help", "-h", "-f", "--file", "CMD"], ..repl("R", &["-e"]) },
    only_words("Rscript", &["-e"]),
    only_words("crystal", &["eval"]),
    only_words("ghc", &["-e"]),
    only_words("kotlin", &["-e"]),
    only_words("kotlinc", &["-e"]),
    only_words("amm", &["-c", "--code"]),
    only_words("wolframscript", &["-code", "-c"]),
    only_words("csharp", &["-e"]),
    only_words("fsharpi", &["-e", "--exec"]),
    repl("evcxr", &[]),
    at("dune", &[], &["utop"]),
    at("sbt", &[], &["console", "consoleQuick"]),
    Interpreter { looks: &["--version", "--help", "-l", "-f", "-s"], ..repl("swipl", &["-g", "-t"]) },
    repl("maxima", &["--batch-string", "-r", "--run-string"]),
    only_words("littler", &["-e"]),
    only_words("matlab", &["-batch", "-r"]),
    only_words("nbb", &["-e"]),
    only_words("nim", &["--eval"]),
    only_words("r", &["-e"]),
    only_words("rdmd", &["--eval"]),
    row("runghc", &[]),
    only_words("rust-script", &["-e", "--expr"]),
    only_words("v", &["-e"]),
    only_words("yaegi", &["-e"]),
    row("zx", &["-e", "--eval"]),
    repl("octave", &["--eval"]),
    repl("octave-cli", &["--eval"]),
    Interpreter { looks: &["-version", "-s", "-run", "-noinput", "-detached"], ..repl("erl", &["-eval"]) },
    only_words("elixir", &["-e", "--eval", "--rpc-eval"]),
    Interpreter { valued: &["-S", "-r", "--cookie", "--name", "--sname"], ..repl("iex", &["-e", "--eval"]) },
    at("lein", &[], &["repl"]),
    at("scala-cli", &["-e"], &["repl", "-"]),
    only_words("mix", &["-e", "--eval", "eval"]),
    only_words("groovy", &["-e"]),
    repl("groovysh", &["-e"]),
    repl("jshell", &[]),
    repl("ghci", &["-e"]),
    Interpreter { looks: &["-version", "--version", "-help", "--help"], ..repl("scala", &["-e"]) },
    Interpreter { valued: &["-L", "-l", "-C"], looks: &["--version", "--help", "-v", "-s"], ..repl("guile", &["-c"]) },
    Interpreter { valued: &["-l", "-r", "-t", "-f"], ..repl("racket", &["-e", "--eval"]) },
    Interpreter { looks: &["--version", "--help", "--script", "--load"], ..repl("sbcl", &["--eval"]) },
    repl("clisp", &["-x"]),
    repl("ecl", &["-eval", "--eval"]),
    repl("csi", &["-e", "-eval"]),
    repl("gsi", &["-e"]),
    Interpreter { valued: &["-I"], looks: &["-version", "--version", "-help"], ..repl("ocaml", &["-e"]) },
    repl("utop", &[]),
    Interpreter { reads: false, ..repl("swift", &["-e"]) },
    Interpreter { reads: false, ..repl("clojure", &["-e", "--eval"]) },
    Interpreter { reads: false, ..repl("clj", &["-e", "--eval"]) },
    Interpreter { reads: false, ..repl("bb", &["-e", "--eval"]) },
];

const AWK: &[&str] = &["awk", "gawk", "goawk", "mawk", "nawk", "original-awk"];
pub(super) const STREAMS: &[&str] = &["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];

fn find(name: &str) -> Option<&'static Interpreter> {
    // `python3.13t`, `python3-dbg`
    let threads = name.strip_suffix('t').filter(|it| it.ends_with(|it: char| it.is_ascii_digit()));
    let built = threads.or_else(|| name.strip_suffix("-dbg")).unwrap_or(name);
    let plain = built.trim_end_matches(|it: char| it.is_ascii_digit() || matches!(it, '.' | '-'));
    INTERPRETERS.iter().find(|it| it.name == name || it.name == plain)
}

/// The code that such a program runs, if it is one and runs any that can be seen.
pub(super) fn inner(name: &str, args: &[Word], input: Option<&Input>) -> Option<Inner> {
    if AWK.contains(&name) {
        return Some(awk(args));
    }
    let interpreter = find(name)?;
    // `perl -de1` reads what it runs.
    let debugs = name == "perl" && args.first().is_some_and(|it| it.text.starts_with("-d"));
    if let Some(input) = input.filter(|_| debugs) {
        return Some(Inner::Code(input.text.clone()));
    }
    if let Some(code) = interpreter.code(args).or_else(|| module(interpreter, args, input)) {
        return Some(code);
    }
    let reads = interpreter.is_told(args) || interpreter.reads_input(args) || name == "uv" && runs_dash(args);
    match (reads, input) {
        (true, None) => Some(Inner::Unseen),
        (reads, Some(input)) if reads || interpreter.repl => Some(Inner::Code(input.text.clone())),
        _ => None,
    }
}

/// Python's modules that run code of their words or of their input: `python -m timeit 'x()'`.
fn module(interpreter: &Interpreter, args: &[Word], input: Option<&Input>) -> Option<Inner> {
    let at = args.iter().position(|it| it.text == "-m").filter(|_| interpreter.looks.contains(&"-m"))?;
    let (name, rest) = args.get(at + 1..)?.split_first()?;
    if args.iter().take(at).any(|it| !it.text.starts_with('-')) {
        return None;
    }
    let told = rest.iter().any(|it| it.text.starts_with("-c") || it.text.starts_with("--command"));
    match name.text.as_str() {
        "timeit" => Some(Inner::Code(joined(rest))),
        "IPython" | "bpython" | "pdb" | "ptpython" if told => Some(Inner::Code(joined(rest))),
        "IPython" | "asyncio" | "bpython" | "code" | "ptpython" if !rest.iter().any(|it| !it.text.starts_with('-')) => {
            Some(input.map_or(Inner::Unseen, |it| Inner::Code(it.text.clone())))
        }
        _ => None,
    }
}

/// `uv run --with x -`
fn runs_dash(args: &[Word]) -> bool {
    let Some(at) = args.iter().position(|it| it.text == "-") else { return false };
    let before = args.get(..at).unwrap_or_default();
    let valued =
        |it: (&Word, &Word)| it.1.text.starts_with('-') || it.0.text.starts_with('-') && !it.0.text.contains('=');
    let from = before.iter().position(|it| it.text == "run");
    let behind = from.and_then(|at| before.get(at + 1..));
    behind.is_some_and(|it| {
        it.first().is_none_or(|it| it.text.starts_with('-')) && it.iter().zip(it.iter().skip(1)).all(valued)
    })
}

/// Scripts of frameworks that are no file with the code: behind these of their words they read it.
const FRAMEWORKS: &[&str] = &["artisan", "manage.py"];
const SHELLS: &[&str] = &["shell", "shell_plus", "tinker"];

fn is_framework(file: &str) -> bool {
    FRAMEWORKS.contains(&super::base_name(file))
}

impl Interpreter {
    fn is_told(&self, args: &[Word]) -> bool {
        let first = args.iter().find(|it| !it.text.starts_with('-'));
        let dash = self.at.contains(&"-") && args.iter().any(|it| it.text == "-");
        dash || first.and_then(Word::literal).is_some_and(|it| self.at.contains(&it))
    }

    /// The words from the one with code on.
    fn code(&self, args: &[Word]) -> Option<Inner> {
        let stuck = |it: &Word| {
            let clustered = |option: &&&str| {
                let letter = option.chars().nth(1).filter(|_| option.len() == 2);
                letter.is_some_and(|letter| it.text.contains(letter))
            };
            it.text.starts_with('-') && !it.text.starts_with("--") && self.code.iter().any(|option| clustered(&option))
        };
        let exact = |it: &Word| self.code.iter().any(|option| it.text.split(['=', ':']).next() == Some(option));
        let from = args.iter().position(|it| exact(it) || stuck(it) || is_data(it));
        let from = from.filter(|at| !self.has_file_before(args, *at))?;
        let words = args.get(from..)?;
        // All of it is what only the shell knows.
        let expands = |it: &Word| {
            let text = it.text.trim_start_matches('"');
            it.literal().is_none()
                && (text.starts_with("$(")
                    || text.starts_with('`')
                    || text.starts_with('$') && !text.contains(char::is_whitespace))
        };
        let coded =
            words.first().is_some_and(|it| is_data(it) && (it.text.contains(";base64") || it.text.contains('%')));
        if coded || words.get(1).is_some_and(expands) || words.first().is_some_and(Word::is_unknown) {
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
                Some(it) if self.reads && is_framework(it) => return false,
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
                // `ocaml <(echo …)`: a script that stands nowhere.
                None => return self.reads && (first.is_unknown() || first.text.starts_with("<(")),
                Some(it) if STREAMS.contains(&it) => return true,
                Some(it) if self.looks.contains(&it.split('=').next().unwrap_or_default()) => return false,
                Some(it) if self.valued.contains(&it) => args = rest.get(1..).unwrap_or_default(),
                Some(it) if it.starts_with('-') => (),
                Some(it) if self.reads && is_framework(it) => {
                    return rest.first().and_then(Word::literal).is_some_and(|it| SHELLS.contains(&it));
                }
                Some(_) => return false,
            }
        }
        self.reads
    }
}

/// `--import 'data:text/javascript,…'`
fn is_data(word: &Word) -> bool {
    word.text.starts_with("data:") || word.text.contains("=data:")
}

fn joined(words: &[Word]) -> String {
    words.iter().map(|it| it.text.as_str()).collect::<Vec<_>>().join(" ")
}

fn awk(args: &[Word]) -> Inner {
    let is_stream = |it: &str| STREAMS.contains(&it) || it.starts_with("<(");
    let apart = args.iter().zip(args.iter().skip(1)).any(|it| it.0.text == "-f" && is_stream(&it.1.text));
    let stuck = |it: &Word| ["--file=", "-f"].iter().any(|start| it.text.strip_prefix(start).is_some_and(is_stream));
    let file = apart || args.iter().any(stuck);
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
        quoted.is_some_and(|(text, rest)| !text.contains('\\') && rest.trim_start().starts_with(')'))
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
