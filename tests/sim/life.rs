//! One life of the agent: the machine, the world and the client around it, and the conversation that it makes.

use std::{
    collections::BTreeSet,
    fs::File,
    io::Write as _,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use castor_agent::server::machine::{Event, Machine, OpenResources, Options, Tasks as Doors, builtins};
use castor_base::{
    event::EventKind,
    ids::{EffectId, SessionId},
    limits::LimitSpan,
    log::{Entry, Fact},
    path::AbsPath,
};
use castor_engine::{record::Record, step::Input};
use castor_hands::{process::Groups, secrets::Env};
use castor_store::sessions::SessionStore;
use tempfile::TempDir;

use super::{
    home,
    moves::{Disk, End, Line, Move},
    sabotage::Sabotage,
    watch::{Known, Watch},
    words,
    world::{self, World},
};
use crate::ledger::Ledger;

/// When every life begins, in Unix milliseconds.
pub const START_MS: u64 = 1_700_000_000_000;
/// Of an event that its client does not pull this is a guard, not a measurement.
const MAX_UNSENT: usize = 66 << 20;
/// What is said of a panic that was caught.
const PANICKED: &str = "an internal error";
/// Moves between two looks at a log.
const LOOK: usize = 101;

pub struct Life {
    pub machine: Machine,
    pub world: World,
    pub watch: Watch,
    pub ledger: Ledger,
    pub now_ms: u64,
    /// What the client was told and has not taken.
    pub unread: usize,
    /// The last event came.
    pub ended: bool,
    pub n_moves: usize,
    home: TempDir,
    /// Locks of another process.
    held: Vec<File>,
    /// Their logs may have no end, after a full disk or a panic.
    faulty: BTreeSet<SessionId>,
    /// The next write to a log stops.
    is_disk_full: bool,
    /// Tokens of a turn and of all below it; `None`: any.
    budget: Option<u64>,
    /// castor's own code breaks at a word.
    breaks: bool,
    /// Requests of sub-agents of sub-agents.
    pub n_deep: usize,
    sabotage: Option<Sabotage>,
    story: Story,
}

/// What went in and came out, and what is wrong with it.
#[derive(Default)]
pub struct Story {
    pub text: String,
    pub problems: Vec<String>,
}

impl Life {
    pub fn new(seed: u64, sabotage: Option<Sabotage>) -> Self {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().display().to_string();
        let breaks = seed % 7 == 4;
        let env = [("HOME", path.as_str()), ("CASTOR_HOME", &path), ("GEMINI_API_KEY", "k")];
        let fault = breaks.then_some(("CASTOR_DEBUG_PANIC", words::BOOM));
        let env = Env::from_pairs(env.into_iter().chain([("CASTOR_TRUST_WORKSPACE", "true")]).chain(fault));
        home::furnish(home.path(), seed);
        let (world, groups) = (World::default(), Groups::default());
        let store = SessionStore::with_append(AbsPath::new(home.path()).unwrap(), world::write);
        let doors = Doors::new(store, groups.clone(), builtins(&groups), Box::new(world.queue.clone()));
        world::fill_disk(None);
        Self {
            machine: Machine::new(Options::default(), env, doors, seed),
            world,
            watch: Watch::default(),
            ledger: Ledger::default(),
            now_ms: START_MS,
            unread: 0,
            ended: false,
            n_moves: 0,
            home,
            held: Vec::new(),
            faulty: BTreeSet::new(),
            is_disk_full: false,
            budget: home::budget(seed),
            breaks,
            n_deep: 0,
            sabotage,
            story: Story { text: format!("# seed {seed}\n"), problems: Vec::new() },
        }
    }

    /// Lets one thing happen, and ends the turn unless more comes with it.
    pub fn play(&mut self, line: &Line) {
        self.n_moves += 1;
        self.story.text.push_str(&format!("{line}\n"));
        let played = catch_unwind(AssertUnwindSafe(|| {
            self.happen(&line.what);
            if self.ended {
                self.end();
            } else if !line.with_next {
                self.end_turn();
            }
        }));
        if played.is_err() {
            self.problem("it panicked");
        }
    }

    fn happen(&mut self, what: &Move) {
        self.is_disk_full |= matches!(what, Move::Disk(Disk::Full(_)));
        match what {
            Move::Bytes(bytes) => {
                self.ledger.sent(bytes);
                self.watch.sent(bytes, self.now_ms);
                self.take(Event::Stdin(bytes.clone()));
            }
            Move::Reads(n) => {
                self.unread = self.unread.saturating_sub(*n);
                self.take(Event::Written(*n));
            }
            Move::End(End::Input) => {
                self.ledger.close();
                self.watch.close(self.now_ms);
                self.take(Event::StdinClosed);
            }
            Move::End(End::Output) => self.take(Event::StdoutClosed),
            Move::End(End::Signal) => self.take(Event::Terminate),
            Move::Clock(ms) => {
                self.now_ms += ms;
                if self.machine.next_timer_ms().is_some_and(|it| it <= self.now_ms) {
                    self.take(Event::Timer);
                }
            }
            Move::Answer { session, effect, words } => self.answer(session, *effect, words),
            Move::Editor { session, effect, method } => {
                let event = self.world.ask_editor(session, *effect, method);
                self.take_some(event, method);
            }
            Move::Server { server, words } => {
                if let Some(it) = self.world.servers.get_mut(server) {
                    it.ready = !["lost", "down"].iter().any(|it| words.starts_with(it));
                }
                let event = self.world.news(*server, words).map(|event| Event::Mcp { server: *server, event });
                self.take_some(event, words);
            }
            Move::Doubt(session) => {
                let event =
                    World::doubt().map(|input| Event::Engine { session: SessionId::from(session.as_str()), input });
                self.take_some(event, "doubt");
            }
            Move::Listed => self.list(),
            Move::Chore if self.world.chores == 0 => (),
            Move::Chore => self.chore(),
            Move::Disk(what) => self.disk(what),
        }
    }

    fn take(&mut self, event: Event) {
        self.ended |= self.machine.handle_event(event, self.now_ms);
    }

    fn take_some(&mut self, event: Option<Event>, words: &str) {
        match event {
            Some(it) => self.take(it),
            None => self.story.problems.push(format!("nobody knows these words: {words}")),
        }
    }

    fn answer(&mut self, session: &str, effect: u64, words: &str) {
        if self.breaks && words.contains(words::BOOM) {
            self.note_fault();
        }
        let output = self.world.output(session, effect).filter(|_| World::is_last(words));
        let of_child = |output| Input::RunEnded { effect: EffectId(effect), output, changes: None };
        let input = output.map(of_child).or_else(|| World::answer(effect, words));
        let event = input.map(|input| Event::Engine { session: SessionId::from(session), input });
        self.take_some(event, words);
        if let Some(task) = self.world.open_task(session, effect).filter(|_| World::is_last(words)) {
            task.answered = true;
        }
    }

    /// What the disk says of times is not simulated: sessions are as old as their ids.
    fn list(&mut self) {
        if self.world.searches.is_empty() {
            return;
        }
        let mut listing = self.world.searches.remove(0).look();
        if let Ok(found) = &mut listing.found {
            found.sort_by(|a, b| b.id.cmp(&a.id));
            for (at, it) in found.iter_mut().rev().enumerate() {
                Arc::make_mut(it).updated_ms = START_MS + at as u64;
            }
        }
        self.take(Event::SessionsListed(Box::new(listing)));
    }

    fn chore(&mut self) {
        self.world.chores -= 1;
        if let Some(save) = self.world.state_saves.pop_front() {
            let session = save.session.clone();
            self.take(Event::Engine { session, input: save.save() });
            return self.take(Event::ChoreDone);
        }
        let saves = self.world.saves > 0;
        self.world.saves -= usize::from(saves);
        self.take(if saves { Event::GrantSaved } else { Event::ChoreDone });
    }

    fn disk(&mut self, what: &Disk) {
        match what {
            Disk::Full(at) => world::fill_disk(Some(*at)),
            Disk::Free => self.held.clear(),
            Disk::Torn(session) => {
                let open = self.machine.record(&SessionId::from(session.as_str())).is_some();
                if let Some(mut log) = self.log(session).filter(|_| !open) {
                    log.write_all(b"{\"at\": 1, \"fa").unwrap();
                }
            }
            Disk::Held(session) => {
                let log = self.log(session).filter(|it| it.try_lock().is_ok());
                self.held.extend(log);
            }
        }
    }

    fn log(&self, session: &str) -> Option<File> {
        let path = self.home.path().join(format!("sessions/{session}.jsonl"));
        File::options().append(true).open(path).ok()
    }

    fn end_turn(&mut self) {
        let before: Vec<SessionId> = self.machine.sessions().filter(|_| self.is_disk_full).cloned().collect();
        let lines = self.machine.flush();
        self.say(&lines);
        self.machine.sync_logs();
        if self.is_disk_full {
            self.faulty.extend(before);
            self.note_fault();
            self.is_disk_full = world::is_disk_full();
        }
        if self.n_moves.is_multiple_of(LOOK) {
            self.check_logs();
        }
        if self.unread > MAX_UNSENT {
            self.story.problems.push(format!("{} bytes wait for the client", self.unread));
        }
        let said = self.machine.open_resources().outbox;
        if said > 0 {
            self.story.problems.push(format!("{said} things were not said in their turn"));
        }
    }

    /// A log of an open session, or of what is below it, may have no end from now on.
    fn note_fault(&mut self) {
        let store = SessionStore::new(AbsPath::new(self.home.path()).unwrap());
        let made = self.watch.made.iter().map(|it| SessionId::from(it.as_str()));
        self.faulty.extend(made.flat_map(|it| store.children(&it)));
        self.faulty.extend(self.machine.sessions().cloned());
    }

    /// Who has used up what a turn may take, with all below it, asks no model any more.
    fn check_budget(&mut self, mut begun: Vec<SessionId>) {
        if let Some(it) = &mut self.sabotage {
            it.requests(&mut begun, self.machine.sessions());
        }
        let is_deep = |it: &&SessionId| {
            let thread = self.machine.record(it).and_then(Record::thread);
            thread.is_some_and(|it| it.as_str().contains('.'))
        };
        self.n_deep += begun.iter().filter(is_deep).count();
        for id in begun {
            let used = self.machine.record(&id.root()).map(|it| it.limit_usage(LimitSpan::Turn).tokens);
            if self.budget.is_some_and(|it| used >= Some(it)) {
                self.story.problems.push(format!("{id} asks a model, and {used:?} tokens are used up"));
            }
        }
    }

    fn check_orphans(&mut self) {
        for id in self.machine.sessions().filter(|it| it.is_child()) {
            let root = id.root();
            if self.machine.record(&root).is_none() || !self.watch.is_busy(root.as_str()) {
                self.story.problems.push(format!("{id} works for nobody"));
            }
        }
    }

    /// The client gets lines, and holds them against the promises.
    fn say(&mut self, lines: &[u8]) {
        let begun = self.world.take_jobs();
        self.check_budget(begun);
        self.unread += lines.len();
        let mut lines: Vec<Vec<u8>> = lines.split(|it| *it == b'\n').map(<[u8]>::to_vec).collect();
        if lines.pop().is_some_and(|it| !it.is_empty()) {
            self.story.problems.push("the last line has no end".to_owned());
        }
        if let Some(it) = &mut self.sabotage {
            it.lines(&mut lines, &self.watch, self.now_ms);
            it.tasks(&mut self.world.tasks);
        }
        let home = self.home.path().display().to_string();
        for line in lines {
            let text = String::from_utf8_lossy(&line).replace(&home, "$HOME");
            self.story.text.push_str(&format!("< {text}\n"));
            if text.contains(PANICKED) && !self.breaks {
                self.problem("a step panicked");
            }
            if let Some(message) = self.ledger.received(&line) {
                self.watch.received(&message);
            }
        }
        self.watch.check(self.now_ms);
        self.check_orphans();
    }

    fn end(&mut self) {
        self.end_turn();
        self.machine.cancel_prompts();
        while !self.world.searches.is_empty() {
            self.list();
        }
        let lines = self.machine.flush();
        self.say(&lines);
        self.machine.end_sessions();
        self.world.take_jobs();
        // What is being saved is saved, and nobody is told of it any more.
        self.world.state_saves.drain(..).for_each(|it| _ = it.save());
        while self.world.chores > 0 {
            self.chore();
        }
        let lines = self.machine.finish();
        self.say(&lines);
        let (held, wanted, servers) = (self.machine.open_resources(), self.world.n_wanted(), self.world.n_servers());
        let waiting = self.world.waiting.len() + self.world.asked.len();
        let left = [held.requests, held.running, held.outbox, held.listings, wanted, servers, waiting];
        if left.iter().any(|it| *it > 0) {
            self.story.problems.push(format!("left at the end: {left:?}"));
        }
        self.check_answered();
    }

    /// Holds when every effect was answered or cancelled, every question answered and every timer due: nothing is kept
    /// but the open sessions.
    pub fn check_quiet(&mut self) {
        let used = self.world.n_servers();
        let quiet = OpenResources { sessions: self.watch.sessions.len(), servers: used, ..OpenResources::default() };
        let held = self.machine.open_resources();
        if held != quiet {
            self.story.problems.push(format!("all is quiet, but {held:?} is held and not {quiet:?}"));
        }
        if self.watch.sessions.is_empty() && used > 0 {
            self.story.problems.push(format!("{used} servers without a session"));
        }
        if !self.world.waiting.is_empty() {
            self.story.problems.push(format!("{} tasks wait for the editor for ever", self.world.waiting.len()));
        }
        if self.world.asked.len() > used {
            self.story.problems.push("more than a question of each server waits for the next prompt".to_owned());
        }
        self.check_answered();
        self.check_logs();
        self.check_known();
        self.world.servers.retain(|_, it| !it.stop.is_cancelled());
    }

    fn check_answered(&mut self) {
        let open: Vec<&str> = self.watch.open.iter().map(|it| it.method.as_str()).collect();
        if !open.is_empty() || !self.ledger.is_idle() {
            self.story.problems.push(format!("never answered: {open:?}"));
        }
    }

    /// What the client was told last is so.
    fn check_known(&mut self) {
        for session in &self.watch.sessions {
            let roots = |it: &Record| it.roots.iter().map(ToString::to_string).collect();
            let is = self.machine.record(&SessionId::from(session.as_str()));
            let is = is.map(|it| Known { mode: it.mode.as_str().to_owned(), roots: roots(it) });
            let told = self.watch.known.get(session);
            if is.as_ref() != told {
                self.story.problems.push(format!("{session} is {is:?}, and the client knows {told:?}"));
            }
        }
        let open = self.ledger.running();
        if !open.is_empty() {
            self.story.problems.push(format!("calls that never ended: {open:?}"));
        }
    }

    /// What is in the log is what the session is; only its folders are today's.
    fn check_logs(&mut self) {
        let store = SessionStore::new(AbsPath::new(self.home.path()).unwrap());
        let mut wrong = Vec::new();
        for id in self.machine.sessions() {
            if let Some(it) = &mut self.sabotage {
                it.log(&self.home.path().join(format!("sessions/{id}.jsonl")));
            }
            let entries = store.read(id).unwrap_or_default();
            let mut replayed = Record::replay(&entries);
            let record = self.machine.record(id);
            if let (Some(it), Some(now)) = (&mut replayed, record) {
                it.cwd.clone_from(&now.cwd);
                it.roots.clone_from(&now.roots);
            }
            let mut events = BTreeSet::new();
            if let Some(twice) = entries.iter().filter_map(event_id).find(|it| !events.insert(*it)) {
                wrong.push(format!("two events of {id} are called {twice}"));
            }
            if replayed.as_ref() != record {
                wrong.push(format!("the log of {id} is not the session:\n{replayed:?}\n{record:?}"));
            }
        }
        for id in self.watch.sessions.iter().map(|it| SessionId::from(it.as_str())) {
            let over = store.children(&id).into_iter().filter(|it| self.machine.record(it).is_none());
            let over = over.filter(|it| !self.faulty.contains(it));
            wrong.extend(over.filter_map(|it| unended(&it, &store.read(&it).unwrap_or_default())));
        }
        self.story.problems.extend(wrong);
    }

    pub fn problems(&self) -> Vec<String> {
        let ledger = self.ledger.problems(false);
        self.story.problems.iter().chain(self.watch.problems()).chain(&ledger).cloned().collect()
    }

    pub fn is_well(&self) -> bool {
        self.story.problems.is_empty() && self.watch.problems().is_empty() && self.ledger.is_well()
    }

    pub fn problem(&mut self, what: &str) {
        self.story.problems.push(what.to_owned());
    }

    pub fn text(&self) -> &str {
        &self.story.text
    }
}

/// What is wrong with the log of a sub-agent that is gone: its run has one start and one end, and every call its result.
fn unended(id: &SessionId, entries: &[Entry]) -> Option<String> {
    let count = |is_it: fn(&EventKind) -> bool| {
        entries.iter().filter(|it| matches!(&it.fact, Fact::Event { event } if is_it(&event.kind))).count()
    };
    let starts = count(|it| matches!(it, EventKind::AgentStart {}));
    let ends = count(|it| matches!(it, EventKind::AgentEnd { .. }));
    let calls = count(|it| matches!(it, EventKind::ToolRequest { .. }));
    let results = count(|it| matches!(it, EventKind::ToolResponse { .. }));
    let is_well = (starts, ends) == (1, 1) && calls == results;
    (!is_well).then(|| {
        format!("a sub-agent that is gone has {starts} starts, {ends} ends, {calls} calls, {results} results: {id}")
    })
}

fn event_id(entry: &Entry) -> Option<&str> {
    match &entry.fact {
        Fact::Event { event } => Some(&event.id),
        _ => None,
    }
}

/// Plays a conversation again. In one that a person wrote, `$1` is the first session.
pub fn replay(text: &str) -> Result<Life, String> {
    let seed = text.lines().next().and_then(|it| it.strip_prefix("# seed ")).and_then(|it| it.parse().ok());
    let mut life = Life::new(seed.ok_or("the first line is `# seed N`")?, None);
    for line in text.lines() {
        let names = life.watch.made.iter().enumerate();
        let line = names.fold(line.to_owned(), |line, (at, id)| line.replace(&format!("${}", at + 1), id));
        let Some(line) = Line::read(&line)? else { continue };
        if life.ended {
            return Err("moves after the end".to_owned());
        }
        life.play(&line);
    }
    Ok(life)
}
