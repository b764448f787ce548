//! MCP sampling parser: a server's request to a model, with caps and nothing hidden.

use serde_json::Value;

use castor_base::{content::Part, history::Role, sampling::SamplingRequest, text};
use castor_wire::elicitation::ElicitationError;

/// A request of more bytes is refused; images are in base64.
const MAX_REQUEST: usize = 4 * 1024 * 1024;
/// Of texts: somebody has to read them.
const MAX_TEXT: usize = 64 * 1024;
const MAX_MESSAGES: usize = 50;
const MAX_IMAGES: usize = 8;
/// An answer is no longer, whatever the server wants.
const MAX_TOKENS: u64 = 8_192;
const MAX_STOP: usize = 5;
const IMAGES: &[&str] = &["image/png", "image/jpeg", "image/webp", "image/gif"];

/// Reads the params of sampling/createMessage. Hints about models are passed over: the user's settings choose.
///
/// # Errors
/// What castor does not ask a model.
pub fn parse(params: &Value) -> Result<SamplingRequest, ElicitationError> {
    if params.to_string().len() > MAX_REQUEST {
        return Err(ElicitationError::TooLarge(format!("a request has {MAX_REQUEST} bytes at most")));
    }
    if ["tools", "toolChoice"].iter().any(|it| params.get(it).is_some_and(|it| !it.is_null())) {
        return Err(broken("castor gives such requests no tools"));
    }
    let list = params.get("messages").and_then(Value::as_array).ok_or_else(|| broken("`messages` is an array"))?;
    if list.is_empty() || list.len() > MAX_MESSAGES {
        return Err(ElicitationError::TooLarge(format!("a request has 1 to {MAX_MESSAGES} messages")));
    }
    let messages = list.iter().map(message).collect::<Result<Vec<_>, _>>()?;
    let texts = params.get("systemPrompt").and_then(Value::as_str).map(text::strip_hidden);
    let system = texts.map(|it| it.trim().to_owned()).filter(|it| !it.is_empty());
    let res = SamplingRequest {
        messages,
        system,
        max_tokens: max_tokens(params)?,
        temperature: params.get("temperature").and_then(Value::as_f64).filter(|it| (0.0..=2.0).contains(it)),
        stop: stop(params),
    };
    check_size(&res)?;
    Ok(res)
}

fn broken(why: &'static str) -> ElicitationError {
    ElicitationError::Broken(why.into())
}

fn check_size(it: &SamplingRequest) -> Result<(), ElicitationError> {
    let parts = || it.messages.iter().flat_map(|it| &it.1);
    let n_images = parts().filter(|it| matches!(it, Part::Media { .. })).count();
    let texts = parts().map(|it| if let Part::Text { text, .. } = it { text.len() } else { 0 });
    let n_bytes = texts.sum::<usize>() + it.system.as_ref().map_or(0, String::len);
    if n_bytes > MAX_TEXT || n_images > MAX_IMAGES {
        let limits = format!("a request has {MAX_TEXT} bytes of text and {MAX_IMAGES} images at most");
        return Err(ElicitationError::TooLarge(limits));
    }
    Ok(())
}

fn max_tokens(params: &Value) -> Result<u32, ElicitationError> {
    let wanted = params.get("maxTokens").and_then(Value::as_u64).filter(|it| *it > 0);
    let wanted = wanted.ok_or_else(|| broken("`maxTokens` is required, and is a whole number above 0"))?;
    Ok(u32::try_from(wanted.min(MAX_TOKENS)).unwrap_or(u32::MAX))
}

fn stop(params: &Value) -> Vec<String> {
    let all = params.get("stopSequences").and_then(Value::as_array);
    let texts = all.into_iter().flatten().filter_map(Value::as_str).filter(|it| !it.is_empty() && it.len() <= 100);
    texts.take(MAX_STOP).map(str::to_owned).collect()
}

fn message(it: &Value) -> Result<(Role, Vec<Part>), ElicitationError> {
    let role = match it.get("role").and_then(Value::as_str) {
        Some("user") => Role::User,
        Some("assistant") => Role::Model,
        _ => return Err(broken("`role` is `user` or `assistant`")),
    };
    let content = it.get("content").unwrap_or(&Value::Null);
    let blocks = content.as_array().map_or_else(|| std::slice::from_ref(content), Vec::as_slice);
    let parts = blocks.iter().map(part).collect::<Result<Vec<_>, _>>()?;
    if parts.is_empty() {
        return Err(broken("a message has content"));
    }
    Ok((role, parts))
}

