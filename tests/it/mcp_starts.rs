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
