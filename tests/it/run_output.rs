//! The object of `castor run -o json`, from the real processes: it fits its schema, and says what was spent and changed.

use std::{fs, process::Output, thread, time::Instant};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};

use crate::{
    client::WATCHDOG,
    exits::{Case, SCRIPT},
    model_server::{ModelServer, stream},
    schemas,
};

/// The object on stdout, which fits its schema, and the process's exit code.
fn read(output: Output) -> Value {
    let said = String::from_utf8(output.stdout).unwrap();
    let object: Value = serde_json::from_str(&said).unwrap_or_else(|it| panic!("{it}: {said}"));
    schemas::check("run", &object).unwrap();
    let code = output.status.code().unwrap();
    assert_eq!(object["castor"]["exit_code"], json!(code), "{object}");
    let error = object.get("error").map(|it| it["code"].clone());
    assert_eq!(error, (code != 0).then(|| json!(code)), "{object}");
    object
}

fn run(case: &Case, args: &[&str]) -> Value {
    read(case.command().args(["-o", "json"]).args(args).output().unwrap())
}

const PRICES: &str = r#"{"model": {"prices": {"script": {"input": 2, "output": 10}}}}"#;
const WRITE: &str = r#"call write_file {"file_path":"a.txt","content":"one\ntwo\n"} + usage 1000 10"#;

