//! Google access tokens (OAuth): fetched for credentials, and renewed before they expire.

pub mod identity;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    net::IpAddr,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use reqwest::{RequestBuilder, Url};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use castor_base::{
    model::{Failure, FailureKind},
    text,
};
use castor_hands::{
    http::{self, Http, safe_host},
    secrets::{google::Credentials, jwt::SigningKey},
};

/// What castor asks for if nobody says: the one that Vertex AI knows.
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
const JWT_GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/// How long a signed request for a token holds, in seconds; Google's limit.
const SIGNED_FOR: u64 = 3_600;
/// A token that ends sooner is not used any more, in seconds: an answer may take its time to begin.
const EARLY: u64 = 300;
/// Of the answer to a request for a token no more is read, in bytes.
const MAX_ANSWER: usize = 64 << 10;
/// What helps most when credentials are not taken.
const HINT: &str =
    "Run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_API_KEY.";

/// Shared by the sessions that reach Vertex AI in the same way.
pub struct Tokens {
    credentials: Credentials,
    http: Arc<Http>,
    /// What the tokens are for.
    scopes: Vec<String>,
    /// Seconds since 1970.
    clock: fn() -> u64,
    /// Held while a token is fetched: other requests wait for the same token.
    kept: Mutex<Option<Token>>,
}

struct Token {
    value: SecretString,
    /// Seconds since 1970.
    ends: u64,
}

impl Tokens {
    /// Makes no request yet.
    pub fn new(credentials: Credentials, http: Arc<Http>) -> Self {
        let clock = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Self { credentials, http, scopes: vec![SCOPE.to_owned()], clock, kept: Mutex::default() }
    }

    /// For these instead.
    #[must_use]
    pub fn with_scopes(self, scopes: Vec<String>) -> Self {
        Self { scopes, ..self }
    }

    /// A token that holds for the next minutes.
    ///
    /// # Errors
    /// `Auth` where Google does not take the credentials; else as any request.
    pub async fn get(&self) -> Result<SecretString, Failure> {
        let mut kept = self.kept.lock().await;
        let now = (self.clock)();
        if let Some(it) = kept.as_ref().filter(|it| it.ends > now.saturating_add(EARLY)) {
            return Ok(it.value.clone());
        }
        let token = self.fetch(now).await?;
        let value = token.value.clone();
        *kept = Some(token);
        Ok(value)
    }

    /// A service did not take this token: it is not used again.
    pub async fn invalidate(&self, token: &SecretString) {
        let mut kept = self.kept.lock().await;
        if kept.as_ref().is_some_and(|it| it.value.expose_secret() == token.expose_secret()) {
            *kept = None;
        }
    }

    /// The token that is there was refused: it is not used again.
    pub async fn forget(&self) {
        *self.kept.lock().await = None;
    }

    async fn fetch(&self, now: u64) -> Result<Token, Failure> {
        let (url, request) = self.request(now)?;
        let mut response = self.http.send(request, &url).await.map_err(|it| self.explain_unreached(it))?;
        let status = response.status();
        let body = http::read_head(&mut response, MAX_ANSWER).await;
        if !status.is_success() {
            return Err(refusal(status.as_u16(), &body));
        }
        let answer: Answer = serde_json::from_slice(&body).map_err(|_| {
            // The answer may hold a token: nothing of it is shown.
            let host = safe_host(&url);
            Failure::new(FailureKind::Garbage, format!("{host} answered with something that is no access token."))
        })?;
        Ok(Token { value: answer.access_token, ends: now.saturating_add(answer.expires_in) })
    }

