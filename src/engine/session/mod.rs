//! A session: runs one turn at a time and queues the prompts that wait.

mod client_rewind;
mod clock;
mod event_hooks;
mod next_prompt;
mod non_turn_work;
mod options;
mod policy_queries;
mod prompt_stats;
mod prompts;
mod question_hooks;
mod rest;

use std::{collections::VecDeque, sync::Arc};

use jiff::civil::Date;

use non_turn_work::NonTurnWork;
use options::{apply_choice, update};
use prompts::{cancel_prompt, steer_idle};

use crate::{
    commands::{self, file_commands::OfferedCommand},
    record::{Record, RewindPoint, SerialNumbers, SessionChoices, SessionOrigin, Step},
    scheduler::elicitation::cancel_elicitation,
    step::{Act, Effect, Input, McpTools, StepOutput},
    turn::{
        Choices, Preamble, SessionScratch, Spec, Turn, TurnContext,
        agents::session_agent::{find_session_agent, session_limits, session_spec, switched_agents, switched_prompts},
        endings::Cause,
    },
};
use castor_base::{
    agent::{ClientAgent, FolderAgents},
    client_settings::ClientSetting,
    clock::Now,
    content::PromptContent,
    event::{EventKind, PromptOutcome, StopKind},
    file_prompt::FolderPrompts,
    hook::{HookEvent, HookRun},
    ids::PromptId,
    limits::Limits,
    log::{Entry, Fact, Grant, Mode},
    state::{StateDelta, StateMap, is_temp},
};

/// Most prompts that wait; one more is refused. A client that sends faster than models answer is broken.
pub const MAX_WAITING: usize = 256;

/// Prompts in order.
type WaitingPrompts = VecDeque<(PromptId, PromptContent)>;

/// A conversation and what is under way in it.
#[derive(Debug)]
pub struct Session {
    record: Record,
    /// The spec as its folder has it.
    folder: Arc<Spec>,
    /// The spec of its turns.
    spec: Arc<Spec>,
    basis: SpecBasis,
    serial: SerialNumbers,
    turn: Option<Turn>,
    scratch: SessionScratch,
    waiting: WaitingPrompts,
    clock: clock::Clock,
    stats: prompt_stats::StatsCounter,
    ordered_model: Option<OrderedModel>,
    non_turn_work: NonTurnWork,
}

/// The basis of the spec: to make it anew takes as long as all else that is done for a prompt, and most prompts change
/// nothing.
#[derive(Debug)]
enum SpecBasis {
    /// The folder's was changed since: the next input needs it anew.
    Outdated,
    /// The next prompt needs it anew: what else it was made of may change at any time.
    OneTurn,
    /// The folder's, and these choices.
    Choices(Box<SessionChoices>),
}

/// castor was started with another model than the session's own. It holds at once, and is logged with the next prompt:
/// who only looks at a session changes nothing of it.
#[derive(Debug)]
struct OrderedModel {
    own: String,
    model: String,
}

impl Session {
    /// A new session; its first facts are in `out`.
    pub fn create(origin: SessionOrigin, spec: Arc<Spec>, now: Now, out: &mut StepOutput) -> Self {
        let record = Record::new(origin.clone());
        out.acts.push(Act::Log(Entry { at: now.unix_ms, fact: origin.fact() }));
        let mut res = Self::resume(record, spec);
        res.scratch.preamble = Preamble::of("startup");
        let (session_id, workspace) = (res.record.session.clone(), res.record.cwd.clone());
        let mut step = Step::new(&mut res.record, &mut res.serial, now, out);
        step.emit_event(EventKind::Initialize { session_id, workspace });
        res
    }

    /// Takes in the grants, roots and state of the session above a sub-agent's.
    pub fn inherit(&mut self, grants: Vec<Grant>, mut state: StateMap, now: Now, out: &mut StepOutput) {
        state.retain(|key, _| !is_temp(key));
        self.scratch.state.set_outside(Arc::new(state));
        self.scratch.checkpoints.set_opened();
        let mut step = Step::new(&mut self.record, &mut self.serial, now, out);
        grants.into_iter().for_each(|grant| step.log(Fact::Granted { grant, lasting: false }));
    }

    /// The state of a new session: what its log does not have, and its first values.
    pub fn begin_state(&mut self, outside: Arc<StateMap>, first: StateDelta, now: Now, out: &mut StepOutput) {
        self.scratch.state.set_outside(outside);
        let mut step = Step::new(&mut self.record, &mut self.serial, now, out);
        self.scratch.state.seed(&mut step, first);
    }

    /// All values of its state now.
    pub fn state(&self) -> StateMap {
        self.scratch.state.values(&self.record)
    }

