//! The door: what commands in the sandbox reach of the network by the names of hosts, and how a user is asked.
#![cfg(target_os = "linux")]

mod escapes;

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener},
    process::Stdio,
    sync::{Arc, Mutex},
    thread,
};

use serde_json::{Value, json};

use crate::{
    client::{Namespaces, Sandbox},
    confined::{Bed, work_in_auto},
};

/// A web server of this machine, under whatever names a test gives it.
struct WebServer {
    at: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl WebServer {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (at, heads) = (listener.local_addr().unwrap(), Arc::<Mutex<Vec<String>>>::default());
        let known = heads.clone();
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut head = vec![0; 4096];
                let n = stream.read(&mut head).unwrap_or(0);
                known.lock().unwrap().push(String::from_utf8_lossy(&head[..n]).into_owned());
                let answer = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\nREACHED";
                _ = stream.write_all(answer.as_bytes());
            }
        });
        Self { at, heads }
    }

    fn heads(&self) -> String {
        self.heads.lock().unwrap().join("")
    }

    /// For castor's environment.
    fn known_as(&self, names: &[&str]) -> (String, String) {
        let known: Vec<String> = names.iter().map(|it| format!("{it}={}", self.at)).collect();
        ("CASTOR_TEST_NETWORK".to_owned(), known.join(","))
    }
}

fn has_mounts(sandbox: &Sandbox) -> bool {
    sandbox.namespaces != Namespaces::Nobody
}

