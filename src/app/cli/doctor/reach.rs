//! Whether the configured model can be reached: its provider is asked for its list, as `castor models` does.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{
    app::{
        access::{self, AccessKind, Given},
        connection::Outside,
        models::gemini_of,
        providers,
        settings::Settings,
    },
    base::model::{Failure, FailureKind},
    world::{http::Http, models::remote::Remote, secrets::Env},
};

/// Who does not answer by then would not answer a prompt either.
const PATIENCE: Duration = Duration::from_secs(10);

/// What became of the question.
#[derive(Clone, Debug)]
pub enum Reach {
    /// It answered, be it with a no that says nothing of prompts.
    Answers(Duration),
    /// Nobody was asked.
    Unasked,
    /// Why prompts would fail.
    Broken(String),
}

/// What keeps sessions from asking their model at all.
pub fn missing(env: &Env, settings: &Settings) -> Option<String> {
    if let Some(model) = &settings.model_name
        && let Some(why) = providers::unknown(settings, model)
    {
        return Some(why);
    }
    match settings.model_name.as_deref().and_then(|it| providers::of(settings, it)) {
        Some(it) => providers::generator(it, env, Arc::default()).err(),
        None => match access::model_access(env, settings, &Given::default()) {
            Ok(it) if it.kind == AccessKind::None => Some(access::missing(env, settings, &Given::default())),
            Ok(_) => None,
            Err(why) => Some(why.to_string()),
        },
    }
}

/// `process`: the environment without what files add.
pub fn ask(process: &Env, env: &Env, settings: &Settings) -> Reach {
    let http = Arc::new(Http::new(Outside::of(process).link(&settings.reach.connection)));
    let remote = match settings.model_name.as_deref().and_then(|it| providers::of(settings, it)) {
        Some(it) => providers::generator(it, env, http),
        None => gemini_of(env, settings, &Given::default(), http),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match (remote, runtime) {
        (Ok(remote), Ok(runtime)) => {
            let reach = runtime.block_on(look(&remote));
            // A name that is still being looked up waits for nobody.
            runtime.shutdown_background();
            reach
        }
        // Said as what is missing.
        (Err(_), _) | (_, Err(_)) => Reach::Unasked,
    }
}

async fn look(remote: &Remote) -> Reach {
    let start = Instant::now();
    match timeout(PATIENCE, remote.list()).await {
        Ok(Ok(_)) => Reach::Answers(start.elapsed()),
        Ok(Err(it)) => judged(&it, start.elapsed()),
        Err(_) => Reach::Broken(format!("the model's provider did not answer within {} s", PATIENCE.as_secs())),
    }
}

fn judged(it: &Failure, took: Duration) -> Reach {
    match (it.kind, it.status) {
        (FailureKind::Connect | FailureKind::Stream, _) | (_, Some(401 | 403)) => {
            Reach::Broken(format!("the model cannot be reached: {}", it.message))
        }
        // No list is to be had, so nothing was sent; or a credential of Google's was not to be had.
        (FailureKind::Auth, None) => Reach::Unasked,
        _ => Reach::Answers(took),
    }
}

impl Reach {
    pub fn problem(&self) -> Option<&str> {
        match self {
            Self::Broken(why) => Some(why),
            Self::Answers(_) | Self::Unasked => None,
        }
    }

    pub fn in_words(&self) -> String {
        match self {
            Self::Answers(took) => format!("answers, {} ms", took.as_millis()),
            Self::Unasked => "was not asked".to_owned(),
            Self::Broken(why) => format!("FAILED: {why}"),
        }
    }

    pub fn to_json(&self) -> Value {
        let ms = match self {
            Self::Answers(took) => Some(took.as_millis() as u64),
            Self::Unasked | Self::Broken(_) => None,
        };
        json!({ "ms": ms, "problem": self.problem() })
    }
}
