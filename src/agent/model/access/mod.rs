//! Model access: the configured endpoint, with its key and headers.
//!
//! A key comes from `authenticate`, which is the user's word for this process; else from the environment; else from
//! where `castor auth login` stored it.

mod broken_logins;
mod credential_override;
mod enforced;
mod origin;
#[cfg(test)]
mod tests;
mod vertex;

use std::{borrow::Cow, fmt};

use secrecy::{ExposeSecret, SecretString};

pub use broken_logins::missing;
pub use credential_override::CredentialOverride;
pub use origin::endpoint_origin;

use super::{
    endpoint_checks::{check_key, check_url, is_header},
    providers,
};
use crate::settings::Settings;
use castor_hands::secrets::{Env, credentials};
use castor_models::providers::gemini::Publisher;
use castor_tools::workspace;

/// Endpoint, key and headers of the models.
#[derive(Clone, Debug)]
pub struct ModelAccess {
    pub kind: AccessKind,
    /// Without a slash at its end; `None`: the provider's own.
    pub base_url: Option<String>,
    /// `None`: the provider's usual one.
    pub api_version: Option<String>,
    pub key: Option<SecretString>,
    /// Where the key comes from; `None` without one.
    pub key_from: Option<KeySource>,
    /// The key goes into `Authorization: Bearer`, not `x-goog-api-key`.
    pub bearer: bool,
    /// Added to each request; values may be secrets.
    pub headers: Vec<(String, SecretString)>,
    /// Of the kind `Vertex`. Without a key Google's own credentials open it.
    pub vertex: Option<Publisher>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// Nothing is configured: sessions need authentication first.
    None,
    ApiKey,
    /// A base URL of the user's, with or without a key.
    Gateway,
    /// Google's cloud: an API key, or a project.
    Vertex,
}

/// The origin of a key or an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// `authenticate`, for this process only.
    Client,
    /// The environment variable of this name.
    Variable(&'static str),
    /// `castor auth login`.
    Stored,
}

impl ModelAccess {
    /// Tells whether this reaches the same models in the same way, with the same secrets.
    pub fn is_same(&self, other: &Self) -> bool {
        let same = |(a, b): (&(String, SecretString), &(String, SecretString))| {
            a.0 == b.0 && a.1.expose_secret() == b.1.expose_secret()
        };
        (self.kind, &self.vertex) == (other.kind, &other.vertex)
            && (&self.base_url, &self.api_version, self.bearer) == (&other.base_url, &other.api_version, other.bearer)
            && self.key.as_ref().map(SecretString::expose_secret) == other.key.as_ref().map(SecretString::expose_secret)
            && self.headers.len() == other.headers.len()
            && self.headers.iter().zip(&other.headers).all(same)
    }
}

impl AccessKind {
    /// What to do when this kind of access is wanted and not there.
    pub fn missing(self) -> &'static str {
        match self {
            Self::None | Self::ApiKey => {
                "No API key for Gemini. Run `castor auth login` (free key: https://aistudio.google.com/apikey), or start \
                 castor with `-m demo` to try it without one."
            }
            Self::Gateway => "No gateway: set GOOGLE_GEMINI_BASE_URL where castor is started.",
            Self::Vertex => {
                "Vertex AI is not configured: set GOOGLE_API_KEY, or GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION, \
                 where castor is started."
            }
        }
    }
}

/// A configuration that cannot work: where, and what is wrong. Never holds the value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessError {
    /// A variable, or where the key is stored.
    pub place: Cow<'static, str>,
    pub message: String,
}

