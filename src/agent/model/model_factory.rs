//! Model factory: makes the generator of a session: scripted, demo, real or recorded.

use std::sync::Arc;

use jsonrpsee::types::ErrorObjectOwned;

use crate::{
    errors::auth_required,
    model::{
        access::{self, AccessKind, CredentialOverride, KeySource, ModelAccess},
        connection::ProcessEnvironment,
        only_models::{OnlyModels, model_refusal},
        outages::Outages,
        providers,
    },
    settings::{Connection, Settings, options::Options},
};
use castor_base::{model::DEMO, path::AbsPath};
use castor_hands::{
    disk, door,
    http::Http,
    secrets::{Env, google},
};
use castor_models::providers::{
    Generator,
    demo::Demo,
    gemini::Gemini,
    google::Tokens,
    recording::Recording,
    remote::{Endpoint, Remote},
    script::Script,
};
use castor_wire::jsonrpc::error;

/// What decides which model is asked, and how.
#[derive(Clone, Copy)]
pub struct ModelContext<'a> {
    pub options: &'a Options,
    /// With what the folder's `.env` files say.
    pub env: &'a Env,
    pub settings: &'a Settings,
}

#[derive(Default)]
pub struct ModelFactory {
    /// Credentials of the client; they are gone with the process.
    pub credentials: CredentialOverride,
    outside: ProcessEnvironment,
    http: Arc<Http>,
    /// One script for all sessions: it is read in the order of requests.
    script: Option<Arc<dyn Generator>>,
    /// What is known of models that do not answer.
    pub outages: Outages,
    /// The last one, for sessions that reach it in the same way.
    real: Option<(ModelAccess, Arc<dyn Generator>)>,
}

impl ModelFactory {
    /// Opens nothing yet. `env` is that of the process.
    pub fn new(env: &Env) -> Self {
        Self { outside: ProcessEnvironment::of(env), ..Self::default() }
    }

    /// Connections are made as these settings say from now on; those that are open stay.
    pub fn set_connection(&mut self, settings: &Connection) {
        let link = self.outside.link(settings);
        door::set_proxies(&link.proxies);
        if *self.http.link() != link {
            self.http = Arc::new(self.http.with_link(link));
            self.real = None;
        }
    }

    /// The one HTTP client of the process.
    pub fn http(&self) -> Arc<Http> {
        self.http.clone()
    }

    /// # Errors
    /// For the client: a script that cannot be read; -32000 without a usable model.
    pub fn generator(
        &mut self,
        context: ModelContext<'_>,
        model: &str,
    ) -> Result<Arc<dyn Generator>, ErrorObjectOwned> {
        let only = &context.settings.models.only;
        if only.is_empty() {
            return self.any_generator(context, model);
        }
        if let Some(why) = model_refusal(model, only) {
            return Err(error::failed("config", &why));
        }
        // By one generator of a provider all its models can be asked.
        Ok(Arc::new(OnlyModels { inner: self.any_generator(context, model)?, models: only.clone() }))
    }

    fn any_generator(
        &mut self,
        ModelContext { options, env, settings }: ModelContext<'_>,
        model: &str,
    ) -> Result<Arc<dyn Generator>, ErrorObjectOwned> {
        if options.script.is_some() {
            return self.script_generator(options);
        }
        if model == DEMO {
            return with_recording(options, Arc::new(Demo));
        }
        if let Some(why) = providers::unknown_model(settings, model) {
            return Err(error::failed("config", &why));
        }
        if let Some(it) = providers::provider_of(settings, model) {
            let remote = providers::generator(it, env, self.http.clone()).map_err(|it| auth_required(&it))?;
            return with_recording(options, Arc::new(remote));
        }
        let access =
            access::model_access(env, settings, &self.credentials).map_err(|it| auth_required(&it.to_string()))?;
        if access.kind == AccessKind::None {
            return Err(auth_required(&access::missing(env, settings, &self.credentials)));
        }
        if let Some((_, known)) = self.real.as_ref().filter(|(it, _)| it.is_same(&access)) {
            return Ok(known.clone());
        }
        let real = gemini(access.clone(), env, self.http.clone()).map_err(|it| auth_required(&it))?;
        let real = with_recording(options, Arc::new(real))?;
        self.real = Some((access, real.clone()));
        Ok(real)
    }

