//! `castor config explain`: every layer of a key, and which one wins.

use std::{
    borrow::Cow,
    fmt::{self, Write},
};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::{
    Sources,
    check::with_hint,
    gemini,
    keys::{self, KEYS, Key, Merge, Usage},
    resolve::{Candidate, KeyOutcome, Resolution, at, resolve},
};
use castor_hands::secrets::{name_looks_secret, value_looks_secret};
use castor_tools::workspace::settings::WorkspaceFiles;

/// The text for one path, and whether the path is known. Secrets are starred out.
pub fn explain(path: &str, sources: Sources<'_>) -> (String, bool) {
    if keys::is_group(path) {
        return (explain_group(path, sources), true);
    }
    if let Some(key) = keys::find(path) {
        let Resolution { candidates, value } = resolve(key, sources);
        return (explain_key(path, key, &candidates, value.as_ref(), sources), true);
    }
    if let Some((key, rest)) = keys::enclosing_key(path) {
        let Resolution { candidates, value } = resolve(key, sources);
        let inner = narrowed(key, candidates, rest);
        let value = value.as_ref().and_then(|it| at(it, rest));
        if !inner.is_empty() || key.usage != Usage::Accepted {
            return (explain_key(path, key, &inner, value, sources), true);
        }
    }
    (explain_unknown(path, sources), false)
}

fn explain_key(path: &str, key: &Key, all: &[Candidate<'_>], value: Option<&Value>, sources: Sources<'_>) -> String {
    let name = last(path);
    let hidden = SecretTexts::of(name, all);
    let mut out = format!("{path} = {}\n", value.map_or("(not set)".into(), |it| hidden.display_value(name, it, it)));
    _ = writeln!(out, "  {}", key.doc);
    match key.usage {
        Usage::Used => (),
        Usage::Accepted => match gemini::absence(path) {
            Some(why) => _ = writeln!(out, "  It has no effect in castor: {why}."),
            None => out.push_str("  Accepted; castor does not act on it.\n"),
        },
        Usage::Unsupported(what) => _ = writeln!(out, "  It {what}."),
    }
    out.push('\n');
    let origins: Vec<String> = all.iter().map(|it| it.origin.to_string()).collect();
    let width = origins.iter().map(|it| it.chars().count()).max().unwrap_or_default();
    for (it, origin) in all.iter().zip(&origins) {
        let (mark, note) = match &it.fate {
            KeyOutcome::Wins => ('*', Cow::Borrowed("  <- wins")),
            KeyOutcome::Contributes => ('+', Cow::Borrowed("")),
            KeyOutcome::Overridden => (' ', Cow::Borrowed("")),
            KeyOutcome::Ignored(why) => ('!', Cow::Owned(format!("  <- ignored: {why}"))),
        };
        let value = hidden.display_value(name, &it.written, &it.value);
        _ = writeln!(out, "  {mark} {origin:width$}  {value}{note}");
    }
    if all.is_empty() {
        out.push_str("    No layer sets it.\n");
    }
    out.push_str(workspace_note(sources));
    out
}

fn explain_group(path: &str, sources: Sources<'_>) -> String {
    let mut out = String::new();
    for key in KEYS.iter().filter(|it| keys::path_below(it.path, path).is_some()) {
        if let Some(it) = set_value(key, sources) {
            _ = writeln!(out, "{it}");
        }
    }
    out.push_str(workspace_note(sources));
    out
}

/// A setting that is set. Secrets are starred out.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SettingValue {
    pub key: &'static str,
    pub value: Value,
    /// The layers that it comes from.
    pub source: String,
}

impl fmt::Display for SettingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}  <- {}", self.key, self.value, self.source)
    }
}

/// Every setting that is set.
pub fn set_values(sources: Sources<'_>) -> Vec<SettingValue> {
    KEYS.iter().filter_map(|it| set_value(it, sources)).collect()
}

fn set_value(key: &'static Key, sources: Sources<'_>) -> Option<SettingValue> {
    let Resolution { candidates, value } = resolve(key, sources);
    let value = value.filter(|_| !keys::is_group(key.path))?;
    let counts = |it: &&Candidate<'_>| matches!(it.fate, KeyOutcome::Wins | KeyOutcome::Contributes);
    let from: Vec<_> = candidates.iter().filter(counts).map(|it| it.origin.to_string()).collect();
    let name = last(key.path);
    let value = SecretTexts::of(name, &candidates).mask_value(name, &value);
    Some(SettingValue { key: key.path, value, source: from.join(" + ") })
}

fn explain_unknown(path: &str, sources: Sources<'_>) -> String {
    let mut out = match gemini::absence(path) {
        Some(why) => format!("{path} has no effect in castor: {why}."),
        None => with_hint(format!("{path} is not a setting that castor knows"), path),
    };
    out.push('\n');
    let name = last(path);
    for layer in &sources.layers.layers {
        if let Some(value) = at(&layer.value, path) {
            // As written only: nobody uses what it would become.
            let value = SecretTexts(Vec::new()).mask_value(name, at(&layer.raw, path).unwrap_or(value));
            _ = writeln!(out, "  ! {} ({})  {value}", layer.file, layer.scope.as_str());
        }
    }
    out
}

