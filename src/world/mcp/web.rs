//! The HTTP transports of MCP: streamable HTTP, or the older one with server-sent events.

use std::collections::HashMap;

use reqwest::{
    Url,
    header::{HeaderMap, HeaderName, HeaderValue},
};
use rmcp::transport::{StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig};

use super::{
    client::{Listener, OpenConnection},
    error::StartError,
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
) -> Result<OpenConnection, StartError> {
    let headers = header_map(headers)?;
    let url = Url::parse(url).map_err(|it| StartError::Refused(format!("its URL is not valid: {it}")))?;
    let client = http.client().map_err(|it| StartError::Refused(it.message))?.clone();
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
