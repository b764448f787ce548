//! Completions: values that a server suggests for an argument of a prompt, or for a place in a resource's address.

use std::{collections::HashMap, time::Duration};

use rmcp::model::{ArgumentInfo, ClientRequest, CompleteRequest, CompleteRequestParams, CompletionContext, Reference};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::Connection;
use castor_base::{
    server_offer::{CompletedOffer, Completion, CompletionQuery},
    text,
};

/// The protocol's own limit.
const MAX_VALUES: usize = 100;
/// Of one value, in bytes.
const MAX_VALUE: usize = 500;
/// Somebody types.
const LIMIT: Duration = Duration::from_secs(5);

impl Connection {
    /// # Errors
    /// Why there are none, in one line.
    pub async fn complete(&self, query: &CompletionQuery, cancel: &CancellationToken) -> Result<Completion, String> {
        let of = match &query.of {
            CompletedOffer::Prompt(name) => Reference::for_prompt(name),
            CompletedOffer::Template(uri) => Reference::for_resource(uri),
        };
        let known: HashMap<String, String> = query.known.clone().into_iter().collect();
        let mut params = CompleteRequestParams::new(of, ArgumentInfo::new(&query.argument, &query.value));
        if !known.is_empty() {
            params = params.with_context(CompletionContext::with_arguments(known));
        }
        let request = ClientRequest::CompleteRequest(CompleteRequest::new(params));
        completion(&self.request(request, LIMIT, cancel).await?)
    }
}

fn completion(result: &Value) -> Result<Completion, String> {
    let found = result.get("completion").ok_or("its answer cannot be read")?;
    let all = found.get("values").and_then(Value::as_array).ok_or("its answer cannot be read")?;
    let plain =
        |it: &Value| Some(text::strip_hidden(it.as_str()?)).filter(|it| !it.is_empty() && it.len() <= MAX_VALUE);
    let values: Vec<String> = all.iter().filter_map(plain).take(MAX_VALUES).collect();
    let total = found.get("total").and_then(Value::as_u64);
    let has_more = found.get("hasMore").and_then(Value::as_bool).unwrap_or_default() || all.len() > MAX_VALUES;
    Ok(Completion { values, total, has_more })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::completion;

    fn check(result: Value, expected: &str) {
        let found = completion(&result);
        let said = found.map(|it| format!("{} {:?} {}", it.values.join("|"), it.total, it.has_more));
        assert_eq!(said.unwrap_or_else(|it| it), expected, "{result}");
    }

    #[test]
    fn values_are_short_and_few() {
        let of = |it: Value| json!({ "completion": it });
        check(
            of(json!({"values": ["a", "b\u{200b}", 5, "", "x".repeat(600)], "total": 9, "hasMore": true})),
            "a|b Some(9) true",
        );
        check(of(json!({"values": []})), " None false");
        let many: Vec<String> = (0..101).map(|_| "a".to_owned()).collect();
        check(of(json!({ "values": many })), &format!("{} None true", ["a"; 100].join("|")));
        check(json!({}), "its answer cannot be read");
        check(of(json!({"values": "a"})), "its answer cannot be read");
    }
}
