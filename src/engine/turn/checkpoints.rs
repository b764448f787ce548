//! Checkpoint state of a turn: calls that hold one open, and work that goes on in the background.

use std::{collections::BTreeMap, path::PathBuf};

use serde_json::Value;

use super::preamble::Preamble;
use crate::{
    record::Step,
    step::{Act, Effect, Input},
};
use castor_base::{
    checkpoint::{Changes, MAX_CHANGES, RestoreOrder, RestoreResult, Scope},
    ids::{CallId, CheckpointId, EffectId},
    log::Fact,
    path_text, text,
    tool::ToolOutput,
};

/// Between two checkpoints while something runs in the background, in milliseconds.
const BEAT: u64 = 30_000;
/// Longest command that is named, in characters; most paths.
const NAMED: usize = 100;

/// Beside the record: what is under way in this process.
#[derive(Clone, Debug, Default)]
pub struct CheckpointState {
    is_on: bool,
    running: BTreeMap<EffectId, RunningWork>,
    /// Checkpoints under way, and whether they are still wanted.
    taking: BTreeMap<EffectId, (CheckpointId, bool)>,
    /// Also those whose turn is over: half of a restore would be worse than all of it.
    restoring: BTreeMap<EffectId, RestoreOrder>,
    background: Vec<BackgroundWork>,
    /// A command left something, which may have ended since.
    has_left: bool,
    /// Of whom nobody is left, while calls run that may be theirs.
    emptied: Vec<u32>,
    beat: BackgroundCheckpoint,
    /// The roots were looked at, or are.
    is_opened: bool,
    /// That there is no checkpoint was said.
    is_told: bool,
}

/// A call or a hook that has not ended, wanted or not.
#[derive(Clone, Debug)]
struct RunningWork {
    hold: Option<(CheckpointId, CallId)>,
    title: String,
}

#[derive(Clone, Debug)]
struct BackgroundWork {
    /// Of its first process.
    pid: u32,
    title: String,
    /// Running processes, as far as they are known.
    who: String,
}

/// Checkpoints beside what runs in the background, one after the other.
#[derive(Clone, Debug, Default)]
enum BackgroundCheckpoint {
    #[default]
    None,
    Taking {
        effect: EffectId,
        id: CheckpointId,
    },
    Waiting {
        timer: EffectId,
        id: CheckpointId,
    },
    Comparing {
        effect: EffectId,
        id: CheckpointId,
    },
}

impl CheckpointState {
    /// An earlier call walked the roots.
    pub fn set_opened(&mut self) {
        self.is_opened = true;
    }

    /// Switches checkpoints: `is_on` has files held before calls change them.
    pub fn set_enabled(&mut self, is_on: bool) {
        self.is_on = is_on;
    }

    /// Why files cannot be restored now: what still runs.
    pub fn busy_reason(&self) -> Option<String> {
        if let Some(it) = self.background.first() {
            return Some(format!("`{}` runs in the background ({})", it.title, it.who));
        }
        if !self.restoring.is_empty() {
            return Some("files are being restored".to_owned());
        }
        let it = self.running.values().find(|it| it.hold.is_some())?;
        Some(format!("`{}` has not ended yet", it.title))
    }

    /// Nothing is under way, and no process can be asked for.
    pub fn is_at_rest(&self) -> bool {
        let is_quiet = self.running.is_empty() && self.taking.is_empty() && self.restoring.is_empty();
        is_quiet && !self.has_left && matches!(self.beat, BackgroundCheckpoint::None)
    }

