//! Which model a session talks to: scripted, demo or real, recorded or not. Shared by the sessions of the process.

use std::{collections::BTreeMap, sync::Arc};

use jsonrpsee::types::ErrorObjectOwned;
use secrecy::ExposeSecret;

use crate::{
    app::{
        access::{self, AccessKind, ModelAccess},
        flush,
        options::{DEMO, Options},
        settings::Settings,
    },
    base::path::AbsPath,
    wire::jsonrpc::error,
    world::{
        disk,
        http::Http,
        models::{
            Generator,
            demo::Demo,
            gemini::{Config, Gemini},
            recording::Recording,
            script::Script,
        },
        secrets::Env,
    },
};

#[derive(Default)]
pub struct Models {
    http: Arc<Http>,
    /// One script for all sessions: it is read in the order of requests.
    script: Option<Arc<dyn Generator>>,
    /// By how they are reached: connections are shared.
    real: BTreeMap<String, Arc<dyn Generator>>,
}

impl Models {
    /// # Errors
    /// For the client: a script that cannot be read; -32000 without a usable model.
    pub fn generator(
        &mut self,
        options: &Options,
        env: &Env,
        settings: &Settings,
        model: &str,
    ) -> Result<Arc<dyn Generator>, ErrorObjectOwned> {
        if options.script.is_some() {
            return self.scripted(options);
        }
        if model == DEMO {
            return recorded(options, Arc::new(Demo));
        }
        let access = access::model_access(env, settings).map_err(|it| flush::auth_required(&it.to_string()))?;
        if access.kind == AccessKind::None {
            return Err(flush::auth_required(access.kind.missing()));
        }
        // The environment does not change, so one way of access serves the whole process.
        let key = format!("{:?} {:?} {:?}", access.kind, access.base_url, access.api_version);
        if let Some(known) = self.real.get(&key) {
            return Ok(known.clone());
        }
        let config = gemini_config(access);
        let real = recorded(options, Arc::new(Gemini::new(config, self.http.clone())))?;
        self.real.insert(key, real.clone());
        Ok(real)
    }

    fn scripted(&mut self, options: &Options) -> Result<Arc<dyn Generator>, ErrorObjectOwned> {
        if let Some(script) = &self.script {
            return Ok(script.clone());
        }
        let Some(from) = &options.script else { return Err(error::internal("no script")) };
        let failed = |why: &str| error::internal(&format!("--fake-responses {}: {why}", from.file.display()));
        let path = absolute(&from.file).ok_or_else(|| failed("not a usable path"))?;
        let bytes = disk::read(&path).map_err(|it| failed(&it.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|_| failed("not UTF-8"))?;
        let script = Script::parse(&text, from.strict).map_err(|it| failed(&it.message))?;
        let script = recorded(options, Arc::new(script))?;
        self.script = Some(script.clone());
        Ok(script)
    }
}

/// Where the Gemini API is when nothing else is configured.
const GEMINI_URL: &str = "https://generativelanguage.googleapis.com";

fn gemini_config(access: ModelAccess) -> Config {
    let headers = access.headers.iter().map(|(name, value)| (name.clone(), value.expose_secret().to_owned()));
    Config {
        base_url: access.base_url.unwrap_or_else(|| GEMINI_URL.to_owned()),
        api_version: access.api_version.unwrap_or_else(|| "v1beta".to_owned()),
        bearer: access.bearer,
        headers: headers.collect(),
        key: access.key.unwrap_or_default(),
    }
}

fn recorded(options: &Options, inner: Arc<dyn Generator>) -> Result<Arc<dyn Generator>, ErrorObjectOwned> {
    let Some(file) = &options.record else { return Ok(inner) };
    let failed = |why: &str| error::internal(&format!("--record-responses {}: {why}", file.display()));
    let path = absolute(file).ok_or_else(|| failed("not a usable path"))?;
    let file = disk::open_append_private(&path).map_err(|it| failed(&it.to_string()))?;
    Ok(Arc::new(Recording::new(inner, file)))
}

/// Relative to where castor was started: paths of flags are the shell's.
fn absolute(path: &std::path::Path) -> Option<AbsPath> {
    AbsPath::new(std::path::absolute(path).ok()?)
}
