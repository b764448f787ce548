//! The latest actions of the host, each with the next number: a client that comes back gets those that it missed.

use std::collections::VecDeque;

use ahp::ahp_types::actions::{ActionEnvelope, ActionOrigin, StateAction};
use serde_json::value::RawValue;

use super::channel::Channel;

/// Numbers of a host begin above those of all hosts before it, unless one of these made more actions than that a
/// millisecond: a client of such a host then gets snapshots, and no actions of another.
const A_MILLISECOND: u64 = 1_000;
/// Bytes of actions that are kept.
const KEPT: usize = 4 << 20;

/// An action with its number, and the channel that it belongs to.
pub type NumberedAction = (Channel, Box<RawValue>);

pub struct ActionLog {
    last: u64,
    kept: VecDeque<(u64, NumberedAction)>,
    bytes: usize,
    /// The number of the last action that is not kept.
    gone: u64,
}

impl ActionLog {
    pub fn new(now_ms: u64) -> Self {
        let last = now_ms.saturating_mul(A_MILLISECOND);
        Self { last, kept: VecDeque::new(), bytes: 0, gone: last }
    }

    pub fn last(&self) -> u64 {
        self.last
    }

    pub fn envelope(&mut self, channel: Channel, action: StateAction, origin: Option<ActionOrigin>) -> NumberedAction {
        self.last += 1;
        let uri = channel.uri();
        let envelope = ActionEnvelope { channel: uri, action, server_seq: self.last, origin, rejection_reason: None };
        let text = serde_json::value::to_raw_value(&envelope).unwrap_or_else(|_| RawValue::NULL.to_owned());
        self.bytes += text.get().len();
        self.kept.push_back((self.last, (channel.clone(), text.clone())));
        while self.bytes > KEPT {
            let Some((number, (_, text))) = self.kept.pop_front() else { break };
            self.bytes -= text.get().len();
            self.gone = number;
        }
        (channel, text)
    }

    /// What a client gets back whose action was not accepted. It has a number, and nobody else gets it.
    pub fn rejection(&mut self, channel: &str, action: StateAction, origin: ActionOrigin, why: &str) -> ActionEnvelope {
        let origin = Some(origin);
        let rejection_reason = Some(why.to_owned());
        ActionEnvelope { channel: channel.to_owned(), action, server_seq: self.last, origin, rejection_reason }
    }

    /// The actions behind a number; `None`: some of them are gone, or the number is of another host.
    pub fn after(&self, number: u64) -> Option<impl Iterator<Item = &NumberedAction>> {
        let is_here = (self.gone..=self.last).contains(&number);
        is_here.then(|| self.kept.iter().filter(move |it| it.0 > number).map(|it| &it.1))
    }
}

#[cfg(test)]
mod tests {
    use ahp::ahp_types::actions::{SessionTitleChangedAction, StateAction};

    use super::{ActionLog, Channel, KEPT};

    fn push(it: &mut ActionLog, length: usize) {
        let action = SessionTitleChangedAction { title: "x".repeat(length) };
        it.envelope(Channel::Session("s".into()), StateAction::SessionTitleChanged(action), None);
    }

    #[test]
    fn what_is_kept_is_replayed_and_a_gap_is_known() {
        let mut it = ActionLog::new(5);
        let first = it.last();
        (0..3).for_each(|_| push(&mut it, 1));
        assert_eq!(it.last(), first + 3);
        assert_eq!(it.after(first + 1).unwrap().count(), 2);
        assert_eq!(it.after(first + 3).unwrap().count(), 0);
        assert!(it.after(first - 1).is_none() && it.after(first + 4).is_none(), "numbers of another host");
        push(&mut it, KEPT);
        assert!(it.after(first + 3).is_none() && it.after(first + 4).is_some());
    }
}
