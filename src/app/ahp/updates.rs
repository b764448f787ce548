//! Updates of the agent about a session, as actions on its trees.

use ahp::ahp_types::{
    actions::{ChatDeltaAction, ChatReasoningAction, SessionConfigChangedAction, StateAction},
    state::{Message, ResponsePart, ToolCallState},
};
use serde_json::{Value, json};

use super::{
    config::{self, ConfigOption, HostedCommand},
    hosted_session::{HostedSession, Tree, TreeAction},
    messages,
    turn_progress::GrowingPart,
};

impl HostedSession {
    /// The actions of one `session/update`.
    pub fn take_update(&mut self, params: &Value, now_ms: u64) -> Vec<TreeAction> {
        let Some(update) = params.get("update") else { return Vec::new() };
        let is_history = params.pointer("/_meta/castor/history") == Some(&json!(true));
        if is_history && !self.is_opening() {
            self.collect_user_words(update);
            return Vec::new();
        }
        match update.get("sessionUpdate").and_then(Value::as_str).unwrap_or_default() {
            "user_message_chunk" => self.take_user_words(update, params.pointer("/_meta/castor"), now_ms),
            "agent_message_chunk" => self.take_words(update, false),
            "agent_thought_chunk" => self.take_words(update, true),
            "tool_call" | "tool_call_update" => self.take_call(update),
            "plan" => self.take_plan(update),
            "usage_update" => {
                let mut context = update.clone();
                context.as_object_mut().map(|it| it.remove("sessionUpdate"));
                self.turn.context = Some(context);
                Vec::new()
            }
            "session_info_update" => self.take_title(update),
            "current_mode_update" => {
                let mode = update.get("currentModeId").cloned().unwrap_or_default();
                self.offer
                    .options
                    .iter_mut()
                    .filter(|it| it.id == "mode")
                    .for_each(|it| it.current_value = mode.clone());
                vec![self.config_act()]
            }
            "config_option_update" => match config::read_options(update) {
                Some(options) => self.take_options(options),
                None => Vec::new(),
            },
            "available_commands_update" => {
                self.offer.commands = read_commands(update);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    pub fn take_options(&mut self, options: Vec<ConfigOption>) -> Vec<TreeAction> {
        self.offer.options = options;
        let Some(config) = &self.trees.session.config else {
            self.trees.session.config = Some(config::session_config(&self.offer.options));
            self.trees.session.customizations = config::agent_customizations(&self.offer.options);
            return Vec::new();
        };
        let is_same = config.values == config::values(&self.offer.options);
        if is_same { Vec::new() } else { vec![self.config_act()] }
    }

    fn config_act(&self) -> TreeAction {
        let config = config::values(&self.offer.options);
        let action = SessionConfigChangedAction { config, replace: Some(true) };
        TreeAction::new(Tree::Session, StateAction::SessionConfigChanged(action))
    }

    /// Text of the running turn: a part of the answer grows, or another one begins.
    fn take_words(&mut self, update: &Value, is_thought: bool) -> Vec<TreeAction> {
        let Some(turn) = self.listening_turn() else { return Vec::new() };
        let text = update.get("content").map(messages::text_of).unwrap_or_default();
        let message = update.get("messageId").and_then(Value::as_str).unwrap_or_default().to_owned();
        let grows = self.turn.part.as_ref().filter(|it| it.is_thought == is_thought && it.message == message);
        if let Some(part) = grows {
            let (turn_id, part_id, content, meta) = (turn, part.id.clone(), text, None);
            let action = match is_thought {
                true => StateAction::ChatReasoning(ChatReasoningAction { turn_id, part_id, content, meta }),
                false => StateAction::ChatDelta(ChatDeltaAction { turn_id, part_id, content, meta }),
            };
            return vec![TreeAction::new(Tree::Chat, action)];
        }
        self.turn.n_parts += 1;
        let id = format!("part-{}", self.turn.n_parts);
        let kind = if is_thought { "reasoning" } else { "markdown" };
        let part = json!({ "kind": kind, "id": id, "content": text });
        self.turn.part = Some(GrowingPart { id, is_thought, message });
        vec![TreeAction::chat(json!({ "type": "chat/responsePart", "turnId": turn, "part": part }))]
    }

    /// The turn that what comes belongs to.
    pub fn listening_turn(&self) -> Option<String> {
        self.active_turn().filter(|_| self.turn.n_cancelled == 0).map(str::to_owned)
    }

    fn take_user_words(&mut self, update: &Value, castor: Option<&Value>, now_ms: u64) -> Vec<TreeAction> {
        let text = update.get("content").map(messages::text_of).unwrap_or_default();
        let message = update.get("messageId").and_then(Value::as_str).unwrap_or_default();
        if self.is_opening() {
            return self.replay_user_words(message, text, now_ms);
        }
        let Some(n_blocks) = castor.and_then(|it| it.get("blocks")).and_then(Value::as_u64) else { return Vec::new() };
        self.turn.blocks.push(text);
        if (self.turn.blocks.len() as u64) < n_blocks {
            return Vec::new();
        }
        let text = std::mem::take(&mut self.turn.blocks).join("\n");
        self.take_other_prompt(messages::user_message(text), now_ms)
    }

    /// A history that is read once more is known, but for the ids of the messages.
    fn collect_user_words(&mut self, update: &Value) {
        let Some(all) = self.turn.user_messages.as_mut().filter(|_| update["sessionUpdate"] == "user_message_chunk")
        else {
            return;
        };
        let text = update.get("content").map(messages::text_of).unwrap_or_default();
        let message = update.get("messageId").and_then(Value::as_str).unwrap_or_default();
        match all.last_mut().filter(|it| it.0 == message) {
            Some(last) => last.1.push_str(&text),
            None => all.push((message.to_owned(), text)),
        }
    }

    /// A prompt of another client: it runs, or waits as the agent has it.
    fn take_other_prompt(&mut self, message: Message, now_ms: u64) -> Vec<TreeAction> {
        let id = self.next_turn_id(now_ms);
        self.turn.other_prompts.push_back(id.clone());
        if !self.is_busy() {
            return vec![self.begin_turn((id, message), None, now_ms)];
        }
        let action = json!({ "type": "chat/pendingMessageSet", "kind": "queued", "id": id, "message": message });
        vec![TreeAction::chat(action)]
    }

    /// While the history comes: each message of the user begins a turn.
    fn replay_user_words(&mut self, message: &str, text: String, now_ms: u64) -> Vec<TreeAction> {
        if let Some(active) = self.trees.chat.active_turn.as_mut().filter(|it| it.id == message) {
            active.message.text.push_str(&text);
            return Vec::new();
        }
        let mut res = self.end_replayed_turn();
        let id = if message.is_empty() { self.next_turn_id(now_ms) } else { message.to_owned() };
        res.push(self.begin_turn((id, messages::user_message(messages::typed_text(text))), None, now_ms));
        res
    }

    pub fn end_replayed_turn(&mut self) -> Vec<TreeAction> {
        let Some(turn) = self.active_turn().map(str::to_owned) else { return Vec::new() };
        vec![TreeAction::chat(json!({ "type": "chat/turnComplete", "turnId": turn, "duration": 0 }))]
    }

    /// When turns of the history were is not known.
    pub fn forget_replayed_times(&mut self) {
        for turn in &mut self.trees.chat.turns {
            turn.started_at = None;
            turn.duration = None;
        }
    }

    /// What the agent does now, of its own list.
    fn take_plan(&self, update: &Value) -> Vec<TreeAction> {
        let entries = update.get("entries").and_then(Value::as_array);
        let current = entries.into_iter().flatten().find(|it| it["status"] == "in_progress");
        let activity = current.and_then(|it| it.get("content")).and_then(Value::as_str);
        if self.listening_turn().is_none() || self.trees.session.activity.as_deref() == activity {
            return Vec::new();
        }
        let action = json!({ "type": "session/activityChanged" });
        vec![TreeAction::session(super::with_members(action, [("activity", activity.map(Value::from))]))]
    }

    fn take_title(&mut self, update: &Value) -> Vec<TreeAction> {
        let Some(title) = update.get("title") else { return Vec::new() };
        let title = title.as_str().unwrap_or_default();
        let mut res = Vec::new();
        if title != self.trees.session.title {
            res.push(TreeAction::session(json!({ "type": "session/titleChanged", "title": title })));
        }
        if title != self.trees.chat.title {
            // The chat's own title has no action: its summary has.
            title.clone_into(&mut self.trees.chat.title);
            let (chat, changes) = (self.chat_uri(), json!({ "title": title }));
            res.push(TreeAction::session(json!({ "type": "session/chatUpdated", "chat": chat, "changes": changes })));
        }
        res
    }

    /// A call of the answer so far.
    pub fn call_state(&self, call: &str) -> Option<&ToolCallState> {
        let parts = &self.trees.chat.active_turn.as_ref()?.response_parts;
        parts.iter().rev().find_map(|it| match it {
            ResponsePart::ToolCall(it) if call_id(&it.tool_call) == call => Some(&it.tool_call),
            _ => None,
        })
    }
}

fn call_id(it: &ToolCallState) -> &str {
    match it {
        ToolCallState::Streaming(it) => &it.tool_call_id,
        ToolCallState::PendingConfirmation(it) => &it.tool_call_id,
        ToolCallState::Running(it) => &it.tool_call_id,
        ToolCallState::AuthRequired(it) => &it.tool_call_id,
        ToolCallState::PendingResultConfirmation(it) => &it.tool_call_id,
        ToolCallState::Completed(it) => &it.tool_call_id,
        ToolCallState::Cancelled(it) => &it.tool_call_id,
        ToolCallState::Unknown(_) => "",
    }
}

fn read_commands(update: &Value) -> Vec<HostedCommand> {
    let all = update.get("availableCommands").and_then(Value::as_array);
    let text = |it: &Value, place: &str| it.pointer(place).and_then(Value::as_str).map(str::to_owned);
    let command = |it: &Value| HostedCommand {
        name: text(it, "/name").unwrap_or_default(),
        description: text(it, "/description").unwrap_or_default(),
        hint: text(it, "/input/hint"),
    };
    all.into_iter().flatten().map(command).collect()
}
