//! Lenient JSON values, for fields that servers send in more ways than one.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{self, Visitor},
};

/// A text borrowed from the input where it has no escapes. serde borrows a bare `Cow`, but not one in an `Option`.
pub struct Str<'a>(pub Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Str<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Texts;
        impl<'de> Visitor<'de> for Texts {
            type Value = Str<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_borrowed_str<E: de::Error>(self, it: &'de str) -> Result<Str<'de>, E> {
                Ok(Str(Cow::Borrowed(it)))
            }

            fn visit_str<E: de::Error>(self, it: &str) -> Result<Str<'de>, E> {
                Ok(Str(Cow::Owned(it.to_owned())))
            }
        }
        from.deserialize_str(Texts)
    }
}

/// A count that a gateway may also send as null or as a float: no reason to lose an answer.
#[derive(Default)]
pub struct Count(pub u64);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Counts;
        impl Visitor<'_> for Counts {
            type Value = Count;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a count")
            }

            fn visit_u64<E: de::Error>(self, it: u64) -> Result<Count, E> {
                Ok(Count(it))
            }

            fn visit_i64<E: de::Error>(self, it: i64) -> Result<Count, E> {
                Ok(Count(it.max(0).unsigned_abs()))
            }

            fn visit_f64<E: de::Error>(self, it: f64) -> Result<Count, E> {
                Ok(Count(it as u64))
            }

            fn visit_unit<E: de::Error>(self) -> Result<Count, E> {
                Ok(Count(0))
            }
        }
        from.deserialize_any(Counts)
    }
}
