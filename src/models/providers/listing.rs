//! The list of a provider's models, fetched from its API.

use secrecy::SecretString;
use serde_json::Value;

use super::remote::Remote;
use castor_base::model::{Failure, FailureKind};
use castor_hands::http::{self, safe_host};

/// Lists are long: OpenRouter's has hundreds of models with their descriptions. In bytes.
const MAX_LIST: usize = 16 << 20;
/// Models of one list, at most.
const MAX_MODELS: usize = 2_000;
/// What servers call the context window, in tokens.
const WINDOW_KEYS: &[&str] = &[
    "/inputTokenLimit",
    "/max_input_tokens",
    "/context_length",
    "/context_window",
    "/max_model_len",
    "/max_context_length",
    // What llama.cpp was started with, and what the model could.
    "/meta/n_ctx",
    "/meta/n_ctx_train",
];

/// A model as its provider knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedModel {
    pub id: String,
    pub name: Option<String>,
    /// How much it reads at once, in tokens.
    pub window: Option<u64>,
}

impl Remote {
    /// Asks the provider what it has.
    ///
    /// # Errors
    /// As any request; also where this service has no list.
    pub async fn list(&self) -> Result<Vec<ListedModel>, Failure> {
        let token = self.token().await.map_err(|it| self.present_failure(it, None))?;
        self.fetch_list(token.as_ref()).await.map_err(|it| self.present_failure(it, token.as_ref()))
    }

    async fn fetch_list(&self, token: Option<&SecretString>) -> Result<Vec<ListedModel>, Failure> {
        let none = || Failure::new(FailureKind::Auth, "This service lists no models; name one with --model.");
        let url = self.dialect.list_url(self.base()?).ok_or_else(none)?;
        let get = self.http.client()?.get(url.clone()).headers(self.headers(token)?);
        let mut response = self.http.send(get, &url).await?;
        let status = response.status();
        let body = http::read_head(&mut response, MAX_LIST).await;
        if !status.is_success() {
            return Err(self.refusal(&response, &body));
        }
        let found = serde_json::from_slice(&body).ok().and_then(|it| parse_list(&it));
        let no_list = || {
            let text = format!("{} answered with something that is no list of models.", safe_host(&url));
            Failure::new(FailureKind::Garbage, text)
        };
        found.ok_or_else(|| self.web_page(&response, &body).unwrap_or_else(no_list))
    }
}

/// `{"models":[…]}` is Gemini's form, `{"data":[…]}` everybody else's. llama.cpp has both, and says more in the second.
/// What cannot hold a conversation is left out.
fn parse_list(list: &Value) -> Option<Vec<ListedModel>> {
    let items = ["data", "models"].iter().find_map(|key| list.get(key)?.as_array())?;
    Some(items.iter().filter(|it| is_chat_model(it)).filter_map(parse_model).take(MAX_MODELS).collect())
}

fn is_chat_model(it: &Value) -> bool {
    match it.get("supportedGenerationMethods").and_then(Value::as_array) {
        Some(methods) => methods.iter().any(|it| it == "generateContent"),
        None => true,
    }
}

fn parse_model(it: &Value) -> Option<ListedModel> {
    let text = |key: &str| it.get(key).and_then(Value::as_str).filter(|it| !it.trim().is_empty());
    let id = text("id").or_else(|| text("name"))?;
    let id = id.strip_prefix("models/").unwrap_or(id);
    // It becomes a part of an address and of what clients show.
    if id.len() > 200 || id.chars().any(|it| it.is_whitespace() || it.is_control()) {
        return None;
    }
    let name = text("displayName").or_else(|| text("display_name")).or_else(|| text("id").and_then(|_| text("name")));
    let name = name.map(str::to_owned).filter(|it| it != id && it.len() <= 200);
    let window = WINDOW_KEYS.iter().find_map(|path| it.pointer(path)?.as_u64()).filter(|it| *it > 0);
    Some(ListedModel { id: id.to_owned(), name, window })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::parse_list;

    fn check(list: Value, expected: &[&str]) {
        let found = parse_list(&list).unwrap().into_iter();
        let found: Vec<String> =
            found.map(|it| format!("{} {:?} {:?}", it.id, it.name.unwrap_or_default(), it.window)).collect();
        assert_eq!(found, expected, "{list}");
    }

    #[test]
    fn the_forms_of_lists() {
        check(
            json!({ "models": [
                { "name": "models/gemini-2.5-pro", "displayName": "Gemini 2.5 Pro", "inputTokenLimit": 1_048_576,
                  "supportedGenerationMethods": ["generateContent", "countTokens"] },
                { "name": "models/embed", "supportedGenerationMethods": ["embedContent"] },
            ], "nextPageToken": "x" }),
            &[r#"gemini-2.5-pro "Gemini 2.5 Pro" Some(1048576)"#],
        );
        check(
            json!({ "data": [{ "id": "claude-opus-4-6", "type": "model", "display_name": "Claude Opus 4.6",
                "max_input_tokens": 200_000 }], "has_more": false }),
            &[r#"claude-opus-4-6 "Claude Opus 4.6" Some(200000)"#],
        );
        check(
            json!({ "object": "list", "data": [
                { "id": "gpt-5.2", "object": "model", "created": 1, "owned_by": "openai" },
                { "id": "qwen/qwen3", "name": "Qwen: Qwen3", "context_length": 40_960, "pricing": {} },
                { "id": "served", "max_model_len": 8_192 },
                { "id": "local.gguf", "meta": { "n_ctx_train": 32_768 } },
                { "id": "" }, { "id": "a b" }, {}, 7,
            ] }),
            &[
                r#"gpt-5.2 "" None"#,
                r#"qwen/qwen3 "Qwen: Qwen3" Some(40960)"#,
                r#"served "" Some(8192)"#,
                r#"local.gguf "" Some(32768)"#,
            ],
        );
        check(
            json!({ "models": [{ "name": "tiny", "model": "tiny" }], "object": "list", "data": [
                { "id": "tiny", "meta": { "n_ctx": 4_096, "n_ctx_train": 65_536 } },
            ] }),
            &[r#"tiny "" Some(4096)"#],
        );
        check(json!({ "data": [] }), &[]);
        for other in [json!([]), json!({}), json!({ "data": {} })] {
            assert_eq!(parse_list(&other), None, "{other}");
        }
    }
}
