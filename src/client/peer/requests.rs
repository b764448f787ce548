//! Requests of another agent as calls of castor's tools, and the results as its answers.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    peer_call::{PeerCall, Refusal},
    permission::{self, PermissionOptions},
    terminal_line::{EndedTerminal, command_args},
    updates::PeerUpdates,
};
use castor_base::{
    content::{Part, joined_text},
    history::TurnPart,
    tool::{CallResult, READ_FILE, RUN_SHELL_COMMAND, WRITE_FILE},
};
use castor_wire::acp::client::read_value;

/// Terminals that are kept.
const MAX_TERMINALS: usize = 256;

/// What a request comes to.
#[derive(Debug, PartialEq)]
pub enum PeerRequest {
    /// It has its answer.
    Answered(Result<Value, Refusal>),
    /// It waits for these.
    Waits { calls: Vec<PeerCall>, form: AnswerForm },
}

/// How results become an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum AnswerForm {
    /// The last line that was asked for.
    Text {
        until: Option<u64>,
    },
    Written,
    Terminal {
        limit: Option<usize>,
    },
    Permission(Options),
}

/// What may be answered to a question.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options(PermissionOptions);

/// The terminals of an agent: their commands have ended by the time that it hears of them.
#[derive(Debug, Default)]
pub struct Terminals {
    all: BTreeMap<String, EndedTerminal>,
    n_made: u64,
}

impl PeerRequest {
    pub fn read(method: &str, params: &Value, seen: &mut PeerUpdates, terminals: &mut Terminals) -> Self {
        let waits = |name, args, form| Self::Waits { calls: vec![PeerCall { name, args }], form };
        let read = match method {
            "fs/read_text_file" => {
                read_args(params).map(|(args, until)| waits(READ_FILE, args, AnswerForm::Text { until }))
            }
            "fs/write_text_file" => write_args(params).map(|args| waits(WRITE_FILE, args, AnswerForm::Written)),
            "terminal/create" => command_args(params).map(|args| {
                let limit =
                    params.get("outputByteLimit").and_then(Value::as_u64).and_then(|it| usize::try_from(it).ok());
                waits(RUN_SHELL_COMMAND, args, AnswerForm::Terminal { limit })
            }),
            "session/request_permission" => permission::read(read_value(params.clone()).unwrap_or_default(), seen)
                .map(|(calls, options)| Self::Waits { calls, form: AnswerForm::Permission(Options(options)) }),
            _ => terminals.answer(method, params).map(|it| Self::Answered(Ok(it))),
        };
        read.unwrap_or_else(|it| Self::Answered(Err(it)))
    }
}

impl Terminals {
    fn answer(&mut self, method: &str, params: &Value) -> Result<Value, Refusal> {
        let id = params.get("terminalId").and_then(Value::as_str).unwrap_or_default();
        let found = || self.all.get(id).ok_or_else(|| Refusal::new(-32602, format!("there is no terminal {id}")));
        match method {
            "terminal/output" => found().map(EndedTerminal::output),
            "terminal/wait_for_exit" => found().map(EndedTerminal::exit),
            "terminal/kill" => found().map(|_| json!({})),
            "terminal/release" => {
                found()?;
                self.all.remove(id);
                Ok(json!({}))
            }
            _ => Err(Refusal::new(-32601, format!("castor has no {method}"))),
        }
    }

    fn add(&mut self, it: EndedTerminal) -> String {
        self.n_made += 1;
        let id = format!("t{}", self.n_made);
        if self.all.len() < MAX_TERMINALS {
            self.all.insert(id.clone(), it);
        }
        id
    }
}

