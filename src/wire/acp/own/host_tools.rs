//! Tools of a host on the wire: the request `_castor/tool/call` with its answer, and results that come with a prompt.

use std::collections::BTreeSet;

use base64::{Engine, engine::general_purpose::STANDARD};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use castor_base::{
    content::{HostAnswer, HostResult, Part, joined_text},
    ids::{CallId, SessionId, StreamId},
    tool::{TailCall, ToolCall},
};

/// The request by which castor calls a tool of the host.
pub const CALL: &str = "_castor/tool/call";
/// The largest answer to a call, and result of one, as JSON in bytes.
const MAX_ANSWER: usize = 1024 * 1024;

/// Runs a call of a tool, at a client with `_meta.castor.hostTools`.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
pub(in crate::acp) struct ToolCallMethod {
    params: Option<CallParams<'static>>,
    result: Option<CallAnswer>,
}

/// The params of the request.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "OfToolCall")]
pub(in crate::acp) struct CallParams<'a> {
    session_id: &'a SessionId,
    /// Of the events of the turn.
    stream_id: &'a StreamId,
    /// The call's id, as in updates and events.
    request_id: &'a CallId,
    name: &'a str,
    /// An object.
    args: &'a Value,
}

/// Params of a call.
pub fn call_params(session: &SessionId, stream: &StreamId, call: &ToolCall) -> Value {
    let ToolCall { id, name, args } = call;
    let params = CallParams { session_id: session, stream_id: stream, request_id: id, name, args };
    // Texts and a value always become an object.
    serde_json::to_value(params).unwrap_or_default()
}

/// What a tool of a host comes to.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ToolAnswer {
    /// For the model.
    #[schemars(with = "Words")]
    llm_content: Value,
    /// For people; absent: the text of `llmContent`.
    #[serde(default)]
    #[schemars(with = "Option<Words>")]
    display_content: Value,
    /// True: the tool failed, as the content says.
    #[serde(default)]
    is_error: bool,
}

/// What a host answers to a call.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CallAnswer {
    #[serde(flatten)]
    answer: ToolAnswer,
    /// A call to make in this one's place; one at most. Policy sees it anew, and its result is that of the call.
    #[serde(default)]
    #[schemars(length(max = 1))]
    tail_calls: Vec<TailCallParams>,
    #[serde(rename = "_meta")]
    #[allow(dead_code, reason = "nothing of it is known")]
    meta: Option<Map<String, Value>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TailCallParams {
    name: String,
    args: Map<String, Value>,
}

/// The result of a call that the prompt before ended with.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolResultParams {
    request_id: CallId,
    #[serde(flatten)]
    answer: ToolAnswer,
}

/// The capability `hostTools`.
#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
pub(in crate::acp) enum HostToolsParam {
    Runs(bool),
    Only(DeclaredTools),
}

#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(dead_code, reason = "only its schema is used")]
pub(in crate::acp) enum DeclaredTools {
    Declared,
}

/// A text, or parts.
#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum Words {
    Text(String),
    Parts(Vec<PartParams>),
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase", deny_unknown_fields)]
enum PartParams {
    Text {
        text: String,
    },
    /// An image, a sound or a PDF, in base64.
    Media {
        mime_type: String,
        data: String,
    },
}

/// An answer, and the call that is to be made in place of the answered one.
#[derive(Debug, PartialEq)]
pub struct HostReply {
    pub answer: HostAnswer,
    pub tail_call: Option<TailCall>,
}

/// Reads the answer to a call.
///
/// # Errors
/// One line that names what is wrong.
pub fn read_answer(answer: Value) -> Result<HostReply, String> {
    check_size(&answer)?;
    let CallAnswer { answer, tail_calls, .. } = parse(answer)?;
    if tail_calls.len() > 1 {
        return Err("tailCalls: at most one call can be made in place of another".to_owned());
    }
    let tail_call = tail_calls.into_iter().next().map(|it| TailCall { name: it.name, args: Value::Object(it.args) });
    Ok(HostReply { answer: host_answer(answer)?, tail_call })
}

/// The results that a prompt brings.
///
/// # Errors
/// One line that names what is wrong, with the id of the call.
pub fn read_results(results: Vec<Value>) -> Result<Vec<HostResult>, String> {
    let mut ids = BTreeSet::new();
    let mut res = Vec::new();
    for result in results {
        let id = result.get("requestId").and_then(Value::as_str).unwrap_or_default().to_owned();
        let wrong = |why: String| format!("toolResults: {id:?}: {why}");
        check_size(&result).map_err(wrong)?;
        let ToolResultParams { request_id: call, answer } = parse(result).map_err(wrong)?;
        let answer = host_answer(answer).map_err(wrong)?;
        if !ids.insert(call.clone()) {
            return Err(format!("toolResults: {id:?} is there twice; send one result for each call"));
        }
        res.push(HostResult { call, answer });
    }
    Ok(res)
}

