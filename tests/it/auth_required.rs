//! Keys that are refused in the middle of a turn: the user is asked to renew them, and the turn goes on.

use std::{fs, io::Write, path::Path, process::Stdio};

use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox},
    model_server::{Asked, ModelServer, answers, calls, refuses, says, stream},
};

const OLD: &str = "canary-old-11111111";
const NEW: &str = "canary-new-22222222";

fn pages() -> Value {
    json!({ "elicitation": { "url": {} } })
}

/// A castor in front of `server`, whose key is stored.
struct Scene {
    sandbox: Sandbox,
    client: Client,
    session: String,
    /// All that castor said.
    said: String,
}

impl Scene {
    fn new(server: &ModelServer, capabilities: &Value) -> Self {
        Self::of(sandbox(server), capabilities)
    }

    fn of(sandbox: Sandbox, capabilities: &Value) -> Self {
        let mut client = Client::start(&sandbox);
        client.initialize(capabilities).unwrap();
        let session = client.new_session(&sandbox.workspace()).unwrap();
        Self { sandbox, client, session, said: String::new() }
    }

    fn begin(&mut self) {
        let prompt = json!([{ "type": "text", "text": "go" }]);
        self.client.request_as(json!("go"), "session/prompt", json!({ "sessionId": self.session, "prompt": prompt }));
    }

    /// The next request of castor, or the answer to the prompt.
    fn next(&mut self) -> Value {
        loop {
            let message = self.client.next().unwrap().expect("castor has ended");
            self.said += &format!("{message}\n");
            if message["id"] == "go" || (message.get("id").is_some() && message.get("method").is_some()) {
                return message;
            }
        }
    }

    fn respond(&mut self, to: &Value, result: &Value) {
        self.client.send(&json!({ "jsonrpc": "2.0", "id": to["id"], "result": result }));
    }

    fn accept(&mut self, to: &Value) {
        self.respond(to, &json!({ "action": "accept" }));
    }

    /// What castor keeps on the disk, but for the key itself.
    fn files(&self) -> String {
        files_below(&self.sandbox.home().join(".castor"))
    }

    /// Nobody but the server and the place of the key learns a key.
    fn check_secrets(&self) {
        for (place, text) in [("wire", &self.said), ("files", &self.files())] {
            assert!(!text.contains(OLD) && !text.contains(NEW), "a key is in {place}: {text}");
        }
    }
}