    /// A new session is this agent's.
    pub fn become_agent(&mut self, agent: String, definition: Option<ClientAgent>, now: Now, out: &mut StepOutput) {
        Step::new(&mut self.record, &mut self.serial, now, out).log(Fact::Agent { agent: Some(agent), definition });
    }

    /// Applies a lasting setting of the client's; the same prompt again changes nothing.
    pub fn apply_client_setting(&mut self, given: &ClientSetting, now: Now, out: &mut StepOutput) {
        let mut step = Step::new(&mut self.record, &mut self.serial, now, out);
        match given {
            ClientSetting::Title(title) => step.give_title(title),
            ClientSetting::Prompt(prompt) if step.record.client_prompt() != Some(prompt) => {
                step.log(Fact::ClientPrompt { prompt: prompt.clone() });
                self.basis = SpecBasis::Outdated;
            }
            ClientSetting::Prompt(_) => (),
            ClientSetting::Skill { skill, enabled } => {
                step.log(Fact::SkillSwitched { skill: skill.clone(), enabled: *enabled });
                self.basis = SpecBasis::Outdated;
            }
        }
    }

    /// A session as its log left it. Nothing is written.
    pub fn resume(record: Record, spec: Arc<Spec>) -> Self {
        let mut kept = SessionScratch { preamble: Preamble::of("resume"), ..SessionScratch::default() };
        kept.checkpoints.set_enabled(spec.toolbox.checkpoints);
        Self {
            record,
            folder: spec.clone(),
            spec,
            basis: SpecBasis::Outdated,
            serial: SerialNumbers::default(),
            turn: None,
            scratch: kept,
            waiting: VecDeque::new(),
            clock: clock::Clock::default(),
            stats: prompt_stats::StatsCounter::default(),
            ordered_model: None,
            non_turn_work: NonTurnWork::default(),
        }
    }

    /// The session goes on with this model, whatever its own is.
    pub fn override_model(&mut self, model: String) {
        if model != self.record.model {
            let own = std::mem::replace(&mut self.record.model, model.clone());
            self.ordered_model = Some(OrderedModel { own, model });
        }
    }

    /// Starts over from the log after something went wrong. Effect ids go on, so that late answers meet nobody.
    pub fn replace_record(&mut self, record: Record) {
        self.record = record;
        if let Some(it) = &self.ordered_model {
            self.record.model.clone_from(&it.model);
        }
        (self.turn, self.non_turn_work) = (None, NonTurnWork::default());
        self.waiting.clear();
        self.clock = clock::Clock::default();
        self.stats = prompt_stats::StatsCounter::default();
        self.scratch.state.start_over();
    }

    /// Replaces the spec, since something changed that counts in its folder. Tools from outside come anew, and a doubt
    /// about the folder does, too.
    pub fn replace_spec(&mut self, spec: Arc<Spec>) {
        self.scratch.checkpoints.set_enabled(spec.toolbox.checkpoints);
        (self.folder, self.spec, self.basis) = (spec.clone(), spec, SpecBasis::Outdated);
        self.scratch.memory_read = false;
        self.scratch.preamble.clear_trust_form();
    }

    /// Ids and names of the models on offer.
    pub fn models(&self) -> &[(String, String)] {
        &self.spec.choices.models.listed
    }

    /// The modes of the session, once the folder is trusted.
    pub fn offered_modes(&self) -> &[Mode] {
        &self.spec.choices.modes.offered
    }

    /// The limits of turns and session, unless the user says otherwise.
    pub fn configured_limits(&self) -> Limits {
        let agents = self.agents();
        let own = self.record.chosen_agent().and_then(|it| find_session_agent(&agents, it));
        own.map_or(self.folder.bounds.limits, |(it, _)| session_limits(self.folder.bounds.limits, it))
    }

    /// All agents of its folder, as they were switched here.
    pub fn agents(&self) -> FolderAgents {
        switched_agents(&self.folder.choices.agents, &self.record)
    }

    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    pub fn record(&self) -> &Record {
        &self.record
    }

    /// The commands that can be typed now.
    pub fn commands(&self) -> Vec<OfferedCommand> {
        // What was read anew counts from the next prompt on, which may call it.
        let choices = Choices { prompts: self.prompts(), ..self.spec.choices.clone() };
        commands::all_offered(&Spec { choices, ..Spec::clone(&self.spec) })
    }

    /// Commands and skills of its folder, as they were switched here.
    pub fn prompts(&self) -> FolderPrompts {
        switched_prompts(&self.folder.choices.prompts, &self.record)
    }

    pub fn is_busy(&self) -> bool {
        self.turn.is_some() || self.non_turn_work.rewinding.is_some()
    }

    /// The session ends: its hooks are told, without waiting for them.
    pub fn session_end_hooks(&mut self, reason: &str) -> Vec<HookRun> {
        match self.scratch.preamble.is_opened() {
            true => end_hooks(&self.spec, reason, &self.record),
            false => Vec::new(),
        }
    }

