//! Another model takes over, from the editor's side: asked or silent, across providers, announced, and never for longer
//! than was said.

use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox},
    model_server::{ModelServer, answers, says, stream},
};

const CLAUDE: &str = r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Claude."}}

data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}

data: {"type":"message_stop"}

"#;

/// An hour of nothing.
fn spent() -> String {
    let details = json!([{"@type": "x", "retryDelay": "3600s"}]);
    let error =
        json!({"error": {"code": 429, "message": "Daily limit.", "status": "RESOURCE_EXHAUSTED", "details": details}});
    answers("429 Too Many Requests", &error.to_string())
}

struct Agent {
    client: Client,
    sandbox: Sandbox,
    session: String,
    gemini: ModelServer,
    claude: ModelServer,
}

/// What a turn said, its requests included, and its answer.
struct Told {
    updates: Vec<Value>,
    asked: Option<Value>,
    answer: Value,
}

impl Told {
    fn text(&self, kind: &str) -> String {
        let of_kind = |it: &&Value| it["sessionUpdate"] == kind;
        self.updates.iter().filter(of_kind).filter_map(|it| it["content"]["text"].as_str()).collect()
    }
}

impl Agent {
    fn start(gemini: Vec<String>, claude: Vec<String>, action: &str, capabilities: &Value) -> Self {
        Self::start_with(gemini, claude, &json!({"models": ["other/claude"], "action": action}), capabilities)
    }

    fn start_with(gemini: Vec<String>, claude: Vec<String>, fallback: &Value, capabilities: &Value) -> Self {
        let (gemini, claude) = (ModelServer::start(gemini), ModelServer::start(claude));
        let mut sandbox = Sandbox::new();
        let provider = json!({"type": "anthropic", "baseUrl": claude.url});
        let settings = json!({"model": {"fallback": fallback}, "providers": {"other": provider}});
        sandbox.write("home/.castor/settings.json", &settings.to_string());
        sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), gemini.url.clone()));
        sandbox.args.extend(["--model", "gemini-4-hydrogen"].map(Into::into));
        let mut client = Client::start(&sandbox);
        client.initialize(capabilities).unwrap();
        let session = client.new_session(&sandbox.workspace()).unwrap();
        Self { client, sandbox, session, gemini, claude }
    }

    fn prompt(&mut self, result: impl Fn(&Value) -> Value) -> Told {
        let session = self.session.clone();
        self.prompt_in(&session, result)
    }

    /// `result` answers what the agent asks.
    fn prompt_in(&mut self, session: &str, result: impl Fn(&Value) -> Value) -> Told {
        let id = json!(format!("p{}", self.gemini.asked().len() * 100 + self.claude.asked().len()));
        let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]});
        self.client.request_as(id.clone(), "session/prompt", params);
        let (mut updates, mut asked) = (Vec::new(), None);
        loop {
            let message = self.client.next().unwrap().expect("the agent ended");
            if message["id"] == id {
                return Told { updates, asked, answer: message };
            }
            match message["method"].as_str() {
                Some("session/update") => updates.push(message["params"]["update"].clone()),
                Some(_) => {
                    let result = result(&message["params"]);
                    self.client.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}));
                    asked = Some(message);
                }
                None => panic!("{message}"),
            }
        }
    }

    fn n_asked(&self) -> (usize, usize) {
        (self.gemini.asked().len(), self.claude.asked().len())
    }
}

fn option(id: &'static str) -> impl Fn(&Value) -> Value {
    move |_| json!({"outcome": {"outcome": "selected", "optionId": id}})
}

fn nobody(_: &Value) -> Value {
    panic!("nothing is to be asked")
}

#[test]
fn for_this_turn_with_parameters_and_tools_of_the_other_model() {
    let mut agent = Agent::start(vec![spent(), says("Gemini.")], vec![stream(CLAUDE)], "ask", &json!({}));
    let params = json!({"sessionId": agent.session, "configId": "thought_level", "value": "high"});
    agent.client.result("session/set_config_option", params).unwrap();
    let told = agent.prompt(option("retry_once"));
    let asked = told.asked.as_ref().unwrap();
    assert_eq!(asked["method"], "session/request_permission");
    let options = asked["params"]["options"].as_array().unwrap();
    let options: Vec<_> = options.iter().map(|it| (it["optionId"].as_str(), it["kind"].as_str())).collect();
    let expected = [
        (Some("retry_once"), Some("allow_once")),
        (Some("retry_always"), Some("allow_always")),
        (Some("wait"), Some("allow_once")),
        (Some("retry_later"), Some("reject_once")),
        (Some("stop"), Some("reject_once")),
    ];
    assert_eq!(options, expected);
    let question = asked.to_string();
    assert!(["gemini-4-hydrogen", "Daily limit.", "60 min"].iter().all(|it| question.contains(it)), "{question}");
    assert_eq!(
        (told.text("agent_message_chunk").as_str(), &told.answer["result"]["stopReason"]),
        ("Claude.", &json!("end_turn"))
    );
    let request: Value = serde_json::from_str(&agent.claude.asked()[0].body).unwrap();
    assert_eq!(request["model"], "claude");
    assert!(request["thinking"].is_object() || request["output_config"].is_object(), "{request}");
    let legal = |it: &Value| it["input_schema"]["type"] == "object" && it["name"].as_str().unwrap().len() <= 64;
    assert!(
        request["tools"].as_array().unwrap().iter().all(legal) && request["generationConfig"].is_null(),
        "{request}"
    );
    // The next turn begins with the session's model.
    let told = agent.prompt(nobody);
    assert_eq!(told.text("agent_message_chunk"), "Gemini.");
    assert_eq!(agent.n_asked(), (2, 1));
    let log = agent.sandbox.home().join(".castor");
    let log = logged(&log);
    assert!(log.contains("\"decision\":\"ask\"") && log.contains("\"intent\":\"retry_once\""), "{log}");
    assert!(log.contains("in place of gemini-4-hydrogen, in this turn"), "{log}");
}

