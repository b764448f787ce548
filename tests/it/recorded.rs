//! Answers in the shapes that services document, from the editor's side and a byte at a time: what is said, called and
//! counted; and all who tell of tokens tell the same.

use std::fs;

use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox},
    model_server::{ModelServer, says, stream},
};

/// A recorded answer, and what its provider's last answer looks like.
struct Dialect {
    file: &'static str,
    /// Of the provider; none is Gemini.
    kind: Option<&'static str>,
    ends: fn() -> String,
}

const DIALECTS: &[Dialect] = &[
    Dialect { file: "gemini", kind: None, ends: || says("Done.") },
    Dialect { file: "chat-openai", kind: Some("openai"), ends: chat },
    Dialect { file: "chat-deepseek", kind: Some("openai"), ends: chat },
    Dialect { file: "chat-openrouter", kind: Some("openai"), ends: chat },
    Dialect { file: "chat-ollama", kind: Some("openai"), ends: chat },
    Dialect { file: "chat-vllm", kind: Some("openai"), ends: chat },
    Dialect { file: "chat-lmstudio", kind: Some("openai"), ends: chat },
    Dialect { file: "chat-llamacpp", kind: Some("openai"), ends: chat },
    Dialect {
        file: "responses",
        kind: Some("responses"),
        ends: || {
            let said = json!({"type": "response.output_text.delta", "delta": "Done."});
            stream(&format!("data: {said}\n\ndata: {}\n\n", json!({"type": "response.completed", "response": {}})))
        },
    },
    Dialect {
        file: "anthropic",
        kind: Some("anthropic"),
        ends: || {
            let said = json!({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Done."}});
            let end = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}});
            stream(&format!("data: {said}\n\ndata: {end}\n\ndata: {{\"type\":\"message_stop\"}}\n\n"))
        },
    },
];

fn chat() -> String {
    let chunk = json!({"choices": [{"delta": {"content": "Done."}, "finish_reason": "stop"}]});
    stream(&format!("data: {chunk}\n\ndata: [DONE]\n\n"))
}

/// What a recorded answer comes to, as the file beside it says.
struct Expected {
    text: String,
    n_calls: usize,
    /// By the names of the file; empty: the provider counts nothing.
    usage: Vec<(String, u64)>,
}

impl Expected {
    fn read(file: &str) -> Self {
        let path = format!("{}/tests/data/streams/{file}.chunks", env!("CARGO_MANIFEST_DIR"));
        let chunks = fs::read_to_string(path).unwrap();
        let said = chunks.lines().filter_map(|it| it.strip_prefix("text "));
        let text: String = said.map(|it| serde_json::from_str::<String>(it).unwrap()).collect();
        let n_calls = chunks.lines().filter(|it| it.starts_with("call ")).count();
        let counts = chunks.lines().find_map(|it| it.strip_prefix("Usage(Usage { ")).unwrap_or_default();
        let count = |it: &str| {
            let (name, n) = it.trim_end_matches([' ', ')', '}']).split_once(": ")?;
            Some((name.to_owned(), n.parse().ok()?))
        };
        Self { text, n_calls, usage: counts.split(", ").filter_map(count).collect() }
    }

    fn count(&self, name: &str) -> u64 {
        self.usage.iter().find(|(it, _)| it == name).unwrap().1
    }
}

fn start(dialect: &Dialect, server: &ModelServer) -> (Sandbox, Client, String) {
    let mut sandbox = Sandbox::new();
    let model = match dialect.kind {
        None => "gemini-3.5-flash-lite",
        Some(kind) => {
            let provider = json!({"type": kind, "baseUrl": format!("{}/v1", server.url)});
            sandbox.write("home/.castor/settings.json", &json!({"providers": {"p": provider}}).to_string());
            "p/m"
        }
    };
    for name in ["a", "b", "ü"] {
        sandbox.write(format!("ws/{name}.txt"), &format!("{name} is in it"));
    }
    sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), server.url.clone()));
    sandbox.args.extend(["--model", model].map(Into::into));
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    (sandbox, client, session)
}

fn prompt(client: &mut Client, session: &str, text: &str) -> (Value, Vec<Value>) {
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
    let (answer, updates) = client.call("session/prompt", params).unwrap();
    (answer, updates.into_iter().map(|it| it["params"]["update"].clone()).collect())
}

#[test]
fn a_turn_of_each_provider_a_byte_at_a_time() {
    for dialect in DIALECTS {
        let name = dialect.file;
        let recorded = fs::read_to_string(format!("{}/tests/data/streams/{name}.sse", env!("CARGO_MANIFEST_DIR")));
        let server = ModelServer::dripping(vec![stream(&recorded.unwrap()), (dialect.ends)()]);
        let (_sandbox, mut client, session) = start(dialect, &server);
        let expected = Expected::read(name);
        let (answer, updates) = prompt(&mut client, &session, "read them");
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{name}: {answer}");
        let of_kind = |kind: &str| updates.iter().filter(|it| it["sessionUpdate"] == kind).collect::<Vec<_>>();
        let said = of_kind("agent_message_chunk");
        let said: String = said.iter().map(|it| it["content"]["text"].as_str().unwrap()).collect();
        assert_eq!(said, format!("{}Done.", expected.text), "{name}");
        assert_eq!(of_kind("tool_call").len(), expected.n_calls, "{name}");
        let again = server.asked()[1].body.clone();
        let results = again.matches(" is in it").count() + again.matches("Error:").count();
        assert_eq!(results, expected.n_calls, "{name}: {again}");

        // What the provider counted is what everybody is told; the second answer has no count.
        let usage = &answer["result"]["usage"];
        let counted = of_kind("usage_update");
        let (_, told) = prompt(&mut client, &session, "/stats");
        let stats = json!(told).to_string();
        if expected.usage.is_empty() {
            assert!(
                usage.is_null() && counted.is_empty() && stats.contains("Model calls: 0"),
                "{name}: {answer} {stats}"
            );
            continue;
        }
        for (of_turn, own) in [
            ("totalTokens", "total"),
            ("inputTokens", "input"),
            ("outputTokens", "output"),
            ("thoughtTokens", "thought"),
            ("cachedReadTokens", "cached"),
            ("cachedWriteTokens", "written"),
        ] {
            assert_eq!(usage[of_turn].as_u64().unwrap_or_default(), expected.count(own), "{name}, {of_turn}: {usage}");
        }
        assert_eq!(counted.last().unwrap()["used"], expected.count("total"), "{name}");
        let [input, cached] = ["input", "cached"].map(|it| expected.count(it));
        let [output, thought] = ["output", "thought"].map(|it| expected.count(it));
        assert!(stats.contains(&format!("Tokens in: {input} (of these from a cache: {cached};")), "{name}: {stats}");
        assert!(stats.contains(&format!("Tokens out: {output}, thoughts: {thought}")), "{name}: {stats}");
    }
}
