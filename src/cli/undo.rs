//! `castor undo`, `redo`, `rewind` and `diff`: restores and compares files that a session changed.

use std::collections::BTreeSet;

use clap::{Args, ValueEnum};
use serde_json::Value;

use super::{
    render::{
        ansi::paint,
        text::{Color, Line, Style},
    },
    sessions::{CommandContext, CommandError, find},
    terminal_text::escape_line,
};
use crate::cli::render::words::count;
use castor_agent::server::tasks::{checkpoint_tasks::unified_diff, looks};
use castor_base::{
    checkpoint::{OnConflict, RestoreOrder, RestoreResult, Rewinds},
    event::{EventKind, Location, ToolDisplay, ToolProgress},
    ids::{CheckpointId, MIN_NAMED, MessageId, SessionId},
    log::{Entry, Fact},
    path::AbsPath,
    tool::ToolKind,
};
use castor_engine::{
    commands::{undo, undo_arguments::describe_checkpoints},
    policy,
    record::Record,
    step::RewindTarget,
    turn::checkpoints,
};
use castor_hands::{
    checkpoints::{Checkpoints, Limits},
    process::surroundings,
    provenance::Provenance,
};
use castor_store::sessions::{SessionLog, SessionSummary};

/// Sessions of the folder that are looked into for one that changed files, newest first.
const MAX_SEARCHED: usize = 100;
const CHECKPOINTS_OFF: &str = "checkpoints were off (`general.checkpointing.enabled`), or could not be taken";

/// Takes back what a session changed in files.
#[derive(Args, Clone, Debug)]
pub struct UndoArgs {
    /// How many turns [default: the last one that changed files]
    #[arg(value_name = "N")]
    pub turns: Option<String>,
    /// Its id, also the short one, or `latest` [default: the last one of this folder that changed files]
    #[arg(value_name = "SESSION")]
    pub session: Option<String>,
    #[command(flatten)]
    pub conflicts: ConflictArgs,
}

/// Takes the last undo or rewind of files back.
#[derive(Args, Clone, Debug)]
pub struct RedoArgs {
    /// As of undo
    #[arg(value_name = "SESSION")]
    pub session: Option<String>,
    #[command(flatten)]
    pub conflicts: ConflictArgs,
}

/// Goes back to before a prompt.
#[derive(Args, Clone, Debug)]
pub struct RewindArgs {
    /// Its number, its id, or words of it; or a checkpoint's id [default: lists them]
    #[arg(value_name = "MESSAGE|NUMBER")]
    pub to: Option<String>,
    /// As of undo
    #[arg(value_name = "SESSION")]
    pub session: Option<String>,
    /// both, files, conversation [default: both]
    #[arg(long, value_name = "WHAT", value_parser = |it: &str| Rewinds::parse(it).ok_or("say both, files or conversation"))]
    pub what: Option<Rewinds>,
    #[command(flatten)]
    pub conflicts: ConflictArgs,
}

/// Shows what a session changed in files.
#[derive(Args, Clone, Debug)]
pub struct DiffArgs {
    /// As of undo
    #[arg(value_name = "SESSION")]
    pub session: Option<String>,
}

#[derive(Args, Clone, Debug)]
pub struct ConflictArgs {
    /// Of files that somebody else changed: fail, keep, restore [default: ask]
    #[arg(long, value_name = "WHAT", value_enum, hide_possible_values = true)]
    pub on_conflict: Option<Conflicts>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Conflicts {
    /// Change nothing
    Fail,
    /// Leave them as they are, restore the rest
    Keep,
    /// Restore them, too
    Restore,
}

impl From<Conflicts> for OnConflict {
    fn from(it: Conflicts) -> Self {
        match it {
            Conflicts::Fail => Self::Fail,
            Conflicts::Keep => Self::Keep,
            Conflicts::Restore => Self::Restore,
        }
    }
}

/// The command: undo, redo, rewind or diff.
#[derive(Clone, Debug)]
pub enum UndoVerb {
    Undo(UndoArgs),
    Redo(RedoArgs),
    Rewind(RewindArgs),
    Diff(DiffArgs),
}

impl UndoVerb {
    fn session(&self) -> Option<&str> {
        match self {
            Self::Undo(it) => it.turns_and_session().1,
            Self::Redo(RedoArgs { session, .. })
            | Self::Rewind(RewindArgs { session, .. })
            | Self::Diff(DiffArgs { session }) => session.as_deref(),
        }
    }

