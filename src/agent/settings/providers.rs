//! Model providers in settings: built-in rows that settings can extend or change.

use serde_json::Value;

use super::{Getter, mcp::pairs};
use castor_models::providers::{ApiDialect, ApiFamily, listing::ListedModel};
use castor_tools::workspace::Warning;

/// Models are named `NAME/MODEL`.
#[derive(Clone, Debug, PartialEq)]
pub struct Provider {
    pub name: String,
    pub dialect: ApiDialect,
    /// As it was written; checked when it is used.
    pub base_url: String,
    /// The variable that holds the key.
    pub key_env: Option<String>,
    /// Values may be secrets.
    pub headers: Vec<(String, String)>,
    /// The page where its keys are made.
    pub key_page: Option<String>,
    /// What the list of models shows of it.
    pub models: Vec<ListedModel>,
    /// Settings add or change it.
    pub is_configured: bool,
}

impl Provider {
    /// The most tools that a request may have. `None`: as many as there are.
    pub fn max_tools(&self) -> Option<usize> {
        let is_limited = self.dialect.family() == ApiFamily::OpenAi && !UNLIMITED.contains(&&*self.name);
        is_limited.then_some(OPENAI_TOOLS)
    }
}

/// The most tools of a request to OpenAI, and to most servers that speak its dialects.
const OPENAI_TOOLS: usize = 128;
/// Servers of the user's own, which take any number.
const UNLIMITED: &[&str] = &["ollama", "llamacpp", "lmstudio", "vllm"];

type KnownProvider = (&'static str, ApiDialect, &'static str, Option<(&'static str, &'static str)>);

/// Name, API, address; variable of the key and the page where keys are made.
const KNOWN: &[KnownProvider] = &[
    (
        "openai",
        ApiDialect::Responses,
        "https://api.openai.com/v1",
        Some(("OPENAI_API_KEY", "https://platform.openai.com/api-keys")),
    ),
    (
        "anthropic",
        ApiDialect::Anthropic,
        "https://api.anthropic.com",
        Some(("ANTHROPIC_API_KEY", "https://console.anthropic.com/settings/keys")),
    ),
    (
        "openrouter",
        ApiDialect::Chat,
        "https://openrouter.ai/api/v1",
        Some(("OPENROUTER_API_KEY", "https://openrouter.ai/settings/keys")),
    ),
    ("ollama", ApiDialect::Chat, "http://localhost:11434/v1", None),
    ("llamacpp", ApiDialect::Chat, "http://localhost:8080/v1", None),
    ("lmstudio", ApiDialect::Chat, "http://localhost:1234/v1", None),
    ("vllm", ApiDialect::Chat, "http://localhost:8000/v1", None),
];

/// All that are known and those of the settings, by name.
pub(super) fn read(get: &Getter<'_>, warnings: &mut Vec<Warning>) -> Vec<Provider> {
    let mut res: Vec<Provider> = KNOWN.iter().map(built_in_provider).collect();
    for (name, it) in get.value("providers").as_object().into_iter().flatten() {
        match provider(name, it, &res) {
            Ok(it) => {
                res.retain(|other| other.name != it.name);
                res.push(it);
            }
            Err(why) => {
                let key = Some(format!("providers.{name}"));
                warnings.push(Warning { origin: "settings".to_owned(), at: None, key, message: why });
            }
        }
    }
    res
}

fn built_in_provider(&(name, dialect, base_url, key): &KnownProvider) -> Provider {
    Provider {
        name: name.to_owned(),
        dialect,
        base_url: base_url.to_owned(),
        key_env: key.map(|it| it.0.to_owned()),
        key_page: key.map(|it| it.1.to_owned()),
        headers: Vec::new(),
        models: Vec::new(),
        is_configured: false,
    }
}

