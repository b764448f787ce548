//! `_castor/intercept`: the points at which a client has a say, the requests there, and its answers.

use std::collections::BTreeSet;

use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::acp::own::{policy::PolicyMethod, state::StateMethod};
use crate::jsonrpc::message::RpcError;
use castor_base::{
    hook::{Hook, HookEnd, HookEvent, HookReport, HookRun, HookSource, HookSubject, POINTS},
    ids::{SessionId, StreamId, ThreadId},
};

pub const METHOD: &str = "_castor/intercept";
/// How long castor waits for an answer, unless the client says otherwise, and at most. In milliseconds.
const TIMEOUT_MS: u64 = 10_000;
const MAX_TIMEOUT_MS: u64 = 600_000;
/// Most interceptors of a client.
const MAX_INTERCEPTORS: usize = 64;

/// A point, or all that can be said of it.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum InterceptorParam {
    /// The name of a point.
    Point(String),
    Interceptor(InterceptorParams),
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InterceptorParams {
    /// The name of a point.
    point: String,
    /// Tells interceptors of one point apart. [default: the point's name]
    name: Option<String>,
    /// As of a hook: an expression that the tool's name contains, or the type of an event.
    matcher: Option<String>,
    /// It only listens: castor does not wait for its answer.
    #[serde(default)]
    observes: bool,
    /// How long castor waits for the answer. [default: 10000]
    #[schemars(range(min = 1, max = MAX_TIMEOUT_MS))]
    timeout_ms: Option<u64>,
}

/// Reads `clientCapabilities._meta.castor.intercepts`.
///
/// # Errors
/// One line that names what is wrong.
pub fn read_interceptors(value: &Value) -> Result<Vec<Hook>, String> {
    let wrong = |why: String| format!("clientCapabilities._meta.castor.intercepts: {why}");
    let all = value.as_array().ok_or_else(|| wrong("send a list of points".to_owned()))?;
    if all.len() > MAX_INTERCEPTORS {
        return Err(wrong(format!("{MAX_INTERCEPTORS} are the most; send fewer")));
    }
    let (mut res, mut seen) = (Vec::new(), BTreeSet::new());
    for it in all {
        let hook = read_interceptor(it).map_err(wrong)?;
        if !seen.insert((hook.event, hook.command.clone())) {
            return Err(wrong(format!("two of {} are named {:?}; give each a name", point(hook.event), hook.command)));
        }
        res.push(hook);
    }
    Ok(res)
}

fn read_interceptor(it: &Value) -> Result<Hook, String> {
    let params = match it {
        Value::String(point) => {
            InterceptorParams { point: point.clone(), name: None, matcher: None, observes: false, timeout_ms: None }
        }
        it => InterceptorParams::deserialize(it).map_err(|it| it.to_string())?,
    };
    let InterceptorParams { point, name, matcher, observes, timeout_ms } = params;
    let Some((_, event)) = POINTS.iter().find(|(it, _)| *it == point) else {
        let known: Vec<&str> = POINTS.iter().map(|it| it.0).collect();
        return Err(format!("unknown point {point:?}; choose of {}", known.join(", ")));
    };
    if let (HookSubject::Tool, Some(Err(why))) = (event.row().subject, matcher.as_deref().map(Regex::new)) {
        // As of a hook it would match nothing, and calls would run unheard.
        return Err(format!("the matcher of {point} is no regular expression: {why}"));
    }
    let name = name.filter(|it| !it.trim().is_empty()).unwrap_or(point);
    let timeout_ms = timeout_ms.unwrap_or(TIMEOUT_MS);
    if !(1..=MAX_TIMEOUT_MS).contains(&timeout_ms) {
        return Err(format!("timeoutMs {timeout_ms} is not between 1 and {MAX_TIMEOUT_MS}"));
    }
    Ok(Hook {
        event: *event,
        matcher,
        sequential: false,
        observes,
        command: name.clone(),
        name: Some(name),
        description: None,
        timeout_ms,
        env: Vec::new(),
        source: HookSource::Client,
        scripts: Vec::new(),
        sandbox: Default::default(),
    })
}

fn point(event: HookEvent) -> &'static str {
    POINTS.iter().find(|(_, it)| *it == event).map_or(event.as_str(), |it| it.0)
}

/// Methods of clients that are hosts, by name.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
pub(in crate::acp) struct HostMethods {
    /// Asks what is to happen at a point of a turn that the client named in `_meta.castor.intercepts`.
    #[serde(rename = "_castor/intercept")]
    intercept: Option<InterceptMethod>,
    /// Says what castor's policy would decide about a call; castor asks the same of clients with `_meta.castor.policy`.
    #[serde(rename = "_castor/policy/evaluate")]
    policy: Option<PolicyMethod>,
    #[serde(rename = "_castor/session/state")]
    state: Option<StateMethod>,
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
struct InterceptMethod {
    params: Option<InterceptRequest>,
    result: Option<InterceptAnswer>,
}

/// What the client is asked.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InterceptRequest {
    /// The user's session, also where a sub-agent of it is at work.
    session_id: SessionId,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_id: Option<StreamId>,
    /// Of a sub-agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    thread_id: Option<ThreadId>,
    /// Of a sub-agent: the agents from the main one down to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    principal_path: Vec<String>,
    point: &'static str,
    /// The interceptor's name.
    interceptor: String,
    /// What castor tells a hook of this point.
    payload: Map<String, Value>,
}

