//! Compression: when a conversation fills its context window, and which part a summary replaces.

use std::sync::Arc;

use super::{RequestMaterials, RequestNeed, tokens};
use castor_base::{
    content::Part,
    history::{Role, Turn, TurnPart},
    model::ModelRequest,
    text::head,
};

/// So much of the conversation is compressed, in percent, or a little more; the rest stays as it is.
const OLD: u64 = 70;
/// A part that holds less, in percent, is not worth a call of a model where there is another one.
const WORTH: u64 = 30;
/// The conversation grows by this part of the window before it is tried again, however it went.
const GROWTH: u64 = 10;
/// The tags around the prompt at hand where the turns that it began are compressed.
const REQUEST: [&str; 2] = ["<user_request>", "</user_request>"];
/// Longest part of a prompt that is kept so, in bytes.
const MAX_REQUEST: usize = 16 * 1024;

/// A named point where prompt caches start anew: it comes as seldom as possible.
pub fn due(draft: &ModelRequest, materials: RequestMaterials<'_>) -> Option<RequestNeed> {
    let (window, turns) = (materials.window, materials.record.turns());
    let size = tokens::of_frame(draft) + count_tokens(turns);
    let tried = materials.record.compressed_at();
    if size < materials.compress_at? || tried.is_some_and(|it| size < it.saturating_add(window / GROWTH)) {
        return None;
    }
    split(turns).map(|n_turns| RequestNeed::Compress { n_turns, size })
}

pub fn count_tokens(turns: &[Arc<Turn>]) -> u64 {
    turns.iter().map(|it| tokens::of_turn(it)).sum()
}

/// The number of first turns that are old; `None`: there is nothing to compress. The rest begins with a prompt. Where
/// none is late enough: everything, if the model had the last word; else up to the last prompt, if there is much before
/// it. Else the steps of the prompt at hand are old; but a call and its results stay together.
pub fn split(turns: &[Arc<Turn>]) -> Option<usize> {
    let all_said = turns.last().is_some_and(|it| it.role() == Role::Model && !has_calls(it));
    let prompt = |_: Role, role: Role| role == Role::User;
    let at_prompt = match first_after(turns, prompt) {
        Some((at, true)) => return Some(at),
        _ if all_said => return Some(turns.len()),
        early => early.map(|(at, _)| at),
    };
    let least = count_tokens(turns).saturating_mul(WORTH) / 100;
    let is_worth = |it: &usize| count_tokens(turns.get(..*it).unwrap_or(turns)) >= least;
    let at_step = || first_after(turns, |before, role| before == Role::Tool && role == Role::Model).map(|(at, _)| at);
    at_prompt.filter(is_worth).or_else(at_step).or(at_prompt)
}

/// The first place that is late enough, else the last one; and whether it is. `fits` sees the roles around it.
fn first_after(turns: &[Arc<Turn>], fits: impl Fn(Role, Role) -> bool) -> Option<(usize, bool)> {
    let target = count_tokens(turns).saturating_mul(OLD) / 100;
    let (mut before, mut last) = (0, None);
    for (at, pair) in turns.windows(2).enumerate() {
        let [earlier, later] = pair else { continue };
        before += tokens::of_turn(earlier);
        if fits(earlier.role(), later.role()) {
            last = Some((at + 1, before >= target));
            if before >= target {
                break;
            }
        }
    }
    last
}

fn has_calls(turn: &Turn) -> bool {
    turn.parts().iter().any(|it| matches!(it, TurnPart::Call { .. }))
}

/// The text in place of the first turns. Where the model's steps continue behind it, it says what they are for.
pub fn replacement_text(turns: &[Arc<Turn>], n_turns: usize, summary: &str) -> String {
    let goes_on = turns.get(n_turns).is_some_and(|it| it.role() == Role::Model);
    let old = turns.get(..n_turns).unwrap_or(turns);
    match old.iter().rev().find(|it| it.role() == Role::User).filter(|_| goes_on) {
        Some(turn) => {
            let [begin, end] = REQUEST;
            format!("{summary}\n\nThis is being worked on:\n{begin}\n{}\n{end}", request_of(turn))
        }
        None => summary.to_owned(),
    }
}

/// The words of a prompt; of one that stands for earlier turns, those that it kept.
fn request_of(turn: &Turn) -> String {
    let texts = turn.parts().iter().filter_map(|it| match it {
        TurnPart::Content(Part::Text { text, .. }) => Some(text.as_str()),
        _ => None,
    });
    let text: Vec<&str> = texts.collect();
    let text = text.join("\n");
    let [begin, end] = REQUEST;
    let kept = text.rsplit_once(end).and_then(|(it, _)| it.split_once(begin)).map(|(_, it)| it.trim());
    head(kept.unwrap_or(&text), MAX_REQUEST).to_owned()
}

/// The tokens that `summary` saves beside the turns that it replaces.
pub fn tokens_saved(turns: &[Arc<Turn>], n_turns: usize, summary: &str) -> u64 {
    let old = turns.get(..n_turns).unwrap_or(turns);
    count_tokens(old).saturating_sub(tokens::of_text(summary) + SURROUNDINGS)
}

/// The tokens that come with a summary: the model's answer to it.
const SURROUNDINGS: u64 = 20;
