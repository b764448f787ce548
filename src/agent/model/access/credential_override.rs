//! Credentials from `authenticate`: kept in memory, for this process only.

use secrecy::SecretString;
use serde_json::{Map, Value};

use super::AccessKind;
use crate::model::endpoint_checks::{check_key, check_url, is_header};

type Headers = Vec<(String, SecretString)>;

/// The user's word by way of the client. It goes before the environment and what is stored.
#[derive(Clone, Debug, Default)]
pub struct CredentialOverride {
    /// The way that was chosen last.
    pub method: Option<AccessKind>,
    /// For the way `ApiKey`.
    pub key: Option<SecretString>,
    /// For the way `Gateway`.
    pub gateway: Option<Gateway>,
    /// The key of a variable was refused, and the user stored another: the stored one goes before it.
    pub prefers_stored: bool,
}

/// A gateway of the client; `None` comes from the environment.
#[derive(Clone, Debug)]
pub struct Gateway {
    pub base_url: Option<String>,
    pub headers: Option<Headers>,
    pub key: Option<SecretString>,
}

impl CredentialOverride {
    /// What holds after another `authenticate` with these `_meta`. One without credentials keeps those that came
    /// before with the same method.
    ///
    /// # Errors
    /// What is malformed, for the client; never holds a value that may be a secret.
    pub fn merged_with(&self, method: AccessKind, meta: Option<&Map<String, Value>>) -> Result<Self, String> {
        let field = |name: &str| meta.and_then(|it| it.get(name)).filter(|it| !it.is_null());
        let key = field("api-key").map(read_key).transpose()?.flatten();
        let mut res = Self { method: Some(method), ..self.clone() };
        if method == AccessKind::Gateway {
            let gateway = field("gateway").map(read_gateway).transpose();
            let gateway = gateway.map_err(|it| format!("Malformed gateway payload: {it}"))?;
            let bare = key.as_ref().map(|_| Gateway { base_url: None, headers: None, key: None });
            res.gateway = gateway.or(bare).map(|it| Gateway { key, ..it }).or(res.gateway);
        } else {
            res.key = key.or(res.key);
        }
        Ok(res)
    }
}

fn read_key(value: &Value) -> Result<Option<SecretString>, String> {
    const NAME: &str = "_meta[\"api-key\"]";
    let key = value.as_str().ok_or_else(|| format!("{NAME} must be a string"))?;
    check_key(key).map_err(|it| format!("{NAME}: {it}"))
}

fn read_gateway(value: &Value) -> Result<Gateway, String> {
    let fields = value.as_object().ok_or("it must be an object {baseUrl, headers}")?;
    let field = |name: &str| fields.get(name).filter(|it| !it.is_null());
    let base_url = field("baseUrl").map(|it| {
        let url = it.as_str().ok_or("gateway.baseUrl must be a string")?;
        check_url(url).map_err(|it| format!("gateway.baseUrl: {it}"))
    });
    Ok(Gateway { base_url: base_url.transpose()?, headers: field("headers").map(read_headers).transpose()?, key: None })
}

fn read_headers(value: &Value) -> Result<Headers, String> {
    let fields = value.as_object().ok_or("gateway.headers must be an object of strings")?;
    let header = |(name, value): (&String, &Value)| match value.as_str() {
        Some(it) if is_header(name, it) => Ok((name.clone(), SecretString::from(it))),
        _ => Err(format!("gateway.headers[{name:?}] is no header; its value is text of visible characters")),
    };
    fields.iter().map(header).collect()
}
