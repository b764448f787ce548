//! The inbox of a request: background results, steering and tools that are new since the last one.

use super::{flow::Flow, spec::TurnContext, state::TurnState};
use crate::turn::checks::loop_detection::LoopWatch;

pub(super) fn take_inbox(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>) -> Flow {
    cx.scratch.background_results.tell(cx.step);
    if turn.steering.tell(cx.step) {
        turn.loops = LoopWatch::from(turn.draft.n_samples);
    }
    turn.tools = cx.spec.toolbox.in_mode(cx.step.record.mode).of_prompt(cx.step.record);
    Flow::Next
}
