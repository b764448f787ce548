//! What the simulator found, as short as it gets: each of these once broke a promise.

use super::{
    life::{Life, replay},
    moves::{Line, Move},
    world::Kind,
};

const START: &str = r#"# seed 1
> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true}}}}\n
> {"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/usr","mcpServers":[]}}\n
"#;
const PROMPT: &str = r#"> {"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"$1","prompt":[{"type":"text","text":"go"}]}}\n
"#;

/// What no turn waits for comes, too: the first look at the roots, and the end of what was closed.
fn settle(life: &mut Life) {
    let open = life.world.tasks.iter().filter(|it| it.kind == Kind::Hold && !it.answered);
    let open: Vec<(String, u64)> = open.map(|it| (it.session.clone(), it.effect)).collect();
    for (session, effect) in open {
        let what = Move::Answer { session, effect, words: "held ok".to_owned() };
        life.play(&Line { with_next: false, what });
    }
    while life.world.chores > 0 {
        life.play(&Line { with_next: false, what: Move::Chore });
    }
}

/// Plays a conversation; the promises must hold, and all of `expected` must have been said, in this order.
fn check(moves: &[&str], expected: &[&str]) {
    let mut life: Life = replay(&moves.concat()).unwrap();
    settle(&mut life);
    life.check_quiet();
    assert_eq!(life.problems(), Vec::<String>::new(), "{}", life.text());
    let said: String = life.text().lines().filter(|it| it.starts_with("< ")).collect::<Vec<_>>().join("\n");
    let mut rest = said.as_str();
    for it in expected {
        let (_, after) = rest.split_once(it).unwrap_or_else(|| panic!("{it} is not in\n{}", life.text()));
        rest = after;
    }
}

/// It stayed on the user's screen, and its answer meant nothing.
#[test]
fn a_question_goes_with_its_turn_when_the_log_fails() {
    let asked = "answer $1 1 remembered nothing\nanswer $1 2 chunks shell\nanswer $1 2 generated ok\nanswer $1 4 resolved command\n";
    let asked = [asked, "answer $1 5 previewed ok\ndisk full 9\n"].concat();
    let failed = r#"> {"jsonrpc":"2.0","id":4,"method":"session/set_mode","params":{"sessionId":"$1","modeId":"yolo"}}\n
"#;
    let expected = [
        "session/request_permission",
        r#""method":"$/cancel_request""#,
        r#""status":"failed""#,
        "the session log could not be written",
        r#""id":3,"error""#,
    ];
    check(&[START, PROMPT, &asked, failed], &expected);
}

/// Nobody waits for the editor's answer any more.
#[test]
fn a_file_that_policy_looks_at_goes_with_its_session() {
    let evaluate = r#"> {"jsonrpc":"2.0","id":4,"method":"_castor/policy/evaluate","params":{"sessionId":"$1","tool":"read_file","args":{"file_path":"a"}}}\n
"#;
    let moves = [
        START,
        evaluate,
        "editor $1 1 fs/read_text_file\n",
        r#"> {"jsonrpc":"2.0","id":5,"method":"session/close","params":{"sessionId":"$1"}}\n"#,
        "\n",
    ];
    let expected = [
        "\"method\":\"fs/read_text_file\"",
        r#""method":"$/cancel_request""#,
        r#""id":4,"error""#,
        r#""id":5,"result""#,
    ];
    check(&moves, &expected);
}

