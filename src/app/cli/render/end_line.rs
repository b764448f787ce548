//! The end line of a turn: changed files, tokens, cost, time, and how to continue.

use std::time::Duration;

use serde_json::Value;

use super::{
    text::{Line, Style},
    words,
};

/// What a turn came to.
#[derive(Debug, Default)]
pub struct TurnEnd {
    /// Changed files in words.
    pub changes: Option<String>,
    /// `usage` of the answer to the prompt.
    pub usage: Option<Value>,
    /// `_meta.castor.cost` of the same answer.
    pub cost: Option<Value>,
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
        let number = |key: &str| usage.get(key).and_then(Value::as_u64).unwrap_or_default();
        // Thoughts are paid for as output.
        let output = number("outputTokens") + number("thoughtTokens");
        words::spent_tokens(number("inputTokens"), number("cachedReadTokens"), output)
    }

    fn cost_in_words(&self) -> Option<String> {
        let amount = self.cost.as_ref().and_then(|it| it.get("amount")?.as_f64());
        let currency = self.cost.as_ref().and_then(|it| it.get("currency")?.as_str()).unwrap_or("USD");
        match amount {
            _ if self.is_free => None,
            None => Some("cost unknown".to_owned()),
            Some(it) if currency == "USD" => Some(words::dollars(it)),
            Some(it) => Some(format!("{} {currency}", words::money(it))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::TurnEnd;

    #[test]
    fn the_end_says_what_was_spent() {
        let usage =
            json!({"inputTokens": 42_100, "cachedReadTokens": 34_200, "outputTokens": 2_000, "thoughtTokens": 1_100});
        let mut end = TurnEnd {
            changes: Some("3 files +12 −4".to_owned()),
            usage: Some(usage),
            cost: Some(json!({"amount": 0.0211, "currency": "USD"})),
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
        end.usage = Some(json!({"inputTokens": 0, "outputTokens": 0}));
        assert_eq!(text(&end).unwrap(), format!("3 files +12 −4 · {rest}"));
        end.changes = None;
        assert_eq!(text(&end), None);
    }
}
