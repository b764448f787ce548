//! Limits of a turn and a session: model requests, tokens, time and money.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::money::Money;

/// Written as `requests=20 session.cost=5`, or `none`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Limits {
    pub turn: Caps,
    pub session: Caps,
}

/// What may be used up at most; `None`: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Caps {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Money>,
}

/// Usage so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitUsage {
    pub requests: u64,
    pub tokens: u64,
    /// Time in which the user was waited for does not count.
    pub ms: u64,
    pub cost: Money,
}

/// Of what there is a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitKind {
    Requests,
    Tokens,
    Time,
    Cost,
}

/// For how long a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitSpan {
    Turn,
    Session,
}

/// A limit that is reached, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReachedLimit {
    pub what: LimitKind,
    pub span: LimitSpan,
    pub cap: String,
    pub used: String,
    /// What would allow twice as much, as [`Limits`] are written.
    pub more: String,
}

impl LimitKind {
    pub const ALL: [LimitKind; 4] = [Self::Requests, Self::Tokens, Self::Time, Self::Cost];

    /// In settings, and as limits are written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Tokens => "tokens",
            Self::Time => "seconds",
            Self::Cost => "cost",
        }
    }

    /// The flag of the command line.
    pub fn flag(self) -> &'static str {
        match self {
            Self::Requests => "--max-turns",
            Self::Tokens => "--max-tokens",
            Self::Time => "--timeout",
            Self::Cost => "--max-cost",
        }
    }
}

impl LimitSpan {
    pub const ALL: [LimitSpan; 2] = [Self::Turn, Self::Session];

    pub fn name(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Session => "session",
        }
    }
}

/// A word that sets no limit.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no limit: write requests=20, tokens=100000, seconds=600 or cost=0.5, with `session.` before it for the whole session"
)]
pub struct UnknownLimit(String);

impl Limits {
    pub const NONE: &str = "none";

    pub fn caps(&self, span: LimitSpan) -> &Caps {
        match span {
            LimitSpan::Turn => &self.turn,
            LimitSpan::Session => &self.session,
        }
    }

    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// # Errors
    /// What is wrong with it, and how it is written.
    pub fn parse(text: &str) -> Result<Self, UnknownLimit> {
        let mut res = Self::default();
        for word in text.split([' ', ',']).filter(|it| !it.is_empty() && *it != Self::NONE) {
            let wrong = || UnknownLimit(word.to_owned());
            let (name, value) = word.split_once('=').ok_or_else(wrong)?;
            let (caps, name) = match name.strip_prefix("session.") {
                Some(name) => (&mut res.session, name),
                None => (&mut res.turn, name.strip_prefix("turn.").unwrap_or(name)),
            };
            let what = LimitKind::ALL.into_iter().find(|it| it.name() == name).ok_or_else(wrong)?;
            caps.set(what, value).ok_or_else(wrong)?;
        }
        Ok(res)
    }

    /// What is used up, if anything is: in the turn first.
    pub fn first_reached(&self, turn: &LimitUsage, session: &LimitUsage) -> Option<ReachedLimit> {
        let of_turn = || self.turn.reached(turn, LimitSpan::Turn);
        of_turn().or_else(|| self.session.reached(session, LimitSpan::Session))
    }

    /// How long the turn may still work, in milliseconds.
    pub fn time_left(&self, turn: &LimitUsage, session: &LimitUsage) -> Option<u64> {
        let left =
            |caps: &Caps, used: &LimitUsage| caps.seconds.map(|it| it.saturating_mul(1000).saturating_sub(used.ms));
        left(&self.turn, turn).into_iter().chain(left(&self.session, session)).min()
    }

    pub fn has_cost(&self) -> bool {
        self.turn.cost.is_some() || self.session.cost.is_some()
    }
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for span in LimitSpan::ALL {
            for what in LimitKind::ALL {
                let Some(value) = self.caps(span).as_text(what) else { continue };
                let (gap, whose) =
                    (if first { "" } else { " " }, if span == LimitSpan::Session { "session." } else { "" });
                write!(f, "{gap}{whose}{}={value}", what.name())?;
                first = false;
            }
        }
        if first { f.write_str(Self::NONE) } else { Ok(()) }
    }
}

impl Caps {
    /// `None`: this is no value for it.
    pub fn set(&mut self, what: LimitKind, value: &str) -> Option<()> {
        let whole = || value.parse::<u64>().ok().filter(|it| *it > 0);
        match what {
            LimitKind::Requests => self.requests = Some(whole()?),
            LimitKind::Tokens => self.tokens = Some(whole()?),
            LimitKind::Time => self.seconds = Some(whole()?),
            LimitKind::Cost => {
                let amount = value.trim_start_matches('$').parse::<f64>().ok().map(Money::dollars);
                self.cost = Some(amount.filter(|it| *it > Money::default())?);
            }
        }
        Some(())
    }

