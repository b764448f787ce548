//! ID tokens of a Google service account: the credentials of the user ask for them.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::{EARLY, MAX_ANSWER, Token, Tokens, auth_failure, refusal};
use castor_base::model::{Failure, FailureKind};
use castor_hands::http::{self, Http};

const ENDPOINT: &str = "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts";

/// ID tokens of one account for one audience, renewed before they end.
pub struct IdTokens {
    own: Tokens,
    http: Arc<Http>,
    account: String,
    audience: String,
    endpoint: String,
    kept: Mutex<Option<Token>>,
}

#[derive(Deserialize)]
struct Answer {
    token: SecretString,
}

impl IdTokens {
    /// Makes no request yet.
    pub fn new(own: Tokens, http: Arc<Http>, account: String, audience: String) -> Self {
        Self { own, http, account, audience, endpoint: ENDPOINT.to_owned(), kept: Mutex::default() }
    }

    /// # Errors
    /// `Auth` where Google does not take the credentials, or the user may not act as the account.
    pub async fn get(&self) -> Result<SecretString, Failure> {
        let mut kept = self.kept.lock().await;
        let now = (self.own.clock)();
        if let Some(it) = kept.as_ref().filter(|it| it.ends > now.saturating_add(EARLY)) {
            return Ok(it.value.clone());
        }
        let value = self.fetch().await?;
        // One that does not say when it ends is not kept.
        *kept = ends(&value).map(|ends| Token { value: value.clone(), ends });
        Ok(value)
    }

    /// A server did not take it: it is not used again.
    pub async fn forget(&self) {
        *self.kept.lock().await = None;
    }

    async fn fetch(&self) -> Result<SecretString, Failure> {
        let own = self.own.get().await?;
        let url = Url::parse(&self.endpoint).ok().and_then(|mut it| {
            it.path_segments_mut().ok()?.push(&format!("{}:generateIdToken", self.account));
            Some(it)
        });
        let url = url.ok_or_else(|| auth_failure("The service account has no valid name.".to_owned()))?;
        let body = json!({ "audience": self.audience, "includeEmail": true });
        let request = self.http.client()?.post(url.clone()).bearer_auth(own.expose_secret()).json(&body);
        let mut response = self.http.send(request, &url).await?;
        let status = response.status().as_u16();
        let body = http::read_head(&mut response, MAX_ANSWER).await;
        match status {
            200 => serde_json::from_slice::<Answer>(&body).map(|it| it.token).map_err(|_| {
                Failure::new(FailureKind::Garbage, "Google answered with something that is no ID token.".to_owned())
            }),
            401 => {
                self.own.invalidate(&own).await;
                Err(refusal(status, &body))
            }
            403 | 404 => Err(auth_failure(format!(
                "You may not act as the service account (HTTP {status}): it needs the role \
                 roles/iam.serviceAccountOpenIdTokenCreator for you."
            ))),
            _ => Err(refusal(status, &body)),
        }
    }
}

/// When an ID token ends, in seconds since 1970. Whoever it is for checks the signature, not castor.
fn ends(token: &SecretString) -> Option<u64> {
    let claims = BASE64_URL_SAFE_NO_PAD.decode(token.expose_secret().split('.').nth(1)?).ok()?;
    serde_json::from_slice::<Value>(&claims).ok()?.get("exp")?.as_u64()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
    use secrecy::ExposeSecret;

    use super::{
        super::tests::{serve, server, token, tokens, user},
        IdTokens,
    };

    fn id_token(ends: u64) -> String {
        let part = |it: String| BASE64_URL_SAFE_NO_PAD.encode(it);
        format!("{}.{}.c2ln", part("{}".to_owned()), part(format!(r#"{{"exp":{ends}}}"#)))
    }

    #[tokio::test]
    async fn the_users_token_asks_for_one_of_the_account_and_it_is_kept_until_it_ends() {
        let (listener, address) = server().await;
        let own = tokens(user(&address), || 1_000_000);
        let account = "bot@p1.iam.gserviceaccount.com".to_owned();
        let mut ids = IdTokens::new(own, Arc::default(), account, "client-1".to_owned());
        ids.endpoint = format!("http://{address}/v1/projects/-/serviceAccounts");
        let answers = async {
            let first = serve(&listener, "200 OK", token("own", 3_600)).await;
            let second = serve(&listener, "200 OK", format!(r#"{{"token":"{}"}}"#, id_token(1_003_600))).await;
            (first, second)
        };
        let (got, (_, asked)) = tokio::join!(ids.get(), answers);
        assert_eq!(got.unwrap().expose_secret(), id_token(1_003_600));
        let line = "POST /v1/projects/-/serviceAccounts/bot@p1.iam.gserviceaccount.com:generateIdToken HTTP/1.1";
        assert!(asked.starts_with(line) && asked.contains("authorization: Bearer own"), "{asked}");
        assert!(asked.ends_with(r#"{"audience":"client-1","includeEmail":true}"#), "{asked}");
        assert_eq!(ids.get().await.unwrap().expose_secret(), id_token(1_003_600));
        ids.forget().await;
        let refused = serve(&listener, "403 Forbidden", r#"{"error":{"message":"CANARY"}}"#);
        let (got, _) = tokio::join!(ids.get(), refused);
        let why = got.unwrap_err().message;
        assert!(why.contains("You may not act as the service account") && !why.contains("CANARY"), "{why}");
    }
}