    fn request(&self, now: u64) -> Result<(Url, RequestBuilder), Failure> {
        let client = self.http.client()?;
        match &self.credentials {
            Credentials::User { client_id, client_secret, refresh_token, token_url } => {
                // The scopes are those that the user agreed to at gcloud's page.
                let url = parse_secure_url(token_url)?;
                let form = form(&[
                    ("grant_type", "refresh_token"),
                    ("client_id", client_id),
                    ("client_secret", client_secret.expose_secret()),
                    ("refresh_token", refresh_token.expose_secret()),
                ]);
                Ok((url.clone(), post_form(client.post(url), form)))
            }
            Credentials::ServiceAccount { email, key, key_id, token_url } => {
                let url = parse_secure_url(token_url)?;
                let claims = json!({
                    "iss": email, "scope": self.scopes.join(" "), "aud": token_url,
                    "iat": now, "exp": now.saturating_add(SIGNED_FOR),
                });
                let assertion = sign(key, key_id.as_deref(), &claims)?;
                let form = form(&[("grant_type", JWT_GRANT), ("assertion", &assertion)]);
                Ok((url.clone(), post_form(client.post(url), form)))
            }
            Credentials::MetadataServer { host } => {
                let url = format!("http://{host}/computeMetadata/v1/instance/service-accounts/default/token");
                let mut url =
                    Url::parse(&url).map_err(|_| auth_failure(format!("GCE_METADATA_HOST: {host:?} is no host.")))?;
                if self.scopes != [SCOPE] {
                    url.query_pairs_mut().append_pair("scopes", &self.scopes.join(","));
                }
                Ok((url.clone(), client.get(url).header("metadata-flavor", "Google")))
            }
        }
    }

    /// Nothing says that this is a machine of Google's: mostly it is none, and there are no credentials at all.
    fn explain_unreached(&self, failure: Failure) -> Failure {
        match &self.credentials {
            Credentials::MetadataServer { .. } => auth_failure(format!(
                "There are no Google credentials, and no metadata server: {} {HINT}",
                failure.message
            )),
            _ => failure,
        }
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("credentials", &self.credentials).finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
struct Answer {
    access_token: SecretString,
    expires_in: u64,
}

fn auth_failure(message: String) -> Failure {
    Failure::new(FailureKind::Auth, message)
}

/// Secrets travel there: plain http is for this machine only.
fn parse_secure_url(url: &str) -> Result<Url, Failure> {
    let parsed = Url::parse(url).ok().filter(|it| match it.scheme() {
        "https" => true,
        "http" => it.host_str().and_then(|it| it.parse::<IpAddr>().ok()).is_some_and(|it| it.is_loopback()),
        _ => false,
    });
    parsed.ok_or_else(|| auth_failure("The credentials' token_uri is no https address.".to_owned()))
}

fn form(fields: &[(&str, &str)]) -> String {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
}

fn post_form(request: RequestBuilder, form: String) -> RequestBuilder {
    request.header("content-type", "application/x-www-form-urlencoded").body(form)
}

fn sign(key: &SecretString, key_id: Option<&str>, claims: &Value) -> Result<String, Failure> {
    let key = SigningKey::read(key).filter(|it| matches!(it, SigningKey::Rsa(_)));
    key.and_then(|it| it.sign("JWT", key_id, claims))
        .ok_or_else(|| auth_failure("The service account's private_key is no RSA key in PEM (PKCS #8).".to_owned()))
}

/// Why there is no token, in Google's words; they name no secret.
fn refusal(status: u16, body: &[u8]) -> Failure {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Error {
        error: String,
        error_description: String,
    }
    let it: Error = serde_json::from_slice(body).unwrap_or_default();
    let why = [it.error, it.error_description].into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>().join(": ");
    let why = if why.is_empty() { format!("HTTP {status}") } else { text::head(&why, 300).to_owned() };
    match status {
        429 | 500.. => Failure {
            status: Some(status),
            ..Failure::new(FailureKind::Status, format!("Google gave no access token: {why}."))
        },
        _ => Failure {
            status: Some(status),
            ..auth_failure(format!("Google did not take the credentials ({why}). {HINT}"))
        },
    }
}
