//! `castor serve` under clients that mean it ill: those beside them are served as before.

use std::{
    io::{Read, Write},
    net::TcpStream,
    path::Path,
};

use serde_json::json;

use super::{Server, Socket};

/// Some are told to come back, all others are closed.
#[cfg(target_os = "linux")]
#[test]
fn ten_thousand_sockets_take_none_from_those_that_are_in() {
    const SOCKETS: usize = 32;
    let server = Server::start("", &[&format!("--max-sockets={SOCKETS}")]);
    let mut inside = server.client();
    let held: Vec<Socket> = (1..SOCKETS).map(|_| server.client()).collect();
    let mut n_told = 0;
    for n in 0..10_000 {
        n_told += usize::from(knock(&server).starts_with("HTTP/1.1 503"));
        if n % 1000 == 0 {
            assert!(inside.call("session/list", json!({}))["result"]["sessions"].is_array());
            let [files, _] = server.open_files();
            assert!(files.len() < 3 * SOCKETS, "{} files are open", files.len());
        }
    }
    assert!(n_told > 1000, "only {n_told} were told why");
    drop(held);
    // As soon as it has seen that they are gone.
    assert!((0..100_000).any(|_| knock(&server).starts_with("HTTP/1.1 404")));
    server.client();
}

/// What a socket is answered; nothing, if it was closed before it was read.
fn knock(server: &Server) -> String {
    let (mut socket, mut said) = (server.connect(), Vec::new());
    _ = socket.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    _ = socket.read_to_end(&mut said);
    String::from_utf8_lossy(&said).into_owned()
}

/// One that has a token, too: the bytes of all large messages together have a limit.
#[test]
fn messages_that_never_end_do_not_fill_the_memory() {
    const PART: usize = 31 << 20;
    let server = Server::start("", &[]);
    let mut other = server.client();
    // A text frame, masked, of 32 MiB, of which the end does not come.
    let mut frame = vec![0x81, 0xff, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0];
    frame.resize(frame.len() + PART, b'x');
    let mut held: Vec<Socket> = (0..6).map(|_| server.client()).collect();
    let sent = held.iter().map(|it| it.stream().write_all(&frame).is_ok()).filter(|it| *it).count();
    assert!(sent >= 4, "four have room");
    assert!(other.call("session/list", json!({}))["result"]["sessions"].is_array());
    let why = "1013 too many large messages are on their way to this server: send yours again in a while";
    assert_eq!(held.last_mut().unwrap().try_next().unwrap_err(), why);
    drop(held);
    // There is room again.
    let large = json!({"cursor": "x".repeat(PART)});
    let is_taken = |it: &mut Socket| {
        it.try_send(&json!({"jsonrpc": "2.0", "id": "large", "method": "session/list", "params": large})).is_ok()
            && it.try_next().is_ok()
    };
    assert!((0..100).any(|_| is_taken(&mut server.client())));
    assert!(other.call("session/list", json!({}))["result"]["sessions"].is_array());
}

/// Silent sockets are as many as they like: a client that says who it is has a place.
#[test]
fn strangers_that_say_nothing_make_room_for_clients() {
    let server = Server::start("", &["--max-sockets=8"]);
    let mut inside = server.client();
    let silent: Vec<TcpStream> = (0..100).map(|_| server.connect()).collect();
    server.client();
    assert!(inside.call("session/list", json!({}))["result"]["sessions"].is_array());
    // They are closed without a word.
    for mut it in silent {
        let mut said = Vec::new();
        _ = it.read_to_end(&mut said);
    }
}

/// Of the head of a request, and of a TLS handshake.
#[test]
fn one_that_does_not_finish_its_first_words_is_closed() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tls");
    let flag = |name: &str, file: &str| format!("--tls-{name}={}", data.join(file).display());
    let (cert, key) = (flag("cert", "models.test.pem"), flag("key", "models.test.key"));
    let (plain, tls) = (Server::start("", &[]), Server::start("", &[&cert, &key]));
    let mut other = plain.client();
    let slow = [
        (&plain, &b"GET /acp HTTP/1.1\r\nHost: localhost\r\nUpgrade: webso"[..]),
        (&plain, b"POST /acp HTTP/1.1\r\nHost: localhost\r\n"),
        (&tls, b""),
        (&tls, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
    ];
    let open: Vec<TcpStream> = slow
        .into_iter()
        .map(|(server, words)| {
            let mut socket = server.connect();
            socket.write_all(words).unwrap();
            socket
        })
        .collect();
    assert!(other.call("session/list", json!({}))["result"]["sessions"].is_array());
    for mut socket in open {
        // Else the guard of the socket would end it with an error.
        let mut said = Vec::new();
        socket.read_to_end(&mut said).unwrap();
    }
    assert!(other.call("session/list", json!({}))["result"]["sessions"].is_array());
}
