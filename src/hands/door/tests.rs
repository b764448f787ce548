//! Hostile clients at a door, over real sockets: what reaches a server, and what does not.
#![allow(clippy::disallowed_methods, reason = "these are the programs inside")]

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    os::{fd::AsRawFd, unix::net::UnixStream},
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use rustls::{ClientConfig, ClientConnection, RootCertStore, crypto::ring, pki_types::ServerName};

use super::{Door, KnownHosts, OpenDoor, inside};
use castor_base::network::{HostGrant, HostRules, Reach};

/// What a client of TLS says first.
pub fn hello(name: &'static str) -> Vec<u8> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let mut client = ClientConnection::new(Arc::new(config), ServerName::try_from(name).unwrap()).unwrap();
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).unwrap();
    bytes
}

/// A server that says what it got.
struct Server {
    at: SocketAddr,
    got: mpsc::Receiver<Vec<u8>>,
}

impl Server {
    /// It answers the first bytes of each connection with `says`, and tells what came until its end.
    fn start(says: &'static [u8]) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let (at, (sender, got)) = (listener.local_addr().unwrap(), mpsc::channel());
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let sender = sender.clone();
                thread::spawn(move || {
                    let mut all = vec![0; 64 << 10];
                    stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
                    let mut n = stream.read(&mut all).unwrap_or(0);
                    _ = stream.write_all(says);
                    // Whatever else comes, until the other side ends.
                    while let Ok(more @ 1..) = stream.read(&mut all[n..]) {
                        n += more;
                    }
                    all.truncate(n);
                    _ = sender.send(all);
                });
            }
        });
        Self { at, got }
    }

    fn text(&self) -> String {
        let got = self.got.recv_timeout(Duration::from_secs(20)).unwrap();
        String::from_utf8_lossy(&got).into_owned()
    }
}

/// A door whose own port is at another number: many tests run in one network.
struct Bed {
    door: OpenDoor,
    proxy: SocketAddr,
    _runtime: tokio::runtime::Runtime,
}

fn open(allowed: &str, known: &str) -> Bed {
    let all = |text: &str| -> Vec<HostGrant> {
        text.split(',').filter(|it| !it.is_empty()).map(|it| HostGrant::parse(it, Some(443)).unwrap()).collect()
    };
    let hosts = HostRules { allowed: all(allowed), denied: all("closed.test:*") };
    let mut door = Door::new(&Reach { hosts, ..Reach::default() });
    door.known = Box::leak(Box::new(KnownHosts::read(known)));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (ours, theirs) = UnixStream::pair().unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let proxy = listener.local_addr().unwrap();
    door.proxy = proxy;
    inside::pass(&[listener.into()], &theirs).unwrap();
    assert!(ours.as_raw_fd() > 2);
    let door = {
        let _within = runtime.enter();
        door.open(ours.into()).unwrap()
    };
    Bed { door, proxy, _runtime: runtime }
}

impl Bed {
    /// What comes back for what is said, to the end.
    fn say(&self, pieces: &[&[u8]]) -> Vec<u8> {
        let mut stream = TcpStream::connect(self.proxy).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut all = Vec::new();
        for (n, piece) in pieces.iter().enumerate() {
            if n > 0 {
                // An answer to what was said before.
                let mut answer = [0; 4096];
                let n = stream.read(&mut answer).unwrap_or(0);
                all.extend(&answer[..n]);
            }
            if stream.write_all(piece).is_err() {
                break;
            }
        }
        _ = stream.shutdown(std::net::Shutdown::Write);
        _ = stream.read_to_end(&mut all);
        all
    }

    fn record(&self) -> String {
        let record = self.door.record.read();
        let refused: Vec<String> = record.refused.iter().map(|it| format!("{} {:?}", it.target, it.why)).collect();
        let reached: Vec<String> = record.reached.iter().map(ToString::to_string).collect();
        format!("{} | {}", reached.join(", "), refused.join(", "))
    }
}

