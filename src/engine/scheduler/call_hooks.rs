//! Hooks around a tool call: before the decision, beside the question, and after the run.

use serde_json::{Map, Value, json};

use super::{
    BatchStatus, Scheduler,
    call::{AfterHooks, Call, CallState},
    checkpoints::run_hook,
    decide::decide,
    denials,
    session_tools::is_session_tool,
    toolbox::{CallContext, Toolbox},
};
use crate::{
    base::{
        content::{Part, joined_text},
        hook::{HookEvent, HookReport},
        ids::EffectId,
        tool::{Display, PolicyClass, Targets, ToolKind, ToolOutput},
    },
    engine::{
        hooks::{
            HookOutcome, HookVerdict,
            firing::{AnswerEffect, Firing, FiringStart},
            plugins::{PluginMoment, PluginPoint, Reply},
        },
        step::Effect,
    },
};

/// Calls that hooks may have made in one call's place, one after the other.
const MAX_TAILS: u8 = 5;

impl Call {
    /// The hooks see a call before anybody decides about it: they may change it.
    pub(super) fn run_before_hooks(&mut self, cx: &mut CallContext<'_, '_>) {
        match cx.tools.hooks.plugins.ask(PluginPoint::BeforeTool, PluginMoment::Call(&self.call)) {
            Some(Reply::Output(it)) => return self.end(cx.step, it),
            Some(Reply::Args(args @ Value::Object(_))) => self.call.args = args,
            _ => (),
        }
        self.fire_hooks(cx, HookEvent::BeforeTool, None, AfterHooks::Begin);
    }

    /// The hooks see what came of it.
    pub(super) fn run_after_hooks(&mut self, cx: &mut CallContext<'_, '_>, mut output: ToolOutput) {
        let points = [output.error.as_ref().map(|_| PluginPoint::OnToolError), Some(PluginPoint::AfterTool)];
        for point in points.into_iter().flatten() {
            let other = cx.tools.hooks.plugins.output(point, PluginMoment::Result(&self.call, &output));
            output = other.unwrap_or(output);
        }
        if !self.hook_effects.changed_args.is_empty() {
            let keys = std::mem::take(&mut self.hook_effects.changed_args).join(", ");
            let what = "were modified by a hook before execution.";
            append(&mut output, format!("\n\n[System] Tool input parameters ({keys}) {what}"));
        }
        let told = result_json(&output);
        self.fire_hooks(cx, HookEvent::AfterTool, Some(told), AfterHooks::End(Box::new(output)));
    }

    fn fire_hooks(
        &mut self,
        cx: &mut CallContext<'_, '_>,
        event: HookEvent,
        response: Option<Value>,
        then: AfterHooks,
    ) {
        let plan = cx.tools.hooks.plan(event, &self.call.name, &cx.step.record.switches);
        let input = if plan.hooks.is_empty() { Map::new() } else { self.input(cx.tools, response) };
        let held = self.checkpoint_owner(cx.tools);
        match Firing::begin(event, plan, input, |run| run_hook(cx.step, held.as_ref(), run)) {
            FiringStart::Waiting(firing) => {
                self.state = CallState::RunningHooks { firing: Box::new(firing), then };
            }
            // Nobody was asked, so nobody stopped anything.
            FiringStart::Finished(outcome) => _ = self.apply_hooks(cx, event, &outcome, then),
        }
    }

    fn input(&self, tools: &Toolbox, response: Option<Value>) -> Map<String, Value> {
        let name = self.call.name.as_str();
        let mut res = Map::new();
        res.insert("tool_name".to_owned(), name.into());
        res.insert("tool_input".to_owned(), self.call.args.clone());
        if let Some(it) = tools.foreign_tool(name) {
            let own = name.strip_prefix(&format!("mcp_{}_", it.server)).unwrap_or(name);
            res.insert("mcp_context".to_owned(), json!({ "server_name": it.server, "tool_name": own }));
        }
        if self.original_name != name {
            res.insert("original_request_name".to_owned(), self.original_name.as_str().into());
        }
        res.extend(response.map(|it| ("tool_response".to_owned(), it)));
        res
    }