fn workspace_note(sources: Sources<'_>) -> &'static str {
    match sources.layers.workspace {
        WorkspaceFiles::Read => "",
        WorkspaceFiles::NotTrusted => "\nThe workspace's own settings were not read: the folder is not trusted.\n",
        WorkspaceFiles::IsHome => "\nThe workspace is the home folder: its settings are the user's.\n",
    }
}

fn last(path: &str) -> &str {
    let mut names = path.rsplit('.');
    let (member, holder) = (names.next().unwrap_or_default(), names.next().unwrap_or_default());
    label_of(holder, member)
}

/// What the candidates of an object say about one path in it.
fn narrowed<'a>(key: &Key, candidates: Vec<Candidate<'a>>, rest: &str) -> Vec<Candidate<'a>> {
    let member = rest.split('.').next().unwrap_or_default();
    let counts = |it: &Candidate<'_>| !matches!(it.fate, KeyOutcome::Ignored(_));
    // Members replace each other whole: the last that has the member decides about everything in it.
    let decides = candidates.iter().rposition(|it| counts(it) && at(&it.value, member).is_some());
    let mut res = Vec::new();
    for (position, mut it) in candidates.into_iter().enumerate() {
        let Some(value) = at(&it.value, rest).cloned() else { continue };
        let written = at(&it.written, rest).cloned().unwrap_or_else(|| value.clone());
        if key.merge == Merge::Shallow && counts(&it) {
            it.fate = if Some(position) == decides { KeyOutcome::Wins } else { KeyOutcome::Overridden };
        }
        res.push(Candidate {
            origin: it.origin,
            written: Cow::Owned(written),
            value: Cow::Owned(value),
            fate: it.fate,
        });
    }
    res
}

const STARS: &str = "***";

/// The name that tells what a member is. What `env` and `headers` hold is private, whatever they call it.
fn label_of<'n>(holder: &str, member: &'n str) -> &'n str {
    if matches!(holder, "env" | "headers") { "private" } else { member }
}

/// What is starred out wherever it appears: texts that came from variables whose names tell a secret. A merged value
/// no longer knows where its parts came from, so they are gathered from the candidates.
struct SecretTexts<'a>(Vec<&'a str>);

impl<'a> SecretTexts<'a> {
    fn of(name: &str, candidates: &'a [Candidate<'_>]) -> Self {
        let mut res = Self(Vec::new());
        for it in candidates {
            res.gather(name, &it.written, &it.value);
        }
        res
    }

    fn gather(&mut self, name: &str, written: &Value, value: &'a Value) {
        match (written, value) {
            (Value::String(from), Value::String(text)) => {
                let secret = name_looks_secret(name) || name_looks_secret(from);
                self.0.extend((secret && from != text).then_some(text.as_str()));
            }
            (Value::Array(written), Value::Array(value)) => {
                written.iter().zip(value).for_each(|(written, value)| self.gather(name, written, value));
            }
            (Value::Object(written), Value::Object(value)) => {
                for (member, value) in value {
                    let inner = label_of(name, member);
                    written.get(member).into_iter().for_each(|written| self.gather(inner, written, value));
                }
            }
            _ => (),
        }
    }

    /// The value with secrets replaced.
    fn mask_value(&self, name: &str, value: &Value) -> Value {
        match value {
            Value::String(text) => {
                let named = name_looks_secret(name) && !is_reference(text) && !is_variable(name, text);
                let secret = named || value_looks_secret(text) || self.0.contains(&text.as_str());
                if secret { STARS.into() } else { value.clone() }
            }
            Value::Array(items) => {
                let before = std::iter::once("").chain(items.iter().map(|it| it.as_str().unwrap_or_default()));
                items.iter().zip(before).map(|(it, before)| self.argument(name, before, it)).collect()
            }
            Value::Object(members) => {
                let shown = |member: &String, it| (member.clone(), self.mask_value(label_of(name, member), it));
                Value::Object(members.iter().map(|(member, it)| shown(member, it)).collect())
            }
            _ => value.clone(),
        }
    }

    /// `--token x` and `--token=x`, in a list that may be a command's.
    fn argument(&self, name: &str, before: &str, value: &Value) -> Value {
        let asks = |it: &str| it.starts_with('-') && !it.contains('=') && name_looks_secret(it);
        match value.as_str().map(|it| (it, it.split_once('='))) {
            Some((text, _)) if asks(before) && !is_reference(text) && !text.starts_with('-') => STARS.into(),
            Some((_, Some((option, text)))) if asks(option) && !is_reference(text) => {
                format!("{option}={STARS}").into()
            }
            _ => self.mask_value(name, value),
        }
    }

    /// As written, and where variables were filled in, what it became.
    fn display_value(&self, name: &str, written: &Value, value: &Value) -> String {
        let before = self.mask_value(name, written);
        if written == value { before.to_string() } else { format!("{before} = {}", self.mask_value(name, value)) }
    }
}

/// A setting such as `apiKeyEnv` holds the name of a variable. What is no name is a key that somebody put there.
fn is_variable(name: &str, text: &str) -> bool {
    let is_part = |it: char| it == '_' || it.is_ascii_uppercase() || it.is_ascii_digit();
    name.ends_with("Env") && text.contains('_') && text.chars().all(is_part)
}

/// `${NAME}` and nothing else: that is no secret yet. `$NAME` may be a password that begins so.
fn is_reference(text: &str) -> bool {
    let inside = text.strip_prefix("${").and_then(|it| it.strip_suffix('}'));
    inside.is_some_and(|it| !it.is_empty() && it.chars().all(|it| it == '_' || it.is_ascii_alphanumeric()))
}