fn check_size(value: &Value) -> Result<(), String> {
    let size = value.to_string().len();
    if size > MAX_ANSWER { Err(format!("it has {size} bytes, and {MAX_ANSWER} is the most")) } else { Ok(()) }
}

fn parse<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|it| it.to_string())
}

fn host_answer(it: ToolAnswer) -> Result<HostAnswer, String> {
    let ToolAnswer { llm_content, display_content, is_error } = it;
    let content = parts(llm_content).map_err(|it| format!("llmContent: {it}"))?;
    let shown = match display_content {
        Value::Null => None,
        it => Some(joined_text(&parts(it).map_err(|it| format!("displayContent: {it}"))?)),
    };
    Ok(HostAnswer { content, shown, is_error })
}

fn parts(value: Value) -> Result<Vec<Part>, String> {
    match value {
        Value::String(text) => Ok(vec![Part::text(text)]),
        Value::Array(all) => all.into_iter().map(|it| part(parse(it)?)).collect(),
        _ => Err("send a text or a list of parts".to_owned()),
    }
}

/// Bytes that no model could read would spoil every later request of the session.
fn part(it: PartParams) -> Result<Part, String> {
    match it {
        PartParams::Text { text } => Ok(Part::text(text)),
        PartParams::Media { mime_type: mime, data } => {
            let is_known = mime.starts_with("image/") || mime.starts_with("audio/") || mime == "application/pdf";
            let is_plain = mime.len() < 100 && mime.bytes().all(|it| it.is_ascii_graphic());
            if !is_known || !is_plain {
                return Err("mimeType is that of an image, a sound or a PDF".to_owned());
            }
            if data.is_empty() || STANDARD.decode(&data).is_err() {
                return Err(format!("the data of {mime} is not base64"));
            }
            Ok(Part::Media { mime, data: data.into(), uri: None })
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{read_answer, read_results};
    use castor_base::content::Part;

    fn check(answer: Value, expected: Result<usize, &str>) {
        let found = read_answer(answer.clone()).map(|it| it.answer.content.len());
        assert_eq!(found, expected.map_err(str::to_owned), "{answer}");
    }

    #[test]
    fn an_answer_is_text_or_parts() {
        check(json!({"llmContent": "a"}), Ok(1));
        let image = json!({"type": "media", "mimeType": "image/png", "data": "QUJD"});
        check(json!({"llmContent": [{"type": "text", "text": "a"}, image], "isError": true}), Ok(2));
        check(json!({"llmContent": [], "displayContent": [{"type": "text", "text": "b"}], "_meta": {}}), Ok(0));
        check(json!({}), Err("missing field `llmContent`"));
        check(json!(null), Err("invalid type: null, expected struct CallAnswer"));
        check(json!({"llmContent": 5}), Err("llmContent: send a text or a list of parts"));
        check(
            json!({"llmContent": [{"type": "media", "mimeType": "image/png", "data": "?"}]}),
            Err("llmContent: the data of image/png is not base64"),
        );
        check(
            json!({"llmContent": [{"type": "media", "mimeType": "text/x", "data": "QUJD"}]}),
            Err("llmContent: mimeType is that of an image, a sound or a PDF"),
        );
        check(json!({"llmContent": "x".repeat(1 << 20)}), Err("it has 1048593 bytes, and 1048576 is the most"));
        let tail = json!({"name": "a", "args": {}});
        check(json!({"llmContent": "", "tailCalls": [tail]}), Ok(1));
        check(
            json!({"llmContent": "", "tailCalls": [tail, tail]}),
            Err("tailCalls: at most one call can be made in place of another"),
        );
        check(json!({"llmContent": "", "text": ""}), Err("unknown field `text`"));
    }

    #[test]
    fn results_are_named_by_their_calls() {
        let one = json!({"requestId": "c1", "llmContent": "a"});
        let read = read_results(vec![one.clone()]).unwrap();
        assert_eq!(read[0].answer.content, [Part::text("a")]);
        let twice = read_results(vec![one.clone(), one]).unwrap_err();
        assert_eq!(twice, "toolResults: \"c1\" is there twice; send one result for each call");
        let wrong = read_results(vec![json!({"requestId": "c1"})]).unwrap_err();
        assert_eq!(wrong, "toolResults: \"c1\": missing field `llmContent`");
    }
}
