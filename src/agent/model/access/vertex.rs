//! Vertex AI access: an API key in express mode, or a project and location with Google credentials.

use super::{AccessError, AccessKind, CredentialOverride, KeySource, ModelAccess, custom_headers, own_version};
use crate::{
    model::endpoint_checks::{check_key, check_url},
    settings::Settings,
};
use castor_hands::secrets::Env;
use castor_models::providers::gemini::Publisher;

const WISH: &str = "GOOGLE_GENAI_USE_VERTEXAI";
const KEY: &str = "GOOGLE_API_KEY";
const PROJECT: &[&str] = &["GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_PROJECT_ID"];
const LOCATION: &[&str] = &["GOOGLE_CLOUD_LOCATION"];
const BASE_URL: &str = "GOOGLE_VERTEX_BASE_URL";
const API_VERSION: &str = "v1beta1";

/// Tells whether Vertex AI is what the user chose: by the client's sign-in, the settings, else the environment.
pub fn is_wanted(env: &Env, settings: &Settings, given: &CredentialOverride) -> bool {
    let by_env = || env.get(WISH).is_some_and(|it| matches!(it.trim(), "1") || it.trim().eq_ignore_ascii_case("true"));
    match (given.method, settings.models.auth_type.as_deref()) {
        (Some(it), _) => it == AccessKind::Vertex,
        (None, Some("vertex-ai")) => true,
        (None, Some("gemini-api-key" | "api-key" | "gateway")) => false,
        // Others are passed over.
        (None, _) => by_env(),
    }
}

/// What is not set.
pub fn missing(env: &Env) -> String {
    let is_set = |names: &[&str]| env.first_set(names).is_some();
    match (is_set(PROJECT), is_set(LOCATION)) {
        (true, false) => {
            "Vertex AI is chosen, and GOOGLE_CLOUD_LOCATION is not set: set it to a place such as global, \
                          where castor is started."
                .to_owned()
        }
        (false, true) => "Vertex AI is chosen, and GOOGLE_CLOUD_PROJECT is not set: set it to a project's id, or \
                          GOOGLE_API_KEY, where castor is started."
            .to_owned(),
        _ => AccessKind::Vertex.missing().to_owned(),
    }
}

/// How Vertex AI is reached; of the kind `None` where too little is set for that.
///
/// # Errors
/// A variable that cannot work.
pub fn access(env: &Env) -> Result<ModelAccess, AccessError> {
    let key = env.get(KEY).map(check_key).transpose().map_err(|it| AccessError::new(KEY, it))?.flatten();
    let project = part(env, PROJECT, "a project's id")?;
    let location = part(env, LOCATION, "a place such as global or europe-west1")?;
    let publisher = match (&key, project, location) {
        (Some(_), ..) => Some(Publisher::Express),
        (None, Some(project), Some(location)) => Some(Publisher::Project { project, location }),
        _ => None,
    };
    let url = env.get(BASE_URL).map(check_url).transpose().map_err(|it| AccessError::new(BASE_URL, it))?;
    Ok(ModelAccess {
        kind: if publisher.is_some() { AccessKind::Vertex } else { AccessKind::None },
        base_url: Some(url.unwrap_or_else(|| host(publisher.as_ref()))),
        api_version: Some(own_version(env)?.unwrap_or_else(|| API_VERSION.to_owned())),
        key_from: key.as_ref().map(|_| KeySource::Variable(KEY)),
        key,
        bearer: false,
        headers: env.get("GEMINI_CLI_CUSTOM_HEADERS").map(custom_headers).unwrap_or_default(),
        vertex: publisher,
    })
}

