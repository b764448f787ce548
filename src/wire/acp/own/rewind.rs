//! The extension methods `_castor/session/rewind` and `_castor/session/rewound`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};

use castor_base::{
    checkpoint::{Conflict, FileChange, OnConflict, Rewinds as What},
    ids::{CheckpointId, MessageId, SessionId},
    path_text,
};

/// What to go back to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetParams {
    /// Before this message of the user.
    Message(MessageId),
    /// Before the call that the checkpoint was taken for.
    Checkpoint(CheckpointId),
    /// Before the last restore.
    Redo,
}

/// A rewind, as the client wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RewindParams {
    pub session: SessionId,
    pub target: TargetParams,
    pub what: What,
    pub on_conflict: OnConflict,
    /// Only these, and what is below them; `None`: all.
    pub paths: Option<Vec<PathBuf>>,
}

/// Takes files and conversation back. castor asks nothing here, and refuses it while a turn runs.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
pub(in crate::acp) struct OwnRewindMethod {
    params: Option<Params>,
    result: Option<Outcome>,
}

/// Lists what each call changed in files, for a rewind.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
pub(in crate::acp) struct CheckpointsMethod {
    params: Option<SessionParams>,
    result: Option<Checkpoints>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "OfSession")]
struct SessionParams {
    session_id: SessionId,
    #[serde(rename = "_meta")]
    #[allow(dead_code, reason = "nothing of it is known")]
    meta: Option<Map<String, Value>>,
}

/// What can be gone back to, oldest first; what is undone is not there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Checkpoints {
    pub checkpoints: Vec<Checkpoint>,
}

/// What one call changed.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Checkpoint {
    pub id: CheckpointId,
    /// The user's message whose turn it belongs to.
    pub message_id: Option<MessageId>,
    /// When the call began; RFC 3339.
    pub time: String,
    /// The first of them, sorted by path; none where nobody saw the call's end.
    pub files: Vec<ListedFile>,
    /// What was changed and is not held.
    #[serde(serialize_with = "path_text::all::serialize")]
    pub not_kept: Vec<PathBuf>,
}

/// A changed file, as it is listed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListedFile {
    #[serde(flatten)]
    pub change: FileChange,
    /// As it is now, an agent wrote some of it, and no person looked at that. Absent: no.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unseen: bool,
}

/// Reads `_castor/session/checkpoints`.
///
/// # Errors
/// See [`crate::acp::params`].
pub fn read_session(params: Option<&RawValue>) -> Result<SessionId, String> {
    let it: SessionParams = crate::acp::params(params)?;
    Ok(it.session_id)
}

/// One of `messageId`, `checkpointId` and `redo` says where to.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Params {
    session_id: SessionId,
    /// This message of the user and all after it are taken back.
    message_id: Option<MessageId>,
    /// The state before the call that it was taken for.
    checkpoint_id: Option<CheckpointId>,
    /// Takes back the last restore of files.
    redo: Option<bool>,
    /// Without it: both; with `redo`: files.
    what: Option<What>,
    /// Of files. Without it: fail.
    on_conflict: Option<OnConflict>,
    /// Of files: only these, and what is below them.
    paths: Option<Vec<String>>,
    #[serde(rename = "_meta")]
    #[allow(dead_code, reason = "nothing of it is known")]
    meta: Option<Map<String, Value>>,
}

/// What a rewind came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    #[serde(serialize_with = "path_text::all::serialize")]
    pub restored: Vec<PathBuf>,
    /// Those of `restored` that are no files any more.
    #[serde(serialize_with = "path_text::all::serialize")]
    pub removed: Vec<PathBuf>,
    pub conflicts: Vec<Conflict>,
    #[serde(serialize_with = "path_text::all::serialize")]
    pub not_kept: Vec<PathBuf>,
    /// Of the restore: `redo` takes it back.
    pub checkpoint_id: Option<CheckpointId>,
}

/// This message of the user and all after it are gone.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Rewound")]
pub struct RewoundNotice {
    pub session_id: SessionId,
    pub message_id: MessageId,
}

pub const REWOUND: &str = "_castor/session/rewound";

/// Reads `_castor/session/rewind`.
///
/// # Errors
/// See [`crate::acp::params`]; also for params that contradict each other, by name.
pub fn read_rewind(params: Option<&RawValue>) -> Result<RewindParams, String> {
    let it: Params = crate::acp::params(params)?;
    let redo = it.redo.filter(|it| *it).map(|_| TargetParams::Redo);
    let targets = [it.message_id.map(TargetParams::Message), it.checkpoint_id.map(TargetParams::Checkpoint), redo];
    let mut targets = targets.into_iter().flatten();
    let target = match (targets.next(), targets.next()) {
        (Some(target), None) => target,
        (Some(_), Some(_)) => return Err("messageId, checkpointId and redo contradict each other; send one".to_owned()),
        (None, _) => return Err("messageId is missing; send it, or checkpointId, or redo".to_owned()),
    };
    let what = match (it.what, &target) {
        (None | Some(What::Files), TargetParams::Redo) => What::Files,
        (Some(_), TargetParams::Redo) => {
            return Err("redo gives back files alone; send what \"files\" or nothing".to_owned());
        }
        (what, _) => what.unwrap_or(What::Both),
    };
    let of_files = [("onConflict", it.on_conflict.is_some()), ("paths", it.paths.is_some())];
    match of_files.iter().find(|(_, is_there)| *is_there && what == What::Conversation) {
        Some((name, _)) => Err(format!("{name} is about files; leave it out, or send what \"both\" or \"files\"")),
        None if it.paths.as_ref().is_some_and(Vec::is_empty) => {
            Err("paths is empty; name some, or leave it out for all".to_owned())
        }
        None => {
            let paths = it.paths.map(|it| it.iter().map(|it| path_text::from_text(it).into_owned()).collect());
            let on_conflict = it.on_conflict.unwrap_or_default();
            Ok(RewindParams { session: it.session_id, target, what, on_conflict, paths })
        }
    }
}
