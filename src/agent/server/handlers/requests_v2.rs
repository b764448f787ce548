//! Request handlers of version 2, where its params or results differ.

use serde_json::value::RawValue;

use crate::server::{
    handlers::requests::{choose, live_session},
    open_session::set_owner,
    pending_requests::RequestOwner,
    reply::{Reply, reply_now},
    sessions,
    state::State,
};
use crate::session::live_session::LiveSession;
use castor_engine::commands::file_commands::OfferedCommand;
use castor_wire::{
    acp::{
        updates::SessionView,
        v2::{
            options,
            session::{self, OpenedSession},
            states,
        },
    },
    jsonrpc::{error, open_requests::Ticket},
};

pub fn new_session(state: &mut State, ticket: Ticket, params: Option<&RawValue>) -> Reply {
    let place = session::read_new(params).map_err(|it| error::invalid_params(&it))?;
    let id = sessions::create(state, &place)?;
    set_owner(&mut state.requests, ticket, RequestOwner::Setter(id.clone()));
    reply_now(&opened(state.sessions.get_mut(&id)).new_response(&id))
}

/// What of the conversation is replayed, how full the context is and what the session does come before the answer.
pub fn resume_session(state: &mut State, ticket: Ticket, params: Option<&RawValue>) -> Reply {
    let (id, place, replays) = session::read_resume(params).map_err(|it| error::invalid_params(&it))?;
    set_owner(&mut state.requests, ticket, RequestOwner::Reader(id.clone()));
    let entries = sessions::load(state, &id, &place, replays)?;
    let children = if replays { state.tasks.read_children(&id) } else { Vec::new() };
    let live = live_session(state, &id)?;
    let mut view = SessionView::new(id.clone(), live.profile.clone(), live.chosen_options());
    let mut lines = Vec::new();
    if replays {
        view.replay(&entries, &children, &mut lines);
    }
    let (last, cost) = live.context_usage();
    view.show_context_usage(last, cost, &mut lines);
    // One that is busy is not resumed.
    states::push(&id, states::idle(), &mut lines);
    state.outbox.queue_lines(Some(&id), |it| it.append(&mut lines));
    reply_now(&opened(state.sessions.get_mut(&id)).resume_response())
}

pub fn fork_session(state: &mut State, ticket: Ticket, params: Option<&RawValue>) -> Reply {
    let fork = session::read_fork(params).map_err(|it| error::invalid_params(&it))?;
    let id = sessions::fork(state, &fork)?;
    set_owner(&mut state.requests, ticket, RequestOwner::Reader(id.clone()));
    let live = live_session(state, &id)?;
    let (last, cost) = live.context_usage();
    let mut lines = Vec::new();
    SessionView::new(id.clone(), live.profile.clone(), live.chosen_options())
        .show_context_usage(last, cost, &mut lines);
    state.outbox.after_answer.extend(lines);
    reply_now(&opened(state.sessions.get_mut(&id)).fork_response(&id))
}

/// What the client learns of it; the commands are known to it from then on.
fn opened(live: Option<&mut LiveSession>) -> OpenedSession {
    let Some(live) = live else { return OpenedSession::default() };
    let all = live.session.commands();
    let opened = OpenedSession::new(&live.profile.offer, &live.chosen_options(), all.iter().map(OfferedCommand::words));
    live.commands = Some(all);
    opened
}

pub fn set_config_option(state: &mut State, ticket: Ticket, params: Option<&RawValue>) -> Reply {
    let option = options::read_set_option(params).map_err(|it| error::invalid_params(&it))?;
    choose(state, ticket, &option)?;
    let live = live_session(state, &option.session)?;
    reply_now(&options::response(&live.profile.offer, &live.chosen_options()))
}
