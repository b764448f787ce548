//! The machine without an agent: `scenarios/*.txt`, each step with what comes of it below.
//!
//! ```text
//! # NAME              a machine of its own begins
//! > at 1500           milliseconds; timers that are due ring
//! > open {…}          a session is asked for: cwd, resume, id, replays, events, mode, model, more, instructions
//! > prompt TEXT       a turn begins; `prompt TEXT {…}`: with `_meta`
//! > answer 1 yes      the user answers the first question: an option; `filled {…}`, `filled`, declined, cancelled, withdrawn
//! > result 3 {…}      the agent answers our third request
//! > error 3 -32603 …  it answers with an error; data behind ` | `
//! > gone 3            it is gone
//! > told METHOD {…}   a notification               > noise …           a line that is no message
//! > asks ID METHOD {…} a request
//! ```
//! Other steps are orders by their names. Behind `->` stands what goes to the agent, behind `*` what the face is told.

use std::{fmt::Write as _, fs, path::Path, time::Duration};

use expect_test::expect_file;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::{ClientMachine, ClientNews, ClientOrder, ClientPhase, ClientRequest, RewindWhat};
use crate::{
    failure::RequestFailure,
    incoming::Incoming,
    opening::{Instructions, SessionRequest},
    questions::{Answer, QuestionSubject},
};
use castor_wire::acp::client::AgentError;

#[derive(Default)]
struct Stage {
    machine: ClientMachine,
    now: Duration,
    wake_at: Option<Duration>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Wanted {
    resume: Option<String>,
    id: Option<String>,
    more: Vec<String>,
    replays: bool,
    events: bool,
    mode: bool,
    model: Option<String>,
    instructions: Option<String>,
}

fn request(text: &str) -> SessionRequest {
    let it: Wanted = serde_json::from_str(if text.is_empty() { "{}" } else { text }).unwrap();
    SessionRequest {
        cwd: "/w".to_owned(),
        additional: it.more,
        resume: it.resume,
        id: it.id,
        replays: it.replays,
        events: it.events,
        mode: it.mode.then_some("yolo"),
        model: it.model,
        instructions: it.instructions.map(|text| Instructions { text, is_override: true }),
        ..SessionRequest::default()
    }
}

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap_or_else(|why| panic!("{text}: {why}"))
}

fn words(text: &str) -> (&str, &str) {
    text.split_once(' ').unwrap_or((text, ""))
}

fn answer(text: &str) -> Answer {
    match words(text) {
        ("filled", "") => Answer::Filled(None),
        ("filled", content) => Answer::Filled(Some(serde_json::from_str(content).unwrap())),
        ("declined", _) => Answer::Declined,
        ("cancelled", _) => Answer::Cancelled,
        ("withdrawn", _) => Answer::Withdrawn,
        (option, _) => Answer::Selected(option.to_owned()),
    }
}

fn refused(text: &str) -> RequestFailure {
    let (code, text) = words(text);
    let (message, data) = text.split_once(" | ").unwrap_or((text, "null"));
    RequestFailure::Refused(Box::new(AgentError::read(code.parse().unwrap(), message, Some(&raw(data)))))
}

