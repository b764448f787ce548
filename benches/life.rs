//! A long session in memory: a model that reads files of any size, a compressor, and what each request weighs.

use std::sync::Arc;

use castor_agent::session::policies::own_tools;
use castor_base::{
    clock::Now,
    content::Part,
    event::EventKind,
    history::Role,
    ids::{EffectId, PromptId, SessionId},
    log::{Entry, Fact, Mode, Principal},
    model::{Chunk, Finish, ModelRequest, Usage},
    path::AbsPath,
    tool::{Preview, Targets, ToolOutput},
};
use castor_engine::{
    context::{Instructions, SessionEnvironment, tokens},
    policy::RuleSet,
    record::{Record, SessionOrigin},
    routing::{Chain, aliases::Aliases, model_limits::ContextWindows, prices::Prices, utility_models::UtilityModels},
    scheduler::Toolbox,
    session::Session,
    step::{Act, Effect, Input, StepOutput},
    turn::{Choices, MemorySources, Modes, Spec, TurnBounds},
};
use castor_models::providers::{gemini::Gemini, remote::Dialect, script};
use serde_json::json;

const MODEL: &str = "gemini-2.5-flash";
/// Of a result, the smallest and the largest, as powers of two.
const SIZES: [u64; 2] = [6, 20];
/// Of a prompt, in words.
const WORDS: u64 = 400;

/// What happened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub requests: u64,
    /// The largest, in tokens.
    pub largest: u64,
    /// Of the results of tools, in bytes.
    pub output: u64,
    pub compressed: u64,
    pub failed: u64,
    pub masked: u64,
    /// Bodies of requests, in bytes.
    pub sent: u64,
}

/// A session and the same one, made of what the first one logged.
pub struct Life {
    session: Session,
    pub replayed: Record,
    pub tally: Tally,
    window: u64,
    /// Of a hundred snapshots, so many do not come.
    bad: u64,
    n: u64,
    n_turns: u64,
    n_calls: u64,
}

impl Life {
    pub fn new(window: u64, bad: u64) -> Self {
        let Some(cwd) = AbsPath::new("/w") else { panic!("an absolute path") };
        let (session, roots, model) = (SessionId::from("long"), vec![cwd.clone()], MODEL.to_owned());
        let (mode, principal) = (Mode::Yolo, Principal::Root);
        let origin = SessionOrigin {
            session,
            cwd: cwd.clone(),
            roots,
            mode,
            model,
            principal,
            child_of: None,
            thread: None,
            user: None,
        };
        let mut out = StepOutput::default();
        let session = Session::create(origin.clone(), Arc::new(spec(cwd, window)), now(0), &mut out);
        let tally = Tally::default();
        let mut res = Self { session, replayed: Record::new(origin), tally, window, bad, n: 0, n_turns: 0, n_calls: 0 };
        res.take(out);
        res
    }

    pub fn is_replayed(&self) -> bool {
        self.replayed == *self.session.record()
    }

    fn dice(&mut self, sides: u64) -> u64 {
        self.n += 1;
        now(self.n).random(0) % sides
    }

    /// A prompt, up to its answer.
    pub fn turn(&mut self) {
        self.n_turns += 1;
        let (prompt, n_words) = (PromptId(self.n_turns), self.dice(WORDS));
        let text = format!("prompt {}: {}", self.n_turns, "word ".repeat(n_words as usize));
        let mut inputs = vec![Input::Prompt { prompt, content: vec![Part::text(text)].into() }];
        while let Some(input) = inputs.pop() {
            self.n += 1;
            let mut out = StepOutput::default();
            self.session.step(input, now(self.n), &mut out);
            let fresh = self.take(out);
            // In order: the first one is the next.
            inputs.extend(fresh.into_iter().rev());
        }
        assert!(!self.session.is_busy(), "turn {} has no end", self.n_turns);
    }

    /// What the loop would do. Facts are written and read again.
    fn take(&mut self, out: StepOutput) -> Vec<Input> {
        let mut res = Vec::new();
        for act in out.acts {
            match act {
                Act::Log(entry) => self.log(&entry),
                Act::Do(effect, Effect::Generate { purpose, request }) => {
                    self.asked(&request);
                    let (chunks, ok) = if purpose.is_agent() { self.answer(&request) } else { self.snapshot() };
                    res.push(Input::Chunks { effect, chunks });
                    res.extend(ok.then_some(Input::Generated { effect, result: Ok(()) }));
                }
                Act::Do(effect, Effect::Resolve { .. }) => {
                    res.push(Input::Resolved { effect, result: Ok(Targets::default()) })
                }
                Act::Do(effect, Effect::Preview { .. }) => {
                    res.push(Input::Previewed { effect, result: Ok(Preview::default()) })
                }
                Act::Do(effect, Effect::Run { .. }) => res.push(self.ran(effect)),
                // A compressor that is not heard of again: its time is over.
                Act::Do(effect, Effect::SetTimer { .. }) if self.bad > 0 => res.push(Input::TimerFired { effect }),
                Act::Do(..) | Act::BeginStream { .. } => (),
            }
        }
        res
    }

