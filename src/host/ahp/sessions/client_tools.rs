//! Tools of a session: the agent's own, which the session lists, and those of clients, which run the calls of theirs.

use std::collections::BTreeSet;

use ahp::ahp_types::{
    actions::{ActionOrigin, ChatToolCallCompleteAction, SessionServerToolsChangedAction, StateAction},
    state,
};
use serde_json::json;

use super::{
    SessionDesk, TreeAction, Trees,
    acts::{self, castor_meta},
    customizations::read_customizations,
    open_requests::{ClientToolCall, key},
};
use crate::ahp::{HubOutcome, Next};
use castor_base::host_tools::HostTools;
use castor_wire::acp::client::{
    AgentRequest, AnswerPart, CallUpdate, DeclaredTool, HostedCall, ListedTool, ReadOnlyNote, ToolAnswer, ToolList,
    read_value,
};
use castor_wire::jsonrpc::message::RequestId;

const MAX_TOOLS: usize = 64;

impl SessionDesk<'_> {
    /// Asks the agent which tools the model has, and what else the session has of files and servers.
    pub fn read_tools(&mut self) {
        read_customizations(self);
        let id = self.hosted.id.as_str();
        self.clients.ask(id, Next::Tools, &AgentRequest::Tools(id.into()));
    }

    pub fn follow_tools(&mut self, outcome: HubOutcome) {
        let listed: ToolList = outcome.ok().and_then(read_value).unwrap_or_default();
        let tools: Vec<state::ToolDefinition> = listed.tools.into_iter().map(definition).collect();
        if self.hosted.trees.session.server_tools.as_ref() != Some(&tools) {
            let action = StateAction::SessionServerToolsChanged(SessionServerToolsChangedAction { tools });
            self.emit([TreeAction::session(action)]);
        }
    }

    /// The agent calls a tool that a client has.
    pub fn take_tool_call(&mut self, id: RequestId, called: HostedCall) {
        let HostedCall { request_id: call, name, args, .. } = called;
        let owner = self.hosted.trees.owner_of(&name).map(str::to_owned);
        let (Some(turn), Some(client)) = (self.hosted.listening_turn(), owner) else {
            return self.clients.answer_hub(&id, &ToolAnswer::failed(NO_OWNER));
        };
        let told = CallUpdate { id: call.clone(), name: Some(name), raw_input: Some(args), ..CallUpdate::default() };
        let mut acts = Vec::from_iter(self.hosted.begin_call(&turn, &told));
        if !matches!(self.hosted.trees.call_state(&call), Some(state::ToolCallState::Running(_))) {
            acts.push(self.hosted.ready(&turn, &call));
        }
        self.emit(acts);
        if let Some(state::ToolCallState::Running(it)) = self.hosted.trees.call_state(&call) {
            let request = state::SessionInputRequest::ToolClientExecution(state::SessionToolClientExecutionRequest {
                id: key(&id),
                chat: self.hosted.chat_uri(),
                turn_id: turn.clone(),
                client_id: client.clone(),
                tool_call: it.clone(),
            });
            self.emit([acts::input_needed(request)]);
        }
        self.hosted.requests.tool_calls.insert(id, ClientToolCall { turn, call, client });
    }

    /// The client that has the tool ran it.
    ///
    /// # Errors
    /// Why its result does not count, in words.
    pub fn complete_call(&mut self, action: ChatToolCallCompleteAction, origin: ActionOrigin) -> Result<(), String> {
        let is_it = |it: &ClientToolCall| it.call == action.tool_call_id && it.turn == action.turn_id;
        let found = self.hosted.requests.tool_calls.iter().find(|it| is_it(it.1));
        let (id, waiting) = found.ok_or_else(|| "no client runs that call".to_owned())?;
        if waiting.client != origin.client_id {
            return Err("another client runs that call".to_owned());
        }
        let (id, answer) = (id.clone(), answer_of(&action.result));
        self.emit([TreeAction::chat(StateAction::ChatToolCallComplete(action)).by(origin)]);
        self.forget_tool_call(&id);
        self.clients.answer_hub(&id, &answer);
        Ok(())
    }

    /// Calls of a client that is gone fail; `None`: those of all clients are over with the turn.
    pub fn end_tool_calls(&mut self, client: Option<&str>) {
        let is_its = |it: &ClientToolCall| client.is_none_or(|client| it.client == client);
        let its = self.hosted.requests.tool_calls.iter().filter(|it| is_its(it.1));
        let its: Vec<(RequestId, ClientToolCall)> = its.map(|(id, it)| (id.clone(), it.clone())).collect();
        for (id, it) in its {
            if client.is_none() {
                self.forget_tool_call(&id);
                continue;
            }
            let why = "the client that has this tool left";
            self.emit([acts::call_complete(&it.turn, &it.call, acts::call_result(false, why, Vec::new()))]);
            self.forget_tool_call(&id);
            self.clients.answer_hub(&id, &ToolAnswer::failed(why));
        }
    }

    /// The agent does not wait for the result any more, and says itself what became of the call.
    pub fn forget_tool_call(&mut self, id: &RequestId) {
        if self.hosted.requests.tool_calls.remove(id).is_some() {
            self.emit([acts::input_settled(key(id))]);
        }
    }
}

