//! Conversion of a Gemini CLI transcript to facts, always with the same ids and times.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{
    ImportDefaults, ImportedConversation,
    transcript::{Transcript, id_of},
};
use castor_base::{
    content::{Part, joined_text},
    event::{AgentEvent, EndReason, EventKind, Speaker, Status, ToolDisplay},
    ids::{AgentId, CallId, MessageId, SessionId, StreamId},
    log::{Entry, Fact, Mode, Principal, VERSION},
    model::{Purpose, Usage},
    path::AbsPath,
    text,
    tool::{Display, ToolError, ToolKind},
};

/// Longest title and longest line of a call, in characters.
const MAX_TITLE: usize = 80;
const MAX_CALL_TITLE: usize = 200;
/// The window of the models that Gemini CLI speaks to, in tokens.
const WINDOW: u64 = 1_048_576;
/// What Gemini CLI itself does not show the model again.
const HIDDEN_PREFIXES: &[&str] = &["/", "?", "<session_context>", "<hook_context>"];

pub fn convert(it: &Transcript, defaults: ImportDefaults<'_>) -> ImportedConversation {
    let id = session_id(it);
    let known_folder = folder(it, defaults.cwd);
    let is_folder_guessed = known_folder.is_none();
    let cwd = known_folder.unwrap_or_else(|| defaults.cwd.clone());
    let mut models = it.messages.iter().rev().filter_map(|it| text_at(it, "model"));
    let model = models.next().unwrap_or(defaults.model).to_owned();
    let at = time(it.header.get("startTime")).or_else(|| it.messages.iter().find_map(|it| time(it.get("timestamp"))));
    let mut pen = FactWriter::new(at.unwrap_or_default());
    pen.fact(Fact::Created {
        version: VERSION,
        castor: env!("CARGO_PKG_VERSION").to_owned(),
        session: id.clone(),
        cwd: cwd.clone(),
        roots: vec![cwd.clone()],
        mode: Mode::Default,
        model,
        principal: Principal::Root,
        parent: None,
        child_of: None,
        thread: None,
        user: None,
    });
    pen.initialize(EventKind::Initialize { session_id: id.clone(), workspace: cwd });
    for message in &it.messages {
        pen.at = time(message.get("timestamp")).unwrap_or(pen.at).max(pen.at);
        pen.message(message);
    }
    pen.end_stream();
    if let Some(title) = title(it) {
        pen.event(EventKind::SessionUpdate { title: Some(title), model: None, state: Default::default() });
    }
    ImportedConversation { id, entries: pen.entries, n_bad: it.n_bad, is_folder_guessed }
}

/// Gemini CLI's own id where it can name a file; else one that is made of it.
fn session_id(it: &Transcript) -> SessionId {
    let text = it.header.get("sessionId").and_then(Value::as_str).unwrap_or_default();
    let id = SessionId::from(text);
    match id.is_safe() {
        true => id,
        false => SessionId::from(format!("gemini-{}", hex(text).get(..32).unwrap_or_default())),
    }
}

fn hex(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|it| format!("{it:02x}")).collect()
}

/// The folder that the transcript names; or the one whose name has its hash, `cwd` or above.
fn folder(it: &Transcript, cwd: &AbsPath) -> Option<AbsPath> {
    let named = it.header.get("directories").and_then(|it| it.get(0)).and_then(Value::as_str);
    if let Some(path) = named.and_then(AbsPath::new) {
        return Some(path);
    }
    let hash = it.header.get("projectHash").and_then(Value::as_str)?;
    let up = std::iter::successors(Some(cwd.clone()), AbsPath::parent);
    up.into_iter().find(|it| hex(&it.to_string()) == hash)
}

fn title(it: &Transcript) -> Option<String> {
    let summary = it.header.get("summary").and_then(Value::as_str).map(str::to_owned);
    let asked = || {
        let users = it.messages.iter().filter(|it| it.get("type").is_some_and(|it| it == "user"));
        users.map(|it| joined_text(&parts(it.get("content")))).find(|it| is_visible_text(it))
    };
    summary.filter(|it| !it.trim().is_empty()).or_else(asked).map(|it| text::first_line(&it, MAX_TITLE))
}

fn is_visible_text(text: &str) -> bool {
    let text = text.trim_start();
    !text.is_empty() && !HIDDEN_PREFIXES.iter().any(|it| text.starts_with(it))
}