    /// Before anything else is done about an input. `in_turn`: whether something can be said now.
    pub fn observe_input(&mut self, input: &Input, step: &mut Step<'_>, arrivals: &mut Preamble, in_turn: bool) {
        match input {
            Input::RunEnded { effect, output, changes } => {
                let Some(it) = self.running.remove(effect) else { return };
                if let (Some(hold), Some(changes)) = (&it.hold, changes) {
                    let changes = self.known_changes(step, arrivals, in_turn, changes);
                    log_changes(step, hold, changes);
                }
                let left = left_behind(output, it.title);
                self.has_left |= left.is_some();
                self.background.extend(left.filter(|it| !self.emptied.contains(&it.pid)));
                if self.running.is_empty() {
                    self.emptied.clear();
                }
                self.keep_beating(step);
            }
            Input::HookFinished { effect, report } => {
                let hold = self.running.remove(effect).and_then(|it| it.hold);
                if let (Some(hold), Some(changes)) = (hold, &report.changes) {
                    let changes = self.known_changes(step, arrivals, in_turn, changes);
                    log_changes(step, &hold, changes);
                }
            }
            Input::BackgroundExited(pid) => {
                self.background.retain(|it| it.pid != *pid);
                // Of calls that have not returned yet.
                if !self.running.is_empty() {
                    self.emptied.push(*pid);
                }
                self.stop_beating(step);
            }
            Input::Checkpointed { effect, result } => {
                if let Err(why) = result {
                    self.warn_once(step, arrivals, in_turn, why);
                }
                // Until it is compared with, all that changes would be the call's, which never ran.
                if let (Some((id, false)), Ok(_)) = (self.taking.remove(effect), result) {
                    step.start_effect(Effect::CompareCheckpoint { id });
                }
                self.beat_taken(step, *effect, result.is_ok());
            }
            Input::TimerFired { effect } => match &self.beat {
                BackgroundCheckpoint::Waiting { timer, id } if timer == effect => self.compare(step, id.clone()),
                _ => (),
            },
            Input::Restored { effect, result } => {
                let order = self.restoring.remove(effect);
                if let (Some(order), Ok((files, _))) = (order, result) {
                    tell_restored(step, arrivals, order, files);
                }
            }
            Input::Compared { effect, changes } => {
                let changes = self.known_changes(step, arrivals, in_turn, changes);
                self.compared(step, *effect, changes);
            }
            _ => (),
        }
    }

    /// What a step had done: calls and hooks that run from now on.
    pub fn observe_acts(&mut self, acts: &[Act]) {
        for act in acts {
            let (id, hold, title) = match act {
                Act::Do(id, Effect::Run { call, hold, .. }) => {
                    let said = call.args.get("command").and_then(Value::as_str).unwrap_or(&call.name);
                    (id, hold.as_ref().map(|it| (it.id.clone(), call.id.clone())), said)
                }
                Act::Do(id, Effect::RunHook(run)) => (id, run.checkpoint.clone(), run.hook.key()),
                Act::Do(id, Effect::Checkpoint { id: checkpoint, .. }) => {
                    self.taking.insert(*id, (checkpoint.clone(), true));
                    continue;
                }
                Act::Do(_, Effect::Abort { effect }) => {
                    if let Some((_, is_wanted)) = self.taking.get_mut(effect) {
                        *is_wanted = false;
                    }
                    continue;
                }
                Act::Do(id, Effect::Restore(order)) => {
                    self.restoring.insert(*id, order.clone());
                    continue;
                }
                _ => continue,
            };
            self.running.insert(*id, RunningWork { hold, title: text::first_line(title, NAMED) });
        }
    }

    /// A model is asked for the first time: there is time to look at what the roots hold.
    pub fn open_checkpoints(&mut self, acts: &[Act]) -> Option<Effect> {
        let asks = |it: &Act| matches!(it, Act::Do(_, Effect::Generate { purpose, .. }) if purpose.is_agent());
        let is_first = self.is_on && !self.is_opened && acts.iter().any(asks);
        self.is_opened |= is_first;
        is_first.then_some(Effect::OpenCheckpoints)
    }

    fn known_changes(
        &mut self,
        step: &mut Step<'_>,
        arrivals: &mut Preamble,
        in_turn: bool,
        changes: &Result<Changes, String>,
    ) -> Changes {
        match changes {
            Ok(it) => it.clone(),
            Err(why) => {
                self.warn_once(step, arrivals, in_turn, why);
                Changes::default()
            }
        }
    }

    /// Once for each session.
    fn warn_once(&mut self, step: &mut Step<'_>, arrivals: &mut Preamble, in_turn: bool, why: &str) {
        if std::mem::replace(&mut self.is_told, true) {
            return;
        }
        let text = format!("What changes now cannot be undone: {why}.");
        match in_turn {
            true => step.emit_notice(&text),
            false => arrivals.notice(text),
        }
    }

    fn keep_beating(&mut self, step: &mut Step<'_>) {
        if self.is_on && !self.background.is_empty() && matches!(self.beat, BackgroundCheckpoint::None) {
            let id = CheckpointId::from(step.fresh_id("k"));
            let effect = step.start_effect(Effect::Checkpoint { id: id.clone(), scope: Scope::Roots });
            self.beat = BackgroundCheckpoint::Taking { effect, id };
        }
    }

