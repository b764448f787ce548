//! `castor auth status`: every way to sign in, whether it is configured, and where.

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Serialize;

use super::{AuthStreams, VerbOutcome, last_four};
use crate::cli::exits::EXIT_AUTH;
use castor_agent::{
    model::{
        access::{self, AccessError, AccessKind, CredentialOverride, KeySource, ModelAccess},
        providers,
    },
    session::place::load_ground,
    settings::{Provider, Settings, options::Options},
};
use castor_base::path::AbsPath;
use castor_hands::{
    http::safe_host,
    secrets::{Env, credentials},
};
use castor_tools::workspace;

/// The ways, by the ids that clients know them by.
const METHODS: &[(&str, AccessKind)] =
    &[("gemini-api-key", AccessKind::ApiKey), ("gateway", AccessKind::Gateway), ("vertex-ai", AccessKind::Vertex)];

/// What `castor auth status --json` writes: one object.
#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuthOutput {
    /// The id of the way that sessions in this folder use.
    pub active: Option<String>,
    pub methods: Vec<LoginStatus>,
}

/// One way to sign in, ready to be said.
#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoginStatus {
    pub id: String,
    configured: bool,
    /// The one that sessions in this folder use.
    #[serde(skip)]
    active: bool,
    /// `environment`, `file`, `stored`, `settings` (it wants no key) or `none`.
    pub source: &'static str,
    /// The variable, with its file where it has one; the place; the provider's host.
    pub place: Option<String>,
    /// The end of the key.
    #[serde(rename = "keyEndsIn")]
    ends: Option<String>,
}

pub fn status(as_json: bool, env: &Env, cwd: &AbsPath, streams: &mut AuthStreams<'_>) -> VerbOutcome {
    let (ground, settings) = load_ground(&Options::default(), env, cwd);
    let rows = rows(&ground.env, &settings).map_err(|it| it.to_string())?;
    let is_active = rows.iter().any(|it| it.active);
    let text = if as_json {
        // Structs can always be written.
        serde_json::to_string(&output(rows)).unwrap_or_default() + "\n"
    } else {
        as_text(&rows, &access::missing(&ground.env, &settings, &CredentialOverride::default()))
    };
    // What stands in them may be what is missing.
    for it in ground.layers().unread_files() {
        _ = writeln!(streams.err, "castor: {it}");
    }
    Ok((if is_active { 0 } else { EXIT_AUTH }, text))
}

/// Where the keys are, without any part of them.
///
/// # Errors
/// What is configured so that it cannot work.
pub fn sources(env: &Env, cwd: &AbsPath) -> Result<AuthOutput, String> {
    let (ground, settings) = load_ground(&Options::default(), env, cwd);
    let mut rows = rows(&ground.env, &settings).map_err(|it| it.to_string())?;
    rows.iter_mut().for_each(|it| it.ends = None);
    Ok(output(rows))
}

fn rows(env: &Env, settings: &Settings) -> Result<Vec<LoginStatus>, AccessError> {
    let active = access::model_access(env, settings, &CredentialOverride::default())?.kind;
    let row = |(id, kind): &(&'static str, AccessKind)| {
        let chosen = CredentialOverride { method: Some(*kind), ..CredentialOverride::default() };
        let it = access::model_access(env, settings, &chosen)?;
        Ok(row(id, *kind, active == *kind, &it, env))
    };
    let own = METHODS.iter().map(row).collect::<Result<Vec<LoginStatus>, _>>()?;
    let others = settings.models.providers.iter().filter_map(|it| provider(it, env, settings));
    let mut res: Vec<LoginStatus> = own.into_iter().chain(others).collect();
    // A model of another provider's is asked with that one's key.
    if settings.model_name.as_deref().is_some_and(|it| providers::provider_of(settings, it).is_some()) {
        res.iter_mut().take(METHODS.len()).for_each(|it| it.active = false);
    }
    Ok(res)
}

/// A provider that needs a key, or one without that the settings or the model name.
fn provider(it: &Provider, env: &Env, settings: &Settings) -> Option<LoginStatus> {
    let chosen = settings.model_name.as_deref().and_then(|it| providers::provider_of(settings, it));
    let is_chosen = chosen.is_some_and(|chosen| chosen.name == it.name);
    let Some(variable) = it.key_env.as_deref() else {
        let host = it.base_url.parse().map_or_else(|_| "no URL".to_owned(), |it| safe_host(&it));
        let named = is_chosen || it.is_configured;
        let (id, source, place) = (it.name.clone(), "settings", Some(host));
        return named.then_some(LoginStatus { id, configured: true, active: is_chosen, source, place, ends: None });
    };
    let key = env.get(variable).map(|it| SecretString::from(it.trim()));
    let (source, place) = if key.is_some() { variable_of(variable, env) } else { ("none", None) };
    let ends = key.as_ref().and_then(last_four).map(str::to_owned);
    Some(LoginStatus {
        id: it.name.clone(),
        configured: key.is_some(),
        active: key.is_some() && is_chosen,
        source,
        place,
        ends,
    })
}

/// Where a variable that is set comes from.
fn variable_of(name: &str, env: &Env) -> (&'static str, Option<String>) {
    match env.source_file(name) {
        Some(file) => ("file", Some(format!("{name} in {file}"))),
        None => ("environment", Some(name.to_owned())),
    }
}

fn row(id: &'static str, kind: AccessKind, active: bool, it: &ModelAccess, env: &Env) -> LoginStatus {
    let configured = it.kind == kind;
    let home = workspace::castor_home(env);
    let (source, place) = match (configured, kind, it.key_from) {
        (false, ..) => ("none", None),
        (_, AccessKind::Gateway, _) => variable_of(access::BASE_URL, env),
        (_, AccessKind::Vertex, None) => variable_of("GOOGLE_CLOUD_PROJECT", env),
        (_, _, Some(KeySource::Variable(name))) => variable_of(name, env),
        _ => ("stored", home.map(|it| credentials::place(&it))),
    };
    let ends = it.key.as_ref().filter(|_| configured).and_then(last_four).map(str::to_owned);
    LoginStatus { id: id.to_owned(), configured, active, source, place, ends }
}

fn as_text(rows: &[LoginStatus], missing: &str) -> String {
    let line = |it: &LoginStatus| {
        let mut res = format!("{:<16}", it.id);
        match (&it.place, it.source) {
            (Some(name), "environment") => res += &format!("{name} in the environment"),
            (Some(host), "settings") => res += &format!("{host}, without a key"),
            (Some(place), _) => res += place,
            (None, _) => res += "not configured",
        }
        if let Some(ends) = &it.ends {
            res += &format!(", the key ends in {ends}");
        }
        res + if it.active { " (in use)\n" } else { "\n" }
    };
    let mut res: String = rows.iter().map(line).collect();
    if !rows.iter().any(|it| it.active) {
        res += &format!("\n{missing}\n");
    }
    res
}

fn output(methods: Vec<LoginStatus>) -> AuthOutput {
    let active = methods.iter().find(|it| it.active).map(|it| it.id.clone());
    AuthOutput { active, methods }
}
