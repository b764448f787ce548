//! The reader of what an MCP server says. An answer that cannot be read fails its call at once, with the reason.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use rmcp::{
    RoleClient,
    model::{ErrorCode, ErrorData, JsonRpcError, JsonRpcMessage, RequestId},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
};
use serde_json::{Value, json};

use castor_wire::json_text;

/// Reads a server's messages, and knows which requests wait for one. All clones know the same.
#[derive(Clone, Default)]
pub(super) struct IncomingReader {
    requests: Arc<Mutex<OpenRequests>>,
}

#[derive(Default)]
struct OpenRequests {
    ids: HashSet<RequestId>,
    /// One was answered: before that a program may say anything.
    is_answering: bool,
}

impl IncomingReader {
    /// A message is on its way to the server.
    pub(super) fn note_sent(&self, message: &TxJsonRpcMessage<RoleClient>) {
        if let JsonRpcMessage::Request(it) = message {
            self.requests.lock().unwrap_or_else(PoisonError::into_inner).ids.insert(it.id.clone());
        }
    }

    /// The messages of one line or event: mostly one, none of what is no message, and an error for each call that fails.
    pub(super) fn read(&self, bytes: &[u8]) -> Vec<RxJsonRpcMessage<RoleClient>> {
        let text = json_text::readable(bytes);
        // Programs print other things, too.
        if !text.trim_ascii_start().starts_with('{') {
            tracing::debug!("ignored a line of an MCP server that is no message");
            return Vec::new();
        }
        match read_text(&text) {
            // It says that something could not be read, not what.
            Ok(JsonRpcMessage::Error(JsonRpcError { id: None, error, .. })) => {
                tracing::debug!("an MCP server could not read a message: {error:?}");
                Vec::new()
            }
            Ok(message) => vec![self.close(message)],
            Err(why) => self.fail(&text, &why),
        }
    }

    /// The message, under the id that was sent: some servers make texts of numbers.
    fn close(&self, message: RxJsonRpcMessage<RoleClient>) -> RxJsonRpcMessage<RoleClient> {
        let mut open = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let own = |id: RequestId| match &id {
            RequestId::String(text) if !open.ids.contains(&id) => text.parse().map_or(id, RequestId::Number),
            _ => id,
        };
        match message {
            JsonRpcMessage::Response(mut it) => {
                it.id = own(it.id);
                open.is_answering |= open.ids.remove(&it.id);
                JsonRpcMessage::Response(it)
            }
            JsonRpcMessage::Error(mut it) => {
                it.id = it.id.map(own);
                it.id.as_ref().map(|id| open.ids.remove(id));
                JsonRpcMessage::Error(it)
            }
            other => other,
        }
    }

    /// Errors for the call that the text answers, or, where that is not to be seen, for all that wait.
    fn fail(&self, text: &str, why: &serde_json::Error) -> Vec<RxJsonRpcMessage<RoleClient>> {
        tracing::debug!("an MCP message cannot be read: {why}");
        let mut open = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let is_answer = ["\"jsonrpc\"", "\"result\"", "\"error\""].iter().any(|it| text.contains(it));
        let ids: Vec<RequestId> = match member_of_broken(text, "id").and_then(|it| serde_json::from_str(it).ok()) {
            // A request or a notification of the server's own, or a line for its log.
            _ if member_of_broken(text, "method").is_some() || !is_answer => Vec::new(),
            Some(id) => open.ids.take(&id).into_iter().collect(),
            None if !open.is_answering => Vec::new(),
            None => open.ids.drain().collect(),
        };
        let message = format!("its answer cannot be read: {why}");
        let error = |id| JsonRpcError::new(Some(id), ErrorData::new(ErrorCode::INTERNAL_ERROR, message.clone(), None));
        ids.into_iter().map(|id| JsonRpcMessage::Error(error(id))).collect()
    }
}

fn read_text(text: &str) -> Result<RxJsonRpcMessage<RoleClient>, serde_json::Error> {
    match text.contains("\"serverInfo\"") {
        true => read_value(serde_json::from_str(text)?),
        false => serde_json::from_str(text).or_else(|_| read_value(serde_json::from_str(text)?)),
    }
}

/// A message, with what rmcp wants of it and castor does not need.
pub(super) fn read_value(mut message: Value) -> Result<RxJsonRpcMessage<RoleClient>, serde_json::Error> {
    let absent = |object: &mut Value, key: &str, value: Value| {
        if let Some(map) = object.as_object_mut()
            && map.get(key).is_none_or(Value::is_null)
        {
            map.insert(key.to_owned(), value);
        }
    };
    absent(&mut message, "jsonrpc", "2.0".into());
    if let Some(result) = message.get_mut("result").filter(|it| it.get("serverInfo").is_some()) {
        absent(result, "capabilities", json!({}));
        let info = result.get_mut("serverInfo").into_iter();
        info.for_each(|it| ["name", "version"].into_iter().for_each(|key| absent(it, key, "".into())));
    }
    serde_json::from_value(message)
}

/// A member of an object that need not be whole, as it stands; empty if its value is no number and no text.
fn member_of_broken<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (mut depth, mut at) = (0_usize, 0);
    let bytes = text.as_bytes();
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let end = end_of_text(bytes, at);
                let key = text.get(at + 1..end.saturating_sub(1)).unwrap_or_default();
                let value = text.get(end..).unwrap_or_default().trim_ascii_start().strip_prefix(':');
                if let Some(value) = value.filter(|_| depth == 1 && key == name) {
                    return Some(scalar(value.trim_ascii_start()));
                }
                at = end;
                continue;
            }
            _ => (),
        }
        at += 1;
    }
    None
}

