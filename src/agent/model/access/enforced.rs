//! `security.auth.enforcedType`: the one way to sign in that is allowed.

use super::{AccessError, AccessKind};
use crate::settings::Settings;
use castor_base::text;

const PLACE: &str = "security.auth.enforcedType";

/// The way, and how to take it. `None`: the settings leave it open.
///
/// # Errors
/// castor has no such way.
fn wanted(settings: &Settings) -> Result<Option<(&str, AccessKind, &'static str)>, AccessError> {
    let Some(name) = settings.models.enforced_auth.as_deref() else { return Ok(None) };
    let (kind, how) = match name {
        "gemini-api-key" | "api-key" => (AccessKind::ApiKey, "run `castor auth login`, or set GEMINI_API_KEY"),
        "gateway" => (AccessKind::Gateway, "set GOOGLE_GEMINI_BASE_URL"),
        "vertex-ai" => (AccessKind::Vertex, "set GOOGLE_GENAI_USE_VERTEXAI=true"),
        other => {
            let why = "is the only allowed way to sign in, and castor does not have it: it has gemini-api-key, gateway \
                       and vertex-ai";
            return Err(AccessError::new(PLACE, format!("{:?} {why}.", text::head(other, 50))));
        }
    };
    Ok(Some((name, kind, how)))
}

/// Who is not signed in at all hears that elsewhere.
///
/// # Errors
/// The way that is configured is another one.
pub(super) fn check(kind: AccessKind, settings: &Settings) -> Result<(), AccessError> {
    let Some((wanted, allowed, how)) = wanted(settings)? else { return Ok(()) };
    let name = match kind {
        AccessKind::None => return Ok(()),
        it if it == allowed => return Ok(()),
        AccessKind::ApiKey => "gemini-api-key",
        AccessKind::Gateway => "gateway",
        AccessKind::Vertex => "vertex-ai",
    };
    let why = format!("{wanted} is the only allowed way to sign in, but castor is signed in by {name}: {how}.");
    Err(AccessError::new(PLACE, why))
}

/// What is to be done where nothing is configured; `None`: the settings leave it open.
pub(super) fn missing(settings: &Settings) -> Option<String> {
    let why = match wanted(settings) {
        Ok(it) => it.map(|(name, _, how)| {
            AccessError::new(
                PLACE,
                format!("{name} is the only allowed way to sign in, and nobody is signed in: {how}."),
            )
        })?,
        Err(it) => it,
    };
    Some(why.to_string())
}
