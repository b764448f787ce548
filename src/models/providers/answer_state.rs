//! The state of an answer that a decoder reads: its counts, its end, and halves of characters.

use super::text_events::{TextChunk, TextEvent};
use castor_base::model::{Chunk, Finish, Usage};
use castor_wire::json_text::{HalfJoiner, has_halves};

#[derive(Debug, Default)]
pub struct AnswerState {
    /// As far as it is known. Passed on with the end.
    pub usage: Option<Usage>,
    /// The model said that it is done.
    pub finished: bool,
    /// The server said that nothing more comes.
    pub is_over: bool,
    /// The counts of the whole answer came, as the last that it had to say.
    pub is_counted: bool,
    told: Option<Usage>,
    last_text: Option<TextEvent>,
    /// Of an answer that a server cut within characters.
    halves: Option<Box<Halves>>,
}

#[derive(Debug, Default)]
struct Halves {
    text: HalfJoiner,
    thought: HalfJoiner,
}

impl AnswerState {
    /// A chunk of this text. `event`: its event, if nothing else in it counts; the next one like it needs no parsing.
    pub fn text(&mut self, event: Option<&str>, text: &str, chunk: TextChunk) -> Option<Chunk> {
        self.last_text = event.and_then(|it| TextEvent::new(it.as_bytes(), text, chunk));
        chunk(text.to_owned())
    }

    /// The chunk of an event that needs no parsing.
    pub fn text_again(&self, data: &[u8]) -> Option<Chunk> {
        self.last_text.as_ref().filter(|_| !self.finished)?.again(data)
    }

    pub fn finish(&mut self, why: Finish, out: &mut Vec<Chunk>) {
        self.finished = true;
        self.last_text = None;
        self.tell_usage(out);
        out.push(Chunk::Finish(why));
    }

    /// Another answer follows the one that ended.
    pub fn begin_again(&mut self) {
        *self = Self { halves: self.halves.take(), ..Self::default() };
    }

    /// Where it is not told yet.
    pub fn tell_usage(&mut self, out: &mut Vec<Chunk>) {
        if self.usage != self.told {
            self.told = self.usage;
            out.extend(self.usage.map(Chunk::Usage));
        }
    }

    /// From now on texts may have halves of characters.
    pub fn expect_halves(&mut self) {
        self.last_text = None;
        self.halves.get_or_insert_default();
    }

    /// Joins halves in the chunks from `begin` on with those of earlier ones.
    pub fn join_halves(&mut self, out: &mut Vec<Chunk>, begin: usize) {
        if self.halves.is_none() {
            return;
        }
        for mut chunk in out.split_off(begin.min(out.len())) {
            match &mut chunk {
                Chunk::Text { text, signature } => self.join_piece(false, text, signature),
                Chunk::Thought { text, signature } => self.join_piece(true, text, signature),
                Chunk::Call { args, .. } => {
                    self.end_halves(out);
                    join_value(args);
                }
                Chunk::Finish(_) => self.end_halves(out),
                _ => (),
            }
            if !is_empty(&chunk) {
                out.push(chunk);
            }
        }
    }

    fn join_piece(&mut self, is_thought: bool, text: &mut String, signature: &mut Option<std::sync::Arc<str>>) {
        let Some(halves) = &mut self.halves else { return };
        let joiner = if is_thought { &mut halves.thought } else { &mut halves.text };
        *text = joiner.push(text);
        if let Some(it) = signature.as_ref().filter(|it| has_halves(it)) {
            *signature = Some(HalfJoiner::join(it).into());
        }
    }

    /// Halves that nothing followed.
    pub fn end_halves(&mut self, out: &mut Vec<Chunk>) {
        let Some(halves) = &mut self.halves else { return };
        let (text, thought) = (halves.text.finish(), halves.thought.finish());
        out.extend(thought.map(|it| Chunk::Thought { text: it.into(), signature: None }));
        out.extend(text.map(|it| Chunk::Text { text: it.into(), signature: None }));
    }
}

fn is_empty(chunk: &Chunk) -> bool {
    matches!(chunk, Chunk::Text { text, signature: None } | Chunk::Thought { text, signature: None } if text.is_empty())
}

fn join_value(value: &mut serde_json::Value) {
    use serde_json::Value;
    match value {
        Value::String(it) if has_halves(it) => *it = HalfJoiner::join(it),
        Value::Array(items) => items.iter_mut().for_each(join_value),
        Value::Object(map) => map.values_mut().for_each(join_value),
        _ => (),
    }
}
