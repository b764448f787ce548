//! Events of a sub-agent in the session that started it: activities of the call, and what they cost.

use serde_json::{Map, Value, json};

use super::{Scheduler, call::CallState};
use crate::{
    record::Step,
    session_tools::{complete_task, delegate, escalate},
};
use castor_base::{
    content::{Part, joined_text},
    event::{Activity, ActivityKind, AgentEvent, EventKind, NOTICE, ToolProgress},
    ids::EffectId,
    log::Fact,
    model::Purpose,
    peer_agent::{PEER_MEMORY, REPORTED_CALL, ReportedCall, ReportedState},
    text,
    tool::PolicyClass,
};

/// Most of one text of an activity, in bytes: the child's log has all of it.
const MAX_TEXT: usize = 1_000;

impl Scheduler {
    /// Tells whether a sub-agent of this turn is at work.
    pub fn runs_agents(&self) -> bool {
        let is_running = |it: &CallState| matches!(it, CallState::Running { .. });
        self.calls.iter().any(|it| is_running(&it.state) && it.is_of(PolicyClass::Delegate))
    }

    /// Takes an event of a call's sub-agent.
    pub(super) fn on_child_event(&mut self, step: &mut Step<'_>, effect: EffectId, event: &AgentEvent) {
        let is_it =
            |it: &&super::call::Call| it.state == CallState::Running { effect } && it.is_of(PolicyClass::Delegate);
        let Some(call) = self.calls.iter().find(is_it) else { return };
        if let EventKind::Usage { model, usage, size, cost, .. } = &event.kind {
            let session_cost = step.record.spent.cost_with(*cost);
            let (model, usage, size, cost) = (model.clone(), *usage, *size, *cost);
            return step.emit_event(EventKind::Usage {
                model,
                usage,
                size,
                purpose: Purpose::Subagent,
                cost,
                session_cost,
            });
        }
        if let EventKind::Custom { kind, data } = &event.kind
            && kind == PEER_MEMORY
        {
            let memory = data.get("memory").and_then(Value::as_str).unwrap_or_default().to_owned();
            return step.log(Fact::PeerMemory { agent: delegate::agent_name(&call.call).to_owned(), memory });
        }
        let Some((kind, data)) = activity(event) else { return };
        let agent_name = delegate::agent_name(&call.call).to_owned();
        let activity = Activity { is_subagent_activity_event: true, agent_name, kind, data };
        call.send_progress(step, ToolProgress::Activity { activity: Box::new(activity) });
    }
}

/// The activity that the session above sees of an event; `None`: nothing.
fn activity(event: &AgentEvent) -> Option<(ActivityKind, Map<String, Value>)> {
    let (kind, data) = match &event.kind {
        // Its result says the same.
        EventKind::ToolRequest { name, .. } | EventKind::ToolResponse { name, error: None, .. }
            if [complete_task::NAME, escalate::NAME].contains(&name.as_str()) =>
        {
            return None;
        }
        EventKind::Message { content, .. } => {
            let subject = content.iter().find_map(subject)?;
            (ActivityKind::ThoughtChunk, json!({ "text": subject }))
        }
        EventKind::ToolRequest { request_id, name, args, display, .. } => {
            let args = short(&args.to_string());
            let data = json!({ "name": name, "displayName": name, "description": short(&display.title), "args": args, "callId": request_id });
            (ActivityKind::ToolCallStart, data)
        }
        EventKind::ToolUpdate {
            request_id,
            update: ToolProgress::Started { display: Some(it) } | ToolProgress::Described { display: it },
        } => {
            let data = json!({ "description": short(&it.title), "callId": request_id });
            (ActivityKind::ToolCallStart, data)
        }
        EventKind::ToolResponse { request_id, name, error: Some(it), .. } => {
            let error = short(&it.message);
            (ActivityKind::Error, json!({ "error": error, "context": "tool_call", "name": name, "callId": request_id }))
        }
        EventKind::ToolResponse { request_id, name, content, .. } => (
            ActivityKind::ToolCallEnd,
            json!({ "name": name, "id": request_id, "output": short(&joined_text(content)) }),
        ),
        EventKind::Error { message, .. } => {
            (ActivityKind::Error, json!({ "error": short(message), "context": context(event) }))
        }
        EventKind::Custom { kind, data } if kind == REPORTED_CALL => {
            return serde_json::from_value(data.clone()).ok().map(reported);
        }
        EventKind::Custom { kind, data } if kind == NOTICE => {
            (ActivityKind::ThoughtChunk, json!({ "text": short(data.get("text")?.as_str()?) }))
        }
        _ => return None,
    };
    Some((kind, data.as_object().cloned().unwrap_or_default()))
}

/// A call that the agent made by itself: said to be its own word.
fn reported(it: ReportedCall) -> (ActivityKind, Map<String, Value>) {
    let (title, id) = (format!("reported: {}", short(&it.title)), it.id);
    let (kind, data) = match it.state {
        ReportedState::Pending | ReportedState::InProgress => {
            let data = json!({ "name": "", "displayName": title, "description": title, "args": "", "callId": id });
            (ActivityKind::ToolCallStart, data)
        }
        ReportedState::Completed => {
            (ActivityKind::ToolCallEnd, json!({ "name": title, "id": id, "output": short(&it.text) }))
        }
        ReportedState::Failed => {
            let error = if it.text.is_empty() { "it failed".to_owned() } else { short(&it.text) };
            (ActivityKind::Error, json!({ "error": error, "context": REPORTED_CALL, "name": title, "callId": id }))
        }
    };
    (kind, data.as_object().cloned().unwrap_or_default())
}

/// The place of an error.
fn context(event: &AgentEvent) -> &str {
    event.meta.get("code").and_then(Value::as_str).unwrap_or("run")
}

fn short(text: &str) -> String {
    text::head(text, MAX_TEXT).to_owned()
}

/// Models that say what a thought is about put it first, in bold.
fn subject(part: &Part) -> Option<String> {
    let Part::Thought { thought, .. } = part else { return None };
    let (subject, _) = thought.trim_start().strip_prefix("**")?.split_once("**")?;
    Some(text::first_line(subject, 200)).filter(|it| !it.is_empty())
}
