//! The errors that castor answers with. `message` is for people; what programs look at is in `data`.

use jsonrpsee::types::{ErrorCode, ErrorObjectOwned};
use serde::Serialize;
use serde_json::{Value, json};

/// The client cancelled the request (`$/cancel_request`).
pub const CANCELLED: i32 = -32800;
/// The client should offer to sign in.
pub const AUTH_REQUIRED: i32 = -32000;
/// A session or file that is not there.
pub const NOT_FOUND: i32 = -32002;

/// -32700: not JSON. Goes out with id null.
pub fn parse_error(why: &str) -> ErrorObjectOwned {
    explained(ErrorCode::ParseError, why)
}

/// -32600: JSON, but no request, or not now.
pub fn invalid_request(why: &str) -> ErrorObjectOwned {
    explained(ErrorCode::InvalidRequest, why)
}

/// -32601; `data` is the method.
pub fn method_not_found(method: &str) -> ErrorObjectOwned {
    new(ErrorCode::MethodNotFound, format!("Method not found: {method}"), Some(method))
}

/// -32602.
pub fn invalid_params(why: &str) -> ErrorObjectOwned {
    explained(ErrorCode::InvalidParams, why)
}

/// -32603. Some clients show only the message, others only `data.details`: both say everything.
pub fn internal(details: &str) -> ErrorObjectOwned {
    new(ErrorCode::InternalError, details.to_owned(), Some(json!({ "details": details })))
}

/// -32603 with a word for programs: `model`, `tool`, `log`, `session`.
pub fn failed(kind: &str, details: &str) -> ErrorObjectOwned {
    new(ErrorCode::InternalError, details.to_owned(), Some(json!({ "details": details, "kind": kind })))
}

/// -32800.
pub fn cancelled() -> ErrorObjectOwned {
    new(CANCELLED.into(), "Request cancelled".to_owned(), None::<Value>)
}

/// -32000; `why` replaces the stock text and is shown next to the ways to sign in.
pub fn auth_required(why: Option<&str>) -> ErrorObjectOwned {
    new(AUTH_REQUIRED.into(), why.unwrap_or("Authentication required").to_owned(), None::<Value>)
}

/// -32002 for a session.
pub fn session_not_found(session: &str) -> ErrorObjectOwned {
    new(NOT_FOUND.into(), format!("Session not found: {session}"), Some(json!({ "sessionId": session })))
}

/// -32002 for a file.
pub fn file_not_found(uri: &str) -> ErrorObjectOwned {
    new(NOT_FOUND.into(), format!("Resource not found: {uri}"), Some(json!({ "uri": uri })))
}

fn explained(code: ErrorCode, why: &str) -> ErrorObjectOwned {
    new(code, format!("{}: {why}", code.message()), None::<Value>)
}

fn new<D: Serialize>(code: ErrorCode, message: String, data: Option<D>) -> ErrorObjectOwned {
    ErrorObjectOwned::owned(code.code(), message, data)
}

#[cfg(test)]
mod tests {
    use jsonrpsee::types::ErrorObjectOwned;

    fn check(error: &ErrorObjectOwned, expected: &str) {
        assert_eq!(serde_json::to_string(error).unwrap(), expected);
    }

    #[test]
    fn codes_and_data() {
        check(&super::parse_error("x"), r#"{"code":-32700,"message":"Parse error: x"}"#);
        check(&super::invalid_request("x"), r#"{"code":-32600,"message":"Invalid request: x"}"#);
        check(&super::method_not_found("x"), r#"{"code":-32601,"message":"Method not found: x","data":"x"}"#);
        check(&super::invalid_params("x"), r#"{"code":-32602,"message":"Invalid params: x"}"#);
        check(&super::internal("x"), r#"{"code":-32603,"message":"x","data":{"details":"x"}}"#);
        check(&super::failed("tool", "x"), r#"{"code":-32603,"message":"x","data":{"details":"x","kind":"tool"}}"#);
        check(&super::cancelled(), r#"{"code":-32800,"message":"Request cancelled"}"#);
        check(&super::auth_required(None), r#"{"code":-32000,"message":"Authentication required"}"#);
        check(
            &super::session_not_found("x"),
            r#"{"code":-32002,"message":"Session not found: x","data":{"sessionId":"x"}}"#,
        );
        check(&super::file_not_found("x"), r#"{"code":-32002,"message":"Resource not found: x","data":{"uri":"x"}}"#);
    }
}
