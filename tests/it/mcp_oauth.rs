//! Logins at MCP servers by OAuth: from a prompt, by a command in a session, and in a terminal.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::PermissionsExt,
    process::Stdio,
};

use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox},
    oauth_server::{CANARY, Manners, OAuthServer, visit},
};

fn line(it: &str) -> String {
    crate::conversation::model::response(it).unwrap().to_string() + "\n"
}

fn sandbox(server: &OAuthServer, oauth: &Value) -> Sandbox {
    let mut res = Sandbox::new();
    let web = json!({"url": server.mcp_url(), "type": "http", "oauth": oauth});
    res.write("home/.castor/settings.json", &json!({"mcpServers": {"web": web}}).to_string());
    let call = line("call mcp_web_echo {\"text\":\"a\"}") + &line("text \"b\"");
    let script = res.write("script.jsonl", &call.repeat(3));
    res.args.extend(["--approval-mode", "yolo", "--fake-responses"].map(Into::into));
    res.args.push(script.into());
    res.env.push(("CASTOR_LOG".into(), "trace".into()));
    res
}

/// A prompt; `on_page` says what the client answers to a page. Returns all that castor said.
fn prompt(client: &mut Client, session: &str, text: &str, mut on_page: impl FnMut(&str) -> &'static str) -> String {
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
    client.request_as(json!("go"), "session/prompt", params);
    let mut said = String::new();
    loop {
        let message = client.next().unwrap().expect("castor has ended");
        said += &format!("{message}\n");
        if message["method"] == "elicitation/create" {
            let action = on_page(message["params"]["url"].as_str().unwrap());
            client.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": {"action": action}}));
        }
        if message["id"] == "go" {
            assert_eq!(message["result"]["stopReason"], "end_turn", "{said}");
            return said;
        }
    }
}

fn begin(sandbox: &Sandbox) -> (Client, String) {
    let mut client = Client::start(sandbox);
    client.initialize(&json!({"elicitation": {"url": {}}})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    (client, session)
}

fn accept(url: &str) -> &'static str {
    let page = visit(url);
    assert!(page.contains("You can close this page"), "{page}");
    "accept"
}

fn never(url: &str) -> &'static str {
    panic!("a page is shown: {url}")
}

/// The log and the wire have no part of a token; the file of tokens is its owner's alone.
fn check_secrets(sandbox: &Sandbox, said: &str) {
    // A command in a terminal has its log in what it said.
    let log = fs::read_to_string(sandbox.stderr()).unwrap_or_default();
    assert!(!said.contains(CANARY) && !log.contains(CANARY), "{said}\n{log}");
    let file = sandbox.home().join(".castor/credentials.json");
    if let Ok(meta) = fs::metadata(&file) {
        assert_eq!(meta.permissions().mode() & 0o777, 0o600);
    }
}

/// Runs a command of castor; `on_page` gets the address that it prints. Returns the exit code and what it said.
fn command(sandbox: &Sandbox, args: &[&str], on_page: impl Fn(&str)) -> (i32, String) {
    let mut bare = Sandbox::new();
    (bare.args, bare.env) = (Vec::new(), sandbox.env.clone());
    let mut command = bare.command();
    command.current_dir(sandbox.workspace());
    command.env("HOME", sandbox.home()).env("CASTOR_HOME", sandbox.home().join(".castor"));
    let mut child =
        command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok) {
        said += &format!("{line}\n");
        if line.starts_with("http") {
            on_page(&line);
        }
    }
    let errors = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    said += &errors.map(|it| it + "\n").collect::<String>();
    (child.wait().unwrap().code().unwrap(), said)
}

