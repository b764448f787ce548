//! LenientKeys of front matter as Claude Code takes them: texts by name, also where YAML would have them written otherwise.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::workspace::front_matter::{self, FileFault};

/// Values by key.
pub type LenientKeys = BTreeMap<String, String>;

/// # Errors
/// What is wrong with it as YAML, where it cannot be read line by line either.
pub fn read(yaml: &str) -> Result<LenientKeys, FileFault> {
    match front_matter::read::<Map<String, Value>>(yaml) {
        Ok(map) => Ok(map.into_iter().map(|(key, value)| (key, words(&value))).collect()),
        Err(fault) => lines(yaml).ok_or(fault),
    }
}

fn words(value: &Value) -> String {
    match value {
        Value::String(it) => it.clone(),
        Value::Array(all) => format!("[{}]", all.iter().map(words).collect::<Vec<_>>().join(", ")),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Each line is a key with the rest of the line as its value; indented ones go on with the one before.
fn lines(yaml: &str) -> Option<LenientKeys> {
    let mut res = LenientKeys::new();
    let mut last: Option<String> = None;
    for line in yaml.lines().skip(1).filter(|it| !it.trim().is_empty() && !it.starts_with('#')) {
        if line.starts_with([' ', '\t'])
            && let Some(value) = last.as_ref().and_then(|it| res.get_mut(it))
        {
            *value = format!("{value} {}", line.trim()).trim().to_owned();
            continue;
        }
        let (key, value) = line.split_once(':')?;
        let (key, value) = (key.trim(), value.trim());
        if key.is_empty() || !key.chars().all(|it| it.is_ascii_alphanumeric() || "_-".contains(it)) {
            return None;
        }
        let value = if matches!(value, "|" | ">" | "|-" | ">-") { "" } else { unquoted(value) };
        res.insert(key.to_owned(), value.to_owned());
        last = Some(key.to_owned());
    }
    Some(res)
}

fn unquoted(value: &str) -> &str {
    ['"', '\''].iter().find_map(|it| value.strip_prefix(*it)?.strip_suffix(*it)).unwrap_or(value)
}
