//! Name patterns of models: what stands before and behind a model's own name does not matter.

use serde::Deserialize;

/// A name in which `*` stands for any letters. A dot and a dash between digits are the same: `4-5` is `4.5`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct NamePattern(String);

impl NamePattern {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// How special it is: the longest pattern that fits a name wins, and of two such the one without a `*`.
    pub fn weight(&self) -> usize {
        let stars = self.0.bytes().filter(|it| *it == b'*').count();
        2 * (self.0.len() - stars) + usize::from(stars == 0)
    }

    /// Tells whether the model's own name is meant, with or without the date of a snapshot.
    pub fn fits(&self, name: &ModelName<'_>) -> bool {
        let fits = |it: &str| fits(self.0.as_bytes(), it.as_bytes());
        fits(name.dated) || (name.undated.len() < name.dated.len() && fits(name.undated))
    }

    /// In lower case; 0 if there is none.
    pub(super) fn first_letter(&self) -> u8 {
        first_letter(&self.0)
    }
}

/// A model's own name, as it is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelName<'a> {
    /// With the date of a snapshot, if it has one.
    dated: &'a str,
    undated: &'a str,
}

impl<'a> ModelName<'a> {
    /// Without the providers that it is reached by, the cloud's prefixes, sizes and variants: `openrouter/google/…`,
    /// `us.anthropic.…-v1:0`, `…:free`, `…@20250514`.
    pub fn of(model: &'a str) -> Self {
        let name = model.rsplit('/').next().unwrap_or(model);
        let name = name.split([':', '@']).next().unwrap_or(name);
        let dated = without_revision(without_vendors(name));
        Self { dated, undated: undated(dated) }
    }

    /// In lower case; 0 if there is none. The date is no part of it.
    pub(super) fn first_letter(&self) -> u8 {
        first_letter(self.undated)
    }
}

fn first_letter(text: &str) -> u8 {
    text.as_bytes().first().map_or(0, u8::to_ascii_lowercase)
}

/// Without words before dots: `us.anthropic.`. Digits before a dot belong to a version.
fn without_vendors(name: &str) -> &str {
    let is_vendor = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_alphabetic() || it == b'-');
    match name.split_once('.') {
        Some((vendor, rest)) if is_vendor(vendor) && !rest.is_empty() => without_vendors(rest),
        _ => name,
    }
}

/// Without the revision of a snapshot: `…-20250514-v1`.
fn without_revision(name: &str) -> &str {
    let is_revision = |it: &str| it.strip_prefix('v').is_some_and(|it| it.len() == 1 && it != "0");
    match name.rsplit_once('-') {
        Some((rest, last)) if is_revision(last) && undated(rest) != rest => rest,
        _ => name,
    }
}

/// Without the date of a snapshot: `-20250514` or `-2025-05-14`.
pub fn undated(name: &str) -> &str {
    let is_date = |it: &str| {
        let digits = it.bytes().filter(u8::is_ascii_digit).count();
        let dashes = it.bytes().filter(|it| *it == b'-').count();
        digits == 8 && it.starts_with("-20") && (it.len(), dashes) == (8 + dashes, if it.len() > 9 { 3 } else { 1 })
    };
    let starts = [11, 9].into_iter().filter_map(|it| name.len().checked_sub(it));
    let parts = starts.filter_map(|it| name.split_at_checked(it));
    parts.into_iter().find(|(_, date)| is_date(date)).map_or(name, |(model, _)| model)
}

/// The place of the last `*`, and of the text that it was tried for: if what follows does not fit, it takes one more.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p + 1, n));
            p += 1;
        } else if is_same(pattern, p, name, n) {
            (p, n) = (p + 1, n + 1);
        } else if let Some((after, taken)) = star {
            star = Some((after, taken + 1));
            (p, n) = (after, taken + 1);
        } else {
            return false;
        }
    }
    pattern.get(p..).is_some_and(|it| it.iter().all(|it| *it == b'*'))
}

fn is_same(pattern: &[u8], p: usize, name: &[u8], n: usize) -> bool {
    let (Some(wanted), Some(found)) = (pattern.get(p), name.get(n)) else { return false };
    let is_point = |it: &u8| matches!(it, b'.' | b'-');
    wanted.eq_ignore_ascii_case(found)
        || (is_point(wanted) && is_point(found) && is_in_version(pattern, p) && is_in_version(name, n))
}

