//! Notes of how long logs are, beside them: lines that are missing at an end, and nothing else, leave no trace in a log.

use castor_base::path::AbsPath;
use castor_hands::disk;

/// Below castor's own folder.
pub(super) const FOLDER: &str = "log-ends";

/// A note that cannot be written tells nobody of lost lines.
pub(super) fn write(path: &AbsPath, len: u64) {
    if let Err(it) = disk::write_private_note(path, len.to_string().as_bytes()) {
        tracing::debug!("{path}: {it}");
    }
}

/// How long the log was at least; 0: nobody knows.
pub(super) fn read(path: &AbsPath) -> u64 {
    disk::read_head(path, 20).ok().and_then(|it| str::from_utf8(&it).ok()?.parse().ok()).unwrap_or(0)
}
