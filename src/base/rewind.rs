//! Rewinds in a log: the prompts that one can go back to, and the entries that a rewind removes.

use crate::{
    event::{EventKind, Speaker},
    ids::MessageId,
    log::{Entry, Fact},
};

/// One rewind, by the places in the log of what it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rewind {
    /// The user's message that was taken away, with all after it.
    pub from: usize,
    /// The rewind itself.
    pub at: usize,
}

/// The message of the user that this entry is.
pub fn user_message(entry: &Entry) -> Option<&MessageId> {
    let Fact::Event { event } = &entry.fact else { return None };
    match &event.kind {
        EventKind::Message { role: Speaker::User, message_id, .. } => Some(message_id),
        _ => None,
    }
}

/// The rewinds of a log: a fold over its facts. A rewind to a message that is not there does nothing.
#[derive(Debug, Default)]
pub struct RewindScan {
    n: usize,
    /// In order.
    pub rewinds: Vec<Rewind>,
    /// The messages of the user that remain.
    prompts: Vec<(usize, MessageId)>,
}

impl RewindScan {
    pub fn take(&mut self, entry: &Entry) {
        let at = self.n;
        self.n += 1;
        if let Some(id) = user_message(entry) {
            self.prompts.push((at, id.clone()));
        }
        let Fact::Rewound { to } = &entry.fact else { return };
        let Some(nth) = self.prompts.iter().rposition(|(_, it)| it == to) else { return };
        let gone = self.prompts.split_off(nth);
        self.rewinds.extend(gone.first().map(|(from, _)| Rewind { from: *from, at }));
    }
}

/// All rewinds of a log, in order.
pub fn rewinds(entries: &[Entry]) -> Vec<Rewind> {
    scan(entries).rewinds
}

/// Where the user's message stands; `None`: there is none of that id, or it was taken away.
pub fn find_message(entries: &[Entry], id: &MessageId) -> Option<usize> {
    scan(entries).prompts.into_iter().rev().find(|(_, it)| it == id).map(|(at, _)| at)
}

/// For each entry whether a rewind took it away from the conversation.
pub fn removed_entries(entries: &[Entry]) -> Vec<bool> {
    let mut res = vec![false; entries.len()];
    for Rewind { from, at } in rewinds(entries) {
        res.iter_mut().take(at).skip(from).for_each(|it| *it = true);
    }
    res
}

/// The entries that no rewind took away.
pub fn remaining_entries(entries: &[Entry]) -> impl Iterator<Item = &Entry> {
    entries.iter().zip(removed_entries(entries)).filter(|(_, away)| !away).map(|(it, _)| it)
}

fn scan(entries: &[Entry]) -> RewindScan {
    let mut res = RewindScan::default();
    entries.iter().for_each(|it| res.take(it));
    res
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Rewind, find_message, removed_entries, rewinds};
    use crate::{ids::MessageId, log::Entry};

    /// `1` is the prompt m1, `<1` a rewind to it, anything else another fact.
    fn log(words: &str) -> Vec<Entry> {
        let entry = |word: &str| match (word.strip_prefix('<'), word.parse::<u32>()) {
            (Some(to), _) => json!({"at": 0, "fact": "rewound", "to": format!("m{to}")}),
            (None, Ok(n)) => json!({"at": 0, "fact": "event", "event": {"id": "e", "streamId": "s", "timestamp": 0,
                "type": "message", "role": "user", "messageId": format!("m{n}"), "content": []}}),
            (None, Err(_)) => json!({"at": 0, "fact": "worked", "ms": 1}),
        };
        words.split(' ').map(|it| serde_json::from_value(entry(it)).unwrap()).collect()
    }

    fn check(words: &str, expected: &str) {
        let away: String = removed_entries(&log(words)).iter().map(|it| if *it { '-' } else { '+' }).collect();
        assert_eq!(away, expected, "{words}");
    }

    #[test]
    fn a_rewind_takes_its_message_and_all_after_it() {
        check("x 1 x 2 x", "+++++");
        check("x 1 x 2 x <2 x", "+++--++");
        check("x 1 x 2 x <1", "+----+");
        check("1 2 <2 3 <1 4", "----++");
        check("1 2 <2 <1", "---+");
        check("1 <7 x", "+++");
        check("1 2 <2 <2 x", "+-+++");
        check("1 2 <2 2 x", "+-+++");
    }

    #[test]
    fn what_was_taken_away_is_not_there() {
        let (log, id) = (log("1 2 <2 3"), |it: &str| MessageId::from(it));
        assert_eq!(["m1", "m2", "m3", "m4"].map(|it| find_message(&log, &id(it))), [Some(0), None, Some(3), None]);
        assert_eq!(rewinds(&log), [Rewind { from: 1, at: 2 }]);
    }
}
