//! `castor serve` under clients that mean it ill: those beside them are served as before.

use std::{
    io::{Read, Write},
    net::TcpStream,
    path::Path,
};

use serde_json::json;

use super::Server;

/// Some are told to come back, all others are closed.
#[cfg(target_os = "linux")]
#[test]
fn ten_thousand_sockets_take_none_from_those_that_are_in() {
    const SOCKETS: usize = 32;
    let server = Server::start("", &[&format!("--max-sockets={SOCKETS}")]);
    let mut inside = server.client();
    let held: Vec<TcpStream> = (1..SOCKETS).map(|_| server.connect()).collect();
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
