//! Sums over all logs of a store: two threads, one line of a log in memory at a time, each event once.

use std::{collections::BTreeMap, ops::Range};

use jiff::tz::TimeZone;

use super::{
    fold::{LogFold, LogScope, WORDS},
    sums::StatsTable,
};
use castor_base::ids::SessionId;
use castor_hands::disk::parallel::fold_in_parallel;
use castor_store::sessions::{LogHead, SessionStore, StoreError};

/// Disk and parser are the bound: more threads would only take the machine from others.
const MAX_THREADS: usize = 2;

/// The sums, and what could not be read.
#[derive(Debug, Default)]
pub struct StatsReading {
    pub table: StatsTable,
    /// In words, a line each.
    pub unread: Vec<String>,
}

/// First lines, and what could not be read.
#[derive(Default)]
struct Heads {
    all: Vec<LogHead>,
    unread: Vec<String>,
}

/// Of all sessions and their sub-agents, in these Unix times in milliseconds.
///
/// # Errors
/// When the folder of all sessions cannot be read.
pub fn read(store: &SessionStore, period: &Range<u64>, zone: &TimeZone) -> Result<StatsReading, StoreError> {
    let ids = store.session_ids()?;
    let heads = fold_in_parallel(&ids, MAX_THREADS, |heads: &mut Heads, id| match store.log_head(id) {
        Ok(head) => heads.all.extend(head),
        Err(it) => heads.unread.push(it.to_string()),
    });
    let mut all = Heads::default();
    for it in heads {
        all.all.extend(it.all);
        all.unread.extend(it.unread);
    }
    let families = families(&all.all);
    let readings = fold_in_parallel(&all.all, MAX_THREADS, |reading: &mut StatsReading, head| {
        let reader = LogReader { store, period, zone };
        let origins = families.get(&head.created_ms).map(Vec::as_slice).unwrap_or_default();
        reader.add_session(head, origins, reading);
    });
    let mut res = StatsReading { unread: all.unread, ..StatsReading::default() };
    for it in readings {
        res.table.merge(it.table);
        res.unread.extend(it.unread);
    }
    res.unread.sort();
    Ok(res)
}

/// Sessions of which one may be a copy of another, by the time that a copy takes with it; originals first. A copy of a
/// copy is found so, even if what it was made of is gone.
fn families(heads: &[LogHead]) -> BTreeMap<u64, Vec<&LogHead>> {
    let mut res: BTreeMap<u64, Vec<&LogHead>> = BTreeMap::new();
    let mut forks: Vec<u64> = heads.iter().filter(|it| it.is_fork).map(|it| it.created_ms).collect();
    forks.sort_unstable();
    for head in heads.iter().filter(|it| forks.binary_search(&it.created_ms).is_ok()) {
        res.entry(head.created_ms).or_default().push(head);
    }
    res.values_mut().for_each(|it| it.sort_by_key(|it| (it.is_fork, &it.id)));
    res
}

struct LogReader<'a> {
    store: &'a SessionStore,
    period: &'a Range<u64>,
    zone: &'a TimeZone,
}

impl LogReader<'_> {
    /// A session with its sub-agents.
    fn add_session(&self, head: &LogHead, family: &[&LogHead], reading: &mut StatsReading) {
        let children = self.store.children(&head.id);
        let is_before = |id: &SessionId| self.store.modified_ms(id).is_some_and(|it| it < self.period.start);
        let origins = family.iter().take_while(|it| it.id != head.id).filter(|_| head.is_fork);
        let scope = |id: &SessionId| LogScope {
            folder: head.cwd.to_string(),
            is_agent: *id != head.id,
            has_lost_agents: children.is_empty(),
            // A log that is gone by now has no copy to skip.
            n_copied: match *id == head.id {
                true => origins.clone().filter_map(|it| self.store.copied_lines(id, &it.id).ok()).max().unwrap_or(0),
                false => 0,
            },
            period: self.period.clone(),
            zone: self.zone,
        };
        for id in std::iter::once(&head.id).chain(&children).filter(|it| !is_before(it)) {
            let mut fold = LogFold::new(scope(id));
            match self.store.scan(id, WORDS, |line, entry| fold.add(line, &entry)) {
                Ok(()) => reading.table.merge(fold.finish()),
                // Half of a log would be half of a truth.
                Err(it) => reading.unread.push(it.to_string()),
            }
        }
    }
}
