//! The HTTP transports of MCP: streamable HTTP, or the older one with server-sent events.

use std::{collections::HashMap, error::Error};

use reqwest::{
    Url,
    header::{HeaderMap, HeaderName, HeaderValue},
};
use rmcp::{
    service::ClientInitializeError,
    transport::{
        StreamableHttpClientTransport,
        streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError},
    },
};

use super::{
    server::{Listener, OpenConnection},
    sse::Sse,
};
use crate::{
    base::{mcp::McpTransport, text},
    world::http::Http,
};

pub(super) async fn open(
    url: &str,
    headers: &[(String, String)],
    speech: McpTransport,
    http: &Http,
    listener: Listener,
) -> Result<OpenConnection, String> {
    let headers = header_map(headers)?;
    let url = Url::parse(url).map_err(|it| format!("its URL is not valid: {it}"))?;
    let client = http.client().map_err(|it| it.message)?.clone();
    if speech == McpTransport::Sse {
        let transport = Sse::connect(client, url, headers).await?;
        return OpenConnection::handshake(transport, listener, None).await;
    }
    let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
    config.custom_headers = HashMap::from_iter(headers.iter().map(|(name, value)| (name.clone(), value.clone())));
    let transport = StreamableHttpClientTransport::with_client(client.clone(), config);
    let first = OpenConnection::handshake(transport, listener.clone(), None).await;
    let Err(why) = first else { return first };
    if speech == McpTransport::Http {
        return Err(why);
    }
    // The first failure is the one to tell: nearly all servers speak the newer form.
    let Ok(transport) = Sse::connect(client, url, headers).await else { return Err(why) };
    OpenConnection::handshake(transport, listener, None).await.map_err(|_| why)
}

fn header_map(headers: &[(String, String)]) -> Result<HeaderMap, String> {
    let mut res = HeaderMap::new();
    for (name, value) in headers {
        let (known, sent) = (name.parse::<HeaderName>(), value.trim().parse::<HeaderValue>());
        match (known, sent) {
            (Ok(name), Ok(mut value)) => {
                value.set_sensitive(true);
                res.insert(name, value);
            }
            // The value may be a secret.
            _ => return Err(format!("its header {:?} is not valid", text::head(name, 100))),
        }
    }
    Ok(res)
}

/// Why the handshake failed, in one line: the innermost cause says most.
pub(super) fn connect_error(error: &ClientInitializeError) -> String {
    if error.is_authorization_required() {
        return "it wants authorization; castor cannot do OAuth for MCP servers yet, so set a header with a token"
            .to_owned();
    }
    let mut deepest: &dyn Error = match error {
        ClientInitializeError::TransportError { error, .. } => error.error.as_ref(),
        other => other,
    };
    // This one does not name its cause as such.
    if let Some(StreamableHttpError::Client(it)) = deepest.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        deepest = it;
    }
    while let Some(next) = deepest.source() {
        deepest = next;
    }
    text::first_line(&deepest.to_string(), 300)
}

#[cfg(test)]
mod tests {
    use super::header_map;

    #[test]
    fn bad_headers_are_named_without_their_value() {
        let check = |name: &str, value: &str| header_map(&[(name.to_owned(), value.to_owned())]).map(|it| it.len());
        assert_eq!(check("Authorization", "Bearer x\n"), Ok(1));
        assert_eq!(check("A b", "x"), Err("its header \"A b\" is not valid".to_owned()));
        assert_eq!(check("A", "can\nary"), Err("its header \"A\" is not valid".to_owned()));
    }
}
