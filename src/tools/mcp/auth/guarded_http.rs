//! HTTP of a login: castor's own client, to addresses that a server named. Private ones only where the server itself is.

use std::{net::IpAddr, sync::Arc, time::Duration};

use http::{Response, header::CONTENT_TYPE};
use reqwest::{Client, Url};
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRequest};
use tokio::time::timeout;

use super::{LoginError, LoginTarget};
use castor_base::mcp::McpGrant;
use castor_hands::http::{Http, public, safe_host};

/// For one answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Metadata and tokens are shorter.
const MAX_BODY: usize = 1 << 20;

/// Follows no redirect: where one leads is for rmcp to say, and is checked as any other address.
pub(super) struct GuardedHttp {
    http: Arc<Http>,
    /// The server, and what the user's settings name.
    named: Vec<Url>,
}

impl GuardedHttp {
    pub(super) fn new(target: &LoginTarget) -> Result<Self, LoginError> {
        let server =
            Url::parse(&target.url).map_err(|it| LoginError::Refused(format!("its URL is not valid: {it}")))?;
        let oauth = &target.oauth;
        let settings = [&oauth.authorization_url, &oauth.token_url, &oauth.registration_url];
        let provider = match &oauth.grant {
            McpGrant::Company(it) => Some(&it.token_url),
            _ => None,
        };
        let settings = settings.into_iter().flatten().chain(provider).filter(|_| !oauth.is_of_workspace);
        let settings = settings.filter_map(|it| Url::parse(it).ok());
        Ok(Self { http: target.http.clone(), named: [server].into_iter().chain(settings).collect() })
    }

    /// Tells whether the user named that host, or is on this machine with it.
    fn is_named(&self, url: &Url) -> bool {
        self.named.iter().any(|it| it.host_str() == url.host_str() || is_this_machine(it) && is_this_machine(url))
    }

    /// # Errors
    /// It is no address to ask or to send a user to: not encrypted, or of this machine or its network.
    pub(super) fn check(&self, url: &Url) -> Result<&Client, LoginError> {
        let is_named = self.is_named(url);
        let refused = |why: String| LoginError::Refused(why);
        if url.scheme() != "https" && !is_named {
            return Err(refused(format!("{} is not asked: its address is not encrypted", safe_host(url))));
        }
        self.http.client_for(url, is_named).map_err(|it| refused(format!("castor does not go on: {}", it.message)))
    }

    async fn send(&self, request: OAuthHttpRequest) -> Result<Response<Vec<u8>>, OAuthHttpClientError> {
        let request = reqwest::Request::try_from(request.request)?;
        let client = self.check(request.url())?;
        let mut answer = client.execute(request).await.map_err(reqwest::Error::without_url)?;
        let mut builder = Response::builder().status(answer.status());
        for (name, value) in answer.headers() {
            builder = builder.header(name, value);
        }
        // A server that takes the question for the beginning of a stream never ends it.
        let is_stream = answer.headers().get(CONTENT_TYPE).is_some_and(|it| it.as_bytes().starts_with(b"text/event"));
        let mut body = Vec::new();
        while !is_stream && let Some(piece) = answer.chunk().await.map_err(reqwest::Error::without_url)? {
            body.extend_from_slice(&piece);
            if body.len() > MAX_BODY {
                return Err(Box::new(LoginError::Failed(
                    "an answer of the authorization server has no end".to_owned(),
                )));
            }
        }
        Ok(builder.body(body)?)
    }
}

impl OAuthHttpClient for GuardedHttp {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            match timeout(PATIENCE, self.send(request)).await {
                Ok(it) => it,
                Err(_) => {
                    let why = format!("the authorization server did not answer within {} s", PATIENCE.as_secs());
                    Err(Box::new(LoginError::Failed(why)) as OAuthHttpClientError)
                }
            }
        })
    }
}

pub(super) fn is_this_machine(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    public::has_private_address(url) && bare.parse::<IpAddr>().map_or(true, |it| it.is_loopback())
}

#[cfg(test)]
mod tests {
    use reqwest::Url;

    use super::GuardedHttp;
    use crate::mcp::auth::LoginTarget;
    use castor_base::{mcp::McpOAuth, path::AbsPath};

    fn check(server: &str, address: &str) -> String {
        check_with(McpOAuth::default(), server, address)
    }

    fn check_with(oauth: McpOAuth, server: &str, address: &str) -> String {
        let home = AbsPath::new("/nowhere").unwrap();
        let target =
            LoginTarget { url: server.to_owned(), oauth, home, http: Default::default(), env: Default::default() };
        let guard = GuardedHttp::new(&target).unwrap();
        guard.check(&Url::parse(address).unwrap()).map_or_else(|why| why.to_string(), |_| "asked".to_owned())
    }

    #[test]
    fn a_user_may_name_a_private_address_and_a_workspace_may_not() {
        let address = "https://10.0.0.9/token";
        for is_of_workspace in [false, true] {
            let oauth = McpOAuth { is_of_workspace, token_url: Some(address.to_owned()), ..McpOAuth::default() };
            assert_eq!(check_with(oauth, "https://mcp.example.com/mcp", address) == "asked", !is_of_workspace);
        }
    }

    #[test]
    fn private_addresses_are_asked_only_where_the_server_is() {
        let public = "https://mcp.example.com/mcp";
        for (server, address, want) in [
            (public, "https://auth.example.com/", "asked"),
            (public, "http://auth.example.com/", "not encrypted"),
            (public, "https://169.254.169.254/latest", "this machine or its network"),
            (public, "https://[::1]/", "this machine or its network"),
            (public, "https://10.0.0.1/", "this machine or its network"),
            (public, "http://localhost:9/", "not encrypted"),
            (public, "https://localhost:9/", "this machine or its network"),
            ("http://localhost:8/mcp", "http://127.0.0.1:9/token", "asked"),
            ("http://127.0.0.1:8/mcp", "http://[::1]:9/token", "asked"),
            ("http://127.0.0.1:8/mcp", "http://169.254.169.254/", "not encrypted"),
            ("http://127.0.0.1:8/mcp", "https://169.254.169.254/", "this machine or its network"),
            ("http://127.0.0.1:8/mcp", "https://10.0.0.1/", "this machine or its network"),
            ("http://10.0.0.1:8/mcp", "http://10.0.0.1:9/token", "asked"),
            ("http://10.0.0.1:8/mcp", "https://10.0.0.2/token", "this machine or its network"),
        ] {
            let said = check(server, address);
            assert!(said.contains(want), "{server} {address}: {said}");
        }
    }
}
