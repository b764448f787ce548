//! Sub-agents: starts the session of a call, tells the session above of it, and ends both together.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use jsonrpsee::types::ErrorObjectOwned;
use serde_json::{Map, Value, json};

use crate::server::{
    live::{foreground, reconnect},
    mcp,
    outbox::OutboxItem,
    pending_requests,
    state::State,
    tasks::Tasks,
};
use crate::{
    errors::store_error,
    model::{model_factory::ModelContext, reachability},
    session::{
        agent_folders::narrow,
        live_session::{LiveSession, ParentLink},
        peers::{PeerHands, peer_generator},
        place::load_ground,
        session_resources::{ChildProcesses, SessionClosed, SessionResources},
    },
};
use castor_base::{
    agent::{AgentResult, AgentRun, TerminateMode, failure_in_words},
    content::Part,
    event::{AgentEvent, EventKind, NOTICE, PromptOutcome, ToolProgress},
    held_program::{HeldProgram, HoldReason, ProgramName},
    ids::{EffectId, PromptId, SessionId, ThreadId},
    limits::LimitSpan,
    log::{ChildLink, Mode, Principal},
    mcp::McpServerConfig,
    money::Money,
    peer_agent::{PEER_MEMORY, PeerAgent, ProgramAgent, REPORTED_CALL},
    prompt_stats::PromptStats,
    sandbox::ProgramSandbox,
    text::wrap_untrusted,
    tool::{Display, ToolCall, ToolError, ToolOutput},
};
use castor_engine::{
    record::SessionOrigin,
    session::Session,
    session_tools::delegate::{agent_name, delegation},
    step::{Effect, Input, OptionValue, StepOutput},
    turn::{ChildModel, ChildStart, child_spec, run_state},
};
use castor_wire::acp::{
    initialize::{AcpVersion, Client},
    update::subagents::{self, ChildState},
    updates::SessionView,
};

/// The one prompt of a sub-agent: no request of the client waits for it.
const PROMPT: PromptId = PromptId(0);

/// Starts the sub-agent of a call; `run` is what the session wants done. What cannot start has failed at once.
pub fn start(state: &mut State, parent: &SessionId, effect: EffectId, run: Effect) {
    let Effect::Run { call, .. } = &run else { return };
    let link =
        ParentLink { session: parent.clone(), effect, run: run.clone(), is_wanted: true, is_told_to_wait: false };
    if let Err(why) = begin(state, link, call) {
        let output = failed(agent_name(call), &why);
        end_call(&mut state.tasks, state.sessions.get(parent), (effect, run), output);
    }
}

