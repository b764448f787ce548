//! Hooks around a tool call: before the decision, and after the run.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::{
    BatchStatus, Scheduler,
    call::{AfterHooks, Call, CallState, HookedPart, Reviews},
    checkpoints::run_hook,
    decide::{decide, in_lines},
    denials,
    toolbox::{CallContext, Toolbox},
};
use crate::{
    hooks::{
        HookOutcome, HookVerdict,
        firing::{AnswerEffect, Firing, FiringStart},
    },
    session_tools::is_session_tool,
    step::Effect,
};
use castor_base::{
    content::{Part, joined_text},
    hook::{HookEvent, HookReport},
    ids::EffectId,
    patch, path_text,
    tool::{Display, PolicyClass, Targets, ToolOutput},
};

/// Calls that hooks may have made in one call's place, one after the other.
pub(super) const MAX_TAILS: u8 = 5;

impl Call {
    /// The hooks see a call before anybody decides about it: they may change it.
    pub(super) fn run_before_hooks(&mut self, cx: &mut CallContext<'_, '_>) {
        self.fire_hooks(cx, HookEvent::BeforeTool, AfterHooks::Begin, HookedPart::Call);
    }

    /// The hooks see what came of it: first those of failures, if it failed.
    pub(super) fn run_after_hooks(&mut self, cx: &mut CallContext<'_, '_>, output: ToolOutput) {
        match output.error {
            Some(_) => {
                let then = AfterHooks::Failed(Box::new(output));
                self.fire_hooks(cx, HookEvent::OnToolError, then, HookedPart::Call);
            }
            None => self.run_result_hooks(cx, output),
        }
    }

    fn run_result_hooks(&mut self, cx: &mut CallContext<'_, '_>, mut output: ToolOutput) {
        if !self.hook_effects.changed_args.is_empty() {
            let keys = std::mem::take(&mut self.hook_effects.changed_args).join(", ");
            let what = "were modified by a hook before execution.";
            append(&mut output, format!("\n\n[System] Tool input parameters ({keys}) {what}"));
        }
        self.fire_hooks(cx, HookEvent::AfterTool, AfterHooks::End(Box::new(output)), HookedPart::Call);
    }

    fn fire_hooks(&mut self, cx: &mut CallContext<'_, '_>, event: HookEvent, then: AfterHooks, subject: HookedPart) {
        let (hooks, switches) = (&cx.tools.hooks, &cx.step.record.switches);
        let mut plan = match subject {
            HookedPart::Call => hooks.plan(event, &self.call.name, switches),
            HookedPart::File(_) => hooks.plan_for_file(event, switches),
        };
        let is_heard = !plan.hooks.is_empty() || !plan.observers.is_empty();
        let response = then.output().map(result_json);
        let input = if is_heard { self.input(cx.tools, subject, response) } else { Map::new() };
        cx.step.tell_hooks(std::mem::take(&mut plan.observers), &input);
        let held = self.checkpoint_owner(cx.tools);
        match Firing::begin(event, plan, input, |run| run_hook(cx.step, held.as_ref(), run)) {
            FiringStart::Waiting(firing) => {
                self.state = CallState::RunningHooks { firing: Box::new(firing), then, subject };
            }
            // Nobody was asked, so nobody stopped anything.
            FiringStart::Finished(outcome) => _ = self.apply_hooks(cx, (event, subject), &outcome, then),
        }
    }

    /// Hooks that name the tools for single files are told of each file of a patch. What is left to be done, where none is
    /// told any more.
    fn fire_for_next_file(
        &mut self,
        cx: &mut CallContext<'_, '_>,
        (event, subject): (HookEvent, HookedPart),
        then: AfterHooks,
    ) -> Option<AfterHooks> {
        let next = if let HookedPart::File(it) = subject { it + 1 } else { 0 };
        let is_told = || {
            let plan = cx.tools.hooks.plan_for_file(event, &cx.step.record.switches);
            !plan.hooks.is_empty() || !plan.observers.is_empty() || !plan.timed_out.is_empty()
        };
        if !self.traits.is_patch || !is_told() || next >= patch::file_calls(&self.call.args).len() {
            return Some(then);
        }
        self.fire_hooks(cx, event, then, HookedPart::File(next));
        None
    }

    fn input(&self, tools: &Toolbox, subject: HookedPart, response: Option<Value>) -> Map<String, Value> {
        let name = self.call.name.as_str();
        let mut res = Map::new();
        if let HookedPart::File(nth) = subject {
            let file = patch::file_calls(&self.call.args).into_iter().nth(nth);
            res.extend(file.iter().map(|it| ("tool_name".to_owned(), it.tool.into())));
            res.extend(file.map(|it| ("tool_input".to_owned(), it.args)));
            res.insert("original_request_name".to_owned(), name.into());
            res.extend(response.map(|it| ("tool_response".to_owned(), it)));
            return res;
        }
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
        (event, subject): (HookEvent, HookedPart),
        outcome: &HookOutcome,
        then: AfterHooks,
    ) -> BatchStatus {
        cx.step.log_hooks(event, outcome, None, false);
        if let Some(HookVerdict::Stop(why)) = &outcome.verdict {
            self.end(cx.step, denials::stopped_by_hook(why));
            return BatchStatus::HookStopped(why.clone());
        }
        match then {
            AfterHooks::Begin => self.apply_before_hooks(cx, outcome, subject),
            AfterHooks::Failed(output) => self.apply_failure_hooks(cx, outcome, (subject, *output)),
            AfterHooks::End(output) => self.apply_after_hooks(cx, outcome, (subject, *output)),
        }
        BatchStatus::Open
    }

