//! Models that read less than anybody said, from the editor's side: what a refusal says is learned, the conversation is
//! shortened, the turn goes on, and later turns and processes know it.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use castor_engine::context::tokens;
use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox},
    model_server::{ModelServer, answers, says, stream},
};

/// What the models read, in tokens.
const WINDOW: u64 = 15_000;

const REFUSED: &str = "400 Bad Request";

struct Dialect {
    name: &'static str,
    /// Of the provider; none is Gemini.
    kind: Option<&'static str>,
    status: &'static str,
    /// The error for a request of so many tokens.
    refuses: fn(u64) -> Value,
    answers: fn(&str) -> String,
}

const DIALECTS: &[Dialect] = &[
    Dialect {
        name: "openai",
        kind: Some("openai"),
        status: REFUSED,
        refuses: |size| {
            let message = format!(
                "This model's maximum context length is {WINDOW} tokens. However, your messages resulted in {size} \
                 tokens. Please reduce the length of the messages."
            );
            let kind = "invalid_request_error";
            json!({"error": {"message": message, "type": kind, "param": "messages", "code": "context_length_exceeded"}})
        },
        answers: chat,
    },
    Dialect {
        name: "llama.cpp",
        kind: Some("openai"),
        status: REFUSED,
        refuses: |size| {
            let message = "the request exceeds the available context size, try increasing it";
            json!({"error": {"code": 400, "message": message, "type": "exceed_context_size_error",
                "n_prompt_tokens": size, "n_ctx": WINDOW}})
        },
        answers: chat,
    },
    Dialect {
        name: "vllm",
        kind: Some("openai"),
        status: REFUSED,
        refuses: |size| {
            let message = format!(
                "This model's maximum context length is {WINDOW} tokens. However, your request has {size} input \
                 tokens. Please reduce the length of the input messages."
            );
            json!({"error": {"message": message, "type": "BadRequestError", "param": null, "code": 400}})
        },
        answers: chat,
    },
    Dialect {
        name: "responses",
        kind: Some("responses"),
        status: REFUSED,
        // It names no number.
        refuses: |_| {
            let message =
                "Your input exceeds the context window of this model. Please adjust your input and try again.";
            let kind = "invalid_request_error";
            json!({"error": {"message": message, "type": kind, "param": "input", "code": "context_length_exceeded"}})
        },
        answers: |text| {
            let said = json!({"type": "response.output_text.delta", "delta": text});
            stream(&format!("data: {said}\n\ndata: {}\n\n", json!({"type": "response.completed", "response": {}})))
        },
    },
    Dialect {
        name: "anthropic",
        kind: Some("anthropic"),
        status: REFUSED,
        refuses: |size| {
            let message = format!("prompt is too long: {size} tokens > {WINDOW} maximum");
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}})
        },
        answers: anthropic,
    },
    Dialect {
        name: "gemini",
        kind: None,
        status: REFUSED,
        refuses: |size| {
            let message =
                format!("The input token count ({size}) exceeds the maximum number of tokens allowed ({WINDOW}).");
            json!({"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}})
        },
        answers: says,
    },
    Dialect {
        name: "vertex's words",
        kind: None,
        status: REFUSED,
        refuses: |size| {
            let message = format!(
                "Unable to submit request because the input token count is {size} but model only supports up to \
                 {WINDOW}. Reduce the input token count and try again."
            );
            json!({"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}})
        },
        answers: says,
    },
    Dialect {
        name: "a body that is too large",
        kind: Some("anthropic"),
        status: "413 Payload Too Large",
        refuses: |_| {
            let message = "Request exceeds the maximum size";
            json!({"type": "error", "error": {"type": "request_too_large", "message": message}})
        },
        answers: anthropic,
    },
    Dialect {
        name: "litellm",
        kind: Some("openai"),
        status: REFUSED,
        refuses: |_| {
            let message = "litellm.ContextWindowExceededError: litellm.BadRequestError: mock";
            json!({"error": {"message": message, "type": null, "param": null, "code": "400"}})
        },
        answers: chat,
    },
];

fn anthropic(text: &str) -> String {
    let said = json!({"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}});
    let end = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}});
    stream(&format!("data: {said}\n\ndata: {end}\n\ndata: {{\"type\":\"message_stop\"}}\n\n"))
}

fn chat(text: &str) -> String {
    let chunk = json!({"choices": [{"delta": {"content": text}, "finish_reason": "stop"}]});
    stream(&format!("data: {chunk}\n\ndata: [DONE]\n\n"))
}

/// A model that counts by a third more than the rule of thumb, refuses what is too long, and has much to say.
fn serve(dialect: &'static Dialect, refused: Arc<AtomicUsize>) -> ModelServer {
    let long: String = (0..600).map(|n| format!("{n} is a number. ")).collect();
    ModelServer::answering(move |asked| {
        let size = tokens::of_text(&asked.body) / 3 * 4;
        if size > WINDOW {
            refused.fetch_add(1, Ordering::Relaxed);
            return Some(answers(dialect.status, &(dialect.refuses)(size).to_string()));
        }
        let compresses = asked.body.contains("expert conversation") || asked.body.contains("state_snapshot");
        let text = if compresses { "<state_snapshot>Numbers.</state_snapshot>" } else { &long };
        Some((dialect.answers)(text))
    })
}

fn start(dialect: &Dialect, server: &ModelServer, settings: Value) -> Sandbox {
    let mut sandbox = Sandbox::new();
    let mut settings = settings;
    let model = match dialect.kind {
        None => "gemini-3.5-flash-lite",
        Some(kind) => {
            settings["providers"] = json!({"local": {"type": kind, "baseUrl": format!("{}/v1", server.url)}});
            "local/m1"
        }
    };
    sandbox.write("home/.castor/settings.json", &settings.to_string());
    sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), server.url.clone()));
    sandbox.args.extend(["--model", model].map(Into::into));
    sandbox
}

