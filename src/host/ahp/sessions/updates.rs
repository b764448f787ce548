//! Updates of the agent about a session, as actions on its trees.

use ahp::ahp_types::{
    actions::{
        ChatDeltaAction, ChatReasoningAction, PartialChatSummary, SessionConfigChangedAction,
        SessionTitleChangedAction, StateAction,
    },
    state::{MarkdownResponsePart, Message, ReasoningResponsePart, ResponsePart},
};

use super::{
    HostedSession, TreeAction, acts, config, messages,
    turn_progress::{GrowingPart, UserWords},
};
use castor_wire::acp::client::{
    ClientEvent, MaybeUndefined, MessageChunk, OptionSetting, PlanList, SessionEvent, SessionInfoUpdate, SessionOption,
    StepStatus, Voice,
};

impl HostedSession {
    /// The actions of one event.
    pub fn take_event(&mut self, told: &SessionEvent, now_ms: u64) -> Vec<TreeAction> {
        let meta = &told.meta.castor;
        if meta.history && !self.is_opening() {
            self.collect_user_words(&told.event);
            return Vec::new();
        }
        match &told.event {
            ClientEvent::Chunk(Voice::User, it) => return self.take_user_words(it, meta.blocks, now_ms),
            ClientEvent::Chunk(Voice::Answer, it) => return self.take_words(it, false),
            ClientEvent::Chunk(Voice::Thought, it) => return self.take_words(it, true),
            ClientEvent::Call(it) => return self.take_call(it),
            ClientEvent::Plan(it) => return self.take_plan(it),
            ClientEvent::Usage(it) => self.turn.context = Some(it.clone()),
            ClientEvent::Info(it) => return self.take_title(it),
            ClientEvent::Mode(mode) => {
                let options = self.offer.options.iter_mut().filter(|it| it.id == "mode");
                options.for_each(|it| it.current_value = Some(OptionSetting::Value(mode.clone())));
                return vec![self.config_act()];
            }
            ClientEvent::Options(it) => return self.take_options(it.clone()),
            ClientEvent::Commands(it) => self.offer.commands.clone_from(it),
            // The host speaks version 1 to its hub, and AHP has no place for the rest.
            ClientEvent::Message(..)
            | ClientEvent::CallPart(_)
            | ClientEvent::Terminal(_)
            | ClientEvent::TerminalOutput(_)
            | ClientEvent::Notice(_)
            | ClientEvent::Aside(_)
            | ClientEvent::Subagent(_)
            | ClientEvent::State(_)
            | ClientEvent::Unknown(_) => (),
        }
        Vec::new()
    }

    pub fn take_options(&mut self, options: Vec<SessionOption>) -> Vec<TreeAction> {
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
        TreeAction::session(StateAction::SessionConfigChanged(action))
    }

    /// Text of the running turn: a part of the answer grows, or another one begins.
    fn take_words(&mut self, chunk: &MessageChunk, is_thought: bool) -> Vec<TreeAction> {
        let Some(turn) = self.listening_turn() else { return Vec::new() };
        let (message, text) = words_of(chunk);
        let message = message.to_owned();
        let grows = self.turn.part.as_ref().filter(|it| it.is_thought == is_thought && it.message == message);
        if let Some(part) = grows {
            let (turn_id, part_id, content, meta) = (turn, part.id.clone(), text, None);
            let action = match is_thought {
                true => StateAction::ChatReasoning(ChatReasoningAction { turn_id, part_id, content, meta }),
                false => StateAction::ChatDelta(ChatDeltaAction { turn_id, part_id, content, meta }),
            };
            return vec![TreeAction::chat(action)];
        }
        self.turn.n_parts += 1;
        let id = format!("part-{}", self.turn.n_parts);
        self.turn.part = Some(GrowingPart { id: id.clone(), is_thought, message });
        let part = match is_thought {
            true => ResponsePart::Reasoning(ReasoningResponsePart { id, content: text }),
            false => ResponsePart::Markdown(MarkdownResponsePart { id, content: text }),
        };
        vec![acts::response_part(&turn, part)]
    }

