//! The command line, parsed: clap's own words for help and for errors, and what is ours.

use std::{
    ffi::OsString,
    io::{self, IsTerminal},
    process::ExitCode,
};

use clap::{Args, Command, CommandFactory, Parser, error::ErrorKind};

use super::{
    args::{AgentVerb, Cli, CliVerb},
    exits::EXIT_INPUT,
    gemini_flags,
    output::{exit_code, name_stdout},
    terminal_text, usage_hints,
};

/// The command line, or the exit code once help, version or the usage error was printed.
pub fn parse(argv: impl IntoIterator<Item = OsString>) -> Result<Cli, ExitCode> {
    let mut argv: Vec<OsString> = argv.into_iter().collect();
    if let Some(verb) = parse_frequent(&argv) {
        return Ok(Cli { verb: CliVerb::Agent(verb) });
    }
    expand_help(&mut argv);
    let root = Cli::command();
    let had_no_verb = gemini_flags::rewrite(&mut argv, &root, !io::stdin().is_terminal());
    let is_agent = argv.get(1).is_some_and(|it| it == "acp");
    if argv.len() < 2 && io::stdout().is_terminal() {
        argv.push("chat".into());
    }
    let words: Vec<String> = argv.iter().skip(1).map(|it| it.to_string_lossy().into_owned()).collect();
    let parsed = Cli::try_parse_from(argv).map_err(|error| {
        if let Some(hint) = usage_hints::find_hint(&error, &words) {
            eprintln!("castor: {}", terminal_text::clean(&hint));
            return ExitCode::from(EXIT_INPUT);
        }
        let printed = error.print();
        match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => exit_code(printed.map_err(name_stdout).map(|()| 0)),
            _ if is_agent => {
                eprintln!("{}", repeat_on_stderr(&error.to_string()));
                ExitCode::from(EXIT_INPUT)
            }
            _ => ExitCode::from(EXIT_INPUT),
        }
    })?;
    let typed = if let CliVerb::Agent(AgentVerb::Run(it)) = &parsed.verb { it.prompt.as_deref() } else { None };
    match typed.filter(|it| had_no_verb && gemini_flags::is_verb(&root, it)) {
        Some(verb) => {
            eprintln!("castor: `{verb}` is a command, and stands before its flags; -p {verb} asks a model");
            Err(ExitCode::from(EXIT_INPUT))
        }
        None => Ok(parsed),
    }
}

/// The commands that are waited for at their start, without the table of all: to build it takes longer than all the rest.
/// `None`: another command, or something to say about this one, which needs the table.
fn parse_frequent(argv: &[OsString]) -> Option<AgentVerb> {
    let mut argv = argv.to_vec();
    gemini_flags::spell_sandbox(&mut argv);
    let line = argv.get(1..)?;
    match line.first()?.to_str()? {
        "acp" => parse_alone(line).map(AgentVerb::Acp),
        "chat" => parse_alone(line).map(AgentVerb::Chat),
        "run" => parse_alone(line).map(AgentVerb::Run),
        _ => None,
    }
}

fn parse_alone<A: Args>(line: &[OsString]) -> Option<A> {
    let matches = A::augment_args(Command::new("castor")).try_get_matches_from(line).ok()?;
    A::from_arg_matches(&matches).ok()
}

/// `castor help run` is `castor run --help`: clap's own verb would stand in each list of verbs.
fn expand_help(argv: &mut Vec<OsString>) {
    if argv.get(1).is_some_and(|it| it == "help") {
        argv.remove(1);
        argv.push("--help".into());
    }
}

/// Editors show the end of stderr of an agent that does not start: what is wrong is said there once more.
fn repeat_on_stderr(error: &str) -> String {
    let first = error.lines().next().unwrap_or_default();
    format!("castor did not start: {}; see castor --help", first.trim_start_matches("error: "))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::{Cli, CliVerb, expand_help, parse_frequent};

    #[test]
    fn frequent_commands_mean_the_same_without_the_table() {
        for line in [
            "acp",
            "acp --model demo --sandbox=off",
            "acp auth login",
            "chat -c",
            "chat --agent x hello",
            "run hello -m demo -o json --max-turns 3",
            "run -p hello -- -x",
            "run",
        ] {
            let argv: Vec<_> = ["castor"].into_iter().chain(line.split(' ')).map(Into::into).collect();
            let alone = parse_frequent(&argv).map(|it| format!("{:?}", CliVerb::Agent(it)));
            let whole = Cli::try_parse_from(&argv).map(|it| format!("{:?}", it.verb));
            assert_eq!(alone, whole.ok(), "{line}");
        }
        for line in ["acp --help", "acp --no-such", "run -h", "sessions list", "-p x"] {
            let argv: Vec<_> = ["castor"].into_iter().chain(line.split(' ')).map(Into::into).collect();
            assert!(parse_frequent(&argv).is_none(), "{line}");
        }
    }

    #[test]
    fn help_is_a_verb_too() {
        for (line, expected) in [
            ("castor help", "castor --help"),
            ("castor help run", "castor run --help"),
            ("castor help sessions list", "castor sessions list --help"),
            ("castor run help", "castor run help"),
        ] {
            let mut argv: Vec<_> = line.split(' ').map(Into::into).collect();
            expand_help(&mut argv);
            assert_eq!(argv.join(" ".as_ref()), expected);
        }
    }
}