    /// The next generator is made anew, with the credentials of then.
    pub fn forget_connection(&mut self) {
        self.real = None;
    }

    /// From now on a stored key goes before the one of a variable; whether such a key was in use.
    pub fn prefer_stored_key(&mut self, ModelContext { env, settings, .. }: ModelContext<'_>) -> bool {
        let access = access::model_access(env, settings, &self.credentials);
        let is_of_variable = access.is_ok_and(|it| matches!(it.key_from, Some(KeySource::Variable(_))));
        self.credentials.prefers_stored |= is_of_variable;
        is_of_variable
    }

    /// Forgets what the client brought, and every model that is reached with credentials. Sessions that hold one go on
    /// until they are refitted.
    pub fn forget_credentials(&mut self) {
        self.credentials = CredentialOverride::default();
        self.real = None;
    }

    fn script_generator(&mut self, options: &Options) -> Result<Arc<dyn Generator>, ErrorObjectOwned> {
        if let Some(script) = &self.script {
            return Ok(script.clone());
        }
        let Some(from) = &options.script else { return Err(error::bug("no script")) };
        let failed = |why: &str| {
            error::failed(
                "config",
                &format!("--fake-responses {}: {why}. Name a file of recorded answers.", from.file.display()),
            )
        };
        let path = absolute(&from.file).ok_or_else(|| failed("not a usable path"))?;
        let bytes = disk::read(&path).map_err(|it| failed(&it.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|_| failed("not UTF-8"))?;
        let script = Script::parse(&text, from.strict).map_err(|it| failed(&it.message))?;
        let script = with_recording(options, Arc::new(script))?;
        self.script = Some(script.clone());
        Ok(script)
    }
}

/// Where the Gemini API is when nothing else is configured.
const GEMINI_URL: &str = "https://generativelanguage.googleapis.com";

/// Gemini's models as they are configured.
///
/// # Errors
/// In words: what is missing, or cannot work.
pub fn gemini_of(
    env: &Env,
    settings: &Settings,
    given: &CredentialOverride,
    http: Arc<Http>,
) -> Result<Remote, String> {
    let access = access::model_access(env, settings, given).map_err(|it| it.to_string())?;
    match access.kind {
        AccessKind::None => Err(access::missing(env, settings, given)),
        _ => gemini(access, env, http),
    }
}

fn gemini(access: ModelAccess, env: &Env, http: Arc<Http>) -> Result<Remote, String> {
    let tokens = match (&access.vertex, &access.key) {
        (Some(_), None) => Some(Arc::new(Tokens::new(google::find(env).map_err(|it| it.to_string())?, http.clone()))),
        _ => None,
    };
    let origin = access::endpoint_origin(&access, env);
    let endpoint = Endpoint {
        origin,
        base_url: access.base_url.unwrap_or_else(|| GEMINI_URL.to_owned()),
        key: access.key.unwrap_or_default(),
        headers: access.headers,
        tokens,
    };
    let api_version = access.api_version.unwrap_or_else(|| "v1beta".to_owned());
    Ok(Remote::new(endpoint, Gemini { api_version, bearer: access.bearer, vertex: access.vertex }, http))
}

fn with_recording(options: &Options, inner: Arc<dyn Generator>) -> Result<Arc<dyn Generator>, ErrorObjectOwned> {
    let Some(file) = &options.record else { return Ok(inner) };
    let failed = |why: &str| {
        error::failed(
            "config",
            &format!("--record-responses {}: {why}. Name a file that castor may write.", file.display()),
        )
    };
    let path = absolute(file).ok_or_else(|| failed("not a usable path"))?;
    let file = disk::open_append_private(&path).map_err(|it| failed(&it.to_string()))?;
    Ok(Arc::new(Recording::new(inner, file)))
}

/// Relative to where castor was started: paths of flags are the shell's.
fn absolute(path: &std::path::Path) -> Option<AbsPath> {
    AbsPath::new(std::path::absolute(path).ok()?)
}
