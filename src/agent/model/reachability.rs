//! Reachable models of a session: its own model, and its fallbacks.

use std::{collections::BTreeSet, sync::Arc};

use jsonrpsee::types::ErrorObjectOwned;

use super::{
    model_factory::{ModelContext, ModelFactory},
    outages, providers,
};
use crate::settings::{ModelSettings, Settings, options::Options};
use castor_base::{
    ids::SessionId,
    model::{DEMO, Details, Failure, FailureKind},
};
use castor_engine::routing::{
    Chain,
    fallback_policies::FallbackPolicies,
    utility_models::{self, UtilityModels},
};
use castor_models::providers::{Generator, switch::ModelSwitch, unreachable_model::UnreachableModel};
use castor_wire::jsonrpc::error::AUTH_REQUIRED;

/// Who is behind a session's door, beside its model.
pub struct ReachableModels {
    pub chain: Chain,
    pub helpers: UtilityModels,
    /// For the client: why the model itself cannot be asked. Each request for it fails with that.
    pub trouble: Option<ErrorObjectOwned>,
}

/// The door to `model`, to those of its chain, and to those that settings name for questions beside the conversation.
/// Others than `model` that cannot be reached are left out, with a warning.
pub fn reach_models(
    models: &mut ModelFactory,
    context: ModelContext<'_>,
    id: &SessionId,
    model: &str,
) -> (Arc<dyn Generator>, ReachableModels) {
    let ModelContext { options, env, settings } = context;
    let (wanted, model) = (model, settings.models.aliases.model_of(model));
    let model = model.as_str();
    let (main, trouble) = match models.generator(context, model) {
        Ok(it) => (it, None),
        Err(error) => (refusing_generator(&error), Some(error)),
    };
    let mut chain = chain(options, settings, wanted, model);
    let mut helpers = UtilityModels { rules: settings.models.rules.clone(), ..UtilityModels::default() };
    let mut others = Vec::new();
    if !options.needs_no_access() {
        let gemini = trouble.is_none() && model != DEMO && providers::provider_of(settings, model).is_none();
        let mut open = |it: &String, place: &str, is_wanted: bool| {
            // The same door, or one that is open already.
            let same = it == model || (gemini && providers::provider_of(settings, it).is_none());
            if same || others.iter().any(|(known, _)| known == it) {
                return true;
            }
            match models.generator(context, it) {
                Ok(generator) => others.push((it.clone(), generator)),
                Err(error) => {
                    let why = format!("{place}: {it} cannot be reached: {}", error.message());
                    // What castor adds by itself, and what fails as the model does, is no news.
                    let is_news = is_wanted && trouble.as_ref().is_none_or(|it| it.message() != error.message());
                    if is_news {
                        tracing::warn!("{why}")
                    } else {
                        tracing::debug!("{why}")
                    }
                    return false;
                }
            }
            true
        };
        let is_named = !settings.on_failure.models.is_empty();
        chain.models.retain(|it| open(it, "model.fallback.models", is_named));
        helpers.unreachable_models = utility_models::models(&settings.models.aliases);
        helpers.unreachable_models.extend(routed_models(settings, wanted));
        helpers.unreachable_models.retain(|it| !open(it, "modelConfigs", false));
    }
    let mut names: BTreeSet<String> =
        chain.models.iter().cloned().chain(others.iter().map(|(it, _)| it.clone())).collect();
    names.insert(model.to_owned());
    // Whoever judges behind the same door is one of all sessions' models, too.
    names.extend(names.clone().iter().flat_map(|it| helpers.all(it, &settings.models.aliases)));
    let places = outages::service_keys(env, settings, &models.credentials, names.iter().map(String::as_str));
    models.outages.set_places(id, places);
    let generator: Arc<dyn Generator> = if others.is_empty() { main } else { Arc::new(ModelSwitch { main, others }) };
    (generator, ReachableModels { chain, helpers, trouble })
}

/// Stands in a model's place. A name that means nothing is a matter of the name, not of a key: nobody should sign in.
fn refusing_generator(error: &ErrorObjectOwned) -> Arc<dyn Generator> {
    let failure = |kind| Failure::new(kind, error.message());
    let failure = match error.code() {
        AUTH_REQUIRED => failure(FailureKind::Auth),
        _ => {
            let details = Details { words: vec!["model_not_found".to_owned()], ..Details::default() };
            Failure { details: Box::new(details), ..failure(FailureKind::Status) }
        }
    };
    Arc::new(UnreachableModel { failure })
}

/// Whom the router may send requests to, and the judge that the user named.
fn routed_models(settings: &Settings, wanted: &str) -> impl Iterator<Item = String> {
    let ModelSettings { aliases, rules, .. } = &settings.models;
    let names = aliases.auto(wanted).map(|it| [Some(it.pro.as_str()), Some(it.flash.as_str()), rules.local.as_deref()]);
    names.into_iter().flatten().flatten().map(|it| aliases.model_of(it))
}

/// As the settings say; else Gemini's own models stand in for each other, and what an auto model chooses from does.
fn chain(options: &Options, settings: &Settings, wanted: &str, model: &str) -> Chain {
    let on_failure = &settings.on_failure;
    if let Some(auto) = settings.models.aliases.auto(wanted).filter(|_| on_failure.models.is_empty()) {
        let models = [&auto.pro, &auto.flash].map(|it| settings.models.aliases.model_of(it)).to_vec();
        return Chain {
            for_all: false,
            policies: FallbackPolicies::for_auto(on_failure.policies.clone(), &models),
            models,
        };
    }
    let known = || settings.models.aliases.offered_models().into_iter().map(|(id, _)| id);
    let models = match on_failure.models.is_empty() {
        false => on_failure.models.iter().map(|it| settings.models.aliases.model_of(it)).collect(),
        true if options.needs_no_access() || model == DEMO || providers::provider_of(settings, model).is_some() => {
            Vec::new()
        }
        true => known().collect(),
    };
    Chain { models, for_all: !on_failure.models.is_empty(), policies: on_failure.policies.clone() }
}