/// Behind the text that begins here.
fn end_of_text(bytes: &[u8], begin: usize) -> usize {
    let mut at = begin + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn scalar(text: &str) -> &str {
    let end = match text.starts_with('"') {
        true => end_of_text(text.as_bytes(), 0),
        false => text.find(|it: char| !it.is_ascii_digit() && it != '-').unwrap_or(text.len()),
    };
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use rmcp::model::{JsonRpcMessage, JsonRpcRequest, PingRequest, RequestId};

    use super::{IncomingReader, member_of_broken};

    /// What a line becomes while requests 1, 2 and 3 wait: `ok ID` or `error ID: MESSAGE`, one a line.
    fn check(line: &[u8], expected: &[&str]) {
        let reader = IncomingReader::default();
        for id in 0..=3 {
            let request = JsonRpcRequest::new(RequestId::Number(id), PingRequest::default().into());
            reader.note_sent(&JsonRpcMessage::Request(request));
        }
        assert_eq!(reader.read(br#"{"jsonrpc":"2.0","id":"#).len(), 0, "the handshake is not answered yet");
        assert_eq!(reader.read(br#"{"jsonrpc":"2.0","id":0,"result":{}}"#).len(), 1);
        let got = reader.read(line).into_iter().map(|it| match it {
            JsonRpcMessage::Response(it) => format!("ok {} {}", it.id, serde_json::to_value(it.result).unwrap()),
            JsonRpcMessage::Error(it) => {
                let cause = it.error.message.split_once(": ").map_or(&*it.error.message, |it| it.0);
                format!("error {} {cause}", it.id.unwrap())
            }
            JsonRpcMessage::Notification(_) => "notification".to_owned(),
            JsonRpcMessage::Request(it) => format!("request {}", it.id),
        });
        let mut got: Vec<String> = got.collect();
        got.sort();
        assert_eq!(got, expected, "{}", String::from_utf8_lossy(line));
    }

    #[test]
    fn lines_become_messages_or_errors() {
        let whole = |text: &str| format!(r#"{{"jsonrpc":"2.0","id":2,"result":{{"x":"{text}"}}}}"#);
        check(whole("a").as_bytes(), &[r#"ok 2 {"x":"a"}"#]);
        check(whole(r"cut \ud83c").as_bytes(), &["ok 2 {\"x\":\"cut \u{fffd}\"}"]);
        check(whole("@").replace('@', "\u{1}").replace('\u{1}', "\\u0001").as_bytes(), &[r#"ok 2 {"x":"\u0001"}"#]);
        let bytes: Vec<u8> = whole("@").bytes().map(|it| if it == b'@' { 0xff } else { it }).collect();
        check(&bytes, &["ok 2 {\"x\":\"\u{fffd}\"}"]);
        check(br#"{"id":2,"result":{"x":1}}"#, &[r#"ok 2 {"x":1}"#]);
        check(br#"{"jsonrpc":"2.0","id":"2","result":{"x":1}}"#, &[r#"ok 2 {"x":1}"#]);
        check(br#"{"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"no"}}"#, &["error 2 no"]);
        check(br#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#, &["notification"]);
        check(br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#, &[]);
        check(b"Server started on port 3000", &[]);
        check(br#"{"level":"info","id":2}"#, &[]);
        check(b"{ debug: true }", &[]);
        let unreadable = |id| format!("error {id} its answer cannot be read");
        check(br#"{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"a"#, &[&unreadable(2)]);
        check(br#"{"result":{"id":1,"x":"\q"},"jsonrpc":"2.0","id":3}"#, &[&unreadable(3)]);
        check(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"x\":\"raw \x01\"}}", &[&unreadable(1)]);
        check(br#"{"jsonrpc":"2.0","id":7,"result":{"x":"#, &[]);
        check(br#"{"jsonrpc":"2.0","id":2,"method":"roots/list","params":{"#, &[]);
        check(br#"{"jsonrpc":"2.0","method":"#, &[]);
        check(br#"{"jsonrpc":"2.0","id":"#, &[&unreadable(1), &unreadable(2), &unreadable(3)]);
    }

    #[test]
    fn a_handshake_may_lack_optional_members() {
        let line = br#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","serverInfo":{"name":"s"}}}"#;
        let got = IncomingReader::default().read(line).pop().unwrap();
        let JsonRpcMessage::Response(it) = got else { panic!("{got:?}") };
        assert!(matches!(it.result, rmcp::model::ServerResult::InitializeResult(_)), "{:?}", it.result);
    }

    #[test]
    fn members_of_broken_objects() {
        for (text, found) in [
            (r#"{"id":7,"x":"#, Some("7")),
            (r#"{"x":{"id":1},"y":["id"],"id" : -7"#, Some("-7")),
            (r#"{"x":"\"id\":1","id":"a\"b"}"#, Some(r#""a\"b""#)),
            (r#"{"x":{"id":1"#, None),
            (r#"{"id":{"a":1}}"#, Some("")),
            (r#"{"id":"#, Some("")),
            (r#"{"id"#, None),
            ("", None),
        ] {
            assert_eq!(member_of_broken(text, "id"), found, "{text}");
        }
    }
}
