//! Hints for command lines that castor does not take, such as verbs and flags of other agents' command lines.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Verbs that people know from elsewhere, and what castor has in their place.
const VERBS: &[(&str, &str)] = &[
    ("agent", "use `castor agents` for sub-agents, or `castor run PROMPT`"),
    ("checkpoint", "use `castor undo`, `castor rewind` or `castor diff`"),
    ("completion", "castor has no shell completions"),
    ("continue", RESUME),
    ("export", "use `castor sessions export latest`"),
    ("extension", "use `castor extensions`"),
    ("init", "castor has no /init. Write instructions for the model to GEMINI.md"),
    ("interactive", CHAT),
    ("list", "use `castor sessions list`"),
    ("login", "use `castor auth login`"),
    ("logout", "use `castor auth logout`"),
    ("model", "use `castor models`, or `castor run --model NAME PROMPT`"),
    ("prompt", "use `castor run PROMPT`"),
    ("resume", RESUME),
    ("session", "use `castor sessions`"),
    ("settings", "use `castor config`"),
    ("skill", "use `castor skills`"),
    ("upgrade", "use `castor update`"),
    ("version", "use `castor --version`"),
];
const CHAT: &str = "use `castor chat PROMPT`, or `castor` alone";
const WORKTREE: &str = "make the worktree with `git worktree add`, and use --cwd DIR";
const EXTENSIONS: &str = "use `castor extensions list`, and `castor acp --extensions NAME` for no others";
const RESUME: &str = "use `castor -c` for the last session, or `castor -r` to choose one";

/// Flags of Gemini CLI, and what castor has in their place.
const FLAGS: &[(&str, &str)] = &[
    ("-i", CHAT),
    ("--prompt-interactive", CHAT),
    ("--list-extensions", EXTENSIONS),
    ("-l", EXTENSIONS),
    ("--session-file", "use `castor sessions import FILE`, then `castor run -r ID`"),
    ("--screen-reader", "castor chat has --plain; castor run draws nothing where its output is no terminal"),
    ("-w", WORKTREE),
    ("--worktree", WORKTREE),
    ("-v", "use --version"),
    ("--acp", "use `castor acp`"),
    ("--experimental-acp", "use `castor acp`"),
];

/// Whether a line begins with a word that is no command, nothing like one, and none of another program's.
pub fn is_unknown_word(error: &clap::Error, words: &[String]) -> bool {
    // "hello" is near to `shell`, and is said to castor.
    let is_near = |it: &ContextValue| *it != ContextValue::Strings(vec!["shell".to_owned()]);
    let is_first = |it: &String| error.get(ContextKind::InvalidSubcommand) == Some(&ContextValue::String(it.clone()));
    error.kind() == ErrorKind::InvalidSubcommand
        && !error.get(ContextKind::SuggestedSubcommand).is_some_and(is_near)
        && words.first().is_some_and(|it| is_first(it) && !VERBS.iter().any(|row| row.0 == it))
}

/// What to say in place of clap's error. `words`: the command line behind the program's name.
pub fn find_hint(error: &clap::Error, words: &[String]) -> Option<String> {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(it)) => Some(it.as_str()),
        _ => None,
    };
    let lookup = |table: &[(&str, &'static str)], it: &str| table.iter().find(|row| row.0 == it).map(|row| row.1);
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let verb = context(ContextKind::InvalidSubcommand)?;
            let is_first = words.first().is_some_and(|it| it == verb);
            match lookup(VERBS, verb) {
                Some(hint) if is_first => Some(format!("there is no command `{verb}`: {hint}")),
                // A question, and no slip of the fingers.
                _ if is_first && (verb.contains(char::is_whitespace) || words.len() > 2) => {
                    Some(format!("there is no command `{verb}`: to ask something, use castor run {}", quote(words)))
                }
                _ if is_first && error.get(ContextKind::SuggestedSubcommand).is_none() => {
                    let ask = quote(words);
                    Some(format!(
                        "there is no command `{verb}`: `castor --help` lists the commands, castor run {ask} asks a model"
                    ))
                }
                _ => None,
            }
        }
        ErrorKind::UnknownArgument => {
            let argument = context(ContextKind::InvalidArg)?;
            let is_run = words.first().is_some_and(|it| it == "run");
            if is_run && !argument.starts_with('-') {
                let prompt = words.get(1..).filter(|it| !it.iter().any(|it| it.starts_with('-')));
                let example = prompt.map_or_else(|| "\"what is this?\"".to_owned(), quote);
                return Some(format!("unexpected word `{argument}`: quote the prompt, as in castor run {example}"));
            }
            let flag = argument.split_once('=').map_or(argument, |it| it.0);
            let hint = lookup(FLAGS, flag)?;
            Some(format!("there is no flag {flag}: {hint}"))
        }
        _ => None,
    }
}

fn quote(words: &[String]) -> String {
    format!("\"{}\"", words.join(" "))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::{FLAGS, VERBS, find_hint};
    use crate::cli::args::Cli;

    /// The words of `line`, with `_` for a space in one of them.
    fn hint(line: &str) -> Option<String> {
        let words: Vec<String> = line.split(' ').map(|it| it.replace('_', " ")).collect();
        let argv = ["castor".to_owned()].into_iter().chain(words.clone());
        find_hint(&Cli::try_parse_from(argv).unwrap_err(), &words)
    }

    #[test]
    fn habits_of_other_programs_are_answered() {
        for (line, says) in [
            ("extension list", "there is no command `extension`: use `castor extensions`"),
            ("run what is this", "unexpected word `is`: quote the prompt, as in castor run \"what is this\""),
            ("run -m demo what is", "unexpected word `is`: quote the prompt, as in castor run \"what is this?\""),
            ("what_is_this?", "to ask something, use castor run \"what is this?\""),
            ("what is this", "to ask something, use castor run \"what is this\""),
            ("-v", "there is no flag -v: use --version"),
            ("run -i hello", "there is no flag -i: use `castor chat PROMPT`"),
            ("run --worktree x", "there is no flag --worktree: make the worktree with `git worktree add`"),
            (
                "xyzzy",
                "there is no command `xyzzy`: `castor --help` lists the commands, castor run \"xyzzy\" asks a model",
            ),
        ] {
            let said = hint(line).unwrap_or_default();
            assert!(said.contains(says), "{line}: {said}");
        }
        for line in ["sesions", "run --no-such", "sessions lst", "policy mcp"] {
            assert_eq!(hint(line), None, "{line}");
        }
    }

    /// A row for what castor has by now would never be read.
    #[test]
    fn rows_are_of_what_castor_does_not_have() {
        for (verb, _) in VERBS {
            assert!(hint(verb).is_some(), "{verb}");
        }
        for (flag, _) in FLAGS {
            assert!(hint(&format!("run {flag} x")).is_some(), "{flag}");
        }
    }
}
