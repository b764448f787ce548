//! Wrapper programs such as `env`, `sudo` and `xargs`: finds the command that they run.

use super::{
    line::{CommandRole, ShellCommand},
    opaque::is_obeyed_variable,
    words::{Opaque, ShellWord, WordKind},
};

/// The command that a wrapper runs.
#[derive(Debug, PartialEq, Eq)]
pub enum InnerCommand {
    Nothing,
    /// A command, and how the outer one stands to it.
    Words(Vec<ShellWord>, CommandRole),
    /// A script, read like the line itself.
    Script(String),
}

const UNKNOWN_OPTION: Opaque = Opaque("a wrapper in it has an option that is not known");
const UNKNOWN_SCRIPT: Opaque = Opaque("the script of a shell in it is only known when it runs");

/// A wrapper's own words in front of what it runs.
struct Wrapper {
    names: &'static [&'static str],
    role: CommandRole,
    /// Options without a value.
    flags: &'static [&'static str],
    /// Options with one, in the same word or the next.
    valued: &'static [&'static str],
    /// Operands of its own before the command.
    operands: usize,
}

const WRAPPERS: &[Wrapper] = &[
    Wrapper { names: &["time"], role: CommandRole::Transparent, flags: &["-p", "-v"], valued: &[], operands: 0 },
    Wrapper {
        names: &["timeout", "gtimeout"],
        role: CommandRole::Transparent,
        flags: &["--foreground", "--preserve-status", "-v", "--verbose"],
        valued: &["-s", "--signal", "-k", "--kill-after"],
        operands: 1,
    },
    Wrapper { names: &["nice"], role: CommandRole::Wrapper, flags: &[], valued: &["-n", "--adjustment"], operands: 0 },
    Wrapper { names: &["nohup", "builtin"], role: CommandRole::Wrapper, flags: &[], valued: &[], operands: 0 },
    Wrapper { names: &["command"], role: CommandRole::Wrapper, flags: &["-p"], valued: &[], operands: 0 },
    Wrapper {
        names: &["stdbuf"],
        role: CommandRole::Wrapper,
        flags: &[],
        valued: &["-i", "-o", "-e", "--input", "--output", "--error"],
        operands: 0,
    },
    Wrapper {
        names: &["sudo", "doas"],
        role: CommandRole::Wrapper,
        flags: &["-E", "-H", "-n", "-S", "-k", "-b", "--preserve-env", "--non-interactive", "--set-home"],
        valued: &["-u", "-g", "-p", "--user", "--group", "--prompt"],
        operands: 0,
    },
    Wrapper {
        names: &["env"],
        role: CommandRole::Wrapper,
        flags: &["-i", "-", "-0", "-v", "--ignore-environment", "--null"],
        valued: &["-u", "-C", "--unset", "--chdir"],
        operands: 0,
    },
    Wrapper {
        names: &["xargs", "gxargs"],
        role: CommandRole::Wrapper,
        flags: &["-0", "-r", "-t", "-x", "-p", "--null", "--no-run-if-empty", "--verbose", "--exit"],
        valued: &[
            "-a",
            "-d",
            "-E",
            "-I",
            "-J",
            "-L",
            "-n",
            "-P",
            "-R",
            "-s",
            "--arg-file",
            "--delimiter",
            "--max-args",
            "--max-lines",
            "--max-procs",
            "--replace",
        ],
        operands: 0,
    },
];
/// Wrappers that take variables in front of the command, behind `--`, too.
const SETS_VARIABLES: &[&str] = &["env", "sudo", "doas"];
/// Shells whose `-c` is read like the line itself.
const SHELLS: &[&str] = &["bash", "dash", "sh"];
/// Their options as far as they are understood.
const SHELL_LETTERS: &str = "abcefhklmnopruvxBCEHOPT";
const SHELL_FLAGS: &[&str] = &["--login", "--noediting", "--noprofile", "--norc", "--posix", "--verbose", "--version"];

/// What the command runs besides itself.
///
/// # Errors
/// It cannot be told.
pub fn inner_command(command: &ShellCommand) -> Result<InnerCommand, Opaque> {
    let Some(program) = command.program() else { return Ok(InnerCommand::Nothing) };
    match program {
        "find" | "gfind" | "bfs" => return find_exec_command(command.args()),
        "command" if looks_up(command.args()) => return Ok(InnerCommand::Nothing),
        it if SHELLS.contains(&it) => return script(command.args()),
        _ => (),
    }
    match WRAPPERS.iter().find(|it| it.names.contains(&program)) {
        Some(it) => wrapped_command(it, program, command.args()),
        None => Ok(InnerCommand::Nothing),
    }
}

/// `command -v x`: it says what `x` is, and runs nothing.
fn looks_up(args: &[ShellWord]) -> bool {
    args.first().is_some_and(|it| matches!(it.literal(), Some("-v" | "-V")))
}

