//! Undo and rewind by slash commands: restores files from checkpoints and tells user, model and log.

use std::path::Path;

use serde_json::Value;
use thiserror::Error;

use crate::{
    record::{Record, Step},
    step::{Effect, Input, RewindTarget},
    turn::{
        flow::{Flow, Phase},
        messages::send_command_message,
        pseudo_call::{PseudoCall, PseudoCallKind},
        spec::{Spec, TurnContext},
        state::TurnState,
    },
};
use castor_base::{
    checkpoint::{ConflictChoice, OnConflict, RestoreOrder, RestoreResult, Rewinds},
    content::Part,
    event::Speaker,
    ids::{CheckpointId, EffectId, MessageId},
    log::Answer,
    path::AbsPath,
    path_text,
    question::{Choice, Field, FieldKind, Form},
};

const CONFLICTS: PseudoCallKind = PseudoCallKind { name: "restore_conflicts", error: "stopped" };
/// Paths that a message names.
const NAMED: usize = 20;

pub const CHECKPOINTS_OFF: &str =
    "Checkpoints are off: `general.checkpointing.enabled` is false in the settings. Nothing can be undone.";

/// What the user wants back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UndoRequest {
    Undo {
        turns: usize,
    },
    Redo,
    Rewind {
        to: String,
        what: Rewinds,
    },
    /// Nothing: only to see what changed.
    Diff,
    /// Nothing: the user looked at what agents left in a place.
    Looked {
        place: String,
    },
}

/// Where a restore leads, and what it is called.
#[derive(Clone, Debug, PartialEq)]
pub struct RestoreRoute {
    pub undo: Vec<CheckpointId>,
    /// The conversation goes back to before this.
    pub message: Option<MessageId>,
}

/// Why a restore leads nowhere.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RouteError {
    #[error("nothing was undone that can be done again")]
    NothingToRedo,
    #[error("there is no checkpoint {0} in this session")]
    UnknownCheckpoint(CheckpointId),
    #[error("there is no message {0} of the user's in this session")]
    UnknownMessage(MessageId),
    #[error("There is no prompt `{0}`")]
    UnknownPrompt(String),
    #[error("{count} prompts say `{words}`")]
    AmbiguousPrompt { words: String, count: usize },
    #[error("No call of this session changed files that still stand.")]
    NothingChanged,
    #[error("There is nothing to undo: no file was changed since.")]
    NothingToUndo,
}

/// A restore under way, and the user's part in it.
#[derive(Debug)]
struct Restoring {
    order: RestoreOrder,
    /// What becomes of the conversation when the files are back.
    message: Option<MessageId>,
    stage: Stage,
    conflicts: RestoreResult,
    /// What takes it back again.
    back: &'static str,
}

#[derive(Debug)]
enum Stage {
    Restoring(EffectId),
    Showing(EffectId),
    Asking(PseudoCall),
}

/// The way back to a place; `what`: whether files or words go.
///
/// # Errors
/// There is no such place, or nothing to take back.
pub fn restore_route(record: &Record, to: &RewindTarget, what: Rewinds) -> Result<RestoreRoute, RouteError> {
    let checkpoints = record.checkpoints();
    let (undo, message) = match to {
        RewindTarget::Redo => {
            let id = checkpoints.redo_target().ok_or(RouteError::NothingToRedo)?;
            (vec![id.clone()], None)
        }
        RewindTarget::Checkpoint(id) => {
            let undo = checkpoints.since(id).ok_or_else(|| RouteError::UnknownCheckpoint(id.clone()))?;
            let message = checkpoints.get(id).and_then(|it| checkpoints.prompt_of(it)).map(|it| it.message.clone());
            (undo, message)
        }
        RewindTarget::Message(id) => {
            let undo = checkpoints.since_prompt(id);
            let undo = undo.ok_or_else(|| RouteError::UnknownMessage(id.clone()))?;
            (undo, Some(id.clone()))
        }
    };
    let undo = if what.has_files() { undo } else { Vec::new() };
    let message = message.filter(|_| what.has_conversation());
    Ok(RestoreRoute { undo, message })
}

