//! `castor sessions copy`: sessions move between files and a database, line by line.

use super::{CommandContext, CommandError, CopyTarget, find};
use castor_base::ids::SessionId;
use castor_store::sessions::{CopyOutcome, SessionStore};

/// Copies them with their sub-agents. What is there already stays.
///
/// # Errors
/// Without a database; a session that another process has open, or that is there with other content.
pub fn copy(
    context: &mut CommandContext<'_>,
    (words, all): (&[String], bool),
    to: CopyTarget,
) -> Result<(), CommandError> {
    if !context.store.is_shared() {
        let why = "set CASTOR_STORE to postgres://USER@HOST/DATABASE; sessions are copied from there or to there";
        return Err(CommandError::input(why));
    }
    let files = SessionStore::new(context.store.home().clone());
    let (source, target) = match to {
        CopyTarget::Files => (context.store, &files),
        CopyTarget::Postgres => (&files, context.store),
    };
    let ids = wanted(context, source, (words, all))?;
    let mut n_failed = 0;
    for id in &ids {
        let line = match source.copy_to(target, id) {
            Ok(CopyOutcome::New) => format!("Copied session {id}"),
            Ok(CopyOutcome::Exists) => format!("Session {id} is there already; nothing was changed"),
            Ok(CopyOutcome::Conflict) => {
                n_failed += 1;
                format!("Session {id} is there with other content; delete one of the two first")
            }
            Err(it) => {
                n_failed += 1;
                format!("Session {id} was not copied: {it}")
            }
        };
        writeln!(context.out, "{line}")?;
    }
    match n_failed {
        0 => Ok(()),
        n => Err(CommandError::new(format!("{n} of {} sessions were not copied", ids.len()))),
    }
}

fn wanted(
    context: &mut CommandContext<'_>,
    source: &SessionStore,
    (words, all): (&[String], bool),
) -> Result<Vec<SessionId>, CommandError> {
    if all {
        return Ok(source.session_ids()?);
    }
    let (now, look) = (context.now, context.look.clone());
    let of_source = CommandContext { store: source, cwd: context.cwd, now, out: &mut *context.out, ask: None, look };
    words.iter().map(|it| find(&of_source, it)).collect()
}
