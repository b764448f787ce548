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
fn a_limit_is_told_at_once_and_the_wait_is_what_the_server_asks() {
    let mut life = lived("answer $1 2 generated later\n");
    // No time has gone by: what is told now is told within a second, whatever the machine.
    assert_eq!(life.now_ms, START_MS);
    let said = told(&life);
    assert!(["gemini-2.5-flash", "busy", "Trying again in 40 s"].iter().all(|it| said.contains(it)), "{said}");
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
