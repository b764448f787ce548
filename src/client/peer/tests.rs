//! What agents say and ask, and what castor makes of it.

use serde_json::{Value, json};

use super::{PeerFacts, PeerRequest, PeerUpdates, Refusal, Terminals};
use castor_base::{
    content::Part,
    ids::CallId,
    model::Chunk,
    money::Money,
    peer_agent::{PeerReport, ReportedState},
    tool::CallResult,
};
use castor_wire::acp::client::{ClientEvent, PromptAnswer};

#[test]
fn other_versions_are_named() {
    let read = |it: Value| PeerFacts::read(&it).map_err(|it| it.to_string());
    assert_eq!(read(json!({ "protocolVersion": 1 })).unwrap(), PeerFacts::default());
    let it = json!({ "protocolVersion": 1, "agentInfo": { "name": "a", "version": "2" }, "authMethods": [{ "id": "x", "name": "Log in" }] });
    assert_eq!(read(it).unwrap(), PeerFacts { name: "a 2".to_owned(), sign_in: vec!["Log in".to_owned()] });
    let other = read(json!({ "protocolVersion": 2 })).unwrap_err();
    assert_eq!(other, "it speaks version 2 of ACP, and castor speaks 1");
    assert_eq!(read(json!({})).unwrap_err(), "it did not say which version of ACP it speaks");
}

/// `None`: it is answered at once.
fn asked(method: &str, params: &Value) -> Option<String> {
    match PeerRequest::read(method, params, &mut PeerUpdates::default(), &mut Terminals::default()) {
        PeerRequest::Waits { calls, .. } => {
            Some(calls.iter().map(|it| format!("{} {}", it.name, it.args)).collect::<Vec<_>>().join("; "))
        }
        PeerRequest::Answered(_) => None,
    }
}

#[test]
fn requests_are_calls_of_castors_tools() {
    let permission = |call: Value| asked("session/request_permission", &json!({ "toolCall": call, "options": [] }));
    for (found, expected) in [
        (
            asked("fs/read_text_file", &json!({ "path": "/w/a", "line": 3, "limit": 2 })),
            r#"read_file {"file_path":"/w/a","start_line":3,"end_line":4}"#,
        ),
        (
            asked("terminal/create", &json!({ "command": "make && ls" })),
            r#"run_shell_command {"command":"make && ls"}"#,
        ),
        (
            asked(
                "terminal/create",
                &json!({ "command": "ls", "args": ["a b"], "env": [{ "name": "A", "value": "1" }], "cwd": "/w" }),
            ),
            r#"run_shell_command {"command":"env A=1 ls 'a b'","dir_path":"/w"}"#,
        ),
        (
            permission(
                json!({ "toolCallId": "1", "title": "Run", "kind": "execute", "rawInput": { "command": ["rm", "a b"] } }),
            ),
            r#"request_permission {"title":"Run","tool":"run_shell_command","args":{"command":"rm 'a b'"}}"#,
        ),
        (
            permission(
                json!({ "toolCallId": "1", "title": "E", "kind": "edit", "content": [{ "type": "diff", "path": "/w/a", "newText": "x" }] }),
            ),
            r#"request_permission {"title":"E","tool":"write_file","args":{"file_path":"/w/a","content":"x"}}"#,
        ),
        (
            permission(json!({ "toolCallId": "1", "title": "D", "kind": "delete", "locations": [{ "path": "/w/a" }] })),
            r#"request_permission {"title":"D","tool":"run_shell_command","args":{"command":"rm /w/a"}}"#,
        ),
        (
            permission(json!({ "toolCallId": "1", "title": "F", "kind": "fetch" })),
            r#"request_permission {"title":"F"}"#,
        ),
    ] {
        let sorted = |it: &str| {
            it.split_once(' ').map(|(name, args)| (name.to_owned(), serde_json::from_str::<Value>(args).unwrap()))
        };
        assert_eq!(sorted(&found.unwrap()), sorted(expected), "{expected}");
    }
}

#[test]
fn unknown_methods_are_refused() {
    let answer =
        |method: &str| PeerRequest::read(method, &json!({}), &mut PeerUpdates::default(), &mut Terminals::default());
    for (method, code) in [("elicitation/create", -32601), ("fs/write_text_file", -32602), ("terminal/output", -32602)]
    {
        let PeerRequest::Answered(Err(Refusal { code: found, .. })) = answer(method) else { panic!("{method}") };
        assert_eq!(found, code, "{method}");
    }
}

