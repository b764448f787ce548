//! Model check of `castor doctor`: asks the provider for its model list.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::time::timeout;

use castor_agent::{
    model::{
        access::{self, AccessKind, CredentialOverride},
        connection::ProcessEnvironment,
        model_factory::gemini_of,
        providers,
    },
    settings::Settings,
};
use castor_base::model::{Failure, FailureKind};
use castor_hands::{http::Http, secrets::Env};
use castor_models::providers::remote::{Remote, web_page::WEB_PAGE};

/// A provider that is slower would not answer a prompt either.
const PATIENCE: Duration = Duration::from_secs(10);

/// The result of a model probe.
#[derive(Clone, Debug)]
pub enum ProbeResult {
    /// It answered, be it with a no that says nothing of prompts.
    Answers(Duration),
    /// No request was made.
    NotProbed,
    /// Why prompts would fail.
    Broken(String),
}

/// What keeps sessions from asking their model at all.
pub fn missing_access(env: &Env, settings: &Settings) -> Option<String> {
    if let Some(model) = &settings.model_name
        && let Some(why) = providers::unknown_model(settings, model)
    {
        return Some(why);
    }
    match settings.model_name.as_deref().and_then(|it| providers::provider_of(settings, it)) {
        Some(it) => providers::generator(it, env, Arc::default()).err(),
        None => match access::model_access(env, settings, &CredentialOverride::default()) {
            Ok(it) if it.kind == AccessKind::None => {
                Some(access::missing(env, settings, &CredentialOverride::default()))
            }
            Ok(_) => None,
            Err(why) => Some(why.to_string()),
        },
    }
}

/// `process`: the environment without what files add.
pub fn probe_model(process: &Env, env: &Env, settings: &Settings) -> ProbeResult {
    let http = Arc::new(Http::new(ProcessEnvironment::of(process).link(&settings.models.connection)));
    let remote = match settings.model_name.as_deref().and_then(|it| providers::provider_of(settings, it)) {
        Some(it) => providers::generator(it, env, http),
        None => gemini_of(env, settings, &CredentialOverride::default(), http),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match (remote, runtime) {
        (Ok(remote), Ok(runtime)) => {
            let reach = runtime.block_on(send_probe(&remote));
            // A name that is still being looked up waits for nobody.
            runtime.shutdown_background();
            reach
        }
        // Said as what is missing.
        (Err(_), _) | (_, Err(_)) => ProbeResult::NotProbed,
    }
}

async fn send_probe(remote: &Remote) -> ProbeResult {
    let start = Instant::now();
    match timeout(PATIENCE, remote.list()).await {
        Ok(Ok(_)) => ProbeResult::Answers(start.elapsed()),
        Ok(Err(it)) => classify_failure(&it, start.elapsed()),
        Err(_) => ProbeResult::Broken(format!("the model's provider did not answer within {} s", PATIENCE.as_secs())),
    }
}

fn classify_failure(it: &Failure, took: Duration) -> ProbeResult {
    let is_web_page = it.details.words.iter().any(|it| it == WEB_PAGE);
    match (it.kind, it.status) {
        _ if is_web_page => ProbeResult::Broken(it.message.clone()),
        (FailureKind::Connect | FailureKind::Stream, _) | (_, Some(401 | 403)) => {
            ProbeResult::Broken(format!("the model cannot be reached: {}", it.message))
        }
        // No list is to be had, so nothing was sent; or a credential of Google's was not to be had.
        (FailureKind::Auth, None) => ProbeResult::NotProbed,
        _ => ProbeResult::Answers(took),
    }
}

impl ProbeResult {
    pub fn problem(&self) -> Option<&str> {
        match self {
            Self::Broken(why) => Some(why),
            Self::Answers(_) | Self::NotProbed => None,
        }
    }

    pub fn in_words(&self) -> String {
        match self {
            Self::Answers(took) => format!("answers, {} ms", took.as_millis()),
            Self::NotProbed => "was not asked".to_owned(),
            Self::Broken(why) => format!("FAILED: {why}"),
        }
    }

    pub fn ms(&self) -> Option<u64> {
        match self {
            Self::Answers(took) => Some(took.as_millis() as u64),
            Self::NotProbed | Self::Broken(_) => None,
        }
    }
}