/// The answer to a call of a tool that no client has.
pub const NO_OWNER: &str = "the client that has this tool is gone";

impl Trees {
    /// The client that has a tool of that name.
    pub fn owner_of(&self, tool: &str) -> Option<&str> {
        self.usable_tools().find(|it| it.1.name == tool).map(|it| it.0)
    }

    /// Tools of all clients that a model can have beside the agent's own.
    fn usable_tools(&self) -> impl Iterator<Item = (&str, DeclaredTool)> {
        let own = self.session.server_tools.as_deref().unwrap_or_default();
        let all = self.session.active_clients.iter();
        let all = all.flat_map(|it| it.tools.iter().map(|tool| (it.client_id.as_str(), tool)));
        let others = all.filter(|(_, it)| !own.iter().any(|own| own.name == it.name));
        others.filter_map(|(client, it)| Some((client, declaration(it)?)))
    }

    /// The tools for a prompt. Of two with the same name the first counts.
    pub fn declared_tools(&self) -> Vec<DeclaredTool> {
        let mut names = BTreeSet::new();
        let all = self.usable_tools().map(|it| it.1).filter(|it| names.insert(it.name.clone()));
        all.take(MAX_TOOLS).collect()
    }
}

/// A tool of a client in the agent's words; `None`: the agent takes no such tool.
fn declaration(it: &state::ToolDefinition) -> Option<DeclaredTool> {
    let read_only = it.annotations.as_ref().and_then(|it| it.read_only_hint).unwrap_or_default();
    let res = DeclaredTool {
        name: it.name.clone(),
        description: it.description.clone()?,
        display_name: it.title.clone(),
        parameters_schema: it.input_schema.clone(),
        annotations: read_only.then_some(ReadOnlyNote { read_only }),
    };
    HostTools { tools: vec![res.read()?], execution: None }.check().ok()?;
    Some(res)
}

/// A tool of the agent as clients know tools.
fn definition(it: ListedTool) -> state::ToolDefinition {
    let read_only_hint = Some(it.annotations.read_only);
    state::ToolDefinition {
        name: it.name,
        title: Some(it.display_name),
        description: Some(it.description),
        input_schema: Some(it.parameters_schema),
        output_schema: None,
        annotations: Some(state::ToolAnnotations { read_only_hint, ..state::ToolAnnotations::default() }),
        meta: it.server.and_then(|it| castor_meta(json!({ "mcpServer": it }))),
    }
}

/// The answer to a call, which the model reads.
fn answer_of(result: &state::ToolCallResult) -> ToolAnswer {
    let text = |text: String| AnswerPart::Text { text };
    let parts = result.content.iter().flatten().map(|it| match it {
        state::ToolResultContent::Text(it) => text(it.text.clone()),
        state::ToolResultContent::EmbeddedResource(it) => {
            AnswerPart::Media { mime_type: it.content_type.clone(), data: it.data.clone() }
        }
        it => text(json!(it).to_string()),
    });
    let shown = result.past_tense_message.as_text();
    let more = result.structured_content.as_ref().map(|it| json!(it)).or_else(|| result.error.clone());
    let mut parts: Vec<AnswerPart> = parts.chain(more.map(|it| text(it.to_string()))).collect();
    if parts.is_empty() {
        parts.push(text(shown.to_owned()));
    }
    ToolAnswer::new(parts, shown, !result.success)
}