/// Makes the session of a sub-agent, and gives it its prompt.
fn begin(state: &mut State, link: ParentLink, call: &ToolCall) -> Result<(), String> {
    let now = state.now();
    let parent = state.sessions.get(&link.session).ok_or("its session is gone")?;
    let record = parent.session.record();
    let delegation =
        delegation(&parent.session.spec().toolbox.agents, &call.name, &call.args).map_err(|it| it.message)?;
    let agent = delegation.agent.descriptor.name.clone();
    let above = parent.session.state();
    let name = now.id(&format!("{agent}-"), 1);
    let id = link.session.child(&name);
    let folders = &delegation.agent.folders;
    let resources = narrow(resources(&parent.resources, &id, &link.run), folders)?;
    let spec = match folders.is_empty() {
        true => Cow::Borrowed(parent.session.spec()),
        false => Cow::Owned(parent.session.spec().in_folders(&resources.cwd, &resources.roots)),
    };
    let ChildStart { spec, context, prompt, model } = child_spec(&spec, record, &delegation, &above, &now.date())?;
    let thread = record.thread().map_or_else(|| name.clone(), |above| format!("{above}.{name}"));
    let child_of = ChildLink { session: link.session.clone(), call: call.id.clone(), agents: record.principal_path() };
    let (cwd, roots) = (resources.cwd.clone(), resources.roots.clone());
    let (mode, grants) = (record.mode, record.grants.clone());
    let is_same_model = model.name() == record.model;
    let servers = own_servers(&delegation.agent.run);
    let (profile, chosen) = (parent.profile.clone(), parent.chosen_options());
    let resources = match is_same_model {
        true => {
            state.models.outages.share_places(&link.session, &id);
            resources
        }
        false => with_other_model(state, resources, &model)?,
    };
    let model = model.name().to_owned();
    let log = state.tasks.store.begin(&id).map_err(|it| store_error(&id, &it).message().to_owned())?;
    let principal = Principal::Agent(agent.clone());
    let (link_above, thread) = (child_of.clone(), Some(ThreadId::from(thread)));
    let (session, child_of) = (id.clone(), Some(child_of));
    let origin = SessionOrigin { session, cwd, roots, mode, model, principal, child_of, thread, user: None };
    let mut out = StepOutput::default();
    let mut session = Session::create(origin, Arc::new(spec), now, &mut out);
    session.inherit(grants, above, now, &mut out);
    let view = match profile.features.subagents {
        true => {
            let mut lines = Vec::new();
            subagents::announce(&link_above, &id, (&agent, &prompt), profile.features.version, &mut lines);
            state.outbox.items.push(OutboxItem::Announcement(id.clone(), lines));
            SessionView::new(id.clone(), profile.clone(), chosen)
        }
        false => SessionView::of_child(id.root(), agent.clone(), profile.clone(), chosen),
    };
    let live = LiveSession::new(session, log, (profile, view), Arc::new(resources));
    state.tasks.traces.begin_agent(&link.session, &id, (&agent, call));
    let live = LiveSession { parent: Some(link), ..live };
    state.sessions.insert(id.clone(), live);
    state.outbox.queue_acts(&id, out);
    reconnect::send_outages(state, &id);
    mcp::connect_agent(state, &id, &agent, &servers);
    let texts = context.into_iter().chain([prompt]).map(Part::text);
    state.step(&id, Input::Prompt { prompt: PROMPT, content: texts.collect::<Vec<_>>().into() });
    Ok(())
}

fn own_servers(run: &AgentRun) -> Vec<McpServerConfig> {
    match run {
        AgentRun::Local(it) => it.mcp_servers.clone(),
        AgentRun::Composite(_) | AgentRun::Peer(_) => Vec::new(),
    }
}

/// As those of the session above; what commands leave running ends with the sub-agent.
fn resources(parent: &SessionResources, id: &SessionId, run: &Effect) -> SessionResources {
    let mut files = parent.files.clone();
    if let Effect::Run { hold: Some(hold), .. } = run {
        files.above.push(hold.id.clone());
    }
    let children = ChildProcesses { closed: SessionClosed::default(), ..parent.children.clone() };
    SessionResources { session: id.clone(), children, files, ..parent.clone() }
}

/// # Errors
/// For the model: the sub-agent's own model, server or program cannot be reached.
fn with_other_model(
    state: &mut State,
    resources: SessionResources,
    it: &ChildModel,
) -> Result<SessionResources, String> {
    match it {
        ChildModel::Named(it) => with_model(state, resources, it).map_err(|it| it.message().to_owned()),
        ChildModel::Peer { peer, memory, name } => {
            note_let_out(state, &resources, name, peer);
            with_peer(state, resources, peer, memory.as_deref())
        }
    }
}

/// A program that its file lets out of the sandbox: the session of the user asks about what would keep it inside, once it
/// has run.
fn note_let_out(state: &mut State, resources: &SessionResources, name: &str, peer: &PeerAgent) {
    let PeerAgent::Program(ProgramAgent { sandbox: ProgramSandbox { is_off: true, .. }, .. }) = peer else { return };
    let program = ProgramName::Agent(name.trim_start_matches("acp/").to_owned());
    let held = HeldProgram { program, why: HoldReason::Unseen(resources.roots.clone()) };
    state.step(&resources.session.root(), Input::ProgramHeld(Box::new(held)));
}