fn sandbox(server: &ModelServer) -> Sandbox {
    let mut res = Sandbox::new();
    res.env.push(("GOOGLE_GEMINI_BASE_URL".into(), server.url.clone()));
    res.write("home/.castor/settings.json", r#"{"security":{"auth":{"selectedType":"gemini-api-key"}}}"#);
    store(&res, OLD);
    res
}

/// As the user does in another terminal.
fn store(sandbox: &Sandbox, key: &str) {
    let mut command = sandbox.command();
    let child = command.arg("auth").args(["login", "--key-stdin", "--no-check"]).stdin(Stdio::piped());
    let mut child = child.stdout(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(key.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
}

fn files_below(folder: &Path) -> String {
    let mut res = String::new();
    for path in fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()) {
        match path.is_dir() {
            // Of files as they were: a file of secrets is held as any other.
            true if path.ends_with("checkpoints") => (),
            true => res += &files_below(&path),
            false if path.ends_with("credentials.json") => (),
            false => res += &String::from_utf8_lossy(&fs::read(path).unwrap()),
        }
    }
    res
}

fn keys(server: &ModelServer) -> Vec<String> {
    server.asked().iter().map(|it| it.header("x-goog-api-key").unwrap_or("-").to_owned()).collect()
}

fn list() -> String {
    calls("list_directory", &json!({ "dir_path": "." }))
}

#[test]
fn a_key_that_expires_in_mid_turn_is_renewed_and_the_turn_goes_on() {
    let server = ModelServer::start(vec![list(), refuses(OLD), says("Done.")]);
    let mut scene = Scene::new(&server, &pages());
    scene.sandbox.write("ws/found.txt", "");
    scene.begin();
    let asked = scene.next();
    assert_eq!((&asked["method"], &asked["params"]["mode"]), (&json!("elicitation/create"), &json!("url")), "{asked}");
    assert_eq!(asked["params"]["url"], format!("{}/", server.url));
    assert_eq!(asked["params"]["_meta"]["castor"]["authRequired"], json!({ "credential": "model/gemini" }));
    let message = asked["params"]["message"].as_str().unwrap();
    assert!(message.contains("no such key: [hidden]") && message.contains("`castor auth login`"), "{message}");
    store(&scene.sandbox, NEW);
    scene.accept(&asked);
    assert_eq!(scene.next()["result"]["stopReason"], "end_turn");
    assert_eq!(keys(&server), [OLD, OLD, NEW]);
    let (second, third) = (&server.asked()[1].body, &server.asked()[2].body);
    assert!(second == third && third.contains("found.txt"), "the same request was made again: {third}");
    assert!(scene.said.contains("Renewed: trying again."), "{}", scene.said);
    let log = scene.files();
    assert!(log.contains(r#""progress":"waiting""#) && log.contains(r#""progress":"resumed""#), "{log}");
    scene.check_secrets();
    // The next turn has the key, too.
    let server_said = scene.client.end().unwrap();
    assert!(!format!("{server_said:?}").contains("canary"));
}

/// What the user stored while the request was under way is found without a question.
#[test]
fn a_key_that_is_renewed_already_is_asked_for_by_nobody() {
    let server = ModelServer::start(vec![refuses(OLD), says("Done.")]);
    let mut scene = Scene::new(&server, &pages());
    store(&scene.sandbox, NEW);
    scene.begin();
    assert_eq!(scene.next()["result"]["stopReason"], "end_turn");
    assert_eq!(keys(&server), [OLD, NEW]);
    assert!(!scene.said.contains("auth_required"), "{}", scene.said);
}

/// The error of a client that can be asked nothing is the one that a declined question ends with.
#[test]
fn a_declined_question_ends_the_turn_with_the_error_that_names_the_setting() {
    let refused = || ModelServer::start(vec![list(), refuses(OLD)]);
    let (old_server, server) = (refused(), refused());
    let mut old = Scene::new(&old_server, &json!({ "elicitation": { "form": {} } }));
    old.begin();
    let before = old.next();
    assert_eq!(before["error"]["code"], -32000, "{before}");
    assert!(
        before["error"]["message"].as_str().unwrap().contains("Run `castor auth login` to replace it."),
        "{before}"
    );
    assert!(!old.said.contains("auth_required") && !old.said.contains("elicitation"), "{}", old.said);
    for action in ["decline", "cancel"] {
        let server = if action == "decline" { &server } else { &refused() };
        let mut scene = Scene::new(server, &pages());
        scene.begin();
        let asked = scene.next();
        scene.respond(&asked, &json!({ "action": action }));
        let after = scene.next();
        let of = |it: &Value| it["error"].to_string().replace(&server.url, "").replace(&old_server.url, "");
        let home = |scene: &Scene| scene.sandbox.home().display().to_string();
        assert_eq!(of(&after).replace(&home(&scene), ""), of(&before).replace(&home(&old), ""), "{action}");
        scene.check_secrets();
    }
}

#[test]
fn a_cancel_takes_the_question_back() {
    let server = ModelServer::start(vec![refuses(OLD), says("Done.")]);
    let mut scene = Scene::new(&server, &pages());
    scene.begin();
    let asked = scene.next();
    scene.client.notify("session/cancel", json!({ "sessionId": scene.session }));
    assert_eq!(scene.next()["result"]["stopReason"], "cancelled");
    assert!(scene.said.contains("$/cancel_request"), "{}", scene.said);
    scene.client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "error": { "code": -32800, "message": "no" } }));
    // The next prompt works.
    scene.begin();
    assert_eq!(scene.next()["result"]["stopReason"], "end_turn");
}

/// A client accepts as soon as the page is open: the user is asked once more, and told that nothing has changed.
#[test]
fn nothing_that_changed_is_said_and_the_key_is_tried_once_more() {
    for (last, works) in [(says("Done."), true), (refuses(OLD), false)] {
        let server = ModelServer::start(vec![refuses(OLD), last]);
        let mut scene = Scene::new(&server, &pages());
        scene.begin();
        let first = scene.next();
        scene.accept(&first);
        let second = scene.next();
        let message = second["params"]["message"].as_str().unwrap();
        assert!(message.starts_with("Nothing has changed yet"), "{message}");
        scene.accept(&second);
        let end = scene.next();
        match works {
            true => assert_eq!(end["result"]["stopReason"], "end_turn", "{end}"),
            false => assert_eq!(end["error"]["code"], -32000, "{end}"),
        }
        assert_eq!(keys(&server), [OLD, OLD]);
    }
}

/// A variable of the process cannot change any more; what the user stored after the question counts in its place.
#[test]
fn a_stored_key_takes_the_place_of_a_variable_that_was_refused() {
    let server = ModelServer::start(vec![refuses("canary-variable"), says("Done."), says("Again.")]);
    let mut sandbox = sandbox(&server);
    sandbox.env.push(("GEMINI_API_KEY".into(), "canary-variable".into()));
    let mut scene = Scene::of(sandbox, &pages());
    scene.begin();
    let asked = scene.next();
    assert!(asked["params"]["message"].as_str().unwrap().contains("the key in GEMINI_API_KEY"), "{asked}");
    store(&scene.sandbox, NEW);
    scene.accept(&asked);
    assert_eq!(scene.next()["result"]["stopReason"], "end_turn");
    scene.begin();
    assert_eq!(scene.next()["result"]["stopReason"], "end_turn");
    assert_eq!(keys(&server), ["canary-variable", NEW, NEW]);
}

/// A client without pages that starts logins in terminals.
#[test]
fn a_terminal_renews_the_key_where_no_page_can_be_opened() {
    let old_way = json!({ "_meta": { "terminal-auth": true } });
    for (capabilities, way) in [(json!({ "auth": { "terminal": true } }), "castor"), (old_way, "terminal-auth")] {
        let server = ModelServer::start(vec![refuses(OLD), says("Done."), refuses(NEW)]);
        let mut scene = Scene::new(&server, &capabilities);
        scene.begin();
        let asked = scene.next();
        assert_eq!(asked["method"], "session/request_permission", "{asked}");
        let kinds: Vec<&Value> = asked["params"]["options"].as_array().unwrap().iter().map(|it| &it["kind"]).collect();
        assert_eq!(kinds, ["allow_once", "reject_once"]);
        let meta = &asked["params"]["_meta"];
        match way {
            "castor" => assert_eq!(meta["castor"]["authRequired"]["methodId"], "terminal-login", "{asked}"),
            _ => assert_eq!(meta["terminal-auth"]["args"], json!(["auth", "login"]), "{asked}"),
        }
        store(&scene.sandbox, NEW);
        scene.respond(&asked, &json!({ "outcome": { "outcome": "selected", "optionId": "done" } }));
        assert_eq!(scene.next()["result"]["stopReason"], "end_turn");
        scene.begin();
        let asked = scene.next();
        scene.respond(&asked, &json!({ "outcome": { "outcome": "selected", "optionId": "stop" } }));
        assert_eq!(scene.next()["error"]["code"], -32000);
        scene.check_secrets();
    }
}

/// Also where the client has pages, a key may come with `authenticate` while the question is open.
#[test]
fn a_key_of_the_client_counts_while_the_question_is_open() {
    let server = ModelServer::start(vec![refuses(OLD), says("Done.")]);
    let mut scene = Scene::new(&server, &pages());
    scene.begin();
    let asked = scene.next();
    let params = json!({ "methodId": "gemini-api-key", "_meta": { "api-key": NEW } });
    assert_eq!(scene.client.call("authenticate", params).unwrap().0["result"], json!({}));
    scene.accept(&asked);
    assert_eq!(scene.next()["result"]["stopReason"], "end_turn");
    assert_eq!(keys(&server), [OLD, NEW]);
}

/// A log that ends in the middle of the question: the call has its end, and the session goes on.
#[test]
fn a_session_that_was_killed_at_the_question_loads() {
    let server = ModelServer::start(vec![list(), refuses(OLD), says("Again.")]);
    let mut scene = Scene::new(&server, &pages());
    scene.begin();
    scene.next();
    scene.client.kill().unwrap();
    store(&scene.sandbox, NEW);
    let mut client = Client::start(&scene.sandbox);
    client.initialize(&pages()).unwrap();
    let params = json!({ "sessionId": scene.session, "cwd": scene.sandbox.workspace(), "mcpServers": [] });
    let (loaded, replay) = client.call("session/load", params).unwrap();
    assert!(loaded.get("result").is_some(), "{loaded}");
    assert!(replay.iter().any(|it| it.to_string().contains("The key for gemini is refused")), "{replay:?}");
    scene.client = client;
    scene.begin();
    assert_eq!(scene.next()["result"]["stopReason"], "end_turn");
}

/// Two agents run into the same key at once: one question, for both of them, and the session above learns of it by itself.
#[test]
fn two_agents_share_one_question() {
    let answer = |it: &Asked| {
        let (is_helper, is_new) = (it.body.contains("You help well."), it.header("x-goog-api-key") == Some(NEW));
        Some(match (is_helper, is_new) {
            _ if is_helper && is_new => calls("complete_task", &json!({ "result": "helped" })),
            (true, _) => refuses(OLD),
            (false, true) => says("Both."),
            _ if it.body.contains("functionResponse") => refuses(OLD),
            _ => {
                let call = |n: u8| json!({ "functionCall": { "name": "invoke_agent", "args": { "agent_name": "helper", "prompt": format!("Part {n}") } } });
                let content = json!({ "role": "model", "parts": [call(1), call(2)] });
                let chunk = json!({ "candidates": [{ "content": content, "finishReason": "STOP" }] });
                stream(&format!("data: {chunk}\n\n"))
            }
        })
    };
    let server = ModelServer::answering(answer);
    let sandbox = sandbox(&server);
    sandbox.write("home/.castor/agents/helper.md", "---\nname: helper\ndescription: Helps.\n---\nYou help well.");
    let mut scene = Scene::of(sandbox, &pages());
    scene.begin();
    let asked = scene.next();
    // Both of them wait.
    let waits = |said: &str| said.matches(r#""status":"pending""#).count() >= 2;
    while !waits(&scene.said) {
        let message = scene.client.next().unwrap().expect("castor has ended");
        scene.said += &format!("{message}\n");
    }
    store(&scene.sandbox, NEW);
    scene.accept(&asked);
    assert_eq!(scene.next()["result"]["stopReason"], "end_turn", "{}", scene.said);
    assert_eq!(scene.said.matches("elicitation/create").count(), 1, "{}", scene.said);
    assert!(scene.said.matches("helped").count() >= 2 && scene.said.contains("Both."), "{}", scene.said);
    scene.check_secrets();
}

/// Each provider's refusal is a question; the key is in a file that is read again.
#[test]
fn every_dialect_asks() {
    let dialects: [(&str, &str, &str); 5] = [
        ("gemini", "x-goog-api-key: ", ""),
        ("vertex", "x-goog-api-key: ", ""),
        ("openai", "authorization: Bearer ", CHAT),
        ("responses", "authorization: Bearer ", RESPONSES),
        ("anthropic", "x-api-key: ", ANTHROPIC),
    ];
    for (dialect, header, events) in dialects {
        let is_gemini = events.is_empty();
        let good = if is_gemini { says("Done.") } else { stream(events) };
        let error = json!({ "error": { "code": 401, "type": "authentication_error", "message": "expired" } });
        let server = ModelServer::start(vec![answers("401 Unauthorized", &error.to_string()), good]);
        let mut sandbox = Sandbox::new();
        let variable = if is_gemini { "GOOGLE_API_KEY" } else { "OPENAI_API_KEY" };
        sandbox.write("ws/.env", &format!("{variable}={OLD}\n"));
        let provider = json!({ "type": dialect, "baseUrl": server.url, "apiKeyEnv": variable });
        let settings = if is_gemini { json!({}) } else { json!({ "providers": { "mine": provider } }) };
        sandbox.write("home/.castor/settings.json", &settings.to_string());
        match dialect {
            "gemini" => sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), server.url.clone())),
            "vertex" => sandbox.env.extend([
                ("GOOGLE_GENAI_USE_VERTEXAI".into(), "true".into()),
                ("GOOGLE_VERTEX_BASE_URL".into(), server.url.clone()),
            ]),
            _ => sandbox.args.extend(["--model", "mine/m"].map(Into::into)),
        }
        let mut scene = Scene::of(sandbox, &pages());
        scene.begin();
        let asked = scene.next();
        assert_eq!(asked["params"]["mode"], "url", "{dialect}: {asked}");
        scene.sandbox.write("ws/.env", &format!("{variable}={NEW}\n"));
        scene.accept(&asked);
        assert_eq!(scene.next()["result"]["stopReason"], "end_turn", "{dialect}: {}", scene.said);
        let sent = |key: &str| server.asked().iter().any(|it| it.head.contains(&format!("{header}{key}")));
        assert!(sent(OLD) && sent(NEW), "{dialect}: {}", server.asked()[1].head);
        scene.check_secrets();
    }
}

const CHAT: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Done.\"}}]}\n\n\
                    data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
const RESPONSES: &str = "data: {\"type\":\"response.output_text.delta\",\"delta\":\"Done.\"}\n\n\
                         data: {\"type\":\"response.completed\",\"response\":{}}\n\n";
const ANTHROPIC: &str = "data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"Done.\"}}\n\n\
                         data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n\
                         data: {\"type\":\"message_stop\"}\n\n";

/// Where nobody can be asked, the prompt fails at once, as ever.
#[test]
fn a_run_without_a_terminal_fails_at_once() {
    let server = ModelServer::start(vec![refuses(OLD)]);
    let mut sandbox = sandbox(&server);
    sandbox.args = ["run", "go"].map(Into::into).to_vec();
    let output = sandbox.command().stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert_eq!(output.status.code(), Some(41), "{text}");
    assert!(text.contains("Run `castor auth login` to replace it.") && !text.contains(OLD), "{text}");
}
