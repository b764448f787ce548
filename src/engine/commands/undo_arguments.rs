//! The slash commands `/undo`, `/redo`, `/rewind`, `/diff` and `/checkpoints`: their arguments and the list.

use std::fmt::Write;

use super::{CommandTurn, undo};
use crate::{
    record::{Checkpoint, Record, Step, checkpoints::merge_changes},
    turn::Spec,
};
use castor_base::{
    checkpoint::{ChangeKind, Changes, Rewinds},
    path::AbsPath,
    path_text,
};

/// Prompts that are listed, the last ones; files of one of them.
const LISTED: usize = 50;
const FILES: usize = 10;
/// Turns that are taken back at once.
const MAX_TURNS: usize = 1_000;

pub(super) fn undo(args: &str) -> Result<CommandTurn, &'static str> {
    let turns = if args.is_empty() { Some(1) } else { args.parse().ok().filter(|it| (1..=MAX_TURNS).contains(it)) };
    let wish = turns.map(|turns| undo::UndoRequest::Undo { turns });
    wish.map(CommandTurn::Undo)
        .ok_or("`/undo` restores the files that the last turn changed, `/undo 3` those of the last three.")
}

pub(super) fn redo(args: &str) -> Result<CommandTurn, &'static str> {
    match args {
        "" => Ok(CommandTurn::Undo(undo::UndoRequest::Redo)),
        _ => Err("`/redo` takes the last `/undo` or `/rewind` back."),
    }
}

pub(super) fn diff(args: &str) -> Result<CommandTurn, &'static str> {
    match args {
        "" => Ok(CommandTurn::Undo(undo::UndoRequest::Diff)),
        _ => Err("`/diff` shows what this session changed in files."),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "a row of the table")]
pub(super) fn looked(args: &str) -> Result<CommandTurn, &'static str> {
    Ok(CommandTurn::Undo(undo::UndoRequest::Looked { place: args.to_owned() }))
}

pub(super) fn rewind(args: &str) -> Result<CommandTurn, &'static str> {
    let (to, what) = match args.rsplit_once(char::is_whitespace) {
        Some((to, last)) => Rewinds::parse(last).map_or((args, Rewinds::Both), |it| (to.trim(), it)),
        None => (args, Rewinds::Both),
    };
    if to.is_empty() || Rewinds::parse(to).is_some() {
        return Err(
            "`/rewind 2` goes back to before the second prompt of `/checkpoints`. `/rewind 2 files` keeps the conversation, `/rewind 2 conversation` keeps the files.",
        );
    }
    Ok(CommandTurn::Undo(undo::UndoRequest::Rewind { to: to.to_owned(), what }))
}

/// Every prompt with its number, and what its turn changed.
pub(super) fn list(step: &mut Step<'_>, spec: &Spec, _: &str) -> String {
    let record = &*step.record;
    if record.checkpoints().prompts().is_empty() {
        return "Nothing was said in this session yet.".to_owned();
    }
    match spec.toolbox.checkpoints {
        true => describe_checkpoints(record, step.now.unix_ms, "/"),
        false => format!("{}\n{}", rows(record, step.now.unix_ms), undo::CHECKPOINTS_OFF),
    }
}

/// The same with the ways back; `verb`: what stands before their names where they are typed.
pub fn describe_checkpoints(record: &Record, now_ms: u64, verb: &str) -> String {
    let rows = rows(record, now_ms);
    let how = "takes the last changes back,";
    let mut res = format!("{rows}\n`{verb}undo` {how} `{verb}rewind NUMBER` goes back to before a prompt.");
    if record.checkpoints().all().iter().any(|it| it.call.is_none() && !it.is_undone) {
        res += &format!(" `{verb}rewind ID` restores the files that changed in the background, and later ones.");
    }
    res
}

fn rows(record: &Record, now_ms: u64) -> String {
    let turns = record.checkpoints().turns();
    let skipped = turns.len().saturating_sub(LISTED);
    let mut res = String::new();
    for (n, turn) in turns.iter().enumerate().skip(skipped) {
        let (calls, aside): (Vec<_>, Vec<_>) = turn.checkpoints.iter().copied().partition(|it| it.call.is_some());
        let is_undone = !calls.is_empty() && calls.iter().all(|it| it.is_undone);
        let mark = match (is_undone, turn.prompt.is_rewound) {
            (true, _) => " (undone)",
            (_, true) => " (no longer part of the conversation)",
            _ => "",
        };
        // Else there is nothing to go back to, and nothing to take back.
        if !turn.prompt.is_rewound || !(calls.is_empty() || is_undone) {
            let age = age(now_ms.saturating_sub(turn.prompt.at_ms));
            _ = writeln!(res, "{}. {} ({age}){mark}", n + 1, turn.prompt.words);
            res += &files(&merge_changes(calls), &record.cwd);
        }
        aside.iter().filter(|it| !it.is_undone).for_each(|it| res += &beside(it, record, now_ms));
    }
    res
}

/// What was taken beside what ran in the background: undoing turns leaves it alone.
fn beside(it: &Checkpoint, record: &Record, now_ms: u64) -> String {
    let age = age(now_ms.saturating_sub(it.at_ms));
    format!("- `{}` in the background ({age})\n{}", it.id, files(&merge_changes([it]), &record.cwd))
}

/// What a turn changed, a line each.
fn files(changes: &Changes, cwd: &AbsPath) -> String {
    let mut res = String::new();
    for it in changes.files.iter().take(FILES) {
        let path = path_text::to_text(it.path.strip_prefix(cwd.as_path()).unwrap_or(&it.path));
        let what = match it.change {
            ChangeKind::Added => "new ",
            ChangeKind::Changed => "",
            ChangeKind::Removed => "deleted ",
        };
        let lines = match (it.added, it.removed) {
            // A folder, or no text.
            (0, 0) => String::new(),
            (added, removed) => format!(" +{added} -{removed}"),
        };
        _ = writeln!(res, "   - {what}`{path}`{lines}");
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
