//! Stored logins at MCP servers: tokens with what renews them, an entry for each server.

use std::time::Duration;

use rmcp::transport::auth::{
    AuthError, AuthorizationMetadata, CredentialRefreshGuard, CredentialStore, StoredCredentials,
};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use tokio::{task::spawn_blocking, time::timeout};

use super::{LoginError, LoginTarget};
use castor_base::path::AbsPath;
use castor_hands::{disk, secrets::credentials};

/// Wanted scopes that are kept.
pub(super) const MAX_SCOPES: usize = 50;
/// Two programs that renew the same tokens at once would lose one of the new ones.
const REFRESH_LOCK: &str = "mcp-refresh.lock";
/// For another program that renews tokens.
const PATIENCE: Duration = Duration::from_secs(30);

/// What one login left.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct StoredLogin {
    /// What the tokens are for, as the authorization server was told.
    pub(super) resource: String,
    pub(super) metadata: AuthorizationMetadata,
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "exposed")]
    pub(super) client_secret: Option<SecretString>,
    /// `None`: they were refused.
    pub(super) credentials: Option<StoredCredentials>,
    /// What calls were refused for since.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) wanted_scopes: Vec<String>,
}

fn exposed<S: serde::Serializer>(it: &Option<SecretString>, to: S) -> Result<S::Ok, S::Error> {
    it.as_ref().map(ExposeSecret::expose_secret).serialize(to)
}

/// The entry of one server.
#[derive(Clone)]
pub(super) struct TokenStore {
    home: AbsPath,
    name: String,
}

impl TokenStore {
    pub(super) fn new(target: &LoginTarget) -> Result<Self, LoginError> {
        let resource = resource(&target.url)?;
        Ok(Self { home: target.home.clone(), name: format!("mcp {resource}") })
    }

    pub(super) fn read(&self) -> Result<Option<StoredLogin>, LoginError> {
        let text = credentials::read_entry(&self.home, &self.name).map_err(|it| LoginError::Store(it.to_string()))?;
        // Of another version, or broken by hand: as good as none. The parser's words might repeat what it found.
        Ok(text.and_then(|it| serde_json::from_str(it.expose_secret()).ok()))
    }

    pub(super) fn write(&self, login: &StoredLogin) -> Result<(), LoginError> {
        let failed = |it: String| LoginError::Store(it);
        let text = serde_json::to_string(login).map_err(|_| failed("the tokens cannot be written".to_owned()))?;
        credentials::save_entry(&self.home, &self.name, &text.into()).map_err(|it| failed(it.to_string()))
    }

    pub(super) fn forget(&self) -> Result<bool, LoginError> {
        credentials::forget_entry(&self.home, &self.name).map_err(|it| LoginError::Store(it.to_string()))
    }

    fn change(&self, change: impl FnOnce(&mut StoredLogin)) -> Result<(), AuthError> {
        let failed = |it: LoginError| AuthError::CredentialStoreError(it.to_string());
        // Somebody logged out meanwhile: nothing comes back.
        let Some(mut login) = self.read().map_err(failed)? else { return Ok(()) };
        change(&mut login);
        self.write(&login).map_err(failed)
    }
}

/// The server as authorization servers know it: without the query, which may hold a key.
pub(super) fn resource(url: &str) -> Result<String, LoginError> {
    let mut url = reqwest::Url::parse(url).map_err(|it| LoginError::Refused(format!("its URL is not valid: {it}")))?;
    url.set_query(None);
    url.set_fragment(None);
    if !url.username().is_empty() || url.password().is_some() {
        return Err(LoginError::Refused("its URL has a user or a password in it".to_owned()));
    }
    Ok(url.into())
}

#[async_trait::async_trait]
impl CredentialStore for TokenStore {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        let read = self.read().map_err(|it| AuthError::CredentialStoreError(it.to_string()))?;
        Ok(read.and_then(|it| it.credentials))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        self.change(|it| it.credentials = Some(credentials))
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.change(|it| it.credentials = None)
    }

    /// Only the tokens that were refused: another program may have new ones by now.
    async fn on_refresh_token_rejected(&self, refused: &StoredCredentials) -> Result<(), AuthError> {
        self.change(|it| {
            let received = |it: &StoredCredentials| (it.client_id.clone(), it.token_received_at);
            if it.credentials.as_ref().is_some_and(|now| received(now) == received(refused)) {
                it.credentials = None;
            }
        })
    }

    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        let path = self.home.join(REFRESH_LOCK);
        let locked = spawn_blocking(move || {
            let file = disk::open_append_private(&path)?;
            file.lock()?;
            Ok::<_, std::io::Error>(file)
        });
        let failed = |why: String| AuthError::CredentialStoreError(why);
        match timeout(PATIENCE, locked).await {
            Ok(Ok(Ok(file))) => Ok(Some(CredentialRefreshGuard::new(file))),
            Ok(Ok(Err(it))) => Err(failed(it.to_string())),
            Ok(Err(_)) | Err(_) => Err(failed("another program renews tokens and does not end".to_owned())),
        }
    }
}
