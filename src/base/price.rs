//! Prices of a model: what a million tokens of each kind cost, and the cost of a call.

use serde_json::{Map, Value};

use crate::{model::Usage, money::Money};

/// Of one model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Price {
    pub rates: Rates,
    /// Of all tokens of a call whose prompt has more tokens than this.
    pub above: Option<(u64, Rates)>,
}

/// Of a million tokens of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    pub input: Money,
    /// Thoughts cost as much as what is said.
    pub output: Money,
    /// Read from the provider's cache.
    pub cached: Money,
    /// Written to it.
    pub written: Money,
}

const RATES: [&str; 4] = ["input", "output", "cached", "cacheWrite"];
const ABOVE: &str = "above";

impl Price {
    pub fn cost(&self, usage: &Usage) -> Money {
        match &self.above {
            Some((tokens, rates)) if usage.input > *tokens => rates.cost(usage),
            _ => self.rates.cost(usage),
        }
    }

    /// US dollars by kind of token; `above` has those of longer prompts.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn read(it: &Value) -> Result<Self, String> {
        let members = it.as_object().ok_or("should be an object {…}")?;
        let rates = read_rates(members, ABOVE)?;
        let Some(above) = members.get(ABOVE) else { return Ok(Self { rates, above: None }) };
        let members = above.as_object().ok_or("`above` should be an object {…}")?;
        let tokens = members.get("tokens").and_then(Value::as_u64).ok_or("`above` should name `tokens`")?;
        Ok(Self { rates, above: Some((tokens, read_rates(members, "tokens")?)) })
    }
}

/// What is not said of the cache costs as much as the rest of the prompt. `other`: a member that is none of these.
fn read_rates(members: &Map<String, Value>, other: &str) -> Result<Rates, String> {
    if let Some(odd) = members.keys().find(|it| *it != other && !RATES.contains(&it.as_str())) {
        return Err(format!("`{odd}` is none of {}, {other}", RATES.join(", ")));
    }
    let amount = |name: &str| match members.get(name) {
        None => Ok(None),
        Some(it) => match it.as_f64().filter(|it| *it >= 0.0) {
            Some(it) => Ok(Some(Money::dollars(it))),
            None => Err(format!("`{name}` should be US dollars for a million tokens")),
        },
    };
    let [input, output, cached, written] = RATES.map(amount);
    match (input?, output?) {
        (Some(input), Some(output)) => {
            Ok(Rates { input, output, cached: cached?.unwrap_or(input), written: written?.unwrap_or(input) })
        }
        _ => Err("should name `input` and `output`".to_owned()),
    }
}

impl Rates {
    fn cost(&self, usage: &Usage) -> Money {
        let Usage { input, output, cached, written, thought, .. } = *usage;
        let plain = input.saturating_sub(cached).saturating_sub(written);
        let parts = [
            self.input.per_million(plain),
            self.cached.per_million(cached),
            self.written.per_million(written),
            self.output.per_million(output.saturating_add(thought)),
        ];
        parts.into_iter().fold(Money::default(), Money::plus)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Price, Rates};
    use crate::{model::Usage, money::Money};

    fn rates(amounts: [f64; 4]) -> Rates {
        let [input, output, cached, written] = amounts.map(Money::dollars);
        Rates { input, output, cached, written }
    }

    #[test]
    fn each_kind_has_its_price() {
        let price = Price { rates: rates([2.0, 10.0, 0.5, 2.5]), above: None };
        let usage = Usage { input: 1_000, output: 10, cached: 600, written: 100, thought: 20, total: 1_030 };
        // 300 × 2, 600 × 0.5, 100 × 2.5, 30 × 10.
        assert_eq!(price.cost(&usage), Money::dollars(0.001_45));
        // A provider that counts what it cached beside the prompt.
        assert_eq!(price.cost(&Usage { input: 1, cached: 2, ..Usage::default() }), Money::dollars(0.000_001));
    }

    #[test]
    fn a_long_prompt_has_prices_of_its_own() {
        let above = Some((200, rates([4.0, 20.0, 1.0, 4.0])));
        let price = Price { rates: rates([2.0, 10.0, 0.5, 2.0]), above };
        let cost = |input| price.cost(&Usage { input, cached: 100, output: 10, ..Usage::default() });
        assert_eq!(cost(200), Money::dollars(0.000_35));
        // 101 × 4, 100 × 1, 10 × 20: all of it, not what is above.
        assert_eq!(cost(201), Money::dollars(0.000_704));
    }

    fn check(it: Value, expected: &str) {
        let rates = |it: &Rates| {
            let parts = [it.input, it.output, it.cached, it.written];
            parts.map(|it| it.as_dollars().to_string()).join(" ")
        };
        let actual = Price::read(&it).map(|it| match &it.above {
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
        check(json!({"input": 2}), "should name `input` and `output`");
        check(json!({"input": -2, "output": 1}), "`input` should be US dollars for a million tokens");
        check(json!({"input": "2", "output": 1}), "`input` should be US dollars for a million tokens");
        check(json!({"in": 2}), "`in` is none of input, output, cached, cacheWrite, above");
        check(json!(2), "should be an object {…}");
        let above = json!({"tokens": 9, "input": 4, "output": 15});
        check(json!({"input": 2, "output": 10, "above": above}), "2 10 2 2 above 9: 4 15 4 4");
        check(json!({"input": 2, "output": 10, "above": {"input": 4}}), "`above` should name `tokens`");
        check(json!({"input": 2, "output": 10, "above": {"tokens": 1}}), "should name `input` and `output`");
    }
}