/// Discovery, registration, PKCE and the resource are checked by the server; a second castor has the token already.
#[test]
fn a_prompt_logs_in_where_the_client_opens_pages() {
    let server = OAuthServer::start(Manners::default());
    let sandbox = sandbox(&server, &json!({}));
    let (mut client, session) = begin(&sandbox);
    let said = prompt(&mut client, &session, "go", accept);
    assert!(said.contains("echo: a") && !said.contains("needs a login: type"), "{said}");
    assert!(said.contains("elicitation/complete"), "{said}");
    assert_eq!((server.n_asked("POST /register"), server.n_asked("POST /token authorization_code")), (1, 1));
    drop(client);
    let (mut client, session) = begin(&sandbox);
    let again = prompt(&mut client, &session, "go", never);
    assert!(again.contains("echo: a"), "{again}");
    assert_eq!(server.n_asked("POST /register"), 1);
    check_secrets(&sandbox, &(said + &again));
}

#[test]
fn who_declines_goes_on_without_the_server_and_is_told_the_way() {
    let server = OAuthServer::start(Manners::default());
    let sandbox = sandbox(&server, &json!({}));
    let (mut client, session) = begin(&sandbox);
    let said = prompt(&mut client, &session, "go", |_| "decline");
    assert!(said.contains("you declined the login"), "{said}");
    assert!(said.contains("it needs a login: type `/mcp login web`, or run `castor mcp login web`"), "{said}");
    assert!(!said.contains("echo: a"), "{said}");
    let said = prompt(&mut client, &session, "/mcp login web", accept);
    assert!(said.contains("You are logged in."), "{said}");
    let states = client.result("_castor/mcp/servers", json!({"sessionId": session})).unwrap();
    assert!(matches!(states["servers"][0]["status"].as_str(), Some("starting" | "ready")), "{states}");
    let said = prompt(&mut client, &session, "go", never);
    assert!(said.contains("echo: a"), "{said}");
}

/// A client that shows no pages prints the address.
#[test]
fn a_client_without_pages_prints_the_address() {
    let server = OAuthServer::start(Manners::default());
    let sandbox = sandbox(&server, &json!({}));
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "/mcp login web"}]});
    client.request_as(json!("go"), "session/prompt", params);
    let mut said = String::new();
    loop {
        let message = client.next().unwrap().expect("castor has ended");
        said += &format!("{message}\n");
        let text = message["params"]["update"]["content"]["text"].as_str().unwrap_or_default();
        if let Some(url) = text.lines().find(|it| it.starts_with("http")) {
            accept(url);
        }
        if message["id"] == "go" {
            break;
        }
    }
    assert!(said.contains("You are logged in."), "{said}");
    check_secrets(&sandbox, &said);
}

#[test]
fn a_refused_token_is_renewed_once_and_the_call_made_again() {
    let server = OAuthServer::start(Manners::default());
    let sandbox = sandbox(&server, &json!({}));
    let (mut client, session) = begin(&sandbox);
    prompt(&mut client, &session, "go", accept);
    server.refuse_token();
    let said = prompt(&mut client, &session, "go", never);
    assert!(said.contains("echo: a"), "{said}");
    assert_eq!(server.n_asked("POST /token refresh_token"), 1);
    // Nothing renews it any more: the user is asked in the middle of the call, which is then made once more.
    server.refuse_refresh();
    let said = prompt(&mut client, &session, "go", accept);
    assert!(said.contains("echo: a"), "{said}");
    assert_eq!(server.n_asked("POST /token authorization_code"), 2);
    check_secrets(&sandbox, &said);
}

#[test]
fn a_token_that_is_too_old_is_renewed_before_it_is_used() {
    let server = OAuthServer::start(Manners { expires_in: 1, ..Manners::default() });
    let sandbox = sandbox(&server, &json!({}));
    let (mut client, session) = begin(&sandbox);
    let said = prompt(&mut client, &session, "go", accept);
    assert!(said.contains("echo: a"), "{said}");
    assert!(server.n_asked("POST /token refresh_token") > 0);
    assert_eq!(server.n_asked("POST /token authorization_code"), 1);
}

