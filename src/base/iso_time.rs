//! Timestamps of events: milliseconds in memory, ISO 8601 in UTC where they are written.

use std::fmt;

use jiff::Timestamp;
use serde::{
    Deserializer, Serializer,
    de::{Error, Unexpected, Visitor},
};

/// With milliseconds, as in `2026-01-31T12:00:00.000Z`.
///
/// # Errors
/// Those of the serializer.
// The signature that serde wants.
#[allow(clippy::trivially_copy_pass_by_ref)]
pub fn serialize<S: Serializer>(ms: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    let stamp = i64::try_from(*ms).ok().and_then(|it| Timestamp::from_millisecond(it).ok()).unwrap_or(Timestamp::MAX);
    serializer.collect_str(&format_args!("{stamp:.3}"))
}

/// Logs of version 1 have milliseconds since the Unix epoch.
///
/// # Errors
/// What is neither.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    deserializer.deserialize_any(IsoTime)
}

struct IsoTime;

impl Visitor<'_> for IsoTime {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time in ISO 8601, or milliseconds since the Unix epoch")
    }

    fn visit_u64<E: Error>(self, ms: u64) -> Result<u64, E> {
        Ok(ms)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
        let stamp: Option<Timestamp> = text.parse().ok();
        let ms = stamp.and_then(|it| u64::try_from(it.as_millisecond()).ok());
        ms.ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    #[derive(Serialize, Deserialize)]
    #[serde(transparent)]
    struct Time(#[serde(with = "super")] u64);

    #[test]
    fn both_forms_are_read_and_one_is_written() {
        for (read, written) in [
            ("0", "\"1970-01-01T00:00:00.000Z\""),
            ("1795459488497", "\"2026-11-23T18:44:48.497Z\""),
            ("\"2026-11-23T18:44:48.4971Z\"", "\"2026-11-23T18:44:48.497Z\""),
            ("\"2026-11-23T19:44:48+01:00\"", "\"2026-11-23T18:44:48.000Z\""),
        ] {
            let time: Time = serde_json::from_str(read).unwrap();
            assert_eq!(serde_json::to_string(&time).unwrap(), written);
        }
        for wrong in ["-1", "\"soon\"", "\"1969-12-31T23:59:59Z\"", "null", "1.5"] {
            assert!(serde_json::from_str::<Time>(wrong).is_err(), "{wrong}");
        }
    }
}
