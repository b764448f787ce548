//! Credentials on their whole way: from terminals, pipes, variables and requests to the model, and nowhere else.

use std::{
    fs::{self, File},
    io::{Read, Write},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::Stdio,
};

use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox},
    model_server::{ModelServer, answers, calls, refuses, says},
};

const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// Runs `castor` with these arguments and this input; exit code and output.
fn castor(sandbox: &mut Sandbox, args: &[&str], stdin: &str) -> (Option<i32>, String) {
    sandbox.args = args.iter().map(Into::into).collect();
    let mut command = sandbox.command();
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

fn stored(sandbox: &Sandbox) -> Option<Value> {
    let bytes = fs::read(sandbox.home().join(".castor/credentials.json")).ok()?;
    serde_json::from_slice(&bytes).unwrap()
}

/// As a client does that appends the arguments of a terminal method to the command that it knows.
#[test]
fn login_works_behind_the_agents_own_flags() {
    let mut sandbox = Sandbox::new();
    let (code, text) = castor(&mut sandbox, &["acp", "auth", "status", "--json"], "");
    assert_eq!(code, Some(41), "{text}");
    let login = ["acp", "--model", "x", "auth", "login", "--key-stdin", "--no-check"];
    let (code, text) = castor(&mut sandbox, &login, "canary-canary-1234\n");
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("1234") && !text.contains("canary"), "{text}");
    assert_eq!(stored(&sandbox), Some(json!({ "gemini-api-key": "canary-canary-1234" })));
    let mode = |path: &str| fs::metadata(sandbox.home().join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(".castor"), mode(".castor/credentials.json")), (0o700, 0o600));
    assert_eq!(castor(&mut sandbox, &["auth", "status"], "").0, Some(0));
    assert_eq!(castor(&mut sandbox, &["acp", "auth", "logout"], "").0, Some(0));
    assert_eq!(stored(&sandbox), None);
}

#[test]
fn login_in_a_terminal_shows_nothing_of_the_key() {
    for (typed, code, key) in [("canary-1\n", 0, Some("canary-1")), ("canary\x03", 41, None)] {
        let mut sandbox = Sandbox::new();
        sandbox.args = ["auth", "login", "--no-check"].map(Into::into).to_vec();
        let terminal = nix::pty::openpty(None, None).unwrap();
        let mut command = sandbox.command();
        command.stdin(terminal.slave.try_clone().unwrap()).stderr(terminal.slave).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // It holds the terminal's other end open.
        drop(command);
        let mut master = File::from(terminal.master);
        let mut screen = Vec::new();
        while !screen.ends_with(b"shown): ") {
            let mut byte = [0];
            master.read_exact(&mut byte).unwrap();
            screen.extend(byte);
        }
        master.write_all(typed.as_bytes()).unwrap();
        let status = child.wait().unwrap();
        // Linux says the end of a terminal with an error.
        let _ = master.read_to_end(&mut screen);
        let screen = String::from_utf8(screen).unwrap();
        assert!(screen.contains("Gemini API key") && !screen.contains("canary"), "{screen}");
        assert_eq!(status.code(), Some(code), "{screen}");
        assert_eq!(stored(&sandbox), key.map(|it| json!({ "gemini-api-key": it })));
    }
}

/// An agent in front of `server`, and everything that it says.
struct Talk {
    client: Client,
    session: String,
    said: String,
}

impl Talk {
    fn start(sandbox: &Sandbox) -> Self {
        let mut client = Client::start(sandbox);
        client.initialize(&json!({})).unwrap();
        Self { client, session: String::new(), said: String::new() }
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        let (response, before) = self.client.call(method, params).unwrap();
        self.said += &format!("{before:?}{response}");
        response
    }

    fn open(&mut self, sandbox: &Sandbox) -> Value {
        let response = self.call("session/new", json!({"cwd": sandbox.workspace(), "mcpServers": []}));
        self.session = response["result"]["sessionId"].as_str().unwrap_or_default().to_owned();
        response
    }