    fn log(&mut self, entry: &Entry) {
        match &entry.fact {
            Fact::Compressed { .. } => self.tally.compressed += 1,
            Fact::NotCompressed { .. } => self.tally.failed += 1,
            Fact::Masked { masks } => self.tally.masked += masks.len() as u64,
            Fact::Event { event } => {
                assert!(!matches!(event.kind, EventKind::Error { fatal: true, .. }), "{:?}", event.kind);
            }
            _ => (),
        }
        let read = serde_json::to_string(entry).and_then(|it| serde_json::from_str::<Entry>(&it));
        read.into_iter().for_each(|it| self.replayed.apply(&it));
    }

    fn asked(&mut self, request: &ModelRequest) {
        let size = tokens::of_request(request);
        assert!(size <= self.window, "turn {}: {size} tokens are more than {}", self.n_turns, self.window);
        if let Err(why) = script::check(&request.contents) {
            panic!("turn {}: {why}", self.n_turns);
        }
        self.tally.requests += 1;
        self.tally.largest = self.tally.largest.max(size);
        let gemini = Gemini { api_version: String::new(), bearer: false, vertex: None };
        self.tally.sent += gemini.body(request).len() as u64;
    }

    fn answer(&mut self, request: &ModelRequest) -> (Vec<Chunk>, bool) {
        let calls = request.contents.last().is_some_and(|it| it.role() == Role::User);
        let said = match calls {
            true => {
                self.n_calls += 1;
                let args = json!({ "file_path": format!("/w/{}.txt", self.n_calls) });
                Chunk::Call { id: None, name: "read_file".to_owned(), args, signature: None }
            }
            false => Chunk::Text { text: format!("answer {}", self.n_turns), signature: None },
        };
        (vec![said, Chunk::Usage(Usage::default()), Chunk::Finish(Finish::Stop)], true)
    }

    /// And whether the answer has an end.
    fn snapshot(&mut self) -> (Vec<Chunk>, bool) {
        let text = format!("<state_snapshot>{}</state_snapshot>", "what was done ".repeat(100));
        let fails = self.dice(100) < self.bad;
        let finish = if fails { Finish::MaxTokens } else { Finish::Stop };
        (vec![Chunk::Text { text, signature: None }, Chunk::Finish(finish)], !fails || self.n.is_multiple_of(2))
    }

    fn ran(&mut self, effect: EffectId) -> Input {
        let [least, most] = SIZES;
        let size = 1usize << (least + self.dice(most - least + 1));
        let line = format!("{} is in line after line of it\n", self.n_calls);
        let mut text = line.repeat(size / line.len() + 1);
        text.truncate(size);
        self.tally.output += size as u64;
        Input::RunEnded { effect, output: Box::new(ToolOutput::text(text)), changes: None }
    }
}

fn now(n: u64) -> Now {
    Now { unix_ms: 1_000 + n, seed: n.wrapping_mul(31) }
}

fn spec(cwd: AbsPath, window: u64) -> Spec {
    let around = SessionEnvironment {
        cwd: cwd.clone(),
        roots: vec![cwd],
        platform: "linux",
        made_on: "2026-01-31".to_owned(),
        interactive: true,
        tree: None,
    };
    let tools = own_tools();
    Spec {
        toolbox: Toolbox::new(tools.to_vec(), RuleSet::shipped(tools), true),
        instructions: Instructions::new(&around),
        scratch: around.cwd.join("scratch"),
        memory_sources: MemorySources { at_start: false, just_in_time: false },
        bounds: TurnBounds::default(),
        chain: Chain::default(),
        windows: ContextWindows { configured: [(MODEL.to_owned(), window)].into(), ..ContextWindows::default() },
        prices: Prices::default().into(),
        aliases: Aliases::default().into(),
        helpers: UtilityModels::default(),
        choices: Choices {
            modes: Modes { offered: Mode::OFFERED.to_vec(), allowed: Mode::OFFERED.to_vec() },
            ..Choices::default()
        },
        role: None,
    }
}
