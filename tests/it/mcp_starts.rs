//! MCP servers that fail at their first start.

use serde_json::json;

use crate::mcp::{agent, agent_with, pids, prompt, said, server, wait_for_row};

/// Its first start is one of its tries.
#[test]
fn a_server_that_fails_at_first_is_tried_again() {
    let (sandbox, mut client) = agent(&["text \"1\"", "call mcp_p_echo {\"text\":\"x\"}", "text \"2\""]);
    let log = sandbox.workspace().join("mcp.log");
    let session = client.new_session_with(&sandbox.workspace(), json!([server("p", "second", &log)])).unwrap();
    let why = "crashed (exit code 3): cannot read the configuration";
    let (_, first) = prompt(&mut client, &session);
    let told = format!("\\\"p\\\" is not available: it {why}. castor tries again.");
    assert!(said(&first).contains(&told), "{first:?}");
    let row = wait_for_row(&mut client, &session, "`p`: ready");
    assert!(row.contains(&format!("`p`: ready, 10 tools; started again once, last as it {why}")), "{row}");
    let (_, second) = prompt(&mut client, &session);
    assert!(said(&second).contains("echo: x"), "{second:?}");
    assert_eq!(pids(&log).len(), 2);
}

/// It says that a message could not be read, and not which version it is.
#[test]
fn a_server_that_speaks_carelessly_is_taken() {
    let (sandbox, mut client) = agent(&["call mcp_p_echo {\"text\":\"x\"}", "text \"1\""]);
    let log = sandbox.workspace().join("mcp.log");
    let session = client.new_session_with(&sandbox.workspace(), json!([server("p", "careless", &log)])).unwrap();
    let (_, updates) = prompt(&mut client, &session);
    assert!(said(&updates).contains("echo: x"), "{updates:?}");
}

/// With the reason, long before the call's time is up; the next call works.
#[test]
fn an_answer_that_cannot_be_read_fails_its_call_at_once() {
    let result = |text: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":ID,"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#)
    };
    let whole = result("fine");
    for (line, expected) in [
        (result(r"cut \ud83c"), "cut \u{fffd}"),
        (result(r"\udf89 cut"), "\u{fffd} cut"),
        (whole.replace("ID", "\"ID\""), "fine"),
        (whole.replace(r#""jsonrpc":"2.0","#, ""), "fine"),
        (whole[..60].to_owned(), "its answer cannot be read: EOF"),
        (result("raw \u{1} sign"), "its answer cannot be read: control character"),
        (result(r"\q"), "its answer cannot be read: invalid escape"),
        (r#"{"jsonrpc":"2.0","result":"#.to_owned(), "its answer cannot be read: EOF"),
        (format!("Listening on port 3000\n{{\"level\":\"info\"}}\n{whole}"), "fine"),
    ] {
        let call = format!("call mcp_p_echo {}", json!({ "text": line }));
        let (sandbox, mut client) = agent(&[&call, "call mcp_p_pid {}", "text \"1\""]);
        let log = sandbox.workspace().join("mcp.log");
        let session = client.new_session_with(&sandbox.workspace(), json!([server("p", "torn", &log)])).unwrap();
        let (_, updates) = prompt(&mut client, &session);
        let said = said(&updates);
        assert!(said.contains(expected), "{line}: {said}");
        assert!(said.contains(&pids(&log)[0].to_string()), "{line}: {said}");
        assert_eq!(pids(&log).len(), 1, "{line}");
    }
}

/// In between it is no tool's server, and says so; at the end it is left alone.
#[test]
fn a_server_that_never_starts_is_given_up_after_its_tries() {
    let echo = "call mcp_p_echo {\"text\":\"x\"}";
    let (sandbox, mut client) = agent_with(r#"{"mcp": {"maxRestarts": 1}}"#, &[echo, "text \"1\""]);
    let log = sandbox.workspace().join("mcp.log");
    let session = client.new_session_with(&sandbox.workspace(), json!([server("p", "crash", &log)])).unwrap();
    let (_, first) = prompt(&mut client, &session);
    let why = "it crashed (exit code 3): cannot read the configuration";
    let first = said(&first);
    let missing = format!("Tool \\\"mcp_p_echo\\\" is not available: MCP server \\\"p\\\" is not there: {why}.");
    assert!(first.contains(&missing), "{first}");
    let row = wait_for_row(&mut client, &session, "failed");
    assert!(row.contains(&format!("`p`: failed: {why}, and it was started again once")), "{row}");
    assert_eq!(pids(&log).len(), 2);
}
