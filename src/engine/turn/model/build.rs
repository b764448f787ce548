//! Building the request of a sample; compression and distillation come first where they are needed.

use crate::turn::{
    flow::Flow,
    model::{
        compressing::{self, CompressionGoal, OldContext},
        distilling,
        request_builder::{MissingRequest, build_request, retract},
    },
    spec::TurnContext,
    state::TurnState,
};

pub(in crate::turn) fn build_draft(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>) -> Flow {
    let may_compress = !std::mem::take(&mut turn.draft.is_compressed);
    match build_request(turn, cx, &turn.model, may_compress) {
        Ok(request) => {
            turn.draft.request = Some(request);
            Flow::Next
        }
        Err(MissingRequest::NeedsCompression { n_turns, size }) => {
            compressing::compress(turn, cx, OldContext { goal: CompressionGoal::Request, n_turns, size })
        }
        Err(MissingRequest::NeedsDistilling(call)) => distilling::distill(turn, cx, call),
        Err(MissingRequest::Ended(cause)) => {
            retract(cx.step, &cause);
            Flow::End(cause)
        }
    }
}
