//! Text chunks of messages and thoughts: the hot path, so only their text is encoded.

use crate::acp::initialize::AcpVersion;
use castor_base::ids::{MessageId, SessionId};

/// Which of them a chunk belongs to.
#[derive(Clone, Copy, Debug)]
pub(in crate::acp) enum ChunkKind {
    Message,
    Thought,
}

/// All of a chunk's line but its text and its message, written once for each session.
#[derive(Debug)]
pub(in crate::acp) struct TextChunks {
    version: AcpVersion,
    message: Vec<u8>,
    thought: Vec<u8>,
}

impl TextChunks {
    pub fn new(session: &SessionId, version: AcpVersion) -> Self {
        let head = |kind: &str| {
            let next = match version {
                AcpVersion::V1 => BEFORE_TEXT,
                AcpVersion::V2 => "\"messageId\":\"",
            };
            // Session ids are checked to need no escaping.
            format!(
                "{{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{{\"sessionId\":\"{session}\",\
                 \"update\":{{\"sessionUpdate\":\"{kind}\",{next}"
            )
            .into_bytes()
        };
        Self { version, message: head("agent_message_chunk"), thought: head("agent_thought_chunk") }
    }

    /// One line for each live chunk; `cuts`: where they end, in bytes.
    pub fn write(&self, kind: ChunkKind, id: &MessageId, text: &str, cuts: &[u32], lines: &mut Vec<u8>) {
        let mut start = 0;
        let whole = [text.len() as u32];
        let cuts = if cuts.is_empty() { &whole[..] } else { cuts };
        for &end in cuts {
            let piece = text.get(start..end as usize).unwrap_or_default();
            start = end as usize;
            if !piece.is_empty() {
                self.write_one(kind, id, piece, lines);
            }
        }
    }

    fn write_one(&self, kind: ChunkKind, id: &MessageId, text: &str, lines: &mut Vec<u8>) {
        lines.extend_from_slice(match kind {
            ChunkKind::Message => &self.message,
            ChunkKind::Thought => &self.thought,
        });
        // Our own ids need no escaping.
        let id = id.as_str().as_bytes();
        match self.version {
            AcpVersion::V1 => {
                // Writing to a Vec cannot fail.
                _ = serde_json::to_writer(&mut *lines, text);
                lines.extend_from_slice(b"},\"messageId\":\"");
                lines.extend_from_slice(id);
                lines.extend_from_slice(b"\"}}}\n");
            }
            AcpVersion::V2 => {
                lines.extend_from_slice(id);
                lines.extend_from_slice(b"\",");
                lines.extend_from_slice(BEFORE_TEXT.as_bytes());
                _ = serde_json::to_writer(&mut *lines, text);
                lines.extend_from_slice(b"}}}}\n");
            }
        }
    }
}

const BEFORE_TEXT: &str = "\"content\":{\"type\":\"text\",\"text\":";

#[cfg(test)]
mod tests {
    use agent_client_protocol_schema::{v1, v2};
    use serde::Serialize;

    use super::{ChunkKind, TextChunks};
    use crate::acp::{content::text_block, initialize::AcpVersion, updates::notification};
    use castor_base::ids::{MessageId, SessionId};

    fn check(version: AcpVersion, kind: ChunkKind, text: &str, expected: &impl Serialize) {
        let mut actual = Vec::new();
        TextChunks::new(&SessionId::from("id1"), version).write(kind, &MessageId::from("m1"), text, &[], &mut actual);
        let mut typed = Vec::new();
        notification("session/update", expected, &mut typed);
        assert_eq!(String::from_utf8(actual).unwrap(), String::from_utf8(typed).unwrap());
    }

    /// The shortcut writes what the official types would, in both versions.
    #[test]
    fn text_chunks_equal_the_typed_form() {
        for text in ["plain", "quo\"te \\ \n\u{1} ñ 🦫 \u{2028}"] {
            let old = || v1::ContentChunk::new(text_block(text)).message_id("m1");
            let new = || v2::ContentChunk::new(v2::ContentBlock::Text(v2::TextContent::new(text)), "m1");
            let (message, thought) =
                (v1::SessionUpdate::AgentMessageChunk(old()), v1::SessionUpdate::AgentThoughtChunk(old()));
            check(AcpVersion::V1, ChunkKind::Message, text, &v1::SessionNotification::new("id1", message));
            check(AcpVersion::V1, ChunkKind::Thought, text, &v1::SessionNotification::new("id1", thought));
            let (message, thought) =
                (v2::SessionUpdate::AgentMessageChunk(new()), v2::SessionUpdate::AgentThoughtChunk(new()));
            check(AcpVersion::V2, ChunkKind::Message, text, &v2::UpdateSessionNotification::new("id1", message));
            check(AcpVersion::V2, ChunkKind::Thought, text, &v2::UpdateSessionNotification::new("id1", thought));
        }
    }

    #[test]
    fn each_live_chunk_is_a_line() {
        let mut lines = Vec::new();
        let chunks = TextChunks::new(&SessionId::from("id1"), AcpVersion::V2);
        chunks.write(ChunkKind::Message, &MessageId::from("m1"), "abc", &[1, 1, 3], &mut lines);
        assert_eq!(lines.iter().filter(|it| **it == b'\n').count(), 2);
    }
}
