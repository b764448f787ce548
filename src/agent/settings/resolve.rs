//! Resolution of one settings key: the value of each layer, and the result.

use std::{borrow::Cow, fmt};

use serde_json::{Map, Value};

use super::{
    Sources,
    keys::{Key, Merge},
};
use castor_base::path::AbsPath;
use castor_tools::workspace::settings::Scope;

/// The origin of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Origin<'a> {
    Default,
    File(Scope, &'a AbsPath),
    Env(&'static str),
    /// A variable that a `.env` file sets, with the file and the line.
    EnvFile(&'static str, &'a str, usize),
    Flag(&'static str),
}

impl fmt::Display for Origin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(scope, file) => write!(f, "{file} ({})", scope.as_str()),
            Self::Env(name) => write!(f, "environment {name}"),
            Self::EnvFile(name, file, line) => write!(f, "{file}:{line} ({name})"),
            Self::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

/// The value of one origin, and whether it counts.
#[derive(Clone, Debug)]
pub(super) struct Candidate<'a> {
    pub origin: Origin<'a>,
    pub written: Cow<'a, Value>,
    pub value: Cow<'a, Value>,
    pub fate: KeyOutcome,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum KeyOutcome {
    Wins,
    /// It is part of the merged value.
    Contributes,
    Overridden,
    /// It does not count, for this reason.
    Ignored(String),
}

/// All candidates, weakest first, and the merged value.
pub(super) struct Resolution<'a> {
    pub candidates: Vec<Candidate<'a>>,
    pub value: Option<Value>,
}

pub(super) fn resolve<'a>(key: &'static Key, sources: Sources<'a>) -> Resolution<'a> {
    let mut candidates = candidates(key, sources);
    let counting: Vec<usize> = candidates
        .iter()
        .enumerate()
        .filter(|(_, it)| !matches!(it.fate, KeyOutcome::Ignored(_)))
        .map(|(at, _)| at)
        .collect();
    let merged = key.merge != Merge::Replace && counting.len() > 1;
    for &at in counting.iter().rev().skip(1) {
        if let Some(it) = candidates.get_mut(at) {
            it.fate = if merged { KeyOutcome::Contributes } else { KeyOutcome::Overridden };
        }
    }
    if let (true, Some(it)) = (merged, counting.last().and_then(|at| candidates.get_mut(*at))) {
        it.fate = KeyOutcome::Contributes;
    }
    let values = counting.iter().filter_map(|at| candidates.get(*at)).map(|it| it.value.as_ref());
    let value = values.fold(None, |sum, next| Some(merge(key.merge, sum, next)));
    Resolution { candidates, value }
}

fn candidates<'a>(key: &'static Key, sources: Sources<'a>) -> Vec<Candidate<'a>> {
    let mut res = Vec::new();
    if let Some(it) = key.default_value() {
        let value: Cow<Value> = Cow::Owned(it);
        res.push(Candidate { origin: Origin::Default, written: value.clone(), value, fate: KeyOutcome::Wins });
    }
    for layer in &sources.layers.layers {
        let origin = Origin::File(layer.scope, &layer.file);
        let Some(value) = at(&layer.value, key.path) else {
            let odd = key.stricter_value(Some(layer.scope)).zip(in_place_of_group(&layer.raw, key.path));
            res.extend(odd.map(|(careful, it)| {
                let (written, value) = (Cow::Borrowed(it), Cow::Owned(careful));
                Candidate { origin, written, value, fate: KeyOutcome::Wins }
            }));
            continue;
        };
        let written = at(&layer.raw, key.path).unwrap_or(value);
        res.push(candidate(key, origin, Cow::Borrowed(written), Cow::Borrowed(value)));
    }
    for name in key.env {
        let Some(text) = sources.env.get(name) else { continue };
        let value: Cow<Value> = Cow::Owned(Value::from(text));
        let origin = match sources.env.source_line(name) {
            Some((file, line)) => Origin::EnvFile(name, file, line),
            None => Origin::Env(name),
        };
        res.push(candidate(key, origin, value.clone(), value));
    }
    for flag in sources.flags.iter().filter(|it| it.key == key.path) {
        let value = Cow::Borrowed(&flag.value);
        res.push(candidate(key, Origin::Flag(flag.name), value.clone(), value));
    }
    res
}

fn candidate<'a>(key: &Key, origin: Origin<'a>, written: Cow<'a, Value>, value: Cow<'a, Value>) -> Candidate<'a> {
    let scope = if let Origin::File(scope, _) = origin { Some(scope) } else { None };
    // Reading text as a number gives a new value; all others stay borrowed.
    let accepted = key.accept(&value, scope, written != value).map(|it| match it {
        Cow::Owned(read) => Some(read),
        Cow::Borrowed(_) => None,
    });
    let (value, fate) = match accepted {
        Ok(Some(read)) => (Cow::Owned(read), KeyOutcome::Wins),
        Ok(None) => (value, KeyOutcome::Wins),
        Err(why) => match key.stricter_value(scope) {
            Some(careful) => (Cow::Owned(careful), KeyOutcome::Wins),
            None => (value, KeyOutcome::Ignored(why)),
        },
    };
    Candidate { origin, written, value, fate }
}

/// What stands at a dotted path. `null` is as good as nothing.
pub(super) fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    let found = path.split('.').try_fold(value, |value, name| value.as_object()?.get(name))?;
    (!found.is_null()).then_some(found)
}

/// What stands where a group should be that holds this path.
fn in_place_of_group<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    let (group, _) = path.rsplit_once('.')?;
    match group.split('.').try_fold(value, |value, name| value.as_object().map_or(Some(value), |it| it.get(name)))? {
        Value::Object(_) | Value::Null => None,
        it => Some(it),
    }
}

fn merge(how: Merge, sum: Option<Value>, next: &Value) -> Value {
    match (how, sum, next) {
        (Merge::Concat, Some(Value::Array(mut sum)), Value::Array(next)) => {
            sum.extend(next.iter().cloned());
            sum.into()
        }
        // Also alone, so that repetitions within one layer go.
        (Merge::Union, sum, Value::Array(next)) => {
            let mut res = if let Some(Value::Array(sum)) = sum { sum } else { Vec::new() };
            for it in next {
                if !res.contains(it) {
                    res.push(it.clone());
                }
            }
            res.into()
        }
        (Merge::Intersect, Some(Value::Array(mut sum)), Value::Array(next)) => {
            sum.retain(|it| next.iter().any(|other| same_text(it, other)));
            sum.into()
        }
        (Merge::Shallow, Some(Value::Object(mut sum)), Value::Object(next)) => {
            sum.extend(next.iter().map(|(name, it)| (name.clone(), it.clone())));
            sum.into()
        }
        (Merge::ConcatMembers, Some(Value::Object(sum)), Value::Object(next)) => concat_members(sum, next).into(),
        (_, _, next) => next.clone(),
    }
}

fn concat_members(mut sum: Map<String, Value>, next: &Map<String, Value>) -> Map<String, Value> {
    for (name, it) in next {
        match (sum.get_mut(name), it) {
            (Some(Value::Array(sum)), Value::Array(it)) => sum.extend(it.iter().cloned()),
            _ => _ = sum.insert(name.clone(), it.clone()),
        }
    }
    sum
}

fn same_text(a: &Value, b: &Value) -> bool {
    matches!((a.as_str(), b.as_str()), (Some(a), Some(b)) if a.eq_ignore_ascii_case(b))
}