/// A call wants more than the login gave: castor asks for that, too, and once.
#[test]
fn a_call_that_needs_another_scope_leads_to_a_login_with_it() {
    let server = OAuthServer::start(Manners { call_scope: Some("write"), ..Manners::default() });
    let sandbox = sandbox(&server, &json!({}));
    let (mut client, session) = begin(&sandbox);
    let mut pages = Vec::new();
    let said = prompt(&mut client, &session, "go", |url| {
        pages.push(url.to_owned());
        accept(url)
    });
    assert!(said.contains("echo: a"), "{said}");
    assert_eq!(pages.len(), 2);
    assert!(pages[0].contains("scope=read") && !pages[0].contains("write"), "{pages:?}");
    assert!(pages[1].contains("scope=read+write"), "{pages:?}");
}

#[test]
fn private_addresses_are_refused_wherever_a_server_names_them() {
    let to = |it: &str| Some(it.to_owned());
    let far = "http://169.254.169.254/latest";
    for (manners, words) in [
        (Manners { issuer: to("http://169.254.169.254"), ..Manners::default() }, ""),
        (Manners { issuer: to("https://10.0.0.1"), ..Manners::default() }, ""),
        (Manners { token_endpoint: to(far), ..Manners::default() }, "169.254.169.254"),
        (
            Manners { token_endpoint: to("https://[fd00::1]/token"), ..Manners::default() },
            "this machine or its network",
        ),
        (Manners { redirect: to(far), ..Manners::default() }, ""),
        (Manners { redirect: to("http://[::1]:9/x"), ..Manners::default() }, ""),
    ] {
        let server = OAuthServer::start(manners);
        let sandbox = sandbox(&server, &json!({}));
        let (code, said) = command(&sandbox, &["mcp", "login", "web"], |url| panic!("a page is shown: {url}"));
        assert_eq!(code, 41, "{said}");
        assert!(said.contains("castor: the login failed: ") && said.contains(words), "{said}");
        assert!(!said.contains("refused (os error"), "it was asked: {said}");
    }
}

#[test]
fn logins_and_logouts_in_a_terminal() {
    let server = OAuthServer::start(Manners { registers_nobody: true, ..Manners::default() });
    let bare = sandbox(&server, &json!({}));
    let (code, said) = command(&bare, &["mcp", "login", "web"], |_| ());
    assert_eq!(code, 41, "{said}");
    assert!(said.contains("registers no clients: set `oauth.clientId`"), "{said}");
    let sandbox = sandbox(&server, &json!({"clientId": "known", "scopes": ["a", "b"], "audiences": ["x"]}));
    let (code, said) = command(&sandbox, &["mcp", "login", "web"], |url| {
        assert!(url.contains("client_id=known") && url.contains("scope=a+b") && url.contains("audience=x"), "{url}");
        accept(url);
    });
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("You are logged in at web."), "{said}");
    check_secrets(&sandbox, &said);
    let (code, said) = command(&sandbox, &["mcp", "test", "web"], |_| ());
    assert!(code == 0 && said.contains("- `web`: ready"), "{code} {said}");
    let (code, said) = command(&sandbox, &["mcp", "logout", "web"], |_| ());
    assert_eq!((code, said.as_str()), (0, "You are logged out, and the tokens are revoked.\n"));
    assert_eq!(server.n_asked("POST /revoke"), 2);
    let kept = fs::read_to_string(sandbox.home().join(".castor/credentials.json")).unwrap_or_default();
    assert!(!kept.contains(CANARY), "{kept}");
    let (code, said) = command(&sandbox, &["mcp", "test"], |_| ());
    assert!(code == 1 && said.contains("run `castor mcp login web`"), "{code} {said}");
    let (code, said) = command(&sandbox, &["mcp", "login", "other"], |_| ());
    assert!(code == 42 && said.contains("the settings have no MCP server \"other\""), "{code} {said}");
}

/// Not a test: the browser of the next one.
#[test]
fn browse() {
    if let Ok(page) = std::env::var("PAGE_OF_BROWSER") {
        accept(&page);
        std::process::exit(0);
    }
}

