//! Budget of bytes: old media and long results give way where a request would have more bytes than its server takes.

use std::sync::Arc;

use super::{
    RequestMaterials, RequestNeed, masking,
    media::{PlacedMedia, find_media, in_words},
};
use castor_base::{
    content::Part,
    history::{Role, Turn, TurnPart},
    left_out::MediaInWords,
    model::ModelRequest,
};

const TOO_LARGE: &str = "the request would have been too large";
/// The bytes around one part in any provider's JSON.
const AROUND_PART: u64 = 128;

/// Media and long outputs of earlier prompts go, the oldest first; then media of this prompt's own steps. More room is
/// made than is needed, so that prompt caches hold for a while.
pub fn check(draft: &ModelRequest, materials: RequestMaterials<'_>) -> Option<RequestNeed> {
    let (limit, turns) = (materials.body_limit, materials.record.turns());
    let size = of_frame(draft) + of_turns(turns);
    if size <= limit / 100 * 95 {
        return None;
    }
    let excess = size.saturating_sub(limit / 10 * 8);
    let prompt = turns.iter().rposition(|it| it.role() == Role::User).unwrap_or(turns.len());
    let old = oldest(turns, excess, |it| it.place.turn < prompt);
    if !old.is_empty() {
        return Some(RequestNeed::LeaveOutMedia(old));
    }
    let masks = masking::mask_oldest(turns, materials.scratch, materials.known_tools, excess / 4);
    if !masks.is_empty() {
        return Some(RequestNeed::Mask(masks));
    }
    if size <= limit {
        return None;
    }
    let steps = oldest(turns, size - limit, |it| it.place.turn > prompt);
    match steps.is_empty() {
        true => Some(RequestNeed::BodyTooLarge { size, limit }),
        false => Some(RequestNeed::LeaveOutMedia(steps)),
    }
}

fn oldest(turns: &[Arc<Turn>], excess: u64, may_go: impl Fn(&PlacedMedia<'_>) -> bool) -> Vec<MediaInWords> {
    let mut saved = 0;
    let chosen = find_media(turns).filter(may_go).take_while(|it| {
        let is_needed = saved < excess;
        saved += it.bytes;
        is_needed
    });
    chosen.map(|it| in_words(turns, &it, TOO_LARGE)).collect()
}

/// The bytes of a request that are media.
pub fn of_media(turns: &[Arc<Turn>]) -> u64 {
    find_media(turns).map(|it| it.bytes).sum()
}

pub fn of_turns(turns: &[Arc<Turn>]) -> u64 {
    turns.iter().map(|it| of_turn(it)).sum()
}

/// The bytes of all but the history.
fn of_frame(request: &ModelRequest) -> u64 {
    let tools = request.tools.iter().map(|it| it.description.len() + it.parameters.text().get().len());
    escaped(request.system.len()) + tools.map(|it| escaped(it) + AROUND_PART).sum::<u64>()
}

/// Counted once in a turn's life.
fn of_turn(turn: &Turn) -> u64 {
    turn.bytes(|it| {
        let of = |it: &TurnPart| match it {
            TurnPart::Content(part) => of_part(part),
            TurnPart::Call { call, .. } => escaped(call.args.to_string().len()) + AROUND_PART,
            TurnPart::Result(result) => result.content.iter().map(of_part).sum::<u64>() + AROUND_PART,
        };
        it.parts().iter().map(of).sum()
    })
}

fn of_part(part: &Part) -> u64 {
    let len = match part {
        Part::Text { text, .. } => escaped(text.len()),
        Part::Thought { thought, signature } => {
            escaped(thought.len()) + signature.as_ref().map_or(0, |it| it.len() as u64)
        }
        Part::Media { data, .. } => data.len() as u64,
        Part::Reference { text, data, .. } => {
            escaped(text.as_ref().map_or(0, |it| it.len())) + data.as_ref().map_or(0, |it| it.len() as u64)
        }
    };
    len + AROUND_PART
}

/// Line ends and quotes of a text take two bytes in JSON.
fn escaped(len: usize) -> u64 {
    let len = len as u64;
    len + len / 12
}