fn time(value: Option<&Value>) -> Option<u64> {
    let stamp: jiff::Timestamp = value?.as_str()?.parse().ok()?;
    u64::try_from(stamp.as_millisecond()).ok()
}

fn text_at<'v>(value: &'v Value, name: &str) -> Option<&'v str> {
    value.get(name).and_then(Value::as_str).filter(|it| !it.is_empty())
}

/// Writes facts, in the order of the transcript.
struct FactWriter {
    entries: Vec<Entry>,
    at: u64,
    stream: StreamId,
    n_events: u64,
    n_streams: u64,
    /// Between a prompt and the next one.
    is_running: bool,
    calls: BTreeSet<CallId>,
    /// Calls of a message that have no result yet: their own id, ours, their tool.
    open: Vec<(String, CallId, String)>,
}

impl FactWriter {
    fn new(at: u64) -> Self {
        let stream = StreamId::from("s");
        let (entries, calls, open) = (Vec::new(), BTreeSet::new(), Vec::new());
        Self { entries, at, stream, n_events: 0, n_streams: 0, is_running: false, calls, open }
    }

    fn fact(&mut self, fact: Fact) {
        self.entries.push(Entry { at: self.at, fact });
    }

    fn event(&mut self, kind: EventKind) {
        let event = self.next_event(kind);
        self.fact(Fact::Event { event });
    }

    /// Only the first event says where the session is from: a transcript that version 1 imported is the same again.
    fn initialize(&mut self, kind: EventKind) {
        let event = AgentEvent { agent_id: AgentId::from("gemini-cli"), ..self.next_event(kind) };
        self.fact(Fact::Event { event });
    }

    fn next_event(&mut self, kind: EventKind) -> AgentEvent {
        let (id, stream_id) = (format!("{}-{}", self.stream, self.n_events), self.stream.clone());
        self.n_events += 1;
        AgentEvent::of_main(id, stream_id, self.at, kind)
    }

    fn begin_stream(&mut self) {
        self.end_stream();
        self.n_streams += 1;
        (self.stream, self.n_events) = (StreamId::from(format!("i{}", self.n_streams)), 0);
        self.is_running = true;
        self.event(EventKind::AgentStart {});
    }

    fn end_stream(&mut self) {
        self.close_calls();
        if std::mem::take(&mut self.is_running) {
            self.event(EventKind::AgentEnd { reason: EndReason::Completed, data: None });
        }
    }

    fn message(&mut self, message: &Value) {
        let content = message.get("content");
        match text_at(message, "type") {
            Some("user") => self.user(message, content),
            Some("gemini") => self.gemini(message, content),
            Some("error") => {
                let message = joined_text(&parts(content));
                self.event(EventKind::Error { status: Status::Internal, message, fatal: false });
            }
            other => {
                let data = json!({"type": other, "text": joined_text(&parts(content))});
                self.event(EventKind::Custom { kind: "gemini_cli".to_owned(), data });
            }
        }
    }

    fn user(&mut self, message: &Value, content: Option<&Value>) {
        for response in functions(content, "functionResponse") {
            self.answer(response);
        }
        let content = parts(content);
        let only_text = content.iter().all(|it| it.as_text().is_some());
        let text = joined_text(&content);
        if only_text && !is_visible_text(&text) {
            if !text.is_empty() {
                let data = json!({"type": "user", "text": text});
                self.event(EventKind::Custom { kind: "gemini_cli".to_owned(), data });
            }
            return;
        }
        self.begin_stream();
        let message_id = message_id(message);
        self.event(EventKind::Message { role: Speaker::User, message_id, content, cuts: Vec::new() });
    }

