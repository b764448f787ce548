//! Truncation of a conversation: by a client of the host, and by other clients of the agent.

use ahp::ahp_types::{
    actions::{ChatTruncatedAction, StateAction},
    state::Turn,
};
use serde_json::json;

use super::{
    AhpHost,
    hosted_session::{HostedSession, Tree, TreeAction},
    hub_requests::{HubOutcome, HubRequest, WantedCut},
    messages::command_of,
};

impl AhpHost {
    /// A client cuts the conversation behind a turn. The agent knows messages, so these are read first.
    pub(super) fn truncate(&mut self, from: u64, session: &str, action: ChatTruncatedAction, act: TreeAction) {
        let Some(hosted) = self.sessions.get_mut(session) else { return };
        if hosted.is_busy() || hosted.turn.user_messages.is_some() {
            return self.reject(from, session, act, "a turn runs; cancel it first");
        }
        let turns = &hosted.trees.chat.turns;
        let n_kept = match &action.turn_id {
            Some(id) => turns.iter().position(|it| it.id == *id).map(|it| it + 1),
            None => Some(0),
        };
        let Some(n_kept) = n_kept else { return self.reject(from, session, act, "the chat has no such turn") };
        if n_kept == turns.len() {
            return self.emit(session, vec![act]);
        }
        hosted.turn.user_messages = Some(Vec::new());
        let cut = Box::new(WantedCut { from, act, n_kept });
        self.read_history(HubRequest::FindCut { session: session.to_owned(), cut }, session);
    }

    fn read_history(&mut self, request: HubRequest, session: &str) {
        self.ask_hub(request, "_castor/session/attach", &json!({ "sessionId": session, "history": true }));
    }

    pub(super) fn follow_find_cut(&mut self, session: &str, cut: WantedCut, outcome: HubOutcome) {
        let Some(hosted) = self.sessions.get_mut(session) else { return };
        let messages = hosted.turn.user_messages.take().unwrap_or_default();
        let first = hosted.first_message_behind(cut.n_kept, &messages);
        let WantedCut { from, act, .. } = cut;
        match (outcome, first) {
            (Err(it), _) => self.reject(from, session, act, &it.message),
            (Ok(_), None) => self.reject(from, session, act, "the agent has no such message any more"),
            (Ok(_), Some(message)) => {
                let order = json!({ "sessionId": session, "messageId": message, "what": "conversation" });
                let request = HubRequest::Apply { from, session: session.to_owned(), act: Box::new(act) };
                self.ask_hub(request, "_castor/session/rewind", &order);
            }
        }
    }

    /// The conversation was cut by another client, or by a command. The host's own cuts are told in this way too: to
    /// read it once more does no harm.
    pub(super) fn note_rewound(&mut self, session: &str) {
        let Some(hosted) = self.sessions.get_mut(session) else { return };
        hosted.turn.is_stale = true;
        if !hosted.is_busy() {
            self.read_history_anew(session);
        }
    }

    pub(super) fn read_history_anew(&mut self, session: &str) {
        let Some(hosted) = self.sessions.get_mut(session) else { return };
        hosted.turn.is_stale = false;
        if hosted.turn.user_messages.is_none() {
            hosted.turn.user_messages = Some(Vec::new());
            self.read_history(HubRequest::ReadAnew { session: session.to_owned() }, session);
        }
    }

    /// Turns of which the message is gone are gone.
    pub(super) fn follow_read_anew(&mut self, session: &str, outcome: HubOutcome) {
        let Some(hosted) = self.sessions.get_mut(session) else { return };
        let messages = hosted.turn.user_messages.take().unwrap_or_default();
        if outcome.is_err() || hosted.active_turn().is_some() {
            return;
        }
        let n_kept = hosted.n_turns_in(&messages);
        let turns = &hosted.trees.chat.turns;
        if n_kept == turns.len() {
            return;
        }
        let turn_id = n_kept.checked_sub(1).and_then(|it| turns.get(it)).map(|it| it.id.clone());
        let cut = TreeAction::new(Tree::Chat, StateAction::ChatTruncated(ChatTruncatedAction { turn_id }));
        self.emit(session, vec![cut]);
    }
}

impl HostedSession {
    /// How many of the turns, from the first on, have their message in the history. Words for a running turn are
    /// messages there, too, and no turns: they are passed over.
    fn n_turns_in(&self, messages: &[(String, String)]) -> usize {
        let mut rest = messages.iter();
        self.trees.chat.turns.iter().take_while(|turn| rest.any(|it| says(turn, it))).count()
    }

    /// The message of the first turn that is to go.
    fn first_message_behind(&self, n_kept: usize, messages: &[(String, String)]) -> Option<String> {
        let mut rest = messages.iter();
        let mut found = None;
        for turn in self.trees.chat.turns.iter().take(n_kept + 1) {
            found = Some(rest.find(|it| says(turn, it))?);
        }
        found.map(|it| it.0.clone())
    }
}

/// Turns of the history have their message's id; of others the text is known.
fn says(turn: &Turn, (id, text): &(String, String)) -> bool {
    let plain = |it: &str| it.split_whitespace().collect::<String>();
    turn.id == *id || plain(text).starts_with(&plain(&command_of(&turn.message.text)))
}
