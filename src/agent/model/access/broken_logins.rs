//! Broken logins: a chosen way to sign in that cannot work is an error. No other model answers instead.

use super::{AccessKind, CredentialOverride, enforced, vertex};
use crate::{model::providers, settings::Settings};
use castor_hands::secrets::Env;

/// Logins of Gemini CLI that castor does not offer.
const LOGINS: &[&str] = &["oauth-personal", "login-with-google", "cloud-shell", "compute-default-credentials"];
const LOGIN: &str = "GOOGLE_GENAI_USE_GCA";

/// Tells whether the user chose one of them, or Vertex AI, or may choose only one.
pub fn is_chosen(env: &Env, settings: &Settings, given: &CredentialOverride) -> bool {
    let is_enforced = settings.models.enforced_auth.is_some();
    is_enforced || vertex::is_wanted(env, settings, given) || broken_login(env, settings, given).is_some()
}

/// What is to be done, where nothing is configured.
pub fn missing(env: &Env, settings: &Settings, given: &CredentialOverride) -> String {
    if let Some(it) = enforced::missing(settings) {
        return it;
    }
    if vertex::is_wanted(env, settings, given) {
        return vertex::missing(env);
    }
    let keys = providers::keys(env, settings);
    let key = keys.first();
    if let Some(it) = broken_login(env, settings, given) {
        let other = key.map(|(variable, provider)| format!(" {variable} is set: --model {provider}/NAME uses it."));
        return format!(
            "{it} wants Google's login, which Google keeps to its own programs. Run `castor auth login` (free key: \
             https://aistudio.google.com/apikey).{}",
            other.unwrap_or_default()
        );
    }
    match key {
        None => AccessKind::None.missing().to_owned(),
        Some((variable, provider)) => format!(
            "No model is chosen: {variable} is set, and --model {provider}/NAME uses it (`castor models {provider}` \
             lists names). For Gemini's models run `castor auth login`, or set GEMINI_API_KEY."
        ),
    }
}

/// Where the login is chosen.
fn broken_login(env: &Env, settings: &Settings, given: &CredentialOverride) -> Option<String> {
    if given.method.is_some() {
        return None;
    }
    match settings.models.auth_type.as_deref() {
        Some(it) if LOGINS.contains(&it) => Some(format!("The setting security.auth.selectedType ({it})")),
        Some(_) => None,
        None => env.get(LOGIN).filter(|it| it.trim().eq_ignore_ascii_case("true")).map(|_| LOGIN.to_owned()),
    }
}
