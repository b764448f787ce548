//! Messages of version 2: chunks while they come, whole messages in a replay.

use agent_client_protocol_schema::{
    MaybeUndefined,
    v2::{AgentMessage, AgentThought, ContentBlock, ContentChunk, SessionUpdate, UserMessage},
};
use serde_json::Value;

use super::{same_json, text_block, updates::push_one};
use crate::acp::{
    content,
    update::text_chunks::ChunkKind,
    updates::{Playback, SessionView},
};
use castor_base::{
    content::{Part, joined_text},
    event::{AgentEvent, DISCARDS, EXPANSION, EventKind, Speaker},
    ids::MessageId,
};

impl SessionView {
    /// Appends what version 2 says of messages. Whether there is nothing else to be said of the event.
    pub(in crate::acp) fn show_event_v2(&mut self, event: &AgentEvent, way: Playback, lines: &mut Vec<u8>) -> bool {
        let EventKind::Message { role, message_id: id, content, cuts } = &event.kind else {
            self.clear_discarded(event, lines);
            return false;
        };
        match (role, way) {
            (Speaker::User, _) => {
                let message = UserMessage::new(id.as_str()).content(blocks(content));
                push_one(&self.session, SessionUpdate::UserMessage(message), lines);
            }
            (Speaker::Developer, Playback::Live) if event.meta.contains_key(EXPANSION) => (),
            (Speaker::Developer, Playback::Live) => self.notice(id.as_str(), &joined_text(content), None, lines),
            // It was of its moment.
            (Speaker::Developer, Playback::Replay) => (),
            (Speaker::Agent, Playback::Live) => content.iter().for_each(|it| self.live_part(id, it, cuts, lines)),
            (Speaker::Agent, Playback::Replay) => content.iter().for_each(|it| self.past_part(id, it, lines)),
        }
        true
    }

    fn live_part(&self, id: &MessageId, part: &Part, cuts: &[u32], lines: &mut Vec<u8>) {
        match part {
            Part::Text { text, .. } => self.chunks.write(ChunkKind::Message, id, text, cuts, lines),
            Part::Thought { thought, .. } => self.chunks.write(ChunkKind::Thought, id, thought, cuts, lines),
            other => push_one(&self.session, chunk(id, other), lines),
        }
    }

    /// The first part replaces what the client may have of the message: whoever replays twice has it once.
    fn past_part(&mut self, id: &MessageId, part: &Part, lines: &mut Vec<u8>) {
        let is_first = self.replayed.replace(id.clone()).as_ref() != Some(id);
        let update = match part {
            _ if !is_first => chunk(id, part),
            Part::Thought { .. } => {
                SessionUpdate::AgentThought(AgentThought::new(id.as_str()).content(blocks(std::slice::from_ref(part))))
            }
            _ => {
                SessionUpdate::AgentMessage(AgentMessage::new(id.as_str()).content(blocks(std::slice::from_ref(part))))
            }
        };
        push_one(&self.session, update, lines);
    }

    /// An answer broke off: its messages do not count any more.
    fn clear_discarded(&self, event: &AgentEvent, lines: &mut Vec<u8>) {
        let ids = event.meta.get(DISCARDS).and_then(Value::as_array).into_iter().flatten();
        for id in ids.filter_map(Value::as_str) {
            let message = AgentMessage::new(id.to_owned()).content(MaybeUndefined::Null);
            push_one(&self.session, SessionUpdate::AgentMessage(message), lines);
        }
    }
}

fn chunk(id: &MessageId, part: &Part) -> SessionUpdate {
    let is_thought = matches!(part, Part::Thought { .. });
    let chunk = |block| ContentChunk::new(block, id.as_str());
    let block = block(part);
    if is_thought {
        SessionUpdate::AgentThoughtChunk(chunk(block))
    } else {
        SessionUpdate::AgentMessageChunk(chunk(block))
    }
}

fn blocks(parts: &[Part]) -> Vec<ContentBlock> {
    parts.iter().map(block).collect()
}

fn block(part: &Part) -> ContentBlock {
    // Both versions have the same five blocks.
    same_json(&content::block(part)).unwrap_or_else(|| text_block(""))
}
