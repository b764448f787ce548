//! The reader of one answer's events. What all dialects have alike is read here: ends, sentinels, and halves of characters.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::providers::{answer_state::AnswerState, error_body, lenient::Str};
use castor_base::model::{Chunk, Failure, Finish};
use castor_wire::json_text;

/// Data of events that only keep a connection open.
const KEEP_ALIVE: &[&str] = &["null", "ping", "keepalive", "keep-alive", "heartbeat"];

/// Reads the events of one answer, in one dialect.
pub trait Decode: Send {
    fn state(&mut self) -> &mut AnswerState;

    /// Appends the chunks of one object: an event of a stream, or a whole answer.
    ///
    /// # Errors
    /// `Garbage` when it is neither, and nothing has changed then; what the server says went wrong where it says so.
    fn read(&mut self, data: &str, out: &mut Vec<Chunk>) -> Result<(), Failure>;

    /// The type of the event that begins an answer, where there is such a one. Behind an end it begins another answer,
    /// as servers send them that run tools of their own.
    fn first_event(&self) -> Option<&'static str> {
        None
    }

    /// Forgets what it has of the answer that ended.
    fn begin_again(&mut self) {}

    /// Passes on calls whose own end did not come, if all of them are whole.
    fn end_calls(&mut self, _out: &mut Vec<Chunk>) -> bool {
        true
    }

    /// As [`Self::read`], of any event's data.
    ///
    /// # Errors
    /// As [`Self::read`].
    fn event(&mut self, data: &[u8], out: &mut Vec<Chunk>) -> Result<(), Failure> {
        let data = data.trim_ascii();
        if let Some(it) = self.state().text_again(data) {
            out.push(it);
            return Ok(());
        }
        read_event(self, data, out)
    }

    /// Tells whether the answer is complete. More may still come.
    fn is_finished(&mut self) -> bool {
        self.state().finished
    }

    /// Appends what is held back, once nothing more will come. `is_clean`: the connection ended as it should.
    fn end(&mut self, is_clean: bool, out: &mut Vec<Chunk>) {
        if is_clean && self.state().is_counted {
            stop(self, out);
        }
        self.state().end_halves(out);
        self.state().tell_usage(out);
    }
}

fn read_event<D: Decode + ?Sized>(decoder: &mut D, data: &[u8], out: &mut Vec<Chunk>) -> Result<(), Failure> {
    let is_keep_alive = || KEEP_ALIVE.iter().any(|it| data.eq_ignore_ascii_case(it.as_bytes()));
    if decoder.state().finished && begins_answer(decoder, data) {
        decoder.begin_again();
        decoder.state().begin_again();
    }
    if data.is_empty() || decoder.state().is_over || is_keep_alive() {
        return Ok(());
    }
    if data == b"[DONE]" {
        decoder.state().is_over = true;
        stop(decoder, out);
        return Ok(());
    }
    let text = json_text::mark_halves(data);
    if matches!(text, Cow::Owned(_)) {
        decoder.state().expect_halves();
    }
    if text.starts_with('[')
        && let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(&text)
    {
        return items.iter().try_for_each(|it| read_object(decoder, it.get(), out));
    }
    read_object(decoder, &text, out)
}

fn begins_answer<D: Decode + ?Sized>(decoder: &D, data: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Typed<'a> {
        #[serde(rename = "type", borrow, default)]
        kind: Str<'a>,
    }
    let typed = |first| serde_json::from_slice(data).is_ok_and(|it: Typed<'_>| it.kind.0 == first);
    decoder.first_event().is_some_and(typed)
}

fn read_object<D: Decode + ?Sized>(decoder: &mut D, data: &str, out: &mut Vec<Chunk>) -> Result<(), Failure> {
    if decoder.state().finished {
        read_late(decoder, data, out);
        return Ok(());
    }
    let begin = out.len();
    decoder.read(data, out)?;
    decoder.state().join_halves(out, begin);
    if decoder.state().is_over {
        stop(decoder, out);
    }
    Ok(())
}

/// What follows an end is counted, but is no part of the answer. Old models of Gemini end their answer with each event.
fn read_late<D: Decode + ?Sized>(decoder: &mut D, data: &str, out: &mut Vec<Chunk>) {
    let (mut late, begin) = (Vec::new(), out.len());
    let is_read = decoder.read(data, &mut late).is_ok();
    if is_read && late.iter().any(|it| matches!(it, Chunk::Finish(_))) {
        out.append(&mut late);
        decoder.state().join_halves(out, begin);
    }
}

/// The end of an answer whose model did not say why it stopped. A call that was cut off leaves it open.
fn stop<D: Decode + ?Sized>(decoder: &mut D, out: &mut Vec<Chunk>) {
    let begin = out.len();
    if !decoder.state().finished && decoder.end_calls(out) {
        decoder.state().finish(Finish::Stop, out);
        decoder.state().join_halves(out, begin);
    }
}

/// The failure of an event that its server calls an error, whatever is in it.
pub fn named_error(data: &[u8], read: Result<(), Failure>) -> Failure {
    use castor_base::model::FailureKind::Garbage;
    match read {
        Err(failure) if failure.kind != Garbage => failure,
        _ => error_body::from_stream(&json_text::readable(data)),
    }
}
