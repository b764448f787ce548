//! The fold of a log into a record, one fact after the other: nothing of the log stays but what the record keeps.

use super::{Record, rewind::Rewinds};
use castor_base::{
    log::Entry,
    rewind::{RewindScan, rewinds},
};

/// A record in the making.
#[derive(Debug, Default)]
pub struct Replay {
    record: Option<Record>,
    n: usize,
    /// Those of the log, where they are known.
    rewinds: Rewinds,
    scan: RewindScan,
}

impl Replay {
    pub fn take(&mut self, entry: &Entry) {
        let at = self.n;
        self.n += 1;
        self.scan.take(entry);
        if at == 0 {
            self.record = Record::begin(entry);
        } else if let Some(record) = &mut self.record {
            self.rewinds.reach(at, record);
            record.apply(entry);
        }
    }

    /// The session that the log describes; `None` if it does not begin with `Created`.
    ///
    /// # Errors
    /// The log has rewinds. Only who knows them from the start can carry them out: what is returned takes all facts again.
    pub fn end(self) -> Result<Option<Record>, Box<Self>> {
        match self.scan.rewinds.is_empty() || !self.rewinds.is_empty() {
            true => Ok(self.record),
            false => Err(Box::new(Self { rewinds: Rewinds::new(self.scan.rewinds), ..Self::default() })),
        }
    }
}

impl Record {
    /// The session that a log describes; `None` if it does not begin with `Created`.
    pub fn replay(entries: &[Entry]) -> Option<Self> {
        let mut replay = Replay { rewinds: Rewinds::new(rewinds(entries)), ..Replay::default() };
        entries.iter().for_each(|it| replay.take(it));
        replay.record
    }
}
