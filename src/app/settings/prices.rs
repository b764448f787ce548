//! The setting `model.prices`: what models cost, on top of the prices that castor brings along.

use std::{collections::BTreeMap, sync::LazyLock};

use serde::{Deserialize, Deserializer, de::Error};
use serde_json::{Map, Value};
use url::Url;

use super::{Getter, providers::Provider};
use crate::{
    base::money::Money,
    engine::routing::prices::{Price, Prices, Rates},
    world::workspace::Warning,
};

const KEY: &str = "model.prices";

/// The list of models that castor knows prices of.
static MAKERS: LazyLock<BTreeMap<String, Maker>> =
    LazyLock::new(|| toml::from_str(include_str!("prices.toml")).unwrap_or_default());

/// A maker of models, and what it says of their prices.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Maker {
    /// Of its own service. `None`: castor's models without a provider.
    host: Option<String>,
    #[cfg_attr(not(test), allow(dead_code, reason = "for people; a test looks at it"))]
    page: String,
    models: BTreeMap<String, ListedPrice>,
}

#[derive(Debug, Deserialize)]
struct ListedPrice {
    #[cfg_attr(not(test), allow(dead_code, reason = "for people; a test looks at it"))]
    page: Option<String>,
    #[cfg_attr(not(test), allow(dead_code, reason = "for people; a test looks at it"))]
    read: String,
    #[serde(flatten, deserialize_with = "read_listed")]
    price: Price,
}

fn read_listed<'de, D: Deserializer<'de>>(from: D) -> Result<Price, D::Error> {
    price(&Value::deserialize(from)?).map_err(D::Error::custom)
}

/// Reads the list, beside the loop.
pub fn load_list() {
    LazyLock::force(&MAKERS);
}

pub(super) fn read(get: &Getter<'_>, providers: &[Provider], warnings: &mut Vec<Warning>) -> Prices {
    let mut res = makers_prices(providers);
    for (model, it) in get.value(KEY).as_object().into_iter().flatten() {
        match price(it) {
            Ok(it) => _ = res.0.insert(model.trim_start_matches("models/").to_owned(), it),
            Err(why) => {
                let key = Some(format!("{KEY}.{model}"));
                warnings.push(Warning { origin: "settings".to_owned(), at: None, key, message: why });
            }
        }
    }
    res
}

/// What makers ask for their models on services of their own. Who else serves them has prices of its own.
fn makers_prices(providers: &[Provider]) -> Prices {
    let mut res = Prices::default();
    for maker in MAKERS.values() {
        let prefixes: Vec<String> = match &maker.host {
            None => vec![String::new()],
            Some(host) => providers.iter().filter(|it| is_at(it, host)).map(|it| format!("{}/", it.name)).collect(),
        };
        for (model, it) in &maker.models {
            res.0.extend(prefixes.iter().map(|prefix| (format!("{prefix}{model}"), it.price)));
        }
    }
    res
}

fn is_at(provider: &Provider, host: &str) -> bool {
    Url::parse(&provider.base_url).is_ok_and(|it| it.host_str() == Some(host))
}

const RATES: [&str; 4] = ["input", "output", "cached", "cacheWrite"];
const ABOVE: &str = "above";

fn price(it: &Value) -> Result<Price, String> {
    let members = it.as_object().ok_or("should be an object {…}; ignored")?;
    let rates = rates(members, ABOVE)?;
    let above = match members.get(ABOVE) {
        None => None,
        Some(it) => {
            let members = it.as_object().ok_or("`above` should be an object {…}; ignored")?;
            let tokens =
                members.get("tokens").and_then(Value::as_u64).ok_or("`above` should name `tokens`; ignored")?;
            Some((tokens, self::rates(members, "tokens")?))
        }
    };
    Ok(Price { rates, above })
}

