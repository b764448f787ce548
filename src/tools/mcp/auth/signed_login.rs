//! castor's own login by a statement that it signs (private_key_jwt).

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use reqwest::{Url, header::CONTENT_TYPE};
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::{Value, json};

use super::{
    LoginError, LoginTarget, MAX_REPEATED,
    guarded_http::GuardedHttp,
    login_input::{TokenRequest, read_secret},
};
use castor_base::{mcp::McpSecret, text};
use castor_hands::{
    http::{Http, read_head},
    secrets::jwt::SigningKey,
};

/// How long a statement holds, in seconds.
const SIGNED_FOR: u64 = 300;
/// Answers with tokens are shorter.
const MAX_ANSWER: usize = 64 << 10;
const KIND: &str = "client-authentication+jwt";
const ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

pub(super) struct SignedLogin {
    key: SigningKey,
    client_id: String,
    issuer: String,
    request: TokenRequest,
    guard: Arc<GuardedHttp>,
    http: Arc<Http>,
}

impl SignedLogin {
    pub(super) fn new(
        target: &LoginTarget,
        guard: &Arc<GuardedHttp>,
        key: &McpSecret,
        request: TokenRequest,
    ) -> Result<Self, LoginError> {
        let refused = |why: &str| LoginError::Refused(why.to_owned());
        let id = target.oauth.client_id.clone();
        let client_id = id.ok_or_else(|| refused("`oauth.grant` client_credentials needs `oauth.clientId`"))?;
        let key = SigningKey::read(&read_secret(target, "privateKey", key)?)
            .ok_or_else(|| refused("`oauth.privateKey` is no key in PEM (PKCS #8) for RS256 or ES256"))?;
        let takes = |name: &str, value: &str| {
            let listed = request.metadata.additional_fields.get(name).and_then(Value::as_array);
            listed.is_none_or(|all| all.iter().any(|it| it == value))
        };
        if !takes("token_endpoint_auth_methods_supported", "private_key_jwt") {
            return Err(refused("its authorization server takes no signed statements (private_key_jwt)"));
        }
        if !takes("token_endpoint_auth_signing_alg_values_supported", key.algorithm()) {
            let why = format!("its authorization server does not take the key's algorithm {}", key.algorithm());
            return Err(LoginError::Refused(why));
        }
        let issuer = request.metadata.issuer.clone().unwrap_or_else(|| request.metadata.token_endpoint.clone());
        Ok(Self { key, client_id, issuer, request, guard: guard.clone(), http: target.http.clone() })
    }

    pub(super) async fn fetch(&self) -> Result<Value, LoginError> {
        let failed = |why: String| LoginError::Failed(why);
        let url = Url::parse(&self.request.metadata.token_endpoint).map_err(|it| failed(it.to_string()))?;
        let request = self.guard.check(&url)?.post(url.clone()).body(self.form()?);
        let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        let mut answer = self.http.send(request, &url).await.map_err(|it| failed(it.message))?;
        let status = answer.status();
        let body: Value = serde_json::from_slice(&read_head(&mut answer, MAX_ANSWER).await).unwrap_or_default();
        if status.is_success() {
            return Ok(body);
        }
        let word = |key: &str| body.get(key).and_then(Value::as_str).unwrap_or_default();
        let why = format!("{} {}", word("error"), word("error_description"));
        let why = text::first_line(why.trim(), MAX_REPEATED);
        Err(failed(format!("the authorization server answered {}: {why}", status.as_u16())))
    }

    fn form(&self) -> Result<String, LoginError> {
        let (assertion, scope) = (self.assertion()?, self.request.scopes.join(" "));
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        form.append_pair("grant_type", "client_credentials").append_pair("client_assertion_type", ASSERTION);
        form.append_pair("client_assertion", &assertion).append_pair("resource", &self.request.resource);
        if !scope.is_empty() {
            form.append_pair("scope", &scope);
        }
        Ok(form.finish())
    }

    /// Good for one request: each has a number of its own.
    fn assertion(&self) -> Result<String, LoginError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let mut number = [0; 16];
        let filled = SystemRandom::new().fill(&mut number);
        let claims = json!({"iss": self.client_id, "sub": self.client_id, "aud": self.issuer, "iat": now,
            "exp": now.saturating_add(SIGNED_FOR), "jti": BASE64_URL_SAFE_NO_PAD.encode(number)});
        let signed = filled.ok().and_then(|()| self.key.sign(KIND, None, &claims));
        signed.ok_or_else(|| LoginError::Failed("the key does not sign".to_owned()))
    }
}