    /// Takes one thing that happened and pushes what should be done about it.
    pub fn step(&mut self, input: Input, now: Now, out: &mut StepOutput) {
        let start = out.acts.len();
        self.clock.count_time(&input, now);
        self.stats.observe_input(&input, now);
        self.non_turn_work.event_hooks.observe_input(&input);
        match &input {
            Input::ToolsChanged(tools) => self.update_tools(tools),
            Input::DefinitionsRead { agents, prompts, .. } => self.update_definitions(agents, prompts),
            Input::ClientSetting(it) => self.apply_client_setting(it, now, out),
            _ => (),
        }
        if matches!(self.basis, SpecBasis::Outdated) {
            self.renew_spec(now);
        }
        let Self { record, spec, serial, turn, scratch: kept, waiting, non_turn_work, .. } = self;
        let mut step = Step::new(record, serial, now, out);
        kept.checkpoints.observe_input(&input, &mut step, &mut kept.preamble, turn.is_some());
        let cx = &mut TurnContext { step: &mut step, spec, scratch: kept };
        non_turn_work.handle_input(&input, cx, turn.is_some());
        match input {
            Input::Prompt { prompt, content } if waiting.len() < MAX_WAITING => waiting.push_back((prompt, content)),
            Input::Prompt { prompt, .. } => refuse_prompt(cx.step, prompt),
            Input::Steer { prompt, content, starts_turn } => match turn {
                Some(turn) => turn.steer(cx.step, prompt, content),
                None => steer_idle(cx.step, waiting, (prompt, content), starts_turn),
            },
            Input::Cancel => {
                turn.iter_mut().for_each(|it| it.end(cx.step, Cause::Cancelled));
                for (prompt, _) in waiting.drain(..) {
                    settle_prompt(cx.step, prompt, PromptOutcome::Stop(StopKind::Cancelled));
                }
            }
            Input::CancelPrompt(prompt) => cancel_prompt(cx.step, turn.as_mut(), waiting, prompt),
            Input::SetOption(choice) => apply_choice(cx, choice),
            Input::CustomEvent { kind, data } => cx.step.emit_event(EventKind::Custom { kind, data }),
            Input::Update { title, model } => update(cx.step, title, model),
            Input::RewindConversation { to, log } if turn.is_none() => rewind(cx, Record::rewind_point(&log, &to)),
            it @ (Input::State(_) | Input::SharedState(_) | Input::StateSaved { .. }) => {
                cx.scratch.state.on_input(cx.step, it);
            }
            Input::Announce(text) if turn.as_ref().is_none_or(Turn::is_finished) => cx.scratch.preamble.notice(text),
            Input::Announce(text) => cx.step.emit_notice(&text),
            Input::TrustPrompt(doubt) => cx.scratch.preamble.add_trust_prompt(doubt),
            it @ (Input::Notice(_) | Input::WithdrawNotice(_) | Input::ResourceChanged { .. }) => {
                cx.scratch.preamble.on_news(it);
            }
            Input::MemoryOutdated => cx.scratch.memory_read = false,
            Input::BackgroundResult(text) => cx.scratch.background_results.add(text),
            Input::Outages(outages) => cx.scratch.health.set_outages(outages),
            Input::ServerQuestionWaits(it) => cx.scratch.preamble.add_question(*it),
            Input::ElicitationWithdrawn { elicitation } if cx.scratch.preamble.withdraw_question(elicitation) => (),
            Input::ElicitationRequested { elicitation: it, .. } if turn.is_none() => cancel_elicitation(cx.step, it),
            other => {
                if let Some(turn) = turn {
                    turn.step(cx, other);
                }
            }
        }
        self.finish_step(now, out, start);
    }

    /// Finishes a step: acts on the outputs from `start` on.
    fn finish_step(&mut self, now: Now, out: &mut StepOutput, start: usize) {
        self.log_work(now, out);
        self.change_state(now, out);
        self.begin_next_prompt(now, out, start);
        self.check_time_limit(now, out, start);
        self.change_state(now, out);
        self.track_checkpoints(now, out, start);
        let acts = out.acts.get_mut(start..).unwrap_or_default();
        self.stats.observe_acts(acts, now, self.spec.toolbox.checkpoints);
        // Last: a restore of files does not wait for these, and they hear of all that came of the step.
        let tools = &self.spec.toolbox;
        let step = Step::new(&mut self.record, &mut self.serial, now, out);
        self.non_turn_work.question_hooks.tell(tools, step, start);
        let hooks = &self.spec.toolbox.hooks;
        self.non_turn_work.event_hooks.tell(hooks, Step::new(&mut self.record, &mut self.serial, now, out), start);
    }

