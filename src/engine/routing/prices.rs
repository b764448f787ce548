//! Model prices: what a million tokens of each kind cost, and the cost of a call.

use std::collections::BTreeMap;

use crate::base::{model::Usage, money::Money};

/// By model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prices(pub BTreeMap<String, Price>);

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

impl Prices {
    pub fn of(&self, model: &str) -> Option<Price> {
        let name = model.trim_start_matches("models/");
        let found = [model, name, undated(name)].into_iter().find_map(|it| self.0.get(it));
        found.copied()
    }
}

/// Without the date of a snapshot: `-20250514` or `-2025-05-14`.
fn undated(name: &str) -> &str {
    let is_date = |it: &str| {
        let digits = it.bytes().filter(u8::is_ascii_digit).count();
        let dashes = it.bytes().filter(|it| *it == b'-').count();
        digits == 8 && it.starts_with("-20") && (it.len(), dashes) == (8 + dashes, if it.len() > 9 { 3 } else { 1 })
    };
    let starts = [11, 9].into_iter().filter_map(|it| name.len().checked_sub(it));
    let parts = starts.filter_map(|it| name.split_at_checked(it));
    parts.into_iter().find(|(_, date)| is_date(date)).map_or(name, |(model, _)| model)
}

impl Price {
    pub fn cost(&self, usage: &Usage) -> Money {
        match &self.above {
            Some((tokens, rates)) if usage.input > *tokens => rates.cost(usage),
            _ => self.rates.cost(usage),
        }
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
    use super::{Price, Prices, Rates, undated};
    use crate::base::{model::Usage, money::Money};

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
        let prices = Prices([("m".to_owned(), price)].into());
        let names = ["m", "models/m", "x/m", "m-20250514", "models/m-2025-05-14"];
        assert_eq!(names.map(|it| prices.of(it).is_some()), [true, true, false, true, true]);
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

    #[test]
    fn dates_of_snapshots() {
        for (name, expected) in [
            ("claude-opus-4-20250514", "claude-opus-4"),
            ("gpt-5-2025-08-07", "gpt-5"),
            ("gemini-2.5-pro", "gemini-2.5-pro"),
            ("gemini-2.5-flash-preview-09-2025", "gemini-2.5-flash-preview-09-2025"),
            ("x-99990514", "x-99990514"),
            ("-20250514", ""),
            ("é0250514", "é0250514"),
            ("", ""),
        ] {
            assert_eq!(undated(name), expected);
        }
    }
}
