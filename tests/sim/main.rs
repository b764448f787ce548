//! The simulator: the real loop, engine and wire between a simulated world and a simulated client. One seed names a
//! whole life; a life that breaks a promise prints a conversation that can be played again.

#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::indexing_slicing, clippy::unwrap_used)]

mod client;
mod dice;
mod driver;
mod found;
mod home;
#[allow(dead_code)] // `it` uses the rest.
#[path = "../it/ledger.rs"]
mod ledger;
mod life;
mod moves;
mod sabotage;
#[path = "../it/schema.rs"]
mod schema;
#[allow(dead_code)] // `it` uses the rest.
#[path = "../it/schemas.rs"]
mod schemas;
mod timing;
mod version2;
mod watch;
mod words;
mod world;

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Instant,
};

use castor_agent::server::machine::{METHODS, METHODS_V2};

use self::{
    driver::{MOVES, live},
    life::{Life, replay},
    sabotage::{How, Sabotage},
};

/// Prompts that are answered where nobody says how many.
const TURNS: usize = 1_000;
/// Of so many, chance leaves nothing out.
const ENOUGH: usize = 10_000;
/// Moves of a life that is not about what becomes of it.
const SHORT: usize = 600;

/// `SIM_TURNS=n`: so many prompts at least; `SIM_SEED=n`: this life only; `SIM_REPLAY=file`: a conversation again.
#[test]
fn lives_keep_every_promise() {
    if let Ok(file) = std::env::var("SIM_REPLAY") {
        let life = replay(&fs::read_to_string(file).unwrap()).unwrap();
        println!("{}", life.text());
        return assert_eq!(life.problems(), Vec::<String>::new());
    }
    if let Some(seed) = number("SIM_SEED") {
        return tell(seed as u64, &live(seed as u64, MOVES, None)).map_or((), |it| panic!("{it}"));
    }
    let start = Instant::now();
    let turns = number("SIM_TURNS").unwrap_or(TURNS);
    let sum = many(turns);
    println!("{sum:#?}\n{:.0} turns/s", sum.turns as f64 / start.elapsed().as_secs_f64());
    assert!(sum.failures.is_empty(), "{}", sum.failures[0]);
    for (method, _) in METHODS {
        assert!(sum.answers.contains_key(*method), "{method} was never answered");
    }
    for (method, _) in METHODS_V2.iter().filter(|_| turns >= ENOUGH) {
        let name = version2::count_name(method);
        assert!(sum.answers.contains_key(&name), "{name} was never answered");
    }
    // Of a few lives, none may ever load a session and find it idle.
    for method in ["session/fork", "_castor/session/rewind"].into_iter().filter(|_| turns >= ENOUGH) {
        for name in [method.to_owned(), version2::count_name(method)] {
            assert!(sum.answers[&name].0 > 0, "{name} never did anything");
        }
    }
    assert!(sum.agents.0 > 0 && sum.agents.1 > 0, "no trees of agents: {:?}", sum.agents);
    assert!(sum.fallbacks > 0, "nobody was asked about another model");
    for stop in ["end_turn", "cancelled", "error"] {
        assert!(sum.stops.contains_key(stop), "no turn ended with {stop}");
    }
}

/// What many lives came to.
#[derive(Debug, Default)]
struct Sum {
    lives: usize,
    moves: usize,
    turns: usize,
    calls: usize,
    /// Questions about a model that does not answer.
    fallbacks: usize,
    /// By method: results, errors.
    answers: BTreeMap<String, (usize, usize)>,
    stops: BTreeMap<String, usize>,
    /// Questions of servers, and those that a user answered.
    asked: (u64, usize),
    /// Sub-agents that were shown as sessions, and requests of those below them.
    agents: (usize, usize),
    failures: Vec<String>,
}