    fn on_conflict(&self) -> Option<OnConflict> {
        let it = match self {
            Self::Undo(it) => it.conflicts.on_conflict,
            Self::Redo(it) => it.conflicts.on_conflict,
            Self::Rewind(it) => it.conflicts.on_conflict,
            Self::Diff(_) => None,
        };
        it.map(Into::into)
    }
}

impl UndoArgs {
    /// How many turns, and of which session: a lone word that is no number is a session.
    fn turns_and_session(&self) -> (Option<usize>, Option<&str>) {
        // As many digits may be a session's short id.
        let word = self.turns.as_ref().filter(|it| it.len() < MIN_NAMED);
        let number = word.and_then(|it| it.parse().ok().filter(|it| *it > 0));
        match (number, &self.session) {
            (None, None) => (None, self.turns.as_deref()),
            (number, session) => (number, session.as_deref()),
        }
    }
}

/// Does it. `choose` asks on the terminal what becomes of files that somebody else changed; `None`: nobody is there.
///
/// # Errors
/// With the line for stderr.
pub fn run(
    verb: &UndoVerb,
    context: &mut CommandContext<'_>,
    choose: Option<&mut dyn FnMut(&str) -> String>,
) -> Result<(), CommandError> {
    if let UndoVerb::Undo(args) = verb
        && let (None, Some(_), Some(word)) = (args.turns_and_session().0, &args.session, &args.turns)
    {
        return Err(CommandError::input(format!("{word} is no number of turns")));
    }
    if let UndoVerb::Undo(UndoArgs { turns: Some(word), .. }) = verb
        && (word.len() < MIN_NAMED && word.parse() == Ok(0_u64))
    {
        let why = format!("{word}: castor undo undoes the last turn; give a number from 1, or a session's id");
        return Err(CommandError::input(why));
    }
    let (id, guessed) = match verb.session() {
        Some(word) => (find(context, word)?, false),
        None => (last_changed(context, verb)?.id, true),
    };
    let (mut entries, log) = match verb {
        UndoVerb::Diff(_) | UndoVerb::Rewind(RewindArgs { to: None, .. }) => (context.store.read(&id)?, None),
        _ => context.store.open(&id).map(|(entries, log)| (entries, Some(log)))?,
    };
    let none = || CommandError::new(format!("session {id} has no log that can be read"));
    let record = Record::replay(&entries).ok_or_else(none)?;
    let checkpoints = Checkpoints::new(context.store.home(), &id, &record.roots, Limits::default());
    let label = label(&id, record.title.as_deref());
    if let UndoVerb::Diff(_) = verb {
        return show(context, &label, &record, &checkpoints);
    }
    let heading = if guessed { format!("Session {label}\n") } else { String::new() };
    let Some(log) = log else {
        write!(context.out, "{heading}")?;
        return Ok(writeln!(context.out, "{}", describe_checkpoints(&record, context.now.unix_ms, "castor "))?);
    };
    let route = route(verb, &label, &record, &entries);
    // The reason why nothing can be undone names the session itself.
    if route.is_ok() || !matches!(verb, UndoVerb::Undo(_)) {
        write!(context.out, "{heading}")?;
    }
    let route = route?;
    let again = matches!(verb, UndoVerb::Undo(_));
    let mut going = RewindSession { context, record: &record, checkpoints: &checkpoints, log, again };
    let done = if route.undo.is_empty() { Ok(true) } else { going.restore(route.undo, verb.on_conflict(), choose) };
    checkpoints.close();
    if let (true, Some(to)) = (done?, route.message) {
        entries = going.context.store.read(&id)?;
        going.rewind(&entries, to)?;
    }
    Ok(())
}

/// Its id, and what it is about.
fn label(id: &SessionId, title: Option<&str>) -> String {
    let title = title.map(|it| format!(" ({})", escape_line(it)));
    format!("{id}{}", title.unwrap_or_default())
}

/// The last session of the folder for which there is something to do. Of one that nothing was held of that is said: who
/// means it must not have an older one taken back.
fn last_changed(context: &CommandContext<'_>, verb: &UndoVerb) -> Result<SessionSummary, CommandError> {
    // A rewind may have taken all prompts away, and can be taken back.
    for it in context.store.list(Some(context.cwd))?.into_iter().take(MAX_SEARCHED) {
        let entries = context.store.read(&it.id)?;
        let Some(record) = Record::replay(&entries) else { continue };
        let talks = matches!(verb, UndoVerb::Rewind(RewindArgs { what: Some(Rewinds::Conversation), .. }));
        if !talks && lacks_checkpoint(&entries, &record) {
            let why = format!(
                "nothing was held of what session {} did last: {CHECKPOINTS_OFF}",
                label(&it.id, it.title.as_deref())
            );
            let how = "To undo turns of another session, name it; `castor sessions list` lists them";
            return Err(CommandError::new(format!("{why}. {how}")));
        }
        if (talks && it.has_prompts) || !record.checkpoints().is_empty() {
            return Ok(it);
        }
    }
    Err(CommandError::new(format!("no session of {} changed files that can be given back", context.cwd)))
}

/// Whether calls that may have changed files ran without a checkpoint, after all that can be taken back.
fn lacks_checkpoint(entries: &[Entry], record: &Record) -> bool {
    let (mut writers, mut held, mut res) = (BTreeSet::new(), BTreeSet::new(), false);
    for it in entries {
        match &it.fact {
            Fact::Checkpoint { id, call: Some(call), .. } => {
                held.insert(call);
                res &= record.checkpoints().get(id).is_none_or(|it| it.is_undone);
            }
            Fact::Event { event } => match &event.kind {
                EventKind::ToolRequest { request_id, args, display, .. } if may_write(record, args, display) => {
                    writers.insert(request_id);
                }
                EventKind::ToolUpdate { request_id, update: ToolProgress::Started { .. } } => {
                    res |= writers.contains(request_id) && !held.contains(request_id);
                }
                _ => (),
            },
            _ => (),
        }
    }
    res
}

/// Whether a call of castor's own tools may change files of the session, as far as the log says.
fn may_write(record: &Record, args: &Value, display: &ToolDisplay) -> bool {
    let is_in_root = |it: &Location| record.roots.iter().any(|root| it.path.is_within(root));
    match display.kind {
        ToolKind::Edit => display.locations.iter().any(is_in_root),
        ToolKind::Execute => {
            args.get("command").and_then(Value::as_str).is_some_and(|it| !policy::is_read_only_line(it))
        }
        _ => false,
    }
}

fn route(verb: &UndoVerb, label: &str, record: &Record, entries: &[Entry]) -> Result<undo::RestoreRoute, CommandError> {
    let checkpoints = record.checkpoints();
    let route = match verb {
        UndoVerb::Undo(args) => undo::RestoreRoute {
            undo: checkpoints.in_last_turns(args.turns_and_session().0.unwrap_or(1)),
            message: None,
        },
        UndoVerb::Redo(_) => undo::restore_route(record, &RewindTarget::Redo, Rewinds::Files)
            .map_err(|why| CommandError::new(why.to_string()))?,
        UndoVerb::Rewind(RewindArgs { to, what, .. }) => {
            let to = to.as_deref().unwrap_or_default();
            let route = undo::route_to(record, to, what.unwrap_or_default());
            route.map_err(|why| CommandError::input(format!("{why}; `castor rewind` lists them.")))?
        }
        UndoVerb::Diff(_) => undo::RestoreRoute { undo: checkpoints.in_session(), message: None },
    };
    match route.undo.is_empty() && route.message.is_none() {
        true if lacks_checkpoint(entries, record) => {
            Err(CommandError::new(format!("nothing was held: {CHECKPOINTS_OFF}")))
        }
        true if matches!(verb, UndoVerb::Undo(_)) => Err(CommandError::new(format!(
            "session {label} is undone already, or changed no file. `castor redo` brings it back; `castor sessions \
             list` shows other sessions"
        ))),
        true => Err(CommandError::new("there is nothing to undo: no file has changed since")),
        false => Ok(route),
    }
}

fn show(
    context: &mut CommandContext<'_>,
    label: &str,
    record: &Record,
    checkpoints: &Checkpoints,
) -> Result<(), CommandError> {
    let diffs = checkpoints.diff(&record.checkpoints().in_session()).map_err(|it| CommandError::new(it.to_string()))?;
    checkpoints.close();
    let provenance = Provenance::new(context.store.home(), &record.roots);
    let unseen = provenance.unseen().map_err(|it| CommandError::new(it.to_string()))?;
    let shown = unified_diff(&diffs, record.cwd.as_path(), &unseen);
    match &shown.text {
        it if it.is_empty() => {
            return Ok(writeln!(context.out, "Session {label}: nothing that it changed still stands.")?);
        }
        it if context.look.color => context.out.write_all(colored_diff(it).as_bytes())?,
        it => writeln!(context.out, "{it}")?,
    }
    context.out.flush()?;
    let printed = diffs.get(..shown.n_whole).unwrap_or_default();
    if !context.look.is_terminal || surroundings::descends_from_castor() {
        return Ok(());
    }
    looks::look_at_diffs(&provenance, printed).map_err(|it| CommandError::new(it.to_string()))?;
    let left = provenance.unseen().map_err(|it| CommandError::new(it.to_string()))?;
    if left.len() < unseen.len() {
        writeln!(
            context.out,
            "{} counts as looked at now.",
            count((unseen.len() - left.len()) as u64, "file", "files")
        )?;
    }
    Ok(())
}

fn colored_diff(diff: &str) -> String {
    let mut res = String::new();
    for it in diff.lines() {
        let style = match it.as_bytes() {
            [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => Style::BOLD,
            [b'+', ..] => Style::color(Color::Green),
            [b'-', ..] => Style::color(Color::Red),
            [b'@', ..] => Style::color(Color::Cyan),
            _ => Style::PLAIN,
        };
        paint(&Line::new(it, style), true, &mut res);
        res.push('\n');
    }
    res
}

/// A session that goes back.
struct RewindSession<'a, 'b> {
    context: &'a mut CommandContext<'b>,
    record: &'a Record,
    checkpoints: &'a Checkpoints,
    log: SessionLog,
    /// What was kept can be restored by the same verb.
    again: bool,
}

impl RewindSession<'_, '_> {
    /// False: the user wants nothing changed.
    fn restore(
        &mut self,
        undo: Vec<CheckpointId>,
        on_conflict: Option<OnConflict>,
        mut choose: Option<&mut dyn FnMut(&str) -> String>,
    ) -> Result<bool, CommandError> {
        let id = |n: u64| CheckpointId::from(self.context.now.id("k", n));
        let mut order = RestoreOrder { id: id(0), undo, on_conflict: on_conflict.unwrap_or_default(), paths: None };
        for n in 1.. {
            let outcome = self.checkpoints.restore(&order, &Default::default());
            let outcome = outcome.map_err(|it| CommandError::new(format!("nothing was restored: {it}")))?;
            let files = outcome.restored;
            if order.on_conflict != OnConflict::Fail || files.conflicts.is_empty() {
                self.write(checkpoints::restored_fact(order, &files))?;
                self.print_result(&files, &outcome.notes)?;
                return Ok(true);
            }
            let lines = self.conflicts(&files);
            let ask = choose.as_mut().filter(|_| on_conflict.is_none());
            let Some(ask) = ask else {
                let how = "--on-conflict keep leaves them, --on-conflict restore also restores them";
                let why = format!("these files are not as the agent left them; nothing was changed ({how}):\n{lines}");
                return Err(CommandError::new(why));
            };
            let question = format!(
                "These files are not as the agent left them:\n{lines}\n[k]eep them, [r]estore them as well, [q]uit?"
            );
            order.on_conflict = match ask(&question).trim() {
                "k" | "keep" => OnConflict::Keep,
                "r" | "restore" => OnConflict::Restore,
                _ => return Err(CommandError::new("nothing was changed")),
            };
            order.id = id(n);
        }
        Ok(false)
    }

    fn conflicts(&self, files: &RestoreResult) -> String {
        let line = |it: &castor_base::checkpoint::Conflict| format!("  {}: {}", self.display_path(&it.path), it.reason);
        files.conflicts.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    fn display_path(&self, path: &std::path::Path) -> String {
        let cwd: &AbsPath = &self.record.cwd;
        path.strip_prefix(cwd.as_path()).unwrap_or(path).display().to_string()
    }

    fn print_result(&mut self, files: &RestoreResult, notes: &[String]) -> Result<(), CommandError> {
        let mut text = String::new();
        if files.restored.is_empty() && files.conflicts.is_empty() {
            text += "All files are as they should be already\n";
        }
        let (present, removed) = files.present_and_removed();
        for (heading, paths) in [("Restored", present), ("Removed", removed)].iter().filter(|it| !it.1.is_empty()) {
            text += &format!("{heading}\n");
            paths.iter().for_each(|it| text += &format!("  {}\n", self.display_path(it)));
        }
        if !files.conflicts.is_empty() {
            text += &format!("Not restored\n{}\n", self.conflicts(files));
            if self.again {
                text += "The same command with --on-conflict restore also restores these\n";
            }
        }
        if !files.not_kept.is_empty() {
            text += "Changed and not held\n";
            files.not_kept.iter().for_each(|it| text += &format!("  {}\n", self.display_path(it)));
        }
        notes.iter().for_each(|it| text += &format!("{it}\n"));
        Ok(self.context.out.write_all(text.as_bytes())?)
    }

    fn rewind(&mut self, entries: &[Entry], to: MessageId) -> Result<(), CommandError> {
        if Record::rewind_point(entries, &to).is_none() {
            return Err(CommandError::new(format!("the log has no message {to} to go back to")));
        }
        self.write(Fact::Rewound { to })?;
        Ok(writeln!(self.context.out, "The conversation is back at its state before that prompt.")?)
    }

    fn write(&mut self, fact: Fact) -> Result<(), CommandError> {
        let entry = Entry { at: self.context.now.unix_ms, fact };
        self.log
            .append([&entry])
            .map_err(|it| CommandError::new(format!("the session's log could not be written: {it}")))
    }
}
