//! Model capabilities: context windows and thinking.

use std::collections::BTreeMap;

use crate::base::{log::ThoughtLevel, model::Thinking};

/// The default window, in tokens.
const COMMON: u64 = 128_000;

/// What Gemini's API takes at once, in bytes, and nearly all others do.
pub const USUAL_BODY: u64 = 20_000_000;

/// Context windows of models, in tokens, and what their servers take at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContextWindows {
    /// By model, as its provider or the user says.
    pub configured: BTreeMap<String, u64>,
    /// Of models that the table does not have either.
    pub otherwise: Option<u64>,
    /// By provider: how large a request may be, in bytes; others take the usual size.
    pub body_limits: BTreeMap<String, u64>,
}

impl ContextWindows {
    /// The same where the model itself is known to have refused what was longer than `learned`. What somebody says of it
    /// is not made larger by that: it may be a wish.
    pub fn with_learned(&self, model: &str, learned: Option<u64>) -> u64 {
        let said = self.configured.get(model.trim_start_matches("models/")).copied().or(self.otherwise);
        learned.map_or_else(|| self.of(model), |it| said.map_or(it, |said| said.min(it)))
    }

    /// The largest request to `model`, in bytes.
    pub fn body_limit(&self, model: &str) -> u64 {
        let provider = model.split_once('/').and_then(|(name, _)| self.body_limits.get(name));
        provider.copied().unwrap_or(USUAL_BODY)
    }

    /// The context window of `model`. Unknown names get the common size: a provider that has less says so.
    pub fn of(&self, model: &str) -> u64 {
        let said = self.configured.get(model.trim_start_matches("models/")).copied();
        said.or_else(|| table(model)).or(self.otherwise).unwrap_or(COMMON)
    }
}

fn table(model: &str) -> Option<u64> {
    // Of other providers, by what stands in the name; the first that fits.
    const OTHERS: &[(&str, u64)] = &[("claude", 200_000), ("gpt-5", 400_000), ("gpt-4.1", 1_047_576)];
    let name = model.trim_start_matches("models/");
    match name.split_once('/') {
        Some((_, name)) => OTHERS.iter().find(|(it, _)| name.contains(it)).map(|(_, size)| *size),
        None if name.starts_with("gemma-4-") => Some(256_000),
        None => Some(1_048_576),
    }
}

/// Whether it is one of Gemini's own models, however it is reached.
pub fn is_gemini(model: &str) -> bool {
    !model.contains('/') || model.starts_with("models/")
}

/// Whether `model` thinks before it answers; others refuse to be asked for thoughts.
pub fn thinks(model: &str) -> bool {
    let name = model.trim_start_matches("models/");
    // Other providers are asked only where a level was chosen.
    name.contains('/') || name.starts_with("gemini-2.5") || name.starts_with("gemini-3")
}

/// A level in the model's own terms: tokens for the 2.5 family, a word for later ones. `None`: the model's choice.
pub fn thinking(model: &str, level: ThoughtLevel) -> Option<Thinking> {
    if !thinks(model) || level == ThoughtLevel::Auto {
        return None;
    }
    if model.trim_start_matches("models/").contains('/') {
        let word = match level {
            ThoughtLevel::Low => "low",
            ThoughtLevel::Medium => "medium",
            ThoughtLevel::Auto | ThoughtLevel::High => "high",
        };
        return Some(Thinking::Level(word.to_owned()));
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
pub const KNOWN_MODELS: &[(&str, &str)] = &[
    ("gemini-3-pro-preview", "Gemini 3 Pro (preview)"),
    ("gemini-2.5-pro", "Gemini 2.5 Pro"),
    ("gemini-2.5-flash", "Gemini 2.5 Flash"),
    ("gemini-2.5-flash-lite", "Gemini 2.5 Flash-Lite"),
];

#[cfg(test)]
mod tests {
    use super::{ContextWindows, thinking};
    use crate::base::{log::ThoughtLevel, model::Thinking};

    #[test]
    fn levels_of_thinking() {
        assert_eq!(thinking("gemini-2.5-pro", ThoughtLevel::Auto), None);
        assert_eq!(thinking("gemini-2.5-pro", ThoughtLevel::Low), Some(Thinking::Budget(1_024)));
        assert_eq!(thinking("models/gemini-3-pro-preview", ThoughtLevel::Medium), Some(Thinking::Level("low".into())));
        assert_eq!(thinking("gemma-4-31b-it", ThoughtLevel::High), None);
        assert_eq!(thinking("anthropic/claude-opus-5", ThoughtLevel::Medium), Some(Thinking::Level("medium".into())));
        assert_eq!(thinking("ollama/qwen3", ThoughtLevel::Auto), None);
    }

    #[test]
    fn windows() {
        let window = |model: &str| ContextWindows::default().of(model);
        assert_eq!(window("gemma-4-31b-it"), 256_000);
        assert_eq!(window("models/gemma-4-31b-it"), 256_000);
        assert_eq!(window("gemma-3"), 1_048_576);
        assert_eq!(window("gemini-3-pro-preview"), 1_048_576);
        assert_eq!(window(""), 1_048_576);
        assert_eq!(window("anthropic/claude-opus-5"), 200_000);
        assert_eq!(window("openai/gpt-5.2"), 400_000);
        assert_eq!(window("ollama/qwen3"), 128_000);
        let said = [("ollama/qwen3", 40_960), ("gemini-x", 7)].map(|(model, size)| (model.to_owned(), size)).into();
        let windows = ContextWindows { configured: said, otherwise: Some(9), ..ContextWindows::default() };
        let models = ["ollama/qwen3", "models/gemini-x", "ollama/other", "openai/gpt-5.2"];
        assert_eq!(models.map(|it| windows.of(it)), [40_960, 7, 9, 400_000]);
        let learned = |windows: &ContextWindows, it| windows.with_learned("ollama/qwen3", it);
        assert_eq!([None, Some(8_192), Some(65_536)].map(|it| learned(&windows, it)), [40_960, 8_192, 40_960]);
        assert_eq!([None, Some(200_000)].map(|it| learned(&ContextWindows::default(), it)), [128_000, 200_000]);
    }
}
