//! What a sub-agent costs over a plain call, in time and memory, and what eight at once cost each other. Prints figures,
//! and fails beyond the limits.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::indexing_slicing, clippy::unwrap_used)]

mod timing;

use std::{cell::RefCell, fs, rc::Rc, time::Duration};

use castor_agent::server::machine::{EffectJob, Event, Job, Machine, Options, Tasks, Workers, builtins};
use castor_base::{
    checkpoint::CheckpointResult,
    history::Role,
    ids::{EffectId, SessionId},
    model::{Chunk, Finish},
    path::AbsPath,
    tool::{Preview, Targets, ToolOutput},
};
use castor_engine::step::{Effect, Input};
use castor_hands::{process::Groups, secrets::Env};
use castor_store::sessions::SessionStore;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Turns of each kind, and sessions that have eight sub-agents at once.
const N_TURNS: usize = 300;
const N_SESSIONS: usize = 25;
const N_AT_ONCE: usize = 8;
/// Pieces of text that each streams.
const N_CHUNKS: usize = 2_000;

const MOST_TIME: Duration = Duration::from_millis(1);
const MOST_KIB: usize = 100;
/// So many times as long a piece of text may take with seven others beside it.
const MOST_SLOWER: f64 = 1.5;

fn main() {
    // The helper of the sandbox is the running binary, whichever that is: without this it would start itself for ever.
    #[cfg(target_os = "linux")]
    castor_hands::process::sandbox::enter_if_asked();
    let plain = turns(&call("read_file", json!({ "file_path": "/usr/a" })));
    let child = turns(&start());
    let cost = child.saturating_sub(plain);
    println!("a turn with a plain call  p50 {plain:>9.3?}");
    println!("a turn with a sub-agent   p50 {child:>9.3?}  over a plain call {cost:.3?}  (at most {MOST_TIME:?})");
    let kib = memory();
    println!("memory of a sub-agent     {kib} KiB  (at most {MOST_KIB})");
    let (alone, beside) = (chunk_time(1), chunk_time(N_AT_ONCE));
    let slower = beside.as_secs_f64() / alone.as_secs_f64();
    println!("a piece of text, alone    p50 {alone:>9.3?}");
    println!("beside seven others       p50 {beside:>9.3?}  {slower:.2} times  (at most {MOST_SLOWER})");
    assert!(cost <= MOST_TIME && kib <= MOST_KIB && slower <= MOST_SLOWER, "beyond the limits");
}

/// The usual time of a turn with this call.
fn turns(call: &Chunk) -> Duration {
    let mut world = World::new();
    let session = world.new_session();
    world.turn(&session, std::slice::from_ref(call));
    let times = timing::times(N_TURNS, || world.turn(&session, std::slice::from_ref(call)));
    timing::percentile(&times, 50)
}

/// What a sub-agent takes that waits for its model.
fn memory() -> usize {
    let mut world = World::new();
    let sessions: Vec<SessionId> = (0..N_SESSIONS).map(|_| world.new_session()).collect();
    world.holds = true;
    for it in &sessions {
        world.turn(it, &[call("read_file", json!({ "file_path": "/usr/a" }))]);
    }
    let before = resident_kib();
    for it in &sessions {
        world.turn(it, &vec![start(); N_AT_ONCE]);
    }
    let n = world.held.len();
    assert_eq!(n, N_SESSIONS * N_AT_ONCE, "all wait for their models");
    resident_kib().saturating_sub(before) / n
}

/// The usual time of a piece of text, from the model to the lines for the client, of so many sub-agents in turn.
fn chunk_time(n_children: usize) -> Duration {
    let mut world = World::new();
    let session = world.new_session();
    world.holds = true;
    world.turn(&session, &vec![start(); n_children]);
    let held = world.held.clone();
    let mut nth = 0;
    let times = timing::times(N_CHUNKS * n_children, || {
        let (session, effect) = held[nth % held.len()].clone();
        nth += 1;
        let chunks = vec![Chunk::Text { text: format!("piece {nth} "), signature: None }];
        world.tell(session, Input::Chunks { effect, chunks });
    });
    timing::percentile(&times, 50)
}

fn call(name: &str, args: Value) -> Chunk {
    Chunk::Call { id: None, name: name.to_owned(), args, signature: None }
}

fn start() -> Chunk {
    call("invoke_agent", json!({ "agent_name": "generalist", "prompt": "Go." }))
}

fn resident_kib() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or_default()
}

/// Where the loop's jobs go.
#[derive(Clone, Default)]
struct Queue(Rc<RefCell<Vec<Job>>>);

impl Workers for Queue {
    fn start(&mut self, job: Job) {
        self.0.borrow_mut().push(job);
    }
}

