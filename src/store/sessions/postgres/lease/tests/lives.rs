//! Lives of one session with several owners: they crash, stop and come back; the store's answers are late or lost, its rows
//! locked, and its clock jumps; it dies with all that is on its way. `STORE_TURNS` says for how many turns.

use std::collections::{BTreeMap, BTreeSet};

use super::{Claim, Lease, Settlement, claim, settle};

const N_TURNS: usize = 100_000;
const N_EVENTS: usize = 400;
const N_OWNERS: usize = 4;
/// Tries of an append before its owner gives up.
const PATIENCE: usize = 6;

/// A line of the log: of length one, for simplicity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Line {
    Begin(u64),
    Text(u64, u64),
    End(u64),
    /// What a load adds for a turn whose owner died, and the next write has first.
    Interrupted(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Done,
    Failed,
    /// With its owner: the client sees the connection end.
    Died,
}

/// What the statement of an append says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Order {
    owner: String,
    epoch: i64,
    start: i64,
    lines: Vec<Line>,
}

impl Order {
    fn added(&self) -> i64 {
        self.lines.len() as i64
    }
}

/// The database: what its statements do, and nothing else.
struct Database {
    lease: Lease,
    /// With epoch and owner.
    log: Vec<(Line, i64, String)>,
    last_epoch: i64,
    heard: BTreeMap<String, u64>,
    now: u64,
    /// Another transaction has the row: appends pass it over.
    is_locked: bool,
}

impl Database {
    fn append(&mut self, order: &Order) -> bool {
        if self.is_locked || self.lease.epoch != order.epoch || self.lease.len != order.start {
            return false;
        }
        self.log.extend(order.lines.iter().map(|it| (*it, order.epoch, order.owner.clone())));
        self.lease.len += order.added();
        true
    }

    fn hold(&mut self, owner: &str) -> Option<i64> {
        self.heard.insert(owner.to_owned(), self.now);
        let heard = self.lease.owner.as_ref().and_then(|it| self.heard.get(it));
        let is_heard = heard.is_some_and(|it| it + 4 > self.now);
        if self.is_locked || claim(&self.lease, owner, is_heard, false) == Claim::Refuse {
            return None;
        }
        self.last_epoch += 1;
        self.lease = Lease { epoch: self.last_epoch, owner: Some(owner.to_owned()), len: self.lease.len };
        Some(self.last_epoch)
    }

    fn lines(&self) -> Vec<Line> {
        self.log.iter().map(|it| it.0).collect()
    }
}

/// Turns that have a beginning and no end.
fn open_turns(lines: &[Line]) -> BTreeSet<u64> {
    let mut res = BTreeSet::new();
    for it in lines {
        match it {
            Line::Begin(turn) => assert!(res.insert(*turn), "{turn} begins twice"),
            Line::Text(turn, _) => assert!(res.contains(turn), "a word of {turn}, which does not run"),
            Line::End(turn) | Line::Interrupted(turn) => assert!(res.remove(turn), "{turn} ends twice"),
        }
    }
    res
}

/// A session that is open in a castor.
struct OpenSession {
    epoch: i64,
    /// The session as its owner has it: the log that was loaded, and all that happened since.
    lines: Vec<Line>,
    /// So many of them the database has confirmed.
    n_stored: usize,
    /// So many are in it or on their way.
    n_sent: usize,
    pending: Option<(Order, usize)>,
    running: Option<u64>,
    waiting: Vec<u64>,
}

#[derive(Default)]
struct Castor {
    open: Option<OpenSession>,
    n_deaths: usize,
    is_stopped: bool,
    /// What it showed, which must be in the log.
    shown: Vec<Line>,
}

#[derive(Default)]
struct Counts {
    turns: usize,
    takeovers: usize,
    lost: usize,
    given_up: usize,
    sent_again: usize,
    died: usize,
    passed: usize,
    databases: usize,
}

struct Life<'a> {
    database: Database,
    castors: Vec<Castor>,
    /// Sent on connections that were given up: they arrive late, or never.
    network: Vec<Order>,
    answers: BTreeMap<u64, Vec<Answer>>,
    dice: u64,
    counts: &'a mut Counts,
}

impl<'a> Life<'a> {
    fn new(seed: u64, counts: &'a mut Counts) -> Self {
        let lease = Lease { epoch: 0, owner: None, len: 0 };
        let heard = BTreeMap::new();
        let database = Database { lease, log: Vec::new(), last_epoch: 0, heard, now: 10, is_locked: false };
        let castors = (0..N_OWNERS).map(|_| Castor::default()).collect();
        let dice = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        Self { database, castors, network: Vec::new(), answers: BTreeMap::new(), dice, counts }
    }

    fn roll(&mut self, n: u64) -> u64 {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        self.dice % n
    }

    /// Of each life another one, as processes have.
    fn name(&self, at: usize) -> String {
        format!("{at}.{}", self.castors[at].n_deaths)
    }

