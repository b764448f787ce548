//! The end of a login: tokens are revoked where the authorization server knows how, and forgotten in any case.

use reqwest::Url;
use rmcp::transport::auth::StoredCredentials;
use secrecy::ExposeSecret;
use serde_json::Value;

use super::{
    LoginError, LoginTarget,
    guarded_http::GuardedHttp,
    store::{StoredLogin, TokenStore},
};

/// What became of stored tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Logout {
    /// There were none.
    Absent,
    Revoked,
    /// Forgotten; they are good until they expire: why.
    Forgotten(String),
}

impl Logout {
    pub fn in_words(&self) -> String {
        match self {
            Self::Absent => "Nobody is logged in there".to_owned(),
            Self::Revoked => "You are logged out, and the tokens are revoked".to_owned(),
            Self::Forgotten(why) => format!("You are logged out here; the tokens are not revoked: {why}"),
        }
    }
}

/// # Errors
/// Tokens that cannot be removed.
pub async fn log_out(target: &LoginTarget) -> Result<Logout, LoginError> {
    let store = TokenStore::new(target)?;
    let stored = store.read()?;
    let had = store.forget()?;
    let Some(StoredLogin { credentials: Some(credentials), metadata, client_secret, .. }) = stored else {
        return Ok(if had { Logout::Forgotten("nothing in them could be revoked".to_owned()) } else { Logout::Absent });
    };
    let Some(endpoint) = metadata.additional_fields.get("revocation_endpoint").and_then(Value::as_str) else {
        return Ok(Logout::Forgotten("its authorization server revokes none".to_owned()));
    };
    let guard = GuardedHttp::new(target)?;
    let secret = client_secret.as_ref().map(|it| it.expose_secret());
    match revoke(target, &guard, endpoint, &credentials, secret).await {
        Ok(()) => Ok(Logout::Revoked),
        Err(why) => Ok(Logout::Forgotten(why.to_string())),
    }
}

/// The token that others are made from goes first.
async fn revoke(
    target: &LoginTarget,
    guard: &GuardedHttp,
    endpoint: &str,
    credentials: &StoredCredentials,
    secret: Option<&str>,
) -> Result<(), LoginError> {
    let url = Url::parse(endpoint).map_err(|it| LoginError::Failed(it.to_string()))?;
    let client = guard.check(&url)?;
    let tokens = serde_json::to_value(&credentials.token_response).unwrap_or_default();
    let mut n_revoked = 0;
    for kind in ["refresh_token", "access_token"] {
        let Some(token) = tokens.get(kind).and_then(Value::as_str) else { continue };
        let request = client.post(url.clone());
        let fields = [("token", token), ("token_type_hint", kind)];
        let request = match secret {
            Some(secret) => request.basic_auth(&credentials.client_id, Some(secret)).body(form(&fields)),
            None => request.body(form(&[&fields[..], &[("client_id", &credentials.client_id)]].concat())),
        };
        let request = request.header("Content-Type", "application/x-www-form-urlencoded");
        let answer = target.http.send(request, &url).await.map_err(|it| LoginError::Failed(it.message))?;
        match answer.status() {
            it if it.is_success() => n_revoked += 1,
            it => return Err(LoginError::Failed(format!("the authorization server answered {}", it.as_u16()))),
        }
    }
    if n_revoked > 0 { Ok(()) } else { Err(LoginError::Failed("there was no token to revoke".to_owned())) }
}

fn form(fields: &[(&str, &str)]) -> String {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
}