/// The client believed in a mode that was not there; or, worse, no longer believed in one that was.
#[test]
fn a_mode_that_the_log_did_not_take_is_not_set() {
    let set = |id: u32, mode: &str| {
        let params = format!(r#"{{"sessionId":"$1","modeId":"{mode}"}}"#);
        format!("> {{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"session/set_mode\",\"params\":{params}}}\\n\n")
    };
    let moves = [START, &set(4, "yolo"), "disk full 9\n", &set(5, "default")];
    let expected = [r#""currentModeId":"yolo""#, r#""id":4,"result""#, r#""id":5,"error""#];
    check(&moves, &expected);
}

/// The log knows where the session was made, not where it was loaded.
#[test]
fn a_loaded_session_keeps_its_folders_when_the_log_fails() {
    let place = r#""cwd":"/usr","mcpServers":[]"#;
    let moves = [
        START,
        r#"> {"jsonrpc":"2.0","id":4,"method":"session/close","params":{"sessionId":"$1"}}\n"#,
        "\n> {\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"session/load\",\"params\":{\"sessionId\":\"$1\",",
        place,
        r#","additionalDirectories":["/etc"]}}\n"#,
        "\ndisk full 9\n",
        PROMPT,
    ];
    check(&moves, &[r#""id":4,"result""#, r#""id":5,"result""#, r#""id":3,"error""#]);
}

/// A tool that gave up on the editor left its request behind.
#[test]
fn finished_call_cancels_its_editor_requests() {
    let read = "answer $1 1 remembered nothing\nanswer $1 2 chunks read\nanswer $1 2 generated ok\neditor $1 4 fs/read_text_file\nanswer $1 4 resolved panic\n";
    let stop = r#"> {"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"$1"}}\n
"#;
    check(&[START, PROMPT, read, stop], &["fs/read_text_file", r#""method":"$/cancel_request""#, r#""id":3,"result""#]);
}

/// Until the end of the turn the closed session took prompts, which nobody answered then.
#[test]
fn a_prompt_in_the_same_bytes_as_a_close_is_answered() {
    for method in ["session/close", "session/delete"] {
        let close = format!(
            "& > {{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"{method}\",\"params\":{{\"sessionId\":\"$1\"}}}}\\n\n"
        );
        check(&[START, &close, PROMPT], &[r#""id":4,"result""#, r#""id":3,"error":{"code":-32002"#]);
    }
}

/// As above, for a client that opens it again at once.
#[test]
fn a_session_that_was_closed_can_be_loaded_in_the_same_bytes() {
    let moves = [
        START,
        "& > {\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"session/close\",\"params\":{\"sessionId\":\"$1\"}}\\n\n",
        "> {\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"session/resume\",\"params\":",
        "{\"sessionId\":\"$1\",\"cwd\":\"/usr\",\"mcpServers\":[]}}\\n\n",
    ];
    check(&moves, &[r#""id":4,"result""#, r#""id":5,"result""#]);
}

/// The cancel went ahead of the request that it was about, and the editor wrote a file for a turn that was over.
#[test]
fn cancelled_turn_sends_the_editor_nothing() {
    let moves = [
        START,
        PROMPT,
        "answer $1 1 remembered nothing\nanswer $1 2 chunks write\nanswer $1 2 generated ok\n",
        r#"& > {"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"$1"}}\n"#,
        "\neditor $1 4 fs/write_text_file\n",
    ];
    check(&moves, &[r#""id":3,"result":{"stopReason":"cancelled"}"#]);
    assert!(!replay(&moves.concat()).unwrap().text().contains("< {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"fs/"));
}

/// The second was found in a log that did not have the first yet.
#[test]
fn a_rewind_waits_for_the_one_before_it() {
    let ask = |id: u32, text: &str| {
        let params = format!(r#"{{"sessionId":"$1","prompt":[{{"type":"text","text":"{text}"}}]}}"#);
        format!("> {{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"session/prompt\",\"params\":{params}}}\\n\n")
    };
    let cancel = r#"> {"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"$1"}}\n
"#;
    let [first, second] = [ask(5, "/rewind 1"), ask(6, "/rewind 2 conversation")];
    let gone = [r#""id":5,"result""#, r#""title":null"#, "There is no prompt", r#""id":6,"result""#];
    for between in [String::new(), format!("& {cancel}")] {
        let moves = [START, PROMPT, cancel, &ask(4, "go on"), cancel, &format!("& {first}"), &between, &second];
        check(&moves, &gone);
    }
}
