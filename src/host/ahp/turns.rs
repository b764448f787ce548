//! Turns of a session: prompts of the host's clients and of others, how answers grow, and the order of what waits.

use ahp::ahp_types::{
    actions::{ActionOrigin, ChatTurnResumeAction, ChatTurnStartedAction, StateAction},
    state::{AgentSelection, Message, ResponsePart, TurnState},
};
use serde_json::json;

use super::{
    AhpHost,
    config::{AGENT, OWN_AGENT, agent_named},
    hosted_session::{HostedSession, SessionStage, Tree, TreeAction},
    hub_requests::HubRequest,
    messages, time, with_members,
};
use castor_client::Conversation;

impl HostedSession {
    pub fn next_turn_id(&mut self, now_ms: u64) -> String {
        self.turn.n_turns += 1;
        format!("castor-{now_ms}-{}", self.turn.n_turns)
    }

    /// A turn begins, and all that belonged to the one before is over.
    pub fn begin_turn(&mut self, (id, message): (String, Message), queued: Option<String>, now_ms: u64) -> TreeAction {
        self.turn.started_ms = now_ms;
        self.turn.resumes = false;
        self.turn.part = None;
        self.turn.talk = Conversation::default();
        let started_at = time(now_ms);
        let queued_message_id = queued;
        let action = ChatTurnStartedAction { turn_id: id, started_at, message, queued_message_id, meta: None };
        TreeAction::new(Tree::Chat, StateAction::ChatTurnStarted(action))
    }

    /// What waits and may begin: a prompt of another client that the agent has already, or a message in the queue.
    fn next_waiting(&self) -> Option<(String, Message, bool)> {
        let queue = self.trees.chat.queued_messages.as_deref().unwrap_or_default();
        let of_others = self.turn.other_prompts.front().and_then(|id| queue.iter().find(|it| it.id == *id));
        if of_others.is_none() && !self.turn.other_prompts.is_empty() {
            // The agent is at one that was not seen.
            return None;
        }
        let own = || queue.iter().find(|it| !self.turn.other_prompts.contains(&it.id));
        let next = of_others.map(|it| (it, true)).or_else(|| own().map(|it| (it, false)))?;
        Some((next.0.id.clone(), next.0.message.clone(), next.1))
    }
}

impl AhpHost {
    /// A client begins a turn.
    ///
    /// # Errors
    /// Why it does not, in words.
    pub(super) fn start_turn(
        &mut self,
        session: &str,
        action: ChatTurnStartedAction,
        origin: ActionOrigin,
    ) -> Result<(), String> {
        let now = self.now_ms;
        let hosted = self.hosted(session)?;
        if hosted.active_turn().is_some() {
            return Err("a turn runs; queue the message, or cancel the turn".to_owned());
        }
        if !hosted.turn.other_prompts.is_empty() {
            return Err("the agent is at the prompt of another client; queue the message".to_owned());
        }
        check_agent(hosted, action.message.agent.as_ref())?;
        let turn = action.turn_id.clone();
        let message = action.message.clone();
        let queued = action.queued_message_id.clone();
        let act = hosted.begin_turn((turn.clone(), message), queued, now).by(origin);
        self.emit(session, vec![act]);
        self.prompt(session, &turn);
        Ok(())
    }

    /// A client wants a turn that failed to go on. The agent's model gets nothing new.
    ///
    /// # Errors
    /// Why it does not, in words.
    pub(super) fn resume_turn(
        &mut self,
        session: &str,
        action: ChatTurnResumeAction,
        origin: ActionOrigin,
    ) -> Result<(), String> {
        let hosted = self.hosted(session)?;
        if hosted.is_busy() || !hosted.turn.other_prompts.is_empty() {
            return Err("a turn runs already".to_owned());
        }
        let turn = action.turn_id.clone();
        let failed = hosted.trees.chat.turns.last().filter(|it| it.id == turn && it.state == TurnState::Error);
        let last = failed.and_then(|it| it.response_parts.last());
        if !matches!(last, Some(ResponsePart::Error(it)) if it.resumable == Some(true)) {
            return Err("that turn cannot be resumed; send a message".to_owned());
        }
        hosted.turn.part = None;
        hosted.turn.resumes = true;
        let act = TreeAction::new(Tree::Chat, StateAction::ChatTurnResume(action)).by(origin);
        self.emit(session, vec![act]);
        self.prompt(session, &turn);
        Ok(())
    }

