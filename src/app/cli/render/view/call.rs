//! One tool call in the view: its fields so far, and what it does in a few words.

use std::time::Duration;

use serde_json::{Map, Value};

use super::text_block;
use crate::{
    app::cli::{render::words, terminal_text::clean_line},
    base::text,
};

/// Characters of what a call does.
const MAX_LABEL: usize = 200;
/// Bytes of a content that are kept while a call runs: its end.
const MAX_KEPT: usize = 64 * 1024;
const MAX_FENCE: usize = 100;

#[derive(Debug)]
pub struct CallView {
    pub id: String,
    fields: Map<String, Value>,
    /// The end of what came piece by piece.
    printed: String,
    /// When it began to run; `None`: it never did, as far as is known.
    started: Option<Duration>,
    ended: Duration,
    /// A plan came while it ran: the list says what it did.
    pub is_plan: bool,
    /// The user saw its diff with the question.
    pub was_asked: bool,
    /// It waits for an answer of the user's.
    pub held_since: Option<Duration>,
}

impl CallView {
    pub fn new(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            fields: Map::new(),
            printed: String::new(),
            started: None,
            ended: Duration::ZERO,
            is_plan: false,
            was_asked: false,
            held_since: None,
        }
    }

    /// Takes a `tool_call` or `tool_call_update`: a field that is absent or null stays as it was.
    pub fn merge(&mut self, update: &Value, now: Duration) {
        let was_running = self.is_running();
        let fields = update.as_object().into_iter().flatten();
        for (key, it) in fields.filter(|(key, it)| *key != "sessionUpdate" && !it.is_null()) {
            let kept = if key == "content" { shorten(it) } else { it.clone() };
            self.fields.insert(key.clone(), kept);
        }
        if let Some(piece) = update.pointer("/_meta/terminal_output/data").and_then(Value::as_str) {
            self.printed.push_str(piece);
            if self.printed.len() > 2 * MAX_KEPT {
                self.printed = text::tail(&self.printed, MAX_KEPT).to_owned();
            }
        }
        // What comes before is the model's and the user's time.
        if self.is_running() && !was_running {
            self.started = Some(now);
            self.held_since = None;
        }
        if self.is_over() {
            self.release(now);
        }
        self.ended = now;
    }

    /// The question is answered: the wait was no time of the call's.
    pub fn release(&mut self, now: Duration) {
        let Some(since) = self.held_since.take() else { return };
        self.started = self.started.map(|it| it + now.saturating_sub(since));
    }

    pub fn text(&self, key: &str) -> &str {
        self.fields.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    pub fn input(&self, key: &str) -> Option<&str> {
        self.fields.get("rawInput")?.get(key)?.as_str()
    }

    pub fn output(&self, key: &str) -> Option<&Value> {
        self.fields.get("rawOutput")?.get(key).filter(|it| !it.is_null())
    }

    pub fn contents(&self) -> &[Value] {
        self.fields.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    /// What a command printed, as far as it is known: a content is a whole, pieces are not.
    pub fn printed(&self) -> &str {
        let mut texts = self.contents().iter().filter_map(text_block);
        match (self.printed.is_empty(), texts.clone().find(|it| it.starts_with("```"))) {
            (_, Some(fenced)) => fenced,
            (true, None) => texts.next().unwrap_or_default(),
            (false, None) => &self.printed,
        }
    }

    /// Whether a tool that is no command says how far it is, as those of MCP servers do.
    pub fn has_progress(&self) -> bool {
        self.contents().iter().filter_map(text_block).any(|it| it.starts_with("```"))
    }

    pub fn is_over(&self) -> bool {
        matches!(self.text("status"), "completed" | "failed")
    }

    pub fn is_failed(&self) -> bool {
        self.text("status") == "failed"
    }

    pub fn is_command(&self) -> bool {
        self.text("kind") == "execute"
    }

    pub fn is_running(&self) -> bool {
        self.text("status") == "in_progress"
    }

    /// How long it runs, in words; `None`: not yet, or not for a second.
    pub fn run_time(&self, now: Duration) -> Option<String> {
        self.started.and_then(|it| words::duration(now.saturating_sub(it))).filter(|_| self.is_running())
    }

    /// How long it ran, from its start to its end; `None`: it did not, or not for a second.
    pub fn took(&self) -> Option<String> {
        words::duration(self.ended.saturating_sub(self.started?))
    }

    /// What it does, in one wording from its start to its end.
    pub fn label(&self, cwd: &str) -> String {
        clean_line(&self.words(cwd).unwrap_or_else(|| self.title()), MAX_LABEL)
    }

    fn words(&self, cwd: &str) -> Option<String> {
        let path = || Some(relative(self.path()?, cwd));
        let pattern = self.input("pattern");
        match self.text("kind") {
            "execute" => Some(self.command()),
            "read" => Some(format!("read {}", path()?)),
            "edit" if self.input("content").is_some() => Some(format!("write {}", path()?)),
            "edit" => Some(format!("edit {}", path()?)),
            "delete" => Some(format!("delete {}", path()?)),
            "search" if pattern.is_none() => Some(format!("list {}", path()?)),
            "search" => Some(format!("search \"{}\"{}", pattern?, self.place(cwd))),
            _ => None,
        }
    }

    /// A command's first line, and how many follow; a title that is no command stands for itself.
    fn command(&self) -> String {
        let (title, command) = (self.text("title"), self.input("command").unwrap_or_default());
        let whole = if title.is_empty() || command.starts_with(title) { command } else { title };
        let mut lines = whole.trim().lines();
        let first = lines.next().unwrap_or_default();
        match lines.count() as u64 {
            0 => first.to_owned(),
            n => format!("{first} … +{}", words::count(n, "line", "lines")),
        }
    }

    fn path(&self) -> Option<&str> {
        let location = self.fields.get("locations").and_then(|it| it.get(0)?.get("path")?.as_str());
        location.or_else(|| self.input("file_path")).or_else(|| self.input("path"))
    }

    fn place(&self, cwd: &str) -> String {
        let place = self.path().map(|it| relative(it, cwd)).filter(|it| it != ".");
        place.map(|it| format!(" in {it}")).unwrap_or_default()
    }

    /// As the agent words it, without the code marks of Markdown.
    fn title(&self) -> String {
        let title = self.text("title");
        if title.is_empty() { self.id.clone() } else { title.replace('`', "") }
    }
}

/// A path as it is seen from the working folder.
pub fn relative(path: &str, cwd: &str) -> String {
    match path.strip_prefix(cwd) {
        Some("") => ".".to_owned(),
        Some(rest) => rest.strip_prefix('/').unwrap_or(path).to_owned(),
        None => path.to_owned(),
    }
}

/// Long texts keep their end, and the fence that they begin with.
fn shorten(content: &Value) -> Value {
    let mut res = content.clone();
    for it in res.as_array_mut().into_iter().flatten() {
        if let Some(Value::String(it)) = it.pointer_mut("/content/text")
            && it.len() > MAX_KEPT
        {
            let fence = it.lines().next().filter(|it| it.starts_with("```") && it.len() < MAX_FENCE);
            *it = format!("{}\n{}", fence.unwrap_or_default(), text::tail(it, MAX_KEPT));
        }
    }
    res
}