    fn apply_before_hooks(&mut self, cx: &mut CallContext<'_, '_>, outcome: &HookOutcome, subject: HookedPart) {
        if let Some(HookVerdict::Block(why)) = &outcome.verdict {
            return self.end(cx.step, denials::blocked_by_hook(why));
        }
        // A guard that fails lets nothing pass unseen.
        let failed = (!outcome.failed.is_empty()).then(|| outcome.failed.join(" "));
        let asks = outcome.verdict.as_ref().map(|it| format!("A hook asks: {}", it.reason())).or(failed);
        self.hook_effects.ask_reason = in_lines(self.hook_effects.ask_reason.take().into_iter().chain(asks));
        if subject != HookedPart::Call && outcome.changed_object("tool_input").is_some() {
            return self.end(cx.step, denials::file_changed_by_hook());
        }
        if let (Some(input), Some(args)) = (outcome.changed_object("tool_input"), self.call.args.as_object_mut()) {
            let changed = input.iter().filter(|(name, value)| args.get(*name) != Some(*value));
            self.hook_effects.changed_args = changed.map(|(name, _)| name.clone()).collect();
            args.extend(input.clone());
        }
        if self.fire_for_next_file(cx, (HookEvent::BeforeTool, subject), AfterHooks::Begin).is_some() {
            self.resolve_targets(cx);
        }
    }

    /// Looks at what the call would touch, or decides at once.
    pub(super) fn resolve_targets(&mut self, cx: &mut CallContext<'_, '_>) {
        if self.is_of(PolicyClass::Delegate) {
            return self.resolve_delegation(cx);
        }
        if self.decide_at_host(cx) {
            return;
        }
        match is_session_tool(&self.call.name) {
            true => {
                self.apply_targets(cx.tools, &Targets::default(), &cx.step.record.cwd);
                decide(self, cx, Targets::default(), Reviews::default());
            }
            false => {
                let (call, sandbox_grant) = (self.call.clone(), Box::new(self.standing_rights(cx)));
                let effect = cx.step.start_effect(Effect::Resolve { call, sandbox_grant });
                self.state = CallState::Resolving { effect };
            }
        }
    }

    fn apply_failure_hooks(
        &mut self,
        cx: &mut CallContext<'_, '_>,
        outcome: &HookOutcome,
        (subject, mut output): (HookedPart, ToolOutput),
    ) {
        if let Some(verdict) = &outcome.verdict {
            return self.end(cx.step, denials::withheld_by_hook(verdict.reason()));
        }
        if let Some(said) = outcome.changed_object("tool_response")
            && replace_output(&mut output, said)
        {
            output.error = None;
            return self.run_result_hooks(cx, output);
        }
        let then = AfterHooks::Failed(Box::new(output));
        if let Some(AfterHooks::Failed(output)) = self.fire_for_next_file(cx, (HookEvent::OnToolError, subject), then) {
            self.run_result_hooks(cx, *output);
        }
    }

    fn apply_after_hooks(
        &mut self,
        cx: &mut CallContext<'_, '_>,
        outcome: &HookOutcome,
        (subject, mut output): (HookedPart, ToolOutput),
    ) {
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
        if let Some(said) = outcome.changed_object("tool_response") {
            replace_output(&mut output, said);
        }
        if let Some(context) = outcome.marked_context() {
            append(&mut output, format!("\n\n{context}"));
        }
        let then = AfterHooks::End(Box::new(output));
        if let Some(AfterHooks::End(output)) = self.fire_for_next_file(cx, (HookEvent::AfterTool, subject), then) {
            self.end(cx.step, *output);
        }
    }
}

/// Adds to what the model gets. A failure without content says its own words first.
fn append(output: &mut ToolOutput, text: String) {
    if let (Some(error), true) = (&output.error, output.content.is_empty()) {
        output.content.push(Part::text(&*error.message));
    }
    output.content.push(Part::text(text));
}

/// Puts a changed `tool_response` into the output. Whether it changed what the model gets.
fn replace_output(output: &mut ToolOutput, said: &Map<String, Value>) -> bool {
    let told = result_json(output);
    let changed = |key: &str| {
        let text = said.get(key).and_then(Value::as_str);
        text.filter(|it| told.get(key).and_then(Value::as_str) != Some(*it)).map(str::to_owned)
    };
    if let Some(text) = changed("returnDisplay") {
        output.display = Some(Display::Text { text });
    }
    let Some(text) = changed("llmContent") else { return false };
    // What it hides is not to be said beside it.
    output.error.iter_mut().for_each(|it| it.message.clone_from(&text));
    output.content = vec![Part::text(text)];
    true
}

fn result_json(output: &ToolOutput) -> Value {
    let text = joined_text(&output.content);
    let shown = match (&output.display, &output.summary) {
        (Some(Display::Text { text } | Display::Terminal { text, .. }), _) => text.clone(),
        (Some(it @ (Display::Diff { .. } | Display::Diffs { .. })), _) => diffs_text(it),
        (None, Some(it)) => it.clone(),
        (None, None) => text.clone(),
    };
    let error = output.error.as_ref().map(|it| json!({ "type": it.kind, "message": it.message }));
    json!({ "llmContent": text, "returnDisplay": shown, "error": error })
}

/// All changes as the lines of a unified diff.
pub fn diffs_text(display: &Display) -> String {
    display.diffs().iter().map(|(path, before, after)| diff_text(path.as_ref(), *before, after)).collect()
}

fn diff_text(path: &Path, before: Option<&str>, after: &str) -> String {
    let name = path_text::to_text(path);
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
            let CallState::RunningHooks { then, subject, .. } = state else { return BatchStatus::Open };
            let standing = call.apply_hooks(cx, (event, subject), &outcome, then);
            return if standing == BatchStatus::Open { self.advance(cx) } else { standing };
        }
        BatchStatus::Open
    }
}
