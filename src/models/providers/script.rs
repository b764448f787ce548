//! The scripted model: answers from a JSON Lines file, without a network.

use std::{
    collections::HashSet,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Duration,
};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Generator, Sink, gemini, remote::Decode};
use castor_base::{
    content::joined_text,
    fs::BoxFuture,
    history::{Role, Turn, TurnPart},
    model::{Failure, FailureKind, ModelRequest},
};

/// The method of the lines that answer a streaming request.
pub const STREAM: &str = "generateContentStream";
/// The same for an answer in one piece. Gemini CLI asks so where it offers no tools, as for a summary.
const WHOLE: &str = "generateContent";

/// A file of responses and the position in it, which all sessions of the process share.
#[derive(Debug)]
pub struct Script {
    lines: Vec<ScriptLine>,
    next: AtomicUsize,
    /// For requests with a certain system text, each used once.
    special: Vec<(AtomicBool, ScriptLine)>,
}

#[derive(Debug, Deserialize)]
struct ScriptLine {
    method: String,
    response: Box<RawValue>,
    /// Only for requests whose system text has this: agents that run side by side have answers of their own.
    #[serde(default)]
    system: Option<String>,
    /// Fails unless the conversation, or the name of a tool on offer, has each of these.
    #[serde(default)]
    wants: Vec<String>,
    /// Fails if one of these is there.
    #[serde(default)]
    lacks: Vec<String>,
    /// Between two chunks, in milliseconds; without it they come at once.
    #[serde(default)]
    every_ms: Option<u64>,
}

impl Script {
    /// Reads the lines of a file; blank ones do not count. Strict: they are used up in order, and one for another
    /// method is an error; else those for other methods are passed over. Fails with `Script`, naming the line.
    pub fn parse(text: &str, strict: bool) -> Result<Self, Failure> {
        let (mut lines, mut special) = (Vec::new(), Vec::new());
        for (at, line) in text.lines().enumerate().filter(|(_, it)| !it.trim().is_empty()) {
            let line: ScriptLine = serde_json::from_str(line)
                .map_err(|it| failure(format!("Line {} of the responses file is not usable: {it}", at + 1)))?;
            if line.system.is_some() {
                special.push((AtomicBool::default(), line));
            } else if strict || line.method == STREAM {
                lines.push(line);
            }
        }
        Ok(Self { lines, next: AtomicUsize::new(0), special })
    }

    /// The chunks of the next answer, and how long it is between two of them.
    fn next(&self, request: &ModelRequest) -> Result<(Vec<&RawValue>, Option<Duration>), Failure> {
        let fits = |it: &ScriptLine| it.system.as_ref().is_some_and(|it| request.system.contains(it.as_str()));
        let unused = |it: &AtomicBool| !it.swap(true, Ordering::Relaxed);
        let special = self.special.iter().find(|(used, it)| fits(it) && unused(used)).map(|(_, it)| it);
        let at = if special.is_some() { 0 } else { self.next.fetch_add(1, Ordering::Relaxed) };
        let line = special.or_else(|| self.lines.get(at));
        let line = line.ok_or_else(|| failure(format!("No more mock responses for {STREAM}")))?;
        if let Some(it) = line.wants.iter().find(|it| !has(request, it)) {
            return Err(failure(format!("The request does not have {it:?}")));
        }
        if let Some(it) = line.lacks.iter().find(|it| has(request, it)) {
            return Err(failure(format!("The request has {it:?}")));
        }
        if line.method == WHOLE && request.tools.is_empty() {
            return Ok((vec![&line.response], None));
        }
        if line.method != STREAM {
            let method = &line.method;
            let text = format!("Unexpected response type, next response was for {method} but expected {STREAM}");
            return Err(failure(text));
        }
        let chunks = serde_json::from_str(line.response.get());
        let chunks = chunks.map_err(|_| failure(format!("Response {} for {STREAM} is not a list of chunks", at + 1)));
        Ok((chunks?, line.every_ms.map(|it| Duration::from_millis(it.max(1)))))
    }
}

