//! The HTTP transports of MCP: streamable HTTP, or the older one with server-sent events.

use std::collections::HashMap;

use reqwest::{
    Client, Url,
    header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue},
};
use rmcp::{
    RoleClient,
    transport::{
        StreamableHttpClientTransport, Transport,
        auth::{AuthClient, AuthError, AuthorizationManager},
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};

use crate::mcp::{
    auth::{self, LoginTarget},
    client::{Listener, OpenConnection},
    error::StartError,
    transport::{http_client::HttpClient, line_limit::LineOverflow, sse::Sse},
};
use castor_base::{mcp::McpTransport, text};
use castor_hands::http::Http;

pub(in crate::mcp) async fn open(
    url: &str,
    (headers, speech): (&[(String, String)], McpTransport),
    http: &Http,
    login: Option<LoginTarget>,
    listener: Listener,
) -> Result<OpenConnection, StartError> {
    let headers = header_map(headers)?;
    let url = Url::parse(url).map_err(|it| StartError::Refused(format!("its URL is not valid: {it}")))?;
    let client = http.client().map_err(|it| StartError::Refused(it.message))?.clone();
    let road = Road { url, client, headers };
    if speech == McpTransport::Sse {
        return road.open_older(login.as_ref(), listener).await;
    }
    let wants_credential = |it: &StartError| matches!(it, StartError::Unauthorized(_) | StartError::NeedsScopes(_));
    let mut first = road.open_newer(login.as_ref(), listener.clone(), Greeting::Question).await;
    // Some do not know the question, and do not say so in a way that can be told from a failure.
    if first.as_ref().is_err_and(|it| !wants_credential(it) && !it.is_final()) {
        first = road.open_newer(login.as_ref(), listener.clone(), Greeting::Handshake).await;
    }
    let Err(why) = first else { return first };
    // Without a token it would be refused once more.
    if speech == McpTransport::Http || wants_credential(&why) {
        return Err(why);
    }
    // The first failure is the one to tell: nearly all servers speak the newer form.
    match road.open_older(login.as_ref(), listener).await {
        Ok(it) => Ok(it),
        Err(_) => Err(why),
    }
}

/// How a connection begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Greeting {
    /// What are you? From 2026-07-28 on there is no more than that.
    Question,
    Handshake,
}

/// The way to a server.
struct Road {
    url: Url,
    client: Client,
    headers: HeaderMap,
}

impl Road {
    async fn open_newer(
        &self,
        login: Option<&LoginTarget>,
        listener: Listener,
        greeting: Greeting,
    ) -> Result<OpenConnection, StartError> {
        let mut config = StreamableHttpClientTransportConfig::with_uri(self.url.as_str());
        config.custom_headers = HashMap::from_iter(self.headers.iter().map(|(name, it)| (name.clone(), it.clone())));
        match tokens(login).await? {
            Some(manager) => {
                // It renews them, and tries once more with new ones when they are refused.
                let client = AuthClient::new(HttpClient::new(self.client.clone()), manager);
                greet(StreamableHttpClientTransport::with_client(client, config), listener, greeting).await
            }
            None => {
                let client = HttpClient::new(self.client.clone());
                greet(StreamableHttpClientTransport::with_client(client, config), listener, greeting).await
            }
        }
    }

    async fn open_older(&self, login: Option<&LoginTarget>, listener: Listener) -> Result<OpenConnection, StartError> {
        let mut headers = self.headers.clone();
        if let Some(manager) = tokens(login).await? {
            let token = match manager.get_access_token().await {
                Ok(it) => Some(it),
                Err(AuthError::AuthorizationRequired) => None,
                Err(it) => return Err(StartError::Gone(text::first_line(&it.to_string(), 300))),
            };
            if let Some(token) = token {
                headers.extend(header_map(&[(AUTHORIZATION.to_string(), format!("Bearer {token}"))])?);
            }
        }
        let overflow = LineOverflow::default();
        let transport = Sse::connect(self.client.clone(), self.url.clone(), headers, overflow.clone()).await?;
        let open = OpenConnection::handshake(transport, listener, None).await?;
        Ok(OpenConnection { overflow, ..open })
    }
}

async fn greet<T>(transport: T, listener: Listener, greeting: Greeting) -> Result<OpenConnection, StartError>
where
    T: Transport<RoleClient> + 'static,
{
    match greeting {
        Greeting::Question => OpenConnection::discover(transport, listener).await,
        Greeting::Handshake => OpenConnection::handshake(transport, listener, None).await,
    }
}

async fn tokens(login: Option<&LoginTarget>) -> Result<Option<AuthorizationManager>, StartError> {
    match login {
        Some(it) => auth::manager(it).await.map_err(|why| StartError::Refused(why.to_string())),
        None => Ok(None),
    }
}

fn header_map(headers: &[(String, String)]) -> Result<HeaderMap, StartError> {
    let mut res = HeaderMap::new();
    for (name, value) in headers {
        let (known, sent) = (name.parse::<HeaderName>(), value.trim().parse::<HeaderValue>());
        match (known, sent) {
            (Ok(name), Ok(mut value)) => {
                value.set_sensitive(true);
                res.insert(name, value);
            }
            // The value may be a secret.
            _ => return Err(StartError::Refused(format!("its header {:?} is not valid", text::head(name, 100)))),
        }
    }
    Ok(res)
}

#[cfg(test)]
mod tests {
    use super::{StartError, header_map};

    #[test]
    fn bad_headers_are_named_without_their_value() {
        let check = |name: &str, value: &str| header_map(&[(name.to_owned(), value.to_owned())]).map(|it| it.len());
        let refused = |why: &str| Err(StartError::Refused(why.to_owned()));
        assert_eq!(check("Authorization", "Bearer x\n"), Ok(1));
        assert_eq!(check("A b", "x"), refused("its header \"A b\" is not valid"));
        assert_eq!(check("A", "can\nary"), refused("its header \"A\" is not valid"));
    }
}
