//! Model capabilities: context windows and thinking, by what is said of a model and what the table knows.

use std::collections::BTreeMap;

use castor_base::{
    log::ThoughtLevel,
    model::Thinking,
    model_table::{ModelTable, thinking::ThinkingKind},
};

/// The default window, in tokens.
const COMMON: u64 = 128_000;
/// The window of models of the Gemini API that no row knows.
const OWN: u64 = 1_048_576;

/// The bytes that Gemini's API takes at once; nearly all others do, too.
pub const USUAL_BODY: u64 = 20_000_000;

/// Context windows of models, in tokens, and what their servers take at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContextWindows {
    /// Windows by model, as its provider or the user says.
    pub configured: BTreeMap<String, u64>,
    /// The window of models that the table does not have either.
    pub otherwise: Option<u64>,
    /// The most bytes of a request, by provider; others take the usual size.
    pub body_limits: BTreeMap<String, u64>,
}

impl ContextWindows {
    /// The same where the model itself is known to have refused what was longer than `learned`. What somebody says of it
    /// is not made larger by that: it may be a wish.
    pub fn with_learned(&self, model: &str, learned: Option<u64>, models: &ModelTable) -> u64 {
        let said = self.configured.get(model.trim_start_matches("models/")).copied().or(self.otherwise);
        learned.map_or_else(|| self.of(model, models), |it| said.map_or(it, |said| said.min(it)))
    }

    /// The largest request to `model`, in bytes.
    pub fn body_limit(&self, model: &str) -> u64 {
        let provider = model.split_once('/').and_then(|(name, _)| self.body_limits.get(name));
        provider.copied().unwrap_or(USUAL_BODY)
    }

    /// The context window of `model`. Unknown names get the common size: a provider that has less says so.
    pub fn of(&self, model: &str, models: &ModelTable) -> u64 {
        let said = self.configured.get(model.trim_start_matches("models/")).copied();
        let known = || models.row(model).and_then(|it| it.limits.window).or(is_gemini(model).then_some(OWN));
        said.or_else(known).or(self.otherwise).unwrap_or(COMMON)
    }
}

/// Tells whether it is one of Gemini's own models, however it is reached.
pub fn is_gemini(model: &str) -> bool {
    !model.contains('/') || model.starts_with("models/")
}

/// Tells whether `model` thinks before it answers; others refuse to be asked for thoughts.
pub fn thinks(model: &str, models: &ModelTable) -> bool {
    match models.traits(model).thinking {
        ThinkingKind::None => false,
        // Other providers are asked only where a level was chosen.
        ThinkingKind::Unknown => !is_gemini(model),
        _ => true,
    }
}

/// A level in the model's own terms. `None`: the model's choice.
pub fn thinking(model: &str, level: ThoughtLevel, models: &ModelTable) -> Option<Thinking> {
    let word = match level {
        ThoughtLevel::Auto => return None,
        ThoughtLevel::Low => "low",
        ThoughtLevel::Medium => "medium",
        ThoughtLevel::High => "high",
    };
    let wanted = Some(Thinking::Level(word.to_owned())).filter(|_| thinks(model, models))?;
    models.thinking(model).map_or(Some(wanted.clone()), |it| it.nearest(wanted))
}

#[cfg(test)]
mod tests {
    use super::{ContextWindows, thinking};
    use castor_base::{log::ThoughtLevel, model::Thinking, model_table::ModelTable};

    #[test]
    fn levels_of_thinking() {
        let table = ModelTable::built_in();
        let level = |it: &str| Some(Thinking::Level(it.to_owned()));
        for (model, wanted, expected) in [
            ("gemini-2.5-pro", ThoughtLevel::Auto, None),
            ("gemini-2.5-pro", ThoughtLevel::Low, Some(Thinking::Budget(1_024))),
            ("models/gemini-3-pro-preview", ThoughtLevel::Medium, level("low")),
            ("gemini-4-argon", ThoughtLevel::High, level("high")),
            ("gemma-4-31b-it", ThoughtLevel::High, level("high")),
            ("gemma-9", ThoughtLevel::High, None),
            ("anthropic/claude-opus-5-5", ThoughtLevel::Medium, level("medium")),
            ("openai/gpt-4.1", ThoughtLevel::High, None),
            ("ollama/llama9", ThoughtLevel::High, level("high")),
            ("ollama/llama9", ThoughtLevel::Auto, None),
        ] {
            assert_eq!(thinking(model, wanted, &table), expected, "{model}");
        }
    }

    #[test]
    fn windows() {
        let table = ModelTable::built_in();
        let window = |model: &str| ContextWindows::default().of(model, &table);
        assert_eq!(window("models/gemma-4-31b-it"), 262_144);
        assert_eq!(window("gemini-4-argon"), 1_048_576);
        assert_eq!(window(""), 1_048_576);
        assert_eq!(window("anthropic/claude-opus-5-5"), 1_000_000);
        assert_eq!(window("openai/gpt-6.2-sol"), 922_000);
        assert_eq!(window("ollama/llama9"), 128_000);
        let said = [("ollama/qwen9", 40_960), ("gemini-x", 7)].map(|(model, size)| (model.to_owned(), size)).into();
        let windows = ContextWindows { configured: said, otherwise: Some(9), ..ContextWindows::default() };
        let models = ["ollama/qwen9", "models/gemini-x", "ollama/other", "openai/gpt-6.2-sol"];
        assert_eq!(models.map(|it| windows.of(it, &table)), [40_960, 7, 9, 922_000]);
        let learned = |windows: &ContextWindows, it| windows.with_learned("ollama/qwen9", it, &table);
        assert_eq!([None, Some(8_192), Some(65_536)].map(|it| learned(&windows, it)), [40_960, 8_192, 40_960]);
        assert_eq!([None, Some(200_000)].map(|it| learned(&ContextWindows::default(), it)), [128_000, 200_000]);
    }
}
