//! Log repair: keeps readable lines, drops the rest, and saves a copy of the whole.

use std::io::Read;

use serde_json::Value;

use crate::{
    base::{
        event::EventKind,
        ids::SessionId,
        log::{Entry, Fact, Mode, Principal, VERSION},
        path::AbsPath,
    },
    world::{
        disk,
        store::{SessionStore, StoreError, check_version, io_error, read, session_lock},
    },
};

/// The findings and result of a repair.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RepairReport {
    pub n_kept: usize,
    /// Of the kept lines, those that only a newer castor understands.
    pub n_unknown: usize,
    pub dropped: Vec<DroppedLine>,
    /// Whether the first line was lost and made anew from what follows.
    pub rebuilt: bool,
    /// The log as it was; `None`: there was nothing to repair.
    pub backup: Option<AbsPath>,
}

/// A line that is in the copy only.
#[derive(Clone, Debug, PartialEq)]
pub struct DroppedLine {
    /// From 1.
    pub line: usize,
    pub len: usize,
    pub why: String,
}

impl SessionStore {
    /// Rewrites a damaged log with the lines that can be read. A sound log is not touched.
    ///
    /// # Errors
    /// When there is no such log, another process holds it, a newer castor wrote it, nothing in it says what session it
    /// is, or the disk fails: then the log is as it was.
    pub fn repair(&self, id: &SessionId) -> Result<RepairReport, StoreError> {
        let path = self.log_path(id)?;
        // No crash tears a line there, and a disk that lies is the database's business.
        if let Some(it) = &self.shared {
            return sort_lines(id, &it.read(id, 0..u64::MAX)?).map(|it| it.0);
        }
        let mut file = disk::open_append(&path).map_err(|it| io_error(id, it))?;
        session_lock::lock_file(id, &file, &self.note_path(id))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|it| io_error(id, it))?;
        let (mut report, lines) = sort_lines(id, &bytes)?;
        if report.dropped.is_empty() && !report.rebuilt && bytes.ends_with(b"\n") {
            return Ok(report);
        }
        check_version(id, &read::parse_facts(&lines))?;
        let backup = self.write_backup(id, &bytes).map_err(|it| io_error(id, it))?;
        disk::write_atomic(&path, &lines).map_err(|it| io_error(id, it))?;
        report.backup = Some(backup);
        Ok(report)
    }

    /// In how many places a log cannot be read; nothing is written. The half line of who writes just now is none.
    ///
    /// # Errors
    /// When there is no such log.
    pub fn count_damage(&self, id: &SessionId) -> Result<usize, StoreError> {
        let path = self.log_path(id)?;
        let bytes = match &self.shared {
            Some(it) => it.read(id, 0..u64::MAX)?,
            None => disk::read(&path).map_err(|it| io_error(id, it))?,
        };
        let whole = memchr::memrchr(b'\n', &bytes).map_or(0, |it| it + 1);
        let (report, _) = sort_lines(id, bytes.get(..whole).unwrap_or_default())?;
        Ok(report.dropped.len())
    }

    /// Under the first number that is free.
    fn write_backup(&self, id: &SessionId, bytes: &[u8]) -> std::io::Result<AbsPath> {
        let mut n = 1;
        loop {
            let path = self.folder().join(format!("{id}.jsonl.bak-{n}"));
            match disk::create_private(&path, bytes) {
                Err(it) if it.kind() == std::io::ErrorKind::AlreadyExists => n += 1,
                other => return other.map(|()| path),
            }
        }
    }
}

/// What there is, and the log as it should be.
fn sort_lines(id: &SessionId, bytes: &[u8]) -> Result<(RepairReport, Vec<u8>), StoreError> {
    let mut report = RepairReport::default();
    let mut kept: Vec<(&[u8], Option<Entry>)> = Vec::new();
    for (at, whole) in bytes.split_inclusive(|it| *it == b'\n').enumerate() {
        let line = whole.strip_suffix(b"\n").unwrap_or(whole);
        let text = read::without_nul(line);
        let cut = text.len() < line.len();
        match parse_fact(text) {
            Ok(entry) => kept.push((text, entry)),
            Err(_) if line.trim_ascii().is_empty() => (),
            Err(why) => report.dropped.push(DroppedLine { line: at + 1, len: line.len(), why: why.to_string() }),
        }
        if cut && !text.is_empty() {
            let why = "zero bytes before the fact, which stays".to_owned();
            report.dropped.push(DroppedLine { line: at + 1, len: line.len() - text.len(), why });
        }
    }
    report.n_kept = kept.len();
    report.n_unknown = kept.iter().filter(|(_, it)| it.is_none()).count();
    let is_first = |it: &Option<Entry>| matches!(it, Some(Entry { fact: Fact::Created { .. }, .. }));
    let mut res = Vec::with_capacity(bytes.len());
    if !kept.first().is_some_and(|(_, it)| is_first(it)) {
        report.rebuilt = true;
        match kept.iter().position(|(_, it)| is_first(it)) {
            Some(at) => {
                let (line, _) = kept.remove(at);
                push(&mut res, line);
            }
            None => push(&mut res, &rebuild_first_line(id, &kept)?),
        }
    }
    kept.iter().for_each(|(line, _)| push(&mut res, line));
    Ok((report, res))
}

fn push(lines: &mut Vec<u8>, line: &[u8]) {
    lines.extend_from_slice(line);
    lines.push(b'\n');
}

/// `None`: a fact that this castor does not understand, which is no reason to drop it.
fn parse_fact(line: &[u8]) -> serde_json::Result<Option<Entry>> {
    let error = match serde_json::from_slice::<Entry>(line) {
        Ok(entry) => return Ok(Some(entry)),
        Err(it) => it,
    };
    let value: Value = serde_json::from_slice(line)?;
    let looks_so = value.get("at").is_some_and(Value::is_u64) && value.get("fact").is_some_and(Value::is_string);
    looks_so.then_some(None).ok_or(error)
}

/// The first line, from what the others say.
fn rebuild_first_line(id: &SessionId, kept: &[(&[u8], Option<Entry>)]) -> Result<Vec<u8>, StoreError> {
    let entries = || kept.iter().filter_map(|(_, it)| it.as_ref());
    let place = entries().find_map(|it| match &it.fact {
        Fact::Event { event } => match &event.kind {
            EventKind::Initialize { workspace, .. } => Some((it.at, workspace.clone())),
            _ => None,
        },
        _ => None,
    });
    let model = entries().find_map(|it| match &it.fact {
        Fact::Attempt { model, .. } | Fact::Model { model, .. } => Some(model.clone()),
        _ => None,
    });
    let lost = || {
        let why = "its first line is lost, and no other line says in which folder the session was".to_owned();
        StoreError::Unrepairable { id: id.clone(), why }
    };
    let (at, cwd) = place.ok_or_else(lost)?;
    let fact = Fact::Created {
        version: VERSION,
        castor: env!("CARGO_PKG_VERSION").to_owned(),
        session: id.clone(),
        roots: vec![cwd.clone()],
        cwd,
        mode: Mode::Default,
        model: model.unwrap_or_default(),
        principal: Principal::Root,
        parent: None,
        child_of: None,
        thread: None,
        user: None,
    };
    serde_json::to_vec(&Entry { at, fact }).map_err(|it| io_error(id, it.into()))
}
