//! Front matter of agents, commands and skills: cut off the text and read as YAML; each fault with its line.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, IgnoredAny, MapAccess, Visitor},
};
use serde_saphyr::{RenderOptions, SnippetMode, Spanned, UserMessageFormatter};

/// What is wrong in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFault {
    /// Line and column, from 1.
    pub at: Option<(usize, usize)>,
    pub message: String,
}

impl FileFault {
    pub fn new(at: Option<(usize, usize)>, message: impl Into<String>) -> Self {
        Self { at, message: message.into() }
    }
}

/// A line that begins and ends front matter.
const FENCE: &str = "---";

/// The YAML, with the first fence so that lines keep their numbers, and the text below.
///
/// # Errors
/// A file without front matter.
pub fn split(text: &str) -> Result<(&str, &str), FileFault> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut at = 0;
    for (n, line) in text.split_inclusive('\n').enumerate() {
        match (n, line.trim_end() == FENCE) {
            (0, false) => break,
            (1.., true) => {
                let (yaml, rest) = text.split_at(at);
                return Ok((yaml, rest.split_once('\n').map_or("", |it| it.1).trim()));
            }
            _ => at += line.len(),
        }
    }
    let message = "should begin with front matter: keys between a first line --- and another line ---";
    Err(FileFault::new(Some((1, 1)), message))
}

/// The keys as a type that knows all of them.
///
/// # Errors
/// The first fault.
pub fn read<T: DeserializeOwned>(yaml: &str) -> Result<T, FileFault> {
    // A few lines can repeat each other a million times by their anchors.
    let options = serde_saphyr::options! {
        // As in YAML 1.2: `n` and `yes` are texts.
        strict_booleans: true,
        budget: serde_saphyr::budget! { max_nodes: 50_000, max_aliases: 100 },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 50_000 },
    };
    serde_saphyr::from_str_with_options(yaml, options).map_err(|it| {
        let mut plain = RenderOptions::new(&UserMessageFormatter);
        plain.snippets = SnippetMode::Off;
        let at = it.location().map(|it| (it.line() as usize, it.column() as usize));
        let message = it.render_with_options(plain);
        let end = at.map(|(line, column)| format!(" at line {line}, column {column}")).unwrap_or_default();
        FileFault::new(at, message.strip_suffix(&end).unwrap_or(&message))
    })
}

/// The names of a mapping's keys.
pub struct KeyNames(Vec<Spanned<String>>);

impl KeyNames {
    /// # Errors
    /// A key that is not among those that are known.
    pub fn check(&self, known: &[&str]) -> Result<(), FileFault> {
        let Some(odd) = self.0.iter().find(|it| !known.contains(&it.value.as_str())) else { return Ok(()) };
        let at = (odd.referenced.line() as usize, odd.referenced.column() as usize);
        let message = format!("unknown field `{}`, expected one of {}", odd.value, known.join(", "));
        Err(FileFault::new(Some(at), message))
    }
}

impl<'de> Deserialize<'de> for KeyNames {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_map(KeyNamesVisitor)
    }
}

struct KeyNamesVisitor;

impl<'de> Visitor<'de> for KeyNamesVisitor {
    type Value = KeyNames;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("keys with values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<KeyNames, A::Error> {
        let mut res = Vec::new();
        while let Some(name) = map.next_key()? {
            map.next_value::<IgnoredAny>()?;
            res.push(name);
        }
        Ok(KeyNames(res))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::{read, split};

    #[test]
    fn front_matter_is_cut_off() {
        for (text, want) in [
            ("---\na: 1\n---\nbody\n\n", Some(("---\na: 1\n", "body"))),
            ("\u{feff}---\r\na: 1\r\n---\r\nbody\r\n", Some(("---\r\na: 1\r\n", "body"))),
            ("--- \na: 1\n---", Some(("--- \na: 1\n", ""))),
            ("---\n---\nx\n---\ny", Some(("---\n", "x\n---\ny"))),
            ("---\na: 1\n", None),
            ("a: 1\n---\n---\n", None),
            ("", None),
        ] {
            assert_eq!(split(text).ok(), want, "{text:?}");
        }
    }

    #[test]
    fn repeated_anchors_have_an_end() {
        let rows = (1..9).map(|n| format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 9].join(", ")));
        let bomb: String = ["---\na0: &a0 [1]\n".to_owned()].into_iter().chain(rows).collect();
        assert!(read::<Value>(&bomb).is_err());
    }
}
