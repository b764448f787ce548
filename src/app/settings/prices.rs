//! The setting `model.prices`: what models cost.

use serde_json::Value;

use super::Getter;
use crate::{
    base::money::Money,
    engine::routing::prices::{Price, Prices},
    world::workspace::Warning,
};

const KEY: &str = "model.prices";

pub(super) fn read(get: &Getter<'_>, warnings: &mut Vec<Warning>) -> Prices {
    let mut res = Prices::default();
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

/// What is not said of the cache costs as much as the rest of the prompt.
fn price(it: &Value) -> Result<Price, String> {
    const MEMBERS: [&str; 4] = ["input", "output", "cached", "cacheWrite"];
    let members = it.as_object().ok_or("should be an object {…}; ignored")?;
    if let Some(odd) = members.keys().find(|it| !MEMBERS.contains(&it.as_str())) {
        return Err(format!("`{odd}` is none of {}; ignored", MEMBERS.join(", ")));
    }
    let amount = |name: &str| match members.get(name) {
        None => Ok(None),
        Some(it) => match it.as_f64().filter(|it| *it >= 0.0) {
            Some(it) => Ok(Some(Money::dollars(it))),
            None => Err(format!("`{name}` should be US dollars for a million tokens; ignored")),
        },
    };
    let [input, output, cached, written] = MEMBERS.map(amount);
    match (input?, output?) {
        (Some(input), Some(output)) => {
            Ok(Price { input, output, cached: cached?.unwrap_or(input), written: written?.unwrap_or(input) })
        }
        _ => Err("should name `input` and `output`; ignored".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::price;

    fn check(it: Value, expected: &str) {
        let actual = price(&it).map(|it| {
            let parts = [it.input, it.output, it.cached, it.written];
            parts.map(|it| it.as_dollars().to_string()).join(" ")
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
        check(json!({"in": 2}), "`in` is none of input, output, cached, cacheWrite; ignored");
        check(json!(2), "should be an object {…}; ignored");
    }
}
