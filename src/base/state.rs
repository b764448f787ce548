//! Session state: keys with a scope, changes of their values, and what is refused.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::PromptId;

/// Values by key. None is null.
pub type StateMap = BTreeMap<String, Value>;

/// Longest key, in bytes.
pub const MAX_KEY: usize = 128;
/// Longest value, as JSON, in bytes.
pub const MAX_VALUE: usize = 64 << 10;
/// Most of all keys and values of one scope, as JSON, in bytes.
pub const MAX_SCOPE: usize = 256 << 10;

/// The user of a session that names none.
pub const DEFAULT_USER: &str = "local";
/// Longest id of a user, in bytes.
const MAX_USER: usize = 256;

/// A client's order to read or change a session's state.
#[derive(Clone, Debug, PartialEq)]
pub struct StateOrder {
    pub prompt: PromptId,
    /// The keys to answer with; `None`: all.
    pub get: Option<Vec<String>>,
    /// Done before.
    pub set: StateDelta,
}

/// Who shares a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateScope {
    /// All sessions.
    App,
    /// All sessions of the same user.
    User,
    /// The session alone.
    Session,
    /// The session until its turn ends; never logged or saved.
    Temp,
}

impl StateScope {
    pub const ALL: &[StateScope] = &[Self::App, Self::User, Self::Session, Self::Temp];

    /// What its keys begin with.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::App => "app:",
            Self::User => "user:",
            Self::Session => "",
            Self::Temp => "temp:",
        }
    }

    /// The scope of a key; `None`: it is no key.
    pub fn of(key: &str) -> Option<Self> {
        let prefixed = Self::ALL.iter().find(|it| !it.prefix().is_empty() && key.starts_with(it.prefix()));
        let scope = prefixed.copied().unwrap_or(Self::Session);
        let name = key.strip_prefix(scope.prefix())?;
        let is_name = name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_')
            && name.bytes().next().is_some_and(|it| !it.is_ascii_digit());
        (is_name && key.len() <= MAX_KEY).then_some(scope)
    }

    /// Tells whether its values are kept outside of sessions.
    pub fn is_shared(self) -> bool {
        matches!(self, Self::App | Self::User)
    }
}

/// Tells whether other sessions may see the key.
pub fn is_shared(key: &str) -> bool {
    StateScope::of(key).is_some_and(StateScope::is_shared)
}

pub fn is_temp(key: &str) -> bool {
    StateScope::of(key) == Some(StateScope::Temp)
}

/// New values by key; null takes the key away.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct StateDelta(pub StateMap);

impl StateDelta {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The result of a run under a key. `is_json`: the result is a value's text, where it can be read as one.
    pub fn of_result(key: &str, result: &str, is_json: bool) -> Self {
        let value = is_json.then(|| serde_json::from_str(result).ok()).flatten();
        Self(BTreeMap::from([(key.to_owned(), value.unwrap_or_else(|| result.into()))]))
    }

    /// What changes one map into the other.
    pub fn between(before: &StateMap, after: &StateMap) -> Self {
        let gone = before.keys().filter(|it| !after.contains_key(*it)).map(|it| (it.clone(), Value::Null));
        let new = after.iter().filter(|(key, value)| before.get(*key) != Some(value));
        Self(gone.chain(new.map(|(key, value)| (key.clone(), value.clone()))).collect())
    }

    /// The part of these keys.
    pub fn part(&self, is_it: impl Fn(&str) -> bool) -> Self {
        Self(self.0.iter().filter(|(key, _)| is_it(key)).map(|(key, value)| (key.clone(), value.clone())).collect())
    }

    /// A later change, on top of this one.
    pub fn extend(&mut self, later: Self) {
        self.0.extend(later.0);
    }

    pub fn apply(&self, values: &mut StateMap) {
        for (key, value) in &self.0 {
            match value {
                Value::Null => _ = values.remove(key),
                value => _ = values.insert(key.clone(), value.clone()),
            }
        }
    }

    /// # Errors
    /// A key that is none, or a value that is too long; for whoever wrote the change.
    pub fn check(&self) -> Result<(), String> {
        for (key, value) in &self.0 {
            check_key(key)?;
            let n = json_len(value);
            if n > MAX_VALUE {
                return Err(format!("{key}: the value has {n} bytes as JSON, at most {MAX_VALUE}"));
            }
        }
        Ok(())
    }
}

