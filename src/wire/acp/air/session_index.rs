//! AIR `sessionIndex`: `session/list` with a limit and more in its rows, what is told of its changes, and requests about
//! sessions that are not open.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{air_meta, air_of};
use crate::acp::{drafts::archive_filter::ArchiveFilter, own::events::EmptyResult};
use castor_base::{ids::SessionId, path::AbsPath};

/// The notification that a list may be another one.
pub const LIST_CHANGED: &str = "_session/list_changed";

const DEFAULT_LIMIT: usize = 50;
const MAX_LIMIT: usize = 100;

/// What the list is asked for in `_meta.jetbrains.air.list`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexQuery {
    pub limit: usize,
    pub archived: ArchiveFilter,
    /// Also sessions of the same folder in the other checkouts of its repository.
    pub worktrees: bool,
}

/// What a row says beside the protocol's own fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexRow {
    pub archived: bool,
    pub model: Option<String>,
    pub forked_from: Option<SessionId>,
    /// `running`, `requires_action` or `idle`; `None`: it is not open here.
    pub state: Option<&'static str>,
}

impl IndexQuery {
    /// # Errors
    /// Names the member that makes no sense.
    pub(in crate::acp) fn read(meta: Option<&Map<String, Value>>) -> Result<Self, String> {
        let list = meta.and_then(air_of).and_then(|it| it.get("list"));
        let member = |name: &str| list.and_then(|it| it.get(name)).filter(|it| !it.is_null());
        let wrong = |name: &str, what: &str| format!("_meta.jetbrains.air.list.{name}: send {what}, or leave it out");
        let limit = match member("limit") {
            None => DEFAULT_LIMIT,
            Some(it) => match it.as_u64() {
                Some(n @ 1..) => usize::try_from(n).unwrap_or(MAX_LIMIT).min(MAX_LIMIT),
                _ => return Err(wrong("limit", "an integer of at least 1")),
            },
        };
        let archived = match member("archived").map(|it| it.as_str().unwrap_or_default()) {
            None | Some("unarchived") => ArchiveFilter::Unasked,
            Some("archived") => ArchiveFilter::Only,
            Some("all") => ArchiveFilter::Include,
            Some(_) => return Err(wrong("archived", "\"unarchived\", \"archived\" or \"all\"")),
        };
        let worktrees = match member("includeWorktrees").map(Value::as_bool) {
            None => false,
            Some(Some(it)) => it,
            Some(None) => return Err(wrong("includeWorktrees", "true or false")),
        };
        Ok(Self { limit, archived, worktrees })
    }
}

impl IndexRow {
    pub(in crate::acp) fn meta(&self) -> Map<String, Value> {
        let mut res = air_meta("archived", self.archived.into());
        let air = res.get_mut("jetbrains").and_then(|it| it.get_mut("air")).and_then(Value::as_object_mut);
        if let Some(air) = air {
            let more = [
                ("model", self.model.as_ref().map(|it| json!(it))),
                ("forkedFrom", self.forked_from.as_ref().map(|it| json!(it))),
                ("state", self.state.map(|it| json!(it))),
            ];
            air.extend(more.into_iter().filter_map(|(name, it)| Some((name.to_owned(), it?))));
        }
        res
    }
}

/// The methods and the notification, by name.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
pub(in crate::acp) struct IndexMethods {
    /// For JetBrains AIR: gives a session a title, also one that is not open.
    #[serde(rename = "_session/rename")]
    rename: Option<RenameMethod>,
    /// For JetBrains AIR: hides a session from the list. castor refuses one that is open here.
    #[serde(rename = "_session/archive")]
    archive: Option<SessionMethod>,
    /// For JetBrains AIR: shows a session in the list again.
    #[serde(rename = "_session/unarchive")]
    unarchive: Option<SessionMethod>,
    /// A notification to JetBrains AIR, after the first page of a list changed.
    #[serde(rename = "_session/list_changed")]
    list_changed: Option<ListChanged<'static>>,
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
struct RenameMethod {
    params: Option<RenameParams>,
    result: Option<EmptyResult>,
}

#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "OfRename")]
#[allow(dead_code, reason = "only its schema is used")]
struct RenameParams {
    session_id: SessionId,
    /// castor makes one line of it, of 200 characters at most.
    title: String,
    #[serde(rename = "_meta")]
    meta: Option<Map<String, Value>>,
}

#[derive(JsonSchema)]
#[schemars(rename = "OfIndexedSession")]
#[allow(dead_code, reason = "only its schema is used")]
struct SessionMethod {
    params: Option<IndexedSession>,
    result: Option<EmptyResult>,
}

#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "only its schema is used")]
struct IndexedSession {
    session_id: SessionId,
    #[serde(rename = "_meta")]
    meta: Option<Map<String, Value>>,
}

/// The params of `_session/list_changed`.
#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListChanged<'a> {
    /// Of the list, as the client sent it.
    #[schemars(with = "String")]
    pub cwd: &'a AbsPath,
}
