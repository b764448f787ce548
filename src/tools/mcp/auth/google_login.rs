//! Logins with Google's credentials of this machine, as themselves or for a service account.

use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use super::{LoginError, LoginTarget, guarded_http::is_this_machine};
use castor_base::{mcp::McpGrant, model::Failure};
use castor_hands::{http::safe_host, secrets::google};
use castor_models::providers::google::{Tokens, identity::IdTokens};

/// Where access tokens of Google's may go.
const HOSTS: [&str; 2] = ["googleapis.com", "luci.app"];

pub(super) enum GoogleLogin {
    Own(Tokens),
    Account(IdTokens),
}

impl GoogleLogin {
    /// `None`: the settings say another kind of login.
    ///
    /// # Errors
    /// The server is not one that may have such a token; credentials that cannot be read.
    pub(super) fn new(target: &LoginTarget) -> Result<Option<Self>, LoginError> {
        let refused = |why: String| LoginError::Refused(why);
        let url = Url::parse(&target.url).map_err(|it| refused(format!("its URL is not valid: {it}")))?;
        let tokens = || {
            let found = google::find(&target.env).map_err(|it| refused(it.to_string()))?;
            Ok::<_, LoginError>(Tokens::new(found, target.http.clone()))
        };
        match &target.oauth.grant {
            McpGrant::Google if !is_googles(&url) => Err(refused(format!(
                "`authProviderType` google_credentials is for https://*.googleapis.com and https://*.luci.app, not for {}",
                safe_host(&url)
            ))),
            McpGrant::Google if target.oauth.scopes.is_empty() => {
                Err(refused("`authProviderType` google_credentials needs `oauth.scopes`".to_owned()))
            }
            McpGrant::Google => Ok(Some(Self::Own(tokens()?.with_scopes(target.oauth.scopes.clone())))),
            McpGrant::GoogleAccount { .. } if url.scheme() != "https" && !is_this_machine(&url) => {
                Err(refused("its address is not encrypted: no token of Google's goes there".to_owned()))
            }
            McpGrant::GoogleAccount { account, audience } => {
                let (account, audience) = (account.clone(), audience.clone());
                Ok(Some(Self::Account(IdTokens::new(tokens()?, target.http.clone(), account, audience))))
            }
            McpGrant::Page | McpGrant::Client { .. } | McpGrant::Company(_) => Ok(None),
        }
    }

    pub(super) async fn fetch(&self) -> Result<Value, LoginError> {
        let token: Result<SecretString, Failure> = match self {
            Self::Own(it) => it.get().await,
            Self::Account(it) => it.get().await,
        };
        let token = token.map_err(|it| LoginError::Failed(it.message))?;
        // Both renew it by themselves: whoever asks again soon gets the same one, or a new one.
        Ok(json!({"access_token": token.expose_secret(), "token_type": "bearer", "expires_in": 0}))
    }

    pub(super) async fn invalidate(&self) {
        match self {
            Self::Own(it) => it.forget().await,
            Self::Account(it) => it.forget().await,
        }
    }
}

fn is_googles(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let is_below = |it: &str| host.strip_suffix(it).is_some_and(|rest| rest.ends_with('.') && rest.len() > 1);
    url.scheme() == "https" && url.port().is_none() && (host == "luci.app" || HOSTS.into_iter().any(is_below))
}

#[cfg(test)]
mod tests {
    use reqwest::Url;

    use super::is_googles;

    #[test]
    fn tokens_go_to_google_alone() {
        for (url, want) in [
            ("https://mcp.googleapis.com/mcp", true),
            ("https://a.b.luci.app/", true),
            ("https://luci.app/", true),
            ("https://googleapis.com/", false),
            ("https://evilgoogleapis.com/", false),
            ("https://mcp.googleapis.com.evil.example/", false),
            ("https://evil.example/mcp.googleapis.com", false),
            ("https://mcp.googleapis.com@evil.example/", false),
            ("http://mcp.googleapis.com/", false),
            ("https://mcp.googleapis.com:8443/", false),
            ("https://127.0.0.1/", false),
        ] {
            assert_eq!(is_googles(&Url::parse(url).unwrap()), want, "{url}");
        }
    }
}