fn prompt(client: &mut Client, session: &str, text: &str) -> (Value, String) {
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
    let (answer, updates) = client.call("session/prompt", params).unwrap();
    (answer, updates.iter().map(Value::to_string).collect())
}

#[test]
fn a_refusal_is_learned_from_and_the_turn_goes_on() {
    for dialect in DIALECTS {
        let refused = Arc::new(AtomicUsize::new(0));
        let server = serve(dialect, refused.clone());
        let hook = json!({"type": "command", "command": "grep -o '\"trigger\":\"auto\"' >&2"});
        let sandbox = start(dialect, &server, json!({"hooks": {"PreCompress": [{"hooks": [hook]}]}}));
        let mut client = Client::start(&sandbox);
        client.initialize(&json!({})).unwrap();
        let session = client.new_session(&sandbox.workspace()).unwrap();
        let mut told = String::new();
        for n in 1..=6 {
            let (answer, said) = prompt(&mut client, &session, &format!("prompt {n}"));
            assert_eq!(answer["result"]["stopReason"], "end_turn", "{}, {n}: {answer}", dialect.name);
            told += &said;
        }
        assert_eq!(refused.load(Ordering::Relaxed), 1, "{}: what was refused is known", dialect.name);
        assert!(told.contains("The conversation is shortened"), "{}: {told}", dialect.name);
        let compressions = told.matches("its older part is compressed").count();
        let heard = told.matches(r#": \"trigger\":\"auto\""#).count();
        assert!(compressions > 0 && heard == compressions, "{}, {heard}: {told}", dialect.name);
        client.end().unwrap();
        let mut client = Client::start(&sandbox);
        client.initialize(&json!({})).unwrap();
        let params = json!({"sessionId": session, "cwd": sandbox.workspace(), "mcpServers": []});
        client.result("session/resume", params).unwrap();
        for n in 7..=9 {
            let (answer, _) = prompt(&mut client, &session, &format!("prompt {n}"));
            assert_eq!(answer["result"]["stopReason"], "end_turn", "{}, {n}: {answer}", dialect.name);
        }
        assert_eq!(refused.load(Ordering::Relaxed), 1, "{}: the next process knows it, too", dialect.name);
    }
}

/// Without a compressor the oldest part goes; a prompt that is too long alone is refused, and the next one works.
#[test]
fn prompt_that_cannot_shrink_fails_once() {
    let refused = Arc::new(AtomicUsize::new(0));
    let server = serve(&DIALECTS[0], refused.clone());
    let sandbox = start(&DIALECTS[0], &server, json!({"model": {"compressionThreshold": 0}}));
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    let (answer, _) = prompt(&mut client, &session, &"word ".repeat(20_000));
    let why = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(
        why.contains("too long for local/m1") && why.contains(&format!("its context window is {WINDOW}")),
        "{answer}"
    );
    for n in 1..=6 {
        let (answer, _) = prompt(&mut client, &session, &format!("prompt {n}"));
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{n}: {answer}");
    }
    assert_eq!(refused.load(Ordering::Relaxed), 1);
    let last = server.asked().pop().unwrap().body;
    assert!(last.contains("prompt 6") && last.contains("were left out") && !last.contains("word word"), "{last}");
}

/// One refusal more is the end of the turn: nobody knows what such a server counts.
#[test]
fn server_that_refuses_everything_is_called_twice() {
    let refuses = || answers("400 Bad Request", &(DIALECTS[4].refuses)(20_000).to_string());
    let server = ModelServer::start(vec![refuses(), refuses(), (DIALECTS[4].answers)("Fine.")]);
    // What was refused counts three times: that would be compressed.
    let sandbox = start(&DIALECTS[4], &server, json!({"model": {"compressionThreshold": 0}}));
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    let (answer, _) = prompt(&mut client, &session, "go");
    let why = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(why.contains("prompt is too long") && why.contains("Shorten the conversation"), "{answer}");
    assert_eq!(server.asked().len(), 2);
    let (answer, _) = prompt(&mut client, &session, "again");
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
}
