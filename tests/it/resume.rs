//! Who answers a session that goes on: the model it has, whatever is configured on another day, and nobody in its place.

use std::{
    fs,
    process::{Command, Output, Stdio},
};

use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox},
    model_server::{ModelServer, says, stream},
};

/// An answer of a server that speaks chat completions.
fn chat(text: &str) -> String {
    let chunk = json!({"choices": [{"delta": {"content": text}, "finish_reason": "stop"}]});
    stream(&format!("data: {chunk}\n\ndata: [DONE]\n\n"))
}

struct Bed {
    sandbox: Sandbox,
    mine: ModelServer,
    gemini: ModelServer,
}

impl Bed {
    fn new(mine: &[&str], gemini: &[&str]) -> Self {
        let mine = ModelServer::start(mine.iter().map(|it| chat(it)).collect());
        let gemini = ModelServer::start(gemini.iter().map(|it| says(it)).collect());
        let mut res = Self { sandbox: Sandbox::new(), mine, gemini };
        res.sandbox.env.push(("MY_KEY".into(), "k".into()));
        res.settings(true);
        res
    }

    fn settings(&self, has_provider: bool) {
        let mine = json!({"baseUrl": format!("{}/v1", self.mine.url), "apiKeyEnv": "MY_KEY", "models": ["good"]});
        let settings = if has_provider { json!({"providers": {"mine": mine}}) } else { json!({}) };
        self.sandbox.write("home/.castor/settings.json", &settings.to_string());
    }

    fn with_gemini(&mut self) {
        self.sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), self.gemini.url.clone()));
    }

    fn without(&mut self, variable: &str) {
        self.sandbox.env.retain(|(name, _)| name != variable);
    }

    fn n_asked(&self) -> (usize, usize) {
        (self.mine.asked().len(), self.gemini.asked().len())
    }

    /// Another castor process, in the same home.
    fn agent(&mut self, model: Option<&str>) -> Client {
        self.sandbox.args.retain(|it| it == "acp");
        self.sandbox.args.extend(model.iter().flat_map(|it| ["--model", it]).map(Into::into));
        let mut client = Client::start(&self.sandbox);
        client.initialize(&json!({"session": {"notices": {}}})).unwrap();
        client
    }

    fn place(&self, session: &str) -> Value {
        json!({"sessionId": session, "cwd": self.sandbox.workspace(), "mcpServers": []})
    }

    /// A session of `mine/good` with one turn, in a process that is over.
    fn session(&mut self) -> String {
        let mut client = self.agent(Some("mine/good"));
        let session = client.new_session(&self.sandbox.workspace()).unwrap();
        let (answer, _) = prompt(&mut client, &session, "my private matter");
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
        client.end().unwrap();
        session
    }

    fn log(&self, session: &str) -> String {
        fs::read_to_string(self.sandbox.home().join(format!(".castor/sessions/{session}.jsonl"))).unwrap()
    }

    fn castor(&self, args: &[&str]) -> Output {
        let usual = self.sandbox.command();
        let vars = usual.get_envs().filter_map(|(name, value)| Some((name, value?)));
        let mut command = Command::new(self.sandbox.watched().client());
        command.env_clear().envs(vars).args(args).current_dir(self.sandbox.workspace());
        command.stdin(Stdio::null()).output().unwrap()
    }
}

fn prompt(client: &mut Client, session: &str, text: &str) -> (Value, String) {
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
    let (answer, updates) = client.call("session/prompt", params).unwrap();
    (answer, updates.iter().map(Value::to_string).collect())
}

fn model_of(opened: &Value) -> &Value {
    let options = opened["result"]["configOptions"].as_array().unwrap_or_else(|| panic!("{opened}"));
    &options.iter().find(|it| it["id"] == "model").unwrap()["currentValue"]
}

/// What is configured today, or has a key today, gets nothing of what was said to another.
#[test]
fn a_session_that_goes_on_keeps_its_model() {
    let mut bed = Bed::new(&["One.", "Two.", "Three."], &[]);
    let session = bed.session();
    bed.with_gemini();
    bed.sandbox.env.push(("GEMINI_MODEL".into(), "gemini-4-hydrogen".into()));
    for method in ["session/load", "session/resume"] {
        let before = bed.log(&session);
        let mut client = bed.agent(None);
        let (opened, _) = client.call(method, bed.place(&session)).unwrap();
        assert_eq!(model_of(&opened), "mine/good");
        assert_eq!(bed.log(&session), before, "looking changes nothing");
        let (answer, told) = prompt(&mut client, &session, "and now?");
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
        assert!(!told.contains("\"notice\""), "{told}");
        client.end().unwrap();
    }
    assert_eq!(bed.n_asked(), (3, 0));
}