impl AnswerForm {
    /// Of the results of all its calls.
    ///
    /// # Errors
    /// For the agent: why there is no such thing.
    pub fn answer(&self, results: &[&CallResult], terminals: &mut Terminals) -> Result<Value, Refusal> {
        let failed = results.iter().find(|it| it.is_error);
        if let Self::Permission(Options(options)) = self {
            return Ok(options.answer(failed.is_none() && !results.is_empty()));
        }
        let Some(result) = results.first() else { return Err(Refusal::new(-32603, "castor has no result of this")) };
        if let Some(it) = failed {
            return Err(Refusal::new(-32603, joined_text(&it.content)));
        }
        match self {
            Self::Text { until } => file_text(result, *until).map(|it| json!({ "content": it })),
            Self::Terminal { limit } => {
                let ended = EndedTerminal::read(&joined_text(&result.content), *limit);
                Ok(json!({ "terminalId": terminals.add(ended) }))
            }
            Self::Written | Self::Permission(_) => Ok(json!({})),
        }
    }
}

/// The results of the last calls of a conversation, in the order of the calls.
pub fn last_results<'t>(parts: impl DoubleEndedIterator<Item = &'t TurnPart>) -> Vec<&'t CallResult> {
    let mut results: Vec<&CallResult> = Vec::new();
    let mut calls = Vec::new();
    for part in parts.rev() {
        match part {
            TurnPart::Result(it) if calls.is_empty() => results.push(it),
            TurnPart::Call { call, .. } => calls.push(&call.id),
            TurnPart::Content(_) if calls.is_empty() => (),
            TurnPart::Result(_) | TurnPart::Content(_) => break,
        }
    }
    calls.iter().rev().filter_map(|id| results.iter().find(|it| it.id == **id).copied()).collect()
}

fn read_args(params: &Value) -> Result<(Value, Option<u64>), Refusal> {
    let path = params.get("path").and_then(Value::as_str).ok_or_else(|| Refusal::invalid("path"))?;
    let count = |key: &str| params.get(key).and_then(Value::as_u64).filter(|it| *it > 0);
    let (line, limit) = (count("line"), count("limit"));
    let until = limit.map(|it| line.unwrap_or(1).saturating_add(it - 1));
    let mut args = json!({ "file_path": path });
    if let Some(members) = args.as_object_mut() {
        members.extend(line.map(|it| ("start_line".to_owned(), it.into())));
        members.extend(until.map(|it| ("end_line".to_owned(), it.into())));
    }
    Ok((args, until))
}

fn write_args(params: &Value) -> Result<Value, Refusal> {
    let said = |key: &str| params.get(key).and_then(Value::as_str).ok_or_else(|| Refusal::invalid(key));
    Ok(json!({ "file_path": said("path")?, "content": said("content")? }))
}

/// Without what castor's tool tells a model of it. An agent may write back what it got: nothing may be missing.
fn file_text(result: &CallResult, until: Option<u64>) -> Result<String, Refusal> {
    const CUT: &str = "IMPORTANT: The file content has been truncated.\n";
    const BODY: &str = "\n--- FILE CONTENT (truncated) ---\n";
    let mut texts =
        result.content.iter().filter_map(Part::as_text).filter(|it| !it.starts_with("[The editor has unsaved"));
    let Some(text) = texts.next() else { return Err(Refusal::new(-32603, "castor gives text files only")) };
    let Some((head, body)) = text.strip_prefix(CUT).and_then(|it| it.split_once(BODY)) else {
        return Ok(text.to_owned());
    };
    let numbers: Vec<u64> = head.split(|it: char| !it.is_ascii_digit()).filter_map(|it| it.parse().ok()).collect();
    let (Some(end), Some(total)) = (numbers.get(1), numbers.get(2)) else { return Ok(body.to_owned()) };
    let is_whole = end == total || until.is_some_and(|it| it <= *end);
    match is_whole && !head.contains("(some lines were shortened)") {
        true => Ok(body.to_owned()),
        false => Err(Refusal::new(
            -32603,
            format!("the file has {total} lines, or long ones: read it by line and limit, at most 2000 lines at once"),
        )),
    }
}
