//! The index of the session list: what the heads of all logs say, so that a process that begins need not read them.

use std::collections::HashMap;

use serde::{Serialize, de::DeserializeOwned};

use castor_base::{ids::SessionId, path::AbsPath};
use castor_hands::disk::{
    self,
    frame::{frame, unframe},
};

/// Fewer logs are read as quickly as the index, and it is not written again for fewer.
pub(super) const WORTHWHILE: usize = 32;
/// Below castor's own folder.
const FILE: &str = "session-list";
/// Another castor may find something else in a log: the number is that of the rules by which a summary is made.
const MADE_BY: &str = concat!("1 of castor ", env!("CARGO_PKG_VERSION"));

/// When a file was changed, in Unix milliseconds, and how long it is: while both stay, it is not read again.
pub(super) type FileMark = (u64, u64);

/// What was found in each file.
pub(super) type ReadFiles<T> = HashMap<SessionId, (FileMark, T)>;

/// What was found in logs. One that was changed since has another mark.
pub(super) fn load<T: DeserializeOwned>(home: &AbsPath) -> ReadFiles<T> {
    let bytes = disk::read(&home.join(FILE)).unwrap_or_default();
    let (made_by, rows): (String, ReadFiles<T>) = unframe(&bytes).map(|it| it.0).unwrap_or_default();
    if made_by == MADE_BY { rows } else { ReadFiles::new() }
}

/// Without it, logs are read: nobody misses one that could not be written, and a torn one counts as none.
pub(super) fn save<T: Serialize>(home: &AbsPath, heads: &ReadFiles<T>) {
    let saved = frame(&(MADE_BY, heads)).and_then(|it| disk::write_private_note(&home.join(FILE), &it));
    if let Err(it) = saved {
        tracing::debug!("the index of the session list: {it}");
    }
}
