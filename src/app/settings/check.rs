//! Settings check: values in files, variables and flags that castor does not accept.

use serde_json::{Map, Value};

use super::{
    Sources,
    keys::{self, Key, KeyKind, Usage},
    resolve::{KeyOutcome, Origin, resolve},
};
use crate::world::workspace::{
    Warning,
    settings::{Layer, Scope},
};

/// The most warnings from one file.
const MAX_PER_FILE: usize = 50;

/// All warnings: those of the files' text first, then by file in order of precedence, then variables and flags.
pub fn check(sources: Sources<'_>) -> Vec<Warning> {
    let mut res = sources.layers.warnings.clone();
    for layer in &sources.layers.layers {
        let mut found = Vec::new();
        if let (Some(value), Some(written)) = (layer.value.as_object(), layer.raw.as_object()) {
            let walk = KeyCheck { layer, out: &mut found };
            walk_group(walk, "", value, written, false);
        }
        res.append(&mut found);
    }
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

struct KeyCheck<'a> {
    layer: &'a Layer,
    out: &'a mut Vec<Warning>,
}

impl KeyCheck<'_> {
    fn warn(&mut self, key: &str, message: String) {
        let origin = self.layer.file.to_string();
        self.out.push(Warning { origin, at: None, key: Some(key.to_owned()), message });
    }

    fn again(&mut self) -> KeyCheck<'_> {
        KeyCheck { layer: self.layer, out: self.out }
    }
}

/// `open`: the group has members that the table does not list, so only slips of the fingers are reported.
fn walk_group(mut walk: KeyCheck<'_>, prefix: &str, value: &Map<String, Value>, raw: &Map<String, Value>, open: bool) {
    for (name, value) in value.iter().filter(|(_, it)| !it.is_null()) {
        if walk.out.len() >= MAX_PER_FILE {
            return;
        }
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
            (false, None, ..) => {
                let meant = if open { keys::misspelt(&path) } else { None };
                if !open || meant.is_some() {
                    walk.warn(&path, with_hint("is not a setting that castor knows".to_owned(), &path));
                }
            }
        }
    }
}

fn check_row(walk: &mut KeyCheck<'_>, row: &Key, value: &Value, written: &Value) {
    match (row.accept(value, Some(walk.layer.scope), value != written), row.usage) {
        (Err(why), _) => {
            let fate = fate_of(row, walk.layer);
            walk.warn(row.path, format!("{why}; {fate}"));
        }
        (Ok(_), Usage::Unsupported(what)) => walk.warn(row.path, what.to_owned()),
        (Ok(_), Usage::Used | Usage::Accepted) => (),
    }
}

fn fate_of(row: &Key, layer: &Layer) -> String {
    let counts = row.stricter_value(Some(layer.scope));
    counts.and_then(|it| Some(format!("counts as {}", it.as_str()?))).unwrap_or_else(|| "ignored".to_owned())
}

/// What the folder's own settings say and castor ignores: the file, the key and why.
pub fn ignored_of_workspace(sources: Sources<'_>) -> Vec<Warning> {
    if sources.layers.layers.iter().all(|it| it.scope != Scope::Workspace) {
        return Vec::new();
    }
    let mut res = Vec::new();
    for key in keys::KEYS {
        for it in resolve(key, sources).candidates {
            if let (Origin::File(Scope::Workspace, file), KeyOutcome::Ignored(message)) = (it.origin, it.fate) {
                res.push(Warning { origin: file.to_string(), at: None, key: Some(key.path.to_owned()), message });
            }
        }
    }
    res
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