    fn happen(&mut self) {
        let at = self.roll(N_OWNERS as u64) as usize;
        match self.roll(21) {
            0 if self.roll(3) == 0 => self.castors[at].is_stopped ^= true,
            1 if self.roll(3) == 0 => self.database.is_locked ^= true,
            // The clock of the database jumps, forward and back.
            2 => self.database.now = (self.database.now + self.roll(12)).saturating_sub(3),
            3 => self.arrive(),
            4 if self.roll(4) == 0 => self.crash(at),
            20 if self.roll(2) == 0 => self.kill_database(),
            _ if self.castors[at].is_stopped => (),
            5 | 6 => _ = self.database.heard.insert(self.name(at), self.database.now),
            7 => self.open(at),
            8 | 9 => self.ask(at),
            10 if self.roll(3) == 0 => self.close(at),
            11..15 => self.work(at),
            _ => {
                self.send(at);
                self.exchange(at);
            }
        }
    }

    fn answer(&mut self, turn: u64, answer: Answer) {
        self.answers.entry(turn).or_default().push(answer);
    }

    /// The session is not open there any more. Requests without an answer get this one.
    fn leave(&mut self, at: usize, answer: Answer) {
        let Some(open) = self.castors[at].open.take() else { return };
        self.network.extend(open.pending.map(|it| it.0));
        // The end of a turn that nobody was told of is none for its client.
        let unsaid =
            open.lines[open.n_stored..].iter().filter_map(|it| if let Line::End(it) = it { Some(*it) } else { None });
        let unanswered: Vec<u64> = unsaid.chain(open.running).chain(open.waiting).collect();
        unanswered.into_iter().for_each(|it| self.answer(it, answer));
    }

    /// It starts again with all that it took: a commit waits for its disk.
    fn kill_database(&mut self) {
        self.counts.databases += 1;
        self.network.clear();
        self.database.is_locked = false;
    }

    fn crash(&mut self, at: usize) {
        self.counts.died += 1;
        self.leave(at, Answer::Died);
        self.castors[at].n_deaths += 1;
        self.castors[at].is_stopped = false;
    }

    /// Lets go of a session in which nothing happens.
    fn close(&mut self, at: usize) {
        let is_idle = |it: &OpenSession| it.running.is_none() && it.waiting.is_empty() && it.n_stored == it.lines.len();
        let Some(epoch) = self.castors[at].open.as_ref().filter(|it| is_idle(it)).map(|it| it.epoch) else { return };
        self.leave(at, Answer::Failed);
        // It is told so, or not.
        if self.roll(3) > 0 && self.database.lease.epoch == epoch {
            self.database.lease.owner = None;
        }
    }

    fn open(&mut self, at: usize) {
        // Only one that does not have it open asks for it.
        if self.castors[at].open.is_some() {
            return;
        }
        let Some(epoch) = self.database.hold(&self.name(at)) else { return };
        self.counts.takeovers += 1;
        let mut lines = self.database.lines();
        let n_stored = lines.len();
        // The next write has them first.
        lines.extend(open_turns(&lines).into_iter().map(Line::Interrupted));
        let (pending, running, waiting) = (None, None, Vec::new());
        self.castors[at].open =
            Some(OpenSession { epoch, lines, n_stored, n_sent: n_stored, pending, running, waiting });
    }

    fn ask(&mut self, at: usize) {
        let turn = self.answers.len() as u64;
        if let Some(open) = &mut self.castors[at].open {
            open.waiting.push(turn);
            self.answers.insert(turn, Vec::new());
            self.counts.turns += 1;
        }
    }

    fn work(&mut self, at: usize) {
        let (ends, word) = (self.roll(3) == 0, self.dice);
        let Some(open) = &mut self.castors[at].open else { return };
        let line = match open.running {
            None if open.waiting.is_empty() => return,
            None => {
                let turn = open.waiting.remove(0);
                open.running = Some(turn);
                Line::Begin(turn)
            }
            Some(turn) if ends => {
                open.running = None;
                Line::End(turn)
            }
            Some(turn) => Line::Text(turn, word),
        };
        open.lines.push(line);
    }

    /// One append is under way at a time; what happens meanwhile is the next.
    fn send(&mut self, at: usize) {
        let owner = self.name(at);
        let Some(open) = self.castors[at].open.as_mut().filter(|it| it.pending.is_none()) else { return };
        if open.n_sent < open.lines.len() {
            let (epoch, start) = (open.epoch, open.n_sent as i64);
            open.pending = Some((Order { owner, epoch, start, lines: open.lines[open.n_sent..].to_vec() }, 0));
            open.n_sent = open.lines.len();
        }
    }

