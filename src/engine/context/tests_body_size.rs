//! Bytes of requests: which media and results give way, and what is in their place.

use super::{
    RequestNeed,
    body_size::{of_media, of_turns},
    tests::Talk,
};
use crate::routing::model_limits::USUAL_BODY;
use castor_base::{
    content::Part,
    event::{EventKind, Speaker},
    ids::MessageId,
};

const WIDE: u64 = 1_000_000;

fn image(n_bytes: usize) -> Part {
    Part::Media { mime: "image/png".to_owned(), data: "A".repeat(n_bytes).into(), uri: None }
}

fn shows(talk: &mut Talk, n_bytes: usize) {
    let content = vec![Part::text("Look at this"), image(n_bytes)];
    let message_id = MessageId::from("m");
    talk.event(EventKind::Message { role: Speaker::User, message_id, content, cuts: Vec::new() });
}

/// Sixteen prompts with an image of 2 MB each: no request has more than Gemini takes.
#[test]
fn images_of_a_long_conversation_stay_within_the_usual_limit() {
    let mut talk = Talk::new();
    let mut n_changes = 0;
    for n in 1..=16 {
        shows(&mut talk, 2_000_000);
        let (met, built) = talk.settle(WIDE);
        n_changes += met.len();
        let request = built.unwrap();
        assert!(of_turns(&request.contents) < USUAL_BODY && of_media(&request.contents) >= 2_000_000, "{n}");
        talk.says(Speaker::Agent, "Seen.");
    }
    assert!(n_changes < 6, "more is left out at once than is needed: {n_changes}");
    let text = talk.texts();
    assert!(text.contains("[image of message 1 left out: the request would have been too large]"), "{text}");
    assert!(text.matches("Look at this").count() == 16 && !text.contains("message 16 left out"), "{text}");
}

#[test]
fn long_results_follow_and_the_prompts_own_image_stays() {
    let mut talk = Talk { body_limit: 300_000, ..Talk::new() };
    talk.round("t", &"a line\n".repeat(30_000));
    shows(&mut talk, 150_000);
    let (met, built) = talk.settle(WIDE);
    assert_eq!(met, ["masks 1"]);
    assert_eq!(of_media(&built.unwrap().contents), 150_000);
    // Images that its own steps brought go before it does.
    talk.gave("t", vec![image(180_000)]);
    let (met, built) = talk.settle(WIDE);
    assert_eq!(met, ["leaves out 1"]);
    assert_eq!(of_media(&built.unwrap().contents), 150_000);
    assert!(talk.texts().contains("[image of a tool's result after message 2 left out"), "{}", talk.texts());
}

#[test]
fn prompt_that_is_too_large_alone_is_not_sent() {
    let mut talk = Talk { body_limit: 300_000, ..Talk::new() };
    shows(&mut talk, 200_000);
    talk.says(Speaker::Agent, "Seen.");
    shows(&mut talk, 400_000);
    let (met, built) = talk.settle(WIDE);
    assert_eq!(met, ["leaves out 1"]);
    assert!(matches!(built, Err(RequestNeed::BodyTooLarge { size: 400_000.., limit: 300_000 })), "{built:?}");
}
