//! Sub-agents as child sessions of ACP, for clients with the capability `subagents`: announcements and states.

use agent_client_protocol_schema::v1::{
    Error, ErrorStopReason, IdleStateUpdate, IdleStopReason, RequiresActionStateUpdate, RunningStateUpdate,
    SessionCancelCapabilities, SessionNotification, SessionUpdate, StateUpdate, SubagentSessionCapabilities,
    SubagentUpdate, UnknownStateUpdate,
};

use serde_json::{Map, json};

use crate::acp::{initialize::AcpVersion, session::wire_id, updates::notification, v2};
use castor_base::{event::EndReason, ids::SessionId, log::ChildLink, shown_text::show_line, text};

/// Longest description of a sub-agent's task, in characters.
const DESCRIPTION: usize = 500;

/// What a sub-agent is about at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildState {
    Running,
    /// The user has a question of it.
    Waiting,
    Ended(EndReason),
    /// castor ended before it did.
    CutOff,
}

/// Tells of a sub-agent, before anything else of it is told. `from`: the session above, and its call.
pub fn announce(
    from: &ChildLink,
    id: &SessionId,
    (agent, task): (&str, &str),
    version: AcpVersion,
    lines: &mut Vec<u8>,
) {
    let cancel = SubagentSessionCapabilities::new().cancel(SessionCancelCapabilities::new());
    let own = json!({ "call": from.call });
    let update = SubagentUpdate::new(wire_id(id))
        .title(show_line(agent).into_owned())
        .description(show_line(&text::first_line(task, DESCRIPTION)).into_owned())
        .capabilities(cancel)
        .state(state_update(ChildState::Running))
        .meta(Map::from_iter([("castor".to_owned(), own)]));
    push(&from.session, update, version, lines);
    push_own_state(id, ChildState::Running, version, lines);
}

/// The state of a sub-agent of `parent` changed.
pub fn show_state(parent: &SessionId, id: &SessionId, state: ChildState, version: AcpVersion, lines: &mut Vec<u8>) {
    push_own_state(id, state, version, lines);
    push(parent, SubagentUpdate::new(wire_id(id)).state(state_update(state)), version, lines);
}

fn push(parent: &SessionId, update: SubagentUpdate, version: AcpVersion, lines: &mut Vec<u8>) {
    let update = SessionUpdate::SubagentUpdate(update);
    match version {
        AcpVersion::V1 => notification("session/update", &SessionNotification::new(wire_id(parent), update), lines),
        AcpVersion::V2 => v2::updates::push(parent, update, lines),
    }
}

/// In version 2 a sub-agent tells its state like any session.
fn push_own_state(id: &SessionId, state: ChildState, version: AcpVersion, lines: &mut Vec<u8>) {
    if version == AcpVersion::V2 {
        v2::states::push_same(id, &state_update(state), lines);
    }
}

fn state_update(state: ChildState) -> StateUpdate {
    match state {
        ChildState::Running => StateUpdate::Running(RunningStateUpdate::new()),
        ChildState::Waiting => StateUpdate::RequiresAction(RequiresActionStateUpdate::new()),
        ChildState::CutOff => StateUpdate::Unknown(UnknownStateUpdate::new()),
        ChildState::Ended(reason) => StateUpdate::Idle(IdleStateUpdate::new().stop_reason(stop_reason(reason))),
    }
}

fn stop_reason(reason: EndReason) -> IdleStopReason {
    match reason {
        EndReason::Completed => IdleStopReason::EndTurn,
        EndReason::Aborted => IdleStopReason::Cancelled,
        EndReason::MaxTurns | EndReason::MaxTime => IdleStopReason::MaxTurnRequests,
        EndReason::MaxBudget => IdleStopReason::MaxTokens,
        EndReason::Refusal => IdleStopReason::Refusal,
        EndReason::Failed => {
            let error = Error::internal_error().data(json!("The sub-agent failed."));
            IdleStopReason::Error(ErrorStopReason::new().error(error))
        }
    }
}