impl Stage {
    fn act(&mut self, step: &str) {
        let (verb, rest) = words(step);
        let (first, second) = words(rest);
        let machine = &mut self.machine;
        match verb {
            "at" => {
                self.now = Duration::from_millis(rest.parse().unwrap());
                machine.tick(self.now);
            }
            "open" => machine.open(request(rest)),
            "prompt" => {
                let meta = serde_json::from_str(second).ok();
                machine.prompt(vec![serde_json::json!({"type": "text", "text": first})], meta);
            }
            "cancel" => machine.cancel(),
            "steer" => machine.steer(rest.to_owned()),
            "answer" => machine.answer(first.parse().unwrap(), answer(second)),
            "changes" if rest == "earlier" => _ = machine.ask(ClientRequest::EarlierChanges),
            "changes" => _ = machine.ask(ClientRequest::Changes),
            "servers" => machine.list_servers(Duration::from_millis(rest.parse().unwrap())),
            "mode" => _ = machine.ask(ClientRequest::SetMode(rest.to_owned())),
            "option" => {
                let (id, value) = (first.to_owned(), second.to_owned());
                machine.ask(ClientRequest::SetOption { id, value });
            }
            "rewind" => {
                let what = [RewindWhat::Both, RewindWhat::Files, RewindWhat::Conversation];
                let what = what.into_iter().find(|it| format!("{it:?}").to_lowercase() == second).unwrap();
                machine.ask(ClientRequest::Rewind { prompt: first.to_owned(), what });
            }
            "redo" => _ = machine.ask(ClientRequest::Redo),
            "sessions" => machine.list_sessions(),
            "messages" => _ = machine.ask(ClientRequest::Messages),
            "message-changes" => _ = machine.ask(ClientRequest::MessageChanges),
            "load" => machine.load(rest.to_owned(), "/w"),
            _ => self.hear(verb, first, second),
        }
    }

    fn hear(&mut self, verb: &str, first: &str, second: &str) {
        let number = || first.parse().unwrap();
        let machine = &mut self.machine;
        match verb {
            "result" => machine.take_answer(number(), Ok(serde_json::from_str(second).unwrap())),
            "error" => machine.take_answer(number(), Err(refused(second))),
            "gone" => machine.take_answer(number(), Err(RequestFailure::Gone)),
            "told" => {
                let (method, params) = (first.to_owned(), raw(second));
                machine.take_message(Incoming::Notification { method, params });
            }
            "asks" => {
                let (method, params) = words(second);
                let (method, params) = (method.to_owned(), raw(params));
                machine.take_message(Incoming::Request { id: raw(first), method, params });
            }
            "noise" => machine.take_message(Incoming::Noise(format!("{first} {second}"))),
            other => panic!("{other}"),
        }
    }

    fn seen(&mut self) -> String {
        let mut seen = String::new();
        for order in self.machine.take_orders() {
            _ = match order {
                ClientOrder::Request { number, method, params } => writeln!(seen, "  -> {number} {method} {params}"),
                ClientOrder::Notify { method, params } => writeln!(seen, "  -> {method} {params}"),
                ClientOrder::Answer { id, answer: Ok(result) } => writeln!(seen, "  -> answer {id} {result}"),
                ClientOrder::Answer { id, answer: Err(it) } => {
                    writeln!(seen, "  -> answer {id} error {} {}", it.code, it.message)
                }
            };
        }
        seen = seen.replace(env!("CARGO_PKG_VERSION"), "$VERSION");
        while let Some(news) = self.machine.take_news() {
            _ = writeln!(seen, "  * {}", in_words(&news));
        }
        let wake_at = self.machine.wake_at();
        if wake_at != self.wake_at {
            self.wake_at = wake_at;
            let at = wake_at.map_or("never".to_owned(), |at| format!("{} ms", at.as_millis()));
            _ = writeln!(seen, "  wakes at {at}");
        }
        seen
    }
}