    fn as_text(&self, what: LimitKind) -> Option<String> {
        match what {
            LimitKind::Requests => self.requests.map(|it| it.to_string()),
            LimitKind::Tokens => self.tokens.map(|it| it.to_string()),
            LimitKind::Time => self.seconds.map(|it| it.to_string()),
            LimitKind::Cost => self.cost.map(|it| it.as_dollars().to_string()),
        }
    }

    fn reached(&self, used: &LimitUsage, span: LimitSpan) -> Option<ReachedLimit> {
        let full = |what| match what {
            LimitKind::Requests => self
                .requests
                .filter(|it| used.requests >= *it)
                .map(|it| (requests(it), used.requests.to_string(), (it.saturating_mul(2)).to_string())),
            LimitKind::Tokens => self
                .tokens
                .filter(|it| used.tokens >= *it)
                .map(|it| (format!("{it} tokens"), used.tokens.to_string(), it.saturating_mul(2).to_string())),
            LimitKind::Time => self.seconds.filter(|it| used.ms >= it.saturating_mul(1000)).map(|it| {
                (format!("{it} s of work"), format!("{} s", used.ms / 1000), it.saturating_mul(2).to_string())
            }),
            LimitKind::Cost => self
                .cost
                .filter(|it| used.cost >= *it)
                .map(|it| (it.in_words(), used.cost.in_words(), it.plus(it).as_dollars().to_string())),
        };
        let (what, (cap, used, more)) = LimitKind::ALL.into_iter().find_map(|it| Some((it, full(it)?)))?;
        let whose = if span == LimitSpan::Session { "session." } else { "" };
        let more = format!("{whose}{}={more}", what.name());
        Some(ReachedLimit { what, span, cap, used, more })
    }
}

fn requests(n: u64) -> String {
    match n {
        1 => "1 model call".to_owned(),
        n => format!("{n} model calls"),
    }
}

impl LimitUsage {
    pub fn plus(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_add(other.requests),
            tokens: self.tokens.saturating_add(other.tokens),
            ms: self.ms.saturating_add(other.ms),
            cost: self.cost.plus(other.cost),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LimitUsage, Limits, Money};

    #[test]
    fn what_is_written_is_read() {
        for text in ["none", "requests=20", "requests=20 cost=0.5 session.tokens=100000", "seconds=1 session.cost=5"] {
            assert_eq!(Limits::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Limits::parse("turn.cost=$0.5, requests=1").unwrap().to_string(), "requests=1 cost=0.5");
        assert_eq!(Limits::parse("").unwrap(), Limits::default());
        for text in ["requests", "requests=0", "requests=-1", "cost=0", "cost=NaN", "tokens=1.5", "money=1", "a.cost=1"]
        {
            assert!(Limits::parse(text).unwrap_err().to_string().contains("is no limit"), "{text}");
        }
    }

    #[test]
    fn the_first_that_is_used_up_is_told() {
        let limits = Limits::parse("requests=2 cost=0.5 session.tokens=100 session.seconds=3").unwrap();
        let used = |requests, tokens, ms, cost| LimitUsage { requests, tokens, ms, cost: Money::dollars(cost) };
        let told = |turn: LimitUsage, session: LimitUsage| {
            let it = limits.first_reached(&turn, &session)?;
            Some(format!("{} {}, {} used; {}", it.span.name(), it.cap, it.used, it.more))
        };
        assert_eq!(told(used(1, 99, 2999, 0.4), used(9, 99, 2999, 9.0)), None);
        let told = |turn, session| told(turn, session).unwrap();
        assert_eq!(told(used(2, 0, 0, 0.6), used(2, 100, 0, 0.6)), "turn 2 model calls, 2 used; requests=4");
        assert_eq!(told(used(0, 0, 0, 0.6), LimitUsage::default()), "turn $0.50, $0.60 used; cost=1");
        assert_eq!(
            told(LimitUsage::default(), used(0, 120, 0, 0.0)),
            "session 100 tokens, 120 used; session.tokens=200"
        );
        assert_eq!(
            told(LimitUsage::default(), used(0, 0, 3000, 0.0)),
            "session 3 s of work, 3 s used; session.seconds=6"
        );
        assert_eq!(limits.time_left(&used(0, 0, 500, 0.0), &used(0, 0, 1000, 0.0)), Some(2000));
        assert_eq!(Limits::default().time_left(&LimitUsage::default(), &LimitUsage::default()), None);
    }
}