impl Generator for Script {
    fn generate<'a>(&'a self, request: ModelRequest, sink: &'a mut dyn Sink) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            check(&request.contents).map_err(|it| failure(format!("The request is broken: {it}")))?;
            let mut decoder = gemini::GeminiDecoder::default();
            let (all, pause) = self.next(&request)?;
            // What is late does not make the rest late.
            let mut beat = pause.map(tokio::time::interval);
            for chunk in all {
                if let Some(it) = &mut beat {
                    it.tick().await;
                }
                let mut chunks = Vec::new();
                decoder.event(chunk.get().as_bytes(), &mut chunks)?;
                sink.send(chunks).await;
            }
            let mut chunks = Vec::new();
            decoder.end(true, &mut chunks);
            if !chunks.is_empty() {
                sink.send(chunks).await;
            }
            Ok(())
        })
    }
}

fn has(request: &ModelRequest, text: &str) -> bool {
    let parts = || request.contents.iter().flat_map(|it| it.parts());
    let in_part = |it: &TurnPart| match it {
        TurnPart::Content(it) => it.as_text().is_some_and(|it| it.contains(text)),
        TurnPart::Call { call, .. } => call.args.to_string().contains(text),
        TurnPart::Result(it) => joined_text(&it.content).contains(text),
    };
    parts().any(in_part) || request.tools.iter().any(|it| it.name == text) || request.system.contains(text)
}

fn failure(message: String) -> Failure {
    Failure::new(FailureKind::Script, message)
}