    /// The append goes there and its answer comes back, or one of them is lost.
    fn exchange(&mut self, at: usize) {
        let (reaches, returns) = (self.roll(4) > 0, self.roll(4) > 0);
        let pending = self.castors[at].open.as_mut().and_then(|it| it.pending.as_mut());
        let Some((order, n_tries)) = pending else { return };
        *n_tries += 1;
        let (order, n_tries) = (order.clone(), *n_tries);
        let is_taken = reaches && self.database.append(&order);
        if !reaches || !returns {
            if !reaches && returns {
                self.network.push(order);
            }
            return self.try_again(at, n_tries);
        }
        let settled = match is_taken {
            true => Settlement::Stored,
            false => settle(&self.database.lease, order.epoch, order.start, order.added()),
        };
        match settled {
            Settlement::Stored => self.store(at, &order),
            Settlement::Again => {
                assert!(!self.database.lines().contains(&order.lines[0]), "it is there, and would be sent again");
                self.counts.passed += 1;
                self.try_again(at, n_tries);
            }
            Settlement::Lost => {
                self.counts.lost += 1;
                self.leave(at, Answer::Failed);
            }
            Settlement::Broken => panic!("a log of a length that nobody wrote"),
        }
    }

    fn try_again(&mut self, at: usize, n_tries: usize) {
        self.counts.sent_again += 1;
        if n_tries > PATIENCE {
            self.counts.given_up += 1;
            self.leave(at, Answer::Failed);
        }
    }

    /// What is stored is shown.
    fn store(&mut self, at: usize, order: &Order) {
        let Some(open) = &mut self.castors[at].open else { return };
        open.pending = None;
        open.n_stored += order.lines.len();
        let log: Vec<Line> = self.database.log.iter().filter(|it| it.1 <= order.epoch).map(|it| it.0).collect();
        assert_eq!(log, open.lines[..open.n_stored], "the session is another one than its log says");
        self.castors[at].shown.extend(&order.lines);
        for it in &order.lines {
            if let Line::End(turn) = it {
                self.answer(*turn, Answer::Done);
            }
        }
    }

    fn arrive(&mut self) {
        if !self.network.is_empty() {
            let at = self.roll(self.network.len() as u64) as usize;
            let order = self.network.swap_remove(at);
            self.database.append(&order);
        }
    }

    /// Nothing breaks any more: all that was asked is answered.
    fn finish(&mut self) {
        self.database.is_locked = false;
        while !self.network.is_empty() {
            self.arrive();
        }
        for at in 0..N_OWNERS {
            self.castors[at].is_stopped = false;
            while self.castors[at].open.as_ref().is_some_and(|it| it.running.is_some() || !it.waiting.is_empty()) {
                self.work(at);
            }
            while self.castors[at].open.as_ref().is_some_and(|it| it.n_stored < it.lines.len()) {
                self.send(at);
                self.exchange(at);
            }
        }
    }

    fn check(&self) {
        let log = &self.database.log;
        assert_eq!(self.database.lease.len, log.len() as i64);
        assert!(log.is_sorted_by_key(|it| it.1), "an owner wrote behind the next one: {log:?}");
        let by: BTreeMap<i64, &String> = log.iter().map(|it| (it.1, &it.2)).collect();
        assert!(log.iter().all(|it| *by[&it.1] == it.2), "two owners of an epoch: {log:?}");
        let lines = self.database.lines();
        let all: BTreeSet<Line> = lines.iter().copied().collect();
        assert_eq!(all.len(), lines.len(), "written twice: {lines:?}");
        let shown = self.castors.iter().flat_map(|it| &it.shown);
        assert!(shown.into_iter().all(|it| all.contains(it)), "shown, and not in the log");
        // Each turn that is in the log ends once, for whoever loads it.
        open_turns(&lines);
        for (turn, answers) in &self.answers {
            assert_eq!(answers.len(), 1, "turn {turn} was answered {answers:?}");
            assert!(answers[0] != Answer::Done || all.contains(&Line::End(*turn)), "{turn} is done, and has no end");
        }
    }
}

#[test]
fn nobody_writes_behind_the_next_owner_and_each_request_has_one_answer() {
    // A test's own, and no setting of castor's.
    #[allow(clippy::disallowed_methods)]
    let n_turns = std::env::var("STORE_TURNS").map_or(N_TURNS, |it| it.parse().unwrap());
    let mut counts = Counts::default();
    let mut seed = 0;
    while counts.turns < n_turns {
        seed += 1;
        let mut life = Life::new(seed, &mut counts);
        (0..N_EVENTS).for_each(|_| life.happen());
        life.finish();
        life.check();
    }
    let Counts { turns, takeovers, lost, given_up, sent_again, died, passed, databases } = counts;
    let text = format!(
        "{turns} turns in {seed} lives: {takeovers} takeovers, {died} deaths, {databases} of the database, {sent_again} appends sent again, {passed} \
         passed over, {lost} lost and {given_up} given up"
    );
    println!("{text}");
    let least = [takeovers, sent_again, died, passed, lost, given_up, databases].map(|it| it * 100 / n_turns);
    assert!(least.into_iter().all(|it| it > 0), "too little happened: {text}");
}
