//! Answers, notifications and requests of castor's own methods, as a client reads them.

use serde::Deserialize;
use serde_json::Value;

use crate::jsonrpc::message::RequestId;

/// The changes of files by a session, call by call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct CheckpointList {
    pub checkpoints: Vec<ListedCheckpoint>,
}

/// A checkpoint, which is of one call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ListedCheckpoint {
    pub id: String,
    #[serde(default)]
    pub files: Vec<CheckpointFile>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct CheckpointFile {
    pub path: String,
    pub change: String,
    #[serde(default)]
    pub added: i64,
    #[serde(default)]
    pub removed: i64,
}

/// Files that a rewind could not give back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct RewindAnswer {
    pub conflicts: Vec<RewindConflict>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct RewindConflict {
    pub reason: String,
}

/// The params of a notification about a session: of its questions, prompts and rewinds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionNews {
    pub session_id: String,
    /// The request that is answered elsewhere, or cancelled.
    pub request_id: Option<RequestId>,
    pub option_id: Option<String>,
    pub stop_reason: Option<String>,
    pub error: Option<String>,
}

/// A call of a tool that the client runs.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HostedCall {
    pub session_id: String,
    /// The call's id.
    pub request_id: String,
    pub name: String,
    pub args: Value,
}
