//! ACP and our own words: params become base values, facts become updates. Only this room and app know ACP.

pub mod content;
pub mod elicitation;
pub mod initialize;
pub mod options;
pub mod permission;
pub mod session;
pub mod terminals;
pub mod tool_calls;
pub mod trace;
pub mod updates;

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// Reads params of type `T`.
///
/// # Errors
/// One line that names what is wrong; it goes to the client with -32602.
pub fn params<T: DeserializeOwned>(params: Option<&RawValue>) -> Result<T, String> {
    let text = params.ok_or("params are missing")?.get();
    // A derived struct would also be read from an array, by position.
    if !text.trim_start().starts_with('{') {
        return Err("params must be an object".to_owned());
    }
    serde_json::from_str(text).map_err(|it| it.to_string())
}
