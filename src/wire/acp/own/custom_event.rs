//! `_castor/session/custom_event`: an event of the client's own in the trajectory of a session.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use castor_base::ids::SessionId;

/// Longest kind, in bytes.
const MAX_KIND: usize = 200;
/// Most data as JSON, in bytes: the log keeps each event.
const MAX_DATA: usize = 64 << 10;

/// Writes an event of the client's own, of the type `custom`. The model does not see it.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
pub(in crate::acp) struct CustomEventMethod {
    params: Option<CustomEventParams>,
    result: Option<Map<String, Value>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CustomEventParams {
    pub session_id: SessionId,
    /// The name of the program, `/`, and a word of its own, each of letters, digits and `_-.`; 200 bytes at most.
    pub kind: String,
    /// 64 KiB at most.
    pub data: Value,
    #[serde(rename = "_meta")]
    #[allow(dead_code, reason = "nothing of it is known")]
    meta: Option<Map<String, Value>>,
}

/// Reads the params.
///
/// # Errors
/// See [`crate::acp::params`]; also with a kind that could be castor's, and with too much data.
pub fn read_custom_event(params: Option<&RawValue>) -> Result<CustomEventParams, String> {
    let it: CustomEventParams = crate::acp::params(params)?;
    let is_word = |it: &str| !it.is_empty() && it.chars().all(|it| it.is_ascii_alphanumeric() || "_-.".contains(it));
    // castor's own kinds have no `/`, and never will.
    let is_own = it.kind.split_once('/').is_some_and(|(program, word)| is_word(program) && is_word(word));
    if !is_own || it.kind.len() > MAX_KIND {
        return Err("kind is the name of your program, `/`, and a word, as in `my-bot/ticket`.".to_owned());
    }
    let size = it.data.to_string().len();
    if size > MAX_DATA {
        return Err(format!("data has {size} bytes, and {MAX_DATA} is the most; send what names it."));
    }
    Ok(it)
}

#[cfg(test)]
mod tests {
    use serde_json::{json, value::to_raw_value};

    use super::{MAX_DATA, read_custom_event};

    #[test]
    fn a_kind_is_no_kind_of_castors() {
        let read = |kind: &str, data: &str| {
            let params = to_raw_value(&json!({"sessionId": "s", "kind": kind, "data": data})).unwrap();
            read_custom_event(Some(&params)).map(|it| it.kind)
        };
        assert_eq!(read("my-bot/ticket.opened", "x").unwrap(), "my-bot/ticket.opened");
        for kind in ["plan", "/x", "x/", "a/b/c", "a b/c", "", &format!("a/{}", "b".repeat(199))] {
            read(kind, "x").unwrap_err();
        }
        assert!(read("a/b", &"x".repeat(MAX_DATA - 2)).is_ok());
        assert!(read("a/b", &"x".repeat(MAX_DATA)).unwrap_err().contains("65536 is the most"));
    }
}
