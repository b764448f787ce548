//! The combined outcome of all hooks at one point.

use serde_json::{Map, Value};

use super::{
    MAX_CONTEXT,
    answer::{HookAnswer, HookDecision, STATE_DELTA},
};
use castor_base::{
    hook::{Hook, HookEvent},
    state::StateDelta,
    text,
    tool::TailCall,
};

/// The sum of a firing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HookOutcome {
    pub verdict: Option<HookVerdict>,
    /// For the model.
    pub context: Option<String>,
    /// The rest of `hookSpecificOutput`, merged.
    pub change: Map<String, Value>,
    /// The change of the session's state.
    pub state: StateDelta,
    /// For the user.
    pub notices: Vec<HookNotice>,
    /// Hooks that did not answer, and why: in words.
    pub failed: Vec<String>,
    /// Keys of those that were waited for in vain, for the first time.
    pub timed_out: Vec<String>,
    /// Keys of all that were told.
    pub ran: Vec<String>,
}

/// A hook's word to the user, a line or more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookNotice {
    pub hook: String,
    pub text: String,
}

/// The strictest word of all hooks, with their reasons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookVerdict {
    Stop(String),
    Block(String),
    Ask(String),
}

impl HookVerdict {
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

impl HookOutcome {
    /// One more answer, in the hooks' order. `ignored`: what the event did not allow.
    pub(super) fn add(&mut self, (event, hook): (HookEvent, &Hook), said: HookAnswer, ignored: Vec<String>) {
        let (key, fails_closed) = (hook.key(), said.fails_closed(event));
        let name = text::first_line(key, 100);
        self.ran.push(name.clone());
        let shown = said.message.clone().filter(|_| !said.silent);
        let texts = said.config_finding.into_iter().chain(shown).chain(ignored.into_iter().map(|it| format!("{it}.")));
        let what = if hook.is_of_client() { "Interceptor" } else { "Hook" };
        let notice = |it| HookNotice { hook: name.clone(), text: format!("{what} {name:?}: {it}") };
        self.notices.extend(texts.map(notice));
        if let Some(why) = said.failed {
            let what = if hook.is_of_client() { "interceptor" } else { "hook" };
            let failed = format!("The {what} {name:?} {why}.");
            if hook.is_of_client() && fails_closed {
                self.verdict = stricter(self.verdict.take(), Some(HookVerdict::Block(failed.clone())));
            }
            self.failed.push(failed);
            self.timed_out.extend(said.timed_out.then(|| key.to_owned()));
            return;
        }
        let why = said.stop_reason.or(said.reason).or(said.message);
        let why = why.unwrap_or_else(|| "No reason provided".to_owned());
        let verdict = match said.decision {
            _ if said.stops => Some(HookVerdict::Stop(why)),
            HookDecision::Block => Some(HookVerdict::Block(why)),
            HookDecision::Ask => Some(HookVerdict::Ask(why)),
            HookDecision::Allow => None,
        };
        self.verdict = stricter(self.verdict.take(), verdict);
        for (name, value) in said.specific {
            match (name.as_str(), value) {
                ("additionalContext", Value::String(more)) => join_text(&mut self.context, &more),
                (STATE_DELTA, value) => self.state.extend(serde_json::from_value(value).unwrap_or_default()),
                ("toolConfig", value) => choose_tools(&mut self.change, &value),
                (_, value) => merge(&mut self.change, name, value),
            }
        }
    }

    /// The context that hooks added for the model, in its mark and harmless in it.
    pub fn marked_context(&self) -> Option<String> {
        let text = self.context.as_deref()?.trim();
        let text = text::head(text, MAX_CONTEXT).replace('<', "&lt;").replace('>', "&gt;");
        (!text.is_empty()).then(|| format!("<hook_context>{text}</hook_context>"))
    }

    pub fn clears_context(&self) -> bool {
        self.change.get("clearContext") == Some(&Value::Bool(true))
    }

    /// An object that was changed.
    pub fn changed_object(&self, name: &str) -> Option<&Map<String, Value>> {
        self.change.get(name).and_then(Value::as_object)
    }

    /// A text that was changed.
    pub fn changed_text(&self, name: &str) -> Option<&str> {
        self.change.get(name).and_then(Value::as_str)
    }

    /// The call to make in this one's place.
    pub fn tail_call(&self) -> Option<TailCall> {
        let it = self.changed_object("tailToolCallRequest")?;
        let args = it.get("args").cloned().unwrap_or_else(|| Value::Object(Map::new()));
        Some(TailCall { name: it.get("name")?.as_str()?.to_owned(), args })
    }

    /// Tells whether there is anything to tell of it later.
    pub fn is_reportable(&self) -> bool {
        self.verdict.is_some() || self.context.is_some() || !self.change.is_empty() || !self.failed.is_empty()
    }
}

/// Stop before block before ask; the reasons of the strictest are joined.
fn stricter(a: Option<HookVerdict>, b: Option<HookVerdict>) -> Option<HookVerdict> {
    let join = |a: String, b: String| format!("{a}\n{b}");
    match (a, b) {
        (Some(HookVerdict::Stop(a)), Some(HookVerdict::Stop(b))) => Some(HookVerdict::Stop(join(a, b))),
        (Some(it @ HookVerdict::Stop(_)), _) | (_, Some(it @ HookVerdict::Stop(_))) => Some(it),
        (Some(HookVerdict::Block(a)), Some(HookVerdict::Block(b))) => Some(HookVerdict::Block(join(a, b))),
        (Some(it @ HookVerdict::Block(_)), _) | (_, Some(it @ HookVerdict::Block(_))) => Some(it),
        (Some(HookVerdict::Ask(a)), Some(HookVerdict::Ask(b))) => Some(HookVerdict::Ask(join(a, b))),
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
    let partial = matches!(name.as_str(), "tool_input" | "llm_request" | "tool_response");
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