impl AccessError {
    fn new(place: &'static str, message: String) -> Self {
        Self { place: place.into(), message }
    }
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

impl std::error::Error for AccessError {}

pub const BASE_URL: &str = "GOOGLE_GEMINI_BASE_URL";

/// What is configured. The way of authentication that the client chose, else the one in the settings, decides between
/// key and gateway where both are there; a choice that castor does not offer (`oauth-personal` stands in many files) is
/// passed over as long as there is another way.
///
/// # Errors
/// A variable or a stored key that cannot work; a way that the settings do not allow.
pub fn model_access(env: &Env, settings: &Settings, given: &CredentialOverride) -> Result<ModelAccess, AccessError> {
    let res = configured_access(env, settings, given)?;
    enforced::check(res.kind, settings).map(|()| res)
}

fn configured_access(env: &Env, settings: &Settings, given: &CredentialOverride) -> Result<ModelAccess, AccessError> {
    if vertex::is_wanted(env, settings, given) {
        return vertex::access(env);
    }
    let gateway = given.gateway.as_ref().filter(|_| given.method == Some(AccessKind::Gateway));
    let named = gateway.and_then(|it| it.base_url.clone());
    let is_named = named.is_some();
    let base_url = if let Some(it) = named { Some(it) } else { env_url(env)? };
    let wants_key = match given.method {
        Some(it) => it == AccessKind::ApiKey,
        None => matches!(settings.models.auth_type.as_deref(), Some("gemini-api-key" | "api-key")),
    };
    let given_key = if let Some(it) = gateway { it.key.clone() } else { given.key.clone().filter(|_| wants_key) };
    // The environment's key and headers are for the environment's endpoint, a stored key is for the provider's own:
    // a gateway gets neither by accident.
    let may_read_store = base_url.is_none() || wants_key;
    let (key, key_from) = match given_key {
        Some(it) => (Some(it), Some(KeySource::Client)),
        None if is_named => (None, None),
        None if given.prefers_stored && may_read_store => match stored_key(env)? {
            (None, _) => env_or_stored_key(env, false)?,
            stored => stored,
        },
        None => env_or_stored_key(env, may_read_store)?,
    };
    let kind = match (&base_url, &key) {
        (Some(_), Some(_)) if wants_key => AccessKind::ApiKey,
        (Some(_), _) => AccessKind::Gateway,
        (None, Some(_)) => AccessKind::ApiKey,
        (None, None) => AccessKind::None,
    };
    let env_headers = || env.get("GEMINI_CLI_CUSTOM_HEADERS").filter(|_| !is_named).map(custom_headers);
    let headers = gateway.and_then(|it| it.headers.clone()).or_else(env_headers).unwrap_or_default();
    Ok(ModelAccess {
        kind,
        base_url,
        api_version: own_version(env)?,
        key,
        key_from,
        bearer: env.get("GEMINI_API_KEY_AUTH_MECHANISM").is_some_and(|it| it.trim().eq_ignore_ascii_case("bearer")),
        headers,
        vertex: None,
    })
}

/// Tells whether something is configured, or was chosen. What cannot work counts as well: its error says more than a
/// demo would.
pub fn is_configured(env: &Env, settings: &Settings) -> bool {
    let is_others =
        |it: &str| providers::provider_of(settings, it).is_some() || providers::unknown_model(settings, it).is_some();
    settings.model_name.as_deref().is_some_and(is_others)
        || broken_logins::is_chosen(env, settings, &CredentialOverride::default())
        || model_access(env, settings, &CredentialOverride::default()).map_or(true, |it| it.kind != AccessKind::None)
}

fn env_url(env: &Env) -> Result<Option<String>, AccessError> {
    let url = env.get(BASE_URL).map(check_url).transpose();
    url.map_err(|message| AccessError::new(BASE_URL, message))
}

type SourcedKey = (Option<SecretString>, Option<KeySource>);

fn env_or_stored_key(env: &Env, may_read_store: bool) -> Result<SourcedKey, AccessError> {
    if let Some((name, key)) = env.first_set(&["GEMINI_API_KEY", "GOOGLE_API_KEY"]) {
        let key = check_key(key).map_err(|message| AccessError::new(name, message))?;
        if key.is_some() {
            return Ok((key, Some(KeySource::Variable(name))));
        }
    }
    if may_read_store { stored_key(env) } else { Ok((None, None)) }
}

fn stored_key(env: &Env) -> Result<SourcedKey, AccessError> {
    let Some(home) = workspace::castor_home(env) else { return Ok((None, None)) };
    let failed = |it: credentials::CredentialsError| AccessError { place: it.place.into(), message: it.message };
    let Some(key) = credentials::read(&home).map_err(failed)? else { return Ok((None, None)) };
    let key = check_key(key.expose_secret());
    let key = key.map_err(|message| AccessError { place: credentials::place(&home).into(), message })?;
    let from = key.is_some().then_some(KeySource::Stored);
    Ok((key, from))
}

fn own_version(env: &Env) -> Result<Option<String>, AccessError> {
    env.get("GOOGLE_GENAI_API_VERSION").map(check_version).transpose()
}

/// It becomes a part of the path.
fn check_version(version: &str) -> Result<String, AccessError> {
    let version = version.trim();
    if !version.is_empty() && version.bytes().all(|it| it.is_ascii_alphanumeric()) {
        return Ok(version.to_owned());
    }
    let message = format!("{version:?} is not a version such as v1beta");
    Err(AccessError::new("GOOGLE_GENAI_API_VERSION", message))
}

/// `A: b, C: d`. A comma separates only where another name and colon follow, so values may have commas; entries that
/// are no header are left out.
fn custom_headers(text: &str) -> Vec<(String, SecretString)> {
    let mut entries: Vec<String> = Vec::new();
    for piece in text.split(',') {
        let name = piece.split(':').next().unwrap_or_default().trim();
        let starts = piece.contains(':') && !name.is_empty();
        match entries.last_mut() {
            Some(last) if !starts => {
                last.push(',');
                last.push_str(piece);
            }
            _ => entries.push(piece.to_owned()),
        }
    }
    let header = |entry: &String| {
        let (name, value) = entry.split_once(':')?;
        let (name, value) = (name.trim(), value.trim());
        is_header(name, value).then(|| (name.to_owned(), SecretString::from(value)))
    };
    entries.iter().filter_map(header).collect()
}
