//! AIR `sessionIndex`: `session/list` with a limit and more in its rows, and requests about sessions that are not open.

use serde_json::{Map, Value, json};

use super::{air_meta, air_of};
use crate::{base::ids::SessionId, wire::acp::archive_filter::ArchiveFilter};

const DEFAULT_LIMIT: usize = 50;
const MAX_LIMIT: usize = 100;

/// What the list is asked for in `_meta.jetbrains.air.list`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexQuery {
    pub limit: usize,
    pub archived: ArchiveFilter,
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
    pub(in crate::wire::acp) fn read(meta: Option<&Map<String, Value>>) -> Result<Self, String> {
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
        // Sessions of other worktrees are not looked for.
        if member("includeWorktrees").is_some_and(|it| !it.is_boolean()) {
            return Err(wrong("includeWorktrees", "true or false"));
        }
        Ok(Self { limit, archived })
    }
}

impl IndexRow {
    pub(in crate::wire::acp) fn meta(&self) -> Map<String, Value> {
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
