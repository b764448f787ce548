//! Media of a conversation: where they are, how large, and the words that stand for those that are left out.

use std::sync::Arc;

use castor_base::{
    content::Part,
    history::{Role, Turn, TurnPart},
    left_out::{MediaInWords, MediaPlace},
};

/// An image, a recording or a file within a conversation.
#[derive(Clone, Copy, Debug)]
pub struct PlacedMedia<'a> {
    pub place: MediaPlace,
    pub mime: &'a str,
    /// The bytes of its data, as they are sent.
    pub bytes: u64,
}

/// The oldest first.
pub fn find_media(turns: &[Arc<Turn>]) -> impl Iterator<Item = PlacedMedia<'_>> {
    turns.iter().enumerate().flat_map(|(turn, it)| {
        it.parts().iter().enumerate().flat_map(move |(part, it)| {
            let (content, is_result): (&[Part], bool) = match it {
                TurnPart::Content(it) => (std::slice::from_ref(it), false),
                TurnPart::Result(it) => (&it.content, true),
                TurnPart::Call { .. } => (&[], false),
            };
            content.iter().enumerate().filter_map(move |(item, it)| {
                let (mime, data) = it.bytes()?;
                let place = MediaPlace { turn, part, item: is_result.then_some(item) };
                Some(PlacedMedia { place, mime, bytes: data.len() as u64 })
            })
        })
    })
}

/// The words that the model reads in their place. `why`: `the request would have been too large`.
pub fn in_words(turns: &[Arc<Turn>], media: &PlacedMedia<'_>, why: &str) -> MediaInWords {
    let n_prompts = turns.iter().take(media.place.turn + 1).filter(|it| it.role() == Role::User).count();
    let kind = media.mime.split('/').next().filter(|it| matches!(*it, "image" | "audio" | "video")).unwrap_or("file");
    let place = if media.place.item.is_some() { "a tool's result after message" } else { "message" };
    MediaInWords { place: media.place, text: format!("[{kind} of {place} {n_prompts} left out: {why}]") }
}
