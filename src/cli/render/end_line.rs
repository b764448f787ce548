//! The end line of a turn: changed files, tokens, cost, time, and how to continue.

use std::time::Duration;

use super::{
    text::{Line, Style},
    words,
};
use crate::cli::terminal_text::clean_line;
use castor_wire::acp::client::{SessionCost, TokenUsage};

/// Characters of the name of a currency.
const MAX_CURRENCY: usize = 60;

/// What a turn came to.
#[derive(Debug, Default)]
pub struct TurnEnd {
    /// Changed files in words.
    pub changes: Option<String>,
    pub usage: Option<TokenUsage>,
    /// `None`: not known.
    pub cost: Option<SessionCost>,
    /// Nothing is paid, though settings may name a model that has prices.
    pub is_free: bool,
    pub took: Duration,
    /// The command that continues.
    pub resume: Option<String>,
}

impl TurnEnd {
    /// `None`: nothing was spent and nothing changed.
    pub fn line(&self) -> Option<Line> {
        let spent = self.tokens();
        if self.changes.is_none() && spent.is_none() {
            return None;
        }
        let cost = self.cost_in_words().filter(|_| spent.is_some());
        let took = words::duration(self.took);
        let parts = [self.changes.clone(), spent, cost, took, self.resume.clone()];
        Some(Line::new(&parts.into_iter().flatten().collect::<Vec<_>>().join(" · "), Style::DIM))
    }

    fn tokens(&self) -> Option<String> {
        let usage = self.usage.as_ref()?;
        // Thoughts are paid for as output.
        let output = usage.output_tokens + usage.thought_tokens;
        words::spent_tokens(usage.input_tokens, usage.cached_read_tokens, output)
    }

    fn cost_in_words(&self) -> Option<String> {
        match &self.cost {
            _ if self.is_free => None,
            None => Some("cost unknown".to_owned()),
            Some(it) => Some(cost_in_words(it)),
        }
    }
}

pub fn cost_in_words(it: &SessionCost) -> String {
    match it.currency() {
        "USD" => words::dollars(it.amount),
        currency => format!("{} {}", words::money(it.amount), clean_line(currency, MAX_CURRENCY)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::TurnEnd;
    use castor_wire::acp::client::{SessionCost, TokenUsage};

    #[test]
    fn the_end_says_what_was_spent() {
        let usage = TokenUsage {
            input_tokens: 42_100,
            cached_read_tokens: 34_200,
            output_tokens: 2_000,
            thought_tokens: 1_100,
            ..TokenUsage::default()
        };
        let mut end = TurnEnd {
            changes: Some("3 files +12 −4".to_owned()),
            usage: Some(usage),
            cost: Some(SessionCost { amount: 0.0211, currency: None }),
            took: Duration::from_secs(14),
            resume: Some("castor run -r 1f3a \"…\"".to_owned()),
            ..TurnEnd::default()
        };
        let text = |end: &TurnEnd| end.line().map(|it| it.text());
        let rest = "14 s · castor run -r 1f3a \"…\"";
        let start = "3 files +12 −4 · 42 k tokens in (81 % cached), 3.1 k out";
        assert_eq!(text(&end).unwrap(), format!("{start} · $0.021 · {rest}"));
        end.is_free = true;
        assert_eq!(text(&end).unwrap(), format!("{start} · {rest}"), "a script has the price of no model");
        (end.cost, end.is_free) = (None, false);
        assert_eq!(text(&end).unwrap(), format!("{start} · cost unknown · {rest}"));
        end.is_free = true;
        assert_eq!(text(&end).unwrap(), format!("{start} · {rest}"));
        end.usage = Some(TokenUsage::default());
        assert_eq!(text(&end).unwrap(), format!("3 files +12 −4 · {rest}"));
        end.changes = None;
        assert_eq!(text(&end), None);
    }
}
