//! Many orders of events: owners that crash, stop and come back, a store whose answers are late or lost, clocks that jump.

use std::collections::BTreeMap;

use super::{Claim, Lease, Settlement, claim, settle};

const N_LIVES: u64 = 3_000;
const N_EVENTS: usize = 300;
const N_OWNERS: usize = 4;

/// What the statement of an append says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Order {
    epoch: i64,
    start: i64,
    /// Whose it is, and its number: of length one each, for simplicity.
    words: Vec<(usize, u64)>,
}

/// The database: what its two statements do, and nothing else.
struct Database {
    lease: Lease,
    log: Vec<(usize, u64, i64)>,
    last_epoch: i64,
    heard: BTreeMap<String, u64>,
    now: u64,
}

impl Database {
    fn append(&mut self, order: &Order) -> bool {
        if self.lease.epoch != order.epoch || self.lease.len != order.start {
            return false;
        }
        self.log.extend(order.words.iter().map(|it| (it.0, it.1, order.epoch)));
        self.lease.len += order.words.len() as i64;
        true
    }

    fn hold(&mut self, owner: &str, is_open_here: bool) -> Option<(i64, i64)> {
        let heard = self.lease.owner.as_ref().and_then(|it| self.heard.get(it));
        let is_heard = heard.is_some_and(|it| it + 4 > self.now);
        if claim(&self.lease, owner, is_heard, is_open_here) == Claim::Refuse {
            return None;
        }
        self.last_epoch += 1;
        self.lease.epoch = self.last_epoch;
        self.lease.owner = Some(owner.to_owned());
        Some((self.last_epoch, self.lease.len))
    }
}

/// A castor, as far as it has the session.
#[derive(Default)]
struct Castor {
    /// Epoch and length of the log, as it believes.
    open: Option<(i64, i64)>,
    /// Sent, and not answered.
    pending: Option<Order>,
    /// The database has it by now.
    is_taken: bool,
    /// What it showed, which must be in the log.
    shown: Vec<(usize, u64)>,
    n_words: u64,
    is_stopped: bool,
}

struct Life {
    database: Database,
    castors: Vec<Castor>,
    /// Sent on connections that were given up: they arrive late, or never.
    network: Vec<Order>,
    dice: u64,
    n_takeovers: usize,
    n_lost: usize,
    n_resent: usize,
}

impl Life {
    fn roll(&mut self, n: u64) -> u64 {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        self.dice % n
    }

    fn happen(&mut self) {
        let at = self.roll(N_OWNERS as u64) as usize;
        let name = at.to_string();
        match self.roll(11) {
            10 => self.arrive(),
            0 => self.castors[at].is_stopped ^= true,
            // The clock of the database jumps, forward and back.
            1 => self.database.now = (self.database.now + self.roll(12)).saturating_sub(3),
            _ if self.castors[at].is_stopped => (),
            2 if self.roll(3) == 0 => {
                self.network.extend(self.castors[at].pending.take());
                let shown = std::mem::take(&mut self.castors[at].shown);
                let n_words = self.castors[at].n_words + 1;
                self.castors[at] = Castor { shown, n_words, ..Castor::default() };
            }
            2 | 3 => _ = self.database.heard.insert(name, self.database.now),
            4 => {
                self.database.heard.insert(name.clone(), self.database.now);
                let is_open = self.castors[at].open.is_some();
                if let Some(held) = self.database.hold(&name, is_open) {
                    self.n_takeovers += 1;
                    self.castors[at].open = Some(held);
                }
            }
            5 | 6 => self.send(at),
            // The answer comes, or is lost on the way there or back.
            _ => self.answer(at),
        }
    }

    fn send(&mut self, at: usize) {
        let n = self.roll(3) + 1;
        let castor = &mut self.castors[at];
        let (Some((epoch, start)), None) = (castor.open, &castor.pending) else { return };
        let words = (0..n).map(|it| (at, castor.n_words + it)).collect();
        castor.n_words += n;
        castor.pending = Some(Order { epoch, start, words });
        castor.is_taken = false;
    }

