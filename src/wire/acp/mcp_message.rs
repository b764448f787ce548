//! The draft MCP over ACP: `mcp/message`, by which a client is an MCP server itself.

use agent_client_protocol_schema::{
    MaybeUndefined,
    v1::{McpError, MessageMcpNotification, MessageMcpRequest, MessageMcpResponse},
};
use serde_json::{Map, Value, value::RawValue};

use crate::jsonrpc::message::RpcError;

pub const MESSAGE: &str = "mcp/message";
/// The largest answer, as JSON in bytes. Images travel in it.
const MAX_ANSWER: usize = 8 * 1024 * 1024;
/// What JSON-RPC calls an internal error: the client's answer is not usable.
const INTERNAL_ERROR: i32 = -32603;
const REQUEST_ID: &str = "mcp-";

/// What a client says about a request that it has not answered.
pub struct McpNotice {
    /// Of the request by which the other one travels.
    pub request: i64,
    pub server_id: String,
    pub method: String,
    pub params: Option<Map<String, Value>>,
}

/// Params of a request. `id`: of the request itself, which no other of the connection has.
pub fn message_params(server_id: &str, id: i64, method: &str, params: Option<Map<String, Value>>) -> MessageMcpRequest {
    MessageMcpRequest::new(server_id.to_owned(), format!("{REQUEST_ID}{id}"), method.to_owned()).params(params)
}

/// Reads the notification; `None`: it is none, or about no request of ours.
pub fn read_notice(params: Option<&RawValue>) -> Option<McpNotice> {
    let it: MessageMcpNotification = super::params(params).ok()?;
    let request = it.request_id.0.strip_prefix(REQUEST_ID)?.parse().ok()?;
    Some(McpNotice { request, server_id: it.server_id.0.to_string(), method: it.method, params: it.params })
}

/// What the server answered, or why there is no answer of it.
///
/// # Errors
/// The server's own, or castor's in its place.
pub fn read_answer(outcome: Result<Box<RawValue>, RpcError>) -> Result<Value, RpcError> {
    let unusable = |message: String| RpcError { code: INTERNAL_ERROR, message, data: None };
    let answer = outcome.map_err(|it| RpcError { message: format!("the client refused it: {}", it.message), ..it })?;
    let size = answer.get().len();
    if size > MAX_ANSWER {
        return Err(unusable(format!("its answer has {size} bytes, and {MAX_ANSWER} is the most")));
    }
    match serde_json::from_str(answer.get()) {
        Ok(MessageMcpResponse::Result { result, .. }) => Ok(result),
        Ok(MessageMcpResponse::Error { error: McpError { code, message, data, .. }, .. }) => {
            let data = match data {
                MaybeUndefined::Undefined => None,
                MaybeUndefined::Null => Some(Value::Null),
                MaybeUndefined::Value(it) => Some(it),
            };
            Err(RpcError { code, message, data })
        }
        Ok(_) | Err(_) => Err(unusable("its answer has neither a result nor an error of MCP".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::to_raw_value;
    use serde_json::{Value, json};

    use super::{read_answer, read_notice};
    use crate::jsonrpc::message::RpcError;

    fn check(answer: Value, expected: Result<Value, (i32, &str)>) {
        let read = read_answer(Ok(to_raw_value(&answer).unwrap()));
        assert_eq!(
            read.map_err(|it| (it.code, it.message)),
            expected.map_err(|it| (it.0, it.1.to_owned())),
            "{answer}"
        );
    }

    #[test]
    fn an_answer_has_one_outcome() {
        check(json!({"result": {"tools": []}, "_meta": 5}), Ok(json!({"tools": []})));
        check(json!({"result": null}), Ok(Value::Null));
        check(json!({"result": 1, "error": {"code": 1, "message": "x"}}), Ok(json!(1)));
        check(json!({"error": {"code": -32601, "message": "no", "data": null}}), Err((-32601, "no")));
        let neither = Err((-32603, "its answer has neither a result nor an error of MCP"));
        for answer in [json!({}), json!(null), json!([]), json!({"error": {"code": "x", "message": "y"}})] {
            check(answer, neither.clone());
        }
        let large = json!({"result": "x".repeat(8 << 20)});
        check(large, Err((-32603, "its answer has 8388621 bytes, and 8388608 is the most")));
        let refused = read_answer(Err(RpcError { code: -32002, message: "no such server".to_owned(), data: None }));
        assert_eq!(refused.unwrap_err().message, "the client refused it: no such server");
    }

    #[test]
    fn a_notice_names_a_request_of_castors() {
        let read = |id: &str| {
            let params = json!({"serverId": "s", "requestId": id, "method": "notifications/progress"});
            read_notice(Some(&to_raw_value(&params).unwrap())).map(|it| it.request)
        };
        assert_eq!([read("mcp-7"), read("mcp-"), read("7"), read("mcp-x")], [Some(7), None, None, None]);
    }
}
