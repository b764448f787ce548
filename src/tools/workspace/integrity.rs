//! Integrity records: hashes of a folder's configuration at the time of trust, one private file each.

use std::io;

use serde::{Deserialize, Serialize};

use crate::workspace::{Reader, Warning};
use castor_base::{path::AbsPath, trust::TrustedHashes};
use castor_hands::disk;

#[derive(Serialize, Deserialize)]
struct Record {
    version: u32,
    folder: String,
    /// SHA-256 by name.
    files: TrustedHashes,
}

const VERSION: u32 = 1;

/// The record of a folder.
pub(super) fn file(home: &AbsPath, folder: &AbsPath) -> AbsPath {
    let name = disk::hash(folder.to_string().as_bytes());
    home.join("integrity").join(format!("{}.json", name.get(..32).unwrap_or_default()))
}

/// `None`: the folder's files were never looked at. A record that cannot be understood knows no file.
pub fn read(home: &AbsPath, folder: &AbsPath) -> (Option<TrustedHashes>, Option<Warning>) {
    let file = file(home, folder);
    let found = match Reader::disk().optional(&file) {
        Ok(None) => return (None, None),
        Ok(Some(bytes)) => serde_json::from_slice::<Record>(&bytes).map_err(|it| it.to_string()),
        Err(it) => Err(it.to_string()),
    };
    match found {
        Ok(it) if it.version == VERSION && it.folder == folder.to_string() => (Some(it.files), None),
        other => {
            let why = other.err().unwrap_or_else(|| "it is about something else".to_owned());
            let message = format!("cannot be used ({why}): castor asks about every file of {folder} again");
            (Some(TrustedHashes::new()), Some(Warning { origin: file.to_string(), at: None, key: None, message }))
        }
    }
}

/// # Errors
/// A folder or file that cannot be written.
pub fn write(home: &AbsPath, folder: &AbsPath, files: TrustedHashes) -> io::Result<()> {
    let record = Record { version: VERSION, folder: folder.to_string(), files };
    disk::write_private(&file(home, folder), &serde_json::to_vec_pretty(&record)?)
}
