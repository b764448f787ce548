//! Message dispatch: the tables of methods and notifications, and the client's answers to requests.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
};

use serde_json::{Value, value::RawValue};

use crate::server::{
    air::{self, index_watch},
    event_feed,
    handlers::{
        attach, auth, auth_status, definitions, draft_rewind, event_requests, folder_options, listing, mcp_completion,
        providers, quota, requests, requests_v2, rewind, session_metadata, tool_list, workspace_trust,
    },
    live::{foreground, sleep},
    mcp,
    outbox::OutboxItem,
    pending_requests::{ClientRequest, RequestOwner},
    questions,
    reply::{Reply, answer},
    server_orders,
    state::State,
    store_gate,
    tasks::store_requests::{QueuedMessage, WaitingRequest},
};
use castor_base::ids::PromptId;
use castor_engine::step::Input;
use castor_wire::{
    acp::{self, initialize::AcpVersion, mcp_message::MESSAGE},
    jsonrpc::{
        error,
        frame::Frame,
        message::{self, InvalidMessage, Message, RequestId, RpcError},
        open_requests::Ticket,
        write,
    },
};

/// Handlers that step sessions take the whole state; the table gives others what they touch.
pub type Handler = fn(&mut State, Ticket, Option<&RawValue>) -> Reply;