/// Nobody but the browser visits the page.
#[test]
fn the_browser_is_started_on_the_page_with_nothing_of_the_users() {
    let server = OAuthServer::start(Manners::default());
    let mut sandbox = sandbox(&server, &json!({}));
    let (seen, itself) = (sandbox.workspace().join("seen"), std::env::current_exe().unwrap());
    let script = format!(
        "#!/bin/sh\nexec > '{}' 2>&1\nenv\nPAGE_OF_BROWSER=\"$1\" exec '{}' --exact mcp_oauth::browse --nocapture --quiet\n",
        seen.display(),
        itself.display()
    );
    let browser = sandbox.write("browser", &script);
    fs::set_permissions(&browser, fs::Permissions::from_mode(0o755)).unwrap();
    sandbox.env.push(("BROWSER".into(), browser.display().to_string()));
    sandbox.env.push(("GEMINI_API_KEY".into(), CANARY.into()));
    sandbox.env.push(("DISPLAY".into(), ":7".into()));
    let (code, said) = command(&sandbox, &["mcp", "login", "web"], |_| ());
    assert!(code == 0 && said.contains("You are logged in at web."), "{code} {said}");
    let env = fs::read_to_string(&seen).unwrap();
    assert!(env.contains("DISPLAY=:7\n") && !env.contains(CANARY), "{env}");
    check_secrets(&sandbox, &said);
    fs::remove_file(&seen).unwrap();
    let visited = |url: &str| _ = accept(url);
    let (code, said) = command(&sandbox, &["mcp", "login", "web", "--no-browser"], visited);
    assert!(code == 0 && !seen.exists(), "{code} {said}");
}

#[test]
fn servers_come_and_go_in_settings_files() {
    let sandbox = Sandbox::new();
    let run = |args: &[&str]| {
        let words: Vec<&str> = ["mcp"].iter().chain(args).copied().collect();
        command(&sandbox, &words, |_| ())
    };
    let settings = |path: &str| {
        let text = fs::read_to_string(sandbox.home().parent().unwrap().join(path)).unwrap_or_default();
        serde_json::from_str::<Value>(&text).unwrap_or_default()
    };
    let (code, said) = run(&["add", "-s", "user", "web", "https://example.com/mcp", "-H", "A: b"]);
    assert!(code == 0 && said.contains("Added the MCP server web in "), "{code} {said}");
    let web = json!({"url": "https://example.com/mcp", "type": "http", "headers": {"A": "b"}});
    assert_eq!(settings("home/.castor/settings.json")["mcpServers"]["web"], web);
    let (code, said) = run(&["add", "local", "node", "x.js", "--port", "1"]);
    assert!(code == 0 && said.contains("once you trust this folder"), "{code} {said}");
    let local = json!({"command": "node", "args": ["x.js", "--port", "1"]});
    assert_eq!(settings("ws/.castor/settings.json")["mcpServers"]["local"], local);
    let (code, said) = run(&["disable", "web"]);
    assert!(code == 0 && said.contains("off in new sessions"), "{code} {said}");
    assert_eq!(settings("home/.castor/settings.json")["mcp"]["excluded"], json!(["web"]));
    let (code, said) = run(&["login", "web"]);
    assert!(code == 42 && said.contains("is off: excluded by `mcp.excluded`"), "{code} {said}");
    let (code, _) = run(&["enable", "web"]);
    assert_eq!((code, &settings("home/.castor/settings.json")["mcp"]["excluded"]), (0, &json!([])));
    let (code, said) = run(&["remove", "-s", "user", "web"]);
    assert!(code == 0 && said.contains("Removed the MCP server web"), "{code} {said}");
    let (code, said) = run(&["remove", "web"]);
    assert!(code == 42 && said.contains("has no MCP server web"), "{code} {said}");
    sandbox.write("ws/.castor/settings.json", "{ // mine\n}");
    let (code, said) = run(&["add", "x", "node"]);
    assert!(code == 1 && said.contains("has comments, which would be lost"), "{code} {said}");
}
