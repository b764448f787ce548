//! When things happen, in simulated time: what a limit costs, and what a cancel does at once.

use super::{
    life::{Life, START_MS, replay},
    moves::{Line, Move},
    world::{Kind, Task},
};

const BEGIN: &str = r#"# seed 1
> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}\n
> {"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/usr","mcpServers":[]}}\n
> {"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"$1","prompt":[{"type":"text","text":"go"}]}}\n
answer $1 1 remembered nothing
"#;

/// A life up to here.
fn lived(moves: &str) -> Life {
    replay(&format!("{BEGIN}{moves}")).unwrap()
}

fn models(life: &Life) -> Vec<&Task> {
    life.world.tasks.iter().filter(|it| it.kind == Kind::Generate).collect()
}

/// Of the last move: what the client was told.
fn told(life: &Life) -> String {
    let lines: Vec<&str> = life.text().lines().rev().take_while(|it| it.starts_with("< ")).collect();
    lines.join("\n")
}

#[test]
fn rate_limit_is_reported_at_once_and_waits_as_the_server_asks() {
    let mut life = lived("answer $1 2 generated later\n");
    // No time has gone by: what is told now is told within a second, whatever the machine.
    assert_eq!(life.now_ms, START_MS);
    let said = told(&life);
    assert!(["gemini-3.8-flash", "busy", "Trying again in 40 s"].iter().all(|it| said.contains(it)), "{said}");
    assert_eq!(life.machine.next_timer_ms(), Some(START_MS + 40_000));
    let clock = |life: &mut Life, ms| life.play(&Line { with_next: false, what: Move::Clock(ms) });
    clock(&mut life, 39_999);
    assert!(models(&life).iter().all(|it| it.answered), "not before");
    clock(&mut life, 1);
    assert_eq!(models(&life).iter().filter(|it| !it.answered).count(), 1, "and not a moment later");
    assert_eq!(life.problems(), Vec::<String>::new());
}

#[test]
fn a_cancel_lets_go_of_the_model_in_the_same_turn_of_the_loop() {
    let cancel = r#"> {"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"$1"}}\n
"#;
    for before in ["", "answer $1 2 chunks text\n", "answer $1 2 chunks thought usage\n"] {
        let life = lived(&format!("{before}{cancel}"));
        assert_eq!(life.now_ms, START_MS);
        let asked = models(&life);
        assert!(asked.len() == 1 && asked.iter().all(|it| it.cancel.is_cancelled()), "after {before:?}");
        assert!(told(&life).contains(r#""stopReason":"cancelled""#), "{}", life.text());
    }
    // While it waits to try again nobody is asked any more.
    let mut life = lived(&format!("answer $1 2 generated later\n{cancel}"));
    assert!(told(&life).contains(r#""stopReason":"cancelled""#), "{}", life.text());
    life.play(&Line { with_next: false, what: Move::Clock(60_000) });
    assert_eq!((models(&life).len(), life.machine.next_timer_ms()), (1, None));
}

/// The one answer that means more than now: the turn sleeps until the limit is whole again, and goes on by itself.
#[test]
fn a_wait_until_the_reset_ends_with_it() {
    let wait = r#"> {"jsonrpc":"2.0","id":1,"result":{"outcome":{"outcome":"selected","optionId":"wait"}}}\n
"#;
    let mut life = lived(&format!("answer $1 2 generated never\nclock 5000\n{wait}"));
    assert!(life.text().contains(r#""optionId":"wait""#) && told(&life).contains("Waiting"), "{}", life.text());
    // Counted from when the server said it, not from the user's answer.
    assert_eq!((life.now_ms, life.machine.next_timer_ms()), (START_MS + 5_000, Some(START_MS + 4_000_000)));
    let n_asked = models(&life).len();
    life.play(&Line { with_next: false, what: Move::Clock(3_995_000) });
    assert_eq!(models(&life).len(), n_asked + 1);
    assert_eq!(life.problems(), Vec::<String>::new());
}

/// Who has no capacity is out for thirty seconds, for all sessions, and is asked again then. Here nobody is asked about it.
#[test]
fn an_outage_ends_by_itself() {
    let other = r#"> {"jsonrpc":"2.0","id":4,"method":"session/new","params":{"cwd":"/usr","mcpServers":[]}}\n
"#;
    let prompt = r#"> {"jsonrpc":"2.0","id":5,"method":"session/prompt","params":{"sessionId":"$2","prompt":[{"type":"text","text":"go"}]}}\n
"#;
    let tries = ["no-room\nclock 1300\n", "no-room\nclock 3900\n", "no-room\n"];
    let tries: String =
        [2, 5, 7].into_iter().zip(tries).map(|(effect, it)| format!("answer $1 {effect} generated {it}")).collect();
    let silent = BEGIN.replace("# seed 1", "# seed 3");
    let life = |clock: u64| replay(&format!("{silent}{other}{tries}clock {clock}\n{prompt}")).unwrap();
    assert!(told(&life(29_999)).contains("is known not to answer now"), "{}", life(29_999).text());
    assert!(!told(&life(30_000)).contains("is known not to answer now"), "{}", life(30_000).text());
}