/// # Errors
/// For the client: the model cannot be reached.
fn with_model(
    state: &mut State,
    resources: SessionResources,
    model: &str,
) -> Result<SessionResources, ErrorObjectOwned> {
    let (ground, settings) = load_ground(&state.options, &state.env, &resources.children.hooks.project);
    let context = ModelContext { options: &state.options, env: &ground.env, settings: &settings };
    let (generator, reached) = reachability::reach_models(&mut state.models, context, &resources.session, model);
    reached.trouble.map_or(Ok(SessionResources { generator, ..resources }), Err)
}

/// # Errors
/// For the model: the peer cannot be driven.
fn with_peer(
    state: &State,
    resources: SessionResources,
    peer: &PeerAgent,
    memory: Option<&str>,
) -> Result<SessionResources, String> {
    let (ground, _) = load_ground(&state.options, &state.env, &resources.children.hooks.project);
    let hands = PeerHands { http: state.models.http(), env: ground.env.clone() };
    let generator = peer_generator(peer, memory, &resources, hands)?;
    Ok(SessionResources { generator, ..resources })
}

/// Tells the session above what of an event counts there. Text is the most of them, and counts only as a result.
pub fn tell_parent(state: &mut State, id: &SessionId, event: &AgentEvent) {
    let Some(ParentLink { session, effect, .. }) = state.sessions.get(id).and_then(|it| it.parent.as_ref()) else {
        return;
    };
    let is_told = match &event.kind {
        EventKind::Message { content, .. } => content.iter().any(|it| matches!(it, Part::Thought { .. })),
        EventKind::ToolUpdate { update, .. } => {
            matches!(update, ToolProgress::Described { .. } | ToolProgress::Started { display: Some(_) })
        }
        EventKind::Custom { kind, .. } => [NOTICE, REPORTED_CALL, PEER_MEMORY].contains(&kind.as_str()),
        EventKind::ToolRequest { .. }
        | EventKind::ToolResponse { .. }
        | EventKind::Usage { .. }
        | EventKind::Error { .. } => true,
        _ => false,
    };
    if is_told {
        let (session, input) = (session.clone(), Input::ChildEvent { effect: *effect, event: Box::new(event.clone()) });
        state.step(&session, input);
    }
}

/// The run of a sub-agent is over: its session goes, and the call gets its result.
pub fn finish(
    state: &mut State,
    id: &SessionId,
    (outcome, stats): (PromptOutcome, Option<&PromptStats>),
    lines: &mut Vec<u8>,
) {
    let result = match outcome {
        PromptOutcome::Agent(it) => it,
        PromptOutcome::Failed { why, .. } | PromptOutcome::AuthRequired(why) => {
            AgentResult::new(TerminateMode::Error, why)
        }
        PromptOutcome::Stop(_) | PromptOutcome::Steered(_) => {
            AgentResult::new(TerminateMode::Aborted, "The agent was cancelled.")
        }
    };
    if let Some(live) = state.sessions.get(id) {
        let n_turns = live.session.record().limit_usage(LimitSpan::Turn).requests;
        state.tasks.traces.end_agent(id, result.terminate_reason, n_turns);
    }
    let Some(LiveSession { session, log, parent, .. }) = remove(state, id, lines) else { return };
    if let Ok(log) = log.sync_handle() {
        state.tasks.queue_sync(log);
    }
    let ended = ChildState::Ended(result.terminate_reason.into());
    if let (Some(link), Some(version)) = (&parent, shown_version(state.client.as_ref())) {
        subagents::show_state(&link.session, id, ended, version, lines);
    }
    let Some(ParentLink { session: parent, effect, run, is_wanted, .. }) = parent else { return };
    // Also where nobody waits for it any more: what it changed is found out on that way.
    let agent = session.record().principal.agent().unwrap_or_default();
    let changes = if is_wanted { run_state(session.spec(), session.record(), &result) } else { Default::default() };
    let is_foreign = session.spec().toolbox.task.as_ref().is_some_and(|it| it.is_of_peer());
    let output = ToolOutput { state: changes, ..output((agent, is_foreign), id, result, stats) };
    end_call(&mut state.tasks, state.sessions.get(&parent), (effect, run), output);
    note_waiting(state, &parent, lines);
}