#[test]
fn for_the_session_and_back() {
    let gemini = vec![spent(), says("Gemini.")];
    let mut agent = Agent::start(gemini, vec![stream(CLAUDE), stream(CLAUDE)], "ask", &json!({}));
    let told = agent.prompt(option("retry_always"));
    assert_eq!(told.text("agent_message_chunk"), "Claude.");
    let chosen = told.updates.iter().find(|it| it["sessionUpdate"] == "config_option_update").unwrap();
    assert!(chosen.to_string().contains(r#""currentValue":"other/claude""#), "{chosen}");
    agent.prompt(nobody);
    assert_eq!(agent.n_asked(), (1, 2));
    let params = json!({"sessionId": agent.session, "configId": "model", "value": "gemini-4-hydrogen"});
    agent.client.result("session/set_config_option", params).unwrap();
    assert_eq!(agent.prompt(nobody).text("agent_message_chunk"), "Gemini.");
}

#[test]
fn a_form_and_every_other_answer() {
    let capabilities = json!({"elicitation": {"form": {}}});
    let answers = [
        (json!({"action": "accept", "content": {"model_fallback": "retry_later"}}), None),
        (json!({"action": "accept", "content": {"model_fallback": "stop"}}), Some("used up")),
        (json!({"action": "accept", "content": {"model_fallback": "odd"}}), Some("used up")),
        (json!({"action": "decline"}), Some("used up")),
        (json!({"action": "cancel"}), Some("used up")),
        (json!({"odd": 1}), Some("used up")),
    ];
    let mut agent = Agent::start(vec![spent(); answers.len()], Vec::new(), "ask", &capabilities);
    for (result, error) in answers {
        let told = agent.prompt(|_| result.clone());
        assert_eq!(told.asked.unwrap()["method"], "elicitation/create");
        match error {
            None => assert_eq!(told.answer["result"]["stopReason"], "end_turn"),
            Some(part) => assert!(told.answer["error"]["message"].as_str().unwrap().contains(part), "{}", told.answer),
        }
    }
}

/// The reason of a route is also in `/model` and the doctor's report.
#[test]
fn silently_but_announced_and_other_sessions_know() {
    let mut agent = Agent::start(vec![spent()], vec![stream(CLAUDE), stream(CLAUDE)], "silent", &json!({}));
    let told = agent.prompt(nobody);
    let notice = told.text("agent_thought_chunk");
    let parts = ["gemini-4-hydrogen", "Daily limit.", "other/claude"];
    assert!(parts.iter().all(|it| notice.contains(it)), "{notice}");
    assert_eq!(told.text("agent_message_chunk"), "Claude.");
    let params = json!({"sessionId": agent.session, "prompt": [{"type": "text", "text": "/model why"}]});
    let (_, said) = agent.client.call("session/prompt", params).unwrap();
    let why = json!(said).to_string();
    let parts = ["`gemini-4-hydrogen`", "`other/claude`", "in place of gemini-4-hydrogen", "Daily limit."];
    assert!(parts.iter().all(|it| why.contains(it)), "{why}");
    let other = agent.client.new_session(&agent.sandbox.workspace()).unwrap();
    let told = agent.prompt_in(&other, nobody);
    assert!(told.text("agent_thought_chunk").contains("known not to answer"), "{:?}", told.updates);
    assert_eq!(agent.n_asked(), (1, 2));
}

/// What is busy is left without a word, what is used up is asked about, and what nobody knows is left as the user says.
#[test]
fn each_kind_of_failure_by_its_policy() {
    let busy = answers("503 Service Unavailable", r#"{"error": {"code": 503, "message": "Overloaded."}}"#);
    let refused = answers("400 Bad Request", r#"{"error": {"code": 400, "message": "Not like this."}}"#);
    let fallback = json!({"models": ["other/claude"], "policies": {
        "*": {"actions": {"transient": "silent", "unknown": "silent"}},
        "gemini-4-hydrogen": {"actions": {"terminal": "prompt"}, "maxAttempts": 1,
            "stateTransitions": {"terminal": "sticky_retry"}},
        "odd": {"actions": {"quota": "silent"}},
    }});
    let gemini = vec![busy, spent(), refused, says("Gemini.")];
    let mut agent = Agent::start_with(gemini, vec![stream(CLAUDE); 3], &fallback, &json!({}));
    let told = agent.prompt(nobody);
    assert!(told.text("agent_thought_chunk").contains("Overloaded."), "{:?}", told.updates);
    let warned = told.text("agent_thought_chunk");
    assert_eq!((told.text("agent_message_chunk").as_str(), agent.n_asked()), ("Claude.", (1, 1)));
    let told = agent.prompt(option("retry_once"));
    assert!(json!(told.asked).to_string().contains("Daily limit."));
    assert_eq!((told.text("agent_message_chunk").as_str(), agent.n_asked()), ("Claude.", (2, 2)));
    let told = agent.prompt(nobody);
    assert!(told.text("agent_thought_chunk").contains("Not like this."), "{:?}", told.updates);
    assert_eq!((told.text("agent_message_chunk").as_str(), agent.n_asked()), ("Claude.", (3, 3)));
    // A quota that is used up would count for an hour; by its policy it is one attempt in each turn.
    assert_eq!(agent.prompt(nobody).text("agent_message_chunk"), "Gemini.");
    let parts = ["model.fallback.policies.odd", "`actions.quota` is none of terminal, transient, not_found, unknown"];
    assert!(parts.iter().all(|it| warned.contains(it)), "{warned}");
}

/// Who is only asked too often has used up no quota: it is said what it is, and when it is over.
#[test]
fn a_long_rate_limit_is_called_one() {
    let slow = answers("429 Too Many Requests\r\nretry-after: 1200", r#"{"error": {"message": "Slow down."}}"#);
    let mut agent = Agent::start(vec![slow.clone()], vec![stream(CLAUDE)], "silent", &json!({}));
    let told = agent.prompt(nobody);
    let notice = told.text("agent_thought_chunk");
    assert!(
        notice.contains("The rate limit of gemini-4-hydrogen is reached and lifts in 20 min: Slow down."),
        "{notice}"
    );
    assert_eq!((told.text("agent_message_chunk").as_str(), agent.n_asked()), ("Claude.", (1, 1)));
    let headless = json!({"_meta": {"castor": {"interactive": false}}});
    let mut agent = Agent::start(vec![slow], Vec::new(), "ask", &headless);
    let error = agent.prompt(nobody).answer["error"]["message"].to_string();
    assert!(error.contains("The rate limit lifts in 20 min;") && !error.contains("quota"), "{error}");
}

#[test]
fn headless_session_falls_back_by_its_settings() {
    let headless = json!({"_meta": {"castor": {"interactive": false}}});
    let mut agent = Agent::start(vec![spent()], vec![stream(CLAUDE)], "silent", &headless);
    assert_eq!(agent.prompt(nobody).text("agent_message_chunk"), "Claude.");
    let mut agent = Agent::start(vec![spent(), says("Gemini.")], Vec::new(), "ask", &headless);
    let told = agent.prompt(nobody);
    let error = told.answer["error"]["message"].as_str().unwrap();
    assert!(error.contains("model.fallback.action") && error.contains("60 min"), "{error}");
    assert_eq!(agent.prompt(nobody).text("agent_message_chunk"), "Gemini.");
}

/// A model of the chain that cannot be reached is left out, and said to be.
#[test]
fn a_model_without_a_key_takes_nothing_over() {
    let server = ModelServer::start(vec![spent()]);
    let mut sandbox = Sandbox::new();
    let settings = json!({"model": {"fallback": {"models": ["anthropic/claude"], "action": "silent"}}});
    sandbox.write("home/.castor/settings.json", &settings.to_string());
    sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), server.url.clone()));
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({"_meta": {"castor": {"interactive": false}}})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]});
    let (answer, _) = client.call("session/prompt", params).unwrap();
    assert!(answer["error"]["message"].as_str().unwrap().contains("Daily limit."), "{answer}");
    let warned = std::fs::read_to_string(sandbox.stderr()).unwrap();
    assert!(warned.contains("anthropic/claude cannot be reached") && warned.contains("ANTHROPIC_API_KEY"), "{warned}");
}

/// All logs of a home, as text.
fn logged(home: &std::path::Path) -> String {
    let mut folders = vec![home.to_owned()];
    let mut text = String::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()) {
            match entry.is_dir() {
                true => folders.push(entry),
                false if entry.extension().is_some_and(|it| it == "jsonl") => {
                    text += &std::fs::read_to_string(entry).unwrap();
                }
                false => (),
            }
        }
    }
    text
}
