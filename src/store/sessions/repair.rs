//! Log repair: keeps the lines that count, drops the rest, and saves a copy of the whole.

use std::{borrow::Cow, io::Read};

use crate::sessions::{
    LogDamage, SessionStore, StoreError,
    chain::{self, LineSum},
    chain_check::{ChainCheck, CheckedLine},
    check_version, io_error, log_end, session_lock,
};
use castor_base::{
    event::EventKind,
    ids::SessionId,
    log::{self, Entry, Fact, Mode, Principal, VERSION},
    path::AbsPath,
};
use castor_hands::disk;

/// The findings and result of a repair.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RepairReport {
    pub n_kept: usize,
    /// Of the kept lines, those that only a newer castor understands.
    pub n_unknown: usize,
    pub damage: LogDamage,
    /// The first line was lost and made anew from what follows.
    pub rebuilt: bool,
    /// The log as it was; `None`: there was nothing to repair.
    pub backup: Option<AbsPath>,
}

impl SessionStore {
    /// Rewrites a damaged log with the lines that count. A sound log is not touched.
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
        let lost = log_end::read(&self.end_path(id)).saturating_sub(bytes.len() as u64);
        if lost > 0 && report.damage.n == 0 {
            report.damage.add_end(format!("its last {lost} bytes are missing"));
        }
        if report.damage.n == 0 && !report.rebuilt && bytes.ends_with(b"\n") {
            return Ok(report);
        }
        let backup = self.write_backup(id, &bytes).map_err(|it| io_error(id, it))?;
        disk::write_atomic(&path, &lines).map_err(|it| io_error(id, it))?;
        log_end::write(&self.end_path(id), lines.len() as u64);
        report.backup = Some(backup);
        Ok(report)
    }

    /// What of a log is damaged; nothing is written. The half line of who writes just now is none.
    ///
    /// # Errors
    /// When there is no such log.
    pub fn find_damage(&self, id: &SessionId) -> Result<LogDamage, StoreError> {
        let is_at_work = self.is_at_work(id)?;
        let end = self.fold_facts(id, |_| ())?;
        Ok(if end.torn_len > 0 && is_at_work { LogDamage::default() } else { end.damage })
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

/// A line that counts.
struct KeptLine<'a> {
    /// Without its checksum.
    text: Cow<'a, [u8]>,
    is_sealed: bool,
    /// `None`: only a newer castor understands it.
    entry: Option<Entry>,
}

/// What there is, and the log as it should be.
fn sort_lines(id: &SessionId, bytes: &[u8]) -> Result<(RepairReport, Vec<u8>), StoreError> {
    let (mut report, mut check, mut kept) = (RepairReport::default(), ChainCheck::default(), Vec::new());
    for whole in bytes.split_inclusive(|it| *it == b'\n') {
        let line = whole.strip_suffix(b"\n").unwrap_or(whole);
        let entry = match check.check(line) {
            CheckedLine::Fact(it) => Some(*it),
            CheckedLine::Unknown => None,
            CheckedLine::Nothing => continue,
        };
        let line = chain::without_nul(line);
        let (text, is_sealed) = chain::without_seal(line).map_or((line.into(), false), |it| (it.into(), true));
        kept.push(KeptLine { text, is_sealed, entry });
    }
    report.damage = check.end().1;
    report.n_kept = kept.len();
    report.n_unknown = kept.iter().filter(|it| it.entry.is_none()).count();
    check_version(id, kept.iter().filter_map(|it| it.entry.as_ref()).map(log::version_of).max().unwrap_or_default())?;
    let is_first = |it: &KeptLine<'_>| matches!(&it.entry, Some(Entry { fact: Fact::Created { .. }, .. }));
    if !kept.first().is_some_and(is_first) {
        report.rebuilt = true;
        let first = match kept.iter().position(is_first) {
            Some(at) => kept.remove(at),
            None => KeptLine { text: rebuild_first_line(id, &kept)?.into(), is_sealed: false, entry: None },
        };
        let is_sealed = kept.first().is_none_or(|it| it.is_sealed);
        kept.insert(0, KeptLine { is_sealed, ..first });
    }
    Ok((report, write_chain(&kept)))
}

/// These lines with the checksums that they have in this order.
fn write_chain(kept: &[KeptLine<'_>]) -> Vec<u8> {
    let (mut res, mut sum) = (Vec::new(), LineSum::default());
    for it in kept {
        let start = res.len();
        res.extend_from_slice(&it.text);
        sum = match it.is_sealed {
            true => chain::seal(&mut res, start, sum),
            false => LineSum::of_unsealed(sum, &it.text),
        };
        res.push(b'\n');
    }
    res
}

/// The first line, from what the others say.
fn rebuild_first_line(id: &SessionId, kept: &[KeptLine<'_>]) -> Result<Vec<u8>, StoreError> {
    let entries = || kept.iter().filter_map(|it| it.entry.as_ref());
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
