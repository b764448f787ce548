//! Turns of a session: prompts of the host's clients and of others, how answers grow, and the order of what waits.

use ahp::ahp_types::{
    actions::{ActionOrigin, ChatTurnResumeAction, ChatTurnStartedAction, StateAction},
    state::{AgentSelection, Message, ResponsePart, TurnState},
};

use super::{
    HostedSession, SessionDesk, SessionStage, TreeAction, acts,
    config::{AGENT, OWN_AGENT, agent_named},
    messages,
};
use crate::ahp::Next;
use castor_client::Conversation;
use castor_wire::acp::client::{AgentRequest, Own, PromptChoices, SentPrompt, SessionParams};

impl HostedSession {
    pub fn next_turn_id(&mut self, now_ms: u64) -> String {
        self.turn.n_turns += 1;
        format!("castor-{now_ms}-{}", self.turn.n_turns)
    }

    /// A turn begins, and all that belonged to the one before is over.
    pub fn begin_turn(&mut self, id: String, message: Message, queued: Option<String>, now_ms: u64) -> TreeAction {
        self.turn.started_ms = now_ms;
        self.turn.resumes = false;
        self.turn.part = None;
        self.turn.talk = Conversation::default();
        TreeAction::chat(StateAction::ChatTurnStarted(ChatTurnStartedAction {
            turn_id: id,
            started_at: acts::time(now_ms),
            message,
            queued_message_id: queued,
            meta: None,
        }))
    }

    /// What waits and may begin: a prompt of another client that the agent has already, or a message in the queue.
    fn next_waiting(&self) -> Option<(String, Message, bool)> {
        let queue = self.trees.chat.queued_messages.as_deref().unwrap_or_default();
        let next = match self.turn.other_prompts.front() {
            // The agent may be at one that was not seen: then nothing begins.
            Some(id) => (queue.iter().find(|it| it.id == *id)?, true),
            None => (queue.first()?, false),
        };
        Some((next.0.id.clone(), next.0.message.clone(), next.1))
    }
}

