//! JSON-RPC message parser: a request, a notification, a response, or the error to send instead.

use std::{borrow::Cow, fmt};

use jsonrpsee::types::{ErrorCode, ErrorObjectOwned};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::{Value, value::RawValue};

use crate::{json_text, jsonrpc::error};
use castor_base::text;

/// A request's id, which its answer echoes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RequestId {
    Null,
    /// Whole numbers only: a fraction could not be echoed exactly.
    Number(i64),
    Text(String),
}

#[derive(Debug)]
pub enum Message {
    Request { id: RequestId, method: String, params: Option<Box<RawValue>> },
    Notification { method: String, params: Option<Box<RawValue>> },
    Response { id: RequestId, outcome: Result<Box<RawValue>, RpcError> },
}

/// The other side's error, read leniently: fields we do not know are dropped.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RpcError {
    pub code: i32,
    pub message: String,
    pub data: Option<Value>,
}

impl RpcError {
    /// The kind of castor's own errors.
    pub fn kind(&self) -> Option<&str> {
        self.data.as_ref()?.get("kind")?.as_str()
    }
}

/// A line that is no message.
#[derive(Debug, PartialEq)]
pub enum InvalidMessage {
    /// Answer it so.
    Answer { id: RequestId, error: ErrorObjectOwned },
    /// Something like a response: never answered, or two peers could answer each other forever. Says why, for the log.
    Ignore(&'static str),
}

/// Reads one line. Only the envelope is looked at: `params` and `result` are valid JSON of any kind and depth, so
/// that reading them into values can still fail (nesting above 128), but not overflow the stack. Texts are made readable.
pub fn parse(line: &[u8]) -> Result<Message, InvalidMessage> {
    let text = json_text::readable(line);
    // Structs and maps that serde reads also accept arrays, so the kind is checked first.
    if !text.trim_ascii_start().starts_with('{') {
        return Err(no_object(&text));
    }
    let head: MessageHead = serde_json::from_str(&text).map_err(|it| unreadable(&it.to_string()))?;
    // It could not be echoed as it came.
    let is_replaced = |it: &RawValue| it.get().contains('\u{fffd}') || it.get().contains("\\ufffd");
    if matches!(text, Cow::Owned(_)) && head.id.is_some_and(is_replaced) {
        return Err(bad_id());
    }
    match head.method {
        Some(method) => call(&head, method),
        None => reply(&head),
    }
}

fn call(head: &MessageHead, method: &RawValue) -> Result<Message, InvalidMessage> {
    let id = match head.id {
        None => None,
        Some(raw) => Some(read_id(raw).ok_or_else(bad_id)?),
    };
    let method = match serde_json::from_str(method.get()) {
        Ok(method) if head.is_v2() => method,
        Ok(_) => return Err(invalid(id, "jsonrpc must be \"2.0\"")),
        Err(_) => return Err(invalid(id, "method must be a string")),
    };
    let params = head.params.map(ToOwned::to_owned);
    Ok(match id {
        Some(id) => Message::Request { id, method, params },
        None => Message::Notification { method, params },
    })
}

fn reply(head: &MessageHead) -> Result<Message, InvalidMessage> {
    if head.result.is_none() && head.error.is_none() {
        let id = head.id.map(|raw| read_id(raw).ok_or_else(bad_id)).transpose()?;
        return Err(invalid(id, "neither method nor result"));
    }
    let Some(id) = head.id.and_then(read_id) else {
        return Err(InvalidMessage::Ignore("a response without a usable id"));
    };
    if !head.is_v2() {
        return Err(InvalidMessage::Ignore("a response whose jsonrpc is not \"2.0\""));
    }
    // Some peers send both fields, one of them null.
    let outcome = match (head.error.filter(|it| !is_null(it)), head.result) {
        (Some(error), _) => Err(read_error(error)),
        (None, Some(result)) => Ok(result.to_owned()),
        (None, None) => Ok(RawValue::NULL.to_owned()),
    };
    Ok(Message::Response { id, outcome })
}

fn read_id(raw: &RawValue) -> Option<RequestId> {
    serde_json::from_str(raw.get()).ok()
}

fn is_null(raw: &RawValue) -> bool {
    raw.get() == "null"
}

fn read_error(raw: &RawValue) -> RpcError {
    #[derive(Deserialize)]
    struct LooseValue<'a> {
        #[serde(borrow)]
        code: Option<&'a RawValue>,
        #[serde(borrow)]
        message: Option<&'a RawValue>,
        #[serde(borrow)]
        data: Option<&'a RawValue>,
    }
    let Ok(loose) = serde_json::from_str::<LooseValue>(raw.get()) else {
        let message = text::head(raw.get(), 200).to_owned();
        return RpcError { code: ErrorCode::InternalError.code(), message, data: None };
    };
    RpcError {
        code: value(loose.code).unwrap_or(ErrorCode::InternalError.code()),
        message: value(loose.message).unwrap_or_default(),
        data: value(loose.data),
    }
}

