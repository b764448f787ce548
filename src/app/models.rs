//! Which model a session talks to: scripted, demo or real, recorded or not. Shared by the sessions of the process.

use std::{collections::BTreeMap, sync::Arc};

use jsonrpsee::types::ErrorObjectOwned;

use crate::{
    app::{access, flush, options::Options, settings::Settings},
    base::path::AbsPath,
    wire::jsonrpc::error,
    world::{
        disk,
        http::Http,
        models::{Generator, demo::Demo, gemini::Gemini, recording::Recording, script::Script},
        secrets::Env,
    },
};

/// The model that needs no key and no network.
pub const DEMO: &str = "demo";

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
        let config = access::gemini(env, settings).map_err(|it| flush::auth_required(&it))?;
        let key = config.identity();
        if let Some(known) = self.real.get(&key) {
            return Ok(known.clone());
        }
        let real = recorded(options, Arc::new(Gemini::new(config, self.http.clone())))?;
        self.real.insert(key, real.clone());
        Ok(real)
    }

    fn scripted(&mut self, options: &Options) -> Result<Arc<dyn Generator>, ErrorObjectOwned> {
        if let (Some(script), _) | (None, Some(script)) = (&self.script, &None) {
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