    /// The next of what waits, if no turn runs.
    pub(super) fn start_waiting(&mut self, session: &str) {
        let now = self.now_ms;
        let Some(hosted) = self.sessions.get_mut(session) else { return };
        if hosted.is_busy() {
            return;
        }
        let Some((id, message, is_running)) = hosted.next_waiting() else { return };
        let turn = if is_running { id.clone() } else { hosted.next_turn_id(now) };
        let act = hosted.begin_turn((turn.clone(), message), Some(id), now);
        self.emit(session, vec![act]);
        if !is_running {
            self.prompt(session, &turn);
        }
    }

    /// Sends the message of the turn that runs to the agent, after what has to be so before.
    pub(super) fn prompt(&mut self, session: &str, turn: &str) {
        let Some(hosted) = self.sessions.get(session) else { return };
        let Some(active) = hosted.trees.chat.active_turn.as_ref().filter(|it| it.id == turn) else {
            return self.end_cancelled(session);
        };
        if hosted.stage == SessionStage::Reopening {
            // It is sent when that is done.
            return;
        }
        if hosted.stage == SessionStage::Dormant {
            let params = self.opening_params(session);
            let request = HubRequest::Revive { session: session.to_owned(), turn: turn.to_owned() };
            return self.ask_hub(request, "session/resume", &params);
        }
        let wanted = wanted_agent(hosted, active.message.agent.as_ref());
        if let Some(agent) = wanted {
            let params = json!({ "sessionId": session, "configId": AGENT, "value": agent });
            let request = HubRequest::ChooseAgent { session: session.to_owned(), turn: turn.to_owned() };
            return self.ask_hub(request, "session/set_config_option", &params);
        }
        self.send_prompt(session, turn);
    }

    /// One that was cancelled meanwhile is not sent.
    pub(super) fn send_prompt(&mut self, session: &str, turn: &str) {
        let Some(hosted) = self.sessions.get(session) else { return };
        let Some(active) = hosted.trees.chat.active_turn.as_ref().filter(|it| it.id == turn) else {
            return self.end_cancelled(session);
        };
        let blocks = match hosted.turn.resumes {
            true => Vec::new(),
            false => messages::prompt_of(&active.message, &hosted.trees.annotations),
        };
        let tools = hosted.declared_tools();
        let options = [
            ("model", active.message.model.as_ref().map(|it| json!(it.id))),
            ("resume", hosted.turn.resumes.then(|| json!(true))),
            ("forms", Some(json!(true))),
            ("tools", (!tools.is_empty()).then(|| json!(tools))),
        ];
        let options = with_members(json!({}), options);
        let params = json!({ "sessionId": session, "prompt": blocks, "_meta": { "castor": options } });
        let request = HubRequest::Prompt { session: session.to_owned(), turn: turn.to_owned() };
        self.ask_hub(request, "session/prompt", &params);
    }

    /// A client cancels the turn that runs. What the agent still says of it is not shown.
    ///
    /// # Errors
    /// Why it cannot, in words.
    pub(super) fn cancel_turn(&mut self, session: &str, turn: &str, origin: ActionOrigin) -> Result<(), String> {
        let now = self.now_ms;
        let hosted = self.hosted(session)?;
        if hosted.active_turn() != Some(turn) {
            return Err("that turn does not run".to_owned());
        }
        hosted.turn.n_cancelled += 1;
        let duration = now.saturating_sub(hosted.turn.started_ms);
        let action = json!({ "type": "chat/turnCancelled", "turnId": turn, "duration": duration });
        self.withdraw_questions(session);
        self.end_tool_calls(session, None);
        self.emit(session, vec![TreeAction::chat(action).by(origin)]);
        self.notify_hub("session/cancel", &json!({ "sessionId": session }));
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

/// `None`: it is chosen already.
fn wanted_agent(hosted: &HostedSession, selection: Option<&AgentSelection>) -> Option<String> {
    let options = &hosted.offer.options;
    let current = options.iter().find(|it| it.id == AGENT)?.current_value.as_str()?;
    let wanted = selection.and_then(|it| agent_named(options, &it.uri)).unwrap_or(OWN_AGENT);
    (wanted != current).then(|| wanted.to_owned())
}
