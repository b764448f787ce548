//! Tests of what `castor run` writes for programs.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    report::{RunEnd, RunReport},
    tests::{check, plain},
};
use crate::cli::{args::OutputFormat, client::changed_files::EditChanges};
use castor_client::Conversation;

#[test]
fn json_is_one_object() {
    let seen = check(
        plain(OutputFormat::Json),
        r#"
< update {"sessionUpdate":"agent_message_chunk","messageId":"a","content":{"type":"text","text":"One"}}
< update {"sessionUpdate":"tool_call","toolCallId":"c1","title":"ls","status":"completed"}
< update {"sessionUpdate":"agent_message_chunk","messageId":"b","content":{"type":"text","text":"two"}}
< update {"sessionUpdate":"usage_update","used":12,"size":100}
< result {"stopReason":"end_turn"}"#,
    );
    assert_eq!(
        serde_json::from_str::<Value>(&seen.out).unwrap(),
        json!({
            "session_id": "s1", "response": "One\ntwo",
            "castor": {
                "exit_code": 0, "stop_reason": "end_turn", "duration_ms": 0,
                "tokens": null, "cost": null, "session_cost": null,
                "context": {"used": 12, "size": 100},
                "tool_calls": {"total": 1, "completed": 1, "failed": 0, "unasked": 0},
                "agents": [], "changes": null,
            },
        })
    );
    assert_eq!(seen.err, "");
}

#[test]
fn json_says_what_was_spent() {
    let seen = check(
        plain(OutputFormat::Json),
        r#"
< update {"sessionUpdate":"usage_update","used":12,"size":100,"cost":{"amount":0.5,"currency":"USD"}}
< result {"stopReason":"cancelled","_meta":{"castor":{"cost":{"amount":0.25,"currency":"USD"},"stats":{"models":{"m":{"requests":3,"errors":1,"latencyMs":70,"tokens":{"input":100,"output":10,"cached":40,"thoughts":5,"total":115}},"n":{"requests":1,"errors":0,"latencyMs":1,"tokens":{"input":1,"output":1,"cached":0,"thoughts":0,"total":2}}},"tools":{"total":2,"succeeded":1,"failed":1,"durationMs":9,"decisions":{"accepted":0,"rejected":1,"automatic":1},"byName":{"ls":{"total":2,"succeeded":1,"failed":1,"durationMs":9,"decisions":{"accepted":0,"rejected":1,"automatic":1}}}},"files":{"added":7,"removed":2}}}}}"#,
    );
    let object: Value = serde_json::from_str(&seen.out).unwrap();
    let decisions = json!({"accept": 0, "reject": 1, "modify": 0, "auto_accept": 1});
    let m = json!({"input": 60, "prompt": 100, "candidates": 10, "total": 115, "cached": 40, "thoughts": 5, "tool": 0});
    let n = json!({"input": 1, "prompt": 1, "candidates": 1, "total": 2, "cached": 0, "thoughts": 0, "tool": 0});
    assert_eq!(
        object["stats"],
        json!({
            "models": {
                "m": {"api": {"totalRequests": 3, "totalErrors": 1, "totalLatencyMs": 70}, "tokens": m},
                "n": {"api": {"totalRequests": 1, "totalErrors": 0, "totalLatencyMs": 1}, "tokens": n},
            },
            "tools": {
                "totalCalls": 2, "totalSuccess": 1, "totalFail": 1, "totalDurationMs": 9, "totalDecisions": decisions,
                "byName": {"ls": {"count": 2, "success": 1, "fail": 1, "durationMs": 9, "decisions": decisions}},
            },
            "files": {"totalLinesAdded": 7, "totalLinesRemoved": 2},
        })
    );
    let own = &object["castor"];
    assert_eq!(own["tokens"], json!({"input": 101, "output": 11, "cached": 40, "thoughts": 5, "total": 117}));
    assert_eq!((&own["cost"]["amount"], &own["session_cost"]["amount"]), (&json!(0.25), &json!(0.5)));
    assert_eq!((&own["exit_code"], &object["error"]["code"]), (&json!(130), &json!(130)));
}

#[test]
fn json_says_what_a_failed_prompt_took() {
    let seen = check(
        plain(OutputFormat::Json),
        r#"< error {"code":-32603,"message":"gone","data":{"kind":"model","_meta":{"castor":{"stats":{"models":{"m":{"requests":3,"errors":3,"latencyMs":70,"tokens":{"input":0,"output":0,"cached":0,"thoughts":0,"total":0}}},"tools":{"total":0,"succeeded":0,"failed":0,"durationMs":0,"decisions":{"accepted":0,"rejected":0,"automatic":0},"byName":{}}}}}}}"#,
    );
    let object: Value = serde_json::from_str(&seen.out).unwrap();
    assert_eq!(object["stats"]["models"]["m"]["api"]["totalErrors"], json!(3));
    assert_eq!(object["error"]["code"], json!(1));
}