/// The machine, a client, and a world in which all is done at once.
struct World {
    machine: Machine,
    queue: Queue,
    now_ms: u64,
    n_requests: u64,
    /// What the next request of the session itself is answered with.
    calls: Vec<Chunk>,
    /// Models of sub-agents do not answer.
    holds: bool,
    held: Vec<(SessionId, EffectId)>,
    _home: TempDir,
}

impl World {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap_or_else(|it| panic!("{it}"));
        let path = home.path().display().to_string();
        let env = [("HOME", path.as_str()), ("CASTOR_HOME", &path), ("GEMINI_API_KEY", "k")];
        let env = Env::from_pairs(env.into_iter().chain([("CASTOR_TRUST_WORKSPACE", "true")]));
        let (queue, groups) = (Queue::default(), Groups::default());
        let Some(folder) = AbsPath::new(home.path()) else { panic!("an absolute path") };
        let store = SessionStore::new(folder);
        let tasks = Tasks::new(store, groups.clone(), builtins(&groups), Box::new(queue.clone()));
        let machine = Machine::new(Options::default(), env, tasks, 1);
        let (calls, held) = (Vec::new(), Vec::new());
        let mut res = Self { machine, queue, now_ms: 1_000, n_requests: 0, calls, holds: false, held, _home: home };
        res.request("initialize", json!({ "protocolVersion": 1, "clientCapabilities": {} }));
        res
    }

    fn new_session(&mut self) -> SessionId {
        let answer = self.request("session/new", json!({ "cwd": "/usr", "mcpServers": [] }));
        SessionId::from(answer["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{answer}")))
    }

    /// A prompt that the model answers with these calls, up to where nothing is left to be done.
    fn turn(&mut self, session: &SessionId, calls: &[Chunk]) {
        self.calls = calls.to_vec();
        self.request("session/prompt", json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "go" }] }));
    }

    /// Returns the answer, if it has come by then.
    fn request(&mut self, method: &str, params: Value) -> Value {
        self.n_requests += 1;
        let id = self.n_requests;
        let line = format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        let mut said = self.take(Event::Stdin(line.into_bytes()));
        loop {
            let jobs: Vec<Job> = self.queue.0.borrow_mut().drain(..).collect();
            if jobs.is_empty() {
                break;
            }
            for job in jobs {
                let Job::Effect(job) = job else { continue };
                let session = job.resources.session.clone();
                for input in self.answers(job) {
                    said.extend(self.tell(session.clone(), input));
                }
            }
        }
        let lines = said.split(|it| *it == b'\n').filter_map(|it| serde_json::from_slice::<Value>(it).ok());
        lines.into_iter().find(|it| it["id"] == id && it.get("method").is_none()).unwrap_or_default()
    }

    fn tell(&mut self, session: SessionId, input: Input) -> Vec<u8> {
        self.take(Event::Engine { session, input })
    }

    fn take(&mut self, event: Event) -> Vec<u8> {
        self.now_ms += 1;
        self.machine.handle_event(event, self.now_ms);
        let lines = self.machine.flush();
        self.machine.mark_sent(lines.len());
        lines
    }

    fn answers(&mut self, job: EffectJob) -> Vec<Input> {
        let (effect, is_child) = (job.id, job.resources.session.is_child());
        match job.effect {
            Effect::Generate { .. } if is_child && self.holds => {
                self.held.push((job.resources.session.clone(), effect));
                Vec::new()
            }
            Effect::Generate { request, .. } => {
                let is_first = request.contents.last().is_some_and(|it| it.role() == Role::User);
                let mut chunks = match (is_child, is_first) {
                    (true, _) => vec![call("complete_task", json!({ "result": "R" }))],
                    (false, true) => std::mem::take(&mut self.calls),
                    (false, false) => vec![Chunk::Text { text: "Done.".to_owned(), signature: None }],
                };
                chunks.push(Chunk::Finish(Finish::Stop));
                vec![Input::Chunks { effect, chunks }, Input::Generated { effect, result: Ok(()) }]
            }
            Effect::Resolve { .. } => vec![Input::Resolved { effect, result: Ok(Targets::default()) }],
            Effect::Preview { .. } => vec![Input::Previewed { effect, result: Ok(Preview::default()) }],
            Effect::Run { .. } => {
                let output = job.output.unwrap_or_else(|| Box::new(ToolOutput::text("output")));
                vec![Input::RunEnded { effect, output, changes: None }]
            }
            Effect::OpenCheckpoints | Effect::Checkpoint { .. } => {
                vec![Input::Checkpointed { effect, result: Ok(CheckpointResult::default()) }]
            }
            Effect::ReadMemory | Effect::DiscoverMemory { .. } => {
                vec![Input::MemoryRead { effect, files: Ok([].into()), faults: Vec::new() }]
            }
            other => panic!("nothing else is to be done: {other:?}"),
        }
    }
}
