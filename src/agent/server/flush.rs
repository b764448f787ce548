//! The end of a loop turn: logs facts, shows them, then starts effects. If the log cannot be written, the turn ends.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jsonrpsee::types::ErrorObjectOwned;

use crate::{
    model::refused_parameters::RefusedParameter,
    server::{
        agents,
        air::index_watch,
        event::EditorRequest,
        event_feed,
        handlers::{auth::login_command, definitions, rewind_results},
        live::{children, foreground, offered_commands, reconnect, renewals, session_state},
        mcp,
        outbox::{OutboxItem, Round, SuspendedRound},
        pending_requests::{self, ClientRequest, RequestOwner},
        prompt_answer::{PromptAnswer, answer_prompt},
        questions, reply, server_orders,
        state::State,
        tasks::Tasks,
        trust,
    },
    session::{confinement, live_session::LiveSession, terminals::TerminalEnd},
};
use castor_base::{
    event::{AgentEvent, EventKind},
    fallback::Outage,
    hook::HookRun,
    ids::{EffectId, SessionId},
    log::{Fact, Grant},
    model_table::Parameter,
    path::AbsPath,
    tool::PolicyClass,
};
use castor_engine::step::{Act, Effect, Input, QuestionTopic, UserQuestion};
use castor_store::sessions::AppendError;
use castor_tools::workspace::said_once;
use castor_wire::{
    acp::{
        own::intercept::{self, InterceptRequest},
        terminals::CREATE,
    },
    jsonrpc::{
        error,
        open_requests::{OutgoingRequests, Ticket},
        write,
    },
};

/// A shared store gives up before.
const MAX_WAIT: Duration = Duration::from_secs(60);

impl Round {
    /// Sub-agents of a session were cancelled: the client sees their end before `rest`, which the session has still to
    /// say.
    fn end_children_first(
        &mut self,
        (id, sessions): (&SessionId, &BTreeMap<SessionId, LiveSession>),
        mut cancelled: Self,
        rest: Vec<Act>,
    ) {
        self.broken.extend(std::mem::take(&mut cancelled.broken));
        let is_of_child = |it: &OutboxItem| match it {
            OutboxItem::Acts(of, _) | OutboxItem::Announcement(of, _) => children::is_below(sessions, of, id),
            OutboxItem::Lines(..)
            | OutboxItem::Stored(..)
            | OutboxItem::QuestionAnswered(_)
            | OutboxItem::Answer { .. }
            | OutboxItem::Editor(_) => false,
        };
        let (children, others): (Vec<_>, Vec<_>) = self.items.drain(..).partition(is_of_child);
        let rest = OutboxItem::Acts(id.clone(), rest);
        let mut later = cancelled.items;
        let of_cancel = later.split_off(self.n_later.min(later.len()));
        self.n_later = 0;
        let now = children.into_iter().chain(of_cancel).chain([rest]).chain(others);
        self.items = now.chain(later).collect();
    }

    /// Says and starts what is logged by now.
    fn perform(mut self, state: &mut State, lines: &mut Vec<u8>) {
        self.n_later = state.outbox.n_of(self.lane.as_ref());
        if self.n_later > 0 {
            // Nothing is added to what is later.
            state.outbox.items.push(OutboxItem::Lines(None, Vec::new()));
        }
        while let Some(it) = self.items.pop_front() {
            match it {
                OutboxItem::Lines(_, more) | OutboxItem::Announcement(_, more) => lines.extend_from_slice(&more),
                OutboxItem::QuestionAnswered(id) => children::note_waiting(state, &id, lines),
                OutboxItem::Editor(request) => ask_editor(&state.tasks, &mut state.outgoing, request, lines),
                OutboxItem::Stored(_, ticket) => state.tasks.chores.store.note_stored(ticket),
                OutboxItem::Answer { session, request, lines: answer } => match self.broken.get(&session) {
                    None => lines.extend_from_slice(&answer),
                    Some(why) => write::error(lines, &request, &log_error(why, "")),
                },
                // Nothing more is shown of it; what it started is stopped by the refold.
                OutboxItem::Acts(id, _) if self.broken.contains_key(&id) => (),
                OutboxItem::Acts(id, acts) => {
                    let Some(rest) = perform_acts(state, &id, acts, lines) else { continue };
                    let later = state.outbox.take_of(self.lane.as_ref());
                    let mut cancelled = Self::begin(self.lane.clone(), later, &mut state.sessions, &state.tasks.store);
                    if !cancelled.settle(&mut state.sessions, Duration::ZERO) {
                        cancelled.above = Some(Box::new(SuspendedRound { round: self, id, rest }));
                        return state.outbox.hold(cancelled);
                    }
                    self.end_children_first((&id, &state.sessions), cancelled, rest);
                }
            }
        }
        for (id, why) in self.broken {
            state.refold(&id, &log_error(&why, ", so the turn was stopped"));
        }
    }

