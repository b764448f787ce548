//! Origins of Gemini's endpoint and key: the variable, file or store that holds each of them.

use super::{AccessKind, BASE_URL, KeySource, ModelAccess};
use crate::model::providers::place_of_variable;
use castor_base::credential::{Credential, CredentialOwner};
use castor_hands::{
    http,
    secrets::{Env, credentials},
};
use castor_models::providers::remote::origin::EndpointOrigin;
use castor_tools::workspace;

/// Where keys are made.
const GEMINI_KEYS: &str = "https://aistudio.google.com/apikey";
const VERTEX_KEYS: &str = "https://console.cloud.google.com/apis/credentials";

/// What people are told of it when a request fails.
pub fn endpoint_origin(access: &ModelAccess, env: &Env) -> EndpointOrigin {
    let is_vertex = access.vertex.is_some();
    let api = if is_vertex { "Vertex AI" } else { "the Gemini API" };
    let variable = if is_vertex { "GOOGLE_VERTEX_BASE_URL" } else { BASE_URL };
    let address = (access.base_url.is_some() && env.get(variable).is_some()).then(|| place_of_variable(variable, env));
    let given = access.base_url.is_some() && address.is_none() && !is_vertex;
    let (key, change) = match access.key_from {
        Some(KeySource::Client) => ("the key that your editor sent".to_owned(), "Sign in again there.".to_owned()),
        Some(KeySource::Variable(name)) => {
            let change = format!("Set another in {name}, or unset it and run `castor auth login`.");
            (format!("the key in {}", place_of_variable(name, env)), change)
        }
        Some(KeySource::Stored) => {
            let place = workspace::castor_home(env).map(|it| format!(" in {}", credentials::place(&it)));
            let key = format!("the stored key{}", place.unwrap_or_default());
            (key, "Run `castor auth login` to replace it.".to_owned())
        }
        None if access.kind == AccessKind::Vertex => {
            let key = "your credentials of Google Cloud".to_owned();
            (key, "Run `gcloud auth application-default login`.".to_owned())
        }
        None => (String::new(), "Set GEMINI_API_KEY.".to_owned()),
    };
    EndpointOrigin {
        api: api.to_owned(),
        address: address.or_else(|| given.then(|| "the address that your editor sent".to_owned())),
        key: Some(key).filter(|it| !it.is_empty()),
        change,
        credential: Some(credential(access)),
    }
}

/// A gateway's keys are the gateway's own matter; `castor auth login` stores none for it.
fn credential(access: &ModelAccess) -> Credential {
    let (name, page) = match (access.kind, &access.base_url) {
        (AccessKind::Vertex, _) => ("vertex-ai", Some(VERTEX_KEYS.to_owned())),
        (AccessKind::Gateway, Some(url)) => ("gateway", http::origin_of(url)),
        (_, Some(url)) => ("gemini", http::origin_of(url)),
        (_, None) => ("gemini", Some(GEMINI_KEYS.to_owned())),
    };
    let can_log_in = access.kind == AccessKind::ApiKey;
    Credential { can_log_in, ..Credential::new(CredentialOwner::Model, name, page) }
}

#[cfg(test)]
mod tests {
    use super::endpoint_origin;
    use crate::{
        model::access::{CredentialOverride, model_access},
        settings::{Settings, Sources},
    };
    use castor_hands::secrets::Env;
    use castor_tools::workspace::settings::{Layers, WorkspaceFiles};

    #[test]
    fn the_key_and_the_address_are_named() {
        let check = |pairs: &[(&str, &str)], file: bool, expected: [&str; 3]| {
            let mut env = Env::from_pairs([]);
            for (name, value) in pairs {
                match file {
                    true => env.set_if_absent(name, value, ("/ws/.env", 1)),
                    false => env = Env::from_pairs(pairs.iter().copied()),
                }
            }
            let layers = Layers { layers: Vec::new(), workspace: WorkspaceFiles::Read, warnings: Vec::new() };
            let (settings, _) = Settings::merge(Sources { layers: &layers, env: &env, flags: &[] });
            let access = model_access(&env, &settings, &CredentialOverride::default()).unwrap();
            let it = endpoint_origin(&access, &env);
            let found = [it.api, it.address.unwrap_or_default(), it.key.unwrap_or_default()];
            assert_eq!(found, expected, "{pairs:?}");
            assert!(!it.change.contains("CANARY"));
        };
        let key = ("GEMINI_API_KEY", "CANARY");
        let gateway = ("GOOGLE_GEMINI_BASE_URL", "https://gw.test");
        check(&[key], false, ["the Gemini API", "", "the key in GEMINI_API_KEY"]);
        check(&[gateway], false, ["the Gemini API", "GOOGLE_GEMINI_BASE_URL", ""]);
        let in_file = ["the Gemini API", "GOOGLE_GEMINI_BASE_URL in /ws/.env", "the key in GEMINI_API_KEY in /ws/.env"];
        check(&[key, gateway], true, in_file);
    }
}
