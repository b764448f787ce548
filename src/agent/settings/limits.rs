//! Limits in settings and flags: a key for each limit of turns and sessions.

use serde_json::Value;

use super::{Flag, Getter};
use castor_base::limits::{Caps, LimitKind, LimitSpan, Limits};

/// One row of the table for each, by span and in the order of [`LimitKind::ALL`].
const KEYS: [(LimitSpan, [&str; 4]); 2] = [
    (LimitSpan::Turn, ["limits.turn.requests", "limits.turn.tokens", "limits.turn.seconds", "limits.turn.cost"]),
    (
        LimitSpan::Session,
        ["limits.session.requests", "limits.session.tokens", "limits.session.seconds", "limits.session.cost"],
    ),
];

pub(super) fn read(get: &Getter<'_>) -> Limits {
    let caps = |span| {
        let mut res = Caps::default();
        for (what, key) in keys(span) {
            // Values were held against the table.
            _ = res.set(what, &get.value(key).to_string());
        }
        res
    };
    let mut res = Limits { turn: caps(LimitSpan::Turn), session: caps(LimitSpan::Session) };
    let gemini = u64::try_from(get.int("model.maxSessionTurns")).ok().filter(|it| *it > 0);
    res.session.requests = res.session.requests.into_iter().chain(gemini).min();
    res
}

fn keys(span: LimitSpan) -> impl Iterator<Item = (LimitKind, &'static str)> {
    let names = KEYS.into_iter().filter(move |(it, _)| *it == span).flat_map(|(_, names)| names);
    LimitKind::ALL.into_iter().zip(names)
}

/// A flag such as `--max-turns 20` or `--max-turns 100/session`.
///
/// # Errors
/// What is wrong with the value.
pub fn flag(what: LimitKind, text: &str) -> Result<Flag, String> {
    let (value, span) = match text.split_once('/') {
        Some((value, "session")) => (value, LimitSpan::Session),
        Some((value, "turn")) => (value, LimitSpan::Turn),
        None => (text, LimitSpan::Turn),
        Some(_) => return Err("write N for each turn, N/session for the whole session".to_owned()),
    };
    let mut caps = Caps::default();
    let wrong = || "it should be a number above 0, with /session behind it for the whole session".to_owned();
    caps.set(what, value).ok_or_else(wrong)?;
    let value: Value = serde_json::from_str(value.trim_start_matches('$')).map_err(|_| wrong())?;
    let key = keys(span).find(|(it, _)| *it == what).map(|(_, key)| key).ok_or_else(wrong)?;
    Ok(Flag { key, name: what.flag(), value })
}

#[cfg(test)]
mod tests {
    use super::{LimitKind, flag, keys};
    use crate::settings::keys::find;
    use castor_base::limits::LimitSpan;

    #[test]
    fn flags_are_read() {
        let read = |what, text| flag(what, text).map(|it| format!("{} {}", it.key, it.value));
        assert_eq!(read(LimitKind::Requests, "20").unwrap(), "limits.turn.requests 20");
        assert_eq!(read(LimitKind::Cost, "$0.5/session").unwrap(), "limits.session.cost 0.5");
        for text in ["0", "-1", "x", "1/day", "1.5", "/session"] {
            assert!(read(LimitKind::Tokens, text).is_err(), "{text}");
        }
    }

    #[test]
    fn each_has_a_row() {
        for (what, key) in keys(LimitSpan::Turn).chain(keys(LimitSpan::Session)) {
            assert!(key.ends_with(what.name()) && find(key).is_some(), "{key}");
        }
    }
}
