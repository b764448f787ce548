//! A login of castor itself, without a user: by the id and the secret of the settings, anew at each connection.

use std::sync::Arc;

use rmcp::transport::auth::{AuthError, AuthorizationManager, ClientCredentialsConfig};

use super::{LoginError, LoginTarget, discovery, guarded_http::GuardedHttp, store::resource};

/// The tokens stay in memory.
///
/// # Errors
/// Settings without id or secret; an authorization server that refuses them.
pub(super) async fn manager(target: &LoginTarget) -> Result<AuthorizationManager, LoginError> {
    let failed = |it: AuthError| LoginError::of(&it);
    let (Some(id), Some(secret)) = (&target.oauth.client_id, &target.oauth.client_secret) else {
        let why = "`oauth.grant` client_credentials needs `oauth.clientId` and `oauth.clientSecret`";
        return Err(LoginError::Refused(why.to_owned()));
    };
    let guard = Arc::new(GuardedHttp::new(target)?);
    let base = resource(&target.url)?;
    let mut res =
        AuthorizationManager::new_with_oauth_http_client(base.as_str(), guard.clone()).await.map_err(failed)?;
    let metadata = discovery::metadata(&res, target, &guard).await?;
    res.set_metadata(metadata);
    let config = ClientCredentialsConfig::ClientSecret {
        client_id: id.clone(),
        client_secret: secret.clone(),
        scopes: discovery::scopes(&res, &target.oauth, None).await,
        resource: Some(base),
    };
    res.validate_client_credentials_metadata(&config).map_err(failed)?;
    res.configure_client_credentials(&config).map_err(failed)?;
    res.exchange_client_credentials(&config).await.map_err(failed)?;
    Ok(res)
}
