//! What happens next, by the seed; and how all comes to rest.

use super::{
    client::{Client, cancel, refuse, unsubscribed},
    dice::Dice,
    life::Life,
    moves::{Disk, End, Line, Move},
    sabotage::Sabotage,
    version2,
    watch::{EVALUATE, Open},
    world::{EDITOR, Kind, Task, World},
};

/// Moves of the usual life, and between two rests.
pub const MOVES: usize = 2_500;
const REST: usize = 500;
/// A life that does not come to rest in so many moves never does.
const MAX_REST: usize = 5_000;
/// Tasks whose answers go on after nobody wants them.
const MAX_STALE: usize = 40;

#[derive(Clone, Copy)]
enum Who {
    Client,
    Reading,
    World,
    Clock,
    Server,
    Ask,
    Editor,
    Search,
    Doubt,
    Disk,
}

struct Driver {
    dice: Dice,
    client: Client,
    life: Life,
    /// Until then the client takes nothing of what it is told.
    mute_until: usize,
}

/// A whole life.
pub fn live(seed: u64, moves: usize, sabotage: Option<Sabotage>) -> Life {
    let mut dice = Dice::new(seed);
    let client = Client::new(&mut dice, version2::is_spoken(seed));
    let mut driver = Driver { dice, client, life: Life::new(seed, sabotage), mute_until: 0 };
    for n in 1..=moves {
        driver.go_on();
        if n.is_multiple_of(REST) {
            driver.rest();
        }
        if !driver.life.is_well() {
            return driver.life;
        }
    }
    (0..driver.dice.roll(100)).for_each(|_| driver.go_on());
    driver.end()
}

impl Driver {
    fn play(&mut self, what: Move) {
        self.life.play(&Line { with_next: false, what });
    }

    fn go_on(&mut self) {
        let Some(what) = self.next() else { return };
        let with_next = self.dice.one_in(6);
        self.life.play(&Line { with_next, what });
        let (dice, tasks) = (&mut self.dice, &mut self.life.world.tasks);
        // Some answer twice, some go on for long after nobody wants them.
        tasks.retain(|it| !it.answered || dice.one_in(8));
        if tasks.len() > MAX_STALE {
            tasks.retain(|it| !it.cancel.is_cancelled());
        }
    }

    fn next(&mut self) -> Option<Move> {
        use Who::*;
        let who = [
            (30, Client),
            (14, Reading),
            (60, World),
            (8, Clock),
            (6, Server),
            (12, Ask),
            (3, Editor),
            (3, Search),
            (1, Doubt),
            (1, Disk),
        ];
        match self.dice.weighed(&who) {
            Client if self.life.machine.takes_stdin() => {
                Some(Move::Bytes(self.client.bytes(&mut self.dice, &self.life.watch)))
            }
            Client => None,
            Reading => self.reading(),
            World => self.world(),
            Clock => {
                let most = [5, 50, 500, 40_000][self.dice.roll(4)];
                Some(Move::Clock(1 + self.dice.roll(most) as u64))
            }
            Server => self.server(),
            Ask => self.ask(),
            Editor => self.editor(),
            Search if self.life.world.chores > 0 => Some(Move::Chore),
            Search => (!self.life.world.searches.is_empty()).then_some(Move::Listed),
            Doubt => self.dice.pick(&self.life.watch.sessions).cloned().map(Move::Doubt),
            Disk => self.disk(),
        }
    }

    /// A client that is slow, and at times mute.
    fn reading(&mut self) -> Option<Move> {
        let (n, unread) = (self.life.n_moves, self.life.unread);
        if self.dice.one_in(300) {
            self.mute_until = n + 400;
        }
        if n < self.mute_until || unread == 0 {
            return None;
        }
        let part = if self.dice.one_in(3) { 1 + self.dice.roll(unread) } else { unread };
        Some(Move::Reads(part))
    }

    fn world(&mut self) -> Option<Move> {
        if !self.life.machine.takes_answers() {
            return None;
        }
        let at = self.dice.roll(self.life.world.tasks.len());
        let task = self.life.world.tasks.get(at)?;
        let words = World::words(&mut self.dice, task.kind);
        Some(Move::Answer { session: task.session.clone(), effect: task.effect, words })
    }

    fn server(&mut self) -> Option<Move> {
        let known: Vec<(u64, bool)> = self.life.world.servers.iter().map(|(id, it)| (*id, it.ready)).collect();
        let (server, ready) = *self.dice.pick(&known)?;
        let words = match ready {
            false => self.dice.word(&["ready look", "ready look take", "ready look", "ready", "lost"]),
            // What is there stays for a while.
            true if !self.dice.one_in(6) => return None,
            true => self.dice.word(&["changed look", "changed look take", "changed", "down", "lost"]),
        };
        Some(Move::Server { server, words: words.to_owned() })
    }