    fn apply_hooks(
        &mut self,
        cx: &mut CallContext<'_, '_>,
        event: HookEvent,
        outcome: &HookOutcome,
        then: AfterHooks,
    ) -> BatchStatus {
        cx.step.log_hooks(event, outcome, None, false);
        if let Some(HookVerdict::Stop(why)) = &outcome.verdict {
            self.end(cx.step, denials::stopped_by_hook(why));
            return BatchStatus::HookStopped(why.clone());
        }
        match then {
            AfterHooks::Begin => self.apply_before_hooks(cx, outcome),
            AfterHooks::End(output) => self.apply_after_hooks(cx, outcome, *output),
        }
        BatchStatus::Open
    }

    fn apply_before_hooks(&mut self, cx: &mut CallContext<'_, '_>, outcome: &HookOutcome) {
        if let Some(HookVerdict::Block(why)) = &outcome.verdict {
            return self.end(cx.step, denials::blocked_by_hook(why));
        }
        // A guard that fails lets nothing pass unseen.
        let failed = (!outcome.failed.is_empty()).then(|| outcome.failed.join(" "));
        self.hook_effects.ask_reason =
            outcome.verdict.as_ref().map(|it| format!("A hook asks: {}", it.reason())).or(failed);
        if let (Some(input), Some(args)) = (outcome.changed_object("tool_input"), self.call.args.as_object_mut()) {
            let changed = input.iter().filter(|(name, value)| args.get(*name) != Some(*value));
            self.hook_effects.changed_args = changed.map(|(name, _)| name.clone()).collect();
            args.extend(input.clone());
        }
        self.resolve_targets(cx);
    }

    /// Looks at what the call would touch, or decides at once.
    pub(super) fn resolve_targets(&mut self, cx: &mut CallContext<'_, '_>) {
        if self.is_of(PolicyClass::Delegate) {
            return self.resolve_delegation(cx);
        }
        match is_session_tool(&self.call.name) {
            true => {
                self.apply_targets(cx.tools, &Targets::default(), &cx.step.record.cwd);
                decide(self, cx, Targets::default(), Vec::new());
            }
            false => {
                let effect = cx.step.start_effect(Effect::Resolve { call: self.call.clone() });
                self.state = CallState::Resolving { effect };
            }
        }
    }

    fn apply_after_hooks(&mut self, cx: &mut CallContext<'_, '_>, outcome: &HookOutcome, mut output: ToolOutput) {
        if let Some(verdict) = &outcome.verdict {
            return self.end(cx.step, denials::withheld_by_hook(verdict.reason()));
        }
        match outcome.tail_call() {
            Some(tail) if self.hook_effects.n_tails < MAX_TAILS => {
                self.hook_effects.n_tails += 1;
                return self.replace_with_tail(cx.tools, tail, &cx.step.record.cwd.clone());
            }
            Some(_) => cx.step.emit_notice("Hooks asked for too many calls in place of one; the last result counts."),
            None => (),
        }
        if let Some(context) = outcome.marked_context() {
            append(&mut output, format!("\n\n{context}"));
        }
        self.end(cx.step, output);
    }
}

/// Adds to what the model gets. A failure without content says its own words first.
fn append(output: &mut ToolOutput, text: String) {
    if let (Some(error), true) = (&output.error, output.content.is_empty()) {
        output.content.push(Part::text(&*error.message));
    }
    output.content.push(Part::text(text));
}

fn result_json(output: &ToolOutput) -> Value {
    let text = joined_text(&output.content);
    let shown = match (&output.display, &output.summary) {
        (Some(Display::Text { text } | Display::Terminal { text, .. }), _) => text.clone(),
        (Some(Display::Diff { path, before, after }), _) => diff(path.as_ref(), before.as_deref(), after),
        (None, Some(it)) => it.clone(),
        (None, None) => text.clone(),
    };
    let error = output.error.as_ref().map(|it| json!({ "type": it.kind, "message": it.message }));
    json!({ "llmContent": text, "returnDisplay": shown, "error": error })
}

