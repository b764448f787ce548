//! Sessions of a folder by number, as Gemini CLI counts them: the oldest is 1. A number stays with its session.

use super::{CommandContext, CommandError, export::plain_title, time};
use crate::cli::terminal_text::clean_line;
use castor_store::sessions::SessionSummary;

const MAX_TITLE: usize = 100;

/// A line for each session: `  1. Title (2 h ago) [ID]`.
pub fn list(context: &mut CommandContext<'_>) -> Result<(), CommandError> {
    let all = sessions(context)?;
    let cwd = clean_line(&context.cwd.to_string(), MAX_TITLE);
    if all.is_empty() {
        return Ok(writeln!(context.out, "No session of {cwd}")?);
    }
    writeln!(context.out, "Sessions of {cwd} ({}):", all.len())?;
    for (at, it) in all.iter().enumerate() {
        let title = it.title.as_deref().map(|it| clean_line(&plain_title(it), MAX_TITLE));
        let title = title.unwrap_or_else(|| "(no title)".to_owned());
        let when = time::ago(it.updated_ms, context.now.unix_ms, &context.look.zone);
        writeln!(context.out, "  {}. {title} ({when}) [{}]", at + 1, it.id)?;
    }
    Ok(())
}

/// Removes a session by its number or id, without a question.
pub fn delete(context: &mut CommandContext<'_>, word: &str) -> Result<(), CommandError> {
    let id = find(context, word)?.unwrap_or_else(|| word.to_owned());
    super::delete(context, &[id], true)
}

/// The id of the session with this number; `None`: the word is none, or a session is named so.
///
/// # Errors
/// No session has this number.
pub fn find(context: &CommandContext<'_>, word: &str) -> Result<Option<String>, CommandError> {
    let word = word.trim();
    let Some(n) = word.parse::<usize>().ok().filter(|_| word.len() < super::MIN_NAMED) else { return Ok(None) };
    let all = sessions(context)?;
    if all.iter().any(|it| it.id.as_str() == word) {
        return Ok(None);
    }
    let found = n.checked_sub(1).and_then(|it| all.get(it));
    let none = || {
        let count = match all.len() {
            0 => format!("there is no session of {}", context.cwd),
            1 => format!("{} has one session", context.cwd),
            n => format!("{} has {n} sessions", context.cwd),
        };
        CommandError::input(format!("no session has the number {word}: {count}; --list-sessions shows their numbers"))
    };
    found.map(|it| Some(it.id.to_string())).ok_or_else(none)
}

/// Those of the folder in which something was asked, oldest first.
fn sessions(context: &CommandContext<'_>) -> Result<Vec<SessionSummary>, CommandError> {
    let mut all = context.store.list(Some(context.cwd))?;
    all.retain(|it| it.has_prompts);
    all.sort_by(|a, b| (a.created_ms, &a.id).cmp(&(b.created_ms, &b.id)));
    Ok(all)
}
