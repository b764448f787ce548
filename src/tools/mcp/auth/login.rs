//! A login at an MCP server, from the first question to the stored tokens.

use std::{sync::Arc, time::Duration};

use reqwest::Url;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, CredentialStore, InMemoryCredentialStore, StoredCredentials,
};
use tokio::time::sleep;

use super::{
    LoginError, LoginTarget,
    callback::{Callback, PATIENCE_MINUTES},
    client_login, discovery,
    guarded_http::GuardedHttp,
    store::{StoredLogin, TokenStore, resource},
};

/// Keeps what came of it until all of it is there.
#[derive(Clone, Default)]
struct Fresh(Arc<InMemoryCredentialStore>);

#[async_trait::async_trait]
impl CredentialStore for Fresh {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        self.0.load().await
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        self.0.save(credentials).await
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.0.clear().await
    }
}

/// Logs in: `show` gets the address of the page. What was stored before goes when all of the new is there.
///
/// # Errors
/// Why nothing came of it.
pub async fn log_in(target: &LoginTarget, show: impl AsyncFnOnce(String)) -> Result<(), LoginError> {
    if !target.needs_user() {
        // There is no page: it either works or not.
        return client_login::manager(target).await.map(|_| ());
    }
    let failed = |it: AuthError| LoginError::of(&it);
    let store = TokenStore::new(target)?;
    let before = store.read()?;
    let guard = Arc::new(GuardedHttp::new(target)?);
    let base = resource(&target.url)?;
    let mut manager =
        AuthorizationManager::new_with_oauth_http_client(base.as_str(), guard.clone()).await.map_err(failed)?;
    let fresh = Fresh::default();
    manager.set_credential_store(fresh.clone());
    let metadata = discovery::metadata(&manager, target, &guard).await?;
    manager.set_metadata(metadata.clone());
    let callback = Callback::listen(target.oauth.redirect_uri.as_deref()).await?;
    let scopes = discovery::scopes(&manager, &target.oauth, before.as_ref()).await;
    let client = discovery::client(&mut manager, &target.oauth, &metadata, &callback.redirect, &scopes).await?;
    let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
    let page = manager.get_authorization_url(&scopes).await.map_err(failed)?;
    let mut page =
        Url::parse(&page).map_err(|it| LoginError::Failed(format!("its page has no valid address: {it}")))?;
    for it in &target.oauth.audiences {
        page.query_pairs_mut().append_pair("audience", it);
    }
    let query = |name: &str| page.query_pairs().find(|(it, _)| it == name).map(|(_, it)| it.into_owned());
    let (state, resource) = (query("state").unwrap_or_default(), query("resource").unwrap_or(base));
    show(page.to_string()).await;
    let found = callback.wait(&state, sleep(Duration::from_secs(PATIENCE_MINUTES * 60))).await?;
    manager.exchange_code_for_token_with_issuer(&found.code, &state, found.issuer.as_deref()).await.map_err(failed)?;
    let credentials = fresh.load().await.map_err(failed)?;
    let client_secret = client.client_secret.map(Into::into);
    store.write(&StoredLogin { resource, metadata, client_secret, credentials, wanted_scopes: Vec::new() })
}