/// Runs a line by `castor exec` where these hosts are open.
fn run(server: &WebServer, settings: Value, line: &str) -> (Option<i32>, String, String) {
    let mut sandbox = Sandbox::new();
    sandbox.write("home/.castor/settings.json", &settings.to_string());
    sandbox.write("ws/.env", "API_TOKEN=canary-of-the-workspace");
    sandbox.env.push(server.known_as(&["a.test:80", "a.test:8080", "b.test:80", "closed.test:80", "c.sub.test:80"]));
    sandbox.args = ["exec", "--", "bash", "-c", line].map(Into::into).to_vec();
    let out = sandbox.command().stdin(Stdio::null()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (out.status.code(), text(out.stdout), text(out.stderr))
}

fn open(allow: &[&str]) -> Value {
    json!({"security": {"network": {"allow": allow, "deny": ["closed.test"]}}})
}

/// Trust says what is written, not what is reached: the user's own settings open a host, and the advice names them.
#[test]
fn an_untrusted_folder_reaches_what_the_users_settings_open() {
    let server = WebServer::start();
    let mut sandbox = Sandbox::new();
    sandbox.env.clear();
    sandbox.write("home/.castor/settings.json", &open(&["a.test:80"]).to_string());
    sandbox.write("ws/.castor/settings.json", "{\"hooks\": {\"SessionStart\": []}}");
    sandbox.env.push(server.known_as(&["a.test:80", "b.test:80"]));
    let line = "curl -sS http://a.test/x; curl -sS http://b.test/y; exit 1";
    sandbox.args = ["exec", "--", "bash", "-c", line].map(Into::into).to_vec();
    let out = sandbox.command().stdin(Stdio::null()).output().unwrap();
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(String::from_utf8_lossy(&out.stdout).contains("REACHED"), "{errors}");
    let advice = "refused b.test:80; security.network.allow = [\"b.test:80\"] in your settings";
    assert!(errors.contains(advice) && !errors.contains("trust"), "{errors}");
}

const DIRECT: &str = "env -u http_proxy -u HTTP_PROXY -u ALL_PROXY -u all_proxy";

#[test]
fn a_host_of_the_settings_is_reached_and_others_are_refused_by_name() {
    let server = WebServer::start();
    let (code, out, errors) = run(&server, open(&["a.test:80"]), "curl -sS http://a.test/x; curl -sS http://b.test/y");
    assert_eq!(code, Some(0), "{out} {errors}");
    assert!(out.starts_with("REACHED") && out.contains("b.test:80 was not allowed"), "{out} {errors}");
    assert!(errors.contains("refused b.test:80") && errors.contains("security.network.allow"), "{errors}");
    let heads = server.heads();
    assert!(heads.starts_with("GET /x HTTP/1.1\r\nHost: a.test\r\n") && !heads.contains("/y"), "{heads}");
}

/// By the resolver within, and at a port that is none of the usual ones.
#[test]
fn programs_that_know_no_proxy_reach_it_too() {
    let server = WebServer::start();
    if has_mounts(&Sandbox::new()) && Sandbox::new().namespaces == Namespaces::Castor {
        let line = format!(
            "{DIRECT} curl -sS http://a.test/x && {DIRECT} curl -sS http://a.test:8080/y && {DIRECT} curl -sS http://c.sub.test/z; \
             {DIRECT} curl -sS http://b.test/no; {DIRECT} curl -sS http://sub.test/no"
        );
        let (_, out, errors) = run(&server, open(&["a.test:80", "a.test:8080", "*.sub.test:80"]), &line);
        assert_eq!(out, "REACHEDREACHEDREACHED", "{errors}");
        assert!(errors.contains("refused b.test:80"), "{errors}");
        let heads = server.heads();
        assert!(heads.contains("GET /y") && heads.contains("GET /z") && !heads.contains("/no"), "{heads}");
    }
}

/// A workspace closes hosts, and opens none.
#[test]
fn a_workspace_only_tightens() {
    let server = WebServer::start();
    let mut sandbox = Sandbox::new();
    sandbox.write("home/.castor/settings.json", &open(&["a.test:80"]).to_string());
    let own = json!({"security": {"network": {"allow": ["b.test:80"], "deny": ["a.test"]}}});
    sandbox.write("ws/.castor/settings.json", &own.to_string());
    sandbox.env.push(server.known_as(&["a.test:80", "b.test:80"]));
    let line = "curl -s http://a.test/x; curl -s http://b.test/y";
    sandbox.args = ["exec", "--", "bash", "-c", line].map(Into::into).to_vec();
    let out = sandbox.command().stdin(Stdio::null()).output().unwrap();
    assert!(!String::from_utf8_lossy(&out.stdout).contains("REACHED"), "{out:?}");
    assert_eq!(server.heads(), "");
}

/// A command to which a host is open sees no secrets of the workspace; one without sees them.
#[test]
fn hosts_and_secrets_do_not_come_together() {
    let server = WebServer::start();
    let (_, out, _) = run(&server, open(&["a.test:80"]), "cat .env; echo end");
    assert_eq!(out, "end\n");
    let (_, out, _) = run(&server, open(&[]), "cat .env");
    assert!(out.contains("canary"), "{out}");
}

/// Sends a prompt, and answers its questions. What was asked, and all that was told.
fn prompt(bed: &mut Bed, option: &str) -> (Vec<Value>, String) {
    let id = json!(format!("p{}", bed.client.transcript().len()));
    let params = json!({"sessionId": bed.session, "prompt": [{"type": "text", "text": "go"}]});
    bed.client.request_as(id.clone(), "session/prompt", params);
    let (mut asked, mut told) = (Vec::new(), String::new());
    loop {
        let message = bed.client.next().unwrap().expect("the end of castor");
        told += &message.to_string();
        if message["method"] == "session/request_permission" {
            let result = json!({"outcome": {"outcome": "selected", "optionId": option}});
            bed.client.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}));
            asked.push(message["params"].clone());
        } else if message["id"] == id {
            return (asked, told);
        }
    }
}

