//! Provider routing: where a client sends requests of a provider, for as long as the process runs.

use std::{collections::BTreeMap, fmt};

use super::Provider;
use castor_models::providers::ApiFamily;

/// By the name of the provider; `None`: it is off.
#[derive(Clone, Debug, Default)]
pub struct ProviderRouting(BTreeMap<String, Option<ProviderRoute>>);

/// An address that a client names, in place of the provider's own.
#[derive(Clone)]
pub struct ProviderRoute {
    pub speaks: ApiFamily,
    pub base_url: String,
    /// Values may be secrets.
    pub headers: Vec<(String, String)>,
}

impl fmt::Debug for ProviderRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderRoute").field("speaks", &self.speaks).finish_non_exhaustive()
    }
}

impl ProviderRouting {
    /// `route`: `None` switches the provider off.
    pub fn set(&mut self, name: String, route: Option<ProviderRoute>) {
        self.0.insert(name, route);
    }

    pub fn is_off(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(Option::is_none)
    }

    /// The providers as they are with it. A key goes to the address that it is for: another one has its own in a header.
    pub fn apply(&self, providers: &mut Vec<Provider>) {
        for it in providers.iter_mut() {
            let Some(Some(route)) = self.0.get(&it.name) else { continue };
            let dialect = it.dialect.in_family(route.speaks);
            let (base_url, headers) = (route.base_url.clone(), route.headers.clone());
            *it = Provider { dialect, base_url, headers, key_env: None, is_configured: true, ..it.clone() };
        }
        providers.retain(|it| !self.is_off(&it.name));
    }
}