/// What is wrong with a history.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum HistoryError {
    #[error("it has no contents")]
    Empty,
    #[error("its first turn is not the user's")]
    NotUsers,
    #[error("turn {0} is empty")]
    EmptyTurn(usize),
    #[error("call {id} {what}")]
    Call { id: String, what: &'static str },
    #[error("result {id} {what}")]
    Result { id: String, what: &'static str },
}

/// What every provider demands of a history, and some only punish silently: it starts with the user, no turn is empty,
/// every call is answered right after its turn, and every result answers a call.
pub fn check<T: AsRef<Turn>>(contents: &[T]) -> Result<(), HistoryError> {
    let first = contents.first().ok_or(HistoryError::Empty)?.as_ref();
    if first.role() != Role::User {
        return Err(HistoryError::NotUsers);
    }
    let mut open: HashSet<&str> = HashSet::new();
    for (at, turn) in contents.iter().map(AsRef::as_ref).enumerate() {
        if turn.parts().is_empty() {
            return Err(HistoryError::EmptyTurn(at));
        }
        if turn.role() != Role::Tool {
            all_answered(&open)?;
        }
        for part in turn.parts() {
            check_part(turn.role(), part, &mut open)?;
        }
    }
    all_answered(&open)
}

fn all_answered(open: &HashSet<&str>) -> Result<(), HistoryError> {
    let what = "has no result";
    open.iter().min().map_or(Ok(()), |id| Err(HistoryError::Call { id: (*id).to_owned(), what }))
}

fn check_part<'a>(role: Role, part: &'a TurnPart, open: &mut HashSet<&'a str>) -> Result<(), HistoryError> {
    match (part, role) {
        (TurnPart::Content(_), _) => Ok(()),
        (TurnPart::Call { call, .. }, Role::Model) if open.insert(call.id.as_str()) => Ok(()),
        (TurnPart::Call { call, .. }, _) => {
            let what = if role == Role::Model { "is there twice" } else { "is not in a turn of the model" };
            Err(HistoryError::Call { id: call.id.to_string(), what })
        }
        (TurnPart::Result(it), Role::Tool) if open.remove(it.id.as_str()) => Ok(()),
        (TurnPart::Result(it), _) => {
            let what = if role == Role::Tool { "answers no call" } else { "is not in a turn of results" };
            Err(HistoryError::Result { id: it.id.to_string(), what })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Script, check};
    use crate::providers::{Generator, Sink, gemini::conversation};
    use castor_base::{
        fs::BoxFuture,
        model::{Chunk, Failure, FailureKind, ModelParams, ModelRequest},
        tool::{ToolKind, ToolSpec, ToolTraits},
    };

    struct Texts(String);

    impl Sink for Texts {
        fn send(&mut self, chunks: Vec<Chunk>) -> BoxFuture<'_, ()> {
            for chunk in chunks {
                if let Chunk::Text { text, .. } = chunk {
                    self.0.push_str(&text);
                }
            }
            Box::pin(async {})
        }
    }

    async fn next(script: &Script, contents: &str) -> Result<String, Failure> {
        let contents = conversation(contents);
        let (model, system) = ("m".into(), "".into());
        let request = ModelRequest {
            model,
            system,
            contents,
            tools: [].into(),
            params: ModelParams::default(),
            traits: Default::default(),
        };
        let mut texts = Texts(String::new());
        script.generate(request, &mut texts).await?;
        Ok(texts.0)
    }

    fn stream(text: &str) -> String {
        let event = serde_json::json!({ "candidates": [{ "content": { "parts": [{ "text": text }] } }] });
        serde_json::json!({ "method": "generateContentStream", "response": [event, {}, event] }).to_string()
    }

    /// `--fake-responses` is strict; `--fake-responses-non-strict` is not.
    #[tokio::test]
    async fn strict_and_not() {
        let text = format!("{}\n\n{}\n{}\n", stream("a"), r#"{"method":"countTokens","response":{}}"#, stream("b"));
        let exhausted = "No more mock responses for generateContentStream";
        let other = "Unexpected response type, next response was for countTokens but expected generateContentStream";
        for (strict, expected) in [
            (true, [Ok("aa"), Err(other), Ok("bb"), Err(exhausted)]),
            (false, [Ok("aa"), Ok("bb"), Err(exhausted), Err(exhausted)]),
        ] {
            let script = Script::parse(&text, strict).unwrap();
            for it in expected {
                let got = next(&script, "user text hi").await;
                assert!(got.as_ref().err().is_none_or(|it| it.kind == FailureKind::Script));
                assert_eq!(got.as_deref().map_err(|it| it.message.as_str()), it);
            }
        }
    }

    /// A summary comes in one piece; an answer to the user never does.
    #[tokio::test]
    async fn whole_answers_are_for_requests_without_tools() {
        let event = serde_json::json!({ "candidates": [{ "content": { "parts": [{ "text": "all" }] } }] });
        let line = serde_json::json!({ "method": "generateContent", "response": event }).to_string();
        let script = Script::parse(&format!("{line}\n{line}"), true).unwrap();
        assert_eq!(next(&script, "user text hi").await.unwrap(), "all");
        let parameters = serde_json::json!({ "type": "object" }).into();
        let [title, description] = ["", ""].map(Into::into);
        let (kind, traits) = (ToolKind::Other, ToolTraits::default());
        let tools = [ToolSpec { name: "ls".into(), title, description, kind, parameters, traits }].into();
        let (model, system, params) = ("m".into(), "".into(), ModelParams::default());
        let request = ModelRequest {
            model,
            system,
            contents: conversation("user text hi"),
            tools,
            params,
            traits: Default::default(),
        };
        let failure = script.generate(request, &mut Texts(String::new())).await.unwrap_err();
        assert!(failure.message.starts_with("Unexpected response type"), "{failure:?}");
    }

    #[tokio::test]
    async fn unusable_files() {
        let failure = Script::parse(&format!("{}\nnonsense", stream("a")), false).unwrap_err();
        assert!(failure.message.starts_with("Line 2 of the responses file is not usable"), "{failure:?}");
        let script = Script::parse(r#"{"method":"generateContentStream","response":{}}"#, true).unwrap();
        let failure = next(&script, "user text hi").await.unwrap_err();
        assert_eq!(failure.message, "Response 1 for generateContentStream is not a list of chunks");
    }

    #[tokio::test]
    async fn broken_requests() {
        let call = "user text a\nmodel call 1 ls {}";
        for (contents, says) in [
            ("", "it has no contents"),
            ("model text a", "its first turn is not the user's"),
            (call, "call 1 has no result"),
            (&format!("{call}\n\nuser text b"), "call 1 has no result"),
            (&format!("{call}\nmodel call 1 ls {{}}"), "call 1 is there twice"),
            (&format!("{call}\ntool result 2 ls x"), "result 2 answers no call"),
            (&format!("{call}\ntool result 1 ls x\ntool result 1 ls x"), "result 1 answers no call"),
            ("user text a\ntool result 1 ls x", "result 1 answers no call"),
            ("user call 1 ls {}", "call 1 is not in a turn of the model"),
            ("user result 1 ls x", "result 1 is not in a turn of results"),
        ] {
            let script = Script::parse(&stream("a"), true).unwrap();
            let failure = next(&script, contents).await.unwrap_err();
            assert_eq!(failure.message, format!("The request is broken: {says}"), "{contents}");
        }
        assert_eq!(check(&conversation(&format!("{call}\ntool result 1 ls x\nmodel text b\nuser text c"))), Ok(()));
    }
}
