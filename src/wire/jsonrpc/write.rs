//! JSON-RPC message writer: appends each message as one line.

use jsonrpsee::types::{ErrorObject, ErrorObjectOwned};
use memchr::memchr2;
use serde::Serialize;

use crate::jsonrpc::{error, message::RequestId};
use castor_base::shown_text::show_text;

/// Appends a response. A result that has no JSON form (a map with keys that are no text) is answered with -32603.
pub fn result<T: Serialize + ?Sized>(out: &mut Vec<u8>, id: &RequestId, result: &T) {
    let start = out.len();
    let written = line(out, |out| {
        answer(out, id)?;
        out.extend_from_slice(b",\"result\":");
        serde_json::to_writer(out, result)
    });
    if let Err(it) = written {
        debug_assert_eq!(out.len(), start);
        error(out, id, &error::bug(&format!("the result has no JSON form: {it}")));
    }
}

/// Appends an error response. Its message may repeat what others sent, so it is written as people are shown it.
pub fn error(out: &mut Vec<u8>, id: &RequestId, error: &ErrorObjectOwned) {
    let message = show_text(error.message());
    let error = ErrorObject::borrowed(error.code(), &message, error.data());
    let written = line(out, |out| {
        answer(out, id)?;
        out.extend_from_slice(b",\"error\":");
        serde_json::to_writer(out, &error)
    });
    debug_assert!(written.is_ok(), "ids and errors always have a JSON form");
}

/// Appends a notification. Errors: `params` has no JSON form; nothing is appended then.
pub fn notification<T: Serialize + ?Sized>(out: &mut Vec<u8>, method: &str, params: &T) -> serde_json::Result<()> {
    line(out, |out| {
        out.extend_from_slice(b"{\"jsonrpc\":\"2.0\"");
        call(out, method, params)
    })
}

/// Appends a request. Errors: `params` has no JSON form; nothing is appended then.
pub fn request<T: Serialize + ?Sized>(out: &mut Vec<u8>, id: i64, method: &str, params: &T) -> serde_json::Result<()> {
    line(out, |out| {
        answer(out, &RequestId::Number(id))?;
        call(out, method, params)
    })
}

fn answer(out: &mut Vec<u8>, id: &RequestId) -> serde_json::Result<()> {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    serde_json::to_writer(out, id)
}

fn call<T: Serialize + ?Sized>(out: &mut Vec<u8>, method: &str, params: &T) -> serde_json::Result<()> {
    out.extend_from_slice(b",\"method\":");
    serde_json::to_writer(&mut *out, method)?;
    out.extend_from_slice(b",\"params\":");
    serde_json::to_writer(out, params)
}

/// Appends what `body` writes, closed and ended, or nothing at all.
fn line(out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>) -> serde_json::Result<()>) -> serde_json::Result<()> {
    let start = out.len();
    if let Err(it) = body(out) {
        out.truncate(start);
        return Err(it);
    }
    flatten(out.get_mut(start..).unwrap_or_default());
    out.extend_from_slice(b"}\n");
    Ok(())
}

/// Raw values bring their own layout along. Line breaks in JSON are only ever layout, so a space does as well.
fn flatten(mut json: &mut [u8]) {
    while let Some(at) = memchr2(b'\n', b'\r', json) {
        let Some((byte, rest)) = json.get_mut(at..).and_then(<[u8]>::split_first_mut) else {
            return;
        };
        *byte = b' ';
        json = rest;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use serde_json::{json, value::RawValue};

    use super::{error, notification, request, result};
    use crate::jsonrpc::{error as errors, message::RequestId};

    /// Appends to something that is there already: it must stay.
    fn check(write: impl FnOnce(&mut Vec<u8>), expected: &str) {
        let mut out = b"before\n".to_vec();
        write(&mut out);
        assert_eq!(String::from_utf8(out).unwrap(), format!("before\n{expected}"));
    }

    #[test]
    fn writes_one_line_each() {
        let (number, text) = (RequestId::Number(-1), RequestId::Text("a\"\n".to_owned()));
        check(
            |out| result(out, &number, &json!({"a": "\r\n"})),
            "{\"jsonrpc\":\"2.0\",\"id\":-1,\"result\":{\"a\":\"\\r\\n\"}}\n",
        );
        check(|out| result(out, &text, &()), "{\"jsonrpc\":\"2.0\",\"id\":\"a\\\"\\n\",\"result\":null}\n");
        check(
            |out| error(out, &RequestId::Null, &errors::invalid_params("x; y")),
            "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32602,\"message\":\"Invalid params: x; y.\",\
             \"data\":{\"kind\":\"params\"}}}\n",
        );
        check(
            |out| notification(out, "session/update", &json!({})).unwrap(),
            "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{}}\n",
        );
        check(
            |out| request(out, 5, "m\"", &[1]).unwrap(),
            "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"m\\\"\",\"params\":[1]}\n",
        );
    }

    #[test]
    fn raw_values_stay_on_the_line() {
        let raw = RawValue::from_string("{\n\"a\":\r\n[1,\n2]}".to_owned()).unwrap();
        check(
            |out| result(out, &RequestId::Number(1), &raw),
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{ \"a\":  [1, 2]}}\n",
        );
    }

    #[test]
    fn what_has_no_json_form_leaves_nothing_behind() {
        let bad = HashMap::from([((1, 2), 3)]);
        check(|out| assert!(notification(out, "m", &bad).is_err()), "");
        check(|out| assert!(request(out, 1, "m", &bad).is_err()), "");
        let mut expected = Vec::new();
        let why = errors::bug("the result has no JSON form: key must be a string");
        error(&mut expected, &RequestId::Number(1), &why);
        check(|out| result(out, &RequestId::Number(1), &bad), str::from_utf8(&expected).unwrap());
    }
}
