//! Sessions of `castor serve` that nobody uses: few are in memory, and all are there when they are called.

use serde_json::json;

use super::{Server, prompt, say, script};

/// That stay in memory, as `HubLimits` has it.
const AWAKE: usize = 64;

#[cfg(target_os = "linux")]
#[test]
fn idle_sessions_have_no_open_files_and_lose_nothing() {
    let server = Server::start(&script(&[vec![say("One.")], vec![say("Two.")]]), &[]);
    let mut client = server.client();
    let first = client.new_session(&server);
    client.call("session/prompt", prompt(&first, "go"));
    let more: Vec<String> = (0..2 * AWAKE).map(|_| client.new_session(&server)).collect();
    let n_logs = || {
        let [_, agent] = server.open_files();
        agent.iter().filter(|it| it.ends_with(".jsonl")).count()
    };
    assert!(n_logs() > AWAKE, "each was open once");
    let is_quiet = |_| {
        client.call("session/list", json!({}));
        n_logs() <= AWAKE
    };
    assert!((0..100_000).any(is_quiet), "{} logs are open", n_logs());
    // It was the first to go. Who joins it sees all of it, and so does who goes on with it.
    let mut other = server.client();
    other.load(&server, &first);
    assert_eq!(other.said(), "One.");
    let end = client.call("session/prompt", prompt(&first, "go on"));
    assert_eq!(end["result"]["stopReason"], "end_turn", "{end}");
    assert_eq!(client.said(), "One.Two.");
    other.until(|it| it["method"] == "_castor/session/prompt_ended");
    assert_eq!(other.said(), "One.Two.");
    // One in which nothing was ever said is there, too.
    let state = client.call("_castor/session/state", json!({"sessionId": more[0]}));
    assert!(state["result"]["state"].is_object(), "{state}");
}