fn result(text: &str, is_error: bool) -> CallResult {
    CallResult { id: CallId::from("1"), name: "t".to_owned(), content: vec![Part::text(text)], is_error }
}

/// The answer to a request whose calls have these results.
fn answered(method: &str, params: &Value, results: &[CallResult]) -> Result<Value, Refusal> {
    let mut terminals = Terminals::default();
    let request = PeerRequest::read(method, params, &mut PeerUpdates::default(), &mut terminals);
    let PeerRequest::Waits { form, .. } = request else { panic!("{request:?}") };
    let answer = form.answer(&results.iter().collect::<Vec<_>>(), &mut terminals)?;
    let Some(id) = answer.get("terminalId") else { return Ok(answer) };
    let output =
        PeerRequest::read("terminal/output", &json!({ "terminalId": id }), &mut PeerUpdates::default(), &mut terminals);
    let PeerRequest::Answered(it) = output else { panic!("{output:?}") };
    it
}

#[test]
fn results_are_answers() {
    let file = |text: &str, limit: Value| {
        answered("fs/read_text_file", &json!({ "path": "/a", "limit": limit }), &[result(text, false)])
    };
    let cut = "IMPORTANT: The file content has been truncated.\nStatus: Showing lines 1-2 of 9 total lines.\nAction: x\n\n--- FILE CONTENT (truncated) ---\na\nb\n";
    assert_eq!(file("a\n", Value::Null), Ok(json!({ "content": "a\n" })));
    assert_eq!(file(cut, json!(2)), Ok(json!({ "content": "a\nb\n" })));
    assert!(file(cut, Value::Null).is_err(), "an agent would write back a part as the whole");
    let run = |text: &str| {
        answered("terminal/create", &json!({ "command": "x", "outputByteLimit": 3 }), &[result(text, false)]).unwrap()
    };
    let exit = |code: u32| json!({ "exitCode": code, "signal": null });
    let text = "Output: <untrusted_context>\nhello\n</untrusted_context>\nExit Code: 2";
    assert_eq!(run(text), json!({ "output": "llo", "truncated": true, "exitStatus": exit(2) }));
    assert_eq!(run("Output: (empty)"), json!({ "output": "", "truncated": false, "exitStatus": exit(0) }));
    assert_eq!(
        answered("terminal/create", &json!({ "command": "x" }), &[result("no", true)]).unwrap_err().message,
        "no"
    );
    let options = json!([{ "optionId": "y", "kind": "allow_once" }, { "optionId": "n", "kind": "reject_once" }]);
    let asked = json!({ "toolCall": { "toolCallId": "1", "kind": "edit", "locations": [{ "path": "/a" }, { "path": "/b" }] }, "options": options });
    let chosen = |results: &[CallResult]| {
        answered("session/request_permission", &asked, results).unwrap()["outcome"]["optionId"].clone()
    };
    assert_eq!(chosen(&[result("", false), result("", false)]), "y");
    assert_eq!(chosen(&[result("", false), result("", true)]), "n", "all of it has to be allowed");
    assert_eq!(chosen(&[]), "n");
}

#[test]
fn updates_are_chunks() {
    let mut seen = PeerUpdates::default();
    let mut take = |update: Value| seen.take(&ClientEvent::read(&update)).into_iter().next();
    let text = take(json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "a" } }));
    assert_eq!(text, Some(Chunk::Text { text: "a".to_owned(), signature: None }));
    take(json!({ "sessionUpdate": "tool_call", "toolCallId": "1", "title": "Look", "kind": "read" }));
    let call = take(json!({ "sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "in_progress" }));
    let Some(Chunk::Report(PeerReport::Call(call))) = call else { panic!("{call:?}") };
    assert_eq!((call.title.as_str(), call.state), ("Look", ReportedState::InProgress));
    let mut spent = |amount: f64| match take(
        json!({ "sessionUpdate": "usage_update", "used": 1, "size": 9, "cost": { "amount": amount, "currency": "USD" } }),
    ) {
        Some(Chunk::Report(PeerReport::Spent { cost, window })) => (cost, window),
        other => panic!("{other:?}"),
    };
    assert_eq!([spent(0.5), spent(0.75), spent(0.1)], [0.5, 0.25, 0.0].map(|it| (Money::dollars(it), Some(9))));
    let ended = seen.end(&PromptAnswer::default());
    assert!(matches!(&ended[0], Chunk::Report(PeerReport::Call(it)) if it.state == ReportedState::Failed), "{ended:?}");
    assert_eq!(ended.len(), 2, "it said a text: {ended:?}");
}
