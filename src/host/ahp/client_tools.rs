//! Tools of a session: the agent's own, which the session lists, and those of clients, which run the calls of theirs.

use std::collections::BTreeSet;

use ahp::ahp_types::{
    actions::{ActionOrigin, ChatToolCallCompleteAction, SessionServerToolsChangedAction, StateAction},
    state::{ToolCallResult, ToolCallState, ToolDefinition, ToolResultContent},
};
use serde_json::{Value, json};

use super::{
    AhpHost,
    hosted_session::{HostedSession, Tree, TreeAction},
    hub_messages::text_in,
    hub_requests::{HubOutcome, HubRequest},
    open_requests::{ClientToolCall, key},
    with_members,
};
use castor_base::host_tools::{HostTool, HostTools};
use castor_wire::{acp::client::CallUpdate, jsonrpc::message::RequestId};

const MAX_TOOLS: usize = 64;

impl AhpHost {
    /// Asks the agent which tools the model has, and what else the session has of files and servers.
    pub(super) fn read_tools(&mut self, session: &str) {
        self.read_customizations(session);
        let request = HubRequest::Tools { session: session.to_owned() };
        self.ask_hub(request, "_castor/tools/list", &json!({ "sessionId": session }));
    }

    pub(super) fn follow_tools(&mut self, session: &str, outcome: HubOutcome) {
        let listed = outcome.ok().and_then(|it| it.get("tools")?.as_array().cloned()).unwrap_or_default();
        let tools: Vec<ToolDefinition> = listed.iter().filter_map(definition).collect();
        let is_same =
            self.sessions.get(session).is_none_or(|it| it.trees.session.server_tools.as_ref() == Some(&tools));
        if !is_same {
            let action = StateAction::SessionServerToolsChanged(SessionServerToolsChangedAction { tools });
            self.emit(session, vec![TreeAction::new(Tree::Session, action)]);
        }
    }

    /// `_castor/tool/call`: a client runs it.
    pub(super) fn take_tool_call(&mut self, id: RequestId, params: &Value) {
        let session = text_in(params, "sessionId");
        let (call, name) = (text_in(params, "requestId"), text_in(params, "name"));
        let found = self.sessions.get_mut(&session).and_then(|it| {
            let turn = it.listening_turn()?;
            let client = it.owner_of(&name)?.to_owned();
            Some((it, turn, client))
        });
        let Some((hosted, turn, client)) = found else {
            return self.answer_hub(&id, &failed_answer("the client that has this tool is gone"));
        };
        let raw_input = Some(params["args"].clone());
        let told = CallUpdate { id: call.clone(), name: Some(name), raw_input, ..CallUpdate::default() };
        let mut acts = hosted.begin_call(&turn, &told);
        if !matches!(hosted.call_state(&call), Some(ToolCallState::Running(_))) {
            acts.push(hosted.ready(&turn, &call));
        }
        let waiting = ClientToolCall { turn: turn.clone(), call: call.clone(), client: client.clone() };
        hosted.requests.tool_calls.insert(id.clone(), waiting);
        self.emit(&session, acts);
        let Some(hosted) = self.sessions.get(&session) else { return };
        let request = json!({
            "kind": "toolClientExecution", "id": key(&id), "chat": hosted.chat_uri(), "turnId": turn,
            "clientId": client, "toolCall": hosted.call_state(&call),
        });
        let act = TreeAction::session(json!({ "type": "session/inputNeededSet", "request": request }));
        self.emit(&session, vec![act]);
    }

    /// The client that has the tool ran it.
    ///
    /// # Errors
    /// Why its result does not count, in words.
    pub(super) fn complete_call(
        &mut self,
        session: &str,
        action: ChatToolCallCompleteAction,
        origin: ActionOrigin,
    ) -> Result<(), String> {
        let hosted = self.hosted(session)?;
        let is_it = |it: &ClientToolCall| it.call == action.tool_call_id && it.turn == action.turn_id;
        let found = hosted.requests.tool_calls.iter().find(|it| is_it(it.1));
        let (id, waiting) = found.ok_or_else(|| "no client runs that call".to_owned())?;
        if waiting.client != origin.client_id {
            return Err("another client runs that call".to_owned());
        }
        let (id, answer) = (id.clone(), answer_of(&action.result));
        let act = TreeAction::new(Tree::Chat, StateAction::ChatToolCallComplete(action)).by(origin);
        self.close_tool_call(session, &id, act);
        self.answer_hub(&id, &answer);
        Ok(())
    }

    /// The agent does not wait for the result any more, and says itself what became of the call.
    pub(super) fn withdraw_tool_call(&mut self, id: &RequestId) {
        let found = self.sessions.iter().find(|it| it.1.requests.tool_calls.contains_key(id));
        if let Some(session) = found.map(|it| it.0.clone()) {
            self.forget_tool_call(&session, id);
        }
    }

