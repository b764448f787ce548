//! Flags of `castor run` about what is asked and what the answer looks like: images, instructions, a schema, events.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::cli::terminal_text::clean_line;
use castor_base::{client_settings::MAX_CLIENT_PROMPT, path::AbsPath};
use castor_client::{failure::Failure, opening::Instructions};
use castor_hands::disk;

const MAX_NAME: usize = 300;

#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct RunInputArgs {
    /// Attach an image, a PDF or audio; may be repeated
    #[arg(long, value_name = "FILE")]
    pub image: Vec<PathBuf>,
    /// Instructions in place of the agent's own; @FILE reads them
    #[arg(long, value_name = "TEXT")]
    pub system_prompt: Option<String>,
    /// Instructions besides the agent's own
    #[arg(long, value_name = "TEXT", hide_short_help = true, conflicts_with = "system_prompt")]
    pub append_system_prompt: Option<String>,
    /// The answer is JSON that fits this JSON Schema
    #[arg(long, value_name = "FILE|JSON")]
    pub json_schema: Option<String>,
    /// text, or events: each user message on stdin is a prompt
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t, hide_possible_values = true)]
    pub input_format: InputFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum InputFormat {
    /// All of stdin is one text
    #[default]
    Text,
    /// Lines with events, as `-o events` writes them
    Events,
}

impl RunInputArgs {
    /// # Errors
    /// For a file that cannot be read, and instructions that are empty or too long.
    pub fn instructions(&self, cwd: &AbsPath) -> Result<Option<Instructions>, Failure> {
        let (flag, given) = match (&self.system_prompt, &self.append_system_prompt) {
            (Some(it), _) => ("--system-prompt", it),
            (None, Some(it)) => ("--append-system-prompt", it),
            (None, None) => return Ok(None),
        };
        let text = match given.strip_prefix('@') {
            Some(name) => read_text(flag, name, cwd, MAX_CLIENT_PROMPT)?,
            None => given.clone(),
        };
        match text.len() {
            _ if text.trim().is_empty() => Err(Failure::input(format!("{flag} is empty"))),
            it if it > MAX_CLIENT_PROMPT => {
                Err(Failure::input(format!("{flag} has {it} bytes; at most {MAX_CLIENT_PROMPT} are possible")))
            }
            _ => Ok(Some(Instructions { text, is_override: self.system_prompt.is_some() })),
        }
    }
}

/// A text file that a flag names, as seen from the working folder.
///
/// # Errors
/// When it is not there, no text, or too long.
pub fn read_text(flag: &str, name: &str, cwd: &AbsPath, max: usize) -> Result<String, Failure> {
    let shown = clean_line(name, MAX_NAME);
    let bytes = disk::read_head(&cwd.join(name), max as u64 + 1)
        .map_err(|it| Failure::input(format!("{flag}: {shown} cannot be read: {it}")))?;
    if bytes.len() > max {
        return Err(Failure::input(format!("{flag}: {shown} has more than {max} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| Failure::input(format!("{flag}: {shown} is not UTF-8")))
}
