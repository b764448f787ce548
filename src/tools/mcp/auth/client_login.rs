//! Logins without a page: castor's own, the company's for the user, and Google's. Tokens stay in memory, and are had
//! anew before they end.

use std::{sync::Arc, time::Duration};

use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, ClientCredentialsConfig, CredentialRefreshGuard,
    CredentialStore, OAuthClientConfig, StoredCredentials,
};
use serde_json::{Value, json};
use tokio::{sync::Mutex, time::Instant};

use super::{
    LoginError, LoginTarget, company_login::CompanyLogin, discovery, google_login::GoogleLogin,
    guarded_http::GuardedHttp, login_input::TokenRequest, signed_login::SignedLogin, store::resource,
};
use castor_base::mcp::McpGrant;

/// A token that ends sooner is not used any more.
const EARLY: Duration = Duration::from_secs(60);
/// The name under which rmcp has castor where it needs no other.
const UNNAMED: &str = "castor";

/// Where the tokens come from.
enum TokenSource {
    Secret { manager: Box<AuthorizationManager>, config: ClientCredentialsConfig },
    Signed(SignedLogin),
    Company(CompanyLogin),
    Google(GoogleLogin),
}

/// What rmcp asks for a token each time.
struct OwnTokens {
    source: TokenSource,
    client_id: String,
    /// And when it ends, where that is known.
    kept: Mutex<Option<(StoredCredentials, Option<Instant>)>>,
}

/// The first token is here when it returns.
///
/// # Errors
/// Settings that do not suffice; an authorization server that refuses them.
pub(super) async fn manager(target: &LoginTarget) -> Result<AuthorizationManager, LoginError> {
    let failed = |it: AuthError| LoginError::of(&it);
    if target.oauth.is_of_workspace && target.oauth.grant.takes_users_credentials() {
        return Err(LoginError::Refused("a workspace may not use your credentials".to_owned()));
    }
    let guard = Arc::new(GuardedHttp::new(target)?);
    let base = resource(&target.url)?;
    let mut res =
        AuthorizationManager::new_with_oauth_http_client(base.as_str(), guard.clone()).await.map_err(failed)?;
    let google = GoogleLogin::new(target)?;
    let (source, metadata) = match google {
        // There is no authorization server: rmcp wants one, and asks it for nothing.
        Some(it) => (TokenSource::Google(it), endpoints(&base)?),
        None => {
            let metadata = discovery::metadata(&res, target, &guard).await?;
            let scopes = discovery::scopes(&res, &target.oauth, None).await;
            let request = TokenRequest { metadata: metadata.clone(), scopes, resource: base.clone() };
            (TokenSource::new(target, &guard, request).await?, metadata)
        }
    };
    let client_id = target.oauth.client_id.as_deref().unwrap_or(UNNAMED);
    res.set_metadata(metadata);
    res.configure_client(OAuthClientConfig::new(client_id, &base)).map_err(failed)?;
    let tokens = OwnTokens { source, client_id: client_id.to_owned(), kept: Mutex::default() };
    tokens.current().await?;
    res.set_credential_store(tokens);
    Ok(res)
}

fn endpoints(base: &str) -> Result<AuthorizationMetadata, LoginError> {
    let named = json!({"authorization_endpoint": base, "token_endpoint": base});
    serde_json::from_value(named).map_err(|it| LoginError::Failed(it.to_string()))
}

impl TokenSource {
    async fn new(target: &LoginTarget, guard: &Arc<GuardedHttp>, request: TokenRequest) -> Result<Self, LoginError> {
        match &target.oauth.grant {
            McpGrant::Client { key: Some(key) } => SignedLogin::new(target, guard, key, request).map(Self::Signed),
            McpGrant::Company(provider) => CompanyLogin::new(target, guard, provider, request).map(Self::Company),
            _ => by_secret(target, guard, request).await,
        }
    }

    /// The answer that has the token.
    async fn fetch(&self) -> Result<Value, LoginError> {
        match self {
            Self::Secret { manager, config } => {
                let token = manager.exchange_client_credentials(config).await.map_err(|it| LoginError::of(&it))?;
                serde_json::to_value(token).map_err(|it| LoginError::Failed(it.to_string()))
            }
            Self::Signed(it) => it.fetch().await,
            Self::Company(it) => it.fetch().await,
            Self::Google(it) => it.fetch().await,
        }
    }
}

async fn by_secret(
    target: &LoginTarget,
    guard: &Arc<GuardedHttp>,
    request: TokenRequest,
) -> Result<TokenSource, LoginError> {
    let failed = |it: AuthError| LoginError::of(&it);
    let (Some(id), Some(secret)) = (&target.oauth.client_id, &target.oauth.client_secret) else {
        let why = "`oauth.grant` client_credentials needs `oauth.clientId`, and `oauth.clientSecret` or a private key";
        return Err(LoginError::Refused(why.to_owned()));
    };
    let TokenRequest { metadata, scopes, resource } = request;
    let mut manager =
        AuthorizationManager::new_with_oauth_http_client(resource.as_str(), guard.clone()).await.map_err(failed)?;
    manager.set_metadata(metadata);
    let (client_id, client_secret) = (id.clone(), secret.clone());
    let config = ClientCredentialsConfig::ClientSecret { client_id, client_secret, scopes, resource: Some(resource) };
    manager.validate_client_credentials_metadata(&config).map_err(failed)?;
    manager.configure_client_credentials(&config).map_err(failed)?;
    Ok(TokenSource::Secret { manager: Box::new(manager), config })
}

impl OwnTokens {
    async fn current(&self) -> Result<StoredCredentials, LoginError> {
        let mut kept = self.kept.lock().await;
        if let Some((it, ends)) = kept.as_ref()
            && ends.is_none_or(|it| it > Instant::now() + EARLY)
        {
            return Ok(it.clone());
        }
        let answer = self.source.fetch().await?;
        let seconds = answer.get("expires_in").and_then(Value::as_u64);
        let ends = seconds.and_then(|it| Instant::now().checked_add(Duration::from_secs(it)));
        let token = serde_json::from_value(answer)
            .map_err(|_| LoginError::Failed("its answer is no access token".to_owned()))?;
        // rmcp is not told when it came: it would want to renew it by itself.
        let it = StoredCredentials::new(self.client_id.clone(), Some(token), Vec::new(), None);
        *kept = Some((it.clone(), ends));
        Ok(it)
    }
}

#[async_trait::async_trait]
impl CredentialStore for OwnTokens {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        let current = self.current().await;
        current.map(Some).map_err(|it| AuthError::CredentialStoreError(it.to_string()))
    }

    async fn save(&self, _: StoredCredentials) -> Result<(), AuthError> {
        Ok(())
    }

    async fn clear(&self) -> Result<(), AuthError> {
        *self.kept.lock().await = None;
        Ok(())
    }

    /// rmcp comes here when the server refused the token: the next request has another one.
    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        *self.kept.lock().await = None;
        if let TokenSource::Google(it) = &self.source {
            it.invalidate().await;
        }
        Ok(None)
    }
}
