//! Exit codes of all commands: one table for their help and for the reference.

use castor_client::failure;

/// Something is not as it should be, or could not be done.
pub const EXIT_FAILED: u8 = 1;
/// Gemini CLI's exit code for whatever keeps a user from being signed in.
pub const EXIT_AUTH: u8 = 41;
/// Gemini CLI's exit code for input that makes no sense; clap's own would be 2.
pub const EXIT_INPUT: u8 = 42;

/// In the place of a verb.
pub const EACH: &str = "each command";

/// (verb, code, what it means), but those of `run`.
const OTHERS: &[(&str, u8, &str)] = &[
    (EACH, 0, "done; also if the output is closed early"),
    (EACH, EXIT_FAILED, "failed, or the output could not be written"),
    (EACH, EXIT_INPUT, "bad input: a flag, a name or a folder that does not exist"),
    ("agents check", EXIT_FAILED, "something of the files does not count"),
    ("auth", 0, "done; for status: a model can be reached"),
    ("auth", EXIT_AUTH, "not signed in"),
    ("auth", EXIT_INPUT, "bad input"),
    ("chat", 0, "you left"),
    ("chat", EXIT_FAILED, "the agent did not start, or went away"),
    ("chat", EXIT_INPUT, "bad input, or no terminal"),
    ("commands check", EXIT_FAILED, "something of the files does not count"),
    ("config explain", EXIT_FAILED, "castor does not know the setting"),
    ("doctor", EXIT_FAILED, "there is something for you to do"),
    ("extensions validate", EXIT_FAILED, "something of the extension does not count"),
    ("mcp login", EXIT_AUTH, "not logged in"),
    ("mcp test", EXIT_FAILED, "a server that should start does not"),
    ("models", EXIT_FAILED, "no provider answered, or the newer table could not be fetched or kept"),
    ("models", EXIT_AUTH, "each provider wants a key that works"),
    ("policy check", 0, "allowed"),
    ("policy check", 1, "needs an approval"),
    ("policy check", 2, "denied"),
    ("policy check", EXIT_INPUT, "bad input"),
    ("serve", 0, "a signal ended it"),
    ("serve", EXIT_FAILED, "it could not serve: the address is taken, or a file cannot be read"),
    ("serve", EXIT_INPUT, "bad input"),
    ("skills check", EXIT_FAILED, "something of the files does not count"),
    ("trust why", EXIT_FAILED, "the folder is not trusted, or changed since"),
];

/// All of them, by verb.
pub fn rows() -> impl Iterator<Item = (&'static str, u8, &'static str)> {
    let run = failure::meanings().map(|(code, meaning)| ("run", code, meaning));
    OTHERS.iter().copied().chain(run)
}

/// The end of a verb's help.
pub fn help(verb: &str) -> String {
    const WIDTH: usize = 90;
    let (mut lines, mut line) = ("Exit codes:".to_owned(), String::new());
    for (_, code, meaning) in rows().filter(|it| it.0 == verb) {
        let entry = format!("{code} {meaning}");
        if line.is_empty() || line.len() + entry.len() + 3 > WIDTH {
            lines += &line;
            line = format!("\n  {entry}");
        } else {
            line += &format!("   {entry}");
        }
    }
    lines + &line
}
