//! Gemini CLI transcripts: parser for JSONL records and the older JSON form.

use serde_json::{Map, Value};

use super::ImportError;

/// What the file says in the end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transcript {
    /// sessionId, projectHash, startTime, directories, summary, …
    pub header: Map<String, Value>,
    pub messages: Vec<Value>,
    /// Lines that are no JSON.
    pub n_bad: usize,
}

/// One object with all messages.
pub fn parse_legacy(value: Value) -> Result<Transcript, ImportError> {
    let Value::Object(mut about) = value else { return Err(ImportError::Unknown(String::new())) };
    let Some(Value::Array(messages)) = about.remove("messages") else {
        return Err(ImportError::Unknown(": `messages` is no list".to_owned()));
    };
    let messages = messages.into_iter().filter(|it| id_of(it).is_some()).collect();
    check(Transcript { header: about, messages, n_bad: 0 })
}

/// One record a line. A record of the same id replaces; `$set` changes what is said of the session; `$rewindTo` takes
/// messages back.
pub fn parse_lines(bytes: &[u8]) -> Result<Transcript, ImportError> {
    let mut res = Transcript::default();
    let mut n_records = 0;
    for line in bytes.split(|it| *it == b'\n').map(<[u8]>::trim_ascii).filter(|it| !it.is_empty()) {
        match serde_json::from_slice(line) {
            Ok(Value::Object(record)) => {
                n_records += 1;
                res.apply(record);
            }
            _ => res.n_bad += 1,
        }
    }
    if n_records == 0 {
        return Err(ImportError::Unknown(": no line of it is a JSON object".to_owned()));
    }
    check(res)
}

fn check(it: Transcript) -> Result<Transcript, ImportError> {
    let text = |name: &str| it.header.get(name).and_then(Value::as_str).is_some_and(|it| !it.is_empty());
    for name in ["sessionId", "projectHash"] {
        if !text(name) {
            return Err(ImportError::Unknown(format!(": no record says its `{name}`")));
        }
    }
    if it.header.get("kind").is_some_and(|it| it == "subagent") {
        return Err(ImportError::SubAgent);
    }
    match it.messages.is_empty() {
        true => Err(ImportError::Empty),
        false => Ok(it),
    }
}

impl Transcript {
    fn apply(&mut self, mut record: Map<String, Value>) {
        if let Some(id) = record.get("$rewindTo") {
            // An id that is not there takes back everything, as Gemini CLI reads it.
            let at = self.messages.iter().position(|it| it.get("id") == Some(id)).unwrap_or_default();
            return self.messages.truncate(at);
        }
        if let Some(Value::Object(mut changes)) = record.remove("$set") {
            if let Some(Value::Array(all)) = changes.remove("messages") {
                self.messages = all.into_iter().filter(|it| id_of(it).is_some()).collect();
            }
            return self.header.append(&mut changes);
        }
        let message = Value::Object(record);
        match id_of(&message) {
            Some(id) => match self.messages.iter().rposition(|it| id_of(it) == Some(id)) {
                Some(at) => self.messages.splice(at..=at, [message]).for_each(drop),
                None => self.messages.push(message),
            },
            None => {
                if let Value::Object(mut about) = message {
                    self.header.append(&mut about);
                }
            }
        }
    }
}

/// The id of what is a message: other records have none.
pub fn id_of(message: &Value) -> Option<&str> {
    message.get("type").and_then(Value::as_str)?;
    message.get("id").and_then(Value::as_str)
}
