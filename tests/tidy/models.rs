//! Models are data: no name of one, and no beginning of a name, stands in code.

use regex::Regex;

use super::{Report, sources};

/// Families, followed by what only names of models have behind them.
const NAMES: &str = r"(?i)\b(gemini-(\d|flash|pro\b)|claude-(\d|opus|sonnet|haiku|fable)|gpt-(\d|oss)|chatgpt|gemma-?\d|grok-\d|deepseek-(v\d|r\d|chat|coder|flash|reasoner)|kimi-k|qwen\d?(\.\d)?-?(coder|max|plus|\d)|glm-\d|minimax-m|mistral-(large|medium|small)|devstral|codestral|llama-?\d|o[134](-mini|-pro)\b)";
/// The beginning of a text of code that is a family's name.
const PREFIXES: &[&str] = &[
    "\"gemini-\"",
    "\"claude\"",
    "\"claude-\"",
    "\"gpt-",
    "\"gpt\"",
    "\"gemma-",
    "\"grok",
    "\"kimi",
    "\"qwen",
    "\"glm",
];
/// Places where a name is an example for people, and why.
const EXAMPLES: &[(&str, &str)] = &[
    ("xtask/docs/samples.rs", "a value of a page of reference"),
    ("agent/settings/keys.rs", "the text of a setting names a local model"),
];

#[test]
fn no_model_is_named_in_code() {
    let names = Regex::new(NAMES).unwrap();
    let mut report = Report::default();
    for source in sources().iter().filter(|it| !EXAMPLES.iter().any(|(file, _)| it.name == *file)) {
        for (line, code) in source.lines() {
            let found = names.find(code).map(|it| it.as_str().to_owned());
            let begins = || PREFIXES.iter().find(|it| code.contains(**it)).map(|it| (*it).to_owned());
            if let Some(name) = found.or_else(begins) {
                report.add(source, line, &format!("names the model {name}; rows of models.toml say what is so of it"));
            }
        }
    }
    let texts = [r#""gemini-3""#, r#"starts_with("claude-opus")"#, r#"("gpt-5", 400_000)"#, "gemma-4-", "o4-mini"];
    assert!(texts.iter().all(|it| names.is_match(it)));
    let others = ["gemini-api-key", "gemini-extension.json", "claude-code", ".claude", "gemini-nested", "auto-gemini"];
    assert!(!others.iter().any(|it| names.is_match(it)));
}
