//! The HTTP client, and readable messages for its errors.
#![allow(clippy::disallowed_methods)]

mod link;
pub mod public;
mod rate_limits;
mod roots;

use std::{
    error::Error,
    net::Ipv4Addr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use reqwest::{Client, RequestBuilder, Response, Url, header::LOCATION};
use tokio::{net::TcpStream, time::timeout};

pub use link::{HttpLink, LinkError, Proxies, ProxyHop};
pub use rate_limits::RateLimits;
use roots::Roots;

use castor_base::model::{Failure, FailureKind};

/// Reading the body of an error answer may take this long in all.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// One client for everything: connections are shared. It is built on first use, for that takes milliseconds.
#[derive(Debug, Default)]
pub struct Http {
    link: HttpLink,
    roots: OnceLock<Result<Arc<Roots>, LinkError>>,
    client: OnceLock<Result<Client, LinkError>>,
    public: OnceLock<Result<Client, LinkError>>,
    rate_limits: RateLimits,
}

impl Http {
    /// Builds nothing yet.
    pub fn new(link: HttpLink) -> Self {
        Self { link, ..Self::default() }
    }

    /// Another one, for connections that are made in another way; what is known of rate limits stays.
    #[must_use]
    pub fn with_link(&self, link: HttpLink) -> Self {
        Self { link, rate_limits: self.rate_limits.clone(), ..Self::default() }
    }

    /// What providers say of their rate limits.
    pub fn rate_limits(&self) -> &RateLimits {
        &self.rate_limits
    }

    /// How its connections are made.
    pub fn link(&self) -> &HttpLink {
        &self.link
    }

    /// The client; fails, with the same words each time, where TLS or the proxy settings are unusable.
    pub fn client(&self) -> Result<&Client, Failure> {
        usable(self.client.get_or_init(|| self.link.client(self.roots()?)))
    }

    /// The client that may ask `url`, which somebody else named, unless the user named its host.
    ///
    /// # Errors
    /// It is no address of the web, or one of this machine or its network.
    pub fn client_for(&self, url: &Url, is_users: bool) -> Result<&Client, Failure> {
        let refuse = |why: &str| Err(Failure::new(FailureKind::Auth, format!("{} {why}", safe_host(url))));
        match () {
            () if !matches!(url.scheme(), "http" | "https") || !url.has_host() => refuse("is no http(s) address"),
            () if is_users => self.client(),
            () if public::has_private_address(url) => refuse("is an address of this machine or its network"),
            () => self.public_client(),
        }
    }

    /// One for addresses that somebody else named: names lead to public addresses only. Behind a proxy the proxy looks
    /// names up, and decides; hosts that are asked without it are looked up here.
    fn public_client(&self) -> Result<&Client, Failure> {
        usable(self.public.get_or_init(|| self.link.public_client(self.roots()?)))
    }

    fn roots(&self) -> Result<Arc<Roots>, LinkError> {
        self.roots.get_or_init(|| self.link.roots()).clone()
    }

    /// Sends a request for `url`; fails with `Connect` when no answer begins in time, in one line for people.
    pub async fn send(&self, request: RequestBuilder, url: &Url) -> Result<Response, Failure> {
        self.send_within(request, url, self.link.idle).await
    }

    /// The same for a server that may work for so long before it answers.
    pub async fn send_within(
        &self,
        request: RequestBuilder,
        url: &Url,
        silence: Duration,
    ) -> Result<Response, Failure> {
        if let (true, Ok(roots)) = (url.scheme() == "https", self.roots()) {
            roots.read_ahead();
        }
        match timeout(silence, request.send()).await {
            Ok(sent) => sent.map_err(|it| self.connect_failure(&it, url)),
            Err(_) => {
                let (host, idle) = (safe_host(url), format_duration(silence));
                let text = format!("{host} took the request but sent nothing for {idle}.");
                Err(Failure::new(FailureKind::Connect, text))
            }
        }
    }

    /// The next piece of an answer's body, `None` at its end; fails with `Stream` when it breaks or is silent too long.
    /// Any byte ends a silence, those of a comment too.
    pub async fn next_chunk(&self, response: &mut Response) -> Result<Option<Bytes>, Failure> {
        match timeout(self.link.idle, response.chunk()).await {
            Ok(piece) => piece.map_err(|it| stream_failure(&it)),
            Err(_) => {
                let text = format!("The answer stopped: nothing came for {}.", format_duration(self.link.idle));
                Err(Failure::new(FailureKind::Stream, text))
            }
        }
    }

    /// A request that got no answer, in one line with what to do about it.
    fn connect_failure(&self, error: &reqwest::Error, url: &Url) -> Failure {
        let (host, cause) = (safe_host(url), root_cause(error));
        if error.is_builder() {
            return Failure::new(FailureKind::Auth, format!("The request could not be built: {cause}."));
        }
        let proxy = self.link.proxies.describe_proxy(url);
        let way = proxy.as_ref().map(|it| format!(" through the proxy {it}")).unwrap_or_default();
        let text = match error.is_connect() {
            true => format!("Could not connect to {host}{way}: {cause}. {}", connect_hint(&cause, proxy.is_some())),
            false => format!("The connection to {host}{way} broke before an answer could be read: {cause}."),
        };
        Failure::new(FailureKind::Connect, text)
    }
}

fn usable(client: &Result<Client, LinkError>) -> Result<&Client, Failure> {
    let why = |it: &LinkError| Failure::new(FailureKind::Auth, format!("The HTTP client could not be set up: {it}"));
    client.as_ref().map_err(why)
}

/// Tells whether a server listens on that port of this machine.
pub async fn is_open(port: u16, within: Duration) -> bool {
    let connect = TcpStream::connect((Ipv4Addr::LOCALHOST, port));
    matches!(timeout(within, connect).await, Ok(Ok(_)))
}

/// Host and port of `url`: all that may be shown of it, since user, path and query can hold keys.
pub fn safe_host(url: &Url) -> String {
    let host = url.host_str().unwrap_or("the model server");
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// Where an answer to a request for `url` sends it.
pub fn redirect_of(response: &Response, url: &Url) -> Option<Url> {
    let to = response.headers().get(LOCATION).filter(|_| response.status().is_redirection())?;
    url.join(to.to_str().ok()?).ok()
}

/// Tells whether a yes to the one is one to the other: the same host, perhaps with `www.` or by https.
pub fn is_same_site(from: &Url, to: &Url) -> bool {
    let host = |it: &Url| it.host_str().map(|it| it.strip_prefix("www.").unwrap_or(it).to_owned());
    let is_upgrade = from.port().is_none() && to.port().is_none() && to.scheme() == "https";
    let is_plain = to.username().is_empty() && to.password().is_none();
    let same_port = from.port_or_known_default() == to.port_or_known_default();
    is_plain && host(from) == host(to) && (same_port || is_upgrade)
}

/// Scheme, host and port of an address: paths and queries hold keys, too.
pub fn origin_of(address: &str) -> Option<String> {
    let url = Url::parse(address).ok().filter(|it| matches!(it.scheme(), "http" | "https") && it.has_host())?;
    Some(format!("{}/", url.origin().ascii_serialization()))
}

/// An answer that broke off.
pub fn stream_failure(error: &reqwest::Error) -> Failure {
    let text = format!("The connection broke in the middle of the answer: {}.", root_cause(error));
    Failure::new(FailureKind::Stream, text)
}

/// The first `max` bytes of an answer's body; what came before it broke or took too long.
pub async fn read_head(response: &mut Response, max: usize) -> Vec<u8> {
    let mut res = Vec::new();
    let read = async {
        while let Ok(Some(bytes)) = response.chunk().await {
            let room = max - res.len();
            res.extend_from_slice(bytes.get(..room).unwrap_or(&bytes));
            if res.len() >= max {
                break;
            }
        }
    };
    let _ = timeout(ERROR_BODY_TIMEOUT, read).await;
    res
}

/// The innermost cause: the outer layers only repeat that a request failed, and name its URL.
fn root_cause(error: &reqwest::Error) -> String {
    let mut deepest: Option<&dyn Error> = error.source();
    while let Some(next) = deepest.and_then(Error::source) {
        deepest = Some(next);
    }
    match deepest {
        Some(it) => it.to_string().trim_end_matches('.').to_owned(),
        None if error.is_timeout() => "it took too long".to_owned(),
        None => "the request failed".to_owned(),
    }
}

fn connect_hint(cause: &str, has_proxy: bool) -> &'static str {
    const PROXY: &str = "Does the proxy run, and is its address right (connection.proxy, HTTPS_PROXY, NO_PROXY)?";
    const HINTS: &[(&str, &str)] = &[
        ("no public address", "castor asks no addresses of this machine or its network that others name."),
        ("refused", "Is the server running, and are address and port right?"),
        ("lookup", "Check the address and your network."),
        ("dns", "Check the address and your network."),
        (
            "certificate",
            "A proxy may be in between (its authority goes into connection.caFile), or the clock may be wrong.",
        ),
        ("corrupt message", "The server may speak http, not https."),
        ("tunnel", "Check the proxy settings (connection.proxy, HTTPS_PROXY, NO_PROXY)."),
        ("unreachable", "Check your network."),
    ];
    let cause = cause.to_lowercase();
    let found = HINTS.iter().find(|(word, _)| cause.contains(word));
    // A certificate may be wrong behind a proxy that does run.
    if has_proxy && found.is_none_or(|(word, _)| *word != "certificate") {
        return PROXY;
    }
    found.map_or("Check your network and proxy settings.", |(_, hint)| hint)
}

fn format_duration(it: Duration) -> String {
    match it.subsec_millis() {
        0 => format!("{} s", it.as_secs()),
        _ => format!("{} ms", it.as_millis()),
    }
}