    /// Calls that a client runs fail when it is gone; `None`: those of all clients are over with the turn.
    pub(super) fn end_tool_calls(&mut self, session: &str, client: Option<&str>) {
        let Some(hosted) = self.sessions.get(session) else { return };
        let is_its = |it: &ClientToolCall| client.is_none_or(|client| it.client == client);
        let its = hosted.requests.tool_calls.iter().filter(|it| is_its(it.1));
        let its: Vec<(RequestId, ClientToolCall)> = its.map(|(id, it)| (id.clone(), it.clone())).collect();
        for (id, it) in its {
            if client.is_none() {
                self.forget_tool_call(session, &id);
                continue;
            }
            let why = "the client that has this tool left";
            let result = json!({ "success": false, "pastTenseMessage": why });
            let action = json!({
                "type": "chat/toolCallComplete", "turnId": it.turn, "toolCallId": it.call, "result": result,
            });
            self.close_tool_call(session, &id, TreeAction::chat(action));
            self.answer_hub(&id, &failed_answer(why));
        }
    }

    fn close_tool_call(&mut self, session: &str, id: &RequestId, act: TreeAction) {
        self.emit(session, vec![act]);
        self.forget_tool_call(session, id);
    }

    fn forget_tool_call(&mut self, session: &str, id: &RequestId) {
        let Some(hosted) = self.sessions.get_mut(session) else { return };
        if hosted.requests.tool_calls.remove(id).is_some() {
            let gone = json!({ "type": "session/inputNeededRemoved", "id": key(id) });
            self.emit(session, vec![TreeAction::session(gone)]);
        }
    }
}

impl HostedSession {
    /// The client that has a tool of that name.
    pub fn owner_of(&self, tool: &str) -> Option<&str> {
        self.usable_tools().find(|it| it.1.name == tool).map(|it| it.0)
    }

    /// Tools of all clients that a model can have beside the agent's own.
    fn usable_tools(&self) -> impl Iterator<Item = (&str, &ToolDefinition)> {
        let state = &self.trees.session;
        let own = state.server_tools.as_deref().unwrap_or_default();
        let all = state.active_clients.iter().flat_map(|it| it.tools.iter().map(|tool| (it.client_id.as_str(), tool)));
        all.filter(|(_, it)| !own.iter().any(|own| own.name == it.name) && declaration(it).is_some())
    }

    /// For a prompt. Of two with the same name the first counts.
    pub fn declared_tools(&self) -> Vec<Value> {
        let mut names = BTreeSet::new();
        let all = self.usable_tools().filter(|it| names.insert(it.1.name.as_str()));
        all.filter_map(|it| declaration(it.1)).take(MAX_TOOLS).collect()
    }
}

/// A tool of a client as the agent takes it; `None`: it does not.
fn declaration(it: &ToolDefinition) -> Option<Value> {
    let read_only = it.annotations.as_ref().and_then(|it| it.read_only_hint).unwrap_or_default();
    let members = [
        ("displayName", it.title.clone().map(Value::from)),
        ("parametersSchema", it.input_schema.clone()),
        ("annotations", read_only.then(|| json!({ "readOnly": true }))),
    ];
    let res = with_members(json!({ "name": it.name, "description": it.description.clone()? }), members);
    let tool: HostTool = serde_json::from_value(res.clone()).ok()?;
    HostTools { tools: vec![tool], execution: None }.check().ok()?;
    Some(res)
}

/// A tool of the agent as clients know tools.
fn definition(it: &Value) -> Option<ToolDefinition> {
    let annotations = it.pointer("/annotations/readOnly").map(|it| json!({ "readOnlyHint": it }));
    let res = json!({
        "name": it.get("name")?, "title": it.get("displayName")?, "description": it.get("description")?,
        "inputSchema": it.get("parametersSchema")?, "annotations": annotations,
    });
    let server = it.get("server").map(|it| json!({ "castor": { "mcpServer": it } }));
    serde_json::from_value(with_members(res, [("_meta", server)])).ok()
}

/// What the model reads of a result.
fn answer_of(result: &ToolCallResult) -> Value {
    let parts = result.content.iter().flatten().map(|it| match it {
        ToolResultContent::Text(it) => json!({ "type": "text", "text": it.text }),
        ToolResultContent::EmbeddedResource(it) => {
            json!({ "type": "media", "mimeType": it.content_type, "data": it.data })
        }
        it => json!({ "type": "text", "text": json!(it).to_string() }),
    });
    let mut parts: Vec<Value> = parts.collect();
    let more = result.structured_content.as_ref().map(|it| json!(it)).or_else(|| result.error.clone());
    parts.extend(more.map(|it| json!({ "type": "text", "text": it.to_string() })));
    if parts.is_empty() {
        parts.push(json!({ "type": "text", "text": result.past_tense_message.as_text() }));
    }
    json!({ "llmContent": parts, "displayContent": result.past_tense_message.as_text(), "isError": !result.success })
}

fn failed_answer(why: &str) -> Value {
    json!({ "llmContent": why, "isError": true })
}
