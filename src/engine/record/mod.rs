//! The record of a session: the fold over its facts. Live steps and replay go through the same `apply`.

pub mod checkpoints;
mod command_exposure;
mod discovered_memory;
mod event_stream;
mod fork;
mod history;
mod marks;
mod meter;
mod refused_parts;
mod replay;
mod rewind;
mod seen_files;
mod session_choices;
mod session_state;
mod spent_tokens;
mod step_writer;
mod title;
mod token_scale;

pub use checkpoints::{Checkpoint, Checkpoints};
pub use fork::Fork;
pub use marks::{COMMAND_META, PLAN_EVENT, QUOTES_META, STEERING_META, TRANSFER_META};
pub use refused_parts::ModelRefusals;
pub use replay::Replay;
pub use rewind::RewindPoint;
pub use spent_tokens::{Bill, CallTally, SpentTokens};
pub use step_writer::{SerialNumbers, Step};
pub use title::TitleSource;
pub use token_scale::TokenScale;

use command_exposure::CommandExposure;
pub use command_exposure::NetworkUse;
use event_stream::EventStream;
use history::History;
use meter::UsageMeter;
use refused_parts::RefusedParts;
use seen_files::SeenFiles;
use session_choices::ends_prompt;
pub use session_choices::{SessionChoices, TRANSFER};
use session_state::SessionState;

use std::sync::Arc;

use crate::hooks::Switches;
use castor_base::{
    content::{HostResult, joined_text},
    endings::{PENDING_CALLS, interrupted_call},
    event::{AgentEvent, EXPANSION, EventKind, Speaker},
    history::Turn,
    ids::{CallId, SessionId, StreamId, ThreadId},
    limits::{LimitSpan, LimitUsage},
    log::{self, ChildLink, Decision, Entry, Fact, Grant, Mode, Principal, Tuning},
    memory::{Memory, MemoryFile},
    model::Usage,
    path::AbsPath,
    state::StateMap,
    tool::ToolCall,
};

/// All that a session is, apart from what is under way.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    pub session: SessionId,
    pub cwd: AbsPath,
    /// Folders of the session, `cwd` first.
    pub roots: Vec<AbsPath>,
    pub mode: Mode,
    /// The configured model; a request may go to another.
    pub model: String,
    pub principal: Principal,
    pub tuning: Tuning,
    pub title: Option<String>,
    pub grants: Vec<Grant>,
    pub spent: SpentTokens,
    /// Hooks that were switched in this session.
    pub switches: Switches,
    past: SessionPast,
}

/// Facts of the session so far, folded.
#[derive(Clone, Debug, Default, PartialEq)]
struct SessionPast {
    history: History,
    persisted_grants: PersistedGrants,
    stream: EventStream,
    files: FileState,
    routes: RouteHistory,
    meter: UsageMeter,
    /// The size of a request when it was last compressed, or could not be.
    compressed_at: Option<u64>,
    scale: TokenScale,
    commands: CommandExposure,
    choices: SessionChoices,
    state: SessionState,
    refused: RefusedParts,
}

/// The routes of requests.
#[derive(Clone, Debug, Default, PartialEq)]
struct RouteHistory {
    /// The route of the last request.
    last: Option<RoutedRequest>,
    /// A model that was left in this turn, and why.
    left_model: Option<(String, String)>,
}

/// Grants that were saved beyond the session.
#[derive(Clone, Debug, Default, PartialEq)]
struct PersistedGrants {
    /// Taken back: what holds in the folder does not hold here any more.
    revoked: Vec<Grant>,
    /// The grants of this session that were saved for future sessions.
    saved: Vec<Grant>,
}

/// The model's knowledge of files, and the checkpoints that can restore them.
#[derive(Clone, Debug, Default, PartialEq)]
struct FileState {
    /// The memory files as they were last read.
    memory: Memory,
    seen: SeenFiles,
    checkpoints: Checkpoints,
}

/// The route of a request, with the reason.
#[derive(Clone, Debug, PartialEq)]
pub struct RoutedRequest {
    pub model: String,
    pub attempt: u32,
    pub why: String,
    /// A model that was left for another one in the same turn, and why.
    pub left_model: Option<(String, String)>,
}

/// The start values of a session.
#[derive(Clone, Debug)]
pub struct SessionOrigin {
    pub session: SessionId,
    pub cwd: AbsPath,
    /// `cwd` first.
    pub roots: Vec<AbsPath>,
    pub mode: Mode,
    pub model: String,
    pub principal: Principal,
    /// The call that an agent's run carries out.
    pub child_of: Option<ChildLink>,
    /// The thread of an agent's run.
    pub thread: Option<ThreadId>,
    /// The owner of the state's `user:` keys; `None`: the default user.
    pub user: Option<String>,
}

