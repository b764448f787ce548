//! Tokens and cost of a turn or a session, as an export says them.

pub use castor_base::text::grouped;
use castor_base::{model::Usage, money::Money};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spending {
    pub usage: Usage,
    /// As far as prices were known.
    pub cost: Option<Money>,
    /// A model call had no price.
    pub is_cost_partial: bool,
}

impl Spending {
    pub fn add(&mut self, usage: &Usage, cost: Option<Money>) {
        self.usage = self.usage.plus(usage);
        match cost {
            Some(it) => self.cost = Some(self.cost.unwrap_or_default().plus(it)),
            None => self.is_cost_partial = true,
        }
    }

    /// Both together.
    pub fn plus(&self, other: &Self) -> Self {
        let cost = match (self.cost, other.cost) {
            (Some(one), Some(two)) => Some(one.plus(two)),
            (one, two) => one.or(two),
        };
        let is_cost_partial = self.is_cost_partial || other.is_cost_partial;
        Self { usage: self.usage.plus(&other.usage), cost, is_cost_partial }
    }

    /// The part of the input that came from the provider's cache, from 0 to 1.
    pub fn cached_share(&self) -> f64 {
        if self.usage.input == 0 { 0.0 } else { self.usage.cached as f64 / self.usage.input as f64 }
    }

    /// Tokens of the answers with those of the thoughts, which are paid alike.
    pub fn output(&self) -> u64 {
        self.usage.output.saturating_add(self.usage.thought)
    }

    /// `68,000 in (12,000 cached), 24,500 out (24,000 thoughts)`
    pub fn tokens_in_words(&self) -> String {
        let part = |n: u64, what: &str| if n > 0 { format!(" ({} {what})", grouped(n)) } else { String::new() };
        let (cached, thoughts) = (part(self.usage.cached, "cached"), part(self.usage.thought, "thoughts"));
        format!("{} in{cached}, {} out{thoughts}", grouped(self.usage.input), grouped(self.output()))
    }

    /// `None`: no price was known.
    pub fn cost_in_words(&self) -> Option<String> {
        let cost = self.cost?.in_words();
        Some(if self.is_cost_partial { format!("at least {cost}") } else { cost })
    }
}

/// `950`, `1.2k`, `68k`, `1.5M`
pub fn compact(n: u64) -> String {
    match n {
        0..1_000 => n.to_string(),
        1_000..10_000 => format!("{}.{}k", n / 1_000, n % 1_000 / 100),
        10_000..1_000_000 => format!("{}k", n / 1_000),
        _ => format!("{}.{}M", n / 1_000_000, n % 1_000_000 / 100_000),
    }
}

/// Tokens of a plot.
pub fn plotted_tokens(it: f64) -> String {
    // What is plotted is a count.
    compact(it.round() as u64)
}

/// Dollars of a plot.
pub fn plotted_cost(it: f64) -> String {
    Money::dollars(it).in_words()
}

#[cfg(test)]
mod tests {
    use super::{Spending, compact};
    use castor_base::{model::Usage, money::Money};

    /// Thoughts are paid as output.
    #[test]
    fn thoughts_are_output() {
        let mut spent = Spending::default();
        let usage = Usage { input: 68_000, output: 500, cached: 12_000, thought: 24_000, ..Usage::default() };
        spent.add(&usage, Some(Money::dollars(1.0)));
        assert_eq!(spent.tokens_in_words(), "68,000 in (12,000 cached), 24,500 out (24,000 thoughts)");
        assert_eq!(spent.cost_in_words().as_deref(), Some("$1.00"));
        spent.add(&Usage::default(), None);
        assert_eq!(spent.cost_in_words().as_deref(), Some("at least $1.00"));
        assert_eq!([999, 1_250, 68_400, 1_540_000].map(compact), ["999", "1.2k", "68k", "1.5M"]);
    }
}