    fn answer(&mut self, at: usize) {
        let (reaches, returns) = (self.roll(4) > 0, self.roll(4) > 0);
        let Some(order) = self.castors[at].pending.clone() else { return };
        let is_taken = reaches && self.database.append(&order);
        self.castors[at].is_taken |= is_taken;
        if !reaches && returns {
            self.network.push(order.clone());
        }
        if !reaches || !returns {
            // Sent again later.
            self.n_resent += 1;
            return;
        }
        let settled = match is_taken {
            true => Settlement::Stored,
            false => settle(&self.database.lease, order.epoch, order.start, order.words.len() as i64),
        };
        let castor = &mut self.castors[at];
        match settled {
            Settlement::Stored => {
                assert!(castor.is_taken, "it was told so, and nothing was written");
                castor.shown.extend(order.words.iter().copied());
                castor.open = Some((order.epoch, order.start + order.words.len() as i64));
                castor.pending = None;
            }
            Settlement::Again => assert!(!castor.is_taken),
            Settlement::Lost => {
                self.n_lost += 1;
                castor.open = None;
                castor.pending = None;
            }
            Settlement::Broken => panic!("a log of a length that nobody wrote"),
        }
    }

    fn arrive(&mut self) {
        if self.network.is_empty() {
            return;
        }
        let at = self.roll(self.network.len() as u64) as usize;
        let order = self.network.swap_remove(at);
        if self.database.append(&order) {
            for it in self.castors.iter_mut().filter(|it| it.pending.as_ref() == Some(&order)) {
                it.is_taken = true;
            }
        }
    }

    fn check(&self) {
        let log = &self.database.log;
        assert_eq!(self.database.lease.len, log.len() as i64);
        assert!(log.is_sorted_by_key(|it| it.2), "an owner wrote behind the next one: {log:?}");
        let by: BTreeMap<i64, usize> = log.iter().map(|it| (it.2, it.0)).collect();
        assert!(log.iter().all(|it| by[&it.2] == it.0), "two owners of an epoch: {log:?}");
        for (at, castor) in self.castors.iter().enumerate() {
            let own: Vec<(usize, u64)> = log.iter().filter(|it| it.0 == at).map(|it| (it.0, it.1)).collect();
            assert!(own.is_sorted_by(|a, b| a.1 < b.1), "twice, or in another order: {own:?}");
            assert!(castor.shown.iter().all(|it| own.contains(it)), "shown, and not in the log");
        }
    }
}

#[test]
fn nobody_writes_behind_the_next_owner_and_nothing_twice() {
    let (mut n_takeovers, mut n_lost, mut n_resent) = (0, 0, 0);
    for seed in 1..=N_LIVES {
        let lease = Lease { epoch: 0, owner: None, len: 0 };
        let database = Database { lease, log: Vec::new(), last_epoch: 0, heard: BTreeMap::new(), now: 10 };
        let castors = (0..N_OWNERS).map(|_| Castor::default()).collect();
        let dice = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut life = Life { database, castors, network: Vec::new(), dice, n_takeovers: 0, n_lost: 0, n_resent: 0 };
        for _ in 0..N_EVENTS {
            life.happen();
        }
        life.check();
        n_takeovers += life.n_takeovers;
        n_lost += life.n_lost;
        n_resent += life.n_resent;
    }
    let seen = (n_takeovers, n_lost, n_resent);
    assert!(n_takeovers > 10_000 && n_lost > 1_000 && n_resent > 5_000, "too little happened: {seen:?}");
}

#[test]
fn a_lease_is_had_by_one() {
    let lease = |owner: Option<&str>| Lease { epoch: 7, owner: owner.map(str::to_owned), len: 10 };
    let cases = [
        (None, false, false, Claim::Take),
        (Some("other"), true, false, Claim::Refuse),
        (Some("other"), false, false, Claim::Take),
        (Some("me"), true, true, Claim::Refuse),
        (Some("me"), true, false, Claim::Take),
    ];
    for (owner, is_heard, is_open_here, expected) in cases {
        assert_eq!(claim(&lease(owner), "me", is_heard, is_open_here), expected, "{owner:?} {is_heard}");
    }
    let cases = [
        (7, 10, 5, Settlement::Again),
        (7, 5, 5, Settlement::Stored),
        (7, 4, 5, Settlement::Broken),
        (6, 10, 5, Settlement::Lost),
        (6, 5, 5, Settlement::Lost),
    ];
    for (epoch, start, added, expected) in cases {
        assert_eq!(settle(&lease(None), epoch, start, added), expected, "{epoch} {start}");
    }
}