fn value<'a, T: Deserialize<'a>>(raw: Option<&'a RawValue>) -> Option<T> {
    raw.and_then(|it| serde_json::from_str(it.get()).ok())
}

fn no_object(text: &str) -> InvalidMessage {
    match serde_json::from_str::<IgnoredAny>(text) {
        Ok(_) if text.trim_ascii_start().starts_with('[') => invalid(None, "batches are not supported"),
        Ok(_) => invalid(None, "a message is an object"),
        Err(it) => unreadable(&it.to_string()),
    }
}

fn unreadable(why: &str) -> InvalidMessage {
    InvalidMessage::Answer { id: RequestId::Null, error: error::parse_error(why) }
}

fn bad_id() -> InvalidMessage {
    invalid(None, "id must be a string, a whole number or null")
}

fn invalid(id: Option<RequestId>, why: &str) -> InvalidMessage {
    let fix = "Send one JSON-RPC 2.0 request, notification or response a line.";
    InvalidMessage::Answer { id: id.unwrap_or(RequestId::Null), error: error::invalid_request(why, fix) }
}

/// The envelope, each field as it stands. A key that comes twice: the last one counts.
#[derive(Default)]
struct MessageHead<'a> {
    jsonrpc: Option<&'a RawValue>,
    /// Null is an id.
    id: Option<&'a RawValue>,
    /// Null is none.
    method: Option<&'a RawValue>,
    /// Null is none.
    params: Option<&'a RawValue>,
    /// Null is a result.
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

impl MessageHead<'_> {
    fn is_v2(&self) -> bool {
        self.jsonrpc.is_some_and(|it| it.get() == "\"2.0\"")
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Key {
    Jsonrpc,
    Id,
    Method,
    Params,
    Result,
    Error,
    #[serde(other)]
    Other,
}

impl<'de> Deserialize<'de> for MessageHead<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(HeadVisitor)
    }
}

struct HeadVisitor;

