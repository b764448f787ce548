//! One hook's answer: parsed from its exit code and output.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::MAX_USER_TEXT;
use castor_base::{
    ansi,
    hook::{Hook, HookEnd, HookEvent, HookReport},
    state::StateDelta,
    text,
};

/// The member of `hookSpecificOutput` that all events have: new values of the session's state.
pub(super) const STATE_DELTA: &str = "stateDelta";

/// A hook's answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct HookAnswer {
    pub decision: HookDecision,
    /// `continue: false`.
    pub stops: bool,
    pub stop_reason: Option<String>,
    pub reason: Option<String>,
    pub message: Option<String>,
    pub silent: bool,
    pub specific: Map<String, Value>,
    /// The reason why it does not count as an answer.
    pub failed: Option<String>,
    /// It was waited for in vain.
    pub timed_out: bool,
    /// The finding on configuration that changed while it ran.
    pub config_finding: Option<String>,
    /// It exited with 0: what it changed goes on to the next one.
    pub exited_ok: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum HookDecision {
    #[default]
    Allow,
    Ask,
    Block,
}

impl HookAnswer {
    /// Tells whether it decides or changes anything.
    pub fn says_something(&self) -> bool {
        self.decision != HookDecision::Allow || self.stops || !self.specific.is_empty()
    }

    /// Tells whether it is missing where a call could run.
    pub fn fails_closed(&self, event: HookEvent) -> bool {
        self.failed.is_some() && event.row().powers.ask
    }
}

pub(super) fn read_answer(hook: &Hook, report: &HookReport) -> HookAnswer {
    HookAnswer { config_finding: report.sandbox_note.clone(), ..answer(hook, report) }
}

fn answer(hook: &Hook, report: &HookReport) -> HookAnswer {
    let failed = |why: String| HookAnswer { failed: Some(why), ..HookAnswer::default() };
    let code = match &report.end {
        HookEnd::Exit(code) => *code,
        HookEnd::Signal(name) => return failed(format!("was ended by {name}")),
        HookEnd::TimedOut => {
            // A client may be slow once; what it is asked about is its own matter.
            let off = if hook.is_of_client() { "" } else { " and is off in this session" };
            let why = format!("did not answer within {} ms{off}", hook.timeout_ms);
            return HookAnswer { timed_out: !hook.is_of_client(), ..failed(why) };
        }
        HookEnd::TooMuchOutput => return failed("printed too much".to_owned()),
        HookEnd::NotStarted(why) if hook.is_of_client() => return failed(why.clone()),
        HookEnd::NotStarted(why) => return failed(format!("could not be started: {why}")),
    };
    let text = match without_bom(&report.stdout) {
        "" => without_bom(&report.stderr),
        it => it,
    };
    let said = match object(text) {
        Some(it) => from_object(&it),
        // It meant to say something, and nobody knows what.
        None if matches!(code, 0 | 1) && holds_answer(text) => failed("printed JSON that cannot be read".to_owned()),
        None => from_text(code, text),
    };
    let decided = said.decision != HookDecision::Allow || said.stops || said.failed.is_some();
    // Codes above 1 are a no, whatever else was printed, or nothing.
    let said = match matches!(code, 0 | 1) || decided {
        true => said,
        false => HookAnswer { decision: HookDecision::Block, ..said },
    };
    HookAnswer { exited_ok: code == 0 && said.failed.is_none(), ..said }
}

/// Programs of some systems put a mark of their encoding in front of what they print.
fn without_bom(text: &str) -> &str {
    text.trim().trim_start_matches('\u{feff}').trim_start()
}

/// Tells whether words that are no answer as a whole hold one, or may: JSON that is broken, that stands in a list or
/// among lines of a log, or text in an encoding of 16 bits.
fn holds_answer(text: &str) -> bool {
    let holds = |it: &str| serde_json::from_str(it.trim()).is_ok_and(|it| is_answer(&it));
    let rests = || text.match_indices("\n{").filter_map(|it| text.get(it.0 + 1..));
    text.starts_with('{') || text.contains('\0') || holds(text) || text.lines().any(holds) || rests().any(holds)
}

fn is_answer(it: &Value) -> bool {
    match it {
        Value::Object(it) => ["decision", "continue", "hookSpecificOutput"].iter().any(|key| it.contains_key(*key)),
        Value::Array(items) => items.iter().any(is_answer),
        _ => false,
    }
}

