//! The end of a login: the browser comes back to an address of this machine, with a code.

use std::{future::Future, net::Ipv4Addr, time::Duration};

use reqwest::Url;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    time::timeout,
};

use super::LoginError;
use castor_base::text;

/// How long somebody may take to log in.
pub(super) const PATIENCE_MINUTES: u64 = 5;
/// For one connection: browsers open some that they do not use.
const CONNECTION: Duration = Duration::from_secs(10);
const MAX_REQUEST: usize = 16 << 10;
const PATH: &str = "/oauth/callback";

/// What the page brought.
#[derive(Debug, PartialEq)]
pub(super) struct Code {
    pub(super) code: String,
    pub(super) issuer: Option<String>,
}

/// Listens until somebody comes back.
pub(super) struct Callback {
    listener: TcpListener,
    pub(super) redirect: String,
    path: String,
}

impl Callback {
    /// `named`: as the authorization server knows it; otherwise any free port.
    pub(super) async fn listen(named: Option<&str>) -> Result<Self, LoginError> {
        let refused = |why: &str| LoginError::Refused(format!("`oauth.redirectUri` {why}"));
        let named = named.map(|it| Url::parse(it).map_err(|_| refused("is no address"))).transpose()?;
        if let Some(it) = &named
            && (it.scheme() != "http" || !matches!(it.host_str(), Some("localhost" | "127.0.0.1")))
        {
            return Err(refused("is not on this machine: write http://localhost:PORT/oauth/callback"));
        }
        let port = named.as_ref().and_then(Url::port).unwrap_or_default();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await;
        let listener = listener.map_err(|it| LoginError::Failed(format!("no port for the way back: {it}")))?;
        let free = listener.local_addr().map_err(|it| LoginError::Failed(it.to_string()))?.port();
        Ok(match named {
            // Without a port in it the one that was found joins it.
            Some(mut it) => {
                _ = it.set_port(Some(free));
                Self { listener, path: it.path().to_owned(), redirect: it.into() }
            }
            None => {
                let redirect = format!("http://127.0.0.1:{free}{PATH}");
                Self { listener, redirect, path: PATH.to_owned() }
            }
        })
    }

    /// Until somebody comes with this state, or `is_over`: then the page is closed. Others are sent away.
    pub(super) async fn wait(self, state: &str, is_over: impl Future<Output = ()>) -> Result<Code, LoginError> {
        let (sender, mut found) = mpsc::channel(1);
        let serve = async {
            loop {
                let Ok((socket, _)) = self.listener.accept().await else { continue };
                let (sender, path, state) = (sender.clone(), self.path.clone(), state.to_owned());
                tokio::spawn(async move {
                    if let Ok(Some(it)) = timeout(CONNECTION, answer(socket, &path, &state)).await {
                        _ = sender.send(it).await;
                    }
                });
            }
        };
        tokio::select! {
            it = found.recv() => it.unwrap_or(Err(LoginError::TimedOut(PATIENCE_MINUTES))),
            () = serve => Err(LoginError::TimedOut(PATIENCE_MINUTES)),
            () = is_over => Err(LoginError::TimedOut(PATIENCE_MINUTES)),
        }
    }
}

/// Reads one request and answers it. `None`: it is about something else.
async fn answer(mut socket: TcpStream, path: &str, state: &str) -> Option<Result<Code, LoginError>> {
    let mut request = Vec::new();
    let mut piece = [0; 2048];
    while !request.windows(4).any(|it| it == b"\r\n\r\n") && request.len() < MAX_REQUEST {
        let n = socket.read(&mut piece).await.ok().filter(|it| *it > 0)?;
        request.extend_from_slice(piece.get(..n)?);
    }
    let line = String::from_utf8_lossy(&request).lines().next().unwrap_or_default().to_owned();
    let found = read_request(&line, path, state);
    let (status, words) = match &found {
        None => ("404 Not Found", "This is not the page of a login."),
        Some(Ok(_)) => ("200 OK", "The login came back to castor. You can close this page."),
        Some(Err(_)) => ("200 OK", "The login was refused. You can close this page."),
    };
    let page = format!("<!doctype html><meta charset=utf-8><title>castor</title><p>{words}</p>");
    let text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nContent-Security-Policy: default-src 'none'\r\n\r\n{page}",
        page.len()
    );
    // The browser may be gone by now: what it brought counts.
    _ = socket.write_all(text.as_bytes()).await;
    _ = socket.shutdown().await;
    found
}

