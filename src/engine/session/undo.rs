//! /undo, /redo, /rewind, /diff and /checkpoints: how they are read, and the list.

use std::fmt::Write;

use crate::{
    base::{
        checkpoint::{ChangeKind, Changes, Rewinds},
        path::AbsPath,
    },
    engine::{
        record::{Step, checkpoints::merged},
        turn::{Errand, Spec, undo},
    },
};

/// Prompts that are listed, the last ones; files of one of them.
const LISTED: usize = 50;
const FILES: usize = 10;
/// Turns that are taken back at once.
const MAX_TURNS: usize = 1_000;

pub(super) fn undo(args: &str) -> Result<Errand, &'static str> {
    let turns = if args.is_empty() { Some(1) } else { args.parse().ok().filter(|it| (1..=MAX_TURNS).contains(it)) };
    let wish = turns.map(|turns| undo::Wish::Undo { turns });
    wish.map(Errand::GoBack)
        .ok_or("`/undo` takes back what the last turn changed in files, `/undo 3` what the last three did.")
}

pub(super) fn redo(args: &str) -> Result<Errand, &'static str> {
    match args {
        "" => Ok(Errand::GoBack(undo::Wish::Redo)),
        _ => Err("`/redo` takes the last `/undo` or `/rewind` back."),
    }
}

pub(super) fn diff(args: &str) -> Result<Errand, &'static str> {
    match args {
        "" => Ok(Errand::GoBack(undo::Wish::Diff)),
        _ => Err("`/diff` shows what this session changed in files."),
    }
}

pub(super) fn rewind(args: &str) -> Result<Errand, &'static str> {
    let (to, what) = match args.rsplit_once(char::is_whitespace) {
        Some((to, last)) => Rewinds::parse(last).map_or((args, Rewinds::Both), |it| (to.trim(), it)),
        None => (args, Rewinds::Both),
    };
    if to.is_empty() || Rewinds::parse(to).is_some() {
        return Err(
            "`/rewind 2` goes back to before the second prompt of `/checkpoints`; `/rewind 2 files` leaves the \
                    conversation as it is, `/rewind 2 conversation` the files.",
        );
    }
    Ok(Errand::GoBack(undo::Wish::Rewind { to: to.to_owned(), what }))
}

/// Every prompt with its number, and what its turn changed.
pub(super) fn list(step: &mut Step<'_>, spec: &Spec, _: &str) -> String {
    let record = &*step.record;
    let turns = record.checkpoints().turns();
    if turns.is_empty() {
        return "Nothing was said in this session yet.".to_owned();
    }
    let skipped = turns.len().saturating_sub(LISTED);
    let mut res = String::new();
    for (n, turn) in turns.iter().enumerate().skip(skipped) {
        let is_undone = !turn.checkpoints.is_empty() && turn.checkpoints.iter().all(|it| it.is_undone);
        // Nothing to go back to, and nothing to take back.
        if turn.prompt.is_away && (turn.checkpoints.is_empty() || is_undone) {
            continue;
        }
        let mark = match (is_undone, turn.prompt.is_away) {
            (true, _) => " (undone)",
            (_, true) => " (no longer part of the conversation)",
            _ => "",
        };
        let age = age(step.now.unix_ms.saturating_sub(turn.prompt.at_ms));
        _ = writeln!(res, "{}. {} ({age}){mark}", n + 1, turn.prompt.words);
        res += &files(&merged(turn.checkpoints.iter().copied()), &record.cwd);
    }
    if !spec.toolbox.checkpoints {
        return format!("{res}\n{}", undo::OFF);
    }
    res + "\n`/undo` takes the last changes back, `/rewind NUMBER` goes back to before a prompt."
}

/// What a turn changed, a line each.
fn files(changes: &Changes, cwd: &AbsPath) -> String {
    let mut res = String::new();
    for it in changes.files.iter().take(FILES) {
        let path = it.path.strip_prefix(cwd.as_path()).unwrap_or(&it.path).display();
        let what = match it.change {
            ChangeKind::Added => "new ",
            ChangeKind::Changed => "",
            ChangeKind::Removed => "deleted ",
        };
        _ = writeln!(res, "   - {what}`{path}` +{} -{}", it.added, it.removed);
    }
    let more = changes.n_files.saturating_sub(changes.files.len().min(FILES) as u64);
    if more > 0 {
        _ = writeln!(res, "   - and {more} more");
    }
    res
}

fn age(ms: u64) -> String {
    match ms / 60_000 {
        0 => "just now".to_owned(),
        it @ 1..60 => format!("{it} min ago"),
        it @ 60..1_440 => format!("{} h ago", it / 60),
        it => format!("{} d ago", it / 1_440),
    }
}
