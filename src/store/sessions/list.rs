//! The session list: reads the head of each log that the cache does not have.

use std::{collections::HashMap, io::ErrorKind, sync::Arc};

use memchr::memmem;
use serde::{Deserialize, Serialize};

use super::{
    list_index::{self, FileMark, ReadFiles},
    metadata::{HEAD, ListedAgent, METADATA_SUFFIX, SessionMetadata, parse_metadata, read_metadata},
    postgres::SharedStore,
    shared_row::SharedRow,
};
use crate::sessions::StoreError;
use castor_base::{
    event::EventKind,
    ids::SessionId,
    log::{Entry, Fact},
    path::AbsPath,
    rewind,
};
use castor_hands::disk::{self, parallel::in_parallel};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

/// Cached results of a listing.
#[derive(Debug, Default)]
pub struct ListCache {
    /// `None`: a log that is none. Shared: a page shows a hundred of them.
    heads: ReadFiles<Option<Arc<SessionSummary>>>,
    metadata: ReadFiles<SessionMetadata>,
    /// How many were read since the index was written.
    n_unsaved: usize,
}

/// What follows a session's id in the name of its log.
const LOG_SUFFIX: &str = ".jsonl";

/// The logs below `home`, newest first.
///
/// # Errors
/// A folder that is there and cannot be read.
pub fn list_logs(
    home: &AbsPath,
    folder: &AbsPath,
    cwd: Option<&AbsPath>,
    cache: &mut ListCache,
) -> Result<Vec<Arc<SessionSummary>>, StoreError> {
    let (logs, notes) = look(folder)?;
    let (is_first, n_logs) = (cache.heads.is_empty(), logs.len());
    if is_first && n_logs > list_index::WORTHWHILE {
        cache.heads = list_index::load(home);
    }
    let read_log = |id: &SessionId, mark: &FileMark| {
        let head = disk::read_head(&folder.join(format!("{id}{LOG_SUFFIX}")), HEAD).ok();
        head.and_then(|it| summary(&it, id.clone(), mark.0)).map(Arc::new)
    };
    cache.n_unsaved += refresh(&mut cache.heads, logs, read_log);
    refresh(&mut cache.metadata, notes, |id, _| read_metadata(&folder.join(format!("{id}{METADATA_SUFFIX}"))));
    // Sessions that are at work change all the time: the next process reads them anyway.
    let n_stale = if is_first { 0 } else { n_logs / 4 };
    if cache.n_unsaved > n_stale.max(list_index::WORTHWHILE) {
        list_index::save(home, &cache.heads);
        cache.n_unsaved = 0;
    }
    let listed = cache.heads.values().filter_map(|it| it.1.as_ref());
    let mut res: Vec<Arc<SessionSummary>> = listed.filter(|it| cwd.is_none_or(|cwd| it.cwd == *cwd)).cloned().collect();
    for it in &mut res {
        if let Some((_, says)) = cache.metadata.get(&it.id) {
            apply_metadata(Arc::make_mut(it), says.clone());
        }
    }
    sort_newest_first(&mut res);
    Ok(res)
}

type MarkedFiles = Vec<(SessionId, FileMark)>;

/// The logs in a folder, and the files beside them. None is opened.
fn look(folder: &AbsPath) -> Result<(MarkedFiles, MarkedFiles), StoreError> {
    let is_of_session = |it: &str| it.ends_with(LOG_SUFFIX) || it.ends_with(METADATA_SUFFIX);
    let files = match disk::stat_files(folder, is_of_session) {
        Err(it) if it.kind() == ErrorKind::NotFound => Vec::new(),
        Err(source) => return Err(StoreError::Folder { folder: folder.clone(), source }),
        Ok(it) => it,
    };
    let (mut logs, mut notes) = (Vec::new(), Vec::new());
    for (name, meta) in files {
        let (to, id) = match name.strip_suffix(LOG_SUFFIX) {
            Some(id) => (&mut logs, id),
            None => (&mut notes, name.strip_suffix(METADATA_SUFFIX).unwrap_or_default()),
        };
        let id = SessionId::from(id);
        if id.is_safe() {
            to.push((id, (meta.modified_ms, meta.len)));
        }
    }
    Ok((logs, notes))
}

/// Reads those that are new or other than before, and forgets those that are gone. Returns how many were read.
fn refresh<T: Send>(
    known: &mut ReadFiles<T>,
    files: MarkedFiles,
    read: impl Fn(&SessionId, &FileMark) -> T + Sync,
) -> usize {
    let mut fresh: ReadFiles<T> = HashMap::with_capacity(files.len());
    let mut unknown = Vec::new();
    for (id, mark) in files {
        match known.remove(&id) {
            Some(it) if it.0 == mark => _ = fresh.insert(id, it),
            _ => unknown.push((id, mark)),
        }
    }
    fresh.extend(in_parallel(&unknown, |(id, mark)| (id.clone(), (*mark, read(id, mark)))));
    *known = fresh;
    unknown.len()
}

/// As [`list_logs`], from a shared store.
pub fn list_shared(
    store: &SharedStore,
    cwd: Option<&AbsPath>,
    cache: &mut ListCache,
) -> Result<Vec<Arc<SessionSummary>>, StoreError> {
    let rows = store.rows()?;
    let is_known = |it: &SharedRow| cache.heads.get(&it.id).is_some_and(|known| known.0 == it.key());
    let unknown: Vec<SessionId> = rows.iter().filter(|it| !is_known(it)).map(|it| it.id.clone()).collect();
    let mut heads = store.heads(&unknown, HEAD)?;
    let mut fresh = HashMap::new();
    let mut res = Vec::new();
    for row in rows {
        let (key, id) = (row.key(), row.id);
        let found = match heads.remove(&id) {
            Some(mut head) => {
                head.truncate(HEAD as usize);
                summary(&head, id.clone(), row.changed_ms).map(Arc::new)
            }
            None => cache.heads.remove(&id).and_then(|it| it.1),
        };
        let mut listed = found.clone().filter(|it| cwd.is_none_or(|cwd| it.cwd == *cwd));
        if let (Some(it), Some(says)) = (&mut listed, &row.metadata) {
            apply_metadata(Arc::make_mut(it), parse_metadata(says.as_bytes()).unwrap_or_default());
        }
        res.extend(listed);
        fresh.insert(id, (key, found));
    }
    cache.heads = fresh;
    sort_newest_first(&mut res);
    Ok(res)
}

fn sort_newest_first(res: &mut [Arc<SessionSummary>]) {
    res.sort_by(|a, b| (b.updated_ms, &b.id).cmp(&(a.updated_ms, &a.id)));
}

fn apply_metadata(it: &mut SessionSummary, says: SessionMetadata) {
    let SessionMetadata { title, archived, agent } = says;
    (it.title, it.archived) = (title.or(it.title.take()), archived);
    it.agent = agent.map_or(it.agent.take(), |ListedAgent { name }| name);
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