#[test]
fn json_tells_of_failures() {
    let seen = check(plain(OutputFormat::Json), r#"< result {"stopReason":"max_turn_requests"}"#);
    let object: Value = serde_json::from_str(&seen.out).unwrap();
    assert_eq!(seen.exit, 53);
    assert_eq!((&object["error"]["code"], &object["error"]["type"]), (&json!(53), &json!("FatalTurnLimitedError")));
    assert_eq!(object["castor"]["stop_reason"], Value::Null);
    assert_eq!(object["castor"]["exit_code"], json!(53));
}

#[test]
fn changes_of_one_file_are_one() {
    let file = |path: &str, change: &str| json!({"path": path, "change": change, "added": 2, "removed": 1});
    let mut report = RunReport::default();
    report.note_known(&json!({"checkpoints": [{"id": "k1", "files": [file("/w/old", "added")]}]}));
    report.take_changes(&json!({"checkpoints": [
        {"id": "k1", "files": [file("/w/old", "added")]},
        {"id": "k2", "files": [file("/w/new", "added"), file("/w/gone", "changed")]},
        {"id": "k3", "files": []},
        {"id": "k4", "files": [file("/w/new", "changed"), file("/w/gone", "removed")]},
    ]}));
    let end = Ok("end_turn".to_owned());
    let end = RunEnd { session: None, end: &end, took: Duration::ZERO };
    let output = json!(report.finish(&end, String::new(), &Conversation::default(), &EditChanges::default()));
    let changed = |path: &str, change: &str| json!({"path": path, "change": change, "added": 4, "removed": 2});
    let files = [changed("/w/gone", "removed"), changed("/w/new", "added")];
    assert_eq!(
        output["castor"]["changes"],
        json!({"added": 8, "removed": 4, "files": files, "checkpoints": ["k2", "k4"]})
    );
    // No prompt was sent: nothing was spent.
    assert_eq!(output["stats"]["models"], json!({}));
}

/// Terminal controls are in no output unless they are wanted.
#[test]
fn controls_stay_where_they_are_wanted() {
    let update = r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Do\u001b[1mne"}}"#;
    let script = format!("< update {update}\n< result {{\"stopReason\":\"end_turn\"}}");
    for format in [OutputFormat::Text, OutputFormat::Json, OutputFormat::StreamJson] {
        let mut case = plain(format);
        case.look.is_raw = true;
        let raw = check(case, &script).out;
        assert!(raw.contains("Do\u{1b}[1mne") || raw.contains(r"Do\u001b[1mne"), "{raw}");
        assert!(check(plain(format), &script).out.contains("Done"));
    }
}

/// An agent that is not castor names its calls otherwise, and tells their content before they end.
#[test]
fn lines_of_another_agent() {
    let seen = check(
        plain(OutputFormat::StreamJson),
        r#"
< update {"sessionUpdate":"tool_call","toolCallId":"c1","title":"List files","status":"pending"}
< update {"sessionUpdate":"tool_call","toolCallId":"c1","title":"List files","status":"in_progress"}
< update {"sessionUpdate":"tool_call_update","toolCallId":"c1","content":[{"type":"content","content":{"type":"text","text":"a\u001b[0m.txt"}}]}
< update {"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed"}
< update {"sessionUpdate":"notice","severity":"info","title":"nothing"}
< update {"sessionUpdate":"notice","severity":"error","title":"it","description":"broke"}
< result {"stopReason":"refusal"}"#,
    );
    let lines: Vec<Value> = seen.out.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    let kinds: Vec<&str> = lines.iter().map(|it| it["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["init", "message", "tool_use", "tool_result", "error", "result"], "{}", seen.out);
    assert_eq!((&lines[2]["tool_name"], &lines[2]["parameters"]), (&json!("List files"), &json!({})));
    assert_eq!((&lines[3]["output"], &lines[3]["status"]), (&json!("a.txt"), &json!("success")));
    assert_eq!((&lines[4]["severity"], &lines[4]["message"]), (&json!("error"), &json!("it broke")));
    assert_eq!((&lines[5]["error"]["type"], lines[5].get("stats")), (&json!("Error"), None));
}