/// The network for all commands, as earlier versions offered it, is nothing that holds any more.
#[test]
fn obsolete_grant_is_reported_once() {
    let mut bed = Bed::new(&["One.", "Two.", "Three."], &[]);
    let session = bed.session();
    let old = r#"{"at":1,"fact":"granted","grant":{"grant":"network"}}"#;
    let file = bed.sandbox.home().join(format!(".castor/sessions/{session}.jsonl"));
    // Lines of those versions had no checksum.
    let bare = |it: &str| it.rsplit_once(",\"sum\":").map_or(it.to_owned(), |(head, _)| format!("{head}}}"));
    let log: String = bed.log(&session).lines().map(bare).chain([old.to_owned()]).map(|it| it + "\n").collect();
    fs::write(&file, log).unwrap();
    for is_said in [true, false] {
        let before = bed.log(&session);
        let mut client = bed.agent(None);
        client.call("session/load", bed.place(&session)).unwrap();
        assert_eq!(bed.log(&session), before, "looking changes nothing");
        let (answer, told) = prompt(&mut client, &session, "and now?");
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
        assert_eq!(told.contains("an approval of the network now covers one command"), is_said, "{told}");
        client.end().unwrap();
    }
}

/// No key, or no such provider any more: what was said is there to look at, and a prompt says what is missing.
#[test]
fn session_loads_without_a_reachable_model() {
    let mut bed = Bed::new(&["One.", "Two."], &[]);
    let session = bed.session();
    bed.with_gemini();
    bed.without("MY_KEY");
    let check = |bed: &mut Bed, code: i64, words: &str| {
        let mut client = bed.agent(None);
        let (opened, replayed) = client.call("session/load", bed.place(&session)).unwrap();
        assert_eq!(model_of(&opened), "mine/good");
        let replayed: String = replayed.iter().map(Value::to_string).collect();
        assert!(replayed.contains("my private matter") && replayed.contains("One."), "{replayed}");
        let (answer, _) = prompt(&mut client, &session, "and now?");
        assert_eq!(answer["error"]["code"], code, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(words), "{answer}");
        client
    };
    check(&mut bed, -32000, "No API key for mine: set MY_KEY").end().unwrap();
    bed.sandbox.env.push(("MY_KEY".into(), "k".into()));
    bed.settings(false);
    let mut client = check(&mut bed, -32603, r#"There is no provider "mine""#);
    // Who configures it again goes on, in the same session.
    bed.settings(true);
    client.call("session/load", bed.place(&session)).unwrap();
    let (answer, _) = prompt(&mut client, &session, "and now?");
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert_eq!(bed.n_asked(), (2, 0));
}

/// The flag is the user's word: it is kept, logged with the next prompt, and said.
#[test]
fn model_flag_wins_and_is_reported() {
    let mut bed = Bed::new(&["One.", "Three."], &["Two."]);
    let session = bed.session();
    bed.with_gemini();
    let before = bed.log(&session);
    let mut client = bed.agent(Some("gemini-4-hydrogen"));
    let (opened, _) = client.call("session/load", bed.place(&session)).unwrap();
    assert_eq!((model_of(&opened), bed.log(&session)), (&json!("gemini-4-hydrogen"), before));
    let (_, told) = prompt(&mut client, &session, "and now?");
    let words = "resumes with the model gemini-4-hydrogen, as castor was started with it; before, it was mine/good.";
    assert!(told.contains("\"notice\"") && told.contains(words), "{told}");
    assert_eq!(bed.n_asked(), (1, 1));
    // What is chosen after that holds, also where the same process loads the session again.
    prompt(&mut client, &session, "/model mine/good");
    let (opened, _) = client.call("session/load", bed.place(&session)).unwrap();
    assert_eq!(model_of(&opened), "mine/good");
    let (_, told) = prompt(&mut client, &session, "and now?");
    assert!(!told.contains("goes on with"), "{told}");
    client.end().unwrap();
    assert_eq!(bed.n_asked(), (2, 1));
    let shown = String::from_utf8(bed.castor(&["sessions", "show", &session]).stdout).unwrap();
    assert!(shown.contains("model    mine/good\n") && shown.contains("- Model: gemini-4-hydrogen"), "{shown}");
}

/// By the short id of the list, by `-c`, and never with a prompt in the place of an id.
#[test]
fn castor_run_finds_the_session_that_it_continues() {
    let bed = Bed::new(&["One.", "Two.", "Three."], &[]);
    let run = |args: &[&str]| {
        let it = bed.castor(&[&["run", "-m", "mine/good"], args].concat());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        (it.status.code(), text(&it.stdout), text(&it.stderr))
    };
    assert_eq!(run(&["my private matter"]).1, "One.");
    let list: Value = serde_json::from_slice(&bed.castor(&["sessions", "list", "--json"]).stdout).unwrap();
    let short = list[0]["shortId"].as_str().unwrap();
    assert_eq!((run(&["-r", short, "and now?"]).1.as_str(), run(&["-c", "and then?"]).1.as_str()), ("Two.", "Three."));
    let list: Value = serde_json::from_slice(&bed.castor(&["sessions", "list", "--json"]).stdout).unwrap();
    assert_eq!((list.as_array().unwrap().len(), &list[0]["turns"]), (1, &json!(3)));
    for words in ["and now?", "nowhere"] {
        let (code, said, why) = run(&["-r", words, "again"]);
        let hint = if words == "nowhere" { "session nowhere was not found" } else { "castor run -c \"and now?\"" };
        assert!(code == Some(42) && said.is_empty() && why.contains(hint), "{why}");
    }
}

/// The command line does as editors do: no other model, no demo.
#[test]
fn castor_run_goes_on_with_the_model_of_the_session() {
    let mut bed = Bed::new(&["One.", "Two."], &["Three."]);
    let run = |bed: &Bed, args: &[&str]| {
        let it = bed.castor(&[&["run"], args].concat());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (it.status.code(), text(&it.stdout), text(&it.stderr))
    };
    let (code, said, why) = run(&bed, &["-m", "mine/good", "my private matter"]);
    assert_eq!((code, said.trim()), (Some(0), "One."), "{why}");
    let (code, said, why) = run(&bed, &["-r", "latest", "and now?"]);
    assert_eq!((code, said.trim()), (Some(0), "Two."), "{why}");
    bed.without("MY_KEY");
    let (code, said, why) = run(&bed, &["-r", "latest", "and now?"]);
    assert_eq!((code, said.trim()), (Some(41), ""), "{why}");
    assert!(why.contains("set MY_KEY") && !why.contains("demo"), "{why}");
    bed.with_gemini();
    let (code, said, why) = run(&bed, &["-r", "latest", "-m", "gemini-4-hydrogen", "and now?"]);
    assert_eq!((code, said.trim()), (Some(0), "Three."), "{why}");
    assert!(why.contains("resumes with the model gemini-4-hydrogen"), "{why}");
    assert_eq!(bed.n_asked(), (2, 1));
}

/// A session of the demo stays with it when there is a key one day, and says so.
#[test]
fn the_demo_goes_on_as_the_demo() {
    let mut bed = Bed::new(&[], &[]);
    assert_eq!(bed.castor(&["run", "hi"]).status.code(), Some(0));
    bed.with_gemini();
    let it = bed.castor(&["run", "-r", "latest", "and now?"]);
    let why = String::from_utf8_lossy(&it.stderr);
    assert_eq!(it.status.code(), Some(0), "{why}");
    assert!(why.contains("the session resumes with the demo model; --model chooses another"), "{why}");
    assert_eq!(bed.n_asked(), (0, 0));
}

/// The flag is the user's word here, too: the next `-c` without it stays with that model.
#[test]
fn castor_run_continues_with_another_model() {
    let mut bed = Bed::new(&["One."], &["Two.", "Three."]);
    bed.with_gemini();
    let run = |args: &[&str]| {
        let it = bed.castor(&[&["run"], args].concat());
        (String::from_utf8(it.stdout).unwrap().trim().to_owned(), String::from_utf8(it.stderr).unwrap())
    };
    assert_eq!(run(&["-m", "mine/good", "my private matter"]).0, "One.");
    let (said, told) = run(&["-c", "-m", "gemini-4-hydrogen", "and now?"]);
    let words = "resumes with the model gemini-4-hydrogen, as castor was started with it; before, it was mine/good.";
    assert!(said == "Two." && told.contains(words), "{said}\n{told}");
    let (said, told) = run(&["-c", "and then?"]);
    assert!(said == "Three." && !told.contains("resumes with"), "{said}\n{told}");
    assert_eq!(bed.n_asked(), (1, 2));
    let list: Value = serde_json::from_slice(&bed.castor(&["sessions", "list", "--json"]).stdout).unwrap();
    assert_eq!((list.as_array().unwrap().len(), &list[0]["turns"]), (1, &json!(3)));
}
