//! Lists that AIR has read: their first pages, and when to read them again.

use crate::server::{event::ListParams, timers::Timers};
use castor_base::ids::{EffectId, SessionId};
use castor_wire::acp::session::ListedSession;

/// Most lists that are watched; the oldest gives way.
const MAX_LISTS: usize = 32;
/// How long a list is watched after it was read, in milliseconds.
const LIFE_MS: u64 = 600_000;
/// How long more changes are waited for after one, and after the first of them at the most.
const SETTLE_MS: u64 = 1_000;
const MAX_SETTLE_MS: u64 = 2_000;
/// How often it is looked for what other processes changed.
const CHECK_MS: u64 = 30_000;
/// Their timer is of no effect.
const NO_EFFECT: EffectId = EffectId(0);

/// The lists, the oldest first.
#[derive(Default)]
pub struct WatchedLists {
    lists: Vec<WatchedList>,
    /// The first change since they were looked at.
    changed_ms: Option<u64>,
    due_ms: u64,
    /// What the timer is set to.
    timer_ms: Option<u64>,
}

/// The first page of a list.
struct WatchedList {
    params: ListParams,
    rows: Vec<ListedSession>,
    until_ms: u64,
}

impl WatchedList {
    fn is_of(&self, params: &ListParams) -> bool {
        let worktrees = |it: &ListParams| it.index.is_some_and(|it| it.worktrees);
        self.params.cwd == params.cwd && worktrees(&self.params) == worktrees(params)
    }
}

impl WatchedLists {
    /// A list is read again: with other params it takes the place of what it was.
    pub fn add(&mut self, params: ListParams, rows: Vec<ListedSession>, now_ms: u64) {
        self.lists.retain(|it| !it.is_of(&params));
        if self.lists.len() >= MAX_LISTS {
            self.lists.remove(0);
        }
        if self.lists.is_empty() {
            (self.changed_ms, self.due_ms) = (None, now_ms + CHECK_MS);
        }
        self.lists.push(WatchedList { params, rows, until_ms: now_ms + LIFE_MS });
    }

    /// A session may have changed.
    pub fn note_change(&mut self, now_ms: u64) {
        let first = *self.changed_ms.get_or_insert(now_ms);
        self.due_ms = (now_ms + SETTLE_MS).min(first + MAX_SETTLE_MS);
    }

    /// The timer fired: the lists that are to be read again now.
    pub fn due(&mut self, now_ms: u64) -> Vec<ListParams> {
        self.timer_ms = self.timer_ms.filter(|it| *it > now_ms);
        self.lists.retain(|it| it.until_ms > now_ms);
        if self.due_ms > now_ms {
            return Vec::new();
        }
        (self.changed_ms, self.due_ms) = (None, now_ms + CHECK_MS);
        self.lists.iter().map(|it| it.params.clone()).collect()
    }

    /// A timer that is due later is let go by: it finds another time when it fires.
    pub fn set_timer(&mut self, timers: &mut Timers) {
        if !self.lists.is_empty() && self.timer_ms.is_none_or(|it| it > self.due_ms) {
            self.timer_ms = Some(self.due_ms);
            timers.add(self.due_ms, timer_owner(), NO_EFFECT);
        }
    }

    /// The page as it is now; whether it is another one. A list that was read anew meanwhile knows better.
    pub fn replace(&mut self, params: &ListParams, rows: Vec<ListedSession>) -> bool {
        let is_it = |it: &&mut WatchedList| it.is_of(params) && it.params.index == params.index;
        let Some(list) = self.lists.iter_mut().find(is_it) else { return false };
        let is_new = list.rows != rows;
        list.rows = rows;
        is_new
    }
}

/// No session has this id.
pub fn timer_owner() -> SessionId {
    SessionId::from("")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{ListParams, Timers, WatchedLists};
    use castor_base::path::AbsPath;
    use castor_wire::acp::{air::session_index::IndexQuery, drafts::archive_filter::ArchiveFilter};

    fn params(cwd: &str) -> ListParams {
        let archived = ArchiveFilter::Unasked;
        let index = Some(IndexQuery { limit: 1, archived, worktrees: false });
        ListParams {
            cwd: AbsPath::new(cwd),
            folders: BTreeSet::new(),
            after: None,
            archived,
            agent: None,
            names_agents: false,
            index,
        }
    }

    #[test]
    fn changes_settle_before_lists_are_read_again() {
        let (mut lists, mut timers) = (WatchedLists::default(), Timers::default());
        lists.note_change(0);
        lists.set_timer(&mut timers);
        assert_eq!(timers.next_ms(), None, "nothing is watched");
        lists.add(params("/a"), Vec::new(), 0);
        lists.set_timer(&mut timers);
        assert_eq!(timers.next_ms(), Some(30_000));
        for (now, due) in [(100, 1_100), (1_000, 1_100), (1_900, 1_100)] {
            lists.note_change(now);
            lists.set_timer(&mut timers);
            assert_eq!(timers.next_ms(), Some(due));
        }
        assert!(timers.pop_due(1_100).is_some() && lists.due(1_100).is_empty(), "the first change was 2 s ago at most");
        lists.set_timer(&mut timers);
        assert_eq!(timers.next_ms(), Some(2_100));
        assert!(timers.pop_due(2_100).is_some());
        assert_eq!(lists.due(2_100).len(), 1);
        lists.note_change(599_500);
        assert!(lists.due(600_500).is_empty(), "nobody read it for ten minutes");
    }

    #[test]
    fn the_oldest_list_gives_way() {
        let mut lists = WatchedLists::default();
        (0..40).for_each(|it| lists.add(params(&format!("/{}", it % 33)), Vec::new(), 0));
        assert_eq!(lists.due(30_000).len(), 32);
        assert!(!lists.replace(&params("/8"), Vec::new()), "it is the same page");
    }
}