impl<'de> Visitor<'de> for HeadVisitor {
    type Value = MessageHead<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut head = MessageHead::default();
        while let Some(key) = map.next_key()? {
            let raw: &RawValue = map.next_value()?;
            match key {
                Key::Jsonrpc => head.jsonrpc = Some(raw),
                Key::Id => head.id = Some(raw),
                Key::Method => head.method = Some(raw).filter(|it| !is_null(it)),
                Key::Params => head.params = Some(raw).filter(|it| !is_null(it)),
                Key::Result => head.result = Some(raw),
                Key::Error => head.error = Some(raw),
                Key::Other => (),
            }
        }
        Ok(head)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, value::RawValue};

    use super::{InvalidMessage, Message, RpcError, parse};

    fn check(line: &str, expected: &str) {
        assert_eq!(shown(line.as_bytes()), expected, "{line}");
    }

    fn shown(line: &[u8]) -> String {
        let raw = |it: Option<Box<RawValue>>| it.map_or("-".to_owned(), |it| it.get().to_owned());
        match parse(line) {
            Ok(Message::Request { id, method, params }) => format!("request {id:?} {method} {}", raw(params)),
            Ok(Message::Notification { method, params }) => format!("notification {method} {}", raw(params)),
            Ok(Message::Response { id, outcome: Ok(it) }) => format!("result {id:?} {}", it.get()),
            Ok(Message::Response { id, outcome: Err(RpcError { code, message, data }) }) => {
                format!("error {id:?} {code} {message:?} {}", data.unwrap_or_default())
            }
            Err(InvalidMessage::Answer { id, error }) => format!("bad {id:?} {}", error.code()),
            Err(InvalidMessage::Ignore(_)) => "ignore".to_owned(),
        }
    }

    #[test]
    fn reads_messages() {
        check(r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#, "request Number(1) m -");
        check(
            r#" {"params": {"a": 1} ,"method":"m","id":"é\u0041","jsonrpc":"2.0"} "#,
            r#"request Text("éA") m {"a": 1}"#,
        );
        check(r#"{"jsonrpc":"2.0","id":null,"method":"m","params":null}"#, "request Null m -");
        check(
            r#"{"jsonrpc":"2.0","id":-9223372036854775808,"method":"m"}"#,
            "request Number(-9223372036854775808) m -",
        );
        check(r#"{"jsonrpc":"2.0","method":"m","params":[1],"x":{"y":[]}}"#, "notification m [1]");
        check(r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}"#, "request Number(2) m -");
    }

    #[test]
    fn reads_responses() {
        check(r#"{"jsonrpc":"2.0","id":3,"result":{}}"#, "result Number(3) {}");
        check(r#"{"jsonrpc":"2.0","id":3,"result":null}"#, "result Number(3) null");
        check(r#"{"jsonrpc":"2.0","id":3,"result":1,"error":null}"#, "result Number(3) 1");
        check(r#"{"jsonrpc":"2.0","id":3,"error":null}"#, "result Number(3) null");
        check(
            r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32800,"message":"no","data":[1],"stack":""}}"#,
            r#"error Number(3) -32800 "no" [1]"#,
        );
        check(r#"{"jsonrpc":"2.0","id":3,"error":{"code":1e99,"message":7}}"#, r#"error Number(3) -32603 "" null"#);
        check(r#"{"jsonrpc":"2.0","id":3,"error":"x","result":null}"#, r#"error Number(3) -32603 "\"x\"" null"#);
        check(r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}"#, r#"error Null 1 "m" null"#);
    }

    #[test]
    fn answers_what_is_not_json() {
        for line in
            ["x", "{", "{}{}", r#"{"a":1} {"b":2}"#, "[1,", "{\"id\":01}", "", "\u{feff}{}", "nul", "{\"\\ud80\":1}"]
        {
            check(line, "bad Null -32700");
        }
    }

    #[test]
    fn answers_what_is_no_request() {
        for line in ["[]", "[{}]", r#" ["2.0",1,"m"]"#, "1", "null", "\"x\"", "{}", r#"{"jsonrpc":"2.0"}"#] {
            check(line, "bad Null -32600");
        }
        for id in ["{}", "[]", "true", "1.5", "1.0", "1e3", "9223372036854775808", r#""\ud800""#] {
            check(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#), "bad Null -32600");
            check(&format!(r#"{{"jsonrpc":"2.0","id":{id}}}"#), "bad Null -32600");
        }
        check(r#"{"jsonrpc":"2.0","id":7}"#, "bad Number(7) -32600");
        check(r#"{"id":7,"method":"m"}"#, "bad Number(7) -32600");
        check(r#"{"jsonrpc":"1.0","id":"a","method":"m"}"#, "bad Text(\"a\") -32600");
        check(r#"{"jsonrpc":2.0,"id":7,"method":"m"}"#, "bad Number(7) -32600");
        check(r#"{"jsonrpc":"1.0","method":"m"}"#, "bad Null -32600");
        check(r#"{"jsonrpc":"2.0","id":7,"method":5}"#, "bad Number(7) -32600");
    }

    #[test]
    fn never_answers_a_response() {
        check(r#"{"id":7,"result":{}}"#, "ignore");
        check(r#"{"jsonrpc":"2.0","result":{}}"#, "ignore");
        check(r#"{"jsonrpc":"2.0","id":[],"result":{}}"#, "ignore");
        check(r#"{"jsonrpc":"2.0","id":true,"error":{}}"#, "ignore");
    }

    #[test]
    fn survives_deep_nesting() {
        let (open, close) = ("[".repeat(20_000), "]".repeat(20_000));
        check(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{open}"#), "bad Null -32700");
        check(&open, "bad Null -32700");
        check(&format!("{open}{close}"), "bad Null -32600");
        check(&format!(r#"{{"jsonrpc":"2.0","id":{open}{close},"method":"m"}}"#), "bad Null -32600");
        let error = format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":1,"message":"m","data":{open}{close}}}}}"#);
        check(&error, "error Number(1) 1 \"m\" null");

        let deep = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{open}{close}}}"#);
        let Ok(Message::Request { params: Some(params), .. }) = parse(deep.as_bytes()) else { panic!() };
        assert!(serde_json::from_str::<Value>(params.get()).is_err());
    }

    #[test]
    fn reads_half_pairs_and_bytes_that_are_no_text() {
        let message = |text: &str| format!(r#"{{"jsonrpc":"2.0","id":7,"method":{text},"params":{{{text}:{text}}}}}"#);
        let expected = |text: &str| format!("request Number(7) {text} {{\"{text}\":\"{text}\"}}");
        for (given, read) in [(r"\ud83c\udf89", "\u{1f389}"), (r"a\ud83c", "a\u{fffd}"), (r"\uDF89", "\u{fffd}")] {
            let got = shown(message(&format!("\"{given}\"")).as_bytes());
            assert_eq!(got.replace(r"\ufffd", "\u{fffd}").replace(given, read), expected(read), "{given}");
        }
        let bytes: Vec<u8> = message("\"@\"").bytes().map(|it| if it == b'@' { 0xff } else { it }).collect();
        assert_eq!(shown(&bytes), expected("\u{fffd}"));
    }
}
