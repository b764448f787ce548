//! Token budget: shortens a request that is larger than its model's context window, oldest content first.

use std::sync::Arc;

use super::{RequestMaterials, RequestNeed, compression, masking, tokens};
use castor_base::{
    content::Part,
    history::{Role, Turn, TurnPart},
    model::ModelRequest,
};

/// The text in place of turns that did not fit.
const LEFT_OUT: &str = "[Earlier parts of this conversation were left out: they did not fit any more.]";

/// Outputs of tools are masked, the oldest first; then the oldest turns go, then the steps of the prompt at hand; a
/// prompt that does not fit alone ends the turn. There is more room made than is needed, so that prompt caches hold for a while.
pub fn check(draft: &ModelRequest, materials: RequestMaterials<'_>) -> Option<RequestNeed> {
    let (window, turns) = (materials.window, materials.record.turns());
    let frame = tokens::of_frame(draft);
    let size = frame + turns.iter().map(|it| tokens::of_turn(it)).sum::<u64>();
    if size <= window / 10 * 9 {
        return None;
    }
    let masks =
        masking::mask_oldest(turns, materials.scratch, materials.known_tools, size.saturating_sub(window / 10 * 8));
    if !masks.is_empty() {
        return Some(RequestNeed::Mask(masks));
    }
    if let Some(n_turns) = at_prompt(turns, frame, window / 10 * 8) {
        return Some(RequestNeed::Replace { n_turns, summary: LEFT_OUT.to_owned() });
    }
    if let Some((n_turns, summary)) = at_step(turns, frame, window / 10 * 8) {
        return Some(RequestNeed::Replace { n_turns, summary });
    }
    // Between nine tenths and all of it an estimate is no reason to refuse.
    (size > window).then_some(RequestNeed::TooLarge { size, window })
}

/// The number of first turns that go: the rest begins with a prompt, and fits where that is possible.
fn at_prompt(turns: &[Arc<Turn>], frame: u64, room: u64) -> Option<usize> {
    let last = split(turns, frame, room, |_, role| role == Role::User);
    // What stands for earlier turns and its answer are two: to replace them by themselves would save nothing.
    let replaces_itself = turns.first().and_then(|it| it.parts().first()).is_some_and(is_left_out);
    last.filter(|it| !replaces_itself || *it > 2)
}

/// The rest begins with a step of the model. What stands for the others says what the steps are for.
fn at_step(turns: &[Arc<Turn>], frame: u64, room: u64) -> Option<(usize, String)> {
    let n_turns = split(turns, frame, room, |before, role| before == Role::Tool && role == Role::Model)?;
    let summary = compression::replacement_text(turns, n_turns, LEFT_OUT);
    (compression::tokens_saved(turns, n_turns, &summary) > 0).then_some((n_turns, summary))
}

/// The first place from which on the rest fits, else the last one. `fits` sees the roles around it.
fn split(turns: &[Arc<Turn>], frame: u64, room: u64, fits: impl Fn(Role, Role) -> bool) -> Option<usize> {
    let mut rest = frame + compression::count_tokens(turns);
    let mut last = None;
    for (at, pair) in turns.windows(2).enumerate() {
        let [earlier, later] = pair else { continue };
        rest = rest.saturating_sub(tokens::of_turn(earlier));
        if fits(earlier.role(), later.role()) {
            last = Some(at + 1);
            if rest <= room {
                break;
            }
        }
    }
    last
}

fn is_left_out(part: &TurnPart) -> bool {
    matches!(part, TurnPart::Content(Part::Text { text, .. }) if text == LEFT_OUT)
}