    fn gemini(&mut self, message: &Value, content: Option<&Value>) {
        self.close_calls();
        if !self.is_running {
            self.begin_stream();
        }
        let model = text_at(message, "model").unwrap_or("gemini").to_owned();
        self.fact(Fact::Attempt { model: model.clone(), attempt: 1, tokens: 0, why: String::new() });
        let message_id = message_id(message);
        let thoughts = message.get("thoughts").and_then(Value::as_array).into_iter().flatten().map(thought);
        let said = parts(content).into_iter().filter(|it| it.as_text() != Some(""));
        let content: Vec<Part> = thoughts.chain(said).collect();
        if !content.is_empty() {
            self.event(EventKind::Message { role: Speaker::Agent, message_id, content, cuts: Vec::new() });
        }
        let calls = message.get("toolCalls").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        calls.iter().for_each(|it| self.call(it));
        for call in functions(message.get("content"), "functionCall") {
            let is_listed = |it: &&Value| it.get("id").is_some() && it.get("id") == call.get("id");
            if !calls.iter().any(|it| is_listed(&it)) && (calls.is_empty() || call.get("id").is_some()) {
                self.call(call);
            }
        }
        if let Some(usage) = message.get("tokens").and_then(usage) {
            let purpose = Purpose::Agent;
            self.event(EventKind::Usage { model, usage, size: WINDOW, purpose, cost: None, session_cost: None });
        }
    }

    /// A call, with its end where the transcript has it.
    fn call(&mut self, call: &Value) {
        let name = text_at(call, "name").unwrap_or("unknown").to_owned();
        let id = self.call_id(text_at(call, "id").unwrap_or_default());
        let says = ["displayName", "description"].map(|it| text_at(call, it).unwrap_or_default());
        let title = match says.iter().all(|it| it.is_empty()) {
            true => name.clone(),
            false => text::first_line(&says.join(" "), MAX_CALL_TITLE),
        };
        let display = ToolDisplay { title, kind: kind(&name), locations: Vec::new() };
        let args = call.get("args").cloned().filter(Value::is_object).unwrap_or_else(|| json!({}));
        let (request_id, signature) = (id.clone(), None);
        self.event(EventKind::ToolRequest { request_id, name: name.clone(), args, display, signature });
        match end(call) {
            None => self.open.push((text_at(call, "id").unwrap_or_default().to_owned(), id, name)),
            Some((content, error)) => {
                let display = call.get("resultDisplay").and_then(shown);
                self.result(id, name, content, display, error);
            }
        }
    }

    /// A result that came in a message of its own.
    fn answer(&mut self, response: &Value) {
        let (id, name) = (text_at(response, "id"), text_at(response, "name"));
        let is_it = |it: &(String, CallId, String)| match id {
            Some(id) => it.0 == id,
            None => Some(it.2.as_str()) == name,
        };
        let Some(at) = self.open.iter().position(is_it) else { return };
        let (_, id, name) = self.open.remove(at);
        let (text, failed) = response_text(response);
        let error = failed.then(|| ToolError::new("failed", text.clone()));
        self.result(id, name, vec![Part::text(text)], None, error);
    }

    fn close_calls(&mut self) {
        for (_, id, name) in std::mem::take(&mut self.open) {
            let why = "The transcript does not have the end of this call.";
            let error = ToolError::new("interrupted", why);
            self.result(id, name, vec![Part::text(why)], None, Some(error));
        }
    }

    fn result(&mut self, id: CallId, name: String, content: Vec<Part>, display: Option<Display>, e: Option<ToolError>) {
        let (request_id, summary, error, data) = (id, None, e, Value::Null);
        self.event(EventKind::ToolResponse { request_id, name, content, display, summary, error, data, seen: None });
    }

    /// Theirs where it is new, else with a number.
    fn call_id(&mut self, theirs: &str) -> CallId {
        let theirs = if theirs.is_empty() { "call" } else { theirs };
        let numbered = (2..).map(|n| CallId::from(format!("{theirs}-{n}")));
        let mut names = std::iter::once(CallId::from(theirs)).chain(numbered);
        let id = names.find(|it| !self.calls.contains(it)).unwrap_or_else(|| CallId::from(theirs));
        self.calls.insert(id.clone());
        id
    }
}

/// Ours need no escaping anywhere; others are replaced by their hash.
fn message_id(message: &Value) -> MessageId {
    let id = id_of(message).unwrap_or_default();
    match SessionId::from(id).is_safe() {
        true => MessageId::from(id),
        false => MessageId::from(format!("m{}", hex(id).get(..24).unwrap_or_default())),
    }
}

/// Text, one part, or a list of either; what is none of them is left out, and so are calls and results.
fn parts(content: Option<&Value>) -> Vec<Part> {
    match content {
        Some(Value::Array(all)) => all.iter().filter_map(part).collect(),
        Some(one) => part(one).into_iter().collect(),
        None => Vec::new(),
    }
}

