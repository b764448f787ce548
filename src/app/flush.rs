//! The end of a loop turn: facts are logged, then shown, then effects start. In this order, always.

use std::{collections::BTreeMap, sync::Arc};

use jsonrpsee::types::ErrorObjectOwned;

use crate::{
    app::{
        confinement,
        errors::auth_required,
        event::EditorRequest,
        mcp::asks,
        questions, reach, reply, rewind, sessions,
        state::{Asked, Asker, Live, Said, State},
        terminals::How,
        trust,
    },
    base::{
        event::{AgentEvent, Outcome},
        ids::{EffectId, SessionId},
        log::{Entry, Fact},
        model::Usage,
        path::AbsPath,
    },
    engine::step::{Act, Effect},
    wire::{
        acp::{session, terminals::CREATE, updates},
        jsonrpc::{error, queue::Ticket, write},
    },
};

/// Logs and says everything that the turn collected; returns the bytes for the client.
pub fn flush(state: &mut State) -> Vec<u8> {
    let mut lines = Vec::new();
    // A failed log write makes a session say more: that is said in another round.
    while !state.outbox.said.is_empty() {
        let said = std::mem::take(&mut state.outbox.said);
        let broken = log(state, &said);
        for it in said {
            match it {
                Said::Lines(more) => lines.extend_from_slice(&more),
                Said::Editor(request) => ask_editor(state, request, &mut lines),
                Said::Answer { session, request, lines: answer } => match broken.get(&session) {
                    None => lines.extend_from_slice(&answer),
                    Some(why) => write::error(&mut lines, &request, &unwritten(why)),
                },
                // Nothing more is shown of it; what it started is stopped by the refold.
                Said::Acts(id, _) if broken.contains_key(&id) => (),
                Said::Acts(id, acts) => acts.into_iter().for_each(|it| act(state, &id, it, &mut lines)),
            }
        }
        for (id, why) in broken {
            state.refold(&id, &unwritten(&format!("{why}, so the turn was stopped")));
        }
    }
    lines
}

fn unwritten(why: &str) -> ErrorObjectOwned {
    let cause = format!("the session log could not be written: {why}");
    error::failed("log", &format!("{cause}. Make room on the disk or make the log writable, then try again."))
}

/// One write for each touched log. Returns the sessions whose log could not be written, and why.
fn log(state: &mut State, said: &[Said]) -> BTreeMap<SessionId, String> {
    let mut facts: BTreeMap<&SessionId, Vec<&Entry>> = BTreeMap::new();
    for it in said {
        let Said::Acts(id, acts) = it else { continue };
        let entries = acts.iter().filter_map(|it| match it {
            Act::Log(entry) => Some(entry),
            Act::Do(..) => None,
        });
        facts.entry(id).or_default().extend(entries);
    }
    let mut broken = BTreeMap::new();
    for (id, entries) in facts {
        let Some(live) = state.sessions.get_mut(id) else { continue };
        if let Err(why) = live.log.append(entries) {
            broken.insert(id.clone(), why.to_string());
        }
    }
    broken
}

fn act(state: &mut State, id: &SessionId, act: Act, lines: &mut Vec<u8>) {
    match act {
        Act::Log(entry) => {
            if let Some(live) = state.sessions.get_mut(id) {
                live.view.show(&entry.fact, lines);
            }
            match &entry.fact {
                Fact::Event { event } => heard(state, id, event, lines),
                // It may be another provider's.
                Fact::Model { .. } => sessions::refit(state, id),
                Fact::Rewound { to } => rewind::tell(state, id, to, lines),
                _ => (),
            }
        }
        Act::Do(effect_id, effect) => effect_of(state, id, effect_id, effect, lines),
    }
}

/// Turns are traced by their events; clients that asked for AgentEvents get them beside the updates.
fn heard(state: &mut State, id: &SessionId, event: &AgentEvent, lines: &mut Vec<u8>) {
    // Prompts of a session wait for each other: what starts now is of its oldest.
    let requests = &state.requests;
    let is_its = |it: &Asker| matches!(it, Asker::Prompt(of) if of == id);
    let oldest = || requests.iter().find(|(_, it)| is_its(it)).map(|(ticket, _)| ticket);
    state.world.traces.heard(id, event, oldest);
    if state.client.as_ref().is_some_and(|it| it.wants_events) {
        let params = serde_json::json!({ "sessionId": id, "event": event });
        updates::notification("_castor/session/event", &params, lines);
    }
}

/// Where a yes for ever holds that is not for everywhere.
fn folder_of(state: &State, id: &SessionId) -> Option<AbsPath> {
    state.sessions.get(id).map(|it| confinement::folder(&it.desk.roots, &it.desk.cwd).clone())
}

