//! `castor auth`: stores, deletes and checks the API key. Keys come from a terminal or a pipe, never from argv.

pub mod hidden_input;
mod key_check;
mod status;

pub use key_check::KeyCheck;
pub use status::{AuthOutput, LoginStatus, sources};

use std::io::{self, IsTerminal, Read, Write};

use clap::{Args, Subcommand};
use secrecy::{ExposeSecret, SecretString};

use super::{
    exits::{self, EXIT_AUTH},
    output::Output,
    terminal_text::CleanText,
};
use castor_agent::model::endpoint_checks::check_key;
use castor_base::{path::AbsPath, text};
use castor_hands::secrets::{Env, credentials};
use castor_models::providers::remote::origin::key_end;
use castor_tools::workspace;

/// More than any key has, in bytes.
const MAX_KEY: u64 = 16 << 10;

/// Acts on the stored key.
#[derive(Args, Clone, Debug)]
#[command(after_help = exits::help("auth"))]
pub struct AuthArgs {
    #[command(subcommand)]
    pub verb: AuthVerb,
}

#[derive(Subcommand, Clone, Debug)]
pub enum AuthVerb {
    /// Asks for a Gemini API key, checks it, and stores it for you alone
    Login {
        /// Read the key from stdin: `pass show gemini | castor auth login --key-stdin`
        #[arg(long)]
        key_stdin: bool,
        /// Store the key without asking the provider whether it works
        #[arg(long)]
        no_check: bool,
    },
    /// Removes the stored key
    Logout,
    /// Says for each way to sign in what is configured, and where
    Status {
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
}

/// The streams of the commands.
pub struct AuthStreams<'a> {
    pub stdin: Box<dyn Read + 'a>,
    /// Whether somebody can be asked.
    pub is_terminal: bool,
    pub out: Box<dyn Write + 'a>,
    pub err: Box<dyn Write + 'a>,
    /// Asks the provider whether a key works.
    pub check: fn(&Env, &AbsPath, &SecretString) -> KeyCheck,
}

impl AuthStreams<'static> {
    pub fn of_process() -> Self {
        let is_terminal = io::stdin().is_terminal();
        Self {
            stdin: Box::new(io::stdin()),
            is_terminal,
            out: Box::new(CleanText::new(Output::of_process())),
            err: Box::new(CleanText::new(io::stderr())),
            check: key_check::check_with_provider,
        }
    }
}

/// Returns the exit code.
///
/// # Errors
/// The output's.
pub fn run(args: &AuthArgs, env: &Env, cwd: &AbsPath, streams: &mut AuthStreams<'_>) -> io::Result<u8> {
    let Some(home) = workspace::castor_home(env) else {
        _ = writeln!(streams.err, "castor: {}", workspace::NO_HOME);
        return Ok(EXIT_AUTH);
    };
    let done = match args.verb {
        AuthVerb::Login { key_stdin, no_check } => {
            read_key(key_stdin, streams).and_then(|key| store_key(&key, no_check, (env, cwd, &home), streams))
        }
        AuthVerb::Logout => logout(env, &home),
        AuthVerb::Status { json } => status::status(json, env, cwd, streams),
    };
    match done {
        Ok((code, text)) => streams.out.write_all(text.as_bytes()).map(|()| code),
        Err(why) => {
            _ = writeln!(streams.err, "castor: {why}");
            Ok(EXIT_AUTH)
        }
    }
}

/// Exit code, and what is printed.
type VerbOutcome = Result<(u8, String), String>;

const GET_A_KEY: &str = "https://aistudio.google.com/apikey";

fn read_key(key_stdin: bool, streams: &mut AuthStreams<'_>) -> Result<SecretString, String> {
    let key = match (key_stdin, streams.is_terminal) {
        (true, _) => read_piped_key(streams)?,
        (false, true) => ask_for_key(streams)?,
        (false, false) => return Err("stdin is no terminal; pipe the key and add --key-stdin".to_owned()),
    };
    check_key(key.expose_secret())?.ok_or_else(|| format!("no key was given; get one at {GET_A_KEY}"))
}

/// Stores a key that the provider does not refuse.
fn store_key(
    key: &SecretString,
    no_check: bool,
    (env, cwd, home): (&Env, &AbsPath, &AbsPath),
    streams: &mut AuthStreams<'_>,
) -> VerbOutcome {
    let checked = (!no_check).then(|| (streams.check)(env, cwd, key));
    if let Some(KeyCheck::Refused(why)) = &checked {
        let why = text::end_sentence(why);
        return Err(format!("the provider refuses this key: {why} Nothing was stored. Get a key at {GET_A_KEY}"));
    }
    credentials::save(home, key).map_err(|it| it.to_string())?;
    let works = if checked == Some(KeyCheck::Works) { ", and it works" } else { "" };
    let mut text = format!("Stored the key{} in {}{works}.\n", end_of(key), credentials::place(home));
    if let Some(KeyCheck::Unknown(why)) = &checked {
        text += &format!("Warning: castor could not check the key: {}\n", text::end_sentence(why));
    }
    if let Some((name, _)) = env.first_set(VARIABLES) {
        text += &format!("Note: {name} is set in this environment, and castor uses that key.\n");
    }
    text += "Try: castor run \"What does this folder do?\"\n";
    Ok((0, text))
}

const VARIABLES: &[&str] = &["GEMINI_API_KEY", "GOOGLE_API_KEY"];

fn read_piped_key(streams: &mut AuthStreams<'_>) -> Result<SecretString, String> {
    let mut text = String::new();
    let read = (&mut streams.stdin).take(MAX_KEY).read_to_string(&mut text);
    read.map_err(|it| format!("the key could not be read from stdin: {it}"))?;
    Ok(text.into())
}

fn ask_for_key(streams: &mut AuthStreams<'_>) -> Result<SecretString, String> {
    let AuthStreams { stdin, err, .. } = streams;
    _ = writeln!(err, "Get a free key at {GET_A_KEY}");
    let line = hidden_input::read_line(stdin, err, "Gemini API key (it is not shown): ");
    let line = line.map_err(|it| format!("the key could not be read: {it}"))?;
    line.ok_or_else(|| "cancelled; nothing was stored".to_owned())
}

fn logout(env: &Env, home: &AbsPath) -> VerbOutcome {
    let place = credentials::place(home);
    let had_key = credentials::forget(home).map_err(|it| it.to_string())?;
    let what = if had_key { "Removed the key from" } else { "No key was stored in" };
    let mut text = format!("{what} {place}.\n");
    if let Some((name, _)) = env.first_set(VARIABLES) {
        text += &format!("Note: {name} is still set in this environment.\n");
    }
    Ok((0, text))
}

/// ` that ends in 1234`, for people who have several.
fn end_of(key: &SecretString) -> String {
    last_four(key).map_or(String::new(), |it| format!(" that ends in {it}"))
}

fn last_four(key: &SecretString) -> Option<&str> {
    key_end(key.expose_secret())
}

#[cfg(test)]
mod tests;