pub(super) fn begin_undo(cx: &mut TurnContext<'_, '_>, wish: UndoRequest) -> Flow {
    let is_talk = matches!(wish, UndoRequest::Rewind { what: Rewinds::Conversation, .. });
    if !cx.spec.toolbox.checkpoints && !is_talk {
        return Flow::report(CHECKPOINTS_OFF);
    }
    if let UndoRequest::Looked { place } = wish {
        return begin_look(cx, place);
    }
    let route = match wanted(cx.step.record, &wish) {
        Ok(it) => it,
        Err(why) => return Flow::report(undo_refusal(&wish, &why)),
    };
    if route.undo.is_empty() {
        let text = "The conversation goes back; no file was changed since.".to_owned();
        return Flow::Report { text, rewind_to: route.message };
    }
    let id = CheckpointId::from(cx.step.fresh_id("k"));
    let order = RestoreOrder { id, undo: route.undo, on_conflict: OnConflict::Fail, paths: None };
    let stage = match (&wish, cx.scratch.checkpoints.busy_reason()) {
        (UndoRequest::Diff, _) => {
            Stage::Showing(cx.step.start_effect(Effect::Diff { of: order.undo.clone(), paths: None }))
        }
        (_, Some(why)) => {
            return Flow::report(format!("Nothing was restored: {why}. Wait until that is over, or end it first."));
        }
        (_, None) => Stage::Restoring(cx.step.start_effect(Effect::Restore(order.clone()))),
    };
    let conflicts = RestoreResult::default();
    let back = if wish == UndoRequest::Redo { "/undo" } else { "/redo" };
    Flow::wait(Restoring { order, message: route.message, stage, conflicts, back })
}

/// Only a person looks: a client that says that nobody is there has none.
fn begin_look(cx: &mut TurnContext<'_, '_>, place: String) -> Flow {
    if !cx.spec.toolbox.interactive {
        return Flow::report("Nobody is there who could have looked. `castor looked` says it in a terminal.");
    }
    let effect = cx.step.start_effect(Effect::Look { place });
    let order = RestoreOrder { id: "".into(), undo: Vec::new(), on_conflict: OnConflict::Fail, paths: None };
    let (stage, conflicts) = (Stage::Showing(effect), RestoreResult::default());
    Flow::wait(Restoring { order, message: None, stage, conflicts, back: "" })
}

fn wanted(record: &Record, wish: &UndoRequest) -> Result<RestoreRoute, RouteError> {
    let checkpoints = record.checkpoints();
    let route = match wish {
        UndoRequest::Undo { turns } => RestoreRoute { undo: checkpoints.in_last_turns(*turns), message: None },
        UndoRequest::Diff | UndoRequest::Looked { .. } => {
            RestoreRoute { undo: checkpoints.in_session(), message: None }
        }
        UndoRequest::Redo => restore_route(record, &RewindTarget::Redo, Rewinds::Files)?,
        UndoRequest::Rewind { to, what } => route_to(record, to, *what)?,
    };
    match (route.undo.is_empty() && route.message.is_none(), wish) {
        (true, UndoRequest::Diff) => Err(RouteError::NothingChanged),
        (true, _) => Err(RouteError::NothingToUndo),
        (false, _) => Ok(route),
    }
}

fn undo_refusal(wish: &UndoRequest, why: &RouteError) -> String {
    let names_place = matches!(wish, UndoRequest::Rewind { .. }) && *why != RouteError::NothingToUndo;
    if names_place { format!("{why}; `/checkpoints` lists them.") } else { why.to_string() }
}

impl Phase for Restoring {
    fn step(self: Box<Self>, _: &mut TurnState, cx: &mut TurnContext<'_, '_>, input: Input) -> Flow {
        match (&self.stage, input) {
            (Stage::Restoring(own), Input::Restored { effect, result }) if *own == effect => self.restored(cx, result),
            (Stage::Showing(own), Input::Diffed { effect, result }) if *own == effect => self.diffed(cx, result),
            (Stage::Asking(asked), Input::Answered { question, answer }) if asked.is_about(question) => {
                self.take_answer(cx.step, &answer)
            }
            (_, other) => Flow::Unrelated(self, other),
        }
    }