    /// A server asks the user; most do so in a call.
    fn ask(&mut self) -> Option<Move> {
        let is_called = self.life.world.tasks.iter().any(|it| it.is_outside && !it.answered);
        let ready = self.life.world.servers.iter().filter(|(_, it)| it.ready).map(|(id, _)| *id);
        let server = *self.dice.pick(&ready.collect::<Vec<u64>>()).filter(|_| is_called)?;
        let words = self.dice.weighed(&[
            (3, "asks-yes-or-no"),
            (2, "asks-text"),
            (3, "asks-page"),
            (1, "takes-back"),
            (1, "completes"),
        ]);
        let words = match words {
            "takes-back" => {
                let its: Vec<u64> =
                    self.life.world.asked.iter().filter(|it| it.server == server).map(|it| it.number).collect();
                format!("takes-back {}", self.dice.pick(&its)?)
            }
            it if it.starts_with("asks-") => format!("{it} {}", self.life.world.n_asked),
            it => it.to_owned(),
        };
        Some(Move::Server { server, words })
    }

    fn editor(&mut self) -> Option<Move> {
        // Version 2 has none of its requests.
        if self.life.watch.version == 2 {
            return None;
        }
        // Of all tasks only a tool's use the editor's hands: a hook that is told beside a turn has none, the end of a
        // sub-agent only looks at files, and so does who asks what policy would say.
        let watch = &self.life.watch;
        let of_tools = |it: &&Task| {
            let is_of_call = matches!(it.kind, Kind::Resolve | Kind::Preview | Kind::Run) && it.output.is_none();
            is_of_call && watch.is_busy(it.session.as_str())
        };
        let tools: Vec<&Task> = self.life.world.tasks.iter().filter(of_tools).collect();
        let task = *self.dice.pick(&tools)?;
        let method = self.dice.word(EDITOR).to_owned();
        Some(Move::Editor { session: task.session.clone(), effect: task.effect, method })
    }

    fn disk(&mut self) -> Option<Move> {
        let gone = self.dice.pick(&self.life.watch.gone).cloned();
        Some(Move::Disk(match self.dice.roll(8) {
            0..2 => Disk::Full(self.dice.roll(300)),
            2 => Disk::Torn(gone?),
            3 => Disk::Held(gone?),
            _ => Disk::Free,
        }))
    }

    /// Brings all to an end that was begun, then looks at what is left.
    fn rest(&mut self) {
        // More was to come with the last move, and does not: its turn ends.
        self.play(Move::Clock(0));
        for _ in 0..MAX_REST {
            match self.restful() {
                Some(what) => self.play(what),
                None if self.life.world.n_wanted() > 0 => {
                    return self.life.problem("a task goes on though nobody wants it");
                }
                None => return self.life.check_quiet(),
            }
        }
        self.life.problem("it never comes to rest");
    }

    fn restful(&mut self) -> Option<Move> {
        let life = &mut self.life;
        if !life.watch.partial.is_empty() {
            self.client.forget();
            return Some(Move::Bytes(b"\n".to_vec()));
        }
        if life.unread > 0 {
            return Some(Move::Reads(life.unread));
        }
        // A session opens when what is being written down is written, and not because it is cancelled.
        if life.world.chores > 0 {
            return Some(Move::Chore);
        }
        let waits = |it: &Open| it.due_ms.is_none() && it.method != EVALUATE;
        let asked = |it: &str| life.watch.open.iter().any(|open| open.session == it && waits(open));
        let busy = |it: &&str| asked(it) || life.watch.has_turn(it);
        if let Some(session) = life.watch.sessions.iter().map(String::as_str).find(busy) {
            return Some(Move::Bytes(cancel(session)));
        }
        if let Some(question) = life.watch.questions.first() {
            return Some(Move::Bytes(refuse(question)));
        }
        // What nobody waits for comes as well.
        let is_asked = |it: &Task| it.kind == Kind::Resolve && !life.watch.is_busy(it.session.as_str());
        let stale = life.world.tasks.iter().position(|it| it.answered || it.cancel.is_cancelled() || is_asked(it));
        if let Some(at) = stale {
            let task = life.world.tasks.remove(at);
            let words = loop {
                let words = World::words(&mut self.dice, task.kind);
                if World::is_last(&words) {
                    break words;
                }
            };
            return Some(Move::Answer { session: task.session, effect: task.effect, words });
        }
        if !life.world.searches.is_empty() {
            return Some(Move::Listed);
        }
        // Who was told beside a turn answers after it.
        // What was begun with files is brought to its end, also for a turn that is over.
        let beside = |it: &Task| match it.kind {
            Kind::Hook => Some("hooked nothing"),
            Kind::Hold => Some("held ok"),
            Kind::Compare => Some("compared nothing"),
            Kind::Restore => Some("restored a"),
            // What a sub-agent changed is found out, also for a call that is over.
            Kind::Run if it.output.is_some() => Some("ran text"),
            _ => None,
        };
        let told = life.world.tasks.iter().find_map(|it| Some((it, beside(it)?)));
        if let Some((Task { session, effect, .. }, words)) = told {
            return Some(Move::Answer { session: session.clone(), effect: *effect, words: words.to_owned() });
        }
        // Who follows a session that is not open has a timer for ever.
        if let Some(params) = life.watch.subscriptions.pop().as_ref().map(unsubscribed) {
            return Some(Move::Bytes(self.client.request("_castor/session/unsubscribe", &params)));
        }
        let due = life.machine.next_timer_ms()?;
        Some(Move::Clock(due.saturating_sub(life.now_ms)))
    }

    fn end(mut self) -> Life {
        let how = [End::Input, End::Output, End::Signal][self.dice.roll(3)];
        self.play(Move::End(how));
        self.life
    }
}
