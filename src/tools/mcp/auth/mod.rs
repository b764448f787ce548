//! Logins at MCP servers by OAuth: the crate rmcp speaks it; addresses are checked, tokens are stored and renewed here.

mod callback;
mod client_login;
mod company_login;
mod discovery;
mod google_login;
mod guarded_http;
mod login;
mod login_input;
mod logout;
mod signed_login;
mod store;

use std::sync::Arc;

use rmcp::transport::auth::{AuthorizationManager, OAuthClientConfig};
use secrecy::ExposeSecret;

pub use login::log_in;
pub use logout::{Logout, log_out};

use self::{guarded_http::GuardedHttp, store::TokenStore};
use castor_base::{
    mcp::{McpGrant, McpOAuth},
    path::AbsPath,
    text,
};
use castor_hands::{http::Http, secrets::Env};

/// A server, and what a login there takes.
#[derive(Clone)]
pub struct LoginTarget {
    pub url: String,
    pub oauth: McpOAuth,
    /// castor's own folder, where tokens are kept.
    pub home: AbsPath,
    pub http: Arc<Http>,
    /// Says where Google's credentials are.
    pub env: Env,
}

impl LoginTarget {
    /// A user logs in on a page; else castor does by itself.
    fn needs_user(&self) -> bool {
        self.oauth.grant == McpGrant::Page
    }
}

/// Why a login or a logout came to nothing, as the end of a sentence about it.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum LoginError {
    /// castor does not go on: an address that is not to be asked, settings that cannot be used.
    #[error("{0}")]
    Refused(String),
    /// The server or its authorization server cannot do what is needed, or does not answer.
    #[error("{0}")]
    Failed(String),
    /// The authorization server's word on the page.
    #[error("the page said no: {0}")]
    Denied(String),
    #[error("nobody logged in within {0} minutes")]
    TimedOut(u64),
    /// Tokens cannot be read or written.
    #[error("{0}")]
    Store(String),
}

/// Longest words of another program that are repeated.
const MAX_REPEATED: usize = 300;

impl LoginError {
    /// rmcp's own words, which may have an address in them.
    fn of(error: &(dyn std::error::Error + 'static)) -> Self {
        let mut deepest = error;
        while let Some(next) = deepest.source() {
            deepest = next;
        }
        match deepest.downcast_ref::<Self>() {
            Some(Self::Refused(why)) => Self::Refused(why.clone()),
            Some(it) => Self::Failed(it.to_string()),
            None => Self::Failed(text::first_line(&error.to_string(), MAX_REPEATED)),
        }
    }
}

/// Reaches a server with the tokens that are stored for it, and renews them. `None`: nobody has logged in there.
///
/// # Errors
/// Tokens that cannot be read, or what was stored with them cannot be used.
pub(super) async fn manager(target: &LoginTarget) -> Result<Option<AuthorizationManager>, LoginError> {
    if !target.needs_user() {
        return client_login::manager(target).await.map(Some);
    }
    let store = TokenStore::new(target)?;
    let Some(stored) = store.read()? else { return Ok(None) };
    let Some(credentials) = &stored.credentials else { return Ok(None) };
    let failed = |it: rmcp::transport::auth::AuthError| LoginError::of(&it);
    // Tokens are renewed where they were given out, whatever the settings say by now.
    let guard = GuardedHttp::new(target)?;
    let mut res = AuthorizationManager::new_with_oauth_http_client(stored.resource.as_str(), Arc::new(guard))
        .await
        .map_err(failed)?;
    let mut config = OAuthClientConfig::new(&credentials.client_id, &stored.resource);
    if let Some(it) = &stored.client_secret {
        config = config.with_client_secret(it.expose_secret());
    }
    res.set_metadata(stored.metadata.clone());
    res.configure_client(config).map_err(failed)?;
    res.set_credential_store(store);
    Ok(Some(res))
}

/// A call was refused for want of these scopes: the next login asks for them, too.
pub(super) fn want_scopes(target: &LoginTarget, scopes: &str) {
    let keep = || {
        let store = TokenStore::new(target)?;
        let Some(mut stored) = store.read()? else { return Ok(()) };
        let known = stored.wanted_scopes.len();
        for it in scopes.split_whitespace().filter(|it| !it.is_empty()).take(store::MAX_SCOPES) {
            if !stored.wanted_scopes.iter().any(|other| other == it) {
                stored.wanted_scopes.push(it.to_owned());
            }
        }
        if stored.wanted_scopes.len() == known { Ok(()) } else { store.write(&stored) }
    };
    let kept: Result<(), LoginError> = keep();
    if let Err(why) = kept {
        tracing::warn!("the scopes that an MCP server wants are not kept: {why}");
    }
}