fn in_words(news: &ClientNews) -> String {
    let failed = |why: &RequestFailure| format!("failed: {}", why.clone().in_words());
    let result = |name: &str, it: Result<String, &RequestFailure>| format!("{name} {}", it.unwrap_or_else(failed));
    match news {
        ClientNews::Opened(it) => format!("Opened {} model={:?} notes={:?}", it.id, it.model, it.notes),
        ClientNews::Failed(it) => format!("Failed {} {}", it.exit.code(), it.message),
        ClientNews::Event(it) => {
            let kind = format!("{:?}", it.event);
            format!("Event {} {}", it.session, kind.split(['(', ' ']).next().unwrap_or_default())
        }
        ClientNews::Replayed(it) => format!("Replayed {} bytes", it.get().len()),
        ClientNews::StreamEvent(it) => format!("StreamEvent {it}"),
        ClientNews::Asked(it) => {
            let about = match &it.about {
                QuestionSubject::Permission(asked) => format!("Permission, {} options", asked.options.len()),
                QuestionSubject::Form { message, form } => format!("Form {message:?}, {} fields", form.fields.len()),
                QuestionSubject::Page { message, url, renews } => format!("Page {message:?} {url} renews={renews}"),
            };
            format!("Asked {} session={:?} agent={:?} call={:?} {about}", it.number, it.session, it.agent, it.call)
        }
        ClientNews::Withdrawn(number) => format!("Withdrawn {number}"),
        ClientNews::Prompted(it) => result("Prompted", it.as_ref().map(|it| it.stop_reason().to_owned())),
        ClientNews::Steered(it) => format!("Steered {it:?}"),
        ClientNews::Answered(request, it) => {
            result(&format!("Answered {request:?}"), it.as_ref().map(Value::to_string))
        }
        ClientNews::Sessions(it) => {
            let ids = |all: &Vec<_>| {
                all.iter()
                    .map(|it: &castor_wire::acp::client::AgentSession| it.session_id.as_str())
                    .collect::<Vec<_>>()
                    .join(" ")
            };
            result("Sessions", it.as_ref().map(ids))
        }
        ClientNews::Noise(it) => format!("Noise {it}"),
        ClientNews::Loaded(it) => result("Loaded", it.as_ref().map(|it| format!("{:?}", it.session_id))),
    }
}

#[allow(clippy::disallowed_methods)]
fn check(path: &Path) {
    let (mut stage, mut after) = (Stage::default(), String::new());
    for line in fs::read_to_string(path).unwrap().lines() {
        if line.starts_with("# ") {
            stage = Stage::default();
            after += if after.is_empty() { "" } else { "\n" };
        } else if let Some(step) = line.strip_prefix("> ") {
            stage.act(step);
        } else {
            continue;
        }
        after += &format!("{line}\n{}", stage.seen());
    }
    expect_file![path].assert_eq(&after);
}

#[test]
#[allow(clippy::disallowed_methods)]
fn scenarios_end_as_they_did() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join("src/client/machine/scenarios");
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 4, "{}", paths.len());
    paths.iter().for_each(|it| check(it));
}

/// Whatever an agent answers to a request, and whatever it asks: nothing panics, and each question has one answer.
#[test]
fn odd_messages_are_survived() {
    let texts = ["null", "7", "\"x\"", "[]", "{}", "{\"sessionId\":7}", "{\"update\":{}}", "{\"requestId\":{}}"];
    let methods = [
        "session/update",
        "session/request_permission",
        "elicitation/create",
        "$/cancel_request",
        "_castor/session/event",
        "",
    ];
    for text in texts {
        let mut machine = ClientMachine::default();
        machine.open(SessionRequest::default());
        machine.take_answer(1, Ok(serde_json::from_str(r#"{"protocolVersion":1}"#).unwrap()));
        machine.take_answer(2, Ok(serde_json::from_str(r#"{"sessionId":"s"}"#).unwrap()));
        machine.prompt(Vec::new(), None);
        machine.steer("x".to_owned());
        machine.ask(ClientRequest::SetMode("x".to_owned()));
        machine.list_sessions();
        machine.ask(ClientRequest::Messages);
        machine.take_orders();
        for method in methods {
            machine.take_message(Incoming::Notification { method: method.to_owned(), params: raw(text) });
            machine.take_message(Incoming::Request { id: raw(text), method: method.to_owned(), params: raw(text) });
        }
        for number in -1..12 {
            machine.take_answer(number, Ok(serde_json::from_str(text).unwrap()));
        }
        assert_eq!(machine.phase(), ClientPhase::Idle, "{text}");
        let open: Vec<u64> = machine.questions.keys().copied().collect();
        let n_answered = machine.take_orders().iter().filter(|it| matches!(it, ClientOrder::Answer { .. })).count();
        assert_eq!(n_answered + open.len(), methods.len(), "{text}");
        open.iter().for_each(|number| machine.answer(*number, Answer::Declined));
        open.iter().for_each(|number| machine.answer(*number, Answer::Declined));
        assert_eq!((machine.n_questions(), machine.take_orders().len()), (0, open.len()), "{text}");
    }
}
