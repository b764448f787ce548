//! Model providers beside Gemini: from a name such as `ollama/qwen3` to a generator.

use std::sync::Arc;

use secrecy::SecretString;

use super::endpoint_checks;
use crate::settings::{Provider, Settings};
use castor_base::credential::{Credential, CredentialOwner};
use castor_hands::{
    http::{self, Http},
    secrets::Env,
};
use castor_models::providers::remote::{Endpoint, Remote, origin::EndpointOrigin};

/// The provider of `model`; `None`: it is one of Gemini's.
pub fn provider_of<'a>(settings: &'a Settings, model: &str) -> Option<&'a Provider> {
    let (name, _) = model.split_once('/')?;
    settings.models.providers.iter().find(|it| it.name == name)
}

/// Why `model` cannot be asked: it names no model, or a provider that there is not. Gemini's own names may have a `/`, too.
pub fn unknown_model(settings: &Settings, model: &str) -> Option<String> {
    const OWN: &[&str] = &["models", "tunedModels", "projects"];
    let (name, rest) = model.split_once('/')?;
    let known = OWN.contains(&name) || provider_of(settings, model).is_some();
    if known && rest.trim().is_empty() {
        return Some(format!("{model:?} names no model: write {name}/NAME, `castor models` lists names."));
    }
    (!known).then(|| unknown_provider(settings, name))
}

/// That there is no such provider, and what there is.
pub fn unknown_provider(settings: &Settings, name: &str) -> String {
    let known: Vec<&str> = settings.models.providers.iter().map(|it| it.name.as_str()).collect();
    let known = known.join(", ");
    format!("There is no provider {name:?}: known are {known}. Your settings can name more under `providers`.")
}

/// The providers whose keys are there, with the variables that hold them.
pub fn keys(env: &Env, settings: &Settings) -> Vec<(String, String)> {
    let with_key = settings.models.providers.iter().filter_map(|it| Some((it.key_env.as_ref()?, &it.name)));
    let there = with_key.filter(|(variable, _)| env.get(variable).is_some());
    there.map(|(variable, name)| (variable.clone(), name.clone())).collect()
}

/// Opens nothing yet.
///
/// # Errors
/// In words: an address or a key that cannot work, a key that is not there.
pub fn generator(provider: &Provider, env: &Env, http: Arc<Http>) -> Result<Remote, String> {
    let place = format!("providers.{}", provider.name);
    let base_url = endpoint_checks::check_url(&provider.base_url).map_err(|it| format!("{place}.baseUrl: {it}"))?;
    let (key, headers) = (key(provider, env)?, headers(provider)?);
    let endpoint = Endpoint { key, headers, base_url, tokens: None, origin: origin(provider, env) };
    Ok(provider.dialect.connect(endpoint, &provider.name, http).with_prefix(&provider.name))
}

/// What people are told of it when a request fails.
fn origin(provider: &Provider, env: &Env) -> EndpointOrigin {
    let variable = provider.key_env.as_deref();
    let page = provider.key_page.clone().or_else(|| http::origin_of(&provider.base_url));
    EndpointOrigin {
        api: format!("the API of {}", provider.name),
        address: Some(format!("providers.{}.baseUrl in your settings", provider.name))
            .filter(|_| provider.is_configured),
        key: variable.map(|it| format!("the key in {}", place_of_variable(it, env))),
        change: match variable {
            Some(it) => format!("Set another in {it}."),
            None => format!("Name the variable of its key in providers.{}.apiKeyEnv.", provider.name),
        },
        credential: Some(Credential::new(CredentialOwner::Model, provider.name.as_str(), page)),
    }
}

/// A variable, with the file that it comes from.
pub fn place_of_variable(name: &str, env: &Env) -> String {
    env.source_file(name).map_or_else(|| name.to_owned(), |file| format!("{name} in {file}"))
}

fn key(provider: &Provider, env: &Env) -> Result<SecretString, String> {
    let Some(name) = &provider.key_env else { return Ok(SecretString::default()) };
    let key =
        env.get(name).map(endpoint_checks::check_key).transpose().map_err(|it| format!("{name}: {it}"))?.flatten();
    key.ok_or_else(|| format!("No API key for {}: set {name} where castor is started.", provider.name))
}

fn headers(provider: &Provider) -> Result<Vec<(String, SecretString)>, String> {
    let checked = provider.headers.iter().map(|(name, value)| match endpoint_checks::is_header(name, value) {
        true => Ok((name.clone(), SecretString::from(value.as_str()))),
        false => Err(format!("providers.{}.headers: {name:?} or its value cannot be sent", provider.name)),
    });
    checked.collect()
}
