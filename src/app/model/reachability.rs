//! Reachable models of a session with their fallbacks, and the outages that all sessions share.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use jsonrpsee::types::ErrorObjectOwned;
use secrecy::ExposeSecret;

use crate::{
    app::{
        model::{access, providers},
        server::state::State,
        settings::{
            ModelSettings, Settings,
            options::{DEMO, Options},
        },
    },
    base::{
        fallback::Outage,
        ids::SessionId,
        model::{Details, Failure, FailureKind},
    },
    engine::{
        routing::{
            Chain,
            fallback_policies::FallbackPolicies,
            model_limits::KNOWN_MODELS,
            utility_models::{self, UtilityModels},
        },
        step::Input,
    },
    wire::jsonrpc::error::AUTH_REQUIRED,
    world::{
        models::{Generator, switch::ModelSwitch, unreachable_model::UnreachableModel},
        secrets::Env,
    },
};

/// Which service is asked, with which key: only as a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ServiceKey(u64);

/// Models that are out, once for all sessions that reach them in the same way.
#[derive(Default)]
pub struct Outages {
    known: BTreeMap<(ServiceKey, String), Outage>,
    /// By session: where its models are.
    places: BTreeMap<SessionId, BTreeMap<String, ServiceKey>>,
}

impl Outages {
    fn of(&self, id: &SessionId) -> BTreeMap<String, Outage> {
        let places = self.places.get(id).into_iter().flatten();
        let known =
            places.filter_map(|(model, place)| Some((model.clone(), *self.known.get(&(*place, model.clone()))?)));
        known.collect()
    }
}

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
    state: &mut State,
    id: &SessionId,
    env: &Env,
    settings: &Settings,
    model: &str,
) -> (Arc<dyn Generator>, ReachableModels) {
    let State { models, options, .. } = state;
    let (wanted, model) = (model, settings.models.aliases.model_of(model));
    let model = model.as_str();
    let (main, trouble) = match models.generator(options, env, settings, model) {
        Ok(it) => (it, None),
        Err(error) => (refusing_generator(&error), Some(error)),
    };
    let mut chain = chain(options, settings, wanted, model);
    let mut helpers = UtilityModels { rules: settings.models.rules.clone(), ..UtilityModels::default() };
    let mut others = Vec::new();
    if !options.needs_no_access() {
        let gemini = trouble.is_none() && model != DEMO && providers::provider_of(settings, model).is_none();
        let mut open = |it: &String, place: &str| {
            // The same door, or one that is open already.
            let same = it == model || (gemini && providers::provider_of(settings, it).is_none());
            if same || others.iter().any(|(known, _)| known == it) {
                return true;
            }
            match models.generator(options, env, settings, it) {
                Ok(generator) => others.push((it.clone(), generator)),
                Err(error) => {
                    tracing::warn!("{place}: {it} cannot be reached: {}", error.message());
                    return false;
                }
            }
            true
        };
        chain.models.retain(|it| open(it, "model.fallback.models"));
        helpers.unreachable_models = utility_models::models(&settings.models.aliases);
        helpers.unreachable_models.extend(routed_models(settings, wanted));
        helpers.unreachable_models.retain(|it| !open(it, "modelConfigs"));
    }
    let mut names: BTreeSet<String> =
        chain.models.iter().cloned().chain(others.iter().map(|(it, _)| it.clone())).collect();
    names.insert(model.to_owned());
    // Whoever judges behind the same door is one of all sessions' models, too.
    names.extend(names.clone().iter().flat_map(|it| helpers.all(it, &settings.models.aliases)));
    let places = places(env, settings, &models.credentials, names.iter().map(String::as_str));
    models.outages.places.insert(id.clone(), places);
    let generator: Arc<dyn Generator> = match others.is_empty() {
        true => main,
        false => Arc::new(ModelSwitch { main, others }),
    };
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
    let names = aliases.auto(wanted).map(|it| [Some(it.pro), Some(it.flash), rules.local.as_deref()]);
    names.into_iter().flatten().flatten().map(|it| aliases.model_of(it))
}

/// As the settings say; else Gemini's own models stand in for each other, and what an auto model chooses from does.
fn chain(options: &Options, settings: &Settings, wanted: &str, model: &str) -> Chain {
    let wish = &settings.on_failure;
    if let Some(auto) = settings.models.aliases.auto(wanted).filter(|_| wish.models.is_empty()) {
        let models = [auto.pro, auto.flash].map(|it| settings.models.aliases.model_of(it)).to_vec();
        return Chain { for_all: false, policies: FallbackPolicies::for_auto(wish.policies.clone(), &models), models };
    }
    let known = || KNOWN_MODELS.iter().map(|(id, _)| (*id).to_owned());
    let models = match wish.models.is_empty() {
        false => wish.models.iter().map(|it| settings.models.aliases.model_of(it)).collect(),
        true if options.needs_no_access() || model == DEMO || providers::provider_of(settings, model).is_some() => {
            Vec::new()
        }
        true => known().collect(),
    };
    Chain { models, for_all: !wish.models.is_empty(), policies: wish.policies.clone() }
}

fn places<'m>(
    env: &Env,
    settings: &Settings,
    given: &access::CredentialOverride,
    models: impl Iterator<Item = &'m str>,
) -> BTreeMap<String, ServiceKey> {
    let digest = |it: &dyn Fn(&mut DefaultHasher)| {
        let mut hasher = DefaultHasher::new();
        it(&mut hasher);
        ServiceKey(hasher.finish())
    };
    let mut gemini = None;
    let place = |model: &str| match providers::provider_of(settings, model) {
        Some(it) => digest(&|hasher| (&it.base_url, it.key_env.as_ref().and_then(|it| env.get(it))).hash(hasher)),
        // Looked up once: a key may be in a file.
        None => *gemini.get_or_insert_with(|| {
            let access = access::model_access(env, settings, given).ok();
            let key = access.as_ref().and_then(|it| it.key.as_ref()).map(|it| it.expose_secret().to_owned());
            // Projects have limits of their own.
            let project = access.as_ref().map(|it| format!("{:?}", it.vertex));
            digest(&|hasher| (access.as_ref().map(|it| &it.base_url), &key, &project).hash(hasher))
        }),
    };
    let mut place = place;
    models.map(|it| (it.to_owned(), place(it))).collect()
}

/// A session's engine found out about a model: the others that reach it there know, too.
pub fn note_outage(state: &mut State, id: &SessionId, model: String, outage: Option<Outage>) {
    let State { models, sessions, now, .. } = state;
    let outages = &mut models.outages;
    outages.places.retain(|it, _| sessions.contains_key(it));
    outages.known.retain(|_, it| !it.is_over(now.unix_ms));
    let Some(place) = outages.places.get(id).and_then(|it| it.get(&model)).copied() else { return };
    let same = |it: &BTreeMap<String, ServiceKey>| it.get(&model) == Some(&place);
    let others = outages.places.iter().filter(|(it, places)| *it != id && same(places));
    let others: Vec<SessionId> = others.map(|(it, _)| it.clone()).collect();
    match outage {
        Some(it) => outages.known.insert((place, model), it),
        None => outages.known.remove(&(place, model)),
    };
    for it in others {
        let known = state.models.outages.of(&it);
        state.step(&it, Input::Outages(known));
    }
}

/// A session that has just begun learns what the others know.
pub fn send_outages(state: &mut State, id: &SessionId) {
    let known = state.models.outages.of(id);
    if !known.is_empty() {
        state.step(id, Input::Outages(known));
    }
}