/// A method's name and what carries it out.
pub type Method = (&'static str, Handler);

/// Every method that a client of version 1 may call.
pub const METHODS: &[Method] = &[
    ("initialize", requests::initialize),
    ("authenticate", auth::authenticate),
    ("logout", auth::logout),
    ("auth/status", auth_status::status),
    ("providers/list", providers::list),
    ("providers/set", providers::set),
    ("providers/disable", providers::disable),
    ("session/new", requests::new_session),
    ("session/load", requests::load_session),
    ("session/resume", requests::resume_session),
    ("session/fork", requests::fork_session),
    ("session/list", |state, ticket, params| listing::list(state.client.as_ref(), &mut state.tasks, ticket, params)),
    ("session/close", requests::close_session),
    ("session/delete", requests::delete_session),
    ("session/set_title", session_metadata::set_title),
    ("session/archive", session_metadata::archive),
    ("session/unarchive", |state, _, params| session_metadata::unarchive(&mut state.tasks, &state.sessions, params)),
    ("session/status", |state, _, params| session_metadata::status(&mut state.tasks, &state.sessions, params)),
    ("trust/apply", workspace_trust::apply),
    ("quota/read", quota::read),
    ("session/prompt", requests::prompt),
    ("session/rewind", draft_rewind::rewind),
    ("session/edit_prompt", draft_rewind::edit_prompt),
    ("_session/steering", requests::steer),
    ("session/set_mode", requests::set_mode),
    ("session/set_config_option", requests::set_config_option),
    // An alias for clients from before config options.
    ("session/set_model", requests::set_model),
    ("_session/rename", air::rename),
    ("_session/archive", air::archive),
    ("_session/unarchive", air::unarchive),
    ("_session/async_task/stop", air::stop_task),
    ("_castor/agents/list", |state, _, params| requests::list_agents(state, params)),
    ("_castor/definitions/list", |state, _, params| definitions::list(&state.sessions, params)),
    ("_castor/tools/list", |state, _, params| tool_list::list(&state.sessions, params)),
    ("_castor/options/list", |state, _, params| folder_options::list(state, params)),
    ("_castor/session/attach", attach::attach),
    ("_castor/session/client_act", attach::note_client_act),
    ("_castor/session/sleep", sleep::sleep),
    ("_castor/session/events", |state, _, params| event_requests::events(&state.tasks.store, params)),
    ("_castor/session/custom_event", event_requests::custom_event),
    ("_castor/session/subscribe", event_requests::subscribe),
    ("_castor/session/unsubscribe", event_requests::unsubscribe),
    ("_castor/session/stream", event_requests::stream),
    ("_castor/session/update", requests::update),
    ("_castor/session/checkpoints", |state, _, params| rewind::checkpoints(&state.sessions, params)),
    ("_castor/session/rewind", rewind::rewind),
    ("_castor/session/state", requests::state),
    ("_castor/mcp/servers", |state, _, params| server_orders::list(&state.sessions, params)),
    ("_castor/mcp/switch", |state, _, params| server_orders::switch_by_client(state, params)),
    ("_castor/policy/evaluate", requests::evaluate_policy),
    ("_castor/mcp/complete", mcp_completion::complete),
];

/// Every method that a client of version 2 may call, beside castor's own, which are the same in both.
pub const METHODS_V2: &[Method] = &[
    ("initialize", requests::initialize),
    ("auth/login", auth::authenticate),
    ("auth/logout", auth::logout),
    ("auth/status", auth_status::status),
    ("providers/list", providers::list),
    ("providers/set", providers::set),
    ("providers/disable", providers::disable),
    ("session/new", requests_v2::new_session),
    ("session/resume", requests_v2::resume_session),
    ("session/fork", requests_v2::fork_session),
    ("session/list", |state, ticket, params| listing::list(state.client.as_ref(), &mut state.tasks, ticket, params)),
    ("session/close", requests::close_session),
    ("session/delete", requests::delete_session),
    ("session/set_title", session_metadata::set_title),
    ("session/archive", session_metadata::archive),
    ("session/unarchive", |state, _, params| session_metadata::unarchive(&mut state.tasks, &state.sessions, params)),
    ("session/status", |state, _, params| session_metadata::status(&mut state.tasks, &state.sessions, params)),
    ("session/prompt", requests::prompt),
    ("session/set_config_option", requests_v2::set_config_option),
    ("_session/steering", requests::steer),
];

/// What reads which permissions hold for ever: it waits until these are written.
const OPENING_METHODS: &[&str] = &["session/new", "session/load", "session/resume", "session/fork"];

type Listener = fn(&mut State, Option<&RawValue>);

/// Every notification that a client may send; others are ignored, as the protocol says.
pub const NOTIFICATIONS: &[(&str, Listener)] = &[
    ("session/cancel", requests::cancel),
    ("$/cancel_request", cancel_request),
    (MESSAGE, |state, params| mcp::take_notice(&state.tasks.mcp, &state.outgoing, params)),
];

/// Takes one line of the client.
pub fn handle_frame(state: &mut State, frame: Frame) {
    let parsed = match frame {
        Frame::Line(line) => message::parse(&line),
        Frame::TooLong => {
            let error = error::invalid_request("the line is longer than 32 MiB", "Send less in one message.");
            Err(InvalidMessage::Answer { id: RequestId::Null, error })
        }
    };
    match parsed {
        Ok(Message::Request { id, method, params }) => handle_request(state, id, &method, params.as_deref()),
        Ok(Message::Notification { method, params }) => {
            let found = NOTIFICATIONS.iter().find(|(it, _)| *it == method);
            let Some((name, listener)) = found else { return };
            if !store_gate::hold_notification(&mut state.tasks.chores.store, name, params.as_deref()) {
                listener(state, params.as_deref());
            }
        }
        Ok(Message::Response { id, outcome }) => handle_response(state, &id, outcome),
        Err(InvalidMessage::Answer { id, error }) => {
            state.outbox.queue_lines(None, |lines| write::error(lines, &id, &error))
        }
        Err(InvalidMessage::Ignore(why)) => tracing::debug!("ignored a message: {why}"),
    }
}

fn handle_request(state: &mut State, id: RequestId, method: &str, params: Option<&RawValue>) {
    let version = foreground::version(state.client.as_ref());
    let Some((name, handler)) = find_method(version, method) else {
        let error = error::method_not_found(method, version.number());
        return state.outbox.queue_lines(None, |lines| write::error(lines, &id, &error));
    };
    let about = RequestOwner::Other;
    let ticket = state.requests.register(id, about);
    let span = state.tasks.traces.trace_request(ticket, method, params);
    let _in_span = span.enter();
    let reply = match method {
        "initialize" => handler(state, ticket, params),
        _ if state.client.is_none() => {
            Err(error::invalid_request(&format!("{method} came before initialize"), "Call initialize first."))
        }
        _ if state.tasks.chores.n_saves > 0 && OPENING_METHODS.contains(&method) => {
            let request = WaitingRequest { ticket, method: name, params: params.map(RawValue::to_owned) };
            return state.tasks.chores.waiting.push(request);
        }
        _ => {
            let request = || WaitingRequest { ticket, method: name, params: params.map(RawValue::to_owned) };
            if state.tasks.store.is_shared() && store_gate::hold_request(&mut state.tasks.chores.store, &request()) {
                // It begins with the end of the turn.
                return;
            }
            call_handler(state, ticket, *handler, params)
        }
    };
    send_reply(state, ticket, reply);
    if method != "session/list" {
        index_watch::note_change(state);
    }
}

fn find_method(version: AcpVersion, name: &str) -> Option<&'static Method> {
    let table = match version {
        AcpVersion::V2 if !name.starts_with("_castor/") => METHODS_V2,
        _ => METHODS,
    };
    table.iter().find(|(it, _)| *it == name)
}

/// Something is written: opens the sessions that waited for it.
pub fn resume_waiting(state: &mut State) {
    for request in state.tasks.chores.finish_save() {
        if !state.tasks.store.is_shared() || !store_gate::hold_request(&mut state.tasks.chores.store, &request) {
            carry_out(state, &request);
        }
    }
}