fn diff(path: &std::path::Path, before: Option<&str>, after: &str) -> String {
    let name = path.display().to_string();
    let text = similar::TextDiff::from_lines(before.unwrap_or_default(), after);
    text.unified_diff().header(&name, &name).to_string()
}

impl Scheduler {
    /// A hook of a call has answered.
    pub(super) fn on_hook(
        &mut self,
        cx: &mut CallContext<'_, '_>,
        effect: EffectId,
        report: &HookReport,
    ) -> BatchStatus {
        for at in 0..self.notification_hooks.len() {
            let Some(aside) = self.notification_hooks.get_mut(at) else { break };
            match aside.take_report(effect, report, |run| cx.step.start_hook(run)) {
                AnswerEffect::Unrelated => (),
                AnswerEffect::Waiting => return BatchStatus::Open,
                AnswerEffect::Finished(outcome) => {
                    self.notification_hooks.remove(at);
                    cx.step.log_hooks(HookEvent::Notification, &outcome, None, false);
                    return BatchStatus::Open;
                }
            }
        }
        for call in &mut self.calls {
            let held = call.checkpoint_owner(cx.tools);
            let CallState::RunningHooks { firing, .. } = &mut call.state else { continue };
            let event = firing.event();
            let outcome = match firing.take_report(effect, report, |run| run_hook(cx.step, held.as_ref(), run)) {
                AnswerEffect::Unrelated => continue,
                AnswerEffect::Waiting => return BatchStatus::Open,
                AnswerEffect::Finished(it) => it,
            };
            let state = std::mem::replace(&mut call.state, CallState::Done);
            let CallState::RunningHooks { then, .. } = state else { return BatchStatus::Open };
            let standing = call.apply_hooks(cx, event, &outcome, then);
            return if standing == BatchStatus::Open { self.advance(cx) } else { standing };
        }
        BatchStatus::Open
    }

    /// The user was asked about a call, perhaps: who wants to know is told, and not waited for.
    pub(super) fn notify_hooks(&mut self, cx: &mut CallContext<'_, '_>, at: usize, shown: Option<&Display>) {
        let Some(call) = self.calls.get(at).filter(|it| it.state.is_asking() && !is_session_tool(&it.call.name)) else {
            return;
        };
        let plan = cx.tools.hooks.plan(HookEvent::Notification, "ToolPermission", &cx.step.record.switches);
        if plan.hooks.is_empty() {
            return;
        }
        let input = json!({
            "notification_type": "ToolPermission",
            "message": format!("Tool {} needs a permission", call.call.name),
            "details": details(call, cx.tools, shown),
        });
        let input = input.as_object().cloned().unwrap_or_default();
        if let FiringStart::Waiting(it) =
            Firing::begin(HookEvent::Notification, plan, input, |run| cx.step.start_hook(run))
        {
            self.notification_hooks.push(it);
        }
    }
}

/// The question in Gemini CLI's words.
fn details(call: &Call, tools: &Toolbox, shown: Option<&Display>) -> Value {
    let title = call.display.title.as_str();
    let name = call.call.name.as_str();
    let text = |key: &str| call.call.args.get(key).and_then(Value::as_str).unwrap_or_default();
    match (shown, call.display.kind, tools.foreign_tool(name)) {
        (Some(Display::Diff { path, before, after }), ..) => json!({
            "type": "edit",
            "title": title,
            "fileName": path.as_path().file_name().unwrap_or_default().to_string_lossy(),
            "filePath": path,
            "fileDiff": diff(path.as_ref(), before.as_deref(), after),
            "originalContent": before,
            "newContent": after,
        }),
        (_, ToolKind::Execute, None) => {
            let command = text("command");
            let root = command.split_whitespace().next().unwrap_or_default();
            json!({ "type": "exec", "title": title, "command": command, "rootCommand": root })
        }
        (_, _, Some(it)) => {
            let own = name.strip_prefix(&format!("mcp_{}_", it.server)).unwrap_or(name);
            json!({ "type": "mcp", "title": title, "serverName": it.server, "toolName": own, "toolDisplayName": it.spec.title })
        }
        _ => json!({ "type": "info", "title": title, "prompt": title, "urls": [] }),
    }
}
