//! The command line, parsed: clap's own words for help and for errors, and what is ours.

use std::{
    ffi::OsString,
    io::{self, IsTerminal},
    process::ExitCode,
};

use clap::{
    Args, Command, CommandFactory, FromArgMatches,
    builder::{NonEmptyStringValueParser, ValueParser},
    error::ErrorKind,
};

use super::{
    args::{AgentVerb, ChatArgs, Cli, CliVerb, RunArgs},
    client::terminal,
    exits::EXIT_INPUT,
    gemini_flags,
    output::{exit_code, name_stdout},
    terminal_text, usage_hints,
};

/// Arguments that may be empty: what is said to the model, and words that go to other programs as they are.
const MAY_BE_EMPTY: &[&str] = &["line", "prompt", "prompt_flag", "prompt_interactive"];

/// Where the command line was typed.
struct Surroundings {
    stdin_is_terminal: bool,
    stdout_is_terminal: bool,
    /// There is a terminal to draw on.
    can_chat: bool,
}

impl Surroundings {
    fn detect() -> Self {
        let (stdin, stdout) = (io::stdin().is_terminal(), io::stdout().is_terminal());
        Self { stdin_is_terminal: stdin, stdout_is_terminal: stdout, can_chat: stdin && stdout && terminal::is_there() }
    }
}

/// The command line, or the exit code once help, version or the usage error was printed.
pub fn parse(argv: impl IntoIterator<Item = OsString>) -> Result<Cli, ExitCode> {
    let argv: Vec<OsString> = argv.into_iter().collect();
    match parse_frequent(&argv) {
        Some(verb) => Ok(Cli { verb }),
        None => parse_with_table(argv, &Surroundings::detect()),
    }
}

