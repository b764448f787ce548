//! JSON-RPC errors of castor: a code, a message with the cause and what to do, and a `kind` for programs.
//!
//! Clients look for words in the message (vscode-acp forgets a session that is "not found"), so the causes of other
//! errors keep clear of these.

use std::borrow::Cow;

use jsonrpsee::types::{ErrorCode, ErrorObjectOwned};
use serde::Serialize;
use serde_json::{Value, json};

use castor_base::{shown_text::show_text, text};

/// The client should offer to sign in.
pub const AUTH_REQUIRED: i32 = -32000;
/// A session that is not there.
pub const NOT_FOUND: i32 = -32002;
const CANCELLED: i32 = -32800;

/// Every `kind` there is. Programs know the error by it where the code says too little.
pub const KINDS: &[&str] = &[
    "parse",
    "request",
    "method",
    "params",
    "untrusted",
    "busy",
    "cancelled",
    "locked",
    "not_found",
    "auth",
    "config",
    "model",
    "tool",
    "log",
    "restore",
    "state",
    "internal",
    "shutdown",
];

/// Longest message, in bytes: some clients show it in one line of their window. `data.details` has the rest.
const MAX_MESSAGE: usize = 2_000;
/// Longest `data.details`, in bytes: a server's whole page may be in it.
const MAX_DETAILS: usize = 16 << 10;

/// -32700: not JSON. Goes out with id null.
pub fn parse_error(why: &str) -> ErrorObjectOwned {
    standard_error(
        ErrorCode::ParseError,
        "parse",
        &cause_and_fix(why, "Send one JSON-RPC message a line, as JSON in UTF-8."),
    )
}

/// -32600: JSON, but no request, or not now.
pub fn invalid_request(cause: &str, fix: &str) -> ErrorObjectOwned {
    standard_error(ErrorCode::InvalidRequest, "request", &cause_and_fix(cause, fix))
}

/// -32600: the session does something else.
pub fn busy(cause: &str, fix: &str) -> ErrorObjectOwned {
    standard_error(ErrorCode::InvalidRequest, "busy", &cause_and_fix(cause, fix))
}

/// -32600: the session is open here, and only one that is not can be archived. As with [`locked`], the request is sound.
pub fn session_active(session: &str) -> ErrorObjectOwned {
    let session = text::head(session, 200);
    new(
        ErrorCode::InvalidRequest,
        "This session is open here. Close it, then archive it.",
        json!({ "kind": "busy", "reason": "session_active", "sessionId": session }),
    )
}

/// -32600: another process has the session. The request itself is sound, and the message does without that word.
pub fn locked(session: &str, holder: Value, why: &str) -> ErrorObjectOwned {
    new(
        ErrorCode::InvalidRequest,
        why,
        json!({ "kind": "locked", "sessionId": text::head(session, 200), "holder": holder }),
    )
}

/// -32601.
pub fn method_not_found(method: &str, version: u8) -> ErrorObjectOwned {
    let method = text::head(method, 200);
    let fix = format!("Call a method of ACP version {version}.");
    let message = cause_and_fix(&format!("Method not found: {method}"), &fix);
    new(ErrorCode::MethodNotFound, &message, json!({ "kind": "method", "method": method }))
}

/// -32602; `why` says what would be right.
pub fn invalid_params(why: &str) -> ErrorObjectOwned {
    standard_error(ErrorCode::InvalidParams, "params", why)
}

/// -32602: the folder's trust does not allow this.
pub fn untrusted(why: &str) -> ErrorObjectOwned {
    standard_error(ErrorCode::InvalidParams, "untrusted", why)
}

/// -32603 with a word for programs. Some clients show only the message, others only `data.details`: both say
/// everything. `why` says what to do, too.
pub fn failed(kind: &str, why: &str) -> ErrorObjectOwned {
    let why = text::end_sentence(why);
    let fits = one_line(&why).len() <= MAX_MESSAGE;
    let details = if fits { one_line(&why) } else { Cow::Borrowed(text::head(&why, MAX_DETAILS)) };
    // As the message is shown.
    let details = show_text(&details);
    new(ErrorCode::InternalError, &why, json!({ "details": details, "kind": kind }))
}

/// The same with `_meta` in its data.
pub fn with_meta(error: &ErrorObjectOwned, meta: &impl Serialize) -> ErrorObjectOwned {
    let data = error.data().and_then(|it| serde_json::from_str::<Value>(it.get()).ok());
    let mut data = data.and_then(|it| it.as_object().cloned()).unwrap_or_default();
    data.insert("_meta".to_owned(), json!(meta));
    ErrorObjectOwned::owned(error.code(), error.message(), Some(data))
}

/// -32603: nothing that the client did.
pub fn internal(cause: &str, fix: &str) -> ErrorObjectOwned {
    failed("internal", &cause_and_fix(cause, fix))
}

/// -32603: a mistake of ours.
pub fn bug(cause: &str) -> ErrorObjectOwned {
    internal(cause, "This is a mistake in castor: try again, and report it with what stderr says.")
}

/// -32603: it will not be answered any more.
pub fn shutdown() -> ErrorObjectOwned {
    failed("shutdown", "castor is shutting down. Start it again, then ask again.")
}