    /// The same for one that a shared store has taken; then that which waited for it.
    fn go_on(mut self, state: &mut State, lines: &mut Vec<u8>) {
        match self.above.take() {
            None => self.perform(state, lines),
            Some(above) => {
                let SuspendedRound { mut round, id, rest } = *above;
                round.end_children_first((&id, &state.sessions), self, rest);
                round.perform(state, lines);
            }
        }
    }
}

/// Logs everything that the turn collected, says what is logged, and returns the bytes for the client. What a shared store
/// has still to take is said by a later flush, and all that comes after it of the same session.
pub fn flush(state: &mut State) -> Vec<u8> {
    flush_within(state, Duration::ZERO)
}

/// Flushes like [`flush`], but waits up to `limit`, in total, for the store.
pub fn flush_within(state: &mut State, mut limit: Duration) -> Vec<u8> {
    let mut lines = Vec::new();
    flush_rounds(state, &mut limit, &mut lines);
    lines
}

fn flush_rounds(state: &mut State, limit: &mut Duration, lines: &mut Vec<u8>) {
    // A failed log write makes a session say more: that is said in another round.
    loop {
        let storing: Vec<SessionId> = state.outbox.storing.keys().cloned().collect();
        let n_stored = storing.iter().filter(|it| perform_stored(state, it, limit, lines)).count();
        if state.outbox.has_ready_facts() {
            index_watch::note_change(state);
        }
        let ready = state.outbox.take_ready();
        if n_stored == 0 && ready.is_empty() {
            break;
        }
        for (lane, items) in ready {
            let mut round = Round::begin(lane, items, &mut state.sessions, &state.tasks.store);
            round.early = state.outbox.take_early(round.lane.as_ref());
            match round.settle(&mut state.sessions, Duration::ZERO) {
                true => round.perform(state, lines),
                false => state.outbox.hold(round),
            }
        }
    }
    for (id, effect_id, effect) in std::mem::take(&mut state.outbox.begun) {
        if let Some(live) = state.sessions.get(&id) {
            start(&mut state.tasks, live, effect_id, effect);
        }
    }
    state.tasks.start_requests();
}

/// Tells whether the store has answered within `limit`, which is spent if not.
fn perform_stored(state: &mut State, id: &SessionId, limit: &mut Duration, lines: &mut Vec<u8>) -> bool {
    let Some(mut round) = state.outbox.storing.remove(id) else { return false };
    let is_stored = round.settle(&mut state.sessions, *limit);
    match is_stored {
        true => round.go_on(state, lines),
        false => {
            *limit = Duration::ZERO;
            state.outbox.hold(round);
        }
    }
    is_stored
}

/// Returns what is left when sub-agents of the session were cancelled: their ends are logged and said first.
fn perform_acts(state: &mut State, id: &SessionId, acts: Vec<Act>, lines: &mut Vec<u8>) -> Option<Vec<Act>> {
    let mut acts = acts.into_iter();
    while let Some(act) = acts.next() {
        let aborted = if let Act::Do(_, Effect::Abort { effect }) = &act { Some(*effect) } else { None };
        perform_act(state, id, act, lines);
        if aborted.is_some_and(|it| children::abort(state, id, it)) {
            return Some(acts.collect());
        }
    }
    None
}

/// For a session that is built from its log: what a shared store has still to take of it is taken and said before all
/// that came later.
pub fn settle(state: &mut State, id: &SessionId) {
    let (mut lines, mut limit) = (Vec::new(), MAX_WAIT);
    if perform_stored(state, &id.root(), &mut limit, &mut lines) {
        state.outbox.items.insert(0, OutboxItem::Lines(None, lines));
    }
}