/// Tells whether digits stand on both sides, and those behind are a version's: no year and no day.
fn is_in_version(text: &[u8], at: usize) -> bool {
    let is_digit = |at: usize| text.get(at).is_some_and(u8::is_ascii_digit);
    at > 0 && is_digit(at - 1) && is_digit(at + 1) && !(is_digit(at + 2) && is_digit(at + 3))
}

#[cfg(test)]
mod tests {
    use super::{ModelName, NamePattern, undated};

    #[test]
    fn only_the_own_name_counts() {
        for (model, dated, bare) in [
            ("gemini-9-flash", "gemini-9-flash", "gemini-9-flash"),
            ("models/gemini-9-flash", "gemini-9-flash", "gemini-9-flash"),
            ("openrouter/google/gemini-9-flash:free", "gemini-9-flash", "gemini-9-flash"),
            ("anthropic/claude-opus-4-20250514", "claude-opus-4-20250514", "claude-opus-4"),
            ("vertex/claude-opus-4@20250514", "claude-opus-4", "claude-opus-4"),
            ("bedrock/us.anthropic.claude-opus-4-20250514-v1:0", "claude-opus-4-20250514", "claude-opus-4"),
            ("eu-west.meta.llama-v1", "llama-v1", "llama-v1"),
            ("accounts/fireworks/models/kimi-k2", "kimi-k2", "kimi-k2"),
            ("gpt-5.2-2025-12-11", "gpt-5.2-2025-12-11", "gpt-5.2"),
            ("ollama/qwen3:30b", "qwen3", "qwen3"),
            ("", "", ""),
            ("/", "", ""),
            ("é.", "é.", "é."),
            ("a.", "a.", "a."),
        ] {
            assert_eq!(ModelName::of(model), ModelName { dated, undated: bare }, "{model}");
        }
    }

    #[test]
    fn patterns_fit_names() {
        let fits = |pattern: &str, model: &str| NamePattern(pattern.to_owned()).fits(&ModelName::of(model));
        for (pattern, model) in [
            ("a", "a"),
            ("A", "x/a"),
            ("a*", "a"),
            ("a*", "a-b"),
            ("*b", "a-b-b"),
            ("a*c*e", "abcde"),
            ("claude-sonnet-4-5", "openrouter/anthropic/claude-sonnet-4.5"),
            ("claude-sonnet-4-5", "claude-sonnet-4-5-20250929"),
            ("gpt-5.2", "gpt-5-2"),
            ("gpt-4o-2024-05-13", "gpt-4o-2024-05-13"),
        ] {
            assert!(fits(pattern, model), "{pattern} {model}");
        }
        for (pattern, model) in [
            ("a", "ab"),
            ("a", "b"),
            ("a*c", "ab"),
            ("gemini-3-*", "gemini-3.8-flash"),
            ("gpt-5.2*", "gpt-5-2025-08-07"),
            ("gpt-5.2*", "gpt-5-2507"),
            ("gpt-5.2", "gpt-5.20"),
            ("", "a"),
        ] {
            assert!(!fits(pattern, model), "{pattern} {model}");
        }
    }

    #[test]
    fn the_longer_pattern_weighs_more() {
        let weight = |it: &str| NamePattern(it.to_owned()).weight();
        assert!(weight("a-b*") > weight("a-*") && weight("a-b") > weight("a-b*") && weight("a-b*") > weight("a-"));
    }

    #[test]
    fn dates_of_snapshots() {
        for (name, expected) in [
            ("claude-opus-4-20250514", "claude-opus-4"),
            ("gpt-5-2025-08-07", "gpt-5"),
            ("gemini-2.5-pro", "gemini-2.5-pro"),
            ("gemini-2.5-flash-preview-09-2025", "gemini-2.5-flash-preview-09-2025"),
            ("x-99990514", "x-99990514"),
            ("-20250514", ""),
            ("é0250514", "é0250514"),
            ("", ""),
        ] {
            assert_eq!(undated(name), expected);
        }
    }
}