/// The version in which the client shows sub-agents as sessions; `None`: it does not.
fn shown_version(client: Option<&Client>) -> Option<AcpVersion> {
    client.filter(|it| it.features.subagents).map(|it| it.features.version)
}

/// A sub-agent's session failed in a way that its log cannot take any more.
pub fn fail(state: &mut State, id: &SessionId, why: &str) {
    let outcome = PromptOutcome::Failed { kind: "session", why: why.to_owned() };
    cancel_all(state, id);
    state.end_open(id);
    let mut lines = Vec::new();
    finish(state, id, (outcome, None), &mut lines);
    state.outbox.queue_lines(Some(id), |it| it.append(&mut lines));
}

fn remove(state: &mut State, id: &SessionId, lines: &mut Vec<u8>) -> Option<LiveSession> {
    pending_requests::withdraw(&mut state.outgoing, |it| it.forget_session(id), lines);
    if let Some(live) = state.sessions.get_mut(id) {
        live.view.interrupt("The sub-agent has ended.", lines);
    }
    state.tasks.abort_session(id, state.now.unix_ms);
    let requests = state.terminals.release_all(id);
    state.queue_requests(id, requests);
    state.tasks.traces.forget_session(id);
    state.sessions.remove(id)
}

fn end_call(tasks: &mut Tasks, parent: Option<&LiveSession>, (effect, run): (EffectId, Effect), output: ToolOutput) {
    if let Some(live) = parent {
        tasks.finish_delegation(&live.resources, effect, run, output);
    }
}

/// What the call returns. The words of a foreign agent are no orders.
fn output(
    (agent, is_foreign): (&str, bool),
    id: &SessionId,
    it: AgentResult,
    stats: Option<&PromptStats>,
) -> ToolOutput {
    let marked = || match is_foreign {
        true => wrap_untrusted(&it.result).unwrap_or_default(),
        false => it.result.clone(),
    };
    let reason = it.terminate_reason;
    let mut data = json!({ "agent": agent, "sessionId": id, "terminateReason": reason });
    if let (Some(stats), Some(members)) = (stats, data.as_object_mut()) {
        members.extend(spent(stats));
        members.extend(it.escalate_reason.as_ref().map(|why| ("escalateReason".to_owned(), why.as_str().into())));
    }
    let output = match reason {
        TerminateMode::Error if is_foreign => {
            let content = vec![Part::text(format!("Subagent '{agent}' failed. Error:\n{}", marked()))];
            ToolOutput { content, ..failed(agent, &it.result) }
        }
        TerminateMode::Error => failed(agent, &it.result),
        TerminateMode::Aborted => {
            ToolOutput::failed(ToolError::new("cancelled", format!("Subagent '{agent}' was cancelled.")))
        }
        _ => {
            let text = AgentResult { result: marked(), ..it.clone() }.in_words(agent);
            let shown = it.escalate_reason.filter(|_| it.result.is_empty()).unwrap_or(it.result);
            ToolOutput { display: Some(Display::Text { text: shown }), ..ToolOutput::text(text) }
        }
    };
    ToolOutput { data, ..output }
}

/// What a run took, without times.
fn spent(stats: &PromptStats) -> Map<String, Value> {
    let models = || stats.models.values();
    let cost = models().filter_map(|it| it.cost).reduce(Money::plus);
    let mut res = Map::from_iter([
        ("requests".to_owned(), models().map(|it| it.requests).sum::<u64>().into()),
        ("tokens".to_owned(), models().map(|it| it.tokens.total).sum::<u64>().into()),
        ("toolCalls".to_owned(), stats.tools.all.total.into()),
    ]);
    res.extend(cost.map(|it| ("cost".to_owned(), json!(it))));
    res
}

