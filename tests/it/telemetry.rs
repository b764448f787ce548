//! What castor says of itself, and what it keeps to itself: the log's file and the spans for a collector.

use std::{fs, net::TcpListener, os::unix::fs::PermissionsExt, path::Path};

use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox},
    conversation::model::response,
    mcp::server,
    model_server::{Asked, ModelServer, accepts, calls, says},
};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

fn with_env(sandbox: &mut Sandbox, env: &[(&str, &str)]) {
    sandbox.env.extend(env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
}

fn prompt(id: &str, text: &str, meta: &Value) -> Value {
    json!({"sessionId": id, "prompt": [{"type": "text", "text": text}], "_meta": meta})
}

/// A session that calls a tool and answers; its spans go to `collector`.
fn traced(collector: &str, flags: &str) -> (Sandbox, Client) {
    let mut sandbox = Sandbox::new();
    sandbox.write("ws/a.txt", "in the file\n");
    let hook = json!({"type": "command", "name": "guard", "command": "echo canary-hook >&2; exit 1"});
    // A model is asked, too, whether the answer is the last one.
    let model = json!({"skipNextSpeakerCheck": false});
    let settings = json!({"hooks": {"BeforeTool": [{"hooks": [hook]}]}, "model": model});
    sandbox.write("home/.castor/settings.json", &settings.to_string());
    let lines = [
        r#"call read_file {"file_path":"a.txt"} + usage 7 3"#,
        r#"text "canary-answer""#,
        r#"text "{\"next_speaker\":\"user\"}""#,
    ];
    let lines: Vec<String> = lines.iter().map(|it| response(it).unwrap().to_string() + "\n").collect();
    let script = sandbox.write("script.jsonl", &lines.concat());
    sandbox.args.extend(["--fake-responses".into(), script.into()]);
    let headers = "authorization=Bearer%20canary-token";
    with_env(
        &mut sandbox,
        &[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", collector),
            ("OTEL_EXPORTER_OTLP_HEADERS", headers),
            ("OTEL_SERVICE_NAME", "my-castor"),
            ("CASTOR_LOG", "trace"),
        ],
    );
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let id = client.new_session(&sandbox.workspace()).unwrap();
    let meta = json!({ "traceparent": format!("00-{TRACE}-{PARENT}-{flags}"), "tracestate": "a=b" });
    client.result("session/prompt", prompt(&id, "canary-prompt", &meta)).unwrap();
    (sandbox, client)
}

fn spans(asked: &[Asked]) -> Vec<Value> {
    let bodies = asked.iter().map(|it| serde_json::from_str::<Value>(&it.body).unwrap());
    bodies.flat_map(|it| it["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone()).collect()
}

fn attribute<'a>(span: &'a Value, key: &str) -> &'a Value {
    let found = span["attributes"].as_array().unwrap().iter().find(|it| it["key"] == key);
    found.map_or(&Value::Null, |it| &it["value"])
}

/// Requests, turns, model calls and tool calls are spans.
#[test]
fn spans_reach_a_collector_within_the_clients_trace() {
    let collector = ModelServer::start(vec![accepts(); 9]);
    let (_sandbox, mut client) = traced(&collector.url, "01");
    client.end().unwrap();
    let asked = collector.asked();
    assert!(asked.iter().all(|it| it.head.starts_with("POST /v1/traces ")), "{asked:?}");
    assert!(asked.iter().all(|it| it.header("authorization") == Some("Bearer canary-token")));
    let all: String = asked.iter().map(|it| it.body.as_str()).collect();
    assert!(all.contains(r#"{"key":"service.name","value":{"stringValue":"my-castor"}}"#), "{all}");
    assert!(!all.contains("canary") && !client.transcript().contains("canary-token"), "{all}");

    let spans = spans(&asked);
    let ours: Vec<&Value> = spans.iter().filter(|it| it["traceId"] == TRACE).collect();
    let named = |name: &str| ours.iter().copied().filter(|it| it["name"] == name).collect::<Vec<_>>();
    let (requests, turns) = (named("request"), named("turn"));
    let ([request], [turn]) = (&requests[..], &turns[..]) else { panic!("{spans:#?}") };
    assert_eq!((&request["parentSpanId"], &request["traceState"]), (&json!(PARENT), &json!("a=b")));
    assert_eq!(attribute(request, "rpc.method"), &json!({"stringValue": "session/prompt"}));
    assert_eq!(
        (&turn["parentSpanId"], attribute(turn, "castor.turn.end")),
        (&request["spanId"], &json!({"stringValue": "Completed"}))
    );
    let (models, tools) = (named("model"), named("tool"));
    let purpose = |it: &&Value| attribute(it, "castor.model.purpose")["stringValue"].as_str().unwrap().to_owned();
    let purposes: Vec<String> = models.iter().map(purpose).collect();
    assert_eq!((purposes.join(" ").as_str(), tools.len()), ("agent agent next_speaker", 1), "{spans:#?}");
    let hooks = named("hook");
    assert_eq!(hooks.len(), 1, "{spans:#?}");
    assert_eq!(attribute(hooks[0], "castor.hook.event"), &json!({"stringValue": "BeforeTool"}));
    assert_eq!(attribute(hooks[0], "castor.hook.name"), &json!({"stringValue": "guard"}));
    assert_eq!(attribute(hooks[0], "process.exit.code"), &json!({"intValue": "1"}));
    assert!(models.iter().chain(&tools).chain(&hooks).all(|it| it["parentSpanId"] == turn["spanId"]), "{spans:#?}");
    assert_eq!(attribute(models[0], "gen_ai.usage.input_tokens"), &json!({"intValue": "7"}));
    assert_eq!(attribute(tools[0], "gen_ai.tool.name"), &json!({"stringValue": "read_file"}));
    // Requests without a context begin traces of their own.
    let others: Vec<&Value> = spans.iter().filter(|it| it["traceId"] != TRACE).collect();
    assert!(others.iter().any(|it| attribute(it, "rpc.method")["stringValue"] == "session/new"), "{spans:#?}");
    assert!(others.iter().all(|it| it["parentSpanId"] == ""), "{spans:#?}");
}

/// The turn of a sub-agent is below the call that started it, and the call says how the run went.
#[test]
fn turns_of_sub_agents_are_below_their_calls() {
    let collector = ModelServer::start(vec![accepts(); 9]);
    let mut sandbox = Sandbox::new();
    sandbox.write("home/.castor/agents/helper.md", "---\nname: helper\ndescription: Helps.\n---\nYou help.");
    let lines = [
        r#"call invoke_agent {"agent_name":"helper","prompt":"canary-task"}"#,
        r#"for "You help." text "I am done.""#,
        r#"for "You help." call complete_task {"result":"canary-result"}"#,
        r#"text "Done.""#,
    ];
    let lines: Vec<String> = lines.iter().map(|it| response(it).unwrap().to_string() + "\n").collect();
    let script = sandbox.write("script.jsonl", &lines.concat());
    sandbox.args.extend(["--fake-responses".into(), script.into()]);
    with_env(&mut sandbox, &[("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url)]);
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let id = client.new_session(&sandbox.workspace()).unwrap();
    let meta = json!({ "traceparent": format!("00-{TRACE}-{PARENT}-01") });
    client.result("session/prompt", prompt(&id, "go", &meta)).unwrap();
    client.end().unwrap();
    let asked = collector.asked();
    let all: String = asked.iter().map(|it| it.body.as_str()).collect();
    assert!(!all.contains("canary"), "{all}");
    let spans = spans(&asked);
    let is_of = |it: &&Value, name: &str, above: &Value| it["name"] == name && it["parentSpanId"] == above["spanId"];
    let below = |name: &str, above: &Value| spans.iter().filter(|it| is_of(it, name, above)).collect::<Vec<_>>();
    let is_prompt = |it: &&Value| attribute(it, "rpc.method")["stringValue"] == "session/prompt";
    let request = spans.iter().find(is_prompt).unwrap();
    let turn = below("turn", request)[0];
    let [call] = below("tool", turn)[..] else { panic!("{spans:#?}") };
    for (key, value) in [
        ("gen_ai.tool.name", json!({"stringValue": "invoke_agent"})),
        ("gen_ai.agent.name", json!({"stringValue": "helper"})),
        ("castor.agent.turns", json!({"intValue": "2"})),
        ("castor.agent.recovery", json!({"stringValue": "succeeded"})),
        ("castor.agent.end", json!({"stringValue": "GOAL"})),
    ] {
        assert_eq!(attribute(call, key), &value, "{key}: {call:#}");
    }
    let [child] = below("turn", call)[..] else { panic!("{spans:#?}") };
    assert_eq!((below("model", turn).len(), below("model", child).len()), (2, 2), "{spans:#?}");
    assert!(spans.iter().filter(|it| it["traceId"] == TRACE).count() >= 8, "{spans:#?}");
}

#[test]
fn a_trace_that_is_not_sampled_is_not_exported() {
    let collector = ModelServer::start(vec![accepts(); 9]);
    let (_sandbox, mut client) = traced(&collector.url, "00");
    client.end().unwrap();
    let spans = spans(&collector.asked());
    assert!(!spans.is_empty() && spans.iter().all(|it| it["traceId"] != TRACE), "{spans:#?}");
}

#[test]
fn a_collector_that_never_answers_holds_nothing_up() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let (_sandbox, mut client) = traced(&format!("http://{}", silent.local_addr().unwrap()), "01");
    assert!(client.end().unwrap().0.success());
}

#[test]
fn unsupported_otel_settings_are_reported_and_ignored() {
    let mut sandbox = Sandbox::new();
    sandbox.args.extend(["--model", "demo"].map(Into::into));
    let shared = sandbox.write("shared.log", "");
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o644)).unwrap();
    let wishes = [
        ("OTEL_TRACES_EXPORTER", "zipkin"),
        ("CASTOR_LOG", "castor=loud"),
        ("CASTOR_LOG_FILE", shared.to_str().unwrap()),
    ];
    with_env(&mut sandbox, &wishes);
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    client.end().unwrap();
    let said = client.transcript();
    for part in ["use otlp or none", "CASTOR_LOG: ", "others can read it; run: chmod 600 "] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(fs::read_to_string(shared).unwrap(), "");
}

/// A file that takes nothing more is told once, and castor goes on.
#[test]
fn unwritable_log_is_reported_once() {
    let mut sandbox = Sandbox::new();
    let log = sandbox.write("full.log", &"full ".repeat(1000));
    fs::set_permissions(&log, fs::Permissions::from_mode(0o600)).unwrap();
    with_env(&mut sandbox, &[("CASTOR_LOG", "trace"), ("CASTOR_LOG_FILE", log.to_str().unwrap())]);
    let castor = std::mem::replace(&mut sandbox.program, "sh".into());
    // Less than the file has, more than stderr gets.
    sandbox.args = ["-c", "ulimit -f 1; exec \"$0\" \"$@\""].map(Into::into).into();
    sandbox.args.extend([castor, "acp".into(), "--model".into(), "demo".into()]);
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    client.end().unwrap();
    let said = client.transcript();
    assert_eq!(said.matches("castor: CASTOR_LOG_FILE: File too large").count(), 1, "{said}");
}

/// Plays a session with a secret in every place that has one, and says everything it knows into a file.
fn play_with_secrets(log: &Path) -> Sandbox {
    let model = ModelServer::start(vec![calls("read_file", &json!({"file_path": "a.txt"})), says("canary-answer")]);
    let mut sandbox = Sandbox::new();
    sandbox.write("ws/a.txt", "canary-file\n");
    let web = json!({"url": "http://127.0.0.1:9", "headers": {"Authorization": "canary-of-settings"}});
    let settings = json!({"mcpServers": {"web": web}, "security": {"auth": {"selectedType": "gateway"}}});
    sandbox.write("home/.castor/settings.json", &settings.to_string());
    with_env(
        &mut sandbox,
        &[
            ("GEMINI_API_KEY", "canary-of-env"),
            ("GOOGLE_GEMINI_BASE_URL", &model.url),
            ("GEMINI_CLI_CUSTOM_HEADERS", "X-Token: canary-of-headers"),
            ("CASTOR_LOG", "trace"),
            ("CASTOR_LOG_FILE", log.to_str().unwrap()),
        ],
    );
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let meta = json!({"api-key": "canary-of-authenticate"});
    client.result("authenticate", json!({"methodId": "gemini-api-key", "_meta": meta})).unwrap();
    let mut leaky = server("mine", "leaky", &sandbox.home().join("mcp.log"));
    leaky["env"].as_array_mut().unwrap().push(json!({"name": "MCP_KEY", "value": "canary-of-a-server"}));
    let headers = json!([{"name": "X-Key", "value": "canary-of-a-web-server"}]);
    let web = json!({"type": "http", "name": "other", "url": "http://127.0.0.1:9", "headers": headers});
    let id = client.new_session_with(&sandbox.workspace(), json!([leaky, web])).unwrap();
    client.result("session/prompt", prompt(&id, "canary-prompt", &json!({}))).unwrap();
    let said = client.end().map(|_| client.transcript()).unwrap();
    let errors = said.split("-- stderr --").nth(1).unwrap_or_default();
    assert!(!errors.contains("canary"), "{errors}");
    let heads: String = model.asked().iter().map(|it| it.head.clone()).collect();
    assert!(heads.contains("canary-of-authenticate"), "the secrets were used: {heads}");
    sandbox
}

/// No key, header, prompt or answer at any level; the file is private.
#[test]
fn the_log_tells_much_and_no_secret() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("made/castor.log");
    let _first = play_with_secrets(&log);
    let text = fs::read_to_string(&log).unwrap();
    for part in ["request{", "turn{", "model{", "tool{", "asks gemini-3.8-flash", "my key is ***"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("canary") && !text.contains('\u{1b}'), "{text}");
    assert_eq!(fs::metadata(&log).unwrap().permissions().mode() & 0o777, 0o600);
    let _second = play_with_secrets(&log);
    assert!(fs::read_to_string(&log).unwrap().starts_with(&text), "it is appended to");
}

/// Plays prompts in a session with a scripted model, a hook and a sub-agent; what telemetry writes into a file, and as one text.
fn told(lines: &[&str], prompts: &[&str]) -> (Vec<Value>, String) {
    let mut sandbox = Sandbox::new();
    sandbox.write("ws/a.txt", "in the file\n");
    sandbox.write("home/.castor/agents/helper.md", "---\nname: helper\ndescription: Helps.\n---\nYou help.");
    let lines: Vec<String> = lines.iter().map(|it| response(it).unwrap().to_string() + "\n").collect();
    let script = sandbox.write("script.jsonl", &lines.concat());
    sandbox.args.extend(["--approval-mode", "yolo", "--fake-responses"].map(Into::into));
    sandbox.args.push(script.into());
    let out = sandbox.home().join("telemetry.log");
    with_env(&mut sandbox, &[("GEMINI_TELEMETRY_ENABLED", "1"), ("GEMINI_TELEMETRY_OUTFILE", out.to_str().unwrap())]);
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let probe = server("probe", "", &sandbox.workspace().join("mcp.log"));
    let id = client.new_session_with(&sandbox.workspace(), json!([probe])).unwrap();
    for it in prompts {
        client.result("session/prompt", prompt(&id, it, &json!({}))).unwrap();
    }
    client.end().unwrap();
    let text = fs::read_to_string(out).unwrap();
    (text.lines().map(|it| serde_json::from_str(it).unwrap()).collect(), text)
}

/// The attributes of each event, without the session, as `name key=value …`.
fn events(messages: &[Value]) -> Vec<String> {
    let logs = messages.iter().filter_map(|it| it["resourceLogs"][0]["scopeLogs"][0]["logRecords"].as_array());
    let in_words = |it: &Value| {
        let value = |it: &Value| it.as_object().and_then(|it| it.values().next().cloned()).unwrap_or_default();
        let all = it["attributes"].as_array().unwrap().iter();
        let said = all.filter(|it| !["event.name", "session.id", "duration_ms"].contains(&it["key"].as_str().unwrap()));
        let said: String = said.map(|it| format!(" {}={}", it["key"].as_str().unwrap(), value(&it["value"]))).collect();
        it["body"]["stringValue"].as_str().unwrap().to_owned() + &said
    };
    let mut res: Vec<String> = logs.flatten().map(in_words).collect();
    res.sort();
    res
}

/// What happens in sessions beside requests and calls, with what each event says. No text of anybody is in it.
#[test]
fn moments_of_a_session_are_events_in_gemini_clis_names() {
    let lines = [
        r#"raw [{"candidates":[{"content":{"parts":[]}}]}]"#,
        r#"call write_file {"file_path":"new.rs","content":"canary\nb\n"} + usage 7 3"#,
        r#"call read_file {"file_path":"a.txt"}"#,
        r#"call replace {"file_path":"a.txt","instruction":"x","old_string":"in the file","new_string":"canary"}"#,
        r#"call mcp_probe_echo {"text":"canary"}"#,
        r#"call mcp_probe_big {"lines":9000}"#,
        r#"call invoke_agent {"agent_name":"helper","prompt":"canary-task"}"#,
        r#"for "You help." text "canary done""#,
        r#"for "You help." call complete_task {"result":"canary-result"}"#,
        r#"text "canary-answer""#,
        r#"text "<state_snapshot>canary</state_snapshot>""#,
        r#"text "<state_snapshot>canary</state_snapshot>""#,
    ];
    let prompts = [
        "canary-prompt",
        "/mode plan",
        "/mode yolo",
        "/model script",
        "/compress",
        "/rewind 1 conversation",
        "/canary",
    ];
    let (messages, text) = told(&lines, &prompts);
    assert!(!text.contains("canary"), "{text}");
    let all = events(&messages);
    for wanted in [
        r#"gemini_cli.config model="script" approval_mode="yolo""#,
        r#"gemini_cli.plan.approval_mode_switch from_mode="yolo" to_mode="plan""#,
        r#"gemini_cli.plan.approval_mode_duration mode="plan""#,
        r#"gemini_cli.slash_command command="mode""#,
        r#"gemini_cli.slash_command command="compress""#,
        r#"gemini_cli.slash_command.model model_name="script""#,
        r#"gemini_cli.chat_compression tokens_before="#,
        r#"gemini_cli.rewind outcome="rewind_only""#,
        r#"gemini_cli.chat.content_retry attempt_number="1" error_type="stream" model="script""#,
        r#"gemini_cli.model_routing decision_model="script""#,
        r#"gemini_cli.conversation_finished approvalMode="yolo" turnCount="1""#,
        r#"gemini_cli.file_operation tool_name="write_file" operation="create" extension=".rs""#,
        r#"gemini_cli.file_operation tool_name="read_file" operation="read""#,
        r#"gemini_cli.edit_strategy strategy="exact""#,
        r#"gemini_cli.tool_output_truncated tool_name="mcp_probe_big" original_content_length="153"#,
        r#"gen_ai.client.inference.operation.details gen_ai.operation.name="chat" gen_ai.request.model="script""#,
        r#"gemini_cli.agent.start agent_name="helper""#,
        r#"gemini_cli.agent.finish agent_name="helper" terminate_reason="GOAL" turn_count="2""#,
        r#"gemini_cli.agent.recovery_attempt agent_name="helper" turn_count="2" success=true"#,
    ] {
        assert!(all.iter().any(|it| it.starts_with(wanted)), "{wanted}: {all:#?}");
    }
    assert!(all.iter().any(|it| it.contains(r#" mcp_server_name="probe""#)), "{all:#?}");
    let (_, metrics) = gemini_names(&messages);
    for name in [
        "gemini_cli.agent.duration",
        "gemini_cli.agent.recovery_attempt.count",
        "gemini_cli.agent.run.count",
        "gemini_cli.agent.turns",
        "gemini_cli.chat.content_retry.count",
        "gemini_cli.chat_compression",
        "gemini_cli.file.operation.count",
        "gemini_cli.lines.changed",
        "gemini_cli.slash_command.model.call_count",
        "gen_ai.client.operation.duration",
        "gen_ai.client.token.usage",
    ] {
        assert!(metrics.iter().any(|it| it == name), "{name}: {metrics:?}");
    }
}

/// A life with a call, a hook and two requests to the model, with these settings for telemetry.
fn live(env: &[(&str, &str)], telemetry: &Value) -> Sandbox {
    let mut sandbox = Sandbox::new();
    sandbox.write("ws/a.txt", "in the file\n");
    let hook = json!({"type": "command", "name": "guard", "command": "exit 0"});
    let settings = json!({"hooks": {"BeforeTool": [{"hooks": [hook]}]}, "telemetry": telemetry});
    sandbox.write("home/.gemini/settings.json", &settings.to_string());
    let lines = [r#"call read_file {"file_path":"a.txt"} + usage 7 3"#, r#"text "canary-answer""#];
    let lines: Vec<String> = lines.iter().map(|it| response(it).unwrap().to_string() + "\n").collect();
    let script = sandbox.write("script.jsonl", &lines.concat());
    sandbox.args.extend(["--fake-responses".into(), script.into()]);
    with_env(&mut sandbox, env);
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let id = client.new_session(&sandbox.workspace()).unwrap();
    client.result("session/prompt", prompt(&id, "canary-prompt", &json!({}))).unwrap();
    client.end().unwrap();
    sandbox
}

/// Events by their names, and what metrics count.
fn gemini_names(messages: &[Value]) -> (Vec<String>, Vec<String>) {
    let logs = messages.iter().filter_map(|it| it["resourceLogs"][0]["scopeLogs"][0]["logRecords"].as_array());
    let mut events: Vec<String> =
        logs.flatten().map(|it| it["body"]["stringValue"].as_str().unwrap().to_owned()).collect();
    let all = messages.iter().filter_map(|it| it["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array());
    let mut metrics: Vec<String> = all.flatten().map(|it| it["name"].as_str().unwrap().to_owned()).collect();
    events.sort();
    metrics.sort();
    metrics.dedup();
    (events, metrics)
}

const EVENTS: &[&str] = &[
    "gemini_cli.api_request",
    "gemini_cli.api_request",
    "gemini_cli.api_response",
    "gemini_cli.api_response",
    "gemini_cli.config",
    "gemini_cli.conversation_finished",
    "gemini_cli.file_operation",
    "gemini_cli.hook_call",
    "gemini_cli.model_routing",
    "gemini_cli.model_routing",
    "gemini_cli.tool_call",
    "gemini_cli.user_prompt",
    "gen_ai.client.inference.operation.details",
    "gen_ai.client.inference.operation.details",
];

#[test]
fn gemini_clis_names_go_to_a_file_where_its_variables_say_so() {
    let file = tempfile::tempdir().unwrap();
    let name = file.path().join("telemetry.log");
    let out = name.to_str().unwrap();
    drop(live(&[("GEMINI_TELEMETRY_ENABLED", "1"), ("GEMINI_TELEMETRY_OUTFILE", out)], &json!({})));
    let text = fs::read_to_string(&name).unwrap();
    assert!(!text.contains("canary"), "{text}");
    let messages: Vec<Value> = text.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    let (events, metrics) = gemini_names(&messages);
    assert_eq!(events, EVENTS);
    for name in [
        "gemini_cli.session.count",
        "gemini_cli.api.request.count",
        "gemini_cli.api.request.latency",
        "gemini_cli.token.usage",
        "gemini_cli.tool.call.count",
        "gemini_cli.tool.call.latency",
        "gemini_cli.hook_call.count",
    ] {
        assert!(metrics.iter().any(|it| it == name), "{name}: {metrics:?}");
    }
    assert!(text.contains(r#"{"key":"function_name","value":{"stringValue":"read_file"}}"#), "{text}");
    assert!(text.contains(r#"{"key":"session.id","value":"#) && !text.contains("resourceSpans"), "{text}");
    assert_eq!(fs::metadata(&name).unwrap().permissions().mode() & 0o077, 0);
    // Off unless asked for.
    let other = file.path().join("other.log");
    drop(live(&[("GEMINI_TELEMETRY_OUTFILE", other.to_str().unwrap())], &json!({})));
    assert!(!other.exists());
}

#[test]
fn gemini_clis_settings_name_a_collector() {
    let collector = ModelServer::start(vec![accepts(); 12]);
    let url = format!("{}/otel", collector.url);
    drop(live(&[], &json!({"enabled": true, "otlpEndpoint": url, "traces": true})));
    let asked = collector.asked();
    let heads: Vec<&str> = asked.iter().filter_map(|it| it.head.split_whitespace().nth(1)).collect();
    for place in ["/otel/v1/logs", "/otel/v1/metrics", "/otel/v1/traces"] {
        assert!(heads.contains(&place), "{place}: {heads:?}");
    }
    let messages: Vec<Value> = asked.iter().map(|it| serde_json::from_str(&it.body).unwrap()).collect();
    assert_eq!(gemini_names(&messages).0, EVENTS);
    let said = |telemetry: Value| {
        let sandbox = live(&[], &telemetry);
        fs::read_to_string(sandbox.stderr()).unwrap()
    };
    assert!(said(json!({"enabled": true, "target": "gcp"})).contains("telemetry.target is gcp: castor exports to"));
    assert!(said(json!({"enabled": true, "otlpProtocol": "grpc"})).contains("telemetry.otlpProtocol is grpc"));
}
