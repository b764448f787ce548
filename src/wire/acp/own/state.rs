//! The extension method `_castor/session/state`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, value::RawValue};

use castor_base::{
    ids::SessionId,
    state::{StateDelta, StateMap, check_key},
};

/// What is wanted of a session's state.
#[derive(Clone, Debug, PartialEq)]
pub struct StateParams {
    pub session: SessionId,
    /// `None`: all keys.
    pub get: Option<Vec<String>>,
    pub set: StateDelta,
}

/// Changes and reads the values that a session keeps for a client.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
pub(in crate::acp) struct StateMethod {
    params: Option<Params>,
    result: Option<StateValues>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "OfState")]
struct Params {
    session_id: SessionId,
    /// The keys to answer with; without it all.
    get: Option<Vec<String>>,
    /// Changed before; null takes a key away.
    #[serde(default)]
    set: StateDelta,
    #[serde(rename = "_meta")]
    #[allow(dead_code, reason = "nothing of it is known")]
    meta: Option<Map<String, Value>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StateValues {
    /// Keys that are not there are left out.
    pub state: StateMap,
}

impl StateValues {
    /// A value in its own type; `None`: it is not there, or has another shape.
    pub fn read<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        T::deserialize(self.state.get(key)?).ok()
    }
}

/// Reads `_castor/session/state`.
///
/// # Errors
/// See [`crate::acp::params`]; also for a key that is none, and a value that is too long.
pub fn read_state(params: Option<&RawValue>) -> Result<StateParams, String> {
    let it: Params = crate::acp::params(params)?;
    it.get.iter().flatten().try_for_each(|it| check_key(it)).map_err(|it| format!("get: {it}"))?;
    it.set.check().map_err(|it| format!("set: {it}"))?;
    Ok(StateParams { session: it.session_id, get: it.get, set: it.set })
}