/// What is not said of the cache costs as much as the rest of the prompt. `other`: a member that is none of these.
fn rates(members: &Map<String, Value>, other: &str) -> Result<Rates, String> {
    if let Some(odd) = members.keys().find(|it| *it != other && !RATES.contains(&it.as_str())) {
        return Err(format!("`{odd}` is none of {}, {other}; ignored", RATES.join(", ")));
    }
    let amount = |name: &str| match members.get(name) {
        None => Ok(None),
        Some(it) => match it.as_f64().filter(|it| *it >= 0.0) {
            Some(it) => Ok(Some(Money::dollars(it))),
            None => Err(format!("`{name}` should be US dollars for a million tokens; ignored")),
        },
    };
    let [input, output, cached, written] = RATES.map(amount);
    match (input?, output?) {
        (Some(input), Some(output)) => {
            Ok(Rates { input, output, cached: cached?.unwrap_or(input), written: written?.unwrap_or(input) })
        }
        _ => Err("should name `input` and `output`; ignored".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use url::Url;

    use super::{MAKERS, Provider, makers_prices, price};
    use crate::{
        base::model::Usage,
        engine::routing::{families, model_limits::KNOWN_MODELS, prices::Rates},
        world::models::ApiDialect,
    };

    fn check(it: Value, expected: &str) {
        let rates = |it: &Rates| {
            let parts = [it.input, it.output, it.cached, it.written];
            parts.map(|it| it.as_dollars().to_string()).join(" ")
        };
        let actual = price(&it).map(|it| match &it.above {
            None => rates(&it.rates),
            Some((tokens, above)) => format!("{} above {tokens}: {}", rates(&it.rates), rates(above)),
        });
        assert_eq!(actual.unwrap_or_else(|it| it), expected, "{it}");
    }

    #[test]
    fn dollars_for_a_million() {
        check(json!({"input": 2, "output": 10.5}), "2 10.5 2 2");
        check(json!({"input": 2, "output": 10, "cached": 0.2, "cacheWrite": 2.5}), "2 10 0.2 2.5");
        check(json!({"input": 0, "output": 0}), "0 0 0 0");
        check(json!({"input": 2}), "should name `input` and `output`; ignored");
        check(json!({"input": -2, "output": 1}), "`input` should be US dollars for a million tokens; ignored");
        check(json!({"input": "2", "output": 1}), "`input` should be US dollars for a million tokens; ignored");
        check(json!({"in": 2}), "`in` is none of input, output, cached, cacheWrite, above; ignored");
        check(json!(2), "should be an object {…}; ignored");
        let above = json!({"tokens": 9, "input": 4, "output": 15});
        check(json!({"input": 2, "output": 10, "above": above}), "2 10 2 2 above 9: 4 15 4 4");
        check(json!({"input": 2, "output": 10, "above": {"input": 4}}), "`above` should name `tokens`; ignored");
        check(json!({"input": 2, "output": 10, "above": {"tokens": 1}}), "should name `input` and `output`; ignored");
    }

    #[test]
    fn each_listed_price_has_a_page_and_a_day() {
        let mut n = 0;
        for (maker, it) in MAKERS.iter() {
            for (model, listed) in &it.models {
                n += 1;
                let page = listed.page.as_ref().unwrap_or(&it.page);
                assert!(Url::parse(page).unwrap().scheme() == "https", "{maker} {model}");
                assert!(listed.read.parse::<jiff::civil::Date>().is_ok(), "{maker} {model}: {}", listed.read);
                let price = listed.price;
                let one = Usage { input: 1_000_000, output: 1_000_000, ..Usage::default() };
                assert!((0.1..500.0).contains(&price.cost(&one).as_dollars()), "{maker} {model}");
                assert!(price.rates.cached <= price.rates.input, "{maker} {model}");
                assert!(price.above.is_none_or(|it| it.1.input > price.rates.input), "{maker} {model}");
            }
        }
        assert!(n > 20);
    }

    /// The models that castor itself chooses from.
    #[test]
    fn models_of_the_catalog_have_prices() {
        let prices = makers_prices(&[]);
        for (model, _) in KNOWN_MODELS {
            assert!(prices.of(model).is_some(), "{model}");
        }
        let aliases = families::aliases();
        for model in aliases.values().filter_map(|it| it.config.model.as_deref()).filter(|it| it.starts_with("gemini-"))
        {
            assert!(prices.of(model).is_some(), "{model}");
        }
    }

    #[test]
    fn prices_hold_for_the_makers_own_service() {
        let provider = |name: &str, base_url: &str| Provider {
            name: name.to_owned(),
            dialect: ApiDialect::Anthropic,
            base_url: base_url.to_owned(),
            key_env: None,
            key_page: None,
            headers: Vec::new(),
            models: Vec::new(),
            is_configured: true,
        };
        let prices = makers_prices(&[
            provider("mine", "https://api.anthropic.com/v1"),
            provider("gateway", "https://example.com/api.anthropic.com"),
            provider("odd", "api.anthropic.com"),
        ]);
        let known = ["mine/claude-opus-5", "mine/claude-opus-4-20250514", "gateway/claude-opus-5", "odd/claude-opus-5"];
        assert_eq!(known.map(|it| prices.of(it).is_some()), [true, true, false, false]);
        assert_eq!(prices.of("claude-opus-5"), None);
    }
}