    /// A restore that has begun is carried out: half of it would be worse.
    fn leave(&mut self, step: &mut Step<'_>) {
        match &self.stage {
            Stage::Asking(asked) => asked.withdraw(step, "The question was withdrawn with its turn."),
            Stage::Showing(effect) => _ = step.start_effect(Effect::Abort { effect: *effect }),
            Stage::Restoring(_) => (),
        }
    }
}

impl Restoring {
    fn restored(
        mut self: Box<Self>,
        cx: &mut TurnContext<'_, '_>,
        result: Result<(RestoreResult, Vec<String>), String>,
    ) -> Flow {
        let (result, notes) = match result {
            Ok(it) => it,
            Err(why) => return Flow::report(format!("Nothing was restored: {why}.")),
        };
        if self.order.is_refused(&result) {
            self.conflicts = result;
            return self.ask_about_conflicts(cx.step, cx.spec);
        }
        let mut text = in_words(&result, &notes, &cx.step.record.cwd, self.back);
        if self.message.is_some() {
            text += "\nThe conversation goes back as well.";
        }
        Flow::Report { text, rewind_to: self.message }
    }

    fn ask_about_conflicts(mut self: Box<Self>, step: &mut Step<'_>, spec: &Spec) -> Flow {
        let cwd = &step.record.cwd;
        let lines = in_lines(&self.conflicts.conflicts, |it| format!("{}: {}", shown(&it.path, cwd), it.reason));
        if !spec.toolbox.interactive {
            let why = "castor restored nothing: these files are not as the agent left them, and nobody can be asked";
            return Flow::report(format!("{why}:\n{lines}"));
        }
        let title = "Some files are not as the agent left them".to_owned();
        self.stage = Stage::Asking(CONFLICTS.ask_how(step, title, form(&lines)));
        Flow::Wait(self)
    }

    /// The user's word on files that somebody else changed.
    fn take_answer(mut self: Box<Self>, step: &mut Step<'_>, answer: &Answer) -> Flow {
        let Stage::Asking(asked) = &self.stage else { return Flow::Wait(self) };
        let chosen = match answer {
            Answer::Accepted { content } => content.get(ConflictChoice::FIELD).and_then(Value::as_str),
            _ => None,
        };
        let on_conflict = match chosen.and_then(ConflictChoice::parse) {
            Some(ConflictChoice::Keep) => OnConflict::Keep,
            Some(ConflictChoice::Restore) => OnConflict::Restore,
            Some(ConflictChoice::ShowDiff) => {
                asked.end(step, "Shown.", false);
                let paths = Some(self.conflicts.conflicts.iter().map(|it| it.path.clone()).collect());
                self.stage = Stage::Showing(step.start_effect(Effect::Diff { of: self.order.undo.clone(), paths }));
                return Flow::Wait(self);
            }
            Some(ConflictChoice::Stop) | None => {
                asked.end(step, "Nothing was restored.", true);
                return Flow::report("Nothing was restored.");
            }
        };
        asked.end(step, "Going on.", false);
        self.order.on_conflict = on_conflict;
        self.order.id = CheckpointId::from(step.fresh_id("k"));
        self.stage = Stage::Restoring(step.start_effect(Effect::Restore(self.order.clone())));
        Flow::Wait(self)
    }

    /// A diff is there: all that was wanted, or a help for the answer.
    fn diffed(self: Box<Self>, cx: &mut TurnContext<'_, '_>, result: Result<String, String>) -> Flow {
        let text = match result {
            // Words of a look.
            Ok(words) if self.order.undo.is_empty() => words,
            Ok(diff) if diff.is_empty() => "There is nothing to show.".to_owned(),
            Ok(diff) => format!("```diff\n{diff}\n```"),
            Err(why) if self.order.undo.is_empty() => format!("Nothing counts as looked at: {why}."),
            Err(why) => format!("It cannot be shown: {why}."),
        };
        if self.conflicts.conflicts.is_empty() {
            return Flow::report(text);
        }
        send_command_message(cx.step, Speaker::Agent, vec![Part::text(text)]);
        self.ask_about_conflicts(cx.step, cx.spec)
    }
}