impl SessionOrigin {
    /// The first fact of the session's log.
    pub fn fact(self) -> Fact {
        let Self { session, cwd, roots, mode, model, principal, child_of, thread, user } = self;
        let (version, castor) = (log::VERSION, env!("CARGO_PKG_VERSION").to_owned());
        let parent = None;
        Fact::Created { version, castor, session, cwd, roots, mode, model, principal, parent, child_of, thread, user }
    }
}

impl Record {
    pub fn new(origin: SessionOrigin) -> Self {
        let SessionOrigin { session, cwd, roots, mode, model, principal, child_of, thread, user } = origin;
        let state = SessionState { user, is_run: child_of.is_some(), values: StateMap::new() };
        let stream = EventStream::new(&principal, thread, child_of.map(|it| it.agents).unwrap_or_default());
        Self {
            session,
            cwd,
            roots,
            mode,
            model,
            principal,
            tuning: Tuning::default(),
            title: None,
            grants: Vec::new(),
            spent: SpentTokens::default(),
            switches: Switches::new(),
            past: SessionPast { stream, state, ..SessionPast::default() },
        }
    }

    /// The record that a log's first entry begins; `None` if it is another fact.
    pub fn begin(first: &Entry) -> Option<Self> {
        let Fact::Created { session, cwd, roots, mode, model, principal, child_of, thread, user, .. } =
            first.fact.clone()
        else {
            return None;
        };
        Some(Self::new(SessionOrigin { session, cwd, roots, mode, model, principal, child_of, thread, user }))
    }

    /// The thread of its events; `None`: the main thread.
    pub fn thread(&self) -> Option<&ThreadId> {
        self.past.stream.thread.as_ref()
    }

    /// The turns that the model may see, oldest first.
    pub fn turns(&self) -> &[Arc<Turn>] {
        &self.past.history.turns
    }

    /// The scale by which models count tokens.
    pub fn token_scale(&self) -> &TokenScale {
        &self.past.scale
    }

    /// The memory files of user and project that the model reads.
    pub fn memory(&self) -> &Memory {
        &self.past.files.memory
    }

    /// The memory files of folders that its calls came to, and that the model still knows.
    pub fn discovered_memory(&self) -> impl Iterator<Item = &MemoryFile> {
        self.past.history.discovered_memory.files()
    }

    /// Those of `files` that the model has not read.
    pub fn unknown_memory(&self, files: &[MemoryFile]) -> Vec<MemoryFile> {
        self.past.history.discovered_memory.unknown_files(files, self.past.files.memory.size())
    }

    /// The state's keys that no other session shares. Of a run: all that it changed; null is what it took away.
    pub fn own_state(&self) -> &StateMap {
        &self.past.state.values
    }

    pub fn is_run(&self) -> bool {
        self.past.state.is_run
    }

    /// The owner of its `user:` keys.
    pub fn user(&self) -> &str {
        self.past.state.user()
    }

    /// The usage so far of everything that limits count.
    pub fn limit_usage(&self, span: LimitSpan) -> LimitUsage {
        self.past.meter.limit_usage(span)
    }

    /// The tokens of the turn at hand.
    pub fn turn_usage(&self) -> Option<Usage> {
        self.past.meter.usage()
    }

    /// The hash of a file as the model knows it, in hexadecimal digits. `path`: where it really is.
    pub fn seen_hash(&self, path: &AbsPath) -> Option<&str> {
        self.past.files.seen.hash(path)
    }

    /// Checkpoints that an undo can restore.
    pub fn checkpoints(&self) -> &Checkpoints {
        &self.past.files.checkpoints
    }

    /// The size of a request, in tokens, after the last time that the conversation was compressed, or should have been.
    pub fn compressed_at(&self) -> Option<u64> {
        self.past.compressed_at
    }

    /// The route of the last request; `None` before the first.
    pub fn last_route(&self) -> Option<&RoutedRequest> {
        self.past.routes.last.as_ref()
    }

    /// The stream that its events belong to.
    pub fn stream(&self) -> &StreamId {
        &self.past.stream.id
    }

    /// The calls that the host runs before the next prompt, in order.
    pub fn pending_calls(&self) -> Vec<ToolCall> {
        self.past.history.pending_calls()
    }