/// For a handler that needs a session's log as it is: what was said so far is logged and started now. Its lines leave with
/// the turn's.
pub fn flush_early(state: &mut State, id: &SessionId) {
    let (mut lines, mut limit) = (flush(state), MAX_WAIT);
    while perform_stored(state, &id.root(), &mut limit, &mut lines) {
        lines.extend(flush(state));
    }
    state.outbox.queue_lines(None, |it| it.extend_from_slice(&lines));
}

fn log_error(why: &AppendError, so: &str) -> ErrorObjectOwned {
    error::failed("log", &format!("the session log could not be written: {why}{so}. {}", why.fix()))
}

fn perform_act(state: &mut State, id: &SessionId, act: Act, lines: &mut Vec<u8>) {
    match act {
        Act::Log(entry) => {
            state.tasks.traces.trace_entry(id, &entry);
            foreground::note_message(state, id, &entry.fact, lines);
            if let Some(live) = state.sessions.get_mut(id) {
                live.view.show(&entry.fact, lines);
            }
            match &entry.fact {
                Fact::Event { event } => {
                    publish_event(state, id, event, lines);
                    children::tell_parent(state, id, event);
                    if matches!(event.kind, EventKind::AgentEnd { .. }) {
                        reconnect::end_prompt_model(state, id);
                    }
                }
                Fact::Mode { mode } => children::follow_mode(state, id, *mode),
                Fact::AgentSwitched { .. } | Fact::Agent { .. } => {
                    if let Some(live) = state.sessions.get_mut(id) {
                        agents::update_offer(live, lines);
                        agents::note_in_list(live, &mut state.tasks);
                    }
                }
                Fact::SkillSwitched { .. } => {
                    if let Some(live) = state.sessions.get_mut(id) {
                        offered_commands::append_update(live, lines);
                    }
                }
                // It may be another provider's.
                Fact::Model { .. } => reconnect::reconnect_model(state, id),
                Fact::PromptOptions { options } if options.model.is_some() => reconnect::begin_prompt_model(state, id),
                Fact::Rewound { to } => {
                    if let Some(live) = state.sessions.get_mut(id) {
                        rewind_results::append_notice(state.client.as_ref(), live, to, lines);
                    }
                }
                _ => (),
            }
        }
        Act::BeginStream { prompt, stream } => {
            event_feed::announce_stream(state, id, (prompt, &stream), lines);
            if let Some(live) = state.sessions.get_mut(id) {
                foreground::begin(live, prompt, lines);
            }
        }
        Act::Do(effect_id, effect) => dispatch_effect(state, id, effect_id, effect, lines),
    }
}

/// Turns are traced by their events; clients get them beside the updates.
fn publish_event(state: &mut State, id: &SessionId, event: &AgentEvent, lines: &mut Vec<u8>) {
    // Prompts of a session wait for each other: what starts now is of its oldest.
    let requests = &state.requests;
    let is_its = |it: &RequestOwner| matches!(it, RequestOwner::Prompt(of) if of == id);
    let oldest = || requests.iter().find(|(_, it)| is_its(it)).map(|(ticket, _)| ticket);
    state.tasks.traces.trace_event(id, event, oldest);
    event_feed::tell_event(state, id, event, lines);
}

/// The folder where a permanent permission holds that does not hold everywhere.
fn folder_of(live: &LiveSession) -> AbsPath {
    confinement::grant_folder(&live.resources.roots, &live.resources.cwd).clone()
}