fn request(line: &str, host: &str) -> Vec<u8> {
    format!("{line} HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes()
}

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

#[test]
fn a_granted_request_reaches_its_host_and_nothing_behind_it_does() {
    let server = Server::start(ANSWER);
    let bed = open("a.test:80", &format!("a.test:80={}", server.at));
    let hidden = [request("GET http://a.test/x", "a.test"), request("GET http://b.test/secret", "b.test")].concat();
    let back = bed.say(&[&hidden]);
    assert_eq!(back, ANSWER);
    assert_eq!(server.text(), "GET /x HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
    let post = b"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: b.test\r\n\r\n";
    bed.say(&[post]);
    let got = server.text();
    assert!(got.ends_with("\r\n\r\n2\r\nab\r\n0\r\n\r\n"), "{got:?}");
    assert_eq!(bed.record(), "a.test:80 | ");
}

/// Each gets its refusal, and no server hears of any.
#[test]
fn what_no_grant_names_is_asked_about_nowhere() {
    let server = Server::start(ANSWER);
    let at = server.at;
    let known = format!(
        "a.test:80={at},a.test:443={at},b.test:443={at},closed.test:443={at},private.test=10.0.0.1,rebound.test=127.0.0.1,\
         meta.test=169.254.169.254,mapped.test=::ffff:127.0.0.1"
    );
    let allowed = "a.test,a.test:80,closed.test,private.test:*,rebound.test:*,meta.test:* private,mapped.test:*,127.0.0.1:* private,[::1]:*,localhost:*";
    let bed = open(allowed, &known);
    let port = at.port();
    let connect = |host: &str| request(&format!("CONNECT {host}"), host);
    let socks = |kind: u8, host: &[u8], port: u16| [&[5, 1, 0, kind], host, &port.to_be_bytes()].concat();
    let by_socks = |order: &[u8]| bed.say(&[&[5, 1, 0], order]);
    let is_refused = |back: &[u8]| !back.windows(4).any(|it| it == b" 200") && !back.ends_with(b"hi");
    for line in [
        connect("b.test:443"),
        connect("a.test:444"),
        connect("a.test.b.test:443"),
        connect("closed.test:443"),
        connect("private.test:443"),
        connect("rebound.test:443"),
        connect("meta.test:80"),
        connect("mapped.test:80"),
        connect(&format!("127.0.0.1:{port}")),
        connect(&format!("2130706433:{port}")),
        connect(&format!("0x7f.1:{port}")),
        connect(&format!("0177.0.0.1:{port}")),
        connect(&format!("[::1]:{port}")),
        connect(&format!("[::ffff:127.0.0.1]:{port}")),
        connect(&format!("[::ffff:7f00:1]:{port}")),
        connect(&format!("localhost:{port}")),
        connect(&format!("localhost.:{port}")),
        connect(&format!("x.localhost:{port}")),
        connect(&format!("0:{port}")),
        connect("a.test%2eb.test:443"),
        connect("a.test\u{0}.b.test:443"),
        request("GET http://b.test/", "b.test"),
        request("GET http://b.test/", "a.test"),
        request("GET http://a.test/", "b.test"),
        request("GET http://a.test@b.test/", "a.test"),
        request("GET https://a.test/", "a.test"),
        request("GET /", "a.test"),
        b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n".to_vec(),
        b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nX: y\r\n z\r\n\r\n".to_vec(),
        b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
            .to_vec(),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        b"\x04\x01\x00\x50\x7f\x00\x00\x01\x00".to_vec(),
        b"\x16\x03\x01\x00\x05hello".to_vec(),
        vec![b'A'; 200 << 10],
    ] {
        let back = bed.say(&[&line]);
        assert!(is_refused(&back), "{:?} {:?}", String::from_utf8_lossy(&line), String::from_utf8_lossy(&back));
    }
    for order in [
        socks(1, &[127, 0, 0, 1], port),
        socks(1, &[10, 0, 0, 1], 443),
        socks(3, b"\x06b.test", 443),
        socks(3, b"\x09127.0.0.1", port),
        socks(3, b"\x0a2130706433", port),
        socks(3, b"\x0da.test\0b.test", 443),
        socks(4, &std::net::Ipv6Addr::LOCALHOST.octets(), port),
        [&[5, 2, 0, 1], &[127, 0, 0, 1][..], &port.to_be_bytes()].concat(),
        [&[5, 3, 0, 1], &[127, 0, 0, 1][..], &port.to_be_bytes()].concat(),
    ] {
        let back = by_socks(&order);
        assert_eq!(back, [&[5, 0][..], &super::socks::REFUSED].concat(), "{order:?}");
    }
    let record = bed.record();
    assert!(server.got.try_recv().is_err(), "{record}");
    assert!(record.starts_with(" | b.test:443 NotGranted, "), "{record}");
    for it in [
        "private.test:443 Private",
        "rebound.test:443 Forbidden",
        "meta.test:80 Forbidden",
        "closed.test:443 Forbidden",
        "a.test:80 OtherHost",
    ] {
        assert!(record.contains(it), "{it}: {record}");
    }
}

/// A tunnel to a host is for that host.
#[test]
fn what_is_said_in_a_tunnel_has_to_fit_it() {
    let server = Server::start(b"SERVER");
    let bed = open(
        "a.test:443,a.test:80,a.test:22",
        &["443", "80", "22"].map(|it| format!("a.test:{it}={}", server.at)).join(","),
    );
    let within = |port: u16, said: &[u8]| {
        let target = format!("a.test:{port}");
        bed.say(&[&request(&format!("CONNECT {target}"), &target), said])
    };
    for (port, said, passes) in [
        (443, hello("a.test"), true),
        (443, hello("b.test"), false),
        (443, hello("1.2.3.4"), false),
        (443, b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n".to_vec(), false),
        (443, b"SSH-2.0-x\r\n".to_vec(), false),
        (80, request("GET /", "a.test"), true),
        (80, request("GET /", "b.test"), false),
        (80, request("GET http://b.test/", "a.test"), false),
        (80, hello("b.test"), false),
        (80, b"\0\0\0\0".to_vec(), false),
        (22, b"SSH-2.0-x\r\n".to_vec(), true),
        (22, hello("b.test"), false),
        (22, request("GET /", "b.test"), false),
    ] {
        within(port, &said);
        let got = server.text();
        assert_eq!(!got.is_empty(), passes, "{port} {:?} {got:?}", String::from_utf8_lossy(&said));
    }
    let hidden = [request("GET /", "a.test"), request("GET /", "b.test")].concat();
    within(80, &hidden);
    assert_eq!(server.text(), "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
}

/// The door's end is that of its connections.
#[test]
fn a_closed_door_lets_nobody_go_on() {
    let server = Server::start(b"SERVER");
    let bed = open("a.test:22", &format!("a.test:22={}", server.at));
    let mut stream = TcpStream::connect(bed.proxy).unwrap();
    stream.write_all(&request("CONNECT a.test:22", "a.test:22")).unwrap();
    let mut answer = [0; 39];
    stream.read_exact(&mut answer).unwrap();
    stream.write_all(b"SSH-2.0-x\r\n").unwrap();
    let mut said = [0; 6];
    stream.read_exact(&mut said).unwrap();
    drop(bed);
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    assert!(matches!(stream.read(&mut said), Ok(0) | Err(_)));
    assert_eq!(server.text(), "SSH-2.0-x\r\n");
}
