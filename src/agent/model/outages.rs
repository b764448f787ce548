//! Outages of models, shared by all sessions that reach a model in the same way.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
};

use secrecy::ExposeSecret;

use super::{access, providers};
use crate::settings::Settings;
use castor_base::{fallback::Outage, ids::SessionId};
use castor_hands::secrets::Env;

/// Which service is asked, with which key: only as a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServiceKey(u64);

/// Models that are out, once for all sessions that reach them in the same way.
#[derive(Default)]
pub struct Outages {
    known: BTreeMap<(ServiceKey, String), Outage>,
    /// By session: where its models are.
    places: BTreeMap<SessionId, BTreeMap<String, ServiceKey>>,
}

impl Outages {
    /// What is known of the models that a session reaches.
    pub fn of(&self, id: &SessionId) -> BTreeMap<String, Outage> {
        let places = self.places.get(id).into_iter().flatten();
        let known =
            places.filter_map(|(model, place)| Some((model.clone(), *self.known.get(&(*place, model.clone()))?)));
        known.collect()
    }

    /// From now on a session reaches its models there.
    pub fn set_places(&mut self, id: &SessionId, places: BTreeMap<String, ServiceKey>) {
        self.places.insert(id.clone(), places);
    }

    /// A sub-agent with the models of this session reaches them there.
    pub fn share_places(&mut self, parent: &SessionId, child: &SessionId) {
        if let Some(places) = self.places.get(parent).cloned() {
            self.places.insert(child.clone(), places);
        }
    }

    /// A session found out about a model. Returns the others that reach it in the same way.
    pub fn note(
        &mut self,
        id: &SessionId,
        (model, outage): (String, Option<Outage>),
        now_ms: u64,
        is_open: impl Fn(&SessionId) -> bool,
    ) -> Vec<SessionId> {
        self.places.retain(|it, _| is_open(it));
        self.known.retain(|_, it| !it.is_over(now_ms));
        let Some(place) = self.places.get(id).and_then(|it| it.get(&model)).copied() else { return Vec::new() };
        let same = |it: &BTreeMap<String, ServiceKey>| it.get(&model) == Some(&place);
        let others = self.places.iter().filter(|(it, places)| *it != id && same(places));
        let others = others.map(|(it, _)| it.clone()).collect();
        match outage {
            Some(it) => self.known.insert((place, model), it),
            None => self.known.remove(&(place, model)),
        };
        others
    }
}

/// Where each of the models is.
pub fn service_keys<'m>(
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
