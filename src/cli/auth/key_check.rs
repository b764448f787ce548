//! Check of a new key: one request for the list of models, before the key is stored.

use std::{sync::Arc, time::Duration};

use secrecy::SecretString;
use tokio::time::timeout;

use castor_agent::{
    model::{
        access::{AccessKind, BASE_URL, CredentialOverride},
        connection::ProcessEnvironment,
        model_factory::gemini_of,
    },
    session::place::load_ground,
    settings::options::Options,
};
use castor_base::{
    model::{Failure, FailureKind},
    path::AbsPath,
};
use castor_hands::{http::Http, secrets::Env};
use castor_models::providers::remote::{Remote, origin::EndpointOrigin};

/// Somebody waits at a terminal.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the provider says of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyCheck {
    Works,
    /// The provider refuses it: its words.
    Refused(String),
    /// Why nobody knows.
    Unknown(String),
}

/// Asks Gemini's API for its models with `key`.
pub fn check_with_provider(env: &Env, cwd: &AbsPath, key: &SecretString) -> KeyCheck {
    let (ground, settings) = load_ground(&Options::default(), env, cwd);
    let is_chosen = matches!(settings.models.auth_type.as_deref(), Some("gemini-api-key" | "api-key"));
    // A stored key goes to the provider's own endpoint; a gateway does not get it by accident.
    if ground.env.get(BASE_URL).is_some() && !is_chosen {
        return KeyCheck::Unknown(format!("{BASE_URL} is set, and the key is not for that address"));
    }
    let http = Arc::new(Http::new(ProcessEnvironment::of(env).link(&settings.models.connection)));
    let method = Some(AccessKind::ApiKey);
    let given = CredentialOverride { method, key: Some(key.clone()), ..CredentialOverride::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match (gemini_of(&ground.env, &settings, &given, http), runtime) {
        (Ok(remote), Ok(runtime)) => {
            // The user sees which key it is.
            let origin = EndpointOrigin { api: "the Gemini API".to_owned(), ..EndpointOrigin::default() };
            let found = runtime.block_on(list_models(&remote.with_origin(origin)));
            // A name that is still being looked up waits for nobody.
            runtime.shutdown_background();
            found
        }
        (Err(why), _) => KeyCheck::Unknown(why),
        (_, Err(why)) => KeyCheck::Unknown(why.to_string()),
    }
}

async fn list_models(remote: &Remote) -> KeyCheck {
    match timeout(PATIENCE, remote.list()).await {
        Ok(Ok(_)) => KeyCheck::Works,
        Ok(Err(Failure { kind: FailureKind::Auth, status: Some(_), message, .. })) => KeyCheck::Refused(message),
        Ok(Err(it)) => KeyCheck::Unknown(it.message),
        Err(_) => KeyCheck::Unknown(format!("no answer within {} s", PATIENCE.as_secs())),
    }
}
