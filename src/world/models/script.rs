//! The scripted model: answers from a file of responses, one JSON object a line, and no network.

use std::{
    collections::HashSet,
    sync::atomic::{AtomicUsize, Ordering},
};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Generator, Sink, gemini};
use crate::base::{
    fs::BoxFuture,
    history::{Role, Turn, TurnPart},
    model::{Failure, FailureKind, ModelRequest},
};

/// The method of the lines that answer a streaming request.
pub const STREAM: &str = "generateContentStream";

/// A file of responses and the position in it, which all sessions of the process share.
#[derive(Debug)]
pub struct Script {
    lines: Vec<Line>,
    next: AtomicUsize,
}

#[derive(Debug, Deserialize)]
struct Line {
    method: String,
    response: Box<RawValue>,
}

impl Script {
    /// Reads the lines of a file; blank ones do not count. Strict: they are used up in order, and one for another
    /// method is an error; else those for other methods are passed over. Fails with `Script`, naming the line.
    pub fn parse(text: &str, strict: bool) -> Result<Self, Failure> {
        let mut lines = Vec::new();
        for (at, line) in text.lines().enumerate().filter(|(_, it)| !it.trim().is_empty()) {
            let line: Line = serde_json::from_str(line)
                .map_err(|it| failure(format!("Line {} of the responses file is not usable: {it}", at + 1)))?;
            if strict || line.method == STREAM {
                lines.push(line);
            }
        }
        Ok(Self { lines, next: AtomicUsize::new(0) })
    }

    fn next(&self) -> Result<Vec<&RawValue>, Failure> {
        let at = self.next.fetch_add(1, Ordering::Relaxed);
        let line = self.lines.get(at).ok_or_else(|| failure(format!("No more mock responses for {STREAM}")))?;
        if line.method != STREAM {
            let method = &line.method;
            let text = format!("Unexpected response type, next response was for {method} but expected {STREAM}");
            return Err(failure(text));
        }
        serde_json::from_str(line.response.get())
            .map_err(|_| failure(format!("Response {} for {STREAM} is not a list of chunks", at + 1)))
    }
}

impl Generator for Script {
    fn generate<'a>(&'a self, request: ModelRequest, sink: &'a mut dyn Sink) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            check(&request.contents).map_err(|it| failure(format!("The request is broken: {it}")))?;
            let mut decoder = gemini::Decoder::default();
            for chunk in self.next()? {
                let mut chunks = Vec::new();
                decoder.event(chunk.get().as_bytes(), &mut chunks)?;
                sink.send(chunks).await;
            }
            let mut chunks = Vec::new();
            decoder.end(&mut chunks);
            if !chunks.is_empty() {
                sink.send(chunks).await;
            }
            Ok(())
        })
    }
}

fn failure(message: String) -> Failure {
    Failure::new(FailureKind::Script, message)
}

/// What every provider demands of a history, and some only punish silently: it starts with the user, no turn is empty,
/// every call is answered right after its turn, and every result answers a call.
pub fn check<T: AsRef<Turn>>(contents: &[T]) -> Result<(), String> {
    let first = contents.first().ok_or("it has no contents")?.as_ref();
    if first.role != Role::User {
        return Err("its first turn is not the user's".to_owned());
    }
    let mut open: HashSet<&str> = HashSet::new();
    for (at, turn) in contents.iter().map(AsRef::as_ref).enumerate() {
        if turn.parts.is_empty() {
            return Err(format!("turn {at} is empty"));
        }
        if turn.role != Role::Tool {
            all_answered(&open)?;
        }
        for part in &turn.parts {
            check_part(turn.role, part, &mut open)?;
        }
    }
    all_answered(&open)
}

fn all_answered(open: &HashSet<&str>) -> Result<(), String> {
    open.iter().min().map_or(Ok(()), |id| Err(format!("call {id} has no result")))
}

fn check_part<'a>(role: Role, part: &'a TurnPart, open: &mut HashSet<&'a str>) -> Result<(), String> {
    match (part, role) {
        (TurnPart::Content(_), _) => Ok(()),
        (TurnPart::Call { call, .. }, Role::Model) => match open.insert(call.id.as_str()) {
            true => Ok(()),
            false => Err(format!("call {} is there twice", call.id)),
        },
        (TurnPart::Call { call, .. }, _) => Err(format!("call {} is not in a turn of the model", call.id)),
        (TurnPart::Result(it), Role::Tool) => match open.remove(it.id.as_str()) {
            true => Ok(()),
            false => Err(format!("result {} answers no call", it.id)),
        },
        (TurnPart::Result(it), _) => Err(format!("result {} is not in a turn of results", it.id)),
    }
}