fn failed(agent: &str, why: &str) -> ToolOutput {
    ToolOutput::failed(ToolError::new("agent_failed", failure_in_words(agent, why)))
}

/// A call is no longer wanted: its sub-agent ends, and all below it. Whether there is one.
pub fn abort(state: &mut State, parent: &SessionId, effect: EffectId) -> bool {
    cancel(state, |it| it.session == *parent && it.effect == effect)
}

/// Whatever a session started ends.
pub fn cancel_all(state: &mut State, parent: &SessionId) {
    cancel(state, |it| it.session == *parent);
}

/// Ends sub-agents whose results are no longer wanted. Those below them end first.
fn cancel(state: &mut State, is_it: impl Fn(&ParentLink) -> bool) -> bool {
    let ids = children(&state.sessions, |it| it.is_wanted && is_it(it));
    for id in &ids {
        if let Some(link) = state.sessions.get_mut(id).and_then(|it| it.parent.as_mut()) {
            link.is_wanted = false;
        }
        cancel_all(state, id);
        state.step(id, Input::Cancel);
    }
    !ids.is_empty()
}

/// Tells whether a session is a sub-agent of the other one, or of one below it.
pub fn is_below(sessions: &BTreeMap<SessionId, LiveSession>, id: &SessionId, above: &SessionId) -> bool {
    let above_it = |id: &SessionId| Some(&sessions.get(id)?.parent.as_ref()?.session);
    std::iter::successors(above_it(id), |it| above_it(it)).any(|it| it == above)
}

/// A sub-agent may do what the session above it may.
pub fn follow_mode(state: &mut State, parent: &SessionId, mode: Mode) {
    for id in children(&state.sessions, |it| it.session == *parent) {
        state.step(&id, Input::SetOption(OptionValue::Mode(mode)));
    }
}

/// What the user said to a session is said to its sub-agents, too. Those that start later know it from their prompt.
pub fn hint(state: &mut State, parent: &SessionId, content: &[Part]) {
    for id in children(&state.sessions, |it| it.session == *parent && it.is_wanted) {
        state.step(&id, Input::Hint(content.to_vec()));
    }
}

fn children(sessions: &BTreeMap<SessionId, LiveSession>, is_wanted: impl Fn(&&ParentLink) -> bool) -> Vec<SessionId> {
    let of_parent = sessions.iter().filter(|(_, it)| it.parent.as_ref().filter(&is_wanted).is_some());
    of_parent.map(|(id, _)| id.clone()).collect()
}

/// The time of the sessions above stands still while the user is asked on behalf of this one.
pub fn note_waiting(state: &mut State, id: &SessionId, lines: &mut Vec<u8>) {
    let asks = |it: &SessionId| state.outgoing.iter().any(|(_, asked)| asked.is_question_of(it));
    let is_told = |it: &&ParentLink| it.session == *id && it.is_told_to_wait;
    let waits = asks(id) || !children(&state.sessions, is_told).is_empty();
    state.sessions.get_mut(id).into_iter().for_each(|it| foreground::note_waiting(it, waits, lines));
    // One that is over, and whose end is still to be said, does not go back to work.
    let at_work = state.sessions.get_mut(id).filter(|it| it.session.is_busy());
    let Some(link) = at_work.and_then(|it| it.parent.as_mut()) else { return };
    if std::mem::replace(&mut link.is_told_to_wait, waits) != waits {
        let (parent, effect) = (link.session.clone(), link.effect);
        if let Some(version) = shown_version(state.client.as_ref()) {
            let now = if waits { ChildState::Waiting } else { ChildState::Running };
            subagents::show_state(&parent, id, now, version, lines);
        }
        state.step(&parent, Input::ChildWaits { effect, waits });
        note_waiting(state, &parent, lines);
    }
}
