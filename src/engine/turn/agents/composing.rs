//! The turn of a composite: in place of asking a model it calls its agents, as its composition says.

use crate::turn::{
    agents::composition::{NextStep, has_failed, next_step},
    endings::Cause,
    flow::{Flow, Station},
    messages::send_message,
    spec::TurnContext,
    state::TurnState,
};
use crate::{scheduler::CancelReason, session_tools::delegate};
use castor_base::{content::Part, event::Speaker, ids::CallId, tool::ToolCall};

pub(in crate::turn) const OTHER_FAILED: CancelReason =
    CancelReason::new("another agent failed", "Cancelled, because another agent failed.");

/// No request, no tokens: the agents that it calls ask models, and bear the limits.
pub(in crate::turn) fn run_members(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>) -> Flow {
    let Some(composition) = turn.composition() else { return Flow::Next };
    match next_step(composition, &turn.transcript.prompt_text, cx.step.record.turns()) {
        NextStep::Run(members) => {
            for it in members {
                let id = CallId::from(cx.step.fresh_id(&format!("{}-", delegate::INVOKE)));
                let args = serde_json::json!({ "agent_name": it.agent, "prompt": it.prompt });
                let call = ToolCall { id, name: delegate::INVOKE.to_owned(), args };
                let (scheduler, mut calls) = turn.calls(cx.step);
                scheduler.propose(&mut calls, call, None);
            }
            Flow::Go(Station::Calls)
        }
        NextStep::Done(result) => {
            send_message(cx.step, Speaker::Agent, vec![Part::text(&*result.text)], &[]);
            Flow::End(Cause::TaskCompleted(result))
        }
        NextStep::Failed(why) => Flow::End(Cause::MemberFailed(why)),
    }
}

/// Tells whether what still runs is not waited for: its result would not count.
pub(in crate::turn) fn gives_up(turn: &TurnState, cx: &TurnContext<'_, '_>) -> bool {
    turn.composition().is_some_and(|it| has_failed(it, cx.step.record.turns()))
}
