//! What breaks a promise on purpose: a simulator that cannot fail shows nothing.

use std::{fs, path::Path};

use castor_base::ids::SessionId;
use tokio_util::sync::CancellationToken;

use super::{watch::Watch, world::Task};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// An answer leaves twice.
    AnswerTwice,
    /// An answer never leaves.
    LoseAnswer,
    /// The end of a tool call is told twice.
    EndCallTwice,
    /// What a cancel leads to is said a second later.
    CancelLate,
    /// A task is not told that nobody wants it.
    LeakTask,
    /// A fact is missing in a log.
    ForgetFact,
    /// A message that is not in the protocol.
    SaySomethingElse,
    /// The end of a sub-agent is told twice.
    EndChildTwice,
    /// The end of a sub-agent is never told.
    LoseChildEnd,
    /// The beginning of a turn is told twice, which version 1 does not tell at all.
    BeginTurnTwice,
    /// Models are asked whatever was used up.
    Overspend,
}

/// Breaks something once.
pub struct Sabotage {
    how: How,
    done: bool,
    kept: Vec<Vec<u8>>,
    since_ms: u64,
}

impl Sabotage {
    pub fn new(how: How) -> Self {
        Self { how, done: false, kept: Vec::new(), since_ms: 0 }
    }

    /// On their way to the client.
    pub fn lines(&mut self, lines: &mut Vec<Vec<u8>>, watch: &Watch, now_ms: u64) {
        if self.how == How::CancelLate {
            return self.hold_back(lines, watch, now_ms);
        }
        let wanted: &[u8] = match self.how {
            How::AnswerTwice | How::LoseAnswer => b"\"stopReason\"",
            How::EndCallTwice => b"\"status\":\"completed\"",
            How::SaySomethingElse => b"\"agent_message_chunk\"",
            How::EndChildTwice | How::LoseChildEnd => b"\"state\":\"idle\"",
            How::BeginTurnTwice => b"\"sessionUpdate\":\"state_update\",\"state\":\"running\"",
            How::CancelLate | How::LeakTask | How::ForgetFact | How::Overspend => return,
        };
        let found = lines.iter().position(|it| it.windows(wanted.len()).any(|it| it == wanted));
        let Some(at) = found.filter(|_| !self.done) else { return };
        self.done = true;
        match self.how {
            How::LoseAnswer | How::LoseChildEnd => _ = lines.remove(at),
            How::SaySomethingElse => {
                let text = String::from_utf8_lossy(&lines[at]).replace("agent_message_chunk", "agent_shout");
                lines[at] = text.into_bytes();
            }
            _ => lines.insert(at, lines[at].clone()),
        }
    }

    fn hold_back(&mut self, lines: &mut Vec<Vec<u8>>, watch: &Watch, now_ms: u64) {
        let cancelled = watch.open.iter().any(|it| it.due_ms.is_some());
        if cancelled && !self.done {
            (self.done, self.since_ms) = (true, now_ms);
        }
        self.kept.append(lines);
        if now_ms >= self.since_ms + 1_000 || self.since_ms == 0 {
            self.since_ms = 0;
            lines.append(&mut self.kept);
        }
    }

    /// Who begins to ask a model.
    pub fn requests<'a>(&self, begun: &mut Vec<SessionId>, all: impl Iterator<Item = &'a SessionId>) {
        if self.how == How::Overspend {
            begun.extend(all.cloned());
        }
    }

    pub fn tasks(&mut self, tasks: &mut [Task]) {
        if let Some(task) = tasks.last_mut().filter(|_| self.how == How::LeakTask && !self.done) {
            task.cancel = CancellationToken::new();
        }
    }

    pub fn log(&mut self, log: &Path) {
        if self.how == How::ForgetFact && !self.done {
            let text = fs::read_to_string(log).unwrap();
            let mut lines: Vec<&str> = text.lines().collect();
            // Not every fact makes a difference to the session; what was said does.
            if let Some(at) = lines.iter().position(|it| it.contains(r#""type":"message""#)) {
                self.done = true;
                lines.remove(at);
                fs::write(log, lines.join("\n") + "\n").unwrap();
            }
        }
    }
}
