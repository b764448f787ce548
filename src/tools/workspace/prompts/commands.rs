//! One file of a command: Gemini CLI's TOML, or Claude Code's Markdown.

use serde::Deserialize;

use super::{extension, lenient_keys, plain_line};
use crate::workspace::front_matter::{self, FileFault};
use castor_base::{
    agent::AgentOrigin,
    file_prompt::{CommandFormat, FileCommand},
    text,
};

/// Longest descriptions and hints, in characters.
const MAX_DESCRIPTION: usize = 100;
const MAX_HINT: usize = 60;
/// Longest part of a name, in characters.
const MAX_SEGMENT: usize = 50;

/// Keys of Claude Code that change nothing here, and why.
const UNUSED: &[(&str, &str)] =
    &[("allowed-tools", "what is allowed is yours to say: rules and answers of your own count")];
const KNOWN: &[&str] = &["description", "argument-hint", "model"];

#[derive(Deserialize)]
struct TomlKeys {
    prompt: String,
    #[serde(default)]
    description: Option<String>,
}

/// What a command is called whose file lies there in its folder.
pub fn name_of(path: &str, format: CommandFormat) -> String {
    let path = path.strip_suffix(extension(format)).unwrap_or(path);
    let segment = |it: &str| {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "_.-".contains(c) { c } else { '_' };
        let name: String = it.chars().map(plain).collect();
        match name.len() > MAX_SEGMENT {
            true => format!("{}...", text::head(&name, MAX_SEGMENT - 3)),
            false => name,
        }
    };
    path.split('/').map(segment).collect::<Vec<_>>().join(":")
}

/// Reads one file. The faults beside a command are what of the file does not count.
///
/// # Errors
/// The first fault.
pub fn parse(
    bytes: &[u8],
    name: &str,
    format: CommandFormat,
    origin: AgentOrigin,
) -> Result<(FileCommand, Vec<FileFault>), FileFault> {
    let whole = str::from_utf8(bytes).map_err(|_| FileFault::new(None, "is not UTF-8"))?;
    let mut notes = Vec::new();
    let mut res = FileCommand {
        name: name.to_owned(),
        description: String::new(),
        hint: String::new(),
        origin,
        format,
        model: None,
        prompt: "".into(),
    };
    let prompt = match format {
        CommandFormat::Toml => {
            let keys = toml_keys(whole, &mut notes)?;
            res.description = keys.description.unwrap_or_default();
            keys.prompt
        }
        CommandFormat::Markdown => markdown(whole, &mut res, &mut notes)?,
    };
    // What nobody sees is not for the model either.
    let prompt = text::strip_hidden(prompt.trim());
    if prompt.is_empty() {
        return Err(FileFault::new(None, "has no prompt"));
    }
    if res.description.trim().is_empty() {
        res.description = text::first_line(prompt.trim_start_matches('#'), MAX_DESCRIPTION);
    }
    (res.description, res.hint) = (plain_line(&res.description, MAX_DESCRIPTION), plain_line(&res.hint, MAX_HINT));
    let takes_args = match format {
        CommandFormat::Toml => prompt.contains("{{args}}"),
        CommandFormat::Markdown => prompt.contains('$'),
    };
    if res.hint.is_empty() && takes_args {
        res.hint = "arguments".to_owned();
    }
    res.prompt = prompt.into();
    Ok((res, notes))
}

fn toml_keys(whole: &str, notes: &mut Vec<FileFault>) -> Result<TomlKeys, FileFault> {
    let fault = |it: toml::de::Error| {
        let before = it.span().and_then(|span| whole.get(..span.start)).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(1, |it| it.chars().count() + 1);
        FileFault::new(Some((line, column)), it.message().to_owned())
    };
    let table: toml::Table = toml::from_str(whole).map_err(fault)?;
    for key in table.keys().filter(|it| !["prompt", "description"].contains(&it.as_str())) {
        notes.push(FileFault::new(
            None,
            format!("{} means nothing here; known are prompt and description", plain_line(key, 60)),
        ));
    }
    toml::from_str(whole).map_err(fault)
}

/// Fills in what the front matter says; returns the prompt.
fn markdown(whole: &str, command: &mut FileCommand, notes: &mut Vec<FileFault>) -> Result<String, FileFault> {
    let start = whole.strip_prefix('\u{feff}').unwrap_or(whole);
    if start.lines().next().is_none_or(|it| it.trim_end() != "---") {
        return Ok(start.to_owned());
    }
    let (yaml, body) = front_matter::split(whole)?;
    let keys = lenient_keys::read(yaml)?;
    let line_of = |key: &str| yaml.lines().position(|it| it.starts_with(key)).map(|it| (it + 1, 1));
    for key in keys.keys().filter(|it| !KNOWN.contains(&it.as_str())) {
        let why = UNUSED.iter().find(|(it, _)| it == key).map_or("castor does not know it", |it| it.1);
        notes.push(FileFault::new(line_of(key), format!("{} has no effect: {why}", plain_line(key, 60))));
    }
    let take = |key: &str| keys.get(key).cloned().unwrap_or_default();
    (command.description, command.hint) = (take("description"), take("argument-hint"));
    command.model = Some(take("model")).filter(|it| !it.is_empty() && it != "inherit");
    Ok(body.to_owned())
}