/// -32800: nobody wants it any more.
pub fn cancelled() -> ErrorObjectOwned {
    let message = "Request cancelled: the prompt did not begin. Send it again if you still want it.";
    new(ErrorCode::ServerError(CANCELLED), message, json!({ "kind": "cancelled" }))
}

/// -32000; the message is shown next to the ways to sign in, which are in the data.
pub fn auth_required(why: &str, methods: Value) -> ErrorObjectOwned {
    new(AUTH_REQUIRED.into(), why, json!({ "authMethods": methods, "kind": "auth" }))
}

/// -32002.
pub fn session_not_found(session: &str) -> ErrorObjectOwned {
    let session = text::head(session, 200);
    let fix = "Call session/list for those there are, or session/new for another one.";
    let message = cause_and_fix(&format!("Session not found: {session}"), fix);
    new(NOT_FOUND.into(), &message, json!({ "kind": "not_found", "sessionId": session }))
}

/// With the words that JSON-RPC has for the code before it.
fn standard_error(code: ErrorCode, kind: &str, why: &str) -> ErrorObjectOwned {
    new(code, &format!("{}: {why}", code.message()), json!({ "kind": kind }))
}

fn new(code: ErrorCode, message: &str, data: Value) -> ErrorObjectOwned {
    let message = text::end_sentence(message);
    let line = one_line(&message);
    let message = match text::head(&line, MAX_MESSAGE) {
        head if head.len() < line.len() => format!("{head}…"),
        _ => line.into_owned(),
    };
    ErrorObjectOwned::owned(code.code(), message, Some(data))
}

/// The cause as a sentence, then what to do.
fn cause_and_fix(cause: &str, fix: &str) -> String {
    format!("{} {fix}", text::end_sentence(cause))
}

/// Breaks and other control characters become one space each run.
fn one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.split(char::is_control).map(str::trim).filter(|it| !it.is_empty()).collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use jsonrpsee::types::ErrorObjectOwned;
    use serde_json::{Value, json};

    use super::{KINDS, MAX_DETAILS, MAX_MESSAGE};

    /// Each constructor with a cause of every odd kind: it stays one line that ends with what to do.
    #[test]
    fn all_errors_have_one_form() {
        let long = "x ".repeat(MAX_DETAILS);
        for cause in ["x", "two\nlines\r\n\tand a tab", "ends.", "what?", "run `castor`", "nul \0 it", "", &long] {
            let all: [(ErrorObjectOwned, i32, &str); 14] = [
                (super::parse_error(cause), -32700, "parse"),
                (super::invalid_request(cause, "Fix it."), -32600, "request"),
                (super::busy(cause, "Fix it."), -32600, "busy"),
                (super::locked(cause, json!(null), cause), -32600, "locked"),
                (super::method_not_found(cause, 1), -32601, "method"),
                (super::invalid_params(cause), -32602, "params"),
                (super::untrusted(cause), -32602, "untrusted"),
                (super::failed("model", cause), -32603, "model"),
                (super::internal(cause, "Fix it."), -32603, "internal"),
                (super::bug(cause), -32603, "internal"),
                (super::shutdown(), -32603, "shutdown"),
                (super::auth_required(cause, json!([])), -32000, "auth"),
                (super::session_not_found(cause), -32002, "not_found"),
                (super::cancelled(), -32800, "cancelled"),
            ];
            for (error, code, kind) in all {
                let message = error.message();
                assert_eq!(error.code(), code, "{message}");
                assert!(!message.contains(char::is_control), "{message:?}");
                assert!(message.len() <= MAX_MESSAGE + '…'.len_utf8(), "{}", message.len());
                assert!(message.is_empty() || message.ends_with(['.', '?', '`', ':', '…']), "{message:?}");
                let data: Value = serde_json::from_str(error.data().unwrap().get()).unwrap();
                assert!(data.is_object() && data["kind"] == kind && KINDS.contains(&kind), "{data}");
                assert!(data.to_string().len() < 2 * MAX_DETAILS);
                let is_short = code == -32603 && message.len() < MAX_MESSAGE;
                assert!(!is_short || data["details"] == message, "{data} {message}");
            }
        }
    }

    /// Each message is one line, with a kind in the data.
    #[test]
    fn cause_then_what_to_do() {
        let table = [
            (super::parse_error("x"), "Parse error: x. Send one JSON-RPC message a line, as JSON in UTF-8."),
            (super::invalid_request("x", "Do y."), "Invalid request: x. Do y."),
            (super::locked("x", json!(null), "x is open elsewhere; close it"), "x is open elsewhere; close it."),
            (super::session_active("x"), "This session is open here. Close it, then archive it."),
            (super::method_not_found("x", 1), "Method not found: x. Call a method of ACP version 1."),
            (super::invalid_params("not x; send y"), "Invalid params: not x; send y."),
            (super::failed("tool", "full.\n Make room"), "full. Make room."),
            (
                super::session_not_found("x"),
                "Session not found: x. Call session/list for those there are, or session/new for another one.",
            ),
        ];
        for (error, expected) in table {
            assert_eq!(error.message(), expected);
        }
        let rest = format!("{} the end", "page ".repeat(MAX_MESSAGE));
        let data = super::failed("model", &rest).data().unwrap().get().to_owned();
        assert!(data.contains("the end."), "what the message has no room for is in the details");
    }
}