fn dispatch_effect(state: &mut State, id: &SessionId, effect_id: EffectId, effect: Effect, lines: &mut Vec<u8>) {
    match effect {
        Effect::AnswerPrompt { outcome, stats, .. } if id.is_child() => {
            children::finish(state, id, (outcome, stats.as_deref()), lines);
        }
        Effect::AnswerPrompt { prompt, outcome, usage, stats } => {
            answer_prompt(state, id, Ticket(prompt.0), PromptAnswer { outcome, usage, stats }, lines)
        }
        Effect::RewindConversation { to } => rewind_results::replay_log(state, id, to),
        Effect::AnswerRewind { prompt, result } => rewind_results::answer_rewind(state, Ticket(prompt.0), *result),
        Effect::SaveState { user, delta } => state.tasks.save_state(id, effect_id, user, delta),
        Effect::AnswerPolicy { prompt, result } => {
            let result = result.as_ref().as_ref().map_err(|why| error::invalid_params(why));
            reply::answer(state, Ticket(prompt.0), result);
        }
        Effect::AnswerState { prompt, result } => session_state::answer(state, Ticket(prompt.0), result),
        Effect::ChooseAgent { agent } => {
            agents::choose(state, id, Some(agent));
            state.step(id, Input::AgentChosen { effect: effect_id });
        }
        Effect::ReadDefinitions => definitions::read_definitions(state, id, Some(effect_id)),
        Effect::ApplyTrust(choice) => trust::apply_answer(state, id, effect_id, choice),
        Effect::SaveGrant(lasting) => {
            if let Some(folder) = state.sessions.get(id).map(folder_of) {
                state.tasks.save_policy(folder, lasting);
            }
        }
        Effect::UpdateGrant { grant, holds } => update_grant(state, id, grant, holds),
        Effect::WriteScratch { file, text } => state.tasks.stash(file, text),
        Effect::ManageServer(order) => server_orders::begin(state, id, effect_id, *order),
        Effect::WidenProgram { program, grant } => mcp::widen(state, id, program, &grant),
        Effect::RenewCredential(order) => renewals::renew(state, id, effect_id, &order),
        Effect::UpdateHealth { model, outage } => note_outage(state, id, (model, outage)),
        Effect::RememberRefusal { model, parameter } => remember_refusal(state, id, (model, parameter)),
        Effect::SayOnce { subject, text } => say_once(state, id, subject, text),
        Effect::AskUser(question) => ask_user(state, id, &question, lines),
        Effect::AnswerElicitation { elicitation, reply } => {
            state.tasks.server_uses.questions.send_reply(elicitation, reply)
        }
        Effect::WithdrawQuestion { question } => {
            pending_requests::withdraw(&mut state.outgoing, |it| it.forget_question(id, question), lines);
            children::note_waiting(state, id, lines);
        }
        Effect::Abort { effect } => abort(state, id, effect, lines),
        Effect::TellHook(run) => tell_hook(state, id, *run, lines),
        Effect::HintAgents { content } => children::hint(state, id, &content),
        Effect::SetTimer { at_ms } => state.timers.add(at_ms, id.clone(), effect_id),
        other if is_delegation(state.sessions.get(id), &other) => children::start(state, id, effect_id, other),
        other => {
            if let Some(live) = state.sessions.get(id) {
                start(&mut state.tasks, live, effect_id, other);
            }
        }
    }
}

/// Unless it was said before, in whatever session.
fn say_once(state: &mut State, id: &SessionId, subject: String, text: String) {
    if !said_once::unsaid(state.tasks.store.home(), &[subject]).is_empty() {
        state.step(id, Input::Announce(text));
    }
}

fn abort(state: &mut State, id: &SessionId, effect: EffectId, lines: &mut Vec<u8>) {
    state.tasks.abort_effect(id, effect, state.now.unix_ms);
    pending_requests::withdraw(&mut state.outgoing, |it| it.is_call_of(id, effect), lines);
    // Said in the next round: after the end of the call, which may show the terminal.
    let requests = state.terminals.release(id, effect, TerminalEnd::Kill);
    state.queue_requests(id, requests);
}

/// Nobody waits for it: neither for a command nor for the client's answer.
fn tell_hook(state: &mut State, id: &SessionId, run: HookRun, lines: &mut Vec<u8>) {
    if run.hook.is_of_client() {
        let request = state.outgoing.register(ClientRequest::IgnoredReply);
        _ = write::request(lines, request, intercept::METHOD, &InterceptRequest::new(id, &run));
    } else if let Some(live) = state.sessions.get(id) {
        state.tasks.tell_hook(&live.resources, run);
    }
}