/// The way back to what is meant by a number, an id or words.
///
/// # Errors
/// There is no such prompt, or there are several.
pub fn route_to(record: &Record, to: &str, what: Rewinds) -> Result<RestoreRoute, RouteError> {
    let id = CheckpointId::from(to);
    match (record.checkpoints().get(&id), what) {
        (None, _) => restore_route(record, &RewindTarget::Message(find(record, to)?), what),
        // What changed beside the conversation is no reason to take that back.
        (Some(_), Rewinds::Both) => restore_route(record, &RewindTarget::Checkpoint(id), Rewinds::Files),
        (Some(_), _) => restore_route(record, &RewindTarget::Checkpoint(id), what),
    }
}

/// The prompt that is meant: by its number, its id, or what it says.
fn find(record: &Record, to: &str) -> Result<MessageId, RouteError> {
    let prompts = record.checkpoints().prompts();
    let number = to.parse::<usize>().ok().and_then(|it| it.checked_sub(1));
    if let Some(it) = number.and_then(|it| prompts.get(it)).filter(|it| !it.is_rewound) {
        return Ok(it.message.clone());
    }
    if let Some(it) = prompts.iter().find(|it| it.message.as_str() == to) {
        return Ok(it.message.clone());
    }
    let wanted = to.to_lowercase();
    let found: Vec<_> =
        prompts.iter().filter(|it| !it.is_rewound && it.words.to_lowercase().contains(&wanted)).collect();
    match found.as_slice() {
        [only] => Ok(only.message.clone()),
        [] => Err(RouteError::UnknownPrompt(to.to_owned())),
        more => Err(RouteError::AmbiguousPrompt { words: to.to_owned(), count: more.len() }),
    }
}

fn form(lines: &str) -> Form {
    let choice =
        |it: &ConflictChoice| Choice { value: it.as_str().to_owned(), title: it.title().to_owned(), description: None };
    let kind = FieldKind::Choice { options: ConflictChoice::ALL.iter().map(choice).collect() };
    let name = ConflictChoice::FIELD.to_owned();
    let field = Field { name, title: None, description: None, required: true, default: None, kind };
    let message = format!("These files are not as the agent left them:\n{lines}");
    Form { message, fields: vec![field] }
}

fn in_words(result: &RestoreResult, notes: &[String], cwd: &AbsPath, back: &str) -> String {
    let mut res = String::new();
    if result.restored.is_empty() && result.conflicts.is_empty() {
        res += "All files are as they should be already.\n";
    }
    let (present, removed) = result.present_and_removed();
    for (heading, paths) in [("Restored", present), ("Removed", removed)].iter().filter(|it| !it.1.is_empty()) {
        res += &format!("\n{heading}:\n{}", in_lines(paths, |it| shown(it, cwd)));
    }
    if !result.conflicts.is_empty() {
        let lines = in_lines(&result.conflicts, |it| format!("{}: {}", shown(&it.path, cwd), it.reason));
        res += &format!("\nNot restored:\n{lines}");
        if back == "/redo" {
            res += "\n`/undo` asks about these again, `/undo 2` goes further back.\n";
        }
    }
    if !result.not_kept.is_empty() {
        res += &format!("\nChanged and not held:\n{}", in_lines(&result.not_kept, |it| shown(it, cwd)));
    }
    notes.iter().for_each(|it| res += &format!("\n{it}\n"));
    if !result.restored.is_empty() {
        res += &format!("\n`{back}` takes this back.");
    }
    res.trim().to_owned()
}

/// From the session's folder on, where it lies below it.
fn shown(path: &Path, cwd: &AbsPath) -> String {
    path_text::to_text(path.strip_prefix(cwd.as_path()).unwrap_or(path)).into_owned()
}

/// A line each, the first of them.
fn in_lines<T>(all: &[T], line: impl Fn(&T) -> String) -> String {
    let mut res: String = all.iter().take(NAMED).map(|it| format!("- {}\n", line(it))).collect();
    if all.len() > NAMED {
        res += &format!("- and {} more\n", all.len() - NAMED);
    }
    res
}
