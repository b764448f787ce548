//! Lenient JSON values: a member of another type than expected counts as absent, and costs nothing but itself.

use std::{borrow::Cow, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{
        self, IgnoredAny, MapAccess, SeqAccess, Visitor,
        value::{MapAccessDeserializer, SeqAccessDeserializer},
    },
};
use serde_json::{Value, value::RawValue};

/// A text borrowed from the input where it has no escapes. A number is its digits; what is neither is empty.
#[derive(Debug, Default)]
pub struct Str<'a>(pub Cow<'a, str>);

impl Str<'_> {
    /// `None` where it is empty.
    pub fn said(self) -> Option<String> {
        Some(self.0.into_owned()).filter(|it| !it.is_empty())
    }
}

/// The text, empty where there is none.
pub fn owned(it: Option<Str<'_>>) -> String {
    it.map(|it| it.0.into_owned()).unwrap_or_default()
}

/// The text of a value that some servers send as text and others as what it is.
pub fn raw_text(raw: &RawValue) -> String {
    serde_json::from_str(raw.get()).unwrap_or_else(|_| raw.get().to_owned())
}

/// A count that a gateway may also send as a text, as null or as a float. 0 where it is none of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count(pub u64);

/// An object; `None` where it is none.
#[derive(Debug)]
pub struct Object<T>(pub Option<T>);

impl<T> Default for Object<T> {
    fn default() -> Self {
        Self(None)
    }
}

/// The objects of a list, or the one object in its place.
#[derive(Debug)]
pub struct Items<T>(pub Vec<T>);

impl<T> Default for Items<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// What a message says: a text, or a list of parts.
#[derive(Debug, Default)]
pub enum MessageContent<'a> {
    #[default]
    None,
    Text(Cow<'a, str>),
    Parts(Vec<Value>),
}

/// Makes a value of JSON of any type.
trait FromAny<'de>: Default {
    fn text(_: Cow<'de, str>) -> Self {
        Self::default()
    }

    fn number(_: f64) -> Self {
        Self::default()
    }

    fn whole(it: u64) -> Self {
        Self::number(it as f64)
    }

    fn list<A: SeqAccess<'de>>(list: A) -> Result<Self, A::Error> {
        IgnoredAny.visit_seq(list).map(|_| Self::default())
    }

    fn object<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        IgnoredAny.visit_map(map).map(|_| Self::default())
    }
}

impl<'de> FromAny<'de> for Str<'de> {
    fn text(it: Cow<'de, str>) -> Self {
        Self(it)
    }

    fn number(it: f64) -> Self {
        Self(it.to_string().into())
    }

    fn whole(it: u64) -> Self {
        Self(it.to_string().into())
    }
}

impl<'de> FromAny<'de> for Count {
    fn text(it: Cow<'de, str>) -> Self {
        let it = it.trim();
        it.parse().map_or_else(|_| it.parse().map(Self::number).unwrap_or_default(), Self)
    }

    /// What is no number or below 0 becomes 0.
    fn number(it: f64) -> Self {
        Self(it as u64)
    }

    fn whole(it: u64) -> Self {
        Self(it)
    }
}

impl<'de, T: Deserialize<'de>> FromAny<'de> for Object<T> {
    fn object<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(|it| Self(Some(it)))
    }
}

impl<'de, T: Deserialize<'de>> FromAny<'de> for Items<T> {
    fn list<A: SeqAccess<'de>>(list: A) -> Result<Self, A::Error> {
        let items = Vec::<Object<T>>::deserialize(SeqAccessDeserializer::new(list))?;
        Ok(Self(items.into_iter().filter_map(|it| it.0).collect()))
    }

    fn object<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        Object::object(map).map(|it| Self(it.0.into_iter().collect()))
    }
}

impl<'de> FromAny<'de> for MessageContent<'de> {
    fn text(it: Cow<'de, str>) -> Self {
        Self::Text(it)
    }

    fn list<A: SeqAccess<'de>>(list: A) -> Result<Self, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list)).map(Self::Parts)
    }

    fn object<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        Value::deserialize(MapAccessDeserializer::new(map)).map(|it| Self::Parts(vec![it]))
    }
}

struct AnyVisitor<T>(PhantomData<T>);

impl<'de, T: FromAny<'de>> Visitor<'de> for AnyVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_borrowed_str<E: de::Error>(self, it: &'de str) -> Result<T, E> {
        Ok(T::text(Cow::Borrowed(it)))
    }

    fn visit_str<E: de::Error>(self, it: &str) -> Result<T, E> {
        Ok(T::text(Cow::Owned(it.to_owned())))
    }

    fn visit_u64<E: de::Error>(self, it: u64) -> Result<T, E> {
        Ok(T::whole(it))
    }

    fn visit_i64<E: de::Error>(self, it: i64) -> Result<T, E> {
        Ok(T::number(it as f64))
    }

    fn visit_f64<E: de::Error>(self, it: f64) -> Result<T, E> {
        Ok(T::number(it))
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_unit<E: de::Error>(self) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<T, A::Error> {
        T::list(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::object(map)
    }
}

fn any<'de, T: FromAny<'de>, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    from.deserialize_any(AnyVisitor(PhantomData))
}

impl<'de: 'a, 'a> Deserialize<'de> for Str<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        any(from)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for MessageContent<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        any(from)
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        any(from)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        any(from)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Items<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        any(from)
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::{Count, Items, Object, Str};

    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Sample<'a> {
        #[serde(borrow)]
        text: Option<Str<'a>>,
        count: Count,
        #[serde(borrow)]
        object: Object<Box<Sample<'a>>>,
        #[serde(borrow)]
        items: Items<Sample<'a>>,
    }

    #[test]
    fn a_member_of_another_type_costs_nothing_but_itself() {
        for (json, text, count) in [
            ("null", None, 0),
            ("7", Some("7"), 7),
            ("-7", Some("-7"), 0),
            ("1.5", Some("1.5"), 1),
            ("1e99", Some("1000"), u64::MAX),
            ("true", Some(""), 0),
            (r#"" 12 ""#, Some(" 12 "), 12),
            (r#""12.9""#, Some("12.9"), 12),
            (r#""many""#, Some("many"), 0),
            (r#"{"text":{}}"#, Some(""), 0),
            (r#"[{"a":[1,null]},"b"]"#, Some(""), 0),
        ] {
            let all = format!(r#"{{"text":{json},"count":{json},"object":{json},"items":{json}}}"#);
            let got: Sample<'_> = serde_json::from_str(&all).unwrap_or_else(|it| panic!("{all}: {it}"));
            let got_text = got.text.map(|it| it.0.chars().take(4).collect::<String>());
            assert_eq!(
                (got_text.as_deref(), got.count.0),
                (text.map(|it| it.get(..it.len().min(4)).unwrap()), count),
                "{json}"
            );
            assert_eq!(got.object.0.is_some(), json.starts_with('{'), "{json}");
            assert_eq!(got.items.0.len(), usize::from(json.starts_with(['{', '['])), "{json}");
        }
    }
}
