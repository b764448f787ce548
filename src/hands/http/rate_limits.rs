//! Rate limits of the providers, as their last answers told of them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use castor_base::quota::RateLimit;

type ByProvider = BTreeMap<String, Vec<RateLimit>>;

/// Shared by all connections of the process.
#[derive(Clone, Debug, Default)]
pub struct RateLimits(Arc<Mutex<ByProvider>>);

impl RateLimits {
    /// What the newest answer of a provider says. One that says nothing leaves what is known.
    pub fn note(&self, provider: &str, limits: Vec<RateLimit>) {
        if !limits.is_empty() {
            self.lock().insert(provider.to_owned(), limits);
        }
    }

    pub fn all(&self) -> ByProvider {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, ByProvider> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
