//! Input that a server needs before it goes on with a request, from 2026-07-28 on: castor asks for it, and requests again.
// The revision of 2026-07-28 deprecates roots; servers of today ask for them.
#![allow(deprecated)]

use rmcp::model::{ClientRequest, InputResponses, ListRootsResult};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::{client::root, elicitation_call::ServerAsker};
use castor_base::{path::AbsPath, sampling::SAMPLING};

/// What one answer may ask for: a person answers one after the other.
const MAX_REQUESTS: usize = 4;
/// What a server may have castor keep for it between two requests, in bytes.
const MAX_STATE: usize = 64 << 10;

/// What a server wants before it goes on.
#[derive(Debug, PartialEq)]
pub(super) struct RequiredInput {
    requests: Map<String, Value>,
    /// The server's own, which it gets back.
    state: Option<String>,
}

/// What the next request has of it.
#[derive(Default)]
pub(super) struct GivenInput {
    responses: Option<InputResponses>,
    state: Option<String>,
}

/// `None`: the result is one.
pub(super) fn required_input(result: &Value) -> Option<RequiredInput> {
    if result.get("resultType").is_none_or(|it| it != "input_required") {
        return None;
    }
    let requests = result.get("inputRequests").and_then(Value::as_object).cloned().unwrap_or_default();
    let state = result.get("requestState").and_then(Value::as_str).map(str::to_owned);
    Some(RequiredInput { requests, state })
}

impl GivenInput {
    /// Only these have a place for it.
    pub(super) fn add_to(self, mut request: ClientRequest) -> ClientRequest {
        let (responses, state) = match &mut request {
            ClientRequest::CallToolRequest(it) => (&mut it.params.input_responses, &mut it.params.request_state),
            ClientRequest::GetPromptRequest(it) => (&mut it.params.input_responses, &mut it.params.request_state),
            ClientRequest::ReadResourceRequest(it) => (&mut it.params.input_responses, &mut it.params.request_state),
            _ => return request,
        };
        (*responses, *state) = (self.responses, self.state);
        request
    }
}

impl ServerAsker {
    /// Asks for all of it, one after the other. The error says why that came to nothing.
    pub(super) async fn provide(
        &self,
        wanted: RequiredInput,
        roots: &[AbsPath],
        cancel: &CancellationToken,
    ) -> Result<GivenInput, String> {
        let RequiredInput { requests, state } = wanted;
        if requests.len() > MAX_REQUESTS || state.as_ref().is_some_and(|it| it.len() > MAX_STATE) {
            return Err(format!(
                "it wants more than {MAX_REQUESTS} things at once, or has castor keep too much for it"
            ));
        }
        if requests.is_empty() && state.is_none() {
            return Err("it wants input, and does not say which".to_owned());
        }
        let mut responses = InputResponses::new();
        for (name, request) in requests {
            let response = self.answer_one(&request, roots, cancel).await?;
            responses.insert(name, response);
        }
        Ok(GivenInput { responses: Some(responses).filter(|it| !it.is_empty()), state })
    }

    async fn answer_one(
        &self,
        request: &Value,
        roots: &[AbsPath],
        cancel: &CancellationToken,
    ) -> Result<Value, String> {
        let params = request.get("params").cloned().unwrap_or_default();
        let answer = match request.get("method").and_then(Value::as_str).unwrap_or_default() {
            "elicitation/create" => self.ask(&params, cancel).await.map(serde_json::to_value),
            SAMPLING => self.sample(&params, cancel).await.map(serde_json::to_value),
            "roots/list" => {
                let all = roots.iter().map(root).collect();
                Ok(serde_json::to_value(ListRootsResult::new(all)))
            }
            _ => return Err("it wants something that castor does not know".to_owned()),
        };
        answer.map_err(|it| it.message.into_owned())?.map_err(|it| it.to_string())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::required_input;

    #[test]
    fn only_what_says_so_wants_input() {
        let check = |result: Value, want: Option<(usize, Option<&str>)>| {
            let found = required_input(&result);
            let found = found.as_ref().map(|it| (it.requests.len(), it.state.as_deref()));
            assert_eq!(found, want, "{result}");
        };
        let ask = json!({"method": "elicitation/create", "params": {}});
        check(
            json!({"resultType": "input_required", "inputRequests": {"a": ask}, "requestState": "s"}),
            Some((1, Some("s"))),
        );
        check(json!({"resultType": "input_required", "requestState": "s"}), Some((0, Some("s"))));
        check(json!({"resultType": "complete", "inputRequests": {"a": ask}}), None);
        check(json!({"content": []}), None);
    }
}
