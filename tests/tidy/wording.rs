//! Texts in the source that people read are plain English: no phrase of a translated legal text.

use super::{
    sources,
    text::{Literal, literals},
};

/// What is banned, and what to write.
const BANNED: &[(&str, &str)] = &[
    ("for ever", "permanently"),
    ("goes on", "continues, resumes"),
    ("takes over", "castor falls back to"),
    ("a yes", "an approval"),
    ("on offer", "available"),
    ("is told", "reads, learns"),
    ("are told", "read, learn"),
    ("asked about", "castor asks about"),
    ("round in circles", "repeats itself"),
    ("gives way", "is removed, is cut"),
    ("taken back", "undone, revoked"),
    ("takes back", "undoes, revokes"),
    ("nobody said", "you have not decided"),
    ("somebody's", "an, your"),
];
/// Their texts are spoken by the demo, which is charming, or are keys and not texts.
const FREE: &[&str] = &["models/providers/demo/"];

#[test]
fn texts_for_people_have_no_banned_phrases() {
    let mut found = Vec::new();
    let mut n = 0;
    for source in sources().iter().filter(|it| !FREE.iter().any(|free| it.name.starts_with(free))) {
        for Literal { line, text } in literals(&source.text) {
            n += 1;
            let banned = BANNED.iter().filter(|(phrase, _)| has_phrase(&text, phrase));
            found.extend(
                banned.map(|(phrase, better)| {
                    format!("{}:{line}: \"{phrase}\", write \"{better}\": {text}", source.name)
                }),
            );
        }
    }
    assert!(n > 5_000, "only {n} texts were found");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// As words of their own, in any case.
fn has_phrase(text: &str, phrase: &str) -> bool {
    let text = text.to_lowercase();
    let is_edge = |it: Option<char>| it.is_none_or(|it| !it.is_alphanumeric());
    text.match_indices(phrase)
        .any(|(at, found)| is_edge(text[..at].chars().next_back()) && is_edge(text[at + found.len()..].chars().next()))
}

#[test]
fn phrases_are_found_in_texts_and_not_in_comments() {
    let code =
        "let a = \"It goes \\\n    on.\"; // goes on\nlet b = r#\"a \"yes\" goes on\"#;\nlet c = '\"'; // \"for ever\n";
    let texts: Vec<(usize, String)> = literals(code).into_iter().map(|it| (it.line, it.text)).collect();
    assert_eq!(texts, [(1, "It goes on.".to_owned()), (3, "a \"yes\" goes on".to_owned())]);
    assert!(has_phrase("A Yes, once", "a yes") && !has_phrase("a yesterday", "a yes"));
}