impl InterceptRequest {
    pub fn new(session: &SessionId, run: &HookRun) -> Self {
        let place = run.place.clone();
        Self {
            session_id: session.root(),
            stream_id: place.as_ref().map(|it| it.stream.clone()),
            thread_id: place.as_ref().and_then(|it| it.thread.clone()),
            principal_path: place.map(|it| it.principal_path).unwrap_or_default(),
            point: point(run.hook.event),
            interceptor: run.hook.key().to_owned(),
            payload: run.input.clone(),
        }
    }
}

/// The client's answer.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct InterceptAnswer {
    action: InterceptAction,
    /// What a hook of this point may say in `hookSpecificOutput`.
    #[serde(default)]
    modifications: Option<Map<String, Value>>,
    /// Why it blocks: the model or the user reads it.
    #[serde(default)]
    reason: Option<String>,
    #[serde(default, rename = "_meta")]
    #[allow(dead_code, reason = "nothing of it is known")]
    meta: Option<Map<String, Value>>,
}

#[derive(Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "lowercase")]
enum InterceptAction {
    Proceed,
    Block,
}

/// An answer in the form of a hook's. What answers in the place of a model or an agent keeps it from being asked.
pub fn report(event: HookEvent, outcome: Result<Value, RpcError>) -> HookReport {
    let failed = |why: String| HookReport::from_end(HookEnd::NotStarted(why));
    let value = match outcome {
        Ok(it) => it,
        Err(it) => return failed(format!("answered with an error: {}", it.message)),
    };
    let InterceptAnswer { action, modifications, reason, .. } = match serde_json::from_value(value) {
        Ok(it) => it,
        Err(why) => return failed(format!("gave an answer that cannot be read: {why}")),
    };
    let modifications = modifications.unwrap_or_default();
    if modifications.get("tool_input").is_some_and(|it| !it.is_object()) {
        return failed("gave an answer that cannot be read: tool_input must be an object".to_owned());
    }
    let answers = event.substitute().is_some_and(|it| modifications.contains_key(it));
    let mut said = json!({ "hookSpecificOutput": modifications });
    if action == InterceptAction::Block || answers {
        let reason = reason.unwrap_or_else(|| "the client's interceptor blocked it".to_owned());
        said = json!({ "decision": "block", "reason": reason, "hookSpecificOutput": modifications });
    }
    HookReport { stdout: said.to_string(), ..HookReport::from_end(HookEnd::Exit(0)) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{read_interceptors, report};
    use castor_base::hook::HookEvent;

    #[test]
    fn what_is_no_interceptor_is_refused_by_name() {
        let many: Vec<Value> = (0..65).map(|it| json!({ "point": "on_event", "name": it.to_string() })).collect();
        for (value, why) in [
            (json!({}), "send a list"),
            (json!(["before_lunch"]), "unknown point \"before_lunch\"; choose of on_user_message, before_run"),
            (json!([{ "point": "before_tool", "when": 1 }]), "unknown field `when`"),
            (json!([{ "point": "before_tool", "timeoutMs": 0 }]), "timeoutMs 0 is not between 1 and 600000"),
            (json!(["before_tool", "before_tool"]), "two of before_tool are named \"before_tool\""),
            (
                json!([{ "point": "before_tool", "matcher": "(" }]),
                "the matcher of before_tool is no regular expression",
            ),
            (json!([5]), "invalid type"),
            (json!(many), "64 are the most"),
        ] {
            let said = read_interceptors(&value).unwrap_err();
            assert!(said.starts_with("clientCapabilities._meta.castor.intercepts: ") && said.contains(why), "{said}");
        }
        let two = read_interceptors(&json!(["before_tool", { "point": "before_tool", "name": "b" }])).unwrap();
        assert_eq!(two.iter().map(|it| it.key()).collect::<Vec<_>>(), ["before_tool", "b"]);
    }

    #[test]
    fn answers_are_those_of_hooks() {
        let said = |event, answer: Value| {
            let it = report(event, Ok(answer));
            format!("{:?} {}", it.end, it.stdout)
        };
        let llm = json!({ "action": "proceed", "modifications": { "llm_response": { "text": "x" } } });
        let block = json!({ "action": "block", "reason": "no" });
        for (event, answer, expected) in [
            (HookEvent::BeforeTool, json!({ "action": "proceed" }), r#"Exit(0) {"hookSpecificOutput":{}}"#),
            (HookEvent::BeforeTool, block, r#"Exit(0) {"decision":"block","reason":"no","hookSpecificOutput":{}}"#),
            (HookEvent::AfterModel, llm.clone(), r#"Exit(0) {"hookSpecificOutput":{"llm_response":{"text":"x"}}}"#),
            (
                HookEvent::BeforeTool,
                json!({ "action": "proceed", "modifications": { "tool_input": [1] } }),
                "NotStarted(",
            ),
            (HookEvent::BeforeTool, json!({ "action": "go" }), "NotStarted("),
            (HookEvent::BeforeTool, json!({ "action": "proceed", "modify": 1 }), "NotStarted("),
            (HookEvent::BeforeTool, json!(null), "NotStarted("),
        ] {
            let said = said(event, answer);
            assert!(said.starts_with(expected), "{said}");
        }
        assert!(said(HookEvent::BeforeModel, llm).contains("\"decision\":\"block\""));
    }
}