/// `GET /oauth/callback?code=…&state=… HTTP/1.1`
fn read_request(line: &str, path: &str, state: &str) -> Option<Result<Code, LoginError>> {
    let target = line.strip_prefix("GET ")?.split(' ').next()?;
    let url = Url::parse("http://localhost").ok()?.join(target).ok().filter(|it| it.path() == path)?;
    let get = |name: &str| url.query_pairs().find(|(it, _)| it == name).map(|(_, value)| value.into_owned());
    // Any page of the browser can come here; only that of this login knows the state.
    if get("state")? != state {
        return None;
    }
    if let Some(error) = get("error") {
        let why = get("error_description").unwrap_or(error);
        return Some(Err(LoginError::Denied(text::first_line(&why, super::MAX_REPEATED))));
    }
    Some(Ok(Code { code: get("code")?, issuer: get("iss") }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods)]

    use std::net::Ipv4Addr;

    use reqwest::Url;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpStream,
        sync::oneshot,
    };

    use super::{Callback, Code, LoginError, read_request};

    #[test]
    fn only_the_page_of_this_login_counts() {
        let check = |line: &str| read_request(line, "/oauth/callback", "s");
        let code = |issuer: Option<&str>| Some(Ok(Code { code: "c d".to_owned(), issuer: issuer.map(str::to_owned) }));
        assert_eq!(check("GET /oauth/callback?code=c%20d&state=s HTTP/1.1"), code(None));
        assert_eq!(check("GET /oauth/callback?state=s&code=c+d&iss=https://i HTTP/1.1"), code(Some("https://i")));
        let denied = Some(Err(LoginError::Denied("access_denied".to_owned())));
        assert_eq!(check("GET /oauth/callback?error=access_denied&state=s HTTP/1.1"), denied);
        for other in [
            "GET /oauth/callback?code=c&state=x HTTP/1.1",
            "GET /oauth/callback?code=c HTTP/1.1",
            "GET /oauth/callback?error=access_denied HTTP/1.1",
            "GET /oauth/callback?state=s HTTP/1.1",
            "GET /favicon.ico HTTP/1.1",
            "POST /oauth/callback?code=c&state=s HTTP/1.1",
            "",
        ] {
            assert_eq!(check(other), None, "{other}");
        }
    }

    #[tokio::test]
    async fn the_way_back_is_on_this_machine() {
        for named in ["https://localhost/x", "http://example.com:1/x", "x"] {
            let refused = Callback::listen(Some(named)).await.err().map(|it| it.to_string());
            assert!(refused.is_some_and(|it| it.starts_with("`oauth.redirectUri` is")), "{named}");
        }
        let named = Callback::listen(Some("http://localhost/back")).await.unwrap();
        assert!(named.redirect.starts_with("http://localhost:") && named.redirect.ends_with("/back"));
        assert!(Callback::listen(None).await.unwrap().redirect.starts_with("http://127.0.0.1:"));
    }

    /// The first line that the page answers with.
    async fn get(port: u16, target: &str) -> String {
        let mut socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        socket.write_all(format!("GET {target} HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.unwrap();
        answer.lines().next().unwrap().to_owned()
    }

    /// Five minutes are the caller's: here somebody says when they are over.
    #[tokio::test]
    async fn the_page_is_there_until_the_time_is_over() {
        for comes in [true, false] {
            let callback = Callback::listen(None).await.unwrap();
            let port = Url::parse(&callback.redirect).unwrap().port().unwrap();
            let (end, over) = oneshot::channel::<()>();
            let waiting = tokio::spawn(async move { callback.wait("s", async { over.await.unwrap() }).await });
            // It outlives whoever is not meant.
            let strangers = get(port, "/oauth/callback?code=c&state=x").await;
            assert_eq!((strangers.as_str(), waiting.is_finished()), ("HTTP/1.1 404 Not Found", false));
            let found = if comes {
                assert_eq!(get(port, "/oauth/callback?code=c&state=s").await, "HTTP/1.1 200 OK");
                Ok(Code { code: "c".to_owned(), issuer: None })
            } else {
                end.send(()).unwrap();
                Err(LoginError::TimedOut(5))
            };
            // The page went with the listener. Its port may be another test's by now.
            assert_eq!(waiting.await.unwrap(), found);
        }
    }
}
