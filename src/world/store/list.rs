//! The session list: reads the head of each log.

use std::{
    collections::{HashMap, HashSet},
    io::ErrorKind,
};

use memchr::memmem;

use super::{
    metadata::{HEAD, ListedAgent, METADATA_SUFFIX, SessionMetadata, parse_metadata, read_metadata},
    postgres::SharedStore,
    shared_row::SharedRow,
};
use crate::{
    base::{
        event::EventKind,
        ids::SessionId,
        log::{Entry, Fact},
        path::AbsPath,
        rewind,
    },
    world::{disk, store::StoreError},
};

#[derive(Clone, Debug, PartialEq)]
pub struct SessionSummary {
    pub id: SessionId,
    pub cwd: AbsPath,
    pub title: Option<String>,
    /// Unix time in milliseconds; so is the next.
    pub created_ms: u64,
    pub updated_ms: u64,
    /// Whether anything was ever asked in it.
    pub has_prompts: bool,
    pub archived: bool,
    /// That it began with.
    pub model: Option<String>,
    /// Whose session it is; `None`: castor's own.
    pub agent: Option<String>,
    /// The session that it is a copy of.
    pub parent: Option<SessionId>,
}

/// Cached results of a listing: by the time of change and the length of each log.
#[derive(Debug, Default)]
pub struct ListCache(HashMap<SessionId, (u64, u64, Option<SessionSummary>)>);

/// Newest first.
///
/// # Errors
/// A folder that is there and cannot be read.
pub fn list_logs(
    folder: &AbsPath,
    cwd: Option<&AbsPath>,
    cache: &mut ListCache,
) -> Result<Vec<SessionSummary>, StoreError> {
    let files = match disk::read_dir(folder) {
        Err(it) if it.kind() == ErrorKind::NotFound => Vec::new(),
        Err(source) => return Err(StoreError::Folder { folder: folder.clone(), source }),
        Ok(it) => it,
    };
    let ids = files.iter().filter_map(|it| it.name.strip_suffix(".jsonl")).map(SessionId::from);
    let has_metadata: HashSet<&str> = files.iter().filter_map(|it| it.name.strip_suffix(METADATA_SUFFIX)).collect();
    let mut fresh = HashMap::new();
    let mut res = Vec::new();
    for id in ids.filter(SessionId::is_safe) {
        let Some((key, found)) = known_or_read(folder, &id, cache) else { continue };
        let mut listed = found.clone().filter(|it| cwd.is_none_or(|cwd| it.cwd == *cwd));
        if let Some(it) = listed.as_mut().filter(|it| has_metadata.contains(it.id.as_str())) {
            apply_metadata(it, read_metadata(&folder.join(format!("{id}{METADATA_SUFFIX}"))));
        }
        res.extend(listed);
        fresh.insert(id, (key.0, key.1, found));
    }
    // Deleted ones go with the old table.
    cache.0 = fresh;
    sort_newest_first(&mut res);
    Ok(res)
}

/// As [`list_logs`], from a shared store.
pub fn list_shared(
    store: &SharedStore,
    cwd: Option<&AbsPath>,
    cache: &mut ListCache,
) -> Result<Vec<SessionSummary>, StoreError> {
    let rows = store.rows()?;
    let is_known = |it: &SharedRow| cache.0.get(&it.id).is_some_and(|known| (known.0, known.1) == it.key());
    let unknown: Vec<SessionId> = rows.iter().filter(|it| !is_known(it)).map(|it| it.id.clone()).collect();
    let mut heads = store.heads(&unknown, HEAD)?;
    let mut fresh = HashMap::new();
    let mut res = Vec::new();
    for row in rows {
        let (key, id) = (row.key(), row.id);
        let found = match heads.remove(&id) {
            Some(mut head) => {
                head.truncate(HEAD as usize);
                summary(&head, id.clone(), row.changed_ms)
            }
            None => cache.0.remove(&id).and_then(|it| it.2),
        };
        let mut listed = found.clone().filter(|it| cwd.is_none_or(|cwd| it.cwd == *cwd));
        if let (Some(it), Some(says)) = (&mut listed, &row.metadata) {
            apply_metadata(it, parse_metadata(says.as_bytes()).unwrap_or_default());
        }
        res.extend(listed);
        fresh.insert(id, (key.0, key.1, found));
    }
    cache.0 = fresh;
    sort_newest_first(&mut res);
    Ok(res)
}

fn sort_newest_first(res: &mut [SessionSummary]) {
    res.sort_by(|a, b| (b.updated_ms, &b.id).cmp(&(a.updated_ms, &a.id)));
}

fn apply_metadata(it: &mut SessionSummary, says: SessionMetadata) {
    let SessionMetadata { title, archived, agent } = says;
    (it.title, it.archived) = (title.or(it.title.take()), archived);
    it.agent = agent.map_or(it.agent.take(), |ListedAgent { name }| name);
}

fn known_or_read(
    folder: &AbsPath,
    id: &SessionId,
    cache: &mut ListCache,
) -> Option<((u64, u64), Option<SessionSummary>)> {
    let path = folder.join(format!("{id}.jsonl"));
    let meta = disk::metadata(&path).ok()?;
    let key = (meta.modified_ms, meta.len);
    match cache.0.remove(id) {
        Some((ms, len, found)) if (ms, len) == key => Some((key, found)),
        _ => {
            let head = disk::read_head(&path, HEAD).ok();
            Some((key, head.and_then(|it| summary(&it, id.clone(), meta.modified_ms))))
        }
    }
}

fn summary(head: &[u8], id: SessionId, updated_ms: u64) -> Option<SessionSummary> {
    // Without its newline a line is torn, or the head ends within it.
    let mut lines = head.split_inclusive(|it| *it == b'\n').filter_map(|it| it.strip_suffix(b"\n"));
    let Entry { at: created_ms, fact: Fact::Created { cwd, model, parent, .. } } = lines.find_map(entry)? else {
        return None;
    };
    let model = Some(model);
    // Most lines are nothing of this and need not be parsed: the loop waits for the list.
    let words: [&[u8]; 4] = [b"\"session_update\"", b"\"user\"", b"\"rewound\"", b"\"fact\":\"agent\""];
    let entries: Vec<Entry> = lines.filter(|it| words.iter().any(|word| has(it, word))).filter_map(entry).collect();
    // A first prompt may be larger than the head: then the head ends within it.
    let mut has_prompts = head.len() as u64 == HEAD;
    let mut last = None;
    // A rewind does not take the choice of an agent back.
    let agent = entries.iter().rev().find_map(chosen_agent).flatten();
    for entry in rewind::remaining_entries(&entries) {
        last = title(entry).or(last);
        has_prompts |= rewind::user_message(entry).is_some();
    }
    let archived = false;
    Some(SessionSummary { id, cwd, title: last, created_ms, updated_ms, has_prompts, archived, model, agent, parent })
}

fn entry(line: &[u8]) -> Option<Entry> {
    serde_json::from_slice(line).ok()
}

fn has(line: &[u8], text: &[u8]) -> bool {
    memmem::find(line, text).is_some()
}

fn chosen_agent(entry: &Entry) -> Option<Option<String>> {
    let Fact::Agent { agent, .. } = &entry.fact else { return None };
    Some(agent.clone())
}

fn title(entry: &Entry) -> Option<String> {
    match &entry.fact {
        Fact::Event { event } => match &event.kind {
            EventKind::SessionUpdate { title, .. } => title.clone(),
            _ => None,
        },
        _ => None,
    }
}