impl SessionDesk<'_> {
    /// A client begins a turn.
    ///
    /// # Errors
    /// The reason of a refusal, in words.
    pub fn start_turn(&mut self, action: ChatTurnStartedAction, origin: ActionOrigin) -> Result<(), String> {
        if self.hosted.trees.active_turn().is_some() {
            return Err("a turn runs; queue the message, or cancel the turn".to_owned());
        }
        if !self.hosted.turn.other_prompts.is_empty() {
            return Err("the agent is at the prompt of another client; queue the message".to_owned());
        }
        check_agent(self.hosted, action.message.agent.as_ref())?;
        let ChatTurnStartedAction { turn_id: turn, message, queued_message_id: queued, .. } = action;
        let act = self.hosted.begin_turn(turn.clone(), message, queued, self.clients.now_ms).by(origin);
        self.emit([act]);
        self.prompt(&turn);
        Ok(())
    }

    /// A client wants a turn that failed to go on. The agent's model gets nothing new.
    ///
    /// # Errors
    /// The reason of a refusal, in words.
    pub fn resume_turn(&mut self, action: ChatTurnResumeAction, origin: ActionOrigin) -> Result<(), String> {
        if self.hosted.is_busy() || !self.hosted.turn.other_prompts.is_empty() {
            return Err("a turn runs already".to_owned());
        }
        let turn = action.turn_id.clone();
        let failed = self.hosted.trees.chat.turns.last().filter(|it| it.id == turn && it.state == TurnState::Error);
        let last = failed.and_then(|it| it.response_parts.last());
        if !matches!(last, Some(ResponsePart::Error(it)) if it.resumable == Some(true)) {
            return Err("that turn cannot be resumed; send a message".to_owned());
        }
        self.hosted.turn.part = None;
        self.hosted.turn.resumes = true;
        self.emit([TreeAction::chat(StateAction::ChatTurnResume(action)).by(origin)]);
        self.prompt(&turn);
        Ok(())
    }

    /// Begins the next of what waits, if no turn runs.
    pub fn start_waiting(&mut self) {
        if self.hosted.is_busy() {
            return;
        }
        let Some((id, message, is_running)) = self.hosted.next_waiting() else { return };
        let now = self.clients.now_ms;
        let turn = if is_running { id.clone() } else { self.hosted.next_turn_id(now) };
        let act = self.hosted.begin_turn(turn.clone(), message, Some(id), now);
        self.emit([act]);
        if !is_running {
            self.prompt(&turn);
        }
    }

    /// Sends the message of the turn that runs to the agent, after what has to be so before.
    pub fn prompt(&mut self, turn: &str) {
        let id = self.hosted.id.as_str();
        let Some(active) = self.hosted.trees.chat.active_turn.as_ref().filter(|it| it.id == turn) else {
            return self.end_cancelled();
        };
        match self.hosted.stage {
            // It is sent when that is done.
            SessionStage::Reopening => return,
            SessionStage::Dormant => {
                let request = AgentRequest::Resume(self.catalog.opening_params(id));
                return self.clients.ask(id, Next::Revive(turn.to_owned()), &request);
            }
            SessionStage::Open | SessionStage::Opening => (),
        }
        match wanted_agent(self.hosted, active.message.agent.as_ref()) {
            Some(agent) => {
                let request = AgentRequest::SetOption { session_id: id, config_id: AGENT, value: agent };
                self.clients.ask(id, Next::ChooseAgent(turn.to_owned()), &request);
            }
            None => self.send_prompt(turn),
        }
    }

    /// Sends the prompt of a turn; one that was cancelled meanwhile is not sent.
    pub fn send_prompt(&mut self, turn: &str) {
        let id = self.hosted.id.as_str();
        let Some(active) = self.hosted.trees.chat.active_turn.as_ref().filter(|it| it.id == turn) else {
            return self.end_cancelled();
        };
        let resume = self.hosted.turn.resumes;
        let blocks = match resume {
            true => Vec::new(),
            false => messages::prompt_of(&active.message, &self.hosted.trees.annotations),
        };
        let tools = self.hosted.trees.declared_tools();
        let model = active.message.model.as_ref().map(|it| it.id.as_str());
        let meta = Own { castor: PromptChoices { model, resume, forms: true, tools: &tools } };
        let request = AgentRequest::Prompt(SentPrompt { session_id: id, prompt: &blocks, meta });
        self.clients.ask(id, Next::EndTurn(turn.to_owned()), &request);
    }

    /// A client cancels the turn that runs. What the agent still says is not shown.
    ///
    /// # Errors
    /// The reason of a refusal, in words.
    pub fn cancel_turn(&mut self, turn: &str, origin: ActionOrigin) -> Result<(), String> {
        if self.hosted.trees.active_turn() != Some(turn) {
            return Err("that turn does not run".to_owned());
        }
        self.hosted.turn.n_cancelled += 1;
        let duration = self.clients.now_ms.saturating_sub(self.hosted.turn.started_ms);
        self.withdraw_questions();
        self.end_tool_calls(None);
        self.emit([acts::turn_cancelled(turn, duration).by(origin)]);
        self.clients.notify_hub("session/cancel", &SessionParams::from(self.hosted.id.as_str()));
        Ok(())
    }
}

fn check_agent(hosted: &HostedSession, wanted: Option<&AgentSelection>) -> Result<(), String> {
    match wanted {
        Some(it) if agent_named(&hosted.offer.options, &it.uri).is_none() => {
            Err(format!("the session has no agent {}", it.uri))
        }
        _ => Ok(()),
    }
}

/// The agent of a turn; `None`: the session has that one already.
fn wanted_agent<'h>(hosted: &'h HostedSession, selection: Option<&AgentSelection>) -> Option<&'h str> {
    let options = &hosted.offer.options;
    let current = options.iter().find(|it| it.id == AGENT)?.chosen()?;
    let wanted = selection.and_then(|it| agent_named(options, &it.uri)).unwrap_or(OWN_AGENT);
    (wanted != current).then_some(wanted)
}