fn wrapped_command(wrapper: &Wrapper, program: &str, args: &[ShellWord]) -> Result<InnerCommand, Opaque> {
    let (mut rest, mut placeholder, mut ended) = (args, None, false);
    while let Some((first, more)) = rest.split_first() {
        // To the word of bash it is a variable, to the program of that name a command.
        if program == "time" && !first.text.starts_with('-') && first.text.contains('=') {
            return Err(Opaque("a variable in it stands behind `time`"));
        }
        let option = match first.literal() {
            Some("--") if !ended => {
                (rest, ended) = (more, true);
                continue;
            }
            Some(it) if it.starts_with('-') && !ended => it,
            Some(it) if SETS_VARIABLES.contains(&program) && it.contains('=') => {
                rest = assignment(it, more)?;
                continue;
            }
            _ => break,
        };
        let used = option_length(wrapper, program, option)?;
        if ["-I", "-J", "--replace"].iter().any(|it| option.starts_with(it)) {
            let stuck = option.trim_start_matches("--replace=").trim_start_matches("-I").trim_start_matches("-J");
            placeholder = if used == 2 { more.first().map(|it| it.text.clone()) } else { Some(stuck.to_owned()) };
        }
        rest = rest.get(used..).ok_or(UNKNOWN_OPTION)?;
    }
    let mut words: Vec<ShellWord> = rest.get(wrapper.operands..).unwrap_or_default().to_vec();
    // `timeout $X ls` runs what is in the variable.
    let own = args.get(..args.len().saturating_sub(words.len())).unwrap_or_default();
    if own.iter().any(|it| it.kind == WordKind::Expanded) {
        return Err(Opaque("the words of a wrapper in it are only known when it runs"));
    }
    if !matches!(program, "xargs" | "gxargs") {
        return Ok(if words.is_empty() { InnerCommand::Nothing } else { InnerCommand::Words(words, wrapper.role) });
    }
    if words.is_empty() {
        return Ok(InnerCommand::Nothing);
    }
    match placeholder.as_deref() {
        Some(sign) => words.iter_mut().filter(|it| it.text.contains(sign)).for_each(|it| it.kind = WordKind::Expanded),
        None => words.push(ShellWord::unknown()),
    }
    Ok(InnerCommand::Words(words, wrapper.role))
}

/// `X=1` in front of a command.
fn assignment<'w>(text: &str, rest: &'w [ShellWord]) -> Result<&'w [ShellWord], Opaque> {
    let name = text.split('=').next().unwrap_or_default();
    if is_obeyed_variable(name) { Err(Opaque("it sets a variable that programs obey")) } else { Ok(rest) }
}

/// How many words the option takes.
fn option_length(wrapper: &Wrapper, program: &str, option: &str) -> Result<usize, Opaque> {
    if wrapper.flags.contains(&option) {
        return Ok(1);
    }
    if wrapper.valued.contains(&option) {
        return Ok(2);
    }
    let stuck = |it: &&&str| match it.starts_with("--") {
        true => option.strip_prefix(**it).is_some_and(|it| it.starts_with('=')),
        false => option.starts_with(**it),
    };
    // `nice -5`
    let number = program == "nice" && option.get(1..).is_some_and(|it| it.bytes().all(|it| it.is_ascii_digit()));
    let flags = |it: &str| {
        let mut letters = it.chars().skip(1).peekable();
        letters.peek().is_some() && letters.all(|it| wrapper.flags.contains(&format!("-{it}").as_str()))
    };
    match wrapper.valued.iter().any(|it| stuck(&it)) || number || !option.starts_with("--") && flags(option) {
        true => Ok(1),
        false => Err(UNKNOWN_OPTION),
    }
}

/// `find -exec`: the words up to `;` or `+`, of which `{}` is any name.
fn find_exec_command(args: &[ShellWord]) -> Result<InnerCommand, Opaque> {
    let runs = |it: &ShellWord| matches!(it.literal(), Some("-exec" | "-execdir"));
    if args.iter().filter(|it| runs(it)).count() > 1 {
        return Err(Opaque("it runs several commands for what it finds"));
    }
    let Some(rest) = args.iter().position(runs).and_then(|at| args.get(at + 1..)) else {
        return Ok(InnerCommand::Nothing);
    };
    let end = rest.iter().position(|it| matches!(it.literal(), Some(";" | "+"))).unwrap_or(rest.len());
    let mut words: Vec<ShellWord> = rest.get(..end).unwrap_or_default().to_vec();
    for it in words.iter_mut().filter(|it| it.text.contains("{}")) {
        *it = ShellWord::unknown();
    }
    Ok(if words.is_empty() { InnerCommand::Nothing } else { InnerCommand::Words(words, CommandRole::Wrapper) })
}

/// `sh -c 'script'`; one in a file is a word like others.
fn script(args: &[ShellWord]) -> Result<InnerCommand, Opaque> {
    let (mut rest, mut given) = (args, false);
    while let Some((first, more)) = rest.split_first() {
        let option = first.literal().ok_or(UNKNOWN_SCRIPT)?;
        let Some(letters) = option.strip_prefix(['-', '+']) else { break };
        rest = more;
        if matches!(option, "-" | "--") {
            break;
        }
        if SHELL_FLAGS.contains(&option) {
            continue;
        }
        if letters.is_empty() || letters.contains(|it| !SHELL_LETTERS.contains(it)) {
            return Err(UNKNOWN_SCRIPT);
        }
        given |= letters.contains('c');
        // Each takes its value from the words that follow.
        let n_valued = letters.chars().filter(|it| matches!(it, 'o' | 'O')).count();
        rest = rest.get(n_valued..).ok_or(UNKNOWN_SCRIPT)?;
    }
    match rest.first() {
        Some(it) if given => it.literal().map(|it| InnerCommand::Script(it.to_owned())).ok_or(UNKNOWN_SCRIPT),
        None if given => Err(UNKNOWN_SCRIPT),
        // What a pattern comes to may be an option.
        Some(it) if it.literal().is_none() => Err(UNKNOWN_SCRIPT),
        _ => Ok(InnerCommand::Nothing),
    }
}
