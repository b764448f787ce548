//! Much text at once: each draw has a part of it, a key is drawn in between, and no line is lost or drawn twice.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::{
    composer::Composer,
    lower::{Draft, Key},
    state::Chat,
};
use castor_client::opening::OpenedSession;
use castor_wire::acp::client::{ClientEvent, PromptAnswer};

/// Of one draw: a screen of eighty columns has less.
const MOST_LINES: usize = 600;
const LINES: usize = 12_000;
const NOW: Duration = Duration::ZERO;

fn chat_at_work() -> Chat {
    let mut chat = Chat::new(Box::new(Composer::default()), "/w", true);
    chat.opened(&OpenedSession { id: "s1".to_owned(), ..OpenedSession::default() }, NOW);
    chat.submit_first(Draft { text: "go".to_owned(), files: Vec::new() }, NOW);
    draw_all(&mut chat);
    chat
}

fn update(chat: &mut Chat, update: &Value) {
    chat.update("s1", &ClientEvent::read(update), NOW);
}

fn say(chat: &mut Chat, text: &str) {
    let content = json!({"type": "text", "text": text});
    update(chat, &json!({"sessionUpdate": "agent_message_chunk", "content": content}));
}

fn code() -> String {
    let lines: String = (0..LINES).map(|it| format!("let line_{it} = \"a longer text\"; // b\n")).collect();
    format!("```rust\n{lines}```\n")
}

/// The finished lines of one draw, and whether the live region has these words.
fn draw(chat: &mut Chat, words: &str) -> (Vec<String>, bool) {
    let frame = chat.draw(NOW, 80, 24);
    assert!(frame.finished.len() <= MOST_LINES, "{} lines in a draw", frame.finished.len());
    (frame.finished.iter().map(|it| it.text()).collect(), frame.live.iter().any(|it| it.text().contains(words)))
}

fn draw_all(chat: &mut Chat) -> Vec<String> {
    let mut lines = draw(chat, "").0;
    while chat.is_stale() {
        lines.extend(draw(chat, "").0);
    }
    lines
}

/// The numbers of the lines of code, in order.
fn numbers(lines: &[String]) -> Vec<usize> {
    let number = |it: &String| it.trim().strip_prefix("let line_")?.split(' ').next()?.parse().ok();
    lines.iter().filter_map(number).collect()
}

#[test]
fn a_key_is_drawn_before_the_rest_of_a_burst() {
    let mut chat = chat_at_work();
    say(&mut chat, &code());
    let mut lines = draw(&mut chat, "").0;
    chat.key(&Key::Char('Ω'), NOW);
    let (more, has_key) = draw(&mut chat, "Ω");
    assert!(has_key && chat.is_stale(), "{has_key}");
    lines.extend(more);
    assert!(numbers(&lines).len() < LINES / 10, "{} lines", lines.len());
    // What the user says now stands where the answer has come to.
    chat.note("in between");
    lines.extend(draw_all(&mut chat));
    assert_eq!(numbers(&lines), (0..LINES).collect::<Vec<_>>());
    let at = lines.iter().position(|it| it.contains("in between")).unwrap();
    assert!(at < LINES / 10, "line {at}");
}

#[test]
fn later_text_stands_below_a_burst() {
    let mut chat = chat_at_work();
    say(&mut chat, &code());
    draw(&mut chat, "");
    // All that is left becomes lines at once, and is drawn in parts.
    chat.prompted(Ok(PromptAnswer::default()), NOW);
    say(&mut chat, "END");
    let (_, has_end) = draw(&mut chat, "END");
    assert!(!has_end, "the next answer is shown before the end of this one");
    let lines = draw_all(&mut chat);
    assert_eq!(numbers(&lines).last(), Some(&(LINES - 1)));
    assert!(draw(&mut chat, "END").1);
}