fn session(server: &WebServer, commands: &[&str]) -> Option<Bed> {
    let bed = Bed::prepared(commands, |it| {
        work_in_auto(it);
        it.write("home/.castor/settings.json", r#"{"security":{"enablePermanentToolApproval":true}}"#);
        it.env.push(server.known_as(&["a.test:80", "b.test:80", "registry.npmjs.org:443", "pypi.org:443"]));
    });
    has_mounts(&bed.sandbox).then_some(bed)
}

fn question(asked: &Value) -> (String, Vec<String>) {
    let text = asked["toolCall"]["content"][0]["content"]["text"].as_str().unwrap_or_default().to_owned();
    let options = asked["options"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap().to_owned());
    (text, options.collect())
}

#[test]
fn a_refused_host_is_asked_about_by_name_for_once_or_for_the_session() {
    let server = WebServer::start();
    let lines = [
        "curl -sS http://a.test/one",
        "curl -sS http://a.test/two | tail -1",
        "curl -sS http://a.test/three; curl -sS http://b.test/no",
        "python3 -c 'print(open(\".e\" + \"nv\").read())'",
    ];
    let Some(mut bed) = session(&server, &lines) else { return };
    bed.sandbox.write("ws/.env", "API_TOKEN=canary-of-the-workspace");
    let (asked, told) = prompt(&mut bed, "allow_once");
    assert_eq!(asked.len(), 1, "{told}");
    let (text, options) = question(&asked[0]);
    assert!(text.contains("did not let this command reach a.test:80. Run the whole command again"), "{text}");
    assert!(
        options.iter().any(|it| it == "Allow commands network access to a.test:80 for this session"),
        "{options:?}"
    );
    assert!(told.contains("REACHED"), "{told}");
    // Once is once; a pipe hides nothing.
    let (asked, told) = prompt(&mut bed, "allow_session");
    assert!(asked.len() == 1 && told.contains("REACHED"), "{told}");
    let (asked, told) = prompt(&mut bed, "reject_once");
    assert!(question(&asked[0]).0.contains("reach b.test:80.") && told.contains("REACHED"), "{told}");
    let (_, told) = prompt(&mut bed, "reject_once");
    assert!(!told.contains("canary"), "{told}");
    let params = json!({"sessionId": bed.session, "prompt": [{"type": "text", "text": "/network"}]});
    let (_, told) = bed.client.call("session/prompt", params).unwrap();
    let told: String = told.iter().map(ToString::to_string).collect();
    assert!(
        told.contains("Reached:\\n- a.test:80, by 3 commands") && told.contains("Refused:\\n- b.test:80"),
        "{told}"
    );
}

/// One choice opens all that package managers read from, and nothing else.
#[test]
fn a_registry_is_asked_about_with_its_group() {
    let server = WebServer::start();
    let line = "curl -sS https://registry.npmjs.org/left-pad";
    let Some(mut bed) = session(&server, &[line, "curl -sS https://pypi.org/simple; curl -sS http://b.test/"]) else {
        return;
    };
    let (asked, told) = prompt(&mut bed, "allow_always_save");
    let (text, options) = question(&asked[0]);
    assert!(text.contains("registry.npmjs.org:443"), "{text}");
    let group = "network access to package registries (npm, PyPI, crates.io, Go, RubyGems, Maven)";
    assert!(options.iter().any(|it| it.contains(group) && it.contains("in this folder")), "{options:?}");
    // It is no server of TLS, and that is all that is wrong with it.
    assert!(told.contains("\"reached\":[\"registry.npmjs.org:443\"]"), "{told}");
    let (asked, told) = prompt(&mut bed, "reject_once");
    assert!(question(&asked[0]).0.contains("reach b.test:80."), "{told}");
    let saved = std::fs::read_to_string(bed.sandbox.home().join(".castor/sandbox-saved.toml")).unwrap();
    assert!(saved.contains("hosts = [\"registries\"]"), "{saved}");
}

/// A server that the user runs is another program's, and its port is asked about.
#[test]
fn a_port_of_this_machine_is_asked_about_with_the_program_that_listens() {
    let server = WebServer::start();
    let line = format!("curl -s http://127.0.0.1:{}/health", server.at.port());
    let Some(mut bed) = session(&server, &[&line, &line]) else { return };
    let (asked, told) = prompt(&mut bed, "allow_session");
    assert_eq!(asked.len(), 1, "{told}");
    let (text, _) = question(&asked[0]);
    assert!(text.contains(&format!("port {} of this machine (", server.at.port())), "{text}");
    assert!(told.contains("REACHED"), "{told}");
    let (asked, told) = prompt(&mut bed, "reject_once");
    assert!(asked.is_empty() && told.contains("REACHED"), "{told}");
}

/// Says how much of a secret it sees, and whether it reaches a host.
const READS: &str = "python3 -c 'print(\"saw\", len(open(\".e\" + \"nv\").read()))'";

/// A session in which `a.test` is open, and a secret lies in the workspace.
fn open_session(server: &WebServer, commands: &[&str]) -> Option<Bed> {
    let bed = Bed::prepared(commands, |it| {
        work_in_auto(it);
        let settings = json!({"security": {"enablePermanentToolApproval": true, "network": {"allow": ["a.test:80"]}}});
        it.write("home/.castor/settings.json", &settings.to_string());
        it.write("ws/.env", "API_TOKEN=canary-of-the-workspace");
        it.write("ws/.env.local", "");
        it.write("ws/.aws/credentials", "canary-of-the-folder");
        it.write("ws/.aws/sso/cache/token", "canary-of-the-folder");
        it.env.push(server.known_as(&["a.test:80", "b.test:80"]));
    });
    has_mounts(&bed.sandbox).then_some(bed)
}

/// One question opens a file together with the hosts, and says both; the same is asked once.
#[test]
fn an_attempt_to_read_a_secret_beside_hosts_is_asked_about_with_both() {
    let server = WebServer::start();
    let both = "python3 -c 'open(\".e\" + \"nv\"); open(\".e\" + \"nv.local\")'; curl -sS http://a.test/x";
    let lines = [READS, READS, "cat stray.py | head -1; curl -sS http://a.test/x", both];
    let Some(mut bed) = open_session(&server, &lines) else { return };
    let (asked, told) = prompt(&mut bed, "reject_once");
    assert_eq!(asked.len(), 1, "{told}");
    let (text, options) = question(&asked[0]);
    let root = bed.sandbox.workspace().canonicalize().unwrap().display().to_string();
    let want = "The sandbox hid ~/.env, where secrets are kept, from a command that may reach a.test:80. Run the whole command \
                again with both that file and a.test:80?";
    assert!(text.replace(&root, "~").ends_with(want), "{text}");
    let rest = "to read ~/.env with network access to a.test:80";
    for way in
        [format!("Allow `{READS}` {rest} for this session"), format!("Always allow commands {rest} in this folder")]
    {
        assert!(options.iter().any(|it| it.replace(&root, "~").starts_with(&way)), "{way}: {options:?}");
    }
    assert!(told.contains("saw 0") && !told.contains("canary"), "{told}");
    let (asked, told) = prompt(&mut bed, "allow_once");
    assert!(asked.is_empty() && told.contains("saw 0"), "{told}");
    // Who reads none is not asked.
    let (asked, told) = prompt(&mut bed, "allow_once");
    assert!(asked.is_empty() && told.contains("REACHED"), "{told}");
    // Two files are one question.
    let (asked, _) = prompt(&mut bed, "reject_once");
    let (text, _) = question(&asked[0]);
    assert!(asked.len() == 1 && text.contains("/.env, ") && text.contains("/.env.local, where"), "{text}");
}

/// A whole folder of secrets is one question, whichever file in it was wanted; who only lists it is asked nothing.
#[test]
fn an_attempt_to_read_in_a_secret_folder_beside_hosts_is_asked_about_once() {
    let server = WebServer::start();
    let read = |file: &str| format!("python3 -c 'print(\"saw\", len(open(\".a\" + \"ws/{file}\").read()))'");
    let lists = "ls -R . | wc -l; find . -type d | wc -l; curl -sS http://a.test/x";
    let both = format!("{}; {}", read("credentials"), read("sso/cache/token"));
    let lines = [lists, &read("none"), &read("sso/cache/token"), &both, &read("credentials")];
    let Some(mut bed) = open_session(&server, &lines) else { return };
    let (asked, told) = prompt(&mut bed, "reject_once");
    assert!(asked.is_empty() && told.contains("REACHED"), "{told}");
    let (asked, told) = prompt(&mut bed, "reject_once");
    assert!(asked.is_empty() && told.contains("No such file"), "{told}");
    let (asked, told) = prompt(&mut bed, "reject_once");
    let (text, _) = question(&asked[0]);
    let root = bed.sandbox.workspace().canonicalize().unwrap().display().to_string();
    let want = "The sandbox hid ~/.aws, where secrets are kept, from a command that may reach a.test:80. Run the whole command \
                again with both that file and a.test:80?";
    assert!(asked.len() == 1 && text.replace(&root, "~").ends_with(want), "{text}");
    assert!(told.contains("saw 0") && !told.contains("canary"), "{told}");
    // The same is asked once, for other files in it, too.
    let (asked, told) = prompt(&mut bed, "allow_once");
    assert!(asked.is_empty() && told.contains("saw 0\\nsaw 0"), "{told}");
    let Some(mut bed) = open_session(&server, &[&both, &both]) else { return };
    let (asked, told) = prompt(&mut bed, "allow_session");
    assert!(asked.len() == 1 && told.contains("saw 20\\nsaw 20"), "{told}");
    let (asked, told) = prompt(&mut bed, "reject_once");
    assert!(asked.is_empty() && told.contains("saw 20\\nsaw 20"), "{told}");
}

#[test]
fn a_yes_to_a_secret_with_hosts_holds_for_those_hosts() {
    let server = WebServer::start();
    let reads_and_reaches = format!("{READS}; curl -sS http://a.test/x");
    let other = format!("{READS}; curl -sS http://b.test/x");
    let lines = [READS, &reads_and_reaches, READS, &reads_and_reaches, &other];
    let Some(mut bed) = open_session(&server, &lines) else { return };
    let (asked, told) = prompt(&mut bed, "allow_once");
    assert!(asked.len() == 1 && told.contains("saw 33"), "{told}");
    // Once is once, and the line is the line.
    let (asked, told) = prompt(&mut bed, "allow_session");
    assert!(asked.len() == 1 && told.contains("saw 33") && told.contains("REACHED"), "{told}");
    let (asked, told) = prompt(&mut bed, "allow_always_save");
    assert!(asked.len() == 1 && told.contains("saw 33"), "{told}");
    let saved = std::fs::read_to_string(bed.sandbox.home().join(".castor/sandbox-saved.toml")).unwrap();
    assert!(saved.contains("/.env\"]") && saved.contains("hosts = [\"a.test:80\"]"), "{saved}");
    let (asked, told) = prompt(&mut bed, "reject_once");
    assert!(asked.is_empty() && told.contains("saw 33") && told.contains("REACHED"), "{told}");
    // With one more host it is another question: first the host, and the secret is hidden then.
    let (asked, told) = prompt(&mut bed, "allow_once");
    let texts: Vec<String> = asked.iter().map(|it| question(it).0).collect();
    assert!(texts.len() == 2 && texts[0].contains("reach b.test:80."), "{texts:?}");
    assert!(
        texts[1].contains("/.env, where secrets are kept, from a command that may reach a.test:80, b.test:80."),
        "{texts:?}"
    );
    let (first, rest) = told.split_once("reach b.test:80").unwrap();
    assert!(first.contains("saw 33") && rest.contains("saw 0"), "{told}");
}