fn part(value: &Value) -> Option<Part> {
    let signature = || text_at(value, "thoughtSignature").map(Into::into);
    let inner = |name: &str| value.get(name).filter(|it| it.is_object());
    if let Some(text) = value.as_str() {
        return Some(Part::text(text));
    }
    if let Some(text) = value.get("text").and_then(Value::as_str) {
        let text = text.to_owned();
        return Some(match value.get("thought").is_some_and(|it| it == true) {
            true => Part::Thought { thought: text, signature: signature() },
            false => Part::Text { text, signature: signature() },
        });
    }
    if let Some(it) = inner("inlineData") {
        let (mime, data) = (text_at(it, "mimeType")?.to_owned(), text_at(it, "data")?.into());
        return Some(Part::Media { mime, data, uri: None });
    }
    let it = inner("fileData")?;
    let mime = text_at(it, "mimeType").map(str::to_owned);
    Some(Part::Reference { uri: text_at(it, "fileUri")?.to_owned(), name: None, mime, text: None, data: None })
}

fn functions<'v>(content: Option<&'v Value>, name: &'static str) -> impl Iterator<Item = &'v Value> {
    let all = match content {
        Some(Value::Array(all)) => all.as_slice(),
        Some(one) => std::slice::from_ref(one),
        None => &[],
    };
    all.iter().filter_map(move |it| it.get(name))
}

fn thought(it: &Value) -> Part {
    let subject = text_at(it, "subject").map(|it| format!("**{it}**\n")).unwrap_or_default();
    Part::Thought { thought: format!("{subject}{}", text_at(it, "description").unwrap_or_default()), signature: None }
}

fn usage(tokens: &Value) -> Option<Usage> {
    let count = |name: &str| tokens.get(name).and_then(Value::as_u64).unwrap_or_default();
    let (input, output, cached) = (count("input"), count("output"), count("cached"));
    let (thought, total) = (count("thoughts"), count("total"));
    tokens.is_object().then_some(Usage { input, output, cached, written: 0, thought, total })
}

fn kind(tool: &str) -> ToolKind {
    match tool {
        "read_file" | "read_many_files" | "list_directory" => ToolKind::Read,
        "glob" | "grep_search" | "search_file_content" | "google_web_search" => ToolKind::Search,
        "replace" | "write_file" => ToolKind::Edit,
        "run_shell_command" => ToolKind::Execute,
        "web_fetch" => ToolKind::Fetch,
        "write_todos" | "save_memory" => ToolKind::Think,
        _ => ToolKind::Other,
    }
}

/// What the model got, and whether that was a failure; `None` where the call has no end.
fn end(call: &Value) -> Option<(Vec<Part>, Option<ToolError>)> {
    let result = call.get("result").filter(|it| !it.is_null());
    let status = text_at(call, "status").unwrap_or_default();
    let content = match result {
        Some(Value::String(text)) => vec![Part::text(text)],
        Some(list) => {
            let answers = functions(Some(list), "functionResponse").map(|it| Part::text(response_text(it).0));
            answers.chain(parts(Some(list))).collect()
        }
        None if ["success", "error", "cancelled"].contains(&status) => Vec::new(),
        None => return None,
    };
    let error = match status {
        "error" | "cancelled" => {
            let shown = text_at(call, "resultDisplay").map(str::to_owned);
            let said = Some(joined_text(&content)).filter(|it| !it.is_empty());
            let kind = if status == "error" { "failed" } else { "cancelled" };
            Some(ToolError::new(kind, said.or(shown).unwrap_or_else(|| format!("The call was {status}."))))
        }
        _ => None,
    };
    Some((content, error))
}

/// The text of a function's response, and whether it is an error's.
fn response_text(it: &Value) -> (String, bool) {
    let Some(response) = it.get("response") else { return (String::new(), false) };
    match (text_at(response, "output"), text_at(response, "error")) {
        (Some(text), _) => (text.to_owned(), false),
        (None, Some(text)) => (text.to_owned(), true),
        (None, None) => (response.to_string(), false),
    }
}

fn shown(it: &Value) -> Option<Display> {
    if let Some(text) = it.as_str() {
        return Some(Display::Text { text: text.to_owned() });
    }
    let path = AbsPath::new(text_at(it, "filePath")?)?;
    let before = it.get("originalContent").and_then(Value::as_str).map(Into::into);
    Some(Display::Diff { path, before, after: it.get("newContent").and_then(Value::as_str)?.into() })
}
