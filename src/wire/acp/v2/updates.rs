//! Updates of version 2, made from those of version 1: each of these changes an entity by its id.

use agent_client_protocol_schema::{
    MaybeUndefined, v1,
    v2::{
        AvailableCommandsUpdate, ConfigOptionUpdate, PlanEntry, PlanItems, PlanUpdate, PlanUpdateContent,
        SessionUpdate, ToolCallStatus, UpdateSessionNotification,
    },
};

use super::{options, same_json, tool_calls};
use crate::{acp::plans::TODOS, jsonrpc::write};
use castor_base::ids::SessionId;

/// Appends what version 2 says in place of this.
pub(in crate::acp) fn push(session: &SessionId, update: v1::SessionUpdate, lines: &mut Vec<u8>) {
    for it in project(update) {
        push_one(session, it, lines);
    }
}

/// The same for the end of a call that was cancelled, which version 1 calls failed.
pub(in crate::acp) fn push_cancelled(session: &SessionId, update: v1::ToolCallUpdate, lines: &mut Vec<u8>) {
    for mut it in tool_calls::changed(update) {
        if let SessionUpdate::ToolCallUpdate(call) = &mut it {
            call.status = MaybeUndefined::Value(ToolCallStatus::Cancelled);
        }
        push_one(session, it, lines);
    }
}

pub(super) fn push_one(session: &SessionId, update: SessionUpdate, lines: &mut Vec<u8>) {
    // All of these have a JSON form.
    _ = write::notification(lines, "session/update", &UpdateSessionNotification::new(session.as_str(), update));
}

pub(super) fn project(update: v1::SessionUpdate) -> Vec<SessionUpdate> {
    let one = match update {
        v1::SessionUpdate::ToolCall(it) => return tool_calls::begun(it),
        v1::SessionUpdate::ToolCallUpdate(it) => return tool_calls::changed(it),
        // A mode is a config option, and nothing else.
        v1::SessionUpdate::CurrentModeUpdate(_) => None,
        v1::SessionUpdate::Plan(it) => Some(SessionUpdate::PlanUpdate(plan(&it))),
        v1::SessionUpdate::ConfigOptionUpdate(it) => {
            let update = ConfigOptionUpdate::new(options::options(it.config_options));
            Some(SessionUpdate::ConfigOptionUpdate(update))
        }
        v1::SessionUpdate::AvailableCommandsUpdate(it) => {
            let update = AvailableCommandsUpdate::new(options::commands(it.available_commands));
            Some(SessionUpdate::AvailableCommandsUpdate(update))
        }
        other => same_json(&other),
    };
    one.into_iter().collect()
}

/// The whole list under its one id; an empty one is no plan any more.
fn plan(it: &v1::Plan) -> PlanUpdate {
    let entries: Vec<PlanEntry> = it.entries.iter().filter_map(same_json).collect();
    PlanUpdate::new(PlanUpdateContent::Items(PlanItems::new(TODOS, entries)))
}