fn part(block: &Value) -> Result<Part, ElicitationError> {
    let member = |name: &str| block.get(name).and_then(Value::as_str);
    match member("type") {
        Some("text") => {
            let said = member("text").ok_or_else(|| broken("a text has `text`"))?;
            Ok(Part::text(text::strip_hidden(said)))
        }
        Some("image") => {
            let (mime, data) = (member("mimeType").unwrap_or_default(), member("data").unwrap_or_default());
            let is_base64 = |it: &str| it.bytes().all(|it| it.is_ascii_alphanumeric() || b"+/=".contains(&it));
            if !IMAGES.contains(&mime) || data.is_empty() || !is_base64(data) {
                return Err(broken("an image is PNG, JPEG, WebP or GIF, in base64"));
            }
            Ok(Part::Media { mime: mime.to_owned(), data: data.into(), uri: None })
        }
        _ => Err(broken("castor takes texts and images alone")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::parse;

    fn check(params: Value, expected: &str) {
        let found = match parse(&params) {
            Ok(it) => format!(
                "{} | {} {:?} {:?}",
                it.in_words().replace("\n\n", " / "),
                it.max_tokens,
                it.temperature,
                it.stop
            ),
            Err(why) => format!("! {why}"),
        };
        assert_eq!(found, expected, "{params}");
    }

    fn of(content: Value) -> Value {
        json!({"maxTokens": 9, "messages": [{"role": "user", "content": content}]})
    }

    #[test]
    fn requests_are_read_with_nothing_hidden() {
        let text = |it: &str| json!({"type": "text", "text": it});
        let image = json!({"type": "image", "mimeType": "image/png", "data": "QUJD"});
        check(of(text("Say\u{200b} hi.")), "User: Say hi. | 9 None []");
        check(of(json!([text("What is it?"), image])), "User: What is it? / User: [image/png, about 1 KB] | 9 None []");
        let all = json!({"maxTokens": 1_000_000, "temperature": 0.5, "stopSequences": ["END", "", 5],
            "systemPrompt": "Be\u{202e} kind.", "modelPreferences": {"hints": [{"name": "best"}]},
            "includeContext": "allServers",
            "messages": [{"role": "user", "content": text("a")}, {"role": "assistant", "content": text("b")}]});
        check(all, "System: Be kind. / User: a / Model: b | 8192 Some(0.5) [\"END\"]");
    }

    #[test]
    fn what_castor_does_not_ask_is_refused() {
        let text = json!({"type": "text", "text": "a"});
        check(json!(null), "! `messages` is an array");
        check(json!({"messages": []}), "! a request has 1 to 50 messages");
        check(
            json!({"messages": vec![json!({"role": "user", "content": text}); 51]}),
            "! a request has 1 to 50 messages",
        );
        check(json!({"messages": [{"role": "system", "content": text}]}), "! `role` is `user` or `assistant`");
        let no_end = "! `maxTokens` is required, and is a whole number above 0";
        check(json!({"messages": [{"role": "user", "content": text}]}), no_end);
        check(json!({"maxTokens": 0, "messages": [{"role": "user", "content": text}]}), no_end);
        let tools = json!({"tools": [{"name": "x"}], "maxTokens": 9, "messages": []});
        check(tools, "! castor gives such requests no tools");
        check(
            of(json!({"type": "audio", "data": "QUJD", "mimeType": "audio/wav"})),
            "! castor takes texts and images alone",
        );
        check(of(json!({"type": "tool_result", "toolUseId": "1"})), "! castor takes texts and images alone");
        check(of(json!([])), "! a message has content");
        let svg = "! an image is PNG, JPEG, WebP or GIF, in base64";
        check(of(json!({"type": "image", "mimeType": "image/svg+xml", "data": "QUJD"})), svg);
        check(of(json!({"type": "image", "mimeType": "image/png", "data": "http://x"})), svg);
        let long = "! a request has 65536 bytes of text and 8 images at most";
        check(of(json!({"type": "text", "text": "x".repeat(70_000)})), long);
        let image = json!({"type": "image", "mimeType": "image/png", "data": "QUJD"});
        check(of(json!(vec![image; 9])), long);
        let huge = "! a request has 4194304 bytes at most";
        check(of(json!({"type": "text", "text": "x".repeat(5_000_000)})), huge);
    }
}
