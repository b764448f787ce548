//! Calls that another agent makes by itself, as updates: marked as its report.

use agent_client_protocol_schema::v1::{SessionUpdate, ToolCall, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields};
use serde_json::Value;

use crate::acp::{
    meta::messages::{CallMeta, OwnCallMeta},
    update::tool_calls,
    updates::{CallView, SessionView},
};
use castor_base::{
    event::Location,
    ids::CallId,
    peer_agent::{ReportedCall, ReportedState},
};

impl SessionView {
    /// A report repeats what was said before: the first begins the call for the client.
    pub(in crate::acp) fn reported_call(&mut self, data: &Value, lines: &mut Vec<u8>) {
        let Ok(call) = serde_json::from_value::<ReportedCall>(data.clone()) else { return };
        let id = CallId::from(call.id.clone());
        let places: Vec<Location> =
            call.locations.iter().map(|path| Location { path: path.clone(), line: None }).collect();
        let (title, kind) = (tool_calls::title(call.kind, &call.title), tool_calls::kind(call.kind));
        let (places, status) = (tool_calls::locations(&places), status(call.state));
        let content: Vec<_> =
            (!call.text.is_empty()).then(|| tool_calls::text_content(&call.text)).into_iter().collect();
        let update = if self.calls.contains_key(&id) {
            let fields = ToolCallUpdateFields::new().title(title).kind(kind).locations(places).status(status);
            let fields = if content.is_empty() { fields } else { fields.content(content) };
            SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(call.id, fields))
        } else {
            self.calls.insert(id.clone(), CallView::default());
            let own = OwnCallMeta { reported: Some(true), ..OwnCallMeta::default() };
            let meta = CallMeta { castor: Some(own), ..CallMeta::default() }.into_map();
            let new = ToolCall::new(call.id, title).kind(kind).locations(places).status(status);
            SessionUpdate::ToolCall(new.content(content).meta(meta))
        };
        if call.state.has_ended() {
            self.calls.remove(&id);
        }
        self.push_update(update, lines);
    }
}

fn status(state: ReportedState) -> ToolCallStatus {
    match state {
        ReportedState::Pending => ToolCallStatus::Pending,
        ReportedState::InProgress => ToolCallStatus::InProgress,
        ReportedState::Completed => ToolCallStatus::Completed,
        ReportedState::Failed => ToolCallStatus::Failed,
    }
}