    fn take_user_words(&mut self, chunk: &MessageChunk, n_blocks: Option<u64>, now_ms: u64) -> Vec<TreeAction> {
        let (message, text) = words_of(chunk);
        if self.is_opening() {
            return self.replay_user_words(message, text, now_ms);
        }
        let Some(n_blocks) = n_blocks else { return Vec::new() };
        self.turn.blocks.push(text);
        if (self.turn.blocks.len() as u64) < n_blocks {
            return Vec::new();
        }
        let text = std::mem::take(&mut self.turn.blocks).join("\n");
        self.take_other_prompt(messages::user_message(text), now_ms)
    }

    /// A history that is read once more is known, but for the ids of the messages.
    fn collect_user_words(&mut self, event: &ClientEvent) {
        let (ClientEvent::Chunk(Voice::User, chunk), Some(all)) = (event, self.turn.user_messages.as_mut()) else {
            return;
        };
        let (message, text) = words_of(chunk);
        match all.last_mut().filter(|it| it.message == message) {
            Some(last) => last.text.push_str(&text),
            None => all.push(UserWords { message: message.to_owned(), text }),
        }
    }

    /// A prompt of another client: it runs, or waits as the agent has it.
    fn take_other_prompt(&mut self, message: Message, now_ms: u64) -> Vec<TreeAction> {
        let id = self.next_turn_id(now_ms);
        self.turn.other_prompts.push_back(id.clone());
        if !self.is_busy() {
            return vec![self.begin_turn(id, message, None, now_ms)];
        }
        vec![acts::message_queued(id, message)]
    }

    /// While the history comes: each message of the user begins a turn.
    fn replay_user_words(&mut self, message: &str, text: String, now_ms: u64) -> Vec<TreeAction> {
        if let Some(active) = self.trees.chat.active_turn.as_mut().filter(|it| it.id == message) {
            active.message.text.push_str(&text);
            return Vec::new();
        }
        let mut res = Vec::from_iter(self.end_replayed_turn());
        let id = if message.is_empty() { self.next_turn_id(now_ms) } else { message.to_owned() };
        res.push(self.begin_turn(id, messages::user_message(messages::typed_text(text)), None, now_ms));
        res
    }

    pub fn end_replayed_turn(&self) -> Option<TreeAction> {
        self.trees.active_turn().map(|it| acts::turn_complete(it, 0))
    }

    /// Nobody knows when turns of the history were.
    pub fn forget_replayed_times(&mut self) {
        for turn in &mut self.trees.chat.turns {
            turn.started_at = None;
            turn.duration = None;
        }
    }

    /// The activity is what the agent does now, of its own list.
    fn take_plan(&self, plan: &PlanList) -> Vec<TreeAction> {
        let current = plan.entries.iter().find(|it| it.status == Some(StepStatus::InProgress));
        let activity = current.map(|it| it.content.as_str());
        if self.listening_turn().is_none() || self.trees.session.activity.as_deref() == activity {
            return Vec::new();
        }
        vec![acts::activity_changed(activity)]
    }

    fn take_title(&mut self, told: &SessionInfoUpdate) -> Vec<TreeAction> {
        let title = match &told.title {
            MaybeUndefined::Undefined => return Vec::new(),
            MaybeUndefined::Null => "",
            MaybeUndefined::Value(it) => it,
        };
        let mut res = Vec::new();
        if title != self.trees.session.title {
            let action = SessionTitleChangedAction { title: title.to_owned() };
            res.push(TreeAction::session(StateAction::SessionTitleChanged(action)));
        }
        if title != self.trees.chat.title {
            // The chat's own title has no action: its summary has.
            title.clone_into(&mut self.trees.chat.title);
            let changes = PartialChatSummary { title: Some(title.to_owned()), ..PartialChatSummary::default() };
            res.push(acts::chat_updated(self.chat_uri(), changes));
        }
        res
    }
}

/// The message's id, and what it says.
fn words_of(chunk: &MessageChunk) -> (&str, String) {
    (chunk.message.as_deref().unwrap_or_default(), chunk.content.as_ref().map(messages::text_of).unwrap_or_default())
}
