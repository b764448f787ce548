//! No request is larger than what its model reads: what is oldest gives way first.

use std::sync::Arc;

use super::{Materials, Need, masking, tokens};
use crate::base::{
    content::Part,
    history::{Role, Turn, TurnPart},
    model::ModelRequest,
};

/// What stands for turns that did not fit.
const LEFT_OUT: &str = "[Earlier parts of this conversation were left out: they did not fit any more.]";

/// Outputs of tools are masked, the oldest first; then the oldest turns go; a prompt that does not fit alone ends the
/// turn. There is more room made than is needed, so that prompt caches hold for a while.
pub fn check(draft: &ModelRequest, materials: Materials<'_>) -> Option<Need> {
    let (window, turns) = (materials.window, materials.record.turns());
    let frame = tokens::of_frame(draft);
    let size = frame + turns.iter().map(|it| tokens::of_turn(it)).sum::<u64>();
    if size <= window / 10 * 9 {
        return None;
    }
    let masks = masking::oldest(turns, materials.scratch, size.saturating_sub(window / 10 * 8));
    if !masks.is_empty() {
        return Some(Need::Mask(masks));
    }
    if let Some(n_turns) = split(turns, frame, window / 10 * 8) {
        return Some(Need::Replace { n_turns, summary: LEFT_OUT });
    }
    // Between nine tenths and all of it an estimate is no reason to refuse.
    (size > window).then_some(Need::Room { size, window })
}

/// How many of the first turns go: the rest begins with a prompt, and fits where that is possible.
fn split(turns: &[Arc<Turn>], frame: u64, room: u64) -> Option<usize> {
    let mut rest = frame + turns.iter().map(|it| tokens::of_turn(it)).sum::<u64>();
    let mut last = None;
    for (at, turn) in turns.iter().enumerate() {
        if at > 0 && turn.role() == Role::User {
            last = Some(at);
            if rest <= room {
                break;
            }
        }
        rest = rest.saturating_sub(tokens::of_turn(turn));
    }
    // What stands for earlier turns and its answer are two: to replace them by themselves would save nothing.
    let replaces_itself = turns.first().and_then(|it| it.parts().first()).is_some_and(is_left_out);
    last.filter(|it| !replaces_itself || *it > 2)
}

fn is_left_out(part: &TurnPart) -> bool {
    matches!(part, TurnPart::Content(Part::Text { text, .. }) if text == LEFT_OUT)
}