fn parse_with_table(mut argv: Vec<OsString>, around: &Surroundings) -> Result<Cli, ExitCode> {
    expand_help(&mut argv);
    let root = refuse_empty(Cli::command());
    let had_no_verb = gemini_flags::rewrite(&mut argv, &root, !around.stdin_is_terminal);
    if had_no_verb && around.can_chat {
        prefer_chat(&mut argv);
    }
    let is_agent = argv.get(1).is_some_and(|it| it == "acp");
    if argv.len() < 2 && around.stdout_is_terminal {
        argv.push("chat".into());
    }
    let words: Vec<String> = argv.iter().skip(1).map(|it| it.to_string_lossy().into_owned()).collect();
    let parsed = root.clone().try_get_matches_from(&argv).and_then(|it| Cli::from_arg_matches(&it));
    let parsed = parsed.or_else(|error| {
        let message = around.can_chat && usage_hints::is_unknown_word(&error, &words);
        message.then(|| parse_as_message(&argv)).flatten().ok_or(error)
    });
    let parsed = parsed.map_err(|error| {
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
    match typed_prompt(&parsed).filter(|it| had_no_verb && gemini_flags::is_verb(&root, it)) {
        Some(verb) => {
            eprintln!("castor: `{verb}` is a command, and stands before its flags; -p {verb} asks a model");
            Err(ExitCode::from(EXIT_INPUT))
        }
        None => Ok(parsed),
    }
}

fn typed_prompt(cli: &Cli) -> Option<&str> {
    match &cli.verb {
        CliVerb::Agent(AgentVerb::Run(it)) => it.prompt.as_deref(),
        CliVerb::Agent(AgentVerb::Chat(it)) => it.prompt.as_deref(),
        _ => None,
    }
}

/// A variable that is not set must not mean the last session, this folder or any model: `-r "$ID"`, `trust "$DIR"`.
fn refuse_empty(command: Command) -> Command {
    let text = ValueParser::string().type_id();
    let command = command.mut_args(|it| {
        let is_text = it.get_value_parser().type_id() == text && it.get_action().takes_values();
        let is_free = MAY_BE_EMPTY.contains(&it.get_id().as_str()) || it.is_trailing_var_arg_set();
        if is_text && !is_free { it.value_parser(NonEmptyStringValueParser::new()) } else { it }
    });
    command.mut_subcommands(refuse_empty)
}

/// The commands that are waited for at their start, without the table of all: to build it takes longer than all the rest.
/// `None`: another command, or something to say about this one, which needs the table.
fn parse_frequent(argv: &[OsString]) -> Option<CliVerb> {
    // What follows is another program's.
    match argv.get(1)?.to_str()? {
        "exec" => return parse_alone(argv.get(1..)?).map(CliVerb::Exec),
        "shell" => return parse_alone(argv.get(1..)?).map(CliVerb::Shell),
        _ => (),
    }
    let mut argv = argv.to_vec();
    gemini_flags::spell_sandbox(&mut argv);
    let line = argv.get(1..)?;
    let verb = match line.first()?.to_str()? {
        "acp" => parse_alone(line).map(AgentVerb::Acp),
        "chat" => parse_alone(line).map(AgentVerb::Chat),
        "run" => parse_alone(line).map(AgentVerb::Run),
        _ => None,
    };
    verb.map(CliVerb::Agent)
}

fn parse_alone<A: Args>(line: &[OsString]) -> Option<A> {
    let matches = refuse_empty(A::augment_args(Command::new("castor"))).try_get_matches_from(line).ok()?;
    A::from_arg_matches(&matches).ok()
}

/// Makes a line that got the verb `run` one of `chat`, unless it asks for what only `run` gives.
fn prefer_chat(argv: &mut [OsString]) {
    let is_chat = argv.get(1).is_some_and(|it| it == "run") && argv.get(1..).is_some_and(is_for_chat);
    if let Some(it) = argv.get_mut(1).filter(|_| is_chat) {
        *it = "chat".into();
    }
}

/// Whether a line, from its verb on, is one of a chat. What neither of both takes is: the chat says what is wrong.
fn is_for_chat(line: &[OsString]) -> bool {
    match parse_alone::<ChatArgs>(line) {
        Some(it) => it.gemini.prompt_flag.is_none() && !it.gemini.is_about_sessions() && !it.gemini.raw_output,
        None => parse_alone::<RunArgs>(line).is_none(),
    }
}

/// A word that is no command, as the first message of a chat.
fn parse_as_message(argv: &[OsString]) -> Option<Cli> {
    let mut argv = argv.to_vec();
    argv.insert(1.min(argv.len()), "chat".into());
    gemini_flags::spell_sandbox(&mut argv);
    let chat = parse_alone::<ChatArgs>(argv.get(1..)?)?;
    Some(Cli { verb: CliVerb::Agent(AgentVerb::Chat(chat)) })
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
    use clap::{Command, CommandFactory, Parser, error::ErrorKind};

    use super::{
        AgentVerb, Cli, CliVerb, MAY_BE_EMPTY, Surroundings, expand_help, parse_frequent, parse_with_table,
        refuse_empty,
    };

    /// The verb that a line means on a terminal, `_` being a space in a word, or `none` where it is refused.
    fn verb(line: &str, can_chat: bool) -> &'static str {
        let around = Surroundings { stdin_is_terminal: can_chat, stdout_is_terminal: can_chat, can_chat };
        let words = line.split(' ').filter(|it| !it.is_empty()).map(|it| it.replace('_', " ").into());
        match parse_with_table(["castor".into()].into_iter().chain(words).collect(), &around).map(|it| it.verb) {
            Ok(CliVerb::Agent(AgentVerb::Chat(_))) => "chat",
            Ok(CliVerb::Agent(AgentVerb::Run(_))) => "run",
            Ok(CliVerb::Agent(AgentVerb::Acp(_))) => "acp",
            Ok(_) => "other",
            Err(_) => "none",
        }
    }

    #[test]
    fn a_line_without_a_command_is_the_chat_on_a_terminal() {
        for (line, on_terminal, in_script) in [
            ("-m demo", "chat", "run"),
            ("-c", "chat", "run"),
            ("-r", "chat", "run"),
            ("-r latest", "chat", "run"),
            ("-y", "chat", "run"),
            ("-s", "chat", "run"),
            ("-s off", "chat", "run"),
            ("--approval-mode plan", "chat", "run"),
            ("--max-cost 1", "chat", "run"),
            ("--max-turns 3 --timeout 5m", "chat", "run"),
            ("--plain", "chat", "none"),
            ("--vi", "chat", "none"),
            ("--theme light", "chat", "none"),
            ("-d --skip-trust", "chat", "run"),
            ("--connect http://127.0.0.1:1", "chat", "run"),
            ("--cwd /tmp -m demo", "chat", "run"),
            ("what_is_this?", "chat", "run"),
            ("hi", "chat", "none"),
            ("hello -m demo", "chat", "none"),
            ("hi -s", "chat", "none"),
            ("-m demo fix_it", "chat", "run"),
            ("-i fix_it", "chat", "chat"),
            ("-- -x", "none", "none"),
            ("-p fix_it", "run", "run"),
            ("-y -p fix_it", "run", "run"),
            ("-o json fix_it", "run", "run"),
            ("-m demo --json-schema {} fix_it", "run", "run"),
            ("--image a.png fix_it", "run", "run"),
            ("--no-stdin fix_it", "run", "run"),
            ("--raw-output fix_it", "run", "run"),
            ("--list-sessions", "run", "run"),
            ("run fix_it", "run", "run"),
            ("run -m demo fix_it", "run", "run"),
            ("chat -m demo", "chat", "chat"),
            ("--acp -m demo", "acp", "acp"),
            ("sessions list", "other", "other"),
            ("sesions", "none", "none"),
            ("login", "none", "none"),
            ("hi there", "none", "none"),
            ("-m demo sessions", "none", "none"),
            ("--no-such", "none", "none"),
            ("--plain --no-such", "none", "none"),
        ] {
            assert_eq!((verb(line, true), verb(line, false)), (on_terminal, in_script), "{line}");
        }
    }

    /// A variable that is not set is an empty word.
    #[test]
    fn empty_values_are_refused() {
        fn walk(command: &Command, verbs: &[String], found: &mut Vec<String>) {
            for it in command.get_arguments().filter(|it| it.get_action().takes_values()) {
                let flag = it.get_long().map(|it| format!("--{it}"));
                let is_first = flag.is_none() && it.get_index() == Some(1);
                if MAY_BE_EMPTY.contains(&it.get_id().as_str()) || flag.is_none() && !is_first {
                    continue;
                }
                let line: Vec<String> = verbs.iter().cloned().chain(flag).chain([String::new()]).collect();
                let parsed = refuse_empty(Cli::command()).try_get_matches_from(&line);
                let kind = parsed.as_ref().map_err(clap::Error::kind).err();
                if !matches!(kind, Some(ErrorKind::InvalidValue | ErrorKind::ValueValidation)) {
                    found.push(line.join(" "));
                }
            }
            for it in command.get_subcommands() {
                walk(it, &[verbs, &[it.get_name().to_owned()]].concat(), found);
            }
        }
        let mut found = Vec::new();
        let mut all = Cli::command();
        all.build();
        walk(&all, &["castor".to_owned()], &mut found);
        assert!(found.is_empty(), "{found:?}");
        for line in
            ["run -r", "run -m", "chat -r", "acp -m", "run --session-id", "run --policy", "run --cwd", "run --agent"]
        {
            let words = ["castor"].into_iter().chain(line.split(' ')).chain([""]);
            assert!(parse_frequent(&words.map(Into::into).collect::<Vec<_>>()).is_none(), "{line}");
        }
        let run = ["castor", "run", ""].map(Into::into);
        assert!(parse_frequent(&run).is_some(), "an empty prompt has a message of its own");
    }

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
            "exec -- npm test -s",
            "exec --network cargo test -p x",
            "shell",
        ] {
            let argv: Vec<_> = ["castor"].into_iter().chain(line.split(' ')).map(Into::into).collect();
            let alone = parse_frequent(&argv).map(|it| format!("{it:?}"));
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