/// JSON, also as JSON in a JSON text.
fn object(text: &str) -> Option<Map<String, Value>> {
    let value: Value = serde_json::from_str(text).ok()?;
    let value = match value {
        Value::String(inner) => serde_json::from_str(&inner).ok()?,
        it => it,
    };
    match value {
        Value::Object(it) => Some(it),
        _ => None,
    }
}

fn from_text(code: i32, text: &str) -> HookAnswer {
    let words = (!text.is_empty()).then(|| plain(text));
    match code {
        0 => HookAnswer { message: words, ..HookAnswer::default() },
        1 => HookAnswer { message: words.map(|it| format!("Warning: {it}")), ..HookAnswer::default() },
        _ => {
            let reason = words.unwrap_or_else(|| format!("exit code {code}"));
            HookAnswer { decision: HookDecision::Block, reason: Some(reason), ..HookAnswer::default() }
        }
    }
}

fn from_object(it: &Map<String, Value>) -> HookAnswer {
    let words = |key: &str| it.get(key).and_then(Value::as_str).map(plain).filter(|it| !it.is_empty());
    let flag = |key: &str| it.get(key).and_then(Value::as_bool);
    let mut specific = it.get("hookSpecificOutput").and_then(Value::as_object).cloned().unwrap_or_default();
    specific.shift_remove("hookEventName");
    let mut res = HookAnswer {
        stops: flag("continue") == Some(false),
        stop_reason: words("stopReason"),
        reason: words("reason"),
        message: words("systemMessage"),
        silent: flag("suppressOutput").unwrap_or_default(),
        ..HookAnswer::default()
    };
    // Scripts that were written for Claude Code say it here: a no must not get lost on the way.
    let there = specific.shift_remove("permissionDecision");
    if let Some(Value::String(why)) = specific.shift_remove("permissionDecisionReason") {
        res.reason = res.reason.or_else(|| Some(plain(&why)));
    }
    if let Some(input) = specific.shift_remove("updatedInput") {
        specific.entry("tool_input").or_insert(input);
    }
    for said in [it.get("decision"), there.as_ref()].into_iter().flatten().filter(|it| !it.is_null()) {
        match said.as_str() {
            Some("allow" | "approve") => (),
            Some("ask") => res.decision = res.decision.max(HookDecision::Ask),
            Some("block" | "deny") => res.decision = HookDecision::Block,
            _ => res.failed = Some("said a decision that is none of allow, ask, block and deny".to_owned()),
        }
    }
    res.specific = specific;
    res
}

/// For people: no control characters, and not endless.
pub(super) fn plain(text: &str) -> String {
    let text = ansi::plain(text).0;
    let shown: String = text.chars().filter(|it| !it.is_control() || matches!(it, '\n' | '\t')).collect();
    match text::head(shown.trim(), MAX_USER_TEXT) {
        it if it.len() < shown.trim().len() => format!("{it}…"),
        it => it.to_owned(),
    }
}

/// Takes away what the event does not allow; returns what that was, in words.
pub(super) fn drop_disallowed(event: HookEvent, said: &mut HookAnswer) -> Vec<String> {
    let (powers, mut res) = (event.row().powers, Vec::new());
    let no = |what: &str| format!("{} cannot {what}; ignored", event.as_str());
    let over = match said.decision {
        HookDecision::Block => !powers.block,
        HookDecision::Ask => !powers.ask,
        HookDecision::Allow => false,
    };
    if over {
        res.push(no(if said.decision == HookDecision::Ask { "ask" } else { "block" }));
        // Why it would have is worth showing.
        said.message = said.message.take().or_else(|| said.reason.take());
        said.decision = HookDecision::Allow;
    }
    if said.stops && !powers.stop {
        res.push(no("stop"));
        said.stops = false;
    }
    let known = |name: &str, it: &Value| {
        if name == STATE_DELTA {
            return StateDelta::deserialize(it).is_ok_and(|it| it.check().is_ok());
        }
        let fits = match name {
            "additionalContext" | "prompt" | "response" => it.is_string(),
            "clearContext" => it.is_boolean(),
            _ => it.is_object(),
        };
        powers.specific.contains(&name) && fits
    };
    for name in said.specific.iter().filter(|(name, it)| !known(name, it)).map(|(name, _)| name) {
        res.push(no(&format!("take this `{}`", text::first_line(name, 100))));
    }
    said.specific.retain(|name, it| known(name, it));
    res
}
