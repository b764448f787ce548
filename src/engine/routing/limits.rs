//! What a model can do: how much it reads at once, whether and how it thinks.

use crate::base::{log::ThoughtLevel, model::Thinking};

/// The context window of `model` in tokens. Unknown names get the common size: a provider that has less says so.
pub fn window(model: &str) -> u64 {
    match model.trim_start_matches("models/").starts_with("gemma-4-") {
        true => 256_000,
        false => 1_048_576,
    }
}

/// Whether `model` thinks before it answers; others refuse to be asked for thoughts.
pub fn thinks(model: &str) -> bool {
    let name = model.trim_start_matches("models/");
    name.starts_with("gemini-2.5") || name.starts_with("gemini-3")
}

/// A level in the model's own terms: tokens for the 2.5 family, a word for later ones. `None`: the model's choice.
pub fn thinking(model: &str, level: ThoughtLevel) -> Option<Thinking> {
    if !thinks(model) || level == ThoughtLevel::Auto {
        return None;
    }
    if model.trim_start_matches("models/").starts_with("gemini-3") {
        // The 3 family has two levels.
        let word = if level == ThoughtLevel::High { "high" } else { "low" };
        return Some(Thinking::Level(word.to_owned()));
    }
    Some(Thinking::Budget(match level {
        ThoughtLevel::Auto => -1,
        ThoughtLevel::Low => 1_024,
        ThoughtLevel::Medium => 8_192,
        ThoughtLevel::High => 24_576,
    }))
}

/// The models on offer where nothing else is known: the Gemini API's, best first. Providers' own lists replace it.
pub const KNOWN: &[(&str, &str)] = &[
    ("gemini-3-pro-preview", "Gemini 3 Pro (preview)"),
    ("gemini-2.5-pro", "Gemini 2.5 Pro"),
    ("gemini-2.5-flash", "Gemini 2.5 Flash"),
    ("gemini-2.5-flash-lite", "Gemini 2.5 Flash-Lite"),
];

#[cfg(test)]
mod tests {
    use super::{thinking, window};
    use crate::base::{log::ThoughtLevel, model::Thinking};

    #[test]
    fn levels_of_thinking() {
        assert_eq!(thinking("gemini-2.5-pro", ThoughtLevel::Auto), None);
        assert_eq!(thinking("gemini-2.5-pro", ThoughtLevel::Low), Some(Thinking::Budget(1_024)));
        assert_eq!(thinking("models/gemini-3-pro-preview", ThoughtLevel::Medium), Some(Thinking::Level("low".into())));
        assert_eq!(thinking("gemma-4-31b-it", ThoughtLevel::High), None);
    }

    #[test]
    fn windows() {
        assert_eq!(window("gemma-4-31b-it"), 256_000);
        assert_eq!(window("models/gemma-4-31b-it"), 256_000);
        assert_eq!(window("gemma-3"), 1_048_576);
        assert_eq!(window("gemini-3-pro-preview"), 1_048_576);
        assert_eq!(window(""), 1_048_576);
    }
}
