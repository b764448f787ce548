//! Names that stay the same from run to run: ids by order of appearance, folders, times.

use std::{path::Path, sync::LazyLock};

use regex::Regex;
use serde_json::{Map, Value, json};

/// Shorter ids are replaced only where they are a whole string.
const MIN_INNER_LEN: usize = 12;

static TIME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$").unwrap());

/// Keys whose values are ids, with the letter of their short names.
const IDS: &[(&str, char)] = &[
    ("sessionId", 's'),
    ("toolCallId", 'c'),
    ("messageId", 'm'),
    ("streamId", 't'),
    ("terminalId", 'x'),
    ("elicitationId", 'e'),
    ("compactionId", 'k'),
];

pub struct Aliases {
    /// (as the agent says it, as the file says it).
    ids: Vec<(String, String)>,
    places: Vec<(String, &'static str)>,
}

impl Aliases {
    pub fn new(workspace: &Path, home: &Path, test_binary: &Path) -> Self {
        let place = |path: &Path, name| (path.display().to_string(), name);
        let castor = (env!("CARGO_BIN_EXE_castor").to_owned(), "$BIN");
        let version = (env!("CARGO_PKG_VERSION").to_owned(), "$VERSION");
        // The longer path first: the one of the test binary may lie in the home folder.
        let places = vec![place(test_binary, "$IT"), place(workspace, "$WS"), place(home, "$HOME"), version, castor];
        Self { ids: Vec::new(), places }
    }

    /// `$WS`, `$HOME`, `$SID`, `$SID2`, `$MID1`, `$CID1`, … as the agent knows them.
    pub fn expand(&self, text: &str) -> String {
        let mut res = text.to_owned();
        for (path, name) in self.places.iter().filter(|(_, name)| *name != "$VERSION") {
            res = res.replace(name, path);
        }
        for (raw, short) in self.ids.iter().rev() {
            for (letter, name) in [('s', "$SID"), ('m', "$MID"), ('c', "$CID")] {
                if let Some(number) = short.strip_prefix(letter) {
                    res = res.replace(&format!("{name}{number}"), raw);
                }
            }
        }
        match self.raw("s1") {
            Some(raw) => res.replace("$SID", raw),
            None => res,
        }
    }

    /// The agent's own name for a short one.
    pub fn raw(&self, short: &str) -> Option<&str> {
        self.ids.iter().find(|(_, it)| it == short).map(|(raw, _)| raw.as_str())
    }

    /// Gives short names to the ids in `value`, and says it with them.
    pub fn normalize(&mut self, value: &Value) -> Value {
        self.learn(value);
        self.renamed(value)
    }

    pub fn name(&mut self, letter: char, raw: &str) {
        if self.ids.iter().any(|(it, _)| it == raw) {
            return;
        }
        let number = self.ids.iter().filter(|(_, it)| it.starts_with(letter)).count() + 1;
        self.ids.push((raw.to_owned(), format!("{letter}{number}")));
    }

    fn learn(&mut self, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|it| self.learn(it)),
            Value::Object(fields) => fields.iter().for_each(|(key, it)| self.learn_field(key, it)),
            _ => (),
        }
    }

    fn learn_field(&mut self, key: &str, value: &Value) {
        match (IDS.iter().find(|(name, _)| *name == key), value.as_str()) {
            (Some((_, letter)), Some(raw)) => self.name(*letter, raw),
            _ => self.learn(value),
        }
    }

    fn renamed(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => json!(self.renamed_text(text)),
            Value::Array(items) => items.iter().map(|it| self.renamed(it)).collect(),
            Value::Object(fields) => {
                let renamed = fields.iter().map(|(key, it)| (self.renamed_text(key), self.renamed(it)));
                Value::Object(renamed.collect::<Map<String, Value>>())
            }
            _ => value.clone(),
        }
    }

    fn renamed_text(&self, text: &str) -> String {
        if TIME.is_match(text) {
            return "$TIME".to_owned();
        }
        if let Some((_, short)) = self.ids.iter().find(|(raw, _)| raw == text) {
            return short.clone();
        }
        let mut res = text.to_owned();
        for (raw, short) in self.ids.iter().filter(|(raw, _)| raw.len() >= MIN_INNER_LEN) {
            res = res.replace(raw, short);
        }
        for (raw, name) in &self.places {
            let whole = *name == "$VERSION";
            res = if whole && res != *raw { res } else { res.replace(raw, name) };
        }
        res
    }
}

#[test]
fn ids_are_named_in_order() {
    let mut aliases = Aliases::new(Path::new("/tmp/w"), Path::new("/tmp/h"), Path::new("/tmp/h/it"));
    let value = json!({"sessionId": "0190-aaaa-bbbb", "at": "/tmp/w/x", "calls": [{"toolCallId": "q1"}, {"toolCallId": "q2"}],
        "text": "see 0190-aaaa-bbbb and q2", "runs": "/tmp/h/it /tmp/h", "when": "2026-01-02T03:04:05.678Z"});
    let expect = json!({"sessionId": "s1", "at": "$WS/x", "calls": [{"toolCallId": "c1"}, {"toolCallId": "c2"}],
        "text": "see s1 and q2", "runs": "$IT $HOME", "when": "$TIME"});
    assert_eq!(aliases.normalize(&value), expect);
    assert_eq!(aliases.expand("$SID $WS/a $SID1"), "0190-aaaa-bbbb /tmp/w/a 0190-aaaa-bbbb");
}