/// # Errors
/// It is no key, with what is one.
pub fn check_key(key: &str) -> Result<(), String> {
    if StateScope::of(key).is_some() {
        return Ok(());
    }
    let shown = super::text::head(key, MAX_KEY);
    Err(format!(
        "{shown:?} is no key of state: it should have letters, digits and underscores, behind app:, user:, temp: or \
         nothing, and at most {MAX_KEY} bytes"
    ))
}

/// # Errors
/// The values of a scope take more than they may.
pub fn check_size(values: &StateMap) -> Result<(), String> {
    for scope in StateScope::ALL {
        let own = values.iter().filter(|(key, _)| StateScope::of(key) == Some(*scope));
        let n: usize = own.map(|(key, value)| key.len() + json_len(value)).sum();
        if n > MAX_SCOPE {
            let what = if scope.prefix().is_empty() { "keys without a prefix" } else { scope.prefix() };
            return Err(format!("{what} the values would have {n} bytes, at most {MAX_SCOPE}; delete some first"));
        }
    }
    Ok(())
}

/// # Errors
/// It is no id of a user.
pub fn check_user(id: &str) -> Result<(), String> {
    match (1..=MAX_USER).contains(&id.len()) && !id.chars().any(char::is_control) {
        true => Ok(()),
        false => Err(format!("a user id should have 1 to {MAX_USER} bytes, and no control characters")),
    }
}

fn json_len(value: &Value) -> usize {
    serde_json::to_string(value).map_or(usize::MAX, |it| it.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{MAX_KEY, MAX_SCOPE, MAX_VALUE, StateDelta, StateMap, StateScope, check_size};

    fn map(value: serde_json::Value) -> StateMap {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn keys_have_scopes() {
        use StateScope::{App, Session, Temp, User};
        let long = "k".repeat(MAX_KEY + 1);
        for (key, scope) in [
            ("a", Some(Session)),
            ("_a1", Some(Session)),
            ("app:a", Some(App)),
            ("user:A_b", Some(User)),
            ("temp:x", Some(Temp)),
            ("", None),
            ("1a", None),
            ("app:", None),
            ("other:a", None),
            ("app:user:a", None),
            ("a-b", None),
            ("a b", None),
            ("ä", None),
            (long.as_str(), None),
        ] {
            assert_eq!(StateScope::of(key), scope, "{key}");
        }
    }

    #[test]
    fn null_takes_a_key_away() {
        let mut values = map(json!({ "a": 1, "b": 2 }));
        let delta = StateDelta(map(json!({ "a": null, "c": [null], "d": null })));
        delta.apply(&mut values);
        assert_eq!(values, map(json!({ "b": 2, "c": [null] })));
        let before = map(json!({ "a": 1, "b": 2, "c": 3 }));
        let between = StateDelta::between(&before, &map(json!({ "b": 2, "c": 4, "d": 5 })));
        assert_eq!(between, StateDelta(map(json!({ "a": null, "c": 4, "d": 5 }))));
    }

    #[test]
    fn sizes_are_capped() {
        let text = |n: usize| "x".repeat(n);
        let delta = |n: usize| StateDelta(map(json!({ "a": text(n) })));
        assert_eq!(delta(MAX_VALUE - 2).check(), Ok(()));
        assert!(delta(MAX_VALUE - 1).check().unwrap_err().starts_with("a: the value has"));
        let values = |n: usize| map(json!({ "app:a": text(MAX_SCOPE / 2), "app:b": text(n), "b": text(n) }));
        assert_eq!(check_size(&values(MAX_SCOPE / 2 - 14)), Ok(()));
        assert!(check_size(&values(MAX_SCOPE / 2 - 13)).unwrap_err().starts_with("app: the values"));
    }

    #[test]
    fn a_result_is_a_text_or_a_value() {
        for (text, is_json, value) in
            [("{\"a\":1}", true, json!({"a": 1})), ("{\"a\":1}", false, json!("{\"a\":1}")), ("x", true, json!("x"))]
        {
            assert_eq!(StateDelta::of_result("k", text, is_json), StateDelta(map(json!({ "k": value }))));
        }
    }
}