fn effect_of(state: &mut State, id: &SessionId, effect_id: EffectId, effect: Effect, lines: &mut Vec<u8>) {
    match effect {
        Effect::Settle { prompt, outcome, usage } => settle(state, id, Ticket(prompt.0), (outcome, usage), lines),
        Effect::Rewind { to } => rewind::read_log(state, id, to),
        Effect::Rewound { prompt, result } => rewind::answer(state, Ticket(prompt.0), *result),
        Effect::Trust(choice) => trust::decided(state, id, effect_id, choice),
        Effect::Save(lasting) => {
            if let Some(folder) = folder_of(state, id) {
                state.world.save(folder, lasting);
            }
        }
        Effect::Keep { grant, holds } => {
            if let Some(folder) = folder_of(state, id) {
                state.world.keep(folder, grant, holds);
            }
        }
        Effect::Stash { file, text } => state.world.stash(file, text),
        Effect::Health { model, outage } => reach::noted(state, id, model, outage),
        Effect::Ask(question) => questions::ask(state, id, &question, lines),
        Effect::Reply { elicitation, reply } => asks::reply(state, elicitation, reply),
        Effect::Withdraw { question } => {
            let is_it = |it: &Asked| matches!(it, Asked::Question { session, question: of, .. } if session == id && *of == question);
            withdraw(state, is_it, lines);
        }
        Effect::Abort { effect } => {
            state.world.abort(id, effect, state.now.unix_ms);
            withdraw(state, |it| it.is_hand_of(id, effect), lines);
            // Said in the next round: after the end of the call, which may show the terminal.
            let requests = state.terminals.give_back(id, effect, How::Kill);
            state.tell(requests);
        }
        Effect::Wake { at_ms } => state.timers.add(at_ms, id.clone(), effect_id),
        other => start(state, id, effect_id, other),
    }
}

fn start(state: &mut State, id: &SessionId, effect_id: EffectId, effect: Effect) {
    let Some(Live { log, desk, .. }) = state.sessions.get(id) else { return };
    let durable = matches!(effect, Effect::Run { durable: true, .. });
    let log = durable.then(|| log.sync_handle().ok()).flatten();
    let desk = Arc::clone(desk);
    let span = state.world.traces.turn(id).cloned();
    let _in_span = span.as_ref().map(tracing::Span::enter);
    state.world.start(&desk, effect_id, effect, log);
}

/// The one answer to a prompt. Its log becomes durable soon after, without being waited for.
fn settle(
    state: &mut State,
    id: &SessionId,
    ticket: Ticket,
    (outcome, usage): (Outcome, Option<Usage>),
    lines: &mut Vec<u8>,
) {
    if let Some(log) = state.sessions.get(id).and_then(|it| it.log.sync_handle().ok()) {
        state.world.sync(log);
    }
    let error = match &outcome {
        Outcome::Stop(_) | Outcome::Steered(_) => None,
        Outcome::Failed { kind, why } => Some(error::failed(kind, why)),
        Outcome::AuthRequired(why) => Some(auth_required(why)),
    };
    state.world.traces.answered(ticket, error.as_ref().map(ErrorObjectOwned::code));
    let Some((request, _)) = state.requests.complete(ticket) else { return };
    if let Some(error) = &error {
        write::error(lines, &request, error);
    }
    match outcome {
        Outcome::Stop(stop) => write::result(lines, &request, &session::prompt_response(stop, usage)),
        Outcome::Steered(steered) => write::result(lines, &request, &session::steering_response(&steered)),
        // The user may log in elsewhere before the next prompt.
        Outcome::AuthRequired(_) => sessions::refit(state, id),
        Outcome::Failed { .. } => (),
    }
}

/// Nobody waits for these any more: the client may take the question off the screen.
pub fn withdraw(state: &mut State, is_it: impl Fn(&Asked) -> bool, lines: &mut Vec<u8>) {
    let ids: Vec<i64> = state.asked.iter().filter(|(_, it)| is_it(it)).map(|(id, _)| id).collect();
    for id in ids {
        state.asked.cancel(id);
        updates::notification("$/cancel_request", &serde_json::json!({ "requestId": id }), lines);
    }
}

/// A request to the editor on behalf of a task. After what was said before it: a cancel in the same turn, too.
fn ask_editor(state: &mut State, request: EditorRequest, lines: &mut Vec<u8>) {
    let EditorRequest { session, effect, method, params, reply } = request;
    // A call that is over does nothing more to the editor.
    if reply.is_closed() || !state.world.is_running(&session, effect) {
        return;
    }
    let id = state.asked.open(match method {
        CREATE => Asked::Terminal { session, effect, reply },
        _ => Asked::Hand { session, effect, reply },
    });
    _ = write::request(lines, id, method, &params);
}

/// What is still open when castor ends: every request is answered, so that no client waits for ever.
pub fn answer_all(state: &mut State) {
    let open: Vec<Ticket> = state.requests.iter().map(|(ticket, _)| ticket).collect();
    for ticket in open {
        reply::answer::<()>(state, ticket, Err(error::shutdown()));
    }
}