    /// Whether a prompt may bring these results: those of all calls that wait for one, and no others.
    ///
    /// # Errors
    /// Names the calls.
    pub fn check_results(&self, results: &[HostResult]) -> Result<(), String> {
        let pending = self.pending_calls();
        let is_pending = |id: &CallId| pending.iter().any(|it| it.id == *id);
        if let Some(it) = results.iter().find(|it| !is_pending(&it.call)) {
            return Err(format!("toolResults: no call {:?} waits for a result", it.call.as_str()));
        }
        let is_missing = |it: &&ToolCall| !results.iter().any(|other| other.call == it.id);
        let missing: Vec<&str> = pending.iter().filter(is_missing).map(|it| it.id.as_str()).collect();
        match missing.is_empty() {
            true => Ok(()),
            false => {
                Err(format!("toolResults: send the results of all calls that wait; missing: {}", missing.join(", ")))
            }
        }
    }

    /// Tells whether a call of this id was made before: ids from providers may repeat.
    pub fn knows_call(&self, id: &CallId) -> bool {
        self.past.history.knows_call(id)
    }

    /// The grants in force: those of this session, and those of `kept`, which holds in the folder, that were not
    /// revoked.
    pub fn active_grants(&self, kept: &[Grant]) -> Vec<Grant> {
        let more =
            kept.iter().filter(|it| !self.past.persisted_grants.revoked.contains(it) && !self.grants.contains(it));
        self.grants.iter().chain(more).cloned().collect()
    }

    /// Tells whether a grant of this session was saved for future sessions.
    pub fn is_saved(&self, grant: &Grant) -> bool {
        self.past.persisted_grants.saved.contains(grant)
    }

    /// Tells whether the user was asked about a command before, as the mode asks.
    pub fn was_command_asked(&self) -> bool {
        self.past.commands.asked
    }

    /// Tells whether a command of the session could read secrets: then none has the network unasked.
    pub fn secrets_exposed(&self) -> bool {
        self.past.commands.exposed
    }

    /// The hosts that commands reached.
    pub fn network_use(&self) -> &NetworkUse {
        &self.past.commands.network
    }

    /// Takes one fact in. Of a rewind only who has the log knows what it gives back: [`Record::replay`], [`Step::rewind`].
    pub fn apply(&mut self, entry: &Entry) {
        match &entry.fact {
            Fact::Event { event } => self.apply_event(event),
            Fact::Attempt { model, attempt, tokens, why } => {
                self.past.scale.note_request(model, *tokens);
                self.note_request(model, *attempt, why);
            }
            Fact::Fallback { from, to: Some(_), why, .. } => {
                self.past.routes.left_model = Some((from.clone(), why.clone()))
            }
            Fact::AttemptFailed { abandoned: true, .. } => self.past.history.abandon_answer(),
            Fact::Granted { grant, lasting } => self.add_grant(grant, *lasting),
            Fact::Mode { mode } => self.choose_mode(*mode),
            Fact::Model { model, window } => self.choose_model(model, *window),
            Fact::Tuning { tuning } => self.tuning = *tuning,
            Fact::State { delta } => self.past.state.apply(delta),
            Fact::Limits { limits } => self.choose_limits(*limits),
            Fact::PromptOptions { options } => self.begin_prompt_options(options),
            Fact::Worked { ms } => self.past.meter.add_work(*ms),
            Fact::Cleared => self.clear_conversation(),
            Fact::Hooked { context, retracts, .. } => {
                _ = retracts.then(|| self.past.history.retract_prompt());
                context.iter().for_each(|it| self.past.history.push_context(it));
            }
            Fact::Retracted {} => self.past.history.retract_prompt(),
            Fact::Agent { agent, definition } => self.past.choices.choose_agent(agent.clone(), definition.clone()),
            Fact::AgentSwitched { agent, enabled } => self.past.choices.switch_agent(agent.clone(), *enabled),
            Fact::SkillSwitched { skill, enabled } => self.past.choices.switch_skill(skill.clone(), *enabled),
            Fact::ClientPrompt { prompt } => self.past.choices.client_prompt = Some(prompt.clone()),
            Fact::PeerMemory { agent, memory } => self.past.choices.keep_peer_memory(agent.clone(), memory.clone()),
            Fact::HookSwitched { hook, to } => _ = self.switches.insert(hook.clone(), *to),
            Fact::Remembered { files } => self.set_memory(files),
            Fact::Discovered { files } => self.past.history.push_memory(files, self.past.files.memory.size()),
            Fact::Masked { masks } => self.past.history.mask(masks),
            Fact::Compressed { turns, summary, tokens } => {
                self.past.history.compress(usize::try_from(*turns).unwrap_or(usize::MAX), summary);
                self.past.compressed_at = Some(*tokens).filter(|it| *it > 0);
            }
            Fact::Outgrown { model, window, size, tokens: n } => {
                self.past.scale.note_refusal(model, *window, *size, *n)
            }
            Fact::LeftOut { model, part } => self.leave_out(model, part),
            Fact::Checkpoint { .. } | Fact::Restored { .. } | Fact::Rewound { .. } => {
                self.past.files.checkpoints.apply(entry)
            }
            Fact::NotCompressed { tokens, .. } => self.past.compressed_at = Some(*tokens),
            Fact::Revoked { grant } => self.revoke_grant(grant),
            Fact::Decision { decision: Decision::Ask, rule, .. } => self.past.commands.ask(rule),
            // Decisions and answers explain; what follows from them is a fact of its own.
            Fact::Created { .. }
            | Fact::Version { .. }
            | Fact::AttemptFailed { .. }
            | Fact::Fallback { .. }
            | Fact::Decision { .. }
            | Fact::Answered { .. }
            | Fact::Trust { .. }
            | Fact::Unknown => (),
        }
    }

