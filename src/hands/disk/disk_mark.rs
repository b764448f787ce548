//! An entry's metadata on the disk, by which a change of it is told without reading it.

use rustix::fs::Stat;
use serde::{Deserialize, Serialize};

/// An entry's metadata on the disk, which stays the same while the entry does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskMark {
    pub size: u64,
    pub mtime: (i64, u32),
    pub ctime: (i64, u32),
    pub ino: u64,
}

impl DiskMark {
    #[allow(clippy::unnecessary_cast, clippy::useless_conversion)] // The types differ between systems.
    pub fn of(stat: &Stat) -> Self {
        Self {
            size: u64::try_from(stat.st_size).unwrap_or_default(),
            mtime: (stat.st_mtime as i64, stat.st_mtime_nsec as u32),
            ctime: (stat.st_ctime as i64, stat.st_ctime_nsec as u32),
            ino: stat.st_ino as u64,
        }
    }
}
