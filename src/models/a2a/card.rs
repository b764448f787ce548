//! The card of a remote agent: read without what proves castor first, then with it; and the interface that is spoken.

use a2a::{AgentCard, TRANSPORT_PROTOCOL_HTTP_JSON, TRANSPORT_PROTOCOL_JSONRPC};
use reqwest::{Response, StatusCode, Url, header};
use serde_json::Value;

use super::{
    access::Access,
    binding::{Binding, Interface},
    calls::read_body,
};
use castor_base::{
    model::{Failure, FailureKind},
    peer_agent::CardSource,
    text,
};
use castor_hands::http::safe_host;

const WELL_KNOWN: &str = "/.well-known/agent-card.json";
const MAX_REDIRECTS: usize = 5;
const MAX_CARD: usize = 1 << 20;
/// The version that castor speaks begins so.
const VERSION: &str = "1.";

/// # Errors
/// The card cannot be had or read, or names no way that castor speaks.
pub async fn find(access: &Access, source: &CardSource) -> Result<Interface, Failure> {
    let (card, base) = match source {
        CardSource::Json(it) => (it.clone().into_bytes(), None),
        CardSource::Url(it) => {
            let mut url = Url::parse(it).map_err(|_| broken("its agent_card_url is no address"))?;
            if url.path() == "/" && url.query().is_none() {
                url.set_path(WELL_KNOWN);
            }
            (fetch(access, url.clone()).await?, Some(url))
        }
    };
    interface(&card, base.as_ref())
}

async fn fetch(access: &Access, url: Url) -> Result<Vec<u8>, Failure> {
    let first = get(access, url.clone(), false).await?;
    let refused = matches!(first.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    let mut response = match refused && access.credentials.is_some() {
        true => get(access, url.clone(), true).await?,
        false => first,
    };
    let status = response.status();
    let host = safe_host(&url);
    match status.as_u16() {
        200 => read_body(&access.http, &mut response, MAX_CARD).await,
        401 | 403 => {
            let hint = if access.credentials.is_some() { "check" } else { "set" };
            let why = format!("{host} does not show the card ({status}); {hint} `auth` in the agent's file");
            Err(access.refusal(why, &url))
        }
        code @ (429 | 500..) => {
            let why = format!("{host} does not show the card");
            Err(Failure { status: Some(code), ..Failure::new(FailureKind::Status, why) })
        }
        _ => Err(broken(&format!("{host} has no card there ({status}); check agent_card_url"))),
    }
}

/// Redirects are followed; what proves castor goes to the first address only.
async fn get(access: &Access, mut url: Url, proves: bool) -> Result<Response, Failure> {
    let origin = url.origin();
    for _ in 0..=MAX_REDIRECTS {
        let mut request = access.client(&url)?.get(url.clone()).header(header::ACCEPT, "application/json");
        if proves && url.origin() == origin {
            request = access.prove(request, &url).await?;
        }
        let response = access.http.send(request, &url).await?;
        if !response.status().is_redirection() {
            return Ok(response);
        }
        let to = response.headers().get(header::LOCATION).and_then(|it| it.to_str().ok());
        let next = to.and_then(|it| url.join(it).ok());
        url = next.ok_or_else(|| broken(&format!("{} redirects to nowhere", safe_host(&url))))?;
    }
    Err(broken(&format!("{} redirects without end", safe_host(&url))))
}

/// The first interface that castor speaks.
fn interface(card: &[u8], base: Option<&Url>) -> Result<Interface, Failure> {
    let value: Value = serde_json::from_slice(card).map_err(|it| broken(&format!("its card is no JSON: {it}")))?;
    if value.get("supportedInterfaces").is_none() && value.get("url").is_some() {
        return Err(broken("its card is of A2A 0.3; castor speaks A2A 1.0"));
    }
    let card: AgentCard =
        serde_json::from_value(value).map_err(|it| broken(&format!("its card cannot be read: {it}")))?;
    let streams = card.capabilities.streaming == Some(true);
    for it in &card.supported_interfaces {
        let binding = match it.protocol_binding.to_ascii_uppercase().as_str() {
            TRANSPORT_PROTOCOL_JSONRPC => Binding::JsonRpc,
            TRANSPORT_PROTOCOL_HTTP_JSON => Binding::Rest,
            _ => continue,
        };
        if !it.protocol_version.starts_with(VERSION) {
            continue;
        }
        let url = base.map_or_else(|| Url::parse(&it.url), |base| base.join(&it.url));
        let url = url.map_err(|_| broken("its card names an interface without an address"))?;
        let tenant = it.tenant.clone().filter(|it| !it.is_empty());
        return Ok(Interface { url, binding, tenant, streams });
    }
    let named: Vec<String> =
        card.supported_interfaces.iter().map(|it| format!("{} {}", it.protocol_binding, it.protocol_version)).collect();
    let named = text::head(&named.join(", "), 200).to_owned();
    Err(broken(&format!("its card names no interface for JSONRPC 1.0 or HTTP+JSON 1.0, only: {named}")))
}

fn broken(why: &str) -> Failure {
    Failure::new(FailureKind::Garbage, why)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::interface;

    fn check(interfaces: Value) -> String {
        let card = json!({ "name": "n", "version": "1", "capabilities": {}, "supportedInterfaces": interfaces });
        match interface(card.to_string().as_bytes(), None) {
            Ok(it) => format!("{:?} {} {}", it.binding, it.url, it.streams),
            Err(it) => it.message,
        }
    }

    #[test]
    fn the_first_that_is_spoken() {
        let one = |binding: &str, version: &str| json!({ "url": format!("https://h/{binding}"), "protocolBinding": binding, "protocolVersion": version });
        assert_eq!(check(json!([one("GRPC", "1.0"), one("HTTP+JSON", "1.0")])), "Rest https://h/HTTP+JSON false");
        assert_eq!(check(json!([one("JSONRPC", "0.3"), one("jsonrpc", "1.1")])), "JsonRpc https://h/jsonrpc false");
        assert!(check(json!([one("GRPC", "1.0")])).ends_with("only: GRPC 1.0"));
        let old = interface(br#"{"name": "n", "url": "https://h", "protocolVersion": "0.3.0"}"#, None);
        assert!(old.is_err_and(|it| it.message.contains("A2A 0.3")));
    }
}