    fn prompt(&mut self) -> Value {
        let prompt = json!([{ "type": "text", "text": "go" }]);
        let meta = json!({ "traceparent": TRACEPARENT });
        self.call("session/prompt", json!({"sessionId": self.session, "prompt": prompt, "_meta": meta}))
    }

    fn authenticate(&mut self, method: &str, meta: &Value) -> Value {
        self.call("authenticate", json!({"methodId": method, "_meta": meta}))
    }

    /// Ends the agent; what it wrote to stderr.
    fn end(mut self) -> (String, String) {
        let (_, rest) = self.client.end().unwrap();
        self.said += &format!("{rest:?}");
        let transcript = self.client.transcript();
        let (_, stderr) = transcript.split_once("-- stderr --").unwrap();
        (self.said, stderr.to_owned())
    }
}

/// What other tests do for sandboxes with one more variable.
fn sandbox(server: &ModelServer, env: &[(&str, &str)]) -> Sandbox {
    let mut res = Sandbox::new();
    res.env.push(("GOOGLE_GEMINI_BASE_URL".into(), server.url.clone()));
    res.env.extend(env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    res
}

#[test]
fn a_session_goes_on_with_new_credentials() {
    let server =
        ModelServer::start(vec![refuses("wrong-key"), says("one"), says("two"), refuses("other"), says("three")]);
    let sandbox = sandbox(&server, &[("GEMINI_API_KEY", "wrong-key")]);
    let mut talk = Talk::start(&sandbox);
    talk.open(&sandbox);
    let refused = talk.prompt();
    assert_eq!(refused["error"]["code"], -32000, "{refused}");
    assert_eq!(talk.authenticate("gemini-api-key", &json!({"api-key": "given-key"}))["result"], json!({}));
    assert_eq!(talk.prompt()["result"]["stopReason"], "end_turn");

    let gateway = json!({"gateway": {"baseUrl": server.url, "headers": {"x-team": "team-secret"}}});
    assert_eq!(talk.authenticate("gateway", &gateway)["result"], json!({}));
    assert_eq!(talk.prompt()["result"]["stopReason"], "end_turn");

    // Back to the environment; then a key that is stored while the session is open does not go before it.
    assert_eq!(talk.call("logout", json!({}))["result"], json!({}));
    assert_eq!(talk.prompt()["error"]["code"], -32000);
    assert_eq!(talk.authenticate("api-key", &json!({"api-key": "third-key"}))["result"], json!({}));
    assert_eq!(talk.prompt()["result"]["stopReason"], "end_turn");
    talk.end();
    let keys: Vec<_> = server.asked().iter().map(|it| it.header("x-goog-api-key").unwrap_or("-").to_owned()).collect();
    assert_eq!(keys, ["wrong-key", "given-key", "-", "wrong-key", "third-key"]);
    assert_eq!(server.asked()[2].header("x-team"), Some("team-secret"));
    assert_eq!(server.asked()[1].header("x-team"), None);
}

/// A login in another terminal counts from the prompt after the one that failed, without any request.
#[test]
fn a_stored_key_is_found_after_a_failure() {
    let server = ModelServer::start(vec![refuses("old-key"), says("one")]);
    let mut sandbox = sandbox(&server, &[]);
    sandbox.write("home/.castor/settings.json", r#"{"security":{"auth":{"selectedType":"gemini-api-key"}}}"#);
    let agent = sandbox.args.clone();
    castor(&mut sandbox, &["auth", "login", "--key-stdin", "--no-check"], "old-key");
    sandbox.args = agent.clone();
    let mut talk = Talk::start(&sandbox);
    talk.open(&sandbox);
    castor(&mut sandbox, &["auth", "login", "--key-stdin", "--no-check"], "new-key");
    assert_eq!(talk.prompt()["error"]["code"], -32000);
    assert_eq!(talk.prompt()["result"]["stopReason"], "end_turn");
    talk.end();
    let keys: Vec<_> = server.asked().iter().map(|it| it.header("x-goog-api-key").unwrap_or("-").to_owned()).collect();
    assert_eq!(keys, ["old-key", "new-key"]);
}

/// A key that the provider does not know is not stored; one that it cannot be asked about is.
#[test]
fn a_new_key_is_tried_once() {
    let busy = answers("500 Internal Server Error", "{}");
    let server = ModelServer::start(vec![refuses("not-a-key"), answers("200 OK", r#"{"models": []}"#), busy]);
    let mut sandbox = sandbox(&server, &[]);
    sandbox.write("home/.castor/settings.json", r#"{"security":{"auth":{"selectedType":"gemini-api-key"}}}"#);
    let login = ["auth", "login", "--key-stdin"];
    let (code, text) = castor(&mut sandbox, &login, "not-a-key");
    assert!(code == Some(41) && text.contains("the provider refuses this key"), "{text}");
    assert_eq!(stored(&sandbox), None);
    let (code, text) = castor(&mut sandbox, &login, "good-key");
    assert!(code == Some(0) && text.contains(", and it works.\nTry: castor run"), "{text}");
    let (code, text) = castor(&mut sandbox, &login, "later-key");
    assert!(code == Some(0) && text.contains("Warning: castor could not check the key"), "{text}");
    let asked = server.asked();
    let keys: Vec<_> = asked.iter().map(|it| it.header("x-goog-api-key").unwrap_or("-")).collect();
    assert_eq!(keys, ["not-a-key", "good-key", "later-key"]);
}

const CANARIES: [&str; 4] = ["canary-env-5a81", "canary-file-77c0", "canary-given-e21b", "canary-header-9d04"];

#[test]
fn secrets_reach_only_the_model_server() {
    let shell = || calls("run_shell_command", &json!({"command": "env | sort", "description": "looks"}));
    let answers = vec![shell(), says("a"), shell(), says("b"), refuses(CANARIES[3]), shell(), says("d")];
    let server = ModelServer::start(answers);
    let mut sandbox = sandbox(&server, &[("GEMINI_API_KEY", CANARIES[0]), ("CASTOR_LOG", "trace")]);
    let agent = ["acp", "--approval-mode", "yolo"].map(Into::into).to_vec();
    castor(&mut sandbox, &["auth", "login", "--key-stdin", "--no-check"], CANARIES[1]);
    sandbox.args = agent;
    let mut talk = Talk::start(&sandbox);
    talk.open(&sandbox);
    talk.prompt();
    talk.authenticate("gemini-api-key", &json!({"api-key": CANARIES[2]}));
    talk.prompt();
    talk.authenticate("gateway", &json!({"gateway": {"baseUrl": server.url, "headers": {"x-team": CANARIES[3]}}}));
    talk.prompt();
    let (mut said, mut stderr) = talk.end();
    assert!(stderr.lines().any(|it| it.contains(TRACEPARENT) && it.contains("asks ")), "the trace reaches the model");

    sandbox.env.retain(|(name, _)| name != "GEMINI_API_KEY");
    let mut talk = Talk::start(&sandbox);
    talk.open(&sandbox);
    talk.authenticate("gemini-api-key", &json!({}));
    talk.prompt();
    let (more_said, more_stderr) = talk.end();
    said += &more_said;
    stderr += &more_stderr;

    let seen = server.asked();
    let sent = |canary: &str| seen.iter().any(|it| it.head.contains(canary));
    assert!(CANARIES.iter().all(|it| sent(it)), "each was used");
    assert!(said.contains("PATH="), "the command ran: {said}");
    let context: String = seen.iter().map(|it| it.body.as_str()).collect();
    let logs = all_files(&sandbox.home().join(".castor"));
    assert!(logs.contains("PATH="), "the session log is among the files");
    for canary in CANARIES {
        for (place, text) in [("wire", &said), ("stderr", &stderr), ("model context", &context), ("logs", &logs)] {
            assert!(!text.contains(canary), "{canary} is in {place}");
        }
    }
}

/// The text of every file but the one that holds the key.
fn all_files(folder: &Path) -> String {
    let mut res = String::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => res += &all_files(&path),
            false if path.ends_with("credentials.json") => (),
            false => res += &String::from_utf8_lossy(&fs::read(path).unwrap()),
        }
    }
    res
}
