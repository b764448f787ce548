//! Gemini model families: default names and parameters, as data.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use serde_json::{Map, Value};

use super::alias::{Alias, ModelConfig};

/// An alias that castor brings. Settings may say otherwise.
#[derive(Clone, Copy, Debug)]
struct BuiltInAlias {
    name: &'static str,
    /// Empty: nothing.
    extends: &'static str,
    /// Empty: none of its own.
    model: &'static str,
    /// JSON, in the words of Gemini's API; empty: none of its own.
    generation: &'static str,
    /// Whether the user can choose it as a model.
    on_offer: bool,
}

const fn params(name: &'static str, extends: &'static str, generation: &'static str) -> BuiltInAlias {
    BuiltInAlias { name, extends, model: "", generation, on_offer: false }
}

const fn model(name: &'static str, model: &'static str) -> BuiltInAlias {
    BuiltInAlias { name, extends: "", model, generation: "", on_offer: true }
}

/// What models that have no alias extend.
pub const CHAT_BASE: &str = "chat-base";

const BUILT_IN: &[BuiltInAlias] = &[
    params("base", "", r#"{"temperature": 0, "topP": 1}"#),
    params(CHAT_BASE, "base", r#"{"temperature": 1, "topP": 0.95, "topK": 64}"#),
    params("chat-base-2.5", CHAT_BASE, r#"{"thinkingConfig": {"thinkingBudget": 8192}}"#),
    params("chat-base-3", CHAT_BASE, r#"{"thinkingConfig": {"thinkingLevel": "HIGH"}}"#),
    model("auto", "gemini-3-pro-preview"),
    model("auto-gemini-3", "gemini-3-pro-preview"),
    model("auto-gemini-2.5", "gemini-2.5-pro"),
    model("pro", "gemini-3-pro-preview"),
    model("flash", "gemini-3-flash-preview"),
    model("flash-lite", "gemini-3.1-flash-lite"),
];

/// Names that leave the choice to the router: what is for hard work, and what for the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AutoFamily {
    pub pro: &'static str,
    pub flash: &'static str,
}

/// By these names. What `pro` and `flash` are the user may say, of any provider.
const AUTO: &[(&str, AutoFamily)] = &[
    ("auto", AutoFamily { pro: "pro", flash: "flash" }),
    ("auto-gemini-3", AutoFamily { pro: "pro", flash: "flash" }),
    ("auto-gemini-2.5", AutoFamily { pro: "gemini-2.5-pro", flash: "gemini-2.5-flash" }),
];

pub fn auto(name: &str) -> Option<AutoFamily> {
    AUTO.iter().find(|(it, _)| *it == name).map(|(_, it)| *it)
}

/// What models extend that have no alias, by the beginnings of their names; the first that fits.
const FAMILIES: &[(&str, Option<&str>)] = &[
    // They refuse such a topK.
    ("gemini-1", None),
    ("gemini-2.0", None),
    ("gemini-2.5", Some("chat-base-2.5")),
    ("gemini-3", Some("chat-base-3")),
    ("gemma-4", Some("chat-base-3")),
    ("gemini-", Some(CHAT_BASE)),
];

/// The alias that `model` belongs to; `None`: it is another provider's, or unknown.
pub fn of(model: &str) -> Option<&'static str> {
    let name = model.trim_start_matches("models/");
    FAMILIES.iter().find(|(begins, _)| name.starts_with(begins)).and_then(|(_, alias)| *alias)
}

/// Whether the user can choose this alias, which castor brings.
pub fn is_on_offer(name: &str) -> bool {
    BUILT_IN.iter().any(|it| it.name == name && it.on_offer)
}

/// Whether castor brings this alias.
pub fn is_built_in(name: &str) -> bool {
    BUILT_IN.iter().any(|it| it.name == name)
}

/// All of them, weaker than what settings say.
pub fn aliases() -> Arc<BTreeMap<String, Alias>> {
    /// One for all sessions.
    static ALIASES: LazyLock<Arc<BTreeMap<String, Alias>>> = LazyLock::new(|| Arc::new(read()));
    ALIASES.clone()
}

fn read() -> BTreeMap<String, Alias> {
    let said = |it: &'static str| (!it.is_empty()).then(|| it.to_owned());
    let rows = BUILT_IN.iter().map(|it| {
        let generation: Map<String, Value> = serde_json::from_str(it.generation).unwrap_or_default();
        let config = ModelConfig { model: said(it.model), generation };
        (it.name.to_owned(), Alias { extends: said(it.extends), config })
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value};

    use super::{BUILT_IN, CHAT_BASE, FAMILIES, is_built_in, of};

    #[test]
    fn the_table_is_whole() {
        for it in BUILT_IN {
            let json = serde_json::from_str::<Map<String, Value>>(it.generation);
            assert!(it.generation.is_empty() || json.is_ok(), "{}", it.name);
            assert!(it.extends.is_empty() || is_built_in(it.extends), "{}", it.name);
        }
        assert!(FAMILIES.iter().all(|(_, alias)| alias.is_none_or(is_built_in)));
    }

    #[test]
    fn families_by_name() {
        let table = [
            ("gemini-2.5-flash-lite", Some("chat-base-2.5")),
            ("models/gemini-2.5-pro", Some("chat-base-2.5")),
            ("gemini-3.5-flash", Some("chat-base-3")),
            ("gemma-4-31b-it", Some("chat-base-3")),
            ("gemini-flash-latest", Some(CHAT_BASE)),
            ("gemini-2.0-flash", None),
            ("openrouter/google/gemini-2.5-pro", None),
            ("gemma-3-27b-it", None),
            ("demo", None),
        ];
        for (model, expected) in table {
            assert_eq!(of(model), expected, "{model}");
        }
    }
}
