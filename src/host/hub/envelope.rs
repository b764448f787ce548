//! The parts of params that the hub reads and changes.

use std::borrow::Cow;

use bytes::Bytes;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, value::RawValue};

use castor_wire::jsonrpc::{
    message::{RequestId, RpcError},
    write,
};

/// One message, without the end of its line.
pub fn message(write: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    let mut line = Vec::new();
    write(&mut line);
    line.pop();
    line.into()
}

/// The fields by which the hub finds its way. Others are not looked at.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Address<'a> {
    #[serde(borrow, default)]
    pub session_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub subscription_id: Option<Cow<'a, str>>,
    #[serde(default)]
    pub request_id: Option<RequestId>,
}

impl<'a> Address<'a> {
    pub fn of(params: Option<&'a RawValue>) -> Self {
        // A sequence is read as a struct too, and is none.
        let params = params.map(RawValue::get).filter(|it| it.trim_start().starts_with('{'));
        params.and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default()
    }

    pub fn session(&self) -> String {
        self.session_id.as_deref().unwrap_or_default().to_owned()
    }
}

/// All of it, lenient: what is no such thing is its default.
pub fn read<T: DeserializeOwned + Default>(params: Option<&RawValue>) -> T {
    params.and_then(|it| serde_json::from_str(it.get()).ok()).unwrap_or_default()
}

/// Tells whether a client declares tools that it runs itself; names of the agent's tools are none.
pub fn brings_tools(params: Option<&RawValue>) -> bool {
    // Most messages say nothing of the kind, and need not be read for it.
    if !params.is_some_and(|it| it.get().contains("\"tools\"") || it.get().contains("\"hostToolExecution\"")) {
        return false;
    }
    let params: Value = read(params);
    let Some(own) = params.pointer("/_meta/castor") else { return false };
    let tools = own.get("tools").and_then(Value::as_array);
    tools.is_some_and(|it| it.iter().any(Value::is_object)) || own.get("hostToolExecution").is_some()
}

/// The same params with another value at a place.
pub fn with_field(params: Option<&RawValue>, name: &str, value: &impl Serialize) -> Map<String, Value> {
    let mut res: Map<String, Value> = read(params);
    if let Ok(value) = serde_json::to_value(value) {
        res.insert(name.to_owned(), value);
    }
    res
}

/// The object at a place of an object, which is made if it is not there.
pub fn object_at<'v>(value: &'v mut Value, path: &[&str]) -> Option<&'v mut Map<String, Value>> {
    let mut at = value;
    for name in path {
        at = at.as_object_mut()?.entry(*name).or_insert_with(|| Value::Object(Map::new()));
    }
    at.as_object_mut()
}

/// What a session is opened with, and is opened with again.
const PLACE: &[&str] = &["cwd", "additionalDirectories", "mcpServers"];

/// The params by which a session that was opened with these is opened again, but for its id.
pub fn place_of(params: Option<&RawValue>) -> Box<str> {
    let mut fields: Map<String, Value> = read(params);
    fields.retain(|name, _| PLACE.contains(&name.as_str()));
    Value::Object(fields).to_string().into()
}

/// As it goes over the wire.
#[derive(Serialize)]
struct ErrorAnswer<'a> {
    jsonrpc: &'static str,
    id: &'a RequestId,
    error: ErrorFields<'a>,
}

#[derive(Serialize)]
struct ErrorFields<'a> {
    code: i32,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a Value>,
}

/// Appends an answer under another id.
pub fn write_answer(out: &mut Vec<u8>, id: &RequestId, answer: &Result<Box<RawValue>, RpcError>) {
    match answer {
        Ok(result) => write::result(out, id, result),
        Err(it) => {
            let error = ErrorFields { code: it.code, message: &it.message, data: it.data.as_ref() };
            // It was read from JSON, and has that form.
            _ = serde_json::to_writer(&mut *out, &ErrorAnswer { jsonrpc: "2.0", id, error });
            out.push(b'\n');
        }
    }
}