/// Goes on with what waits for a shared store. Whether there was anything to do.
pub fn resume_held(state: &mut State) -> bool {
    let mut n_resumed = 0;
    while let Some((message, found)) = store_gate::next_ready(state) {
        n_resumed += 1;
        state.tasks.chores.store.found = found;
        match message {
            QueuedMessage::Request(request) => {
                carry_out(state, &request);
                index_watch::note_change(state);
            }
            QueuedMessage::Notification { method, params } => {
                let listener = NOTIFICATIONS.iter().find(|it| it.0 == method);
                listener.into_iter().for_each(|it| (it.1)(state, params.as_deref()));
            }
        }
        // A log that nobody wanted is let go.
        state.tasks.chores.store.found = None;
    }
    n_resumed > 0
}

fn carry_out(state: &mut State, WaitingRequest { ticket, method, params }: &WaitingRequest) {
    let Some((_, handler)) = find_method(foreground::version(state.client.as_ref()), method) else { return };
    let reply = call_handler(state, *ticket, *handler, params.as_deref());
    send_reply(state, *ticket, reply);
}

/// A handler that panics owes an answer like any other.
fn call_handler(state: &mut State, ticket: Ticket, handler: Handler, params: Option<&RawValue>) -> Reply {
    catch_unwind(AssertUnwindSafe(|| handler(state, ticket, params)))
        .unwrap_or_else(|_| Err(error::bug("an internal error")))
}

fn send_reply(state: &mut State, ticket: Ticket, reply: Reply) {
    match reply {
        Ok(None) => (),
        Ok(Some(result)) => answer(state, ticket, Ok(&*result)),
        Err(error) => answer::<RawValue>(state, ticket, Err(error)),
    }
    let afterwards = std::mem::take(&mut state.outbox.after_answer);
    match state.outbox.items.last_mut() {
        _ if afterwards.is_empty() => (),
        // Which is the answer.
        Some(OutboxItem::Answer { lines, .. } | OutboxItem::Lines(_, lines)) => lines.extend_from_slice(&afterwards),
        _ => state.outbox.queue_lines(None, |lines| lines.extend_from_slice(&afterwards)),
    }
}

fn handle_response(state: &mut State, id: &RequestId, outcome: Result<Box<RawValue>, RpcError>) {
    match state.outgoing.settle(id) {
        // Late, or never asked: both are normal.
        None => (),
        Some(ClientRequest::Question { askers, shape }) => {
            let answer = questions::read_answer(&shape, outcome);
            for (session, question) in askers {
                // Before what comes of it, which may be the end of a sub-agent.
                state.outbox.items.push(OutboxItem::QuestionAnswered(session.clone()));
                state.step(&session, Input::Answered { question, answer: answer.clone() });
            }
        }
        Some(ClientRequest::EditorCall { reply, .. }) => {
            // The tool may have been cancelled meanwhile.
            _ = reply.send(outcome.map(|it| parse_result(&it)));
        }
        Some(ClientRequest::Terminal { session, effect, reply }) => {
            let outcome = outcome.map(|it| parse_result(&it));
            if let Ok(result) = &outcome {
                let is_wanted = state.tasks.is_running(&session, effect);
                let requests = state.terminals.register(&session, effect, is_wanted, result);
                state.queue_requests(&session, requests);
            }
            _ = reply.send(outcome);
        }
        Some(ClientRequest::Relayed { reply, .. }) => mcp::answer_relayed(reply, outcome),
        Some(ClientRequest::IgnoredReply) => (),
    }
}

fn parse_result(result: &RawValue) -> Value {
    serde_json::from_str(result.get()).unwrap_or_default()
}

/// `$/cancel_request`: prompts end as cancelled, and so do streams that are followed; everything else answers at once anyway.
fn cancel_request(state: &mut State, params: Option<&RawValue>) {
    let Ok(params) = acp::params::<BTreeMap<String, Box<RawValue>>>(params) else { return };
    let id = params.get("requestId").and_then(|it| serde_json::from_str::<RequestId>(it.get()).ok());
    let Some(id) = id else { return };
    let tickets: Vec<Ticket> = state.requests.with_id(&id).collect();
    for ticket in tickets {
        if state.tasks.chores.store.drop_waiting(ticket) {
            answer::<RawValue>(state, ticket, Err(error::cancelled()));
            continue;
        }
        match state.requests.get(ticket).cloned() {
            Some(RequestOwner::Prompt(session)) => state.step(&session, Input::CancelPrompt(PromptId(ticket.0))),
            Some(RequestOwner::Follower(session)) => event_feed::cancel(state, &session, ticket),
            Some(RequestOwner::Setter(_) | RequestOwner::Reader(_) | RequestOwner::Other) | None => (),
        }
    }
}
