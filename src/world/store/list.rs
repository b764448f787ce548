//! Which sessions there are: the head of each log says enough.

use crate::{
    base::{
        event::{EventKind, Speaker},
        ids::SessionId,
        log::{Entry, Fact},
        path::AbsPath,
    },
    world::{disk, store::read},
};

/// Of a log, the list reads this many bytes.
const HEAD: u64 = 64 * 1024;

#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    pub id: SessionId,
    pub cwd: AbsPath,
    pub title: Option<String>,
    /// Unix time in milliseconds.
    pub updated_ms: u64,
    /// Whether anything was ever asked in it.
    pub has_prompts: bool,
}

pub fn all(folder: &AbsPath, cwd: Option<&AbsPath>) -> Vec<Summary> {
    let files = disk::read_dir(folder).unwrap_or_default();
    let ids = files.iter().filter_map(|it| it.name.strip_suffix(".jsonl")).map(SessionId::from);
    let mut res: Vec<Summary> = ids.filter(SessionId::is_safe).filter_map(|it| summary(folder, it)).collect();
    res.retain(|it| cwd.is_none_or(|cwd| it.cwd == *cwd));
    res.sort_by(|a, b| (b.updated_ms, &b.id).cmp(&(a.updated_ms, &a.id)));
    res
}

fn summary(folder: &AbsPath, id: SessionId) -> Option<Summary> {
    let path = folder.join(format!("{id}.jsonl"));
    let updated_ms = disk::metadata(&path).ok()?.modified_ms;
    let head = disk::read_head(&path, HEAD).ok()?;
    let entries = read::facts(whole_lines(&head));
    let Fact::Created { cwd, .. } = &entries.first()?.fact else { return None };
    let title = entries.iter().filter_map(title).next_back();
    // A first prompt may be larger than the head: then the head ends within it.
    let has_prompts = head.len() as u64 == HEAD || entries.iter().any(is_prompt);
    Some(Summary { id, cwd: cwd.clone(), title, updated_ms, has_prompts })
}

fn whole_lines(bytes: &[u8]) -> &[u8] {
    let end = memchr::memrchr(b'\n', bytes).map_or(0, |it| it + 1);
    bytes.get(..end).unwrap_or_default()
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

fn is_prompt(entry: &Entry) -> bool {
    let Fact::Event { event } = &entry.fact else { return false };
    matches!(event.kind, EventKind::Message { role: Speaker::User, .. })
}
