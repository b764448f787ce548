//! Notification hooks: they hear of every question to the user.

use serde_json::{Map, Value, json};

use crate::{
    hooks::firing::{AnswerEffect, Firing, FiringStart},
    record::Step,
    scheduler::{Toolbox, diffs_text, elicitation::plain_name},
    step::{Act, Confirmation, Effect, Input, QuestionTopic, WaitingQuestion},
};
use castor_base::{
    elicitation::ElicitationRequest,
    hook::HookEvent,
    text,
    tool::{Display, ToolKind},
};

/// Longest text of a question that hooks are told, in characters.
const MAX_TEXT: usize = 2_000;

/// Hooks that were told of a question, and are still to answer.
#[derive(Debug, Default)]
pub(super) struct QuestionHooks {
    firings: Vec<Firing>,
}

impl QuestionHooks {
    /// What a hook said. `has_turn`: there is somebody to show it to.
    pub fn observe_input(&mut self, input: &Input, step: &mut Step<'_>, has_turn: bool) {
        let Input::HookFinished { effect, report } = input else { return };
        for at in 0..self.firings.len() {
            let Some(firing) = self.firings.get_mut(at) else { return };
            match firing.take_report(*effect, report, |run| step.start_hook(run)) {
                AnswerEffect::Unrelated => (),
                AnswerEffect::Waiting => return,
                AnswerEffect::Finished(outcome) => {
                    self.firings.remove(at);
                    if has_turn {
                        step.log_hooks(HookEvent::Notification, &outcome, None, false);
                    }
                    return;
                }
            }
        }
    }

    /// Tells them what a step asks, from `start` on.
    pub fn tell(&mut self, tools: &Toolbox, mut step: Step<'_>, start: usize) {
        if !tools.hooks.all().any(|it| it.event == HookEvent::Notification) {
            return;
        }
        let topics = step.acts(start).iter().filter_map(|act| match act {
            Act::Do(_, Effect::AskUser(question)) => Some(described(&question.about, tools)),
            _ => None,
        });
        for it in topics.collect::<Vec<_>>() {
            self.notify(it, tools, &mut step);
        }
    }

    /// A question of a server waits for the next prompt: the user may be elsewhere.
    pub fn tell_waiting(&mut self, it: &WaitingQuestion, tools: &Toolbox, step: &mut Step<'_>) {
        let says = |message: &str| format!("Server `{}` asks: {message}", plain_name(&it.server));
        let described = match &it.request {
            ElicitationRequest::Form(form) => form_described(&says(&form.message)),
            ElicitationRequest::Page { message, url, .. } => link_described(&says(message), url),
        };
        self.notify(described, tools, step);
    }

    fn notify(&mut self, (kind, message, details): Described, tools: &Toolbox, step: &mut Step<'_>) {
        let mut plan = tools.hooks.plan(HookEvent::Notification, kind, &step.record.switches);
        if plan.hooks.is_empty() && plan.observers.is_empty() {
            return;
        }
        let input = [("notification_type", kind.into()), ("message", message.into()), ("details", details)];
        let input: Map<String, Value> = input.into_iter().map(|(key, it)| (key.to_owned(), it)).collect();
        step.tell_hooks(std::mem::take(&mut plan.observers), &input);
        if let FiringStart::Waiting(it) =
            Firing::begin(HookEvent::Notification, plan, input, |run| step.start_hook(run))
        {
            self.firings.push(it);
        }
    }
}

/// Its kind, one line about it, and what it is.
type Described = (&'static str, String, Value);

fn info(prompt: &str, urls: &[&str]) -> Value {
    let title = text::first_line(prompt, MAX_TEXT);
    json!({ "type": "info", "title": title, "prompt": text::head(prompt, MAX_TEXT), "urls": urls })
}

fn form_described(message: &str) -> Described {
    ("Question", text::first_line(message, MAX_TEXT), info(message, &[]))
}

fn link_described(message: &str, url: &str) -> Described {
    ("Link", text::first_line(message, MAX_TEXT), info(message, &[url]))
}

/// The kind of a question, one line about it, and what it is, all in Gemini CLI's words where it has some.
fn described(about: &QuestionTopic, tools: &Toolbox) -> Described {
    let of_kind = |kind, (_, message, details): Described| (kind, message, details);
    match about {
        QuestionTopic::Confirmation(it) => {
            ("ToolPermission", format!("Tool {} needs a permission", it.tool), call_details(it, tools))
        }
        QuestionTopic::Trust { form, .. } => of_kind("Trust", form_described(&form.message)),
        QuestionTopic::Fallback { form, .. } => of_kind("ModelFallback", form_described(&form.message)),
        QuestionTopic::Form { form, .. } => form_described(&form.message),
        QuestionTopic::Link { message, url, .. } => link_described(message, url),
        QuestionTopic::Credential { message, .. } => of_kind("Credential", form_described(message)),
    }
}

fn call_details(it: &Confirmation, tools: &Toolbox) -> Value {
    let title = it.title.as_str();
    let text = |key: &str| it.args.get(key).and_then(Value::as_str).unwrap_or_default();
    match (&it.display, it.kind, tools.foreign_tool(&it.tool)) {
        (Some(Display::Diff { path, before, after }), ..) => json!({
            "type": "edit",
            "title": title,
            "fileName": path.as_path().file_name().unwrap_or_default().to_string_lossy(),
            "filePath": path,
            "fileDiff": it.display.as_ref().map(diffs_text),
            "originalContent": before,
            "newContent": after,
        }),
        (Some(display @ Display::Diffs { .. }), ..) => json!({
            "type": "edit",
            "title": title,
            "fileName": title,
            "filePaths": display.diffs().iter().map(|it| it.0).collect::<Vec<_>>(),
            "fileDiff": diffs_text(display),
        }),
        (_, ToolKind::Execute, None) => {
            let command = text("command");
            let root = command.split_whitespace().next().unwrap_or_default();
            json!({ "type": "exec", "title": title, "command": command, "rootCommand": root })
        }
        (_, _, Some(foreign)) => {
            let own = it.tool.strip_prefix(&format!("mcp_{}_", foreign.server)).unwrap_or(&it.tool);
            json!({ "type": "mcp", "title": title, "serverName": foreign.server, "toolName": own, "toolDisplayName": foreign.spec.title })
        }
        _ => json!({ "type": "info", "title": title, "prompt": title, "urls": [] }),
    }
}