    /// Changes that came up in this step.
    fn change_state(&mut self, now: Now, out: &mut StepOutput) {
        for delta in std::mem::take(&mut out.state_changes) {
            self.scratch.state.add_change(&mut Step::new(&mut self.record, &mut self.serial, now, out), delta);
        }
    }

    /// The tools from outside are others now: they hold from the next request on.
    fn update_tools(&mut self, tools: &McpTools) {
        self.scratch.preamble.update_servers(&tools.servers, tools.notices.clone());
        let folder = Arc::make_mut(&mut self.folder);
        let said = tools.servers.iter().filter(|it| it.is_there());
        let said = said.filter_map(|it| Some((it.name.as_str(), it.offer.instructions.as_deref()?)));
        folder.instructions = folder.instructions.with_server_words(said);
        folder.toolbox = folder.toolbox.with_mcp_tools(tools.tools.clone(), tools.servers.clone());
        self.basis = SpecBasis::Outdated;
    }

    /// They hold from the next prompt on.
    fn update_definitions(&mut self, agents: &FolderAgents, prompts: &FolderPrompts) {
        let choices = &mut Arc::make_mut(&mut self.folder).choices;
        choices.agents.clone_from(agents);
        choices.prompts.clone_from(prompts);
        self.basis = SpecBasis::OneTurn;
    }

    /// castor's own names of models lead to what is served on this day.
    fn move_to_day(&mut self, day: Date) {
        if self.folder.aliases.day() != day {
            (self.folder, self.basis) = (Arc::new(self.folder.on(day)), SpecBasis::Outdated);
        }
    }

    /// A turn that runs stays with the agent that it began with.
    fn renew_spec(&mut self, now: Now) {
        self.move_to_day(now.day());
        let agent = match &self.turn {
            Some(_) => self.record.principal.agent(),
            None => self.record.chosen_agent(),
        };
        // The instructions of an agent name the model, the day and the state.
        let is_own = agent.is_none() && self.record.principal.agent().is_none();
        let choices = self.record.choices();
        match &self.basis {
            SpecBasis::Choices(it) if is_own && **it == *choices => return,
            _ => (),
        }
        self.basis = if is_own { SpecBasis::Choices(Box::new(choices.clone())) } else { SpecBasis::OneTurn };
        self.spec = Arc::new(session_spec(&self.folder, &self.record, agent, &self.state(), &now.date()));
        self.scratch.checkpoints.set_enabled(self.spec.toolbox.checkpoints);
    }

    /// Tracks the effects from `start` on that were begun, so that their ends are known.
    fn track_checkpoints(&mut self, now: Now, out: &mut StepOutput, start: usize) {
        let acts = out.acts.get(start..).unwrap_or_default();
        self.scratch.checkpoints.observe_acts(acts);
        if let Some(it) = self.scratch.checkpoints.open_checkpoints(acts) {
            Step::new(&mut self.record, &mut self.serial, now, out).start_effect(it);
        }
    }
}

/// `None`: to a message that is not there.
fn rewind(cx: &mut TurnContext<'_, '_>, before: Option<RewindPoint>) {
    let Some(before) = before else { return };
    let is_empty = before.is_empty();
    cx.step.rewind(before);
    if is_empty {
        restart_session(cx);
    }
}

/// The model knows nothing any more, also not what hooks said at the session's start: they hear of its end, then of
/// another start.
fn restart_session(cx: &mut TurnContext<'_, '_>) {
    if cx.scratch.preamble.is_opened() {
        // Nobody waits for what they say of it.
        end_hooks(cx.spec, "clear", cx.step.record).into_iter().for_each(|run| _ = cx.step.start_hook(run));
        cx.scratch.preamble.reopen();
    }
}

/// The hooks of a session's end.
fn end_hooks(spec: &Spec, reason: &str, record: &Record) -> Vec<HookRun> {
    let plan = spec.toolbox.hooks.plan(HookEvent::SessionEnd, reason, &record.switches);
    let input = serde_json::Map::from_iter([("reason".to_owned(), reason.into())]);
    plan.hooks.into_iter().chain(plan.observers).map(|hook| HookRun::new(hook, input.clone())).collect()
}

fn refuse_prompt(step: &mut Step<'_>, prompt: PromptId) {
    let why = format!("{MAX_WAITING} prompts are waiting in this session already");
    settle_prompt(step, prompt, PromptOutcome::Failed { kind: "session", why });
}

/// A prompt that no model was asked for ends.
fn settle_prompt(step: &mut Step<'_>, prompt: PromptId, outcome: PromptOutcome) {
    step.start_effect(Effect::AnswerPrompt { prompt, outcome, usage: None, stats: None });
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_given;
#[cfg(test)]
mod tests_state;
#[cfg(test)]
mod tests_undo;
