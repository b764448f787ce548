//! The parser of shell lines, with the scripts and commands nested in them.

use super::{
    line::{CommandRole, MAX_BYTES, MAX_DEPTH, Script, ShellCommand, ShellLine},
    opaque::hides_what_runs,
    walk::{WalkResult, walk},
    words::{Opaque, ShellWord},
    wrappers::{InnerCommand, inner_command},
};

/// More words are not listed for wrappers: `env env env … ls` has the rest of them for each.
const MAX_WRAPPED: usize = 16 * 1024;
const TOO_MANY: Opaque = Opaque("it has too many commands");

/// The commands that `text` would run, or the reason why it is opaque.
pub fn parse(text: &str) -> ShellLine {
    let mut reader = LineReader::default();
    let why = match reader.add(text, 0) {
        Err(it) => Some(it.0),
        Ok(()) => reader.why,
    };
    let mut script = reader.script;
    // `> x`
    if script.commands.is_empty() && (!script.redirects.is_empty() || script.assigns) {
        script.commands.push(ShellCommand::new(vec![ShellWord::from_literal(":")], ":".to_owned()));
    }
    match why.or(script.commands.is_empty().then_some("it has no command in it")) {
        Some(why) => ShellLine::Opaque { why, seen: script },
        None => ShellLine::Plain(script),
    }
}

#[derive(Default)]
struct LineReader {
    script: Script,
    /// The first reason why the line is opaque.
    why: Option<&'static str>,
    /// How many words wrappers run.
    n_wrapped: usize,
}

impl LineReader {
    fn add(&mut self, text: &str, depth: usize) -> Result<(), Opaque> {
        if depth > MAX_DEPTH {
            return Err(Opaque("scripts are nested too deep"));
        }
        check_characters(text)?;
        let WalkResult { script, why } = walk(text)?;
        self.why = self.why.or(why);
        let before = self.script.commands.len();
        self.script.assigns |= script.assigns;
        self.script.substitutes |= script.substitutes;
        self.script.redirects.extend(script.redirects.into_iter().map(|mut it| {
            it.commands_before += before;
            it
        }));
        self.script.commands.extend(script.commands);
        let mut at = before;
        let end = self.script.commands.len();
        while at < end {
            self.unwrap_at(at, depth)?;
            at += 1;
        }
        Ok(())
    }

    /// Lists what the command at `at` runs, and what that runs.
    fn unwrap_at(&mut self, at: usize, depth: usize) -> Result<(), Opaque> {
        let mut at = at;
        loop {
            let Some(command) = self.script.commands.get_mut(at) else { return Ok(()) };
            if hides_what_runs(command) {
                let why = match command.name() {
                    None => "its program is only known when it runs",
                    Some(_) => "it runs what its words do not plainly say",
                };
                self.why = self.why.or(Some(why));
            }
            match inner_command(command) {
                Err(it) => {
                    self.why = self.why.or(Some(it.0));
                    return Ok(());
                }
                Ok(InnerCommand::Nothing) => return Ok(()),
                Ok(InnerCommand::Words(words, role)) => {
                    command.role = role;
                    self.n_wrapped += words.len();
                    if self.script.commands.len() > MAX_BYTES || self.n_wrapped > MAX_WRAPPED {
                        return Err(TOO_MANY);
                    }
                    let text = words.iter().map(|it| it.text.as_str()).collect::<Vec<_>>().join(" ");
                    self.script.commands.push(ShellCommand::new(words, text));
                    at = self.script.commands.len() - 1;
                }
                Ok(InnerCommand::Script(text)) => {
                    command.role = CommandRole::Transparent;
                    return if text.trim().is_empty() { Ok(()) } else { self.add(&text, depth + 1) };
                }
            }
        }
    }
}

/// Characters on which readers disagree.
fn check_characters(text: &str) -> Result<(), Opaque> {
    if text.len() > MAX_BYTES {
        return Err(Opaque("it is too long"));
    }
    // bash splits words at blanks, tabs and newlines only; a grammar may split at more. Invisible ones also make
    // people approve something other than what they see.
    let odd = |it: char| {
        !matches!(it, ' ' | '\t' | '\n')
            && (it.is_control()
                || it.is_whitespace()
                || matches!(it, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}'))
    };
    // Several signs make one picture, with such a one between them.
    let picture = |it: &str| it.chars().next().is_some_and(|it| it >= '\u{2190}');
    let joined = |it: &str| it.split('\u{200d}').skip(1).all(picture);
    let shown = if joined(text) { text.replace('\u{200d}', "") } else { text.to_owned() };
    match shown.chars().any(odd) {
        true => Err(Opaque("it has control characters or unusual blanks in it")),
        false => Ok(()),
    }
}
