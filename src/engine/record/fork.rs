//! Session forks: a copy of a log up to a message, as the start of another session.

use serde_json::Map;

use super::{
    Record,
    title::{fork_title, title_entry},
};
use castor_base::{
    event::{AgentEvent, EventKind},
    ids::{MessageId, SessionId},
    log::{self, Entry, Fact},
};

/// The session that a copy becomes.
#[derive(Clone, Debug)]
pub struct Fork {
    pub session: SessionId,
    /// The last message of the copy; `None`: all of the log.
    pub until: Option<MessageId>,
    /// Milliseconds since the Unix epoch.
    pub now_ms: u64,
}

impl Fork {
    /// The log of the new session; `None`: the parent's has no such message, or is none. A message that a rewind took away
    /// is there again in a copy that ends with it.
    pub fn copy_log(self, parent: &[Entry]) -> Option<Vec<Entry>> {
        let whole = Record::replay(parent)?;
        let end = match &self.until {
            None => parent.len(),
            Some(id) => {
                let at = parent.iter().rposition(|it| message(it) == Some(id))? + 1;
                at + parent.iter().skip(at).take_while(|it| belongs_to_message(it)).count()
            }
        };
        let mut res: Vec<Entry> = parent.get(..end)?.to_vec();
        // What was held for the parent is the parent's to give back, and the copy has one version.
        res.retain(|it| !matches!(it.fact, Fact::Checkpoint { .. } | Fact::Restored { .. } | Fact::Version { .. }));
        let copy = Record::replay(&res)?;
        let title = copy.title.as_deref().or(whole.title.as_deref()).map(fork_title);
        res.iter_mut().for_each(|it| self.set_session(it, title.as_deref()));
        if let (None, Some(title)) = (&copy.title, title) {
            res.push(title_entry(&copy, &title, Map::new(), self.now_ms));
        }
        Some(res)
    }

    /// What names the parent names the child.
    fn set_session(&self, entry: &mut Entry, marked: Option<&str>) {
        match &mut entry.fact {
            Fact::Created { version, castor, session, parent, .. } => {
                (*version, *castor) = (log::VERSION, env!("CARGO_PKG_VERSION").to_owned());
                *parent = Some(std::mem::replace(session, self.session.clone()));
            }
            Fact::Event { event: AgentEvent { kind, .. } } => match kind {
                EventKind::Initialize { session_id, .. } => session_id.clone_from(&self.session),
                EventKind::SessionUpdate { title: Some(title), .. } => {
                    marked.into_iter().for_each(|it| it.clone_into(title));
                }
                _ => (),
            },
            _ => (),
        }
    }
}

fn message(entry: &Entry) -> Option<&MessageId> {
    let Fact::Event { event } = &entry.fact else { return None };
    match &event.kind {
        EventKind::Message { message_id, .. } => Some(message_id),
        _ => None,
    }
}

/// What comes after a message and says something of it: what it took, and that it was the last of its turn.
fn belongs_to_message(entry: &Entry) -> bool {
    match &entry.fact {
        Fact::Worked { .. } | Fact::State { .. } => true,
        Fact::Event { event } => {
            matches!(event.kind, EventKind::Usage { .. } | EventKind::SessionUpdate { .. } | EventKind::AgentEnd { .. })
        }
        _ => false,
    }
}