/// The first of these variables. It becomes a part of a host or a path.
fn part(env: &Env, names: &[&'static str], what: &str) -> Result<Option<String>, AccessError> {
    let Some((name, value)) = env.first_set(names) else { return Ok(None) };
    let value = value.trim();
    let is_plain = |it: u8| it.is_ascii_alphanumeric() || b"-_.:".contains(&it);
    let dots_only = value.bytes().all(|it| it == b'.');
    if dots_only || !value.bytes().all(is_plain) {
        return Err(AccessError::new(name, format!("{value:?} is not {what}")));
    }
    Ok(Some(value.to_owned()))
}

/// Regions have hosts of their own, and the two unions of regions others than the rest.
fn host(publisher: Option<&Publisher>) -> String {
    match publisher {
        Some(Publisher::Project { location, .. }) => match location.as_str() {
            "global" => "https://aiplatform.googleapis.com".to_owned(),
            "us" | "eu" => format!("https://aiplatform.{location}.rep.googleapis.com"),
            region => format!("https://{}-aiplatform.googleapis.com", region.replace(['_', '.', ':'], "-")),
        },
        Some(Publisher::Express) | None => "https://aiplatform.googleapis.com".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{access, is_wanted};
    use crate::{
        model::access::{AccessKind, CredentialOverride, model_access},
        settings::{Settings, Sources},
    };
    use castor_hands::secrets::Env;
    use castor_tools::workspace::settings::{Layers, WorkspaceFiles};

    const P: (&str, &str) = ("GOOGLE_CLOUD_PROJECT", "my-project");

    #[test]
    fn places_and_keys() {
        let check = |pairs: &[(&str, &str)], expected: &str| {
            let actual = match access(&Env::from_pairs(pairs.iter().copied())) {
                Ok(it) => {
                    assert!(!format!("{it:?}").contains("CANARY"));
                    let version = it.api_version.unwrap_or_default();
                    format!("{:?} {} {version} {:?}", it.kind, it.base_url.unwrap_or_default(), it.vertex)
                }
                Err(it) => it.to_string(),
            };
            assert_eq!(actual, expected, "{pairs:?}");
        };
        let global = "https://aiplatform.googleapis.com";
        let at = |it: &str| format!(r#"v1beta1 Some(Project {{ project: "my-project", location: "{it}" }})"#);
        check(&[], &format!("None {global} v1beta1 None"));
        check(&[P], &format!("None {global} v1beta1 None"));
        check(&[P, ("GOOGLE_CLOUD_LOCATION", "global")], &format!("Vertex {global} {}", at("global")));
        check(
            &[P, ("GOOGLE_CLOUD_LOCATION", "europe-west1")],
            &format!("Vertex https://europe-west1-aiplatform.googleapis.com {}", at("europe-west1")),
        );
        check(
            &[P, ("GOOGLE_CLOUD_LOCATION", "eu")],
            &format!("Vertex https://aiplatform.eu.rep.googleapis.com {}", at("eu")),
        );
        check(&[P, ("GOOGLE_API_KEY", "CANARY")], &format!("Vertex {global} v1beta1 Some(Express)"));
        check(
            &[("GOOGLE_API_KEY", "k"), ("GOOGLE_VERTEX_BASE_URL", "https://gw/"), ("GOOGLE_GENAI_API_VERSION", "v1")],
            "Vertex https://gw v1 Some(Express)",
        );
        for evil in ["x@evil.example/", "evil.example#", "..", "a b"] {
            let expected = format!("GOOGLE_CLOUD_LOCATION: {evil:?} is not a place such as global or europe-west1");
            check(&[P, ("GOOGLE_CLOUD_LOCATION", evil)], &expected);
        }
        check(&[("GOOGLE_CLOUD_PROJECT", "a/b")], "GOOGLE_CLOUD_PROJECT: \"a/b\" is not a project's id");
    }

    #[test]
    fn who_chooses() {
        let wish = ("GOOGLE_GENAI_USE_VERTEXAI", "true");
        let all = [wish, P, ("GOOGLE_CLOUD_LOCATION", "us"), ("GEMINI_API_KEY", "k")];
        let check = |pairs: &[(&str, &str)], auth: Option<&str>, method: Option<AccessKind>, expected: AccessKind| {
            let env = Env::from_pairs(pairs.iter().copied());
            let layers = Layers { layers: Vec::new(), workspace: WorkspaceFiles::Read, warnings: Vec::new() };
            let (mut settings, _) = Settings::merge(Sources { layers: &layers, env: &env, flags: &[] });
            settings.models.auth_type = auth.map(str::to_owned);
            let given = CredentialOverride { method, ..CredentialOverride::default() };
            let is_vertex = expected == AccessKind::Vertex;
            assert_eq!(is_wanted(&env, &settings, &given), is_vertex, "{pairs:?} {auth:?} {method:?}");
            assert_eq!(model_access(&env, &settings, &given).unwrap().kind, expected, "{pairs:?} {auth:?} {method:?}");
        };
        check(&all, None, None, AccessKind::Vertex);
        check(&all, Some("oauth-personal"), None, AccessKind::Vertex);
        check(&all, Some("gemini-api-key"), None, AccessKind::ApiKey);
        check(&all, None, Some(AccessKind::ApiKey), AccessKind::ApiKey);
        check(&all[1..], None, None, AccessKind::ApiKey);
        check(&all[1..], Some("vertex-ai"), None, AccessKind::Vertex);
        check(&all[1..], None, Some(AccessKind::Vertex), AccessKind::Vertex);
        check(&[("GOOGLE_GENAI_USE_VERTEXAI", "false"), ("GEMINI_API_KEY", "k")], None, None, AccessKind::ApiKey);
    }
}
