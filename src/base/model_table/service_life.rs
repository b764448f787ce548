//! Service life of a model: the day on which its maker switches it off, and what follows it.

use jiff::{Unit, civil::Date};
use serde::{Deserialize, Deserializer, de::Error};

/// How many days before the end the user hears of it.
pub const NOTICE_DAYS: i32 = 30;

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ServiceLife {
    /// The first day on which it is not served.
    #[serde(default, deserialize_with = "read_day")]
    pub retires: Option<Date>,
    /// Its maker answers with the successor from then on.
    #[serde(default)]
    pub routed: bool,
    pub successor: Option<String>,
}

/// The same on a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceState {
    Served,
    /// Soon no more; in so many days.
    Retiring {
        on: Date,
        days: i32,
    },
    Retired {
        on: Date,
    },
}

impl ServiceLife {
    pub fn on(&self, day: Date) -> ServiceState {
        let Some(on) = self.retires else { return ServiceState::Served };
        let days = day.until((Unit::Day, on)).map_or(i32::MAX, |it| it.get_days());
        match days {
            ..=0 => ServiceState::Retired { on },
            1..=NOTICE_DAYS => ServiceState::Retiring { on, days },
            _ => ServiceState::Served,
        }
    }

    pub fn is_over(&self, day: Date) -> bool {
        matches!(self.on(day), ServiceState::Retired { .. })
    }
}

/// A day as in `2026-01-31`.
pub(super) fn read_day<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Date>, D::Error> {
    let text = String::deserialize(from)?;
    let day = text.parse().map_err(|_| D::Error::custom(format!("{text:?} is no day as in 2026-01-31")))?;
    Ok(Some(day))
}

#[cfg(test)]
mod tests {
    use jiff::civil::{Date, date};

    use super::{ServiceLife, ServiceState};

    #[test]
    fn the_last_thirty_days() {
        let (on, life) =
            (date(2026, 12, 1), ServiceLife { retires: Some(date(2026, 12, 1)), ..ServiceLife::default() });
        for (day, expected) in [
            (Date::MIN, ServiceState::Served),
            (date(2026, 10, 31), ServiceState::Served),
            (date(2026, 11, 1), ServiceState::Retiring { on, days: 30 }),
            (date(2026, 11, 30), ServiceState::Retiring { on, days: 1 }),
            (on, ServiceState::Retired { on }),
            (Date::MAX, ServiceState::Retired { on }),
        ] {
            assert_eq!(life.on(day), expected, "{day}");
        }
        assert_eq!(ServiceLife::default().on(Date::MAX), ServiceState::Served);
    }
}
