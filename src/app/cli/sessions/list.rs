//! `castor sessions list`: a table for people, JSON for programs.

use serde_json::json;

use super::{CommandContext, CommandError};
use crate::{app::cli::terminal_text, base::path::AbsPath, base::text, wire::acp::session::iso_time};

/// Characters of a title in the table.
const MAX_TITLE: usize = 60;

/// `None`: of all folders.
pub fn list(context: &mut CommandContext<'_>, cwd: Option<&AbsPath>, as_json: bool) -> Result<(), CommandError> {
    let all = context.store.list(cwd);
    // Where nothing was asked there is nothing to come back to.
    let worth: Vec<_> = all.into_iter().filter(|it| cwd.is_none() || it.has_prompts).collect();
    if as_json {
        let rows: Vec<_> = worth
            .iter()
            .map(|it| {
                json!({"sessionId": it.id, "cwd": it.cwd, "title": it.title, "updatedAt": iso_time(it.updated_ms)})
            })
            .collect();
        return Ok(writeln!(context.out, "{}", serde_json::Value::from(rows))?);
    }
    if let (true, Some(cwd)) = (worth.is_empty(), cwd) {
        return Ok(writeln!(context.out, "No session of {cwd}; --all lists those of all folders")?);
    }
    for it in &worth {
        let time = iso_time(it.updated_ms);
        let time = time.get(..16).unwrap_or_default().replace('T', " ");
        let title = match (&it.title, it.has_prompts) {
            (Some(title), _) => text::first_line(&terminal_text::clean(title), MAX_TITLE),
            (None, true) => "(no title)".to_owned(),
            (None, false) => "(nothing was asked)".to_owned(),
        };
        let place =
            if cwd.is_none() { format!("  {}", terminal_text::clean(&it.cwd.to_string())) } else { String::new() };
        writeln!(context.out, "{}  {time}  {title}{place}", it.id)?;
    }
    Ok(())
}