fn provider(name: &str, it: &Value, known: &[Provider]) -> Result<Provider, String> {
    let it = it.as_object().ok_or("should be an object {…}; ignored")?;
    if name.is_empty() || name.contains('/') || matches!(name, "models" | "tunedModels") {
        return Err("is no usable name: models are named NAME/MODEL; ignored".to_owned());
    }
    let base = known.iter().find(|it| it.name == name).cloned();
    let text = |key: &str| it.get(key).and_then(Value::as_str).map(str::trim).filter(|it| !it.is_empty());
    let dialect = match (text("type"), &base) {
        (Some(it), _) => {
            ApiDialect::parse(it).ok_or_else(|| format!("`type` should be {}; ignored", ApiDialect::names()))?
        }
        (None, Some(it)) => it.dialect,
        (None, None) => ApiDialect::Chat,
    };
    let base_url = text("baseUrl").map(str::to_owned).or(base.as_ref().map(|it| it.base_url.clone()));
    // Keys of another address are made elsewhere.
    let key_page = base.as_ref().filter(|_| text("baseUrl").is_none()).and_then(|it| it.key_page.clone());
    Ok(Provider {
        name: name.to_owned(),
        dialect,
        key_page,
        // A key goes to the address that it is for: another address names its own variable.
        key_env: text("apiKeyEnv").map(str::to_owned).or_else(|| base.filter(|_| text("baseUrl").is_none())?.key_env),
        base_url: base_url.ok_or("names no `baseUrl`; ignored")?,
        headers: pairs(it, "headers"),
        models: it.get("models").and_then(Value::as_array).into_iter().flatten().filter_map(read_model).collect(),
        is_configured: true,
    })
}

/// `"NAME"`, or `{"id": "NAME", "name": "…", "contextWindow": …}`.
fn read_model(it: &Value) -> Option<ListedModel> {
    let text = |it: &Value| it.as_str().map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned);
    let id = text(it).or_else(|| text(it.get("id")?))?;
    let window = it.get("contextWindow").and_then(Value::as_u64).filter(|it| *it > 0);
    Some(ListedModel { id, name: it.get("name").and_then(text), window })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{KNOWN, ListedModel, built_in_provider, provider};

    fn check(name: &str, it: Value, expected: &str) {
        let all: Vec<_> = KNOWN.iter().map(built_in_provider).collect();
        let actual = match provider(name, &it, &all) {
            Ok(it) => {
                let model = |it: &ListedModel| {
                    format!(" {} {:?} {:?}", it.id, it.name.as_deref().unwrap_or_default(), it.window)
                };
                let models: String = it.models.iter().map(model).collect();
                format!("{:?} {} {:?} {:?}{models}", it.dialect, it.base_url, it.key_env, it.headers)
            }
            Err(why) => why,
        };
        assert_eq!(actual, expected, "{name} {it}");
    }

    #[test]
    fn three_lines_add_one() {
        check("local", json!({"baseUrl": "http://localhost:9/v1"}), "Chat http://localhost:9/v1 None []");
        check(
            "x",
            json!({"type": "anthropic", "baseUrl": "https://x", "apiKeyEnv": "X", "headers": {"A": "b"}, "models": ["m"]}),
            r#"Anthropic https://x Some("X") [("A", "b")] m "" None"#,
        );
        check(
            "openai",
            json!({"models": ["gpt", {"id": "big", "name": "Big", "contextWindow": 9}, {"name": "odd"}, 7]}),
            r#"Responses https://api.openai.com/v1 Some("OPENAI_API_KEY") [] gpt "" None big "Big" Some(9)"#,
        );
        check("x", json!({}), "names no `baseUrl`; ignored");
        check("x", json!({"type": "odd", "baseUrl": "u"}), "`type` should be openai, responses or anthropic; ignored");
        check("a/b", json!({}), "is no usable name: models are named NAME/MODEL; ignored");
        check("x", json!([]), "should be an object {…}; ignored");
    }

    #[test]
    fn a_key_does_not_go_to_another_address() {
        check("openai", json!({"baseUrl": "https://other"}), "Responses https://other None []");
    }
}
