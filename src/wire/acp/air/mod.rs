//! JetBrains AIR: extensions in `_meta.jetbrains.air`, for clients that declare them.

pub mod background_task;
pub mod failures;
pub mod file_report;
pub mod patches;
pub mod report_request;
pub mod session_index;
pub mod tasks;

use serde_json::{Map, Value, json};

const VERSION: u64 = 1;

/// Its name, and where the client's own stands.
type Capability = (&'static str, fn(&mut AirFeatures) -> &mut bool);

/// The capabilities that castor has.
const CAPABILITIES: &[Capability] = &[
    ("sessionFailure", |it| &mut it.session_failure),
    ("diffPatch", |it| &mut it.diff_patch),
    ("agentFileChangeReport", |it| &mut it.file_change_report),
    ("asyncTasks", |it| &mut it.async_tasks),
    (SESSION_INDEX, |it| &mut it.session_index),
];

/// Advertised to clients alone that declare it: others list sessions in the protocol's own way.
const SESSION_INDEX: &str = "sessionIndex";

/// What a client of JetBrains asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AirFeatures {
    pub is_air: bool,
    /// Failures and notices as records.
    pub session_failure: bool,
    /// Changes of files as Git patches.
    pub diff_patch: bool,
    /// The files that a prompt changed.
    pub file_change_report: bool,
    /// Commands in the background as tasks.
    pub async_tasks: bool,
    pub session_index: bool,
}

impl AirFeatures {
    /// Reads `clientCapabilities._meta`. A malformed declaration enables nothing.
    pub(super) fn read(meta: Option<&Map<String, Value>>) -> Self {
        let mut res = Self::default();
        let Some(air) = meta.and_then(air_of) else { return res };
        res.is_air = true;
        let is_known = air.get("version").and_then(Value::as_u64).is_some_and(|it| it >= VERSION);
        let wanted = air.get("capabilities").and_then(Value::as_array).filter(|_| is_known);
        for (name, field) in CAPABILITIES {
            *field(&mut res) = wanted.is_some_and(|it| it.iter().any(|it| it == name));
        }
        res
    }

    /// What the answer to initialize says.
    pub(super) fn advertisement(self) -> Option<Value> {
        let names = CAPABILITIES.iter().map(|(name, _)| *name);
        let names: Vec<&str> = names.filter(|it| *it != SESSION_INDEX || self.session_index).collect();
        self.is_air.then(|| json!({ "air": { "version": VERSION, "capabilities": names } }))
    }
}

/// What a client says to AIR's agents.
fn air_of(meta: &Map<String, Value>) -> Option<&Map<String, Value>> {
    meta.get("jetbrains")?.get("air")?.as_object()
}

/// `_meta` with one payload.
pub(super) fn air_meta(name: &str, payload: Value) -> Map<String, Value> {
    let mut air = Map::from_iter([("version".to_owned(), VERSION.into())]);
    air.insert(name.to_owned(), payload);
    Map::from_iter([("jetbrains".to_owned(), json!({ "air": air }))])
}
