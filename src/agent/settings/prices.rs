//! The setting `model.prices`: what models cost, on top of the prices that castor knows.

use url::Url;

use super::{Getter, providers::Provider};
use castor_base::price::Price;
use castor_engine::routing::prices::Prices;
use castor_tools::workspace::Warning;

const KEY: &str = "model.prices";

pub(super) fn read(get: &Getter<'_>, providers: &[Provider], warnings: &mut Vec<Warning>) -> Prices {
    let mut res = Prices { hosts: providers.iter().filter_map(host).collect(), ..Prices::default() };
    for (model, it) in get.value(KEY).as_object().into_iter().flatten() {
        match Price::read(it) {
            Ok(it) => _ = res.configured.insert(model.trim_start_matches("models/").to_owned(), it),
            Err(why) => {
                let key = Some(format!("{KEY}.{model}"));
                let message = format!("{why}; ignored");
                warnings.push(Warning { origin: "settings".to_owned(), at: None, key, message });
            }
        }
    }
    res
}

/// A provider and its host.
fn host(it: &Provider) -> Option<(String, String)> {
    let host = Url::parse(&it.base_url).ok()?.host_str()?.to_owned();
    Some((it.name.clone(), host))
}
