//! Truncation of a conversation: by a client of the host, and by other clients of the agent.

use ahp::ahp_types::{
    actions::{ChatTruncatedAction, StateAction},
    state::Turn,
};

use super::{SessionDesk, TreeAction, Trees, messages::command_of, turn_progress::UserWords};
use crate::ahp::clients::hub_requests::WantedCut;
use crate::ahp::{HubOutcome, Next};
use castor_wire::acp::client::AgentRequest;

/// A client cuts the conversation behind a turn. The agent knows messages, so these are read first.
pub fn truncate(desk: &mut SessionDesk<'_>, from: u64, turn: Option<&str>, act: TreeAction) {
    if desk.hosted.is_busy() || desk.hosted.turn.user_messages.is_some() {
        return desk.reject(from, act, "a turn runs; cancel it first");
    }
    let turns = &desk.hosted.trees.chat.turns;
    let n_kept = match turn {
        Some(id) => turns.iter().position(|it| it.id == *id).map(|it| it + 1),
        None => Some(0),
    };
    let Some(n_kept) = n_kept else { return desk.reject(from, act, "the chat has no such turn") };
    if n_kept == turns.len() {
        return desk.emit([act]);
    }
    read_history(desk, Next::FindCut(Box::new(WantedCut { from, act, n_kept })));
}

fn read_history(desk: &mut SessionDesk<'_>, next: Next) {
    desk.hosted.turn.user_messages = Some(Vec::new());
    let id = desk.hosted.id.as_str();
    desk.clients.ask(id, next, &AgentRequest::Attach { session_id: id, history: true });
}

pub fn follow_find_cut(desk: &mut SessionDesk<'_>, cut: WantedCut, outcome: HubOutcome) {
    let messages = desk.hosted.turn.user_messages.take().unwrap_or_default();
    let WantedCut { from, act, n_kept } = cut;
    if let Err(it) = outcome {
        return desk.reject(from, act, &it.message);
    }
    let Some(message) = desk.hosted.trees.first_message_behind(n_kept, &messages) else {
        return desk.reject(from, act, "the agent has no such message any more");
    };
    let id = desk.hosted.id.as_str();
    desk.clients.ask(id, Next::apply(from, act), &AgentRequest::rewind_talk(id, &message));
}

/// The conversation was cut by another client, or by a command. The host's own cuts are told in this way too: to
/// read it once more does no harm.
pub fn note_rewound(desk: &mut SessionDesk<'_>) {
    desk.hosted.turn.is_stale = true;
    if !desk.hosted.is_busy() {
        read_history_anew(desk);
    }
}

pub fn read_history_anew(desk: &mut SessionDesk<'_>) {
    desk.hosted.turn.is_stale = false;
    if desk.hosted.turn.user_messages.is_none() {
        read_history(desk, Next::ReadAnew);
    }
}

/// Turns of which the message is gone are gone.
pub fn follow_read_anew(desk: &mut SessionDesk<'_>, outcome: &HubOutcome) {
    let messages = desk.hosted.turn.user_messages.take().unwrap_or_default();
    if outcome.is_err() || desk.hosted.trees.active_turn().is_some() {
        return;
    }
    let n_kept = desk.hosted.trees.n_turns_in(&messages);
    let turns = &desk.hosted.trees.chat.turns;
    if n_kept == turns.len() {
        return;
    }
    let turn_id = n_kept.checked_sub(1).and_then(|it| turns.get(it)).map(|it| it.id.clone());
    desk.emit([TreeAction::chat(StateAction::ChatTruncated(ChatTruncatedAction { turn_id }))]);
}

impl Trees {
    /// How many of the turns, from the first on, have their message in the history. Words for a running turn are
    /// messages there, too, and no turns: they are passed over.
    fn n_turns_in(&self, messages: &[UserWords]) -> usize {
        let mut rest = messages.iter();
        self.chat.turns.iter().take_while(|turn| rest.any(|it| says(turn, it))).count()
    }

    /// The message of the first turn that is to go.
    fn first_message_behind(&self, n_kept: usize, messages: &[UserWords]) -> Option<String> {
        let mut rest = messages.iter();
        let mut found = None;
        for turn in self.chat.turns.iter().take(n_kept + 1) {
            found = Some(rest.find(|it| says(turn, it))?);
        }
        found.map(|it| it.message.clone())
    }
}

/// Whether a turn began with such words. Turns of the history have their message's id; of others the text is known.
fn says(turn: &Turn, words: &UserWords) -> bool {
    let plain = |it: &str| it.split_whitespace().collect::<String>();
    turn.id == words.message || plain(&words.text).starts_with(&plain(&command_of(&turn.message.text)))
}
