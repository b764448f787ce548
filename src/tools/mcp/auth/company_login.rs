//! A user's login by the company's identity provider (ID-JAG): it vouches for the user at the server's authorization server.

use std::{collections::BTreeSet, sync::Arc};

use oauth2::ClientSecret;
use rmcp::transport::auth::enterprise::{EmaAuthorizationServer, EmaClientAuthentication, EmaExchangeRequest};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use super::{
    LoginError, LoginTarget,
    guarded_http::GuardedHttp,
    login_input::{TokenRequest, read_secret},
};
use castor_base::mcp::{IdentityProvider, McpSecret};

pub(super) struct CompanyLogin {
    provider: EmaAuthorizationServer,
    server: EmaAuthorizationServer,
    resource: String,
    scopes: Vec<String>,
    id_token: McpSecret,
    target: LoginTarget,
    guard: Arc<GuardedHttp>,
}

impl CompanyLogin {
    pub(super) fn new(
        target: &LoginTarget,
        guard: &Arc<GuardedHttp>,
        provider: &IdentityProvider,
        request: TokenRequest,
    ) -> Result<Self, LoginError> {
        let refused = |why: &str| LoginError::Refused(why.to_owned());
        let TokenRequest { metadata, scopes: _, resource } = request;
        let id = target.oauth.client_id.as_deref();
        let id = id.ok_or_else(|| refused("`oauth.grant` cross_app_access needs `oauth.clientId`"))?;
        let issuer = metadata.issuer.as_deref();
        let issuer = issuer.ok_or_else(|| refused("its authorization server does not say its name (issuer)"))?;
        let methods = metadata.additional_fields.get("token_endpoint_auth_methods_supported");
        let methods: BTreeSet<&str> =
            methods.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        let only_post = methods.contains("client_secret_post") && !methods.contains("client_secret_basic");
        let own = proof(target.oauth.client_secret.as_ref(), only_post);
        let server = EmaAuthorizationServer::new(issuer, &metadata.token_endpoint, id).with_client_authentication(own);
        let theirs = proof(provider.client_secret.as_ref(), false);
        let provided = EmaAuthorizationServer::new(&provider.issuer, &provider.token_url, &provider.client_id);
        Ok(Self {
            provider: provided.with_client_authentication(theirs),
            server,
            resource,
            // What the server names is not asked for: the provider decides what the user may.
            scopes: target.oauth.scopes.clone(),
            id_token: provider.id_token.clone(),
            target: target.clone(),
            guard: guard.clone(),
        })
    }

    pub(super) async fn fetch(&self) -> Result<Value, LoginError> {
        let failed = |why: String| LoginError::Failed(why);
        let read: SecretString = read_secret(&self.target, "identityProvider.idToken", &self.id_token)?;
        let (provider, server) = (self.provider.clone(), self.server.clone());
        let request = EmaExchangeRequest::new_with_id_token(provider, server, &self.resource, read.expose_secret());
        let request = request.with_scopes(self.scopes.clone());
        let token = request.exchange(&*self.guard, &*self.guard).await.map_err(|it| failed(it.to_string()))?;
        let seconds = token.expires_in.map(|it| it.as_secs());
        let mut res = json!({"access_token": token.access_token.secret(), "token_type": "bearer"});
        if let (Some(seconds), Some(res)) = (seconds, res.as_object_mut()) {
            res.insert("expires_in".to_owned(), seconds.into());
        }
        Ok(res)
    }
}

/// What proves castor's id there.
fn proof(secret: Option<&String>, only_post: bool) -> EmaClientAuthentication {
    match secret.map(|it| ClientSecret::new(it.clone())) {
        None => EmaClientAuthentication::None,
        Some(it) if only_post => EmaClientAuthentication::ClientSecretPost(it),
        Some(it) => EmaClientAuthentication::ClientSecretBasic(it),
    }
}
