//! What the answers of all hooks of a point come to.

use serde_json::{Map, Value};

use super::{
    MAX_CONTEXT,
    said::{Said, Word},
};
use crate::base::{text, tool::TailCall};

/// The sum of a firing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    pub verdict: Option<Verdict>,
    /// For the model.
    pub context: Option<String>,
    /// The rest of `hookSpecificOutput`, merged.
    pub change: Map<String, Value>,
    /// For the user, a line or more each.
    pub notices: Vec<String>,
    /// Hooks that did not answer, and why: in words.
    pub failed: Vec<String>,
    /// Keys of those that were waited for in vain, for the first time.
    pub hung: Vec<String>,
    /// Keys of all that were told.
    pub ran: Vec<String>,
}

/// The strictest word of all hooks, with their reasons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Stop(String),
    Block(String),
    Ask(String),
}

impl Verdict {
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Stop(_) => "stop",
            Self::Block(_) => "block",
            Self::Ask(_) => "ask",
        }
    }

    pub fn reason(&self) -> &str {
        match self {
            Self::Stop(it) | Self::Block(it) | Self::Ask(it) => it,
        }
    }
}

impl Outcome {
    /// One more answer, in the hooks' order. `ignored`: what the event did not allow.
    pub(super) fn add(&mut self, key: &str, said: Said, ignored: Vec<String>) {
        let name = text::first_line(key, 100);
        self.ran.push(name.clone());
        self.notices.extend(said.found.map(|it| format!("Hook {name:?}: {it}")));
        let shown = said.message.clone().filter(|_| !said.silent);
        self.notices.extend(shown.map(|it| format!("Hook {name:?}: {it}")));
        self.notices.extend(ignored.into_iter().map(|it| format!("Hook {name:?}: {it}.")));
        if let Some(why) = said.failed {
            self.failed.push(format!("The hook {name:?} {why}."));
            self.hung.extend(said.hung.then(|| key.to_owned()));
            return;
        }
        let why = said.stop_reason.or(said.reason).or(said.message);
        let why = why.unwrap_or_else(|| "No reason provided".to_owned());
        let verdict = match said.word {
            _ if said.stops => Some(Verdict::Stop(why)),
            Word::Block => Some(Verdict::Block(why)),
            Word::Ask => Some(Verdict::Ask(why)),
            Word::Allow => None,
        };
        self.verdict = stricter(self.verdict.take(), verdict);
        for (name, value) in said.specific {
            match (name.as_str(), value) {
                ("additionalContext", Value::String(more)) => join_text(&mut self.context, &more),
                ("toolConfig", value) => choose_tools(&mut self.change, &value),
                (_, value) => merge(&mut self.change, name, value),
            }
        }
    }

    /// What was added for the model, in its mark and harmless in it.
    pub fn marked_context(&self) -> Option<String> {
        let text = self.context.as_deref()?.trim();
        let text = text::head(text, MAX_CONTEXT).replace('<', "&lt;").replace('>', "&gt;");
        (!text.is_empty()).then(|| format!("<hook_context>{text}</hook_context>"))
    }

    pub fn clears(&self) -> bool {
        self.change.get("clearContext") == Some(&Value::Bool(true))
    }

    /// An object that was changed.
    pub fn object(&self, name: &str) -> Option<&Map<String, Value>> {
        self.change.get(name).and_then(Value::as_object)
    }

    /// The call to make in this one's place.
    pub fn tail(&self) -> Option<TailCall> {
        let it = self.object("tailToolCallRequest")?;
        let args = it.get("args").cloned().unwrap_or_else(|| Value::Object(Map::new()));
        Some(TailCall { name: it.get("name")?.as_str()?.to_owned(), args })
    }

    /// Whether there is anything to tell of it later.
    pub fn says_something(&self) -> bool {
        self.verdict.is_some() || self.context.is_some() || !self.change.is_empty() || !self.failed.is_empty()
    }
}

/// Stop before block before ask; the reasons of the strictest are joined.
fn stricter(a: Option<Verdict>, b: Option<Verdict>) -> Option<Verdict> {
    let join = |a: String, b: String| format!("{a}\n{b}");
    match (a, b) {
        (Some(Verdict::Stop(a)), Some(Verdict::Stop(b))) => Some(Verdict::Stop(join(a, b))),
        (Some(it @ Verdict::Stop(_)), _) | (_, Some(it @ Verdict::Stop(_))) => Some(it),
        (Some(Verdict::Block(a)), Some(Verdict::Block(b))) => Some(Verdict::Block(join(a, b))),
        (Some(it @ Verdict::Block(_)), _) | (_, Some(it @ Verdict::Block(_))) => Some(it),
        (Some(Verdict::Ask(a)), Some(Verdict::Ask(b))) => Some(Verdict::Ask(join(a, b))),
        (it, None) | (None, it) => it,
    }
}

fn join_text(text: &mut Option<String>, more: &str) {
    match text {
        Some(it) => *it = format!("{it}\n{more}"),
        None => *text = Some(more.to_owned()),
    }
}

/// Objects that hooks change in part are merged; of everything else the last word counts.
pub(super) fn merge(all: &mut Map<String, Value>, name: String, value: Value) {
    let partial = matches!(name.as_str(), "tool_input" | "llm_request");
    match (all.get_mut(&name), value) {
        (Some(Value::Object(before)), Value::Object(more)) if partial => before.extend(more),
        (_, value) => _ = all.insert(name, value),
    }
}

/// `NONE` before `ANY` before `AUTO`; the names of all hooks, sorted.
fn choose_tools(all: &mut Map<String, Value>, value: &Value) {
    let rank = |it: &str| ["AUTO", "ANY", "NONE"].iter().position(|mode| *mode == it).unwrap_or_default();
    let before = all.get("toolConfig").cloned().unwrap_or_default();
    let mode = |it: &Value| it.get("mode").and_then(Value::as_str).map(str::to_ascii_uppercase).unwrap_or_default();
    let mode = [mode(&before), mode(value)].into_iter().max_by_key(|it| rank(it)).unwrap_or_default();
    let mode = if rank(&mode) == 0 { "AUTO" } else { &mode };
    let names = |it: &Value| it.get("allowedFunctionNames").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut names: Vec<Value> = names(&before).into_iter().chain(names(value)).filter(Value::is_string).collect();
    names.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
    names.dedup();
    if mode == "NONE" {
        names.clear();
    }
    let config = serde_json::json!({ "mode": mode, "allowedFunctionNames": names });
    all.insert("toolConfig".to_owned(), config);
}
