//! Settings check: values in files, variables and flags that castor does not accept.

use serde_json::{Map, Value};

use super::{
    Sources, gemini,
    keys::{self, Key, KeyKind, Usage},
    resolve::{KeyOutcome, Origin, resolve},
};
use castor_tools::workspace::{
    Warning,
    settings::{Layer, Scope},
};

/// The most warnings from one file.
const MAX_PER_FILE: usize = 50;

/// What does not count as written: what is wrong with the files' text first, then by file in order of precedence, then
/// variables and flags.
pub fn check(sources: Sources<'_>) -> Vec<Warning> {
    let mut res = sources.layers.warnings.clone();
    sources.layers.layers.iter().for_each(|it| res.extend(look_through(it).wrong));
    let from_outside = |key: &&Key| !key.env.is_empty() || sources.flags.iter().any(|it| it.key == key.path);
    for key in keys::KEYS.iter().filter(from_outside) {
        for it in resolve(key, sources).candidates {
            let is_outside = matches!(it.origin, Origin::Env(_) | Origin::EnvFile(..) | Origin::Flag(_));
            if let (true, KeyOutcome::Ignored(message)) = (is_outside, it.fate) {
                res.push(Warning { origin: it.origin.to_string(), at: None, key: Some(key.path.to_owned()), message });
            }
        }
    }
    res
}

/// What stands in files and has no effect in castor, with the reason, or what to use instead.
pub fn without_effect(sources: Sources<'_>) -> Vec<Warning> {
    sources.layers.layers.iter().flat_map(|it| look_through(it).idle).collect()
}

fn look_through(layer: &Layer) -> Findings {
    let mut res = Findings::default();
    if let (Some(value), Some(written)) = (layer.value.as_object(), layer.raw.as_object()) {
        walk_group(KeyCheck { layer, out: &mut res }, "", value, written, false);
    }
    res
}

/// What was found in one file.
#[derive(Default)]
struct Findings {
    wrong: Vec<Warning>,
    /// Right, or of no consequence, and without effect.
    idle: Vec<Warning>,
}

struct KeyCheck<'a> {
    layer: &'a Layer,
    out: &'a mut Findings,
}

impl KeyCheck<'_> {
    fn warn(&mut self, key: &str, message: String) {
        let it = self.finding(key, message);
        push_capped(&mut self.out.wrong, it);
    }

    fn note_idle(&mut self, key: &str, why: &str) {
        let it = self.finding(key, why.to_owned());
        push_capped(&mut self.out.idle, it);
    }

    fn finding(&self, key: &str, message: String) -> Warning {
        Warning { origin: self.layer.file.to_string(), at: None, key: Some(key.to_owned()), message }
    }

    fn again(&mut self) -> KeyCheck<'_> {
        KeyCheck { layer: self.layer, out: self.out }
    }
}

fn push_capped(all: &mut Vec<Warning>, it: Warning) {
    if all.len() < MAX_PER_FILE {
        all.push(it);
    }
}

/// `open`: the group has members that the table does not list, so only slips of the fingers are wrong.
fn walk_group(mut walk: KeyCheck<'_>, prefix: &str, value: &Map<String, Value>, raw: &Map<String, Value>, open: bool) {
    for (name, value) in value.iter().filter(|(_, it)| !it.is_null()) {
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        let raw = raw.get(name).unwrap_or(value);
        let row = keys::find(&path);
        match (keys::is_group(&path), row, value, raw) {
            (true, _, Value::Object(value), Value::Object(raw)) => {
                walk_group(walk.again(), &path, value, raw, open || row.is_some());
            }
            (true, ..) => {
                let counts = keys::find(keys::SANDBOX_LEVEL).filter(|it| keys::path_below(it.path, &path).is_some());
                let fate = counts.map(|it| format!("; {} {}", it.path, fate_of(it, walk.layer))).unwrap_or_default();
                walk.warn(&path, with_hint(format!("should be {}{fate}", KeyKind::Object.describe()), &path));
            }
            (false, Some(row), ..) => check_row(&mut walk, row, value, raw),
            (false, None, ..) => check_other(&mut walk, &path, (value, raw), open),
        }
    }
}

fn check_row(walk: &mut KeyCheck<'_>, row: &Key, value: &Value, written: &Value) {
    let members = || value.as_object().zip(written.as_object()).filter(|_| gemini::is_group(row.path));
    match (row.accept(value, Some(walk.layer.scope), value != written), row.usage) {
        (Err(why), _) => {
            let fate = fate_of(row, walk.layer);
            walk.warn(row.path, format!("{why}; {fate}"));
        }
        // Of an object that castor goes by there may be members that it does not.
        (Ok(_), Usage::Used) => {
            let refused = value.as_str().and_then(|it| gemini::refusal(row.path, it));
            refused.into_iter().for_each(|why| walk.note_idle(row.path, why));
            let paths = members().into_iter().flat_map(|it| it.0.keys()).map(|it| format!("{}.{it}", row.path));
            for (path, why) in paths.filter_map(|it| gemini::absence(&it).map(|why| (it, why))) {
                walk.note_idle(&path, why);
            }
        }
        (Ok(_), Usage::Unsupported(what)) => walk.note_idle(row.path, gemini::absence(row.path).unwrap_or(what)),
        (Ok(_), Usage::Accepted) => match members() {
            Some((value, written)) => walk_group(walk.again(), row.path, value, written, true),
            None => gemini::absence(row.path).into_iter().for_each(|why| walk.note_idle(row.path, why)),
        },
    }
}

/// A key that is none of castor's.
fn check_other(walk: &mut KeyCheck<'_>, path: &str, (value, raw): (&Value, &Value), open: bool) {
    const UNKNOWN: &str = "is not a setting that castor knows";
    if let Some(why) = gemini::absence(path) {
        return walk.note_idle(path, why);
    }
    if let (true, Value::Object(value), Value::Object(raw)) = (gemini::is_group(path), value, raw) {
        return walk_group(walk.again(), path, value, raw, true);
    }
    match open && keys::misspelt(path).is_none() {
        true => walk.note_idle(path, UNKNOWN),
        false => walk.warn(path, with_hint(UNKNOWN.to_owned(), path)),
    }
}

fn fate_of(row: &Key, layer: &Layer) -> String {
    let counts = row.stricter_value(Some(layer.scope));
    counts.and_then(|it| Some(format!("counts as {}", it.as_str()?))).unwrap_or_else(|| "ignored".to_owned())
}

/// What is wrong with what people wrote about the sandbox, whose settings they are: who asks for less must hear of it
/// where it is not so.
pub(super) fn of_sandbox(sources: Sources<'_>, warnings: &[Warning]) -> Vec<String> {
    let by_workspace = |it: &Warning| {
        let mut layers = sources.layers.layers.iter();
        layers.any(|layer| layer.scope == Scope::Workspace && layer.file.to_string() == it.origin)
    };
    let group = "security.sandbox";
    let is_of = |path: &str| path == group || keys::path_below(path, group).is_some();
    let means_it = |key: &str| is_of(key) || keys::nearest(key).is_some_and(is_of);
    let named = warnings.iter().filter(|it| it.key.as_deref().is_some_and(means_it));
    named.filter(|it| !by_workspace(it)).map(ToString::to_string).collect()
}

/// Adds the name that was probably meant.
pub(super) fn with_hint(message: String, path: &str) -> String {
    match keys::nearest(path) {
        Some(meant) if meant != path => format!("{message}; did you mean {meant}?"),
        _ => message,
    }
}
