//! Money: the cost of model calls in US dollars.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A sum of US dollars, exact to a millionth of a millionth: sums of sums stay what they are. Written as a number of
/// dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
#[schemars(with = "f64")]
pub struct Money {
    pico: u64,
}

const PICO: f64 = 1e12;

impl Money {
    /// Negative amounts and what is no number are nothing.
    pub fn dollars(amount: f64) -> Self {
        // The cast saturates, and makes zero of what is no number.
        Self { pico: (amount * PICO).round() as u64 }
    }

    pub fn as_dollars(self) -> f64 {
        self.pico as f64 / PICO
    }

    pub fn minus(self, other: Self) -> Self {
        Self { pico: self.pico.saturating_sub(other.pico) }
    }

    pub fn plus(self, other: Self) -> Self {
        Self { pico: self.pico.saturating_add(other.pico) }
    }

    /// `n` tokens, where a million of them cost this much.
    pub fn per_million(self, n: u64) -> Self {
        let pico = u128::from(self.pico) * u128::from(n) / 1_000_000;
        Self { pico: u64::try_from(pico).unwrap_or(u64::MAX) }
    }

    /// `$0.0123`: two digits where they say enough, else up to six.
    pub fn in_words(self) -> String {
        let amount = self.as_dollars();
        match amount {
            it if it >= 100.0 || self.pico.is_multiple_of(10_000_000_000) => format!("${it:.2}"),
            it if it >= 0.0001 => format!("${it:.4}"),
            it => format!("${it:.6}"),
        }
    }
}

impl Serialize for Money {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.as_dollars())
    }
}

impl<'de> Deserialize<'de> for Money {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        f64::deserialize(deserializer).map(Self::dollars)
    }
}

#[cfg(test)]
mod tests {
    use super::Money;

    #[test]
    fn amounts() {
        let price = Money::dollars(0.3);
        assert_eq!(price.per_million(1), Money::dollars(0.000_000_3));
        assert_eq!(price.per_million(2_000_000), Money::dollars(0.6));
        assert_eq!([-1.0, f64::NAN].map(Money::dollars), [Money::default(); 2]);
        let huge = Money::dollars(f64::INFINITY);
        assert_eq!(huge.plus(price), huge);
        assert_eq!(huge.per_million(u64::MAX), huge);
        let words = [0.0, 1.5, 0.0123, 0.000_012, 123.456].map(|it| Money::dollars(it).in_words());
        assert_eq!(words, ["$0.00", "$1.50", "$0.0123", "$0.000012", "$123.46"]);
    }

    #[test]
    fn what_is_written_is_read() {
        for pico in [0, 1, 3, 299_999, 1_234_567_891, 87_654_321_123_456] {
            let money = Money { pico };
            let text = serde_json::to_string(&money).unwrap();
            assert_eq!(serde_json::from_str::<Money>(&text).unwrap(), money, "{text}");
        }
    }
}
