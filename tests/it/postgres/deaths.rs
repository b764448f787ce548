//! Two servers on one database, whose parts die at random moments under fifty clients: nothing shown is lost, each prompt
//! ends once, and sessions are taken over in time. `DEATHS=100` is the long run.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};

use super::{TAKEOVER, sql};
use crate::{
    client::{Sandbox, WATCHDOG},
    kill9::{check_calls, check_streams, check_texts, updates},
    serve::{Socket, launch, prompt, verb},
};

const N_DEATHS: usize = 10;
const N_CLIENTS: usize = 50;
const SEED: u64 = 0x5851_f42d_4c95_7f2d;
/// No session is out of reach for so long.
const OUTAGE: Duration = Duration::from_secs(90);
/// Between two tries of a client.
const PAUSE: Duration = Duration::from_millis(100);
const FLAGS: &[&str] = &["--model=demo", "--approval-mode=yolo", "--max-connections=4000"];

/// A Postgres of its own, which may be killed.
struct Database {
    child: Child,
    url: String,
    start: String,
}

impl Database {
    fn start() -> Self {
        let mut command = Command::new(".ci/postgres");
        command.args(["sh", "-c", "echo \"$CASTOR_TEST_POSTGRES\"; echo \"$CASTOR_TEST_POSTGRES_START\"; cat"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let (url, start) = (lines.next().unwrap(), lines.next().unwrap());
        Self { child, url, start }
    }

    /// As the system does when its memory is full.
    fn kill_and_start(&self) {
        let folder = self.url.split(['@', '/']).find(|it| it.contains("%2F")).unwrap().replace("%2F", "/");
        let text = std::fs::read_to_string(format!("{folder}/data/postmaster.pid")).unwrap();
        kill(Pid::from_raw(text.lines().next().unwrap().trim().parse().unwrap()), Signal::SIGKILL).unwrap();
        let begun = Instant::now();
        // Its children hold the memory until they notice.
        while !Command::new("sh").args(["-c", &self.start]).stderr(Stdio::null()).status().unwrap().success() {
            assert!(begun.elapsed() < WATCHDOG, "Postgres does not start again");
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        _ = self.child.wait();
    }
}

/// One life of a server.
struct Replica {
    port: u16,
    token: String,
    child: Mutex<Child>,
    killed: Mutex<Option<Instant>>,
}

impl Replica {
    fn start(sandbox: &mut Sandbox, token: &str) -> Arc<Self> {
        let (child, port) = launch(sandbox, FLAGS);
        Arc::new(Self { port, token: token.to_owned(), child: Mutex::new(child), killed: Mutex::default() })
    }

    /// With its agent, as when the machine dies: neither says anything more.
    fn kill(&self) {
        let mut child = self.child.lock().unwrap();
        let pid = Pid::from_raw(child.id().cast_signed());
        kill(pid, Signal::SIGSTOP).unwrap();
        *self.killed.lock().unwrap() = Some(Instant::now());
        for it in children_of(pid) {
            _ = kill(it, Signal::SIGKILL);
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

fn children_of(parent: Pid) -> Vec<Pid> {
    let is_child = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let after_name = stat.rsplit_once(") ").map(|it| it.1).unwrap_or_default();
        after_name.split(' ').nth(1).and_then(|it| it.parse().ok()) == Some(parent.as_raw())
    };
    let names = std::fs::read_dir("/proc").unwrap().map_while(Result::ok).map(|it| it.file_name());
    let pids = names.filter_map(|it| it.to_str()?.parse().ok());
    pids.filter(is_child).map(Pid::from_raw).collect()
}

/// What clients and killer share.
struct World {
    replicas: [Mutex<Arc<Replica>>; 2],
    cwd: std::path::PathBuf,
    /// When servers and the database died, each with whatever else could delay a takeover.
    deaths: Mutex<Vec<Instant>>,
    takeovers: Mutex<Vec<Takeover>>,
    is_over: AtomicBool,
    /// Clients that prompt again.
    n_back: AtomicUsize,
    /// A client found something wrong: the others need not go on.
    has_failed: AtomicBool,
    /// Nobody is woken: a pause is a wait for this.
    clock: (Mutex<()>, Condvar),
}

struct Takeover {
    took: Duration,
    /// Nothing else died meanwhile.
    is_alone: bool,
}

impl World {
    fn pause(&self, time: Duration) {
        let (lock, condvar) = &self.clock;
        drop(condvar.wait_timeout(lock.lock().unwrap(), time).unwrap());
    }

    fn replica(&self, at: usize) -> Arc<Replica> {
        self.replicas[at % 2].lock().unwrap().clone()
    }

    fn note_takeover(&self, died: Instant) {
        let n_deaths = self.deaths.lock().unwrap().iter().filter(|it| **it >= died).count();
        self.takeovers.lock().unwrap().push(Takeover { took: died.elapsed(), is_alone: n_deaths <= 1 });
    }
}

/// A client with a session of its own.
struct Driver<'a> {
    world: &'a World,
    dice: u64,
    /// The replica that it asks next.
    at: usize,
    session: Option<String>,
    /// All that it saw of its session since a load, and what that showed.
    shown: Vec<Value>,
    /// When its last prompt ended.
    ended: Instant,
    counts: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    prompts: usize,
    /// Prompts that ended as they should.
    turns: usize,
    /// Prompts that were answered with an error.
    errors: usize,
    /// Prompts whose server died.
    unanswered: usize,
    loads: usize,
}

/// A client's connection to a replica.
struct Link {
    socket: Socket,
    n_asked: u64,
}

impl Link {
    fn open(replica: &Replica) -> Result<Self, String> {
        let opened = Socket::open_at(replica.port, &replica.token, None).map_err(|it| it.to_string())?;
        let socket = opened.map_err(|it| it.to_string())?;
        let mut res = Self { socket, n_asked: 0 };
        let info = json!({"name": "it", "version": "1"});
        let hello = json!({"protocolVersion": 1, "clientInfo": info});
        res.call("initialize", &hello, &mut Vec::new())?.map_err(|it| it.to_string())?;
        Ok(res)
    }

    /// The result or the error, and among `seen` what came before it.
    fn call(&mut self, method: &str, params: &Value, seen: &mut Vec<Value>) -> Result<Result<Value, Value>, String> {
        self.n_asked += 1;
        let id = format!("{method} {}", self.n_asked);
        self.socket.try_send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        loop {
            let message = self.socket.try_next()?;
            if message.get("id").is_none() || message.get("method").is_some() {
                seen.push(message);
                continue;
            }
            assert_eq!(message["id"], id.as_str(), "an answer that nobody waits for");
            return Ok(message.get("result").cloned().ok_or_else(|| message["error"].clone()));
        }
    }
}

impl Driver<'_> {
    fn roll(&mut self, n: u64) -> u64 {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        self.dice % n
    }

    /// Prompts until it is over, on one connection after the other.
    fn run(&mut self) -> Counts {
        let mut died = None;
        let mut is_back = false;
        loop {
            let replica = self.world.replica(self.at);
            let done = Link::open(&replica).and_then(|mut link| {
                let done = self.open(&mut link, &mut died).and_then(|()| self.prompt_on(&mut link, &mut is_back));
                link.socket.leave();
                done
            });
            let Err(why) = done else { return self.counts };
            if self.world.has_failed.load(Ordering::Relaxed) {
                return self.counts;
            }
            assert!(self.ended.elapsed() < OUTAGE, "{:?} is out of reach: {why}", self.session);
            // What it was killed in is not counted anew by a later failure.
            died = died.or(*replica.killed.lock().unwrap());
            self.at += 1;
            self.world.pause(PAUSE);
        }
    }

    /// The session is open there.
    fn open(&mut self, link: &mut Link, died: &mut Option<Instant>) -> Result<(), String> {
        let Some(session) = self.session.clone() else {
            let made = link.call("session/new", &json!({"cwd": self.world.cwd, "mcpServers": []}), &mut Vec::new())?;
            let made = made.map_err(|it| it.to_string())?;
            self.session = made["sessionId"].as_str().map(str::to_owned);
            return Ok(());
        };
        let mut replay = Vec::new();
        let params = json!({"sessionId": session, "cwd": self.world.cwd, "mcpServers": []});
        link.call("session/load", &params, &mut replay)?.map_err(|it| it.to_string())?;
        self.counts.loads += 1;
        if let Some(it) = died.take() {
            self.world.note_takeover(it);
        }
        let (mut shown, replayed) = (updates(&self.shown), updates(&replay));
        // What is said of the move itself is no part of the conversation.
        shown.retain(|it| !it["content"]["text"].as_str().is_some_and(|it| it.starts_with("This session was open in")));
        // Before there was a word of the first turn there may be none of it.
        if shown.iter().any(|it| it["content"]["text"].is_string()) {
            check_texts(&shown, &replayed).unwrap_or_else(|why| panic!("{session}: {why}"));
            check_calls(&shown, &replayed).unwrap_or_else(|why| panic!("{session}: {why}"));
        }
        self.shown = replay;
        Ok(())
    }

    fn prompt_on(&mut self, link: &mut Link, is_back: &mut bool) -> Result<(), String> {
        let session = self.session.clone().unwrap_or_default();
        while !self.world.has_failed.load(Ordering::Relaxed) {
            self.counts.prompts += 1;
            let answered = link.call("session/prompt", &prompt(&session, "work"), &mut self.shown);
            let Ok(answered) = answered else {
                self.counts.unanswered += 1;
                return answered.map(|_| ());
            };
            match answered {
                Ok(it) => {
                    assert_eq!(it["stopReason"], "end_turn", "{it}");
                    self.counts.turns += 1;
                    self.ended = Instant::now();
                }
                Err(it) => {
                    self.counts.errors += 1;
                    return Err(it.to_string());
                }
            }
            if !std::mem::replace(is_back, self.world.is_over.load(Ordering::Relaxed)) && *is_back {
                self.world.n_back.fetch_add(1, Ordering::Relaxed);
            }
            if *is_back && self.world.n_back.load(Ordering::Relaxed) == N_CLIENTS {
                return self.finish(link, &session);
            }
            let time = Duration::from_millis(500 + self.roll(1500));
            self.world.pause(time);
        }
        Ok(())
    }

    /// Each prompt that was logged has one end, and none that ended is missing.
    fn finish(&mut self, link: &mut Link, session: &str) -> Result<(), String> {
        let answer = link.call("_castor/session/events", &json!({ "sessionId": session }), &mut Vec::new())?;
        let answer = answer.map_err(|it| it.to_string())?;
        let events = answer["events"].as_array().unwrap();
        check_streams(events).unwrap_or_else(|why| panic!("{session}: {why}"));
        let n_of = |kind: &str| events.iter().filter(|it| it["type"] == kind).count();
        let n_said = events.iter().filter(|it| it["type"] == "message" && it["role"] == "user").count();
        let Counts { prompts, turns, .. } = self.counts;
        assert_eq!(n_of("agent_start"), n_of("agent_end"), "{session}");
        assert!(turns <= n_said && n_said <= prompts, "{session}: {n_said} of {:?}", self.counts);
        Ok(())
    }
}

/// Lets things die, one after the other.
fn kill_things(world: &World, database: &Database, sandboxes: &mut [Sandbox; 2], n_deaths: usize) -> [usize; 3] {
    let mut killer = Driver::new(world, 0);
    let mut n = [0; 3];
    let mut least = 2000;
    for at in 0..n_deaths {
        let time = Duration::from_millis(least + killer.roll(1500));
        world.pause(time);
        least = 0;
        // Each about as often, in no order.
        let kind = (at + killer.roll(2) as usize) % 3;
        n[kind] += 1;
        match kind {
            0 => {
                let at = killer.roll(2) as usize;
                let replica = world.replica(at);
                world.deaths.lock().unwrap().push(Instant::now());
                replica.kill();
                *world.replicas[at].lock().unwrap() = Replica::start(&mut sandboxes[at], &replica.token);
                // Most of them are seen to be taken over before something else dies.
                if killer.roll(4) > 0 {
                    least = 5500;
                }
            }
            1 => {
                world.deaths.lock().unwrap().push(Instant::now());
                database.kill_and_start();
                // Until then.
                world.deaths.lock().unwrap().push(Instant::now());
            }
            _ => {
                let others = "application_name = 'castor' and pid <> pg_backend_pid()";
                sql(&database.url, &format!("select pg_terminate_backend(pid) from pg_stat_activity where {others}"));
            }
        }
    }
    n
}

impl Drop for Driver<'_> {
    fn drop(&mut self) {
        self.world.has_failed.fetch_or(thread::panicking(), Ordering::Relaxed);
    }
}

impl<'a> Driver<'a> {
    fn new(world: &'a World, number: usize) -> Self {
        let dice = SEED.wrapping_mul(number as u64 * 2 + 3) | 1;
        Self {
            world,
            dice,
            at: number,
            session: None,
            shown: Vec::new(),
            ended: Instant::now(),
            counts: Counts::default(),
        }
    }
}

#[test]
fn nothing_is_lost_when_servers_connections_and_the_database_die() {
    if std::env::var("CASTOR_TEST_POSTGRES").is_err() {
        eprintln!("skipped: CASTOR_TEST_POSTGRES names no database; .ci/postgres starts one");
        return;
    }
    let n_deaths = std::env::var("DEATHS").map_or(N_DEATHS, |it| it.parse().unwrap());
    let database = Database::start();
    let mut sandboxes = [(); 2].map(|()| {
        let mut res = Sandbox::new();
        res.env.push(("CASTOR_STORE".into(), database.url.clone()));
        res
    });
    let cwd = sandboxes[0].workspace();
    sandboxes[0].write("ws/notes.txt", "one\ntwo\n");
    let replicas = sandboxes.each_mut().map(|it| {
        let token = verb(it, &["serve", "token", "add", "mine"]);
        Mutex::new(Replica::start(it, &token))
    });
    let world = World {
        replicas,
        cwd,
        deaths: Mutex::default(),
        takeovers: Mutex::default(),
        is_over: AtomicBool::default(),
        n_back: AtomicUsize::default(),
        has_failed: AtomicBool::default(),
        clock: Default::default(),
    };
    let (n, counts) = thread::scope(|scope| {
        let world = &world;
        let drivers: Vec<_> = (0..N_CLIENTS).map(|it| scope.spawn(move || Driver::new(world, it).run())).collect();
        let n = kill_things(world, &database, &mut sandboxes, n_deaths);
        world.is_over.store(true, Ordering::Relaxed);
        let counts: Vec<Counts> = drivers.into_iter().map(|it| it.join().unwrap()).collect();
        (n, counts)
    });
    for it in &world.replicas {
        it.lock().unwrap().kill();
    }
    report(n, &counts, &world.takeovers.into_inner().unwrap());
}

fn report([servers, databases, cuts]: [usize; 3], counts: &[Counts], takeovers: &[Takeover]) {
    let sum = |of: fn(&Counts) -> usize| counts.iter().map(of).sum::<usize>();
    let mut text = format!("{servers} servers, {databases} databases and all connections {cuts} times died; ");
    text += &format!("{} of {} prompts ended their turn, ", sum(|it| it.turns), sum(|it| it.prompts));
    text += &format!("{} an error, {} had a server that died; ", sum(|it| it.errors), sum(|it| it.unanswered));
    text += &format!("{} loads, and nothing shown was lost", sum(|it| it.loads));
    let times = |is_alone: bool| {
        let mut res: Vec<Duration> = takeovers.iter().filter(|it| it.is_alone == is_alone).map(|it| it.took).collect();
        res.sort();
        res
    };
    for (what, all) in [("alone", times(true)), ("beside other deaths", times(false))] {
        if let (Some(median), Some(max)) = (all.get(all.len() / 2), all.last()) {
            text += &format!("; {} takeovers {what}: median {median:.1?}, max {max:.1?}", all.len());
        }
    }
    _ = writeln!(std::io::stderr(), "{text}");
    // Only the long run has the machine for itself.
    if std::env::var("DEATHS").is_ok() {
        let alone = times(true);
        assert!(alone.last().is_none_or(|it| *it < TAKEOVER), "takeovers of more than {TAKEOVER:?}");
    }
}
