//! Hooks and plugins around the agent: at the start of session and turn, and when the agent wants to stop.

use serde_json::json;

use super::{
    flow::{Flow, Station},
    messages::send_message,
    spec::TurnContext,
    state::TurnState,
    turn_hooks::{HookContinuation, cause_of, fire_hooks},
};
use crate::{
    base::{event::Speaker, hook::HookEvent, log::Fact},
    engine::{
        hooks::{
            HookOutcome, HookVerdict,
            plugins::{PluginMoment, PluginPoint},
        },
        turn::endings::Cause,
    },
};

/// What a model is said to have answered when it said nothing.
const NO_TEXT: &str = "[no response text]";

#[derive(Debug)]
struct SessionStart;
#[derive(Debug)]
struct BeforeAgent;
#[derive(Debug)]
struct AfterAgent;

pub(super) fn before_run(_: &mut TurnState, cx: &mut TurnContext<'_, '_>) -> Flow {
    ask_plugins(cx, PluginPoint::BeforeRun)
}

/// A plugin may answer for the agent.
fn ask_plugins(cx: &mut TurnContext<'_, '_>, point: PluginPoint) -> Flow {
    let Some(answer) = cx.spec.toolbox.hooks.plugins.parts(point, PluginMoment::Turn) else { return Flow::Next };
    send_message(cx.step, Speaker::Agent, answer, &[]);
    Flow::End(Cause::Completed)
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
        let blocked = matches!(outcome.verdict, Some(HookVerdict::Block(_)));
        let context = outcome.marked_context().filter(|_| outcome.verdict.is_none());
        cx.step.log_hooks(HookEvent::BeforeAgent, outcome, context, blocked);
        match &outcome.verdict {
            Some(verdict) => Flow::End(cause_of(verdict)),
            None => ask_plugins(cx, PluginPoint::BeforeAgent),
        }
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