/// Tells whether it is the call of a sub-agent.
fn is_delegation(live: Option<&LiveSession>, effect: &Effect) -> bool {
    let Effect::Run { call, .. } = effect else { return false };
    let toolbox = live.map(|it| &it.session.spec().toolbox);
    toolbox.is_some_and(|it| it.traits(&call.name).class == PolicyClass::Delegate)
}

/// Asks the client; a question that it cannot show is answered at once.
fn ask_user(state: &mut State, id: &SessionId, question: &UserQuestion, lines: &mut Vec<u8>) {
    let mut client = state.client.clone().unwrap_or_default();
    let Some(live) = state.sessions.get_mut(id) else { return };
    client.shows_forms |= matches!(question.about, QuestionTopic::Form { .. }) && live.session.record().shows_forms();
    if let Some(call) = question.about.call() {
        live.view.announce(call, lines);
    }
    if let QuestionTopic::Credential { credential, .. } = &question.about
        && let Some(askers) = pending_requests::askers_for(&mut state.outgoing, id, &credential.key())
    {
        askers.push((id.clone(), question.id));
        return children::note_waiting(state, id, lines);
    }
    let login = login_command(&state.env);
    let asker = questions::Asker { session: id, agent: live.session.record().principal.agent(), login: &login };
    match questions::ask(&client, &mut state.outgoing, asker, question, lines) {
        Some(answer) => state.step(id, Input::Answered { question: question.id, answer }),
        None => children::note_waiting(state, id, lines),
    }
}

fn update_grant(state: &mut State, id: &SessionId, grant: Grant, holds: bool) {
    let Some(folder) = state.sessions.get(id).map(folder_of) else { return };
    if grant == Grant::Auto && holds {
        trust::trust_plain_folder(state, &folder);
    }
    state.tasks.save_sandbox_grant(folder, grant, holds);
}

/// A session found out about a model: the others that reach it there know, too.
fn note_outage(state: &mut State, id: &SessionId, news: (String, Option<Outage>)) {
    let State { models, sessions, now, .. } = state;
    for it in models.outages.note(id, news, now.unix_ms, |it| sessions.contains_key(it)) {
        let known = state.models.outages.of(&it);
        state.step(&it, Input::Outages(known));
    }
}

/// For later sessions. A model that castor does not reach by itself is asked as it is.
fn remember_refusal(state: &mut State, id: &SessionId, (model, parameter): (String, Parameter)) {
    let address = state.sessions.get(id).and_then(|it| it.resources.generator.address(&model));
    if let Some(address) = address {
        let row = RefusedParameter { model, address, parameter, at_ms: state.now.unix_ms };
        state.tasks.save_refusal(row);
    }
}

fn start(tasks: &mut Tasks, live: &LiveSession, effect_id: EffectId, effect: Effect) {
    let LiveSession { log, resources, .. } = live;
    let durable = matches!(effect, Effect::Run { durable: true, .. });
    let log = durable.then(|| log.sync_handle().ok()).flatten();
    let resources = Arc::clone(resources);
    let span = tasks.traces.turn(&resources.session).cloned();
    let _in_span = span.as_ref().map(tracing::Span::enter);
    tasks.start_effect(&resources, effect_id, effect, log);
}

/// A request to the editor on behalf of a task. After what was items before it: a cancel in the same turn, too.
fn ask_editor(
    tasks: &Tasks,
    outgoing: &mut OutgoingRequests<ClientRequest>,
    request: EditorRequest,
    lines: &mut Vec<u8>,
) {
    let EditorRequest { session, effect, method, params, reply } = request;
    // A call that is over does nothing more to the editor.
    if reply.is_closed() || !tasks.is_running(&session, effect) {
        return;
    }
    let id = outgoing.register(match method {
        CREATE => ClientRequest::Terminal { session, effect, reply },
        _ => ClientRequest::EditorCall { session, effect, reply },
    });
    _ = write::request(lines, id, method, &params);
}

/// Answers every request that is open when castor ends, so that no client waits in vain.
pub fn answer_all(state: &mut State) {
    let open: Vec<Ticket> = state.requests.iter().map(|(ticket, _)| ticket).collect();
    for ticket in open {
        reply::answer::<()>(state, ticket, Err(error::shutdown()));
    }
}
