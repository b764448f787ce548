//! Words of clients for a turn that runs, and messages that wait for the next one.

use ahp::ahp_types::{
    actions::{ActionOrigin, ChatPendingMessageRemovedAction, ChatPendingMessageSetAction, StateAction},
    state::PendingMessageKind,
};

use super::{SessionDesk, TreeAction, acts, messages};
use crate::ahp::clients::hub_requests::SteeredWords;
use crate::ahp::{HubOutcome, Next};
use castor_wire::acp::client::{AgentRequest, SentPrompt, SteeringAnswer, SteeringMeta, read_value};

impl SessionDesk<'_> {
    /// A client sends a message for the running turn, or for one after it.
    ///
    /// # Errors
    /// The reason of a refusal, in words.
    pub fn set_pending(&mut self, it: ChatPendingMessageSetAction, origin: ActionOrigin) -> Result<(), String> {
        messages::check_message(&it.message)?;
        self.check_waits(&it.id)?;
        let steers = it.kind == PendingMessageKind::Steering && self.hosted.listening_turn().is_some();
        let words = SteeredWords { message: it.id.clone(), text: it.message.text.clone() };
        let blocks = messages::prompt_of(&it.message, &self.hosted.trees.annotations);
        let it = if steers { it } else { ChatPendingMessageSetAction { kind: PendingMessageKind::Queued, ..it } };
        self.emit([TreeAction::chat(StateAction::ChatPendingMessageSet(it)).by(origin)]);
        if !steers {
            self.start_waiting();
            return Ok(());
        }
        let id = self.hosted.id.as_str();
        let params = SentPrompt { session_id: id, prompt: &blocks, meta: SteeringMeta::default() };
        self.clients.ask(id, Next::Steer(words), &AgentRequest::Steer(params));
        Ok(())
    }

    /// A client takes a message back that waits.
    ///
    /// # Errors
    /// The reason of a refusal, in words.
    pub fn remove_pending(&mut self, it: ChatPendingMessageRemovedAction, origin: ActionOrigin) -> Result<(), String> {
        if it.kind == PendingMessageKind::Steering {
            return Err(taken());
        }
        self.check_waits(&it.id)?;
        self.emit([TreeAction::chat(StateAction::ChatPendingMessageRemoved(it)).by(origin)]);
        Ok(())
    }

    fn check_waits(&self, message: &String) -> Result<(), String> {
        if self.hosted.turn.other_prompts.contains(message) { Err(taken()) } else { Ok(()) }
    }

    /// Words for a running turn: the model has them, or they begin a turn of their own.
    pub fn follow_steering(&mut self, SteeredWords { message, text }: SteeredWords, outcome: HubOutcome) {
        let answer: SteeringAnswer = outcome.ok().and_then(read_value).unwrap_or_default();
        let is_taken = answer.outcome.as_deref() == Some("injected");
        let pending = self.hosted.trees.chat.steering_message.clone().filter(|it| it.id == message);
        let Some(pending) = pending else { return };
        let then = match self.hosted.listening_turn() {
            Some(turn) if is_taken => Some(acts::notification_part(&turn, &format!("You said: {text}"))),
            _ if is_taken => None,
            _ => Some(acts::message_queued(pending.id, pending.message)),
        };
        self.emit([acts::message_gone(PendingMessageKind::Steering, &message)].into_iter().chain(then));
        self.start_waiting();
    }
}

fn taken() -> String {
    "the agent has that message already".to_owned()
}
