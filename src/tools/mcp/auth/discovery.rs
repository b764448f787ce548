//! Discovery for a login: the server's challenge, its authorization server, and the client that castor is there.

use reqwest::{Url, header::WWW_AUTHENTICATE};
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, AuthorizationMetadataSource, OAuthClientConfig,
};
use serde_json::{Value, json};

use super::{LoginError, LoginTarget, guarded_http::GuardedHttp, store};
use castor_base::mcp::McpOAuth;
use castor_hands::http::{origin_of, read_head};

/// As authorization servers show it on their pages.
const CLIENT_NAME: &str = "castor";
const MAX_METADATA: usize = 1 << 20;
const PROTOCOL: &str = "2025-11-25";

/// The words with which a server refuses a request without a token. `None`: it has none, or takes it.
pub(super) async fn challenge(target: &LoginTarget) -> Result<Option<String>, LoginError> {
    let failed = |why: String| LoginError::Failed(why);
    let url = Url::parse(&target.url).map_err(|it| LoginError::Refused(format!("its URL is not valid: {it}")))?;
    let client = target.http.client().map_err(|it| failed(it.message))?;
    let hello = json!({"protocolVersion": PROTOCOL, "capabilities": {},
        "clientInfo": {"name": CLIENT_NAME, "version": env!("CARGO_PKG_VERSION")}});
    // Some say who they are to anybody, and refuse what comes next.
    for (method, params) in [("initialize", hello), ("tools/list", json!({}))] {
        let message = json!({"jsonrpc": "2.0", "id": 0, "method": method, "params": params});
        let request = client.post(url.clone()).header("Accept", "application/json, text/event-stream");
        let request = request.header("MCP-Protocol-Version", PROTOCOL).json(&message);
        let answer = target.http.send(request, &url).await.map_err(|it| failed(it.message))?;
        if answer.status().as_u16() == 401 {
            let all = answer.headers().get_all(WWW_AUTHENTICATE).iter().filter_map(|it| it.to_str().ok());
            // What names the metadata says most.
            let best = all.max_by_key(|it| it.contains("resource_metadata"));
            return Ok(Some(best.unwrap_or_default().to_owned()));
        }
    }
    Ok(None)
}

/// The authorization server, as settings say or as it is found; each of its addresses is one that may be asked.
pub(super) async fn metadata(
    manager: &AuthorizationManager,
    target: &LoginTarget,
    guard: &GuardedHttp,
) -> Result<AuthorizationMetadata, LoginError> {
    let oauth = &target.oauth;
    let mut res = match (&oauth.authorization_url, &oauth.token_url) {
        (Some(authorization), Some(token)) => {
            let named = json!({"authorization_endpoint": authorization, "token_endpoint": token});
            serde_json::from_value(named).map_err(|it| LoginError::Failed(it.to_string()))?
        }
        _ => {
            let challenge = challenge(target).await?;
            match manager.resolve_metadata_from_challenge(challenge.as_deref()).await {
                Ok(it) if challenge.is_none() && it.source == AuthorizationMetadataSource::LegacyEndpointFallback => {
                    return Err(LoginError::Failed("it wants no login".to_owned()));
                }
                Ok(it) => it.metadata,
                Err(AuthError::AuthorizationServerMismatch { expected_issuer, received_issuer })
                    if [&expected_issuer, &received_issuer]
                        .iter()
                        .all(|it| origin_of(it) == origin_of(&target.url)) =>
                {
                    own_metadata(target, guard).await?
                }
                Err(it) => return Err(LoginError::of(&it)),
            }
        }
    };
    for (place, named) in
        [(&mut res.authorization_endpoint, &oauth.authorization_url), (&mut res.token_endpoint, &oauth.token_url)]
    {
        if let Some(it) = named {
            place.clone_from(it);
        }
    }
    if oauth.registration_url.is_some() {
        res.registration_endpoint.clone_from(&oauth.registration_url);
    }
    let all = [Some(&res.authorization_endpoint), Some(&res.token_endpoint), res.registration_endpoint.as_ref()];
    for it in all.into_iter().flatten() {
        let url = Url::parse(it).map_err(|why| LoginError::Failed(format!("its login has no valid address: {why}")))?;
        guard.check(&url)?;
    }
    Ok(res)
}

/// Servers of 2025-03-26 are their own authorization servers, and some put that into a folder. Nobody else is believed: the
/// one who says so is the server itself.
async fn own_metadata(target: &LoginTarget, guard: &GuardedHttp) -> Result<AuthorizationMetadata, LoginError> {
    let failed = |why: String| LoginError::Failed(why);
    let url = Url::parse(&target.url).and_then(|it| it.join("/.well-known/oauth-authorization-server"));
    let url = url.map_err(|it| failed(it.to_string()))?;
    let request = guard.check(&url)?.get(url.clone());
    let mut answer = target.http.send(request, &url).await.map_err(|it| failed(it.message))?;
    let body = read_head(&mut answer, MAX_METADATA).await;
    serde_json::from_slice(&body).map_err(|_| failed("its login cannot be read".to_owned()))
}

/// The scopes to ask for: those of the settings, else those that the server names; and what calls were refused for.
pub(super) async fn scopes(
    manager: &AuthorizationManager,
    oauth: &McpOAuth,
    before: Option<&store::StoredLogin>,
) -> Vec<String> {
    let mut res = oauth.scopes.clone();
    if res.is_empty() {
        res = manager.select_initial_scopes(&[]).await;
    }
    let wanted = before.map(|it| it.wanted_scopes.as_slice()).unwrap_or_default();
    // What was granted stays: a new token takes the place of the old one.
    let granted = before.filter(|_| !wanted.is_empty()).and_then(|it| it.credentials.as_ref());
    let granted = granted.map(|it| it.granted_scopes.as_slice()).unwrap_or_default();
    for it in granted.iter().chain(wanted) {
        if !res.contains(it) {
            res.push(it.clone());
        }
    }
    res
}

/// How the authorization server knows castor: by an id of the settings, by the address of a document, or by a
/// registration.
pub(super) async fn client(
    manager: &mut AuthorizationManager,
    oauth: &McpOAuth,
    metadata: &AuthorizationMetadata,
    redirect: &str,
    scopes: &[String],
) -> Result<OAuthClientConfig, LoginError> {
    let takes_documents = metadata.additional_fields.get("client_id_metadata_document_supported");
    let document =
        oauth.client_metadata_url.as_ref().filter(|_| takes_documents.is_some_and(|it| *it == Value::Bool(true)));
    let known = oauth.client_id.as_ref().or(document);
    let failed = |it: AuthError| LoginError::of(&it);
    let Some(id) = known else {
        if metadata.registration_endpoint.is_none() {
            let why =
                "its authorization server registers no clients: set `oauth.clientId` to the id that it knows castor by";
            return Err(LoginError::Failed(why.to_owned()));
        }
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        return manager.register_client(CLIENT_NAME, redirect, &scopes).await.map_err(failed);
    };
    let mut res = OAuthClientConfig::new(id, redirect).with_scopes(scopes.to_vec());
    if let Some(secret) = oauth.client_secret.as_ref().filter(|_| oauth.client_id.is_some()) {
        res = res.with_client_secret(secret);
    }
    manager.configure_client(res.clone()).map_err(failed)?;
    Ok(res)
}