    fn revoke_grant(&mut self, grant: &Grant) {
        self.grants.retain(|it| it != grant);
        self.past.persisted_grants.saved.retain(|it| it != grant);
        self.past.persisted_grants.revoked.push(grant.clone());
    }

    fn add_grant(&mut self, grant: &Grant, lasting: bool) {
        self.grants.push(grant.clone());
        self.past.persisted_grants.saved.extend(lasting.then(|| grant.clone()));
        self.past.persisted_grants.revoked.retain(|it| it != grant);
    }

    /// Agents that are not castor's begin anew, too.
    fn clear_conversation(&mut self) {
        self.past.history.clear();
        self.past.choices.peer_memory.clear();
        self.past.compressed_at = None;
    }

    fn set_memory(&mut self, files: &[MemoryFile]) {
        self.past.files.memory = Memory::new(files);
        self.past.history.discovered_memory.mark_outdated();
    }

    fn note_request(&mut self, model: &str, attempt: u32, why: &str) {
        self.past.history.begin_answer();
        if attempt == 1 {
            self.past.meter.count_request();
        }
        let left = self.past.routes.left_model.clone();
        self.past.routes.last =
            Some(RoutedRequest { model: model.to_owned(), attempt, why: why.to_owned(), left_model: left });
    }

    fn apply_event(&mut self, event: &AgentEvent) {
        self.past.stream.count(event);
        if ends_prompt(event) {
            self.end_prompt_options();
        }
        self.past.commands.note(&event.kind, self.mode);
        let history = &mut self.past.history;
        match &event.kind {
            EventKind::AgentStart {} => {
                history.close_open_calls();
                self.past.routes.left_model = None;
                if !event.meta.contains_key(TRANSFER_META) {
                    self.past.meter.begin_turn();
                }
                if let Some(it) = &self.past.choices.next_agent {
                    self.principal.clone_from(it);
                }
            }
            // Commands and castor's own questions are between the user and castor: the model does not see them.
            EventKind::Message { .. } | EventKind::ToolRequest { .. } | EventKind::ToolResponse { .. }
                if event.meta.contains_key(COMMAND_META) => {}
            EventKind::Message { role: Speaker::User, content, .. } if event.meta.contains_key(STEERING_META) => {
                history.push_steering(content);
            }
            EventKind::Message { role: Speaker::User, content, message_id, .. } => {
                history.push_user(content);
                self.past.files.checkpoints.add_prompt(message_id, content, event.timestamp);
            }
            // It is the user's prompt: they typed its name.
            EventKind::Message { role: Speaker::Developer, content, .. } if event.meta.contains_key(EXPANSION) => {
                history.push_context(&joined_text(content));
            }
            EventKind::Message { role: Speaker::Developer, content, .. } => history.push_note(content, &event.meta),
            EventKind::Message { role: Speaker::Agent, content, .. } => history.push_answer(content),
            EventKind::ToolRequest { request_id, name, args, signature, .. } => {
                history.push_call(request_id, name, args, signature.as_deref());
            }
            // Logs of old have it after the turns in which the model was told of it.
            kind if interrupted_call(kind).is_some_and(|it| !history.is_open(it)) => (),
            EventKind::ToolResponse { request_id, name, content, error, seen, .. } => {
                history.push_result(request_id, name, content, error.is_some());
                seen.iter().for_each(|it| self.past.files.seen.take(it));
            }
            EventKind::AgentEnd { data: Some(data), .. } if data.get(PENDING_CALLS).is_some() => {
                history.leave_calls_to_host();
            }
            EventKind::SessionUpdate { title: Some(title), .. } => self.apply_title(title, &event.meta),
            EventKind::Usage { model, usage, size, purpose, cost, .. } => {
                if purpose.is_agent() {
                    self.past.scale.note_count(model, usage.input);
                }
                self.past.meter.add_usage(usage, *cost);
                self.spent.add(Bill { purpose: *purpose, model, usage: *usage, size: *size, cost: *cost });
            }
            _ => (),
        }
    }
}

#[cfg(test)]
mod tests;
