//! Hooks around the agent: at the start of session and turn, when the agent wants to stop, and at the end.

use serde_json::json;

use super::{
    flow::{Flow, Station},
    join_history,
    messages::send_message,
    spec::TurnContext,
    state::TurnState,
    turn_hooks::{HookContinuation, cause_of, fire_hooks},
};
use crate::{
    hooks::{HookOutcome, HookVerdict},
    record::Step,
    turn::endings::Cause,
};
use castor_base::{
    content::{Part, PromptContent},
    event::{EndReason, Speaker},
    hook::HookEvent,
    log::Fact,
};

/// What a model is said to have answered when it said nothing.
const NO_TEXT: &str = "[no response text]";

#[derive(Debug)]
struct OnUserMessage;
#[derive(Debug)]
struct BeforeRun;
#[derive(Debug)]
struct SessionStart;
#[derive(Debug)]
struct BeforeAgent;
#[derive(Debug)]
struct AfterAgent;

pub(super) fn on_user_message(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>) -> Flow {
    // Another agent goes on with it.
    if turn.transcript.unheard.is_none() {
        return Flow::Next;
    }
    let input = json!({ "prompt": turn.transcript.prompt_text });
    fire_hooks(turn, cx, (HookEvent::OnUserMessage, "", input), OnUserMessage)
}

impl HookContinuation for OnUserMessage {
    fn go_on(self, turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, outcome: &HookOutcome) -> Flow {
        let Some(content) = turn.transcript.unheard.take() else { return Flow::Next };
        let content = match outcome.changed_text("prompt") {
            Some(text) => {
                turn.transcript.prompt_text = text.to_owned();
                with_text(*content, text)
            }
            None => *content,
        };
        let blocked = matches!(outcome.verdict, Some(HookVerdict::Block(_)));
        join_history(turn, cx, content);
        cx.step.log_hooks(HookEvent::OnUserMessage, outcome, None, blocked);
        outcome.verdict.as_ref().map_or(Flow::Next, |it| Flow::End(cause_of(it)))
    }
}

/// The prompt with another text, in place of all that it had; what else it has stays.
fn with_text(mut content: PromptContent, text: &str) -> PromptContent {
    content.parts.retain(|it| it.as_text().is_none());
    content.parts.insert(0, Part::text(text));
    PromptContent { n_piped: 0, ..content }
}

pub(super) fn before_run(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>) -> Flow {
    let input = json!({ "prompt": turn.transcript.prompt_text });
    fire_hooks(turn, cx, (HookEvent::BeforeRun, "", input), BeforeRun)
}

impl HookContinuation for BeforeRun {
    fn go_on(self, _: &mut TurnState, cx: &mut TurnContext<'_, '_>, outcome: &HookOutcome) -> Flow {
        cx.step.log_hooks(HookEvent::BeforeRun, outcome, None, false);
        answer_instead(cx, outcome)
    }
}

/// A hook may answer for the agent.
fn answer_instead(cx: &mut TurnContext<'_, '_>, outcome: &HookOutcome) -> Flow {
    match (&outcome.verdict, outcome.changed_text("response")) {
        (Some(HookVerdict::Block(_)), Some(text)) => {
            send_message(cx.step, Speaker::Agent, vec![Part::text(text)], &[]);
            Flow::End(Cause::Completed)
        }
        (Some(verdict), _) => Flow::End(cause_of(verdict)),
        (None, Some(_)) => {
            cx.step.emit_notice("A hook's response counts only where it blocks; ignored.");
            Flow::Next
        }
        (None, None) => Flow::Next,
    }
}

pub(super) fn session_start(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>) -> Flow {
    let Some(source) = cx.scratch.preamble.take_opening() else { return Flow::Next };
    fire_hooks(turn, cx, (HookEvent::SessionStart, source, json!({ "source": source })), SessionStart)
}

impl HookContinuation for SessionStart {
    fn go_on(self, _: &mut TurnState, cx: &mut TurnContext<'_, '_>, outcome: &HookOutcome) -> Flow {
        cx.step.log_hooks(HookEvent::SessionStart, outcome, outcome.marked_context(), false);
        Flow::Next
    }
}

pub(super) fn before_agent(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>) -> Flow {
    let input = json!({ "prompt": turn.transcript.prompt_text });
    fire_hooks(turn, cx, (HookEvent::BeforeAgent, "", input), BeforeAgent)
}

impl HookContinuation for BeforeAgent {
    fn go_on(self, _: &mut TurnState, cx: &mut TurnContext<'_, '_>, outcome: &HookOutcome) -> Flow {
        let answers = outcome.changed_text("response").is_some();
        let blocked = matches!(outcome.verdict, Some(HookVerdict::Block(_))) && !answers;
        let context = outcome.marked_context().filter(|_| outcome.verdict.is_none());
        cx.step.log_hooks(HookEvent::BeforeAgent, outcome, context, blocked);
        answer_instead(cx, outcome)
    }
}

/// The agent has nothing more to do, unless a hook finds something.
pub(super) fn after_agent(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>) -> Flow {
    let transcript = &turn.transcript;
    let said = if transcript.answer_text.trim().is_empty() { NO_TEXT } else { &transcript.answer_text };
    let input = json!({
        "prompt": transcript.prompt_text,
        "prompt_response": said,
        "stop_hook_active": transcript.is_sent_back,
    });
    fire_hooks(turn, cx, (HookEvent::AfterAgent, "", input), AfterAgent)
}

impl HookContinuation for AfterAgent {
    fn go_on(self, turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, outcome: &HookOutcome) -> Flow {
        let again = match &outcome.verdict {
            Some(HookVerdict::Block(why)) => Some(why.clone()),
            _ => None,
        };
        if outcome.clears_context() {
            cx.step.log(Fact::Cleared);
        }
        cx.step.log_hooks(HookEvent::AfterAgent, outcome, again.clone(), false);
        match (&outcome.verdict, again) {
            (_, Some(why)) => {
                turn.transcript.is_sent_back = true;
                cx.step.emit_notice(&format!("A hook sends the agent back to work: {why}"));
                Flow::Go(Station::Limits)
            }
            (Some(verdict), None) => Flow::End(cause_of(verdict)),
            (None, None) => Flow::Next,
        }
    }
}

/// The turn is over: its hooks are told, without waiting for them.
pub(super) fn after_run(turn: &TurnState, step: &mut Step<'_>, reason: EndReason) {
    let plan = turn.tools.hooks.plan(HookEvent::AfterRun, "", &step.record.switches);
    let told: Vec<_> = plan.hooks.into_iter().chain(plan.observers).collect();
    let transcript = &turn.transcript;
    let input =
        json!({ "prompt": transcript.prompt_text, "prompt_response": transcript.answer_text, "reason": reason });
    step.tell_hooks(told, &input.as_object().cloned().unwrap_or_default());
}