    fn beat_taken(&mut self, step: &mut Step<'_>, effect: EffectId, is_held: bool) {
        let BackgroundCheckpoint::Taking { effect: own, id } = &self.beat else { return };
        if *own != effect {
            return;
        }
        self.beat = match is_held {
            true => {
                let timer = step.start_effect(Effect::SetTimer { at_ms: step.now.unix_ms.saturating_add(BEAT) });
                BackgroundCheckpoint::Waiting { timer, id: id.clone() }
            }
            false => BackgroundCheckpoint::None,
        };
        self.stop_beating(step);
    }

    fn stop_beating(&mut self, step: &mut Step<'_>) {
        if let (BackgroundCheckpoint::Waiting { timer, id }, true) = (&self.beat, self.background.is_empty()) {
            let id = id.clone();
            step.start_effect(Effect::Abort { effect: *timer });
            self.compare(step, id);
        }
    }

    fn compare(&mut self, step: &mut Step<'_>, id: CheckpointId) {
        let effect = step.start_effect(Effect::CompareCheckpoint { id: id.clone() });
        self.beat = BackgroundCheckpoint::Comparing { effect, id };
    }

    fn compared(&mut self, step: &mut Step<'_>, effect: EffectId, changes: Changes) {
        let BackgroundCheckpoint::Comparing { effect: own, id } = &self.beat else { return };
        if *own != effect {
            return;
        }
        if !changes.is_empty() {
            step.log(Fact::Checkpoint { id: id.clone(), call: None, changes: Some(changes) });
        }
        self.beat = BackgroundCheckpoint::None;
        self.keep_beating(step);
    }
}

fn log_changes(step: &mut Step<'_>, (id, call): &(CheckpointId, CallId), changes: Changes) {
    // A hook is held without being logged first.
    if !changes.is_empty() || step.record.checkpoints().get(id).is_some() {
        step.log(Fact::Checkpoint { id: id.clone(), call: Some(call.clone()), changes: Some(changes) });
    }
}

/// A command that goes on after its call, or of which somebody does.
fn left_behind(output: &ToolOutput, title: String) -> Option<BackgroundWork> {
    let pid = u32::try_from(output.data.get("pid")?.as_u64()?).ok()?;
    let left = output.data.get("backgroundPids").and_then(Value::as_array);
    let is_background = output.data.get("background") == Some(&Value::Bool(true));
    let who = left.map_or_else(|| pid.to_string(), |it| it.iter().map(Value::to_string).collect::<Vec<_>>().join(", "));
    (is_background || left.is_some()).then(|| BackgroundWork { pid, title, who: format!("PID {who}") })
}

/// Files are back. The model is told with the next prompt: it knows them as they were.
fn tell_restored(step: &mut Step<'_>, arrivals: &mut Preamble, order: RestoreOrder, files: &RestoreResult) {
    if order.is_refused(files) {
        return;
    }
    let (present, removed) = files.present_and_removed();
    let headings = ["Files were restored to what they were before:", "A restore removed these files:"];
    let parts = headings.iter().zip([present, removed]).filter(|it| !it.1.is_empty());
    let parts: Vec<String> = parts.map(|(heading, paths)| format!("{heading}{}", in_lines(&paths))).collect();
    if !parts.is_empty() {
        arrivals.notice(parts.join("\n"));
    }
    step.log(restored_fact(order, files));
}

/// A line each, the first of them.
fn in_lines(paths: &[&PathBuf]) -> String {
    let lines: String = paths.iter().take(NAMED).map(|it| format!("\n- {}", path_text::to_text(it))).collect();
    match paths.len().saturating_sub(NAMED) {
        0 => lines,
        more => format!("{lines}\n- and {more} more"),
    }
}

/// The log's word on a restore.
pub fn restored_fact(order: RestoreOrder, files: &RestoreResult) -> Fact {
    let mut files = files.clone();
    files.restored.truncate(MAX_CHANGES);
    files.conflicts.truncate(MAX_CHANGES);
    files.not_kept.truncate(MAX_CHANGES);
    let RestoreOrder { id, undo, paths, .. } = order;
    Fact::Restored { id, undone: undo, partial: paths.is_some(), files }
}