impl Sum {
    fn add(&mut self, seed: u64, life: &Life) {
        self.lives += 1;
        self.moves += life.n_moves;
        self.turns += life.watch.n_turns();
        self.calls += life.ledger.n_calls();
        self.asked = (self.asked.0 + life.world.n_asked, self.asked.1 + life.world.n_replies);
        self.agents = (self.agents.0 + life.watch.children.len(), self.agents.1 + life.n_deep);
        self.fallbacks += life.text().matches("does not answer").count();
        for (method, (results, errors)) in &life.watch.answers {
            let count = self.answers.entry(method.clone()).or_default();
            *count = (count.0 + results, count.1 + errors);
        }
        for (stop, n) in &life.watch.stops {
            *self.stops.entry(stop.clone()).or_default() += n;
        }
        self.failures.extend(tell(seed, life));
    }
}

/// Lives one after the other, on each processor, until so many prompts were answered or one of them fails.
fn many(turns: usize) -> Sum {
    let (next, all) = (AtomicU64::new(0), Mutex::new(Sum::default()));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            let life = live(seed, MOVES, None);
            let mut sum = all.lock().unwrap();
            sum.add(seed, &life);
            if sum.turns >= turns || !sum.failures.is_empty() {
                return;
            }
        }
    };
    thread::scope(|scope| {
        (0..thread::available_parallelism().map_or(1, usize::from)).for_each(|_| _ = scope.spawn(work));
    });
    all.into_inner().unwrap()
}

/// The same seed is the same life, and its conversation can be played: that makes a failure worth reporting.
#[test]
fn a_conversation_plays_again() {
    // The client of the second speaks version 2.
    for seed in [7, 9] {
        let life = live(seed, SHORT, None);
        assert_eq!(life.problems(), Vec::<String>::new());
        let again = replay(life.text()).unwrap();
        assert!(
            again.text() == life.text(),
            "seed {seed} played again differs:\n{}",
            first_difference(life.text(), again.text())
        );
        assert!(live(seed, SHORT, None).text() == life.text());
        assert!(live(seed + 1, SHORT, None).text() != life.text());
    }
}

/// Each promise is broken once, by the way from the machine to who holds it against them.
#[test]
fn a_broken_promise_is_found() {
    for (how, expected) in [
        (How::AnswerTwice, "an answer that nobody waits for"),
        (How::LoseAnswer, "never answered"),
        (How::EndCallTwice, "an update of an ended call"),
        (How::CancelLate, "was cancelled more than 200 ms ago"),
        (How::LeakTask, "goes on though nobody wants it"),
        (How::ForgetFact, "is not the session"),
        (How::SaySomethingElse, "is not valid under any of the schemas"),
        (How::EndChildTwice, "announced twice, or not at all"),
        (How::LoseChildEnd, "never ended"),
        (How::BeginTurnTwice, "no turn does so"),
        (How::Overspend, "tokens are used up"),
    ] {
        let problems = |seed| live(seed, SHORT, Some(Sabotage::new(how))).problems();
        let found = (0..100).any(|seed| problems(seed).iter().any(|it| it.contains(expected)));
        assert!(found, "{how:?} was not found in a hundred lives");
    }
}

/// What to print of a life that broke a promise.
fn tell(seed: u64, life: &Life) -> Option<String> {
    let problems = life.problems();
    if problems.is_empty() {
        return None;
    }
    let file = folder().join(format!("sim-{seed}.txt"));
    let text: String = problems.iter().map(|it| format!("! {it}\n")).collect();
    let text = format!("{}{text}", life.text());
    let written = fs::write(&file, &text);
    let end: Vec<&str> = text.lines().rev().take(60).collect();
    let end: Vec<&str> = end.into_iter().rev().collect();
    let whole = written.map_or_else(|it| it.to_string(), |()| file.display().to_string());
    Some(format!("seed {seed} (the whole conversation: {whole}, plays with SIM_REPLAY):\n{}", end.join("\n")))
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
}

fn first_difference(a: &str, b: &str) -> String {
    let Some(at) = a.lines().zip(b.lines()).position(|(a, b)| a != b) else { return "one is longer".to_owned() };
    let around = |text: &str| text.lines().skip(at.saturating_sub(5)).take(6).collect::<Vec<_>>().join("\n");
    format!("{}\n-- and\n{}", around(a), around(b))
}

fn number(name: &str) -> Option<usize> {
    std::env::var(name).ok().map(|it| it.parse().unwrap())
}