#[test]
fn success() {
    let case = Case { settings: PRICES, ..Case::answers(&[WRITE, r#"text "Done." + usage 2000 20"#]) };
    let object = run(&case, &["--approval-mode", "auto_edit"]);
    assert_eq!(object["response"], "Done.");
    let model = &object["stats"]["models"]["script"];
    assert_eq!((&model["api"]["totalRequests"], &model["tokens"]["prompt"]), (&json!(2), &json!(3000)));
    assert_eq!(model["tokens"]["candidates"], 30);
    let tools = &object["stats"]["tools"];
    assert_eq!(
        (&tools["byName"]["write_file"]["success"], &tools["totalDecisions"]["auto_accept"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(object["stats"]["files"], json!({"totalLinesAdded": 2, "totalLinesRemoved": 0}));
    let own = &object["castor"];
    // 3000 × 2 and 30 × 10 of a million.
    assert_eq!(own["cost"], json!({"amount": 0.0063, "currency": "USD"}));
    assert_eq!(own["session_cost"], own["cost"]);
    let path = case.sandbox.workspace().canonicalize().unwrap().join("a.txt");
    assert_eq!(own["changes"]["files"], json!([{"path": path, "change": "added", "added": 2, "removed": 0}]));
    // The next run counts by itself, and the session goes on.
    fs::write(case.sandbox.workspace().join("script.jsonl"), answer("Again.", 100, 1)).unwrap();
    let object = run(&case, &["--resume", "latest"]);
    let own = &object["castor"];
    assert_eq!(own["tokens"]["input"], 100);
    assert_eq!((&own["cost"]["amount"], &own["session_cost"]["amount"]), (&json!(0.000_21), &json!(0.006_51)));
    assert_eq!(own["changes"], json!({"added": 0, "removed": 0, "files": [], "checkpoints": []}));
}

fn answer(text: &str, input: u64, output: u64) -> String {
    let answer = format!(r#"text "{text}" + usage {input} {output}"#);
    crate::conversation::model::response(&answer).unwrap().to_string() + "\n"
}

/// The price of a model of the catalog is known without settings; thoughts cost as output.
#[test]
fn prices_of_the_catalog() {
    let chunk = json!({
        "candidates": [{"content": {"role": "model", "parts": [{"text": "Hi."}]}, "finishReason": "STOP"}],
        "usageMetadata": {
            "promptTokenCount": 250_000, "candidatesTokenCount": 1_000, "thoughtsTokenCount": 9_000,
            "cachedContentTokenCount": 50_000, "totalTokenCount": 260_000,
        },
    });
    let chunk = format!("data: {chunk}\r\n\r\n");
    let server = ModelServer::answering(move |_| Some(stream(&chunk)));
    let mut case = Case { args: &[], ..Case::answers(&[]) };
    case.sandbox.env.extend(
        [("GOOGLE_GEMINI_BASE_URL", &*server.url), ("GEMINI_API_KEY", "k")].map(|(name, it)| (name.into(), it.into())),
    );
    // 200,000 × 4, 50,000 × 0.4 and 10,000 × 18 of a million: the prompt is a long one.
    let object = run(&case, &["--model", "gemini-3.1-pro-preview", "--max-cost", "9"]);
    assert_eq!(object["castor"]["cost"]["amount"], json!(1.0), "{object}");
    let tokens = json!({"input": 200_000, "prompt": 250_000, "candidates": 1_000, "total": 260_000, "cached": 50_000, "thoughts": 9_000, "tool": 0});
    assert_eq!(object["stats"]["models"]["gemini-3.1-pro-preview"]["tokens"], tokens);
    // Of another the cost is not known, and a limit of money stops it.
    let object = run(&case, &["--model", "gemini-unheard-of"]);
    assert_eq!((&object["castor"]["cost"], &object["response"]), (&Value::Null, &json!("Hi.")));
    let object = run(&case, &["--model", "gemini-unheard-of", "--max-cost", "9"]);
    assert_eq!((&object["error"]["code"], &object["stats"]["models"]), (&json!(1), &json!({})), "{object}");
}

#[test]
fn denied() {
    let object = run(&Case::answers(&[WRITE, r#"text "Not done.""#]), &["--approval-mode", "default"]);
    assert_eq!(object["castor"]["tool_calls"], json!({"total": 1, "completed": 0, "failed": 1, "unasked": 1}));
    assert_eq!(object["stats"]["tools"]["byName"]["write_file"]["fail"], 1);
    assert_eq!(object["stats"]["files"], json!({"totalLinesAdded": 0, "totalLinesRemoved": 0}));
}

#[test]
fn no_key() {
    let object = run(&Case { args: &[], ..Case::answers(&[]) }, &["--model", "gemini-4-hydrogen"]);
    assert_eq!(
        (&object["error"]["type"], &object["stats"]["models"]),
        (&json!("FatalAuthenticationError"), &json!({}))
    );
}

/// What a prompt took that failed is said, too.
#[test]
fn failed() {
    let object = run(&Case { settings: PRICES, ..Case::answers(&[WRITE]) }, &["--approval-mode", "auto_edit"]);
    assert_eq!(object["castor"]["exit_code"], 1);
    let api = &object["stats"]["models"]["script"]["api"];
    assert_eq!((&api["totalRequests"], &api["totalErrors"]), (&json!(2), &json!(1)));
    assert_eq!(object["castor"]["cost"]["amount"], json!(0.0021));
    assert_eq!(object["castor"]["changes"]["added"], 2);
}

#[test]
fn limit() {
    let settings = r#"{"limits": {"turn": {"requests": 1}}}"#;
    let object = run(&Case { settings, ..Case::answers(&[WRITE]) }, &["--approval-mode", "auto_edit"]);
    assert_eq!((&object["error"]["code"], &object["castor"]["cost"]), (&json!(53), &Value::Null));
    assert_eq!(object["castor"]["tokens"]["input"], 1000);
}

#[test]
fn cancelled() {
    let waits = r#"call run_shell_command {"command":"echo line > made; mkfifo go; echo > started; read < go"} + usage 1000 10"#;
    let case = Case { settings: PRICES, args: &["--approval-mode", "yolo", SCRIPT], ..Case::answers(&[waits]) };
    let run = case.command().args(["-o", "json"]).spawn().unwrap();
    let (start, started) = (Instant::now(), case.sandbox.workspace().join("started"));
    while !started.exists() {
        assert!(start.elapsed() < WATCHDOG, "the command was not started");
        thread::yield_now();
    }
    kill(Pid::from_raw(run.id().cast_signed()), Signal::SIGINT).unwrap();
    let object = read(run.wait_with_output().unwrap());
    assert_eq!((&object["error"]["code"], &object["castor"]["cost"]["amount"]), (&json!(130), &json!(0.0021)));
    assert_eq!(object["stats"]["tools"]["byName"]["run_shell_command"]["count"], 1);
}
