//! Details of a session for the session list: model, cost, number of turns and prompts, without replaying its log.

use std::io::{self, Read, Seek, SeekFrom};

use memchr::memmem;

use crate::sessions::{StoreError, postgres::SharedStore};
use castor_base::{
    content::joined_text,
    event::EventKind,
    ids::SessionId,
    log::{Entry, Fact},
    model::Purpose,
    money::Money,
    path::AbsPath,
    rewind,
};
use castor_hands::disk;

/// Of a log that is larger, only the head and the end are read: a list must not wait for the largest session.
const MAX_WHOLE: u64 = 4 << 20;
/// Bytes of the head and of the end of a larger log.
const EDGE: u64 = 64 * 1024;
/// Lines that hold none of these words need no parsing.
const WORDS: [&[u8]; 5] = [b"\"created\"", b"\"usage\"", b"\"model\"", b"\"user\"", b"\"rewound\""];

/// How much of a log is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogExtent {
    /// At most some megabytes.
    Bounded,
    /// All of it, for a search.
    Whole,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionDetails {
    /// The model that answered last.
    pub model: Option<String>,
    /// Of the whole session, as far as prices were known.
    pub cost: Option<Money>,
    /// What the user asked, and no rewind took away.
    pub prompts: Vec<String>,
    /// Part of the log was not read: there may be more prompts.
    pub is_partial: bool,
}

pub fn read_details(path: &AbsPath, extent: LogExtent) -> io::Result<SessionDetails> {
    let mut file = disk::open_read(path)?;
    let len = file.metadata()?.len();
    let is_partial = extent == LogExtent::Bounded && len > MAX_WHOLE;
    let mut bytes = Vec::new();
    if is_partial {
        (&mut file).take(EDGE).read_to_end(&mut bytes)?;
        // The torn line at the cut is no JSON, and is passed over.
        bytes.push(b'\n');
        file.seek(SeekFrom::Start(len - EDGE))?;
    }
    file.read_to_end(&mut bytes)?;
    Ok(SessionDetails { is_partial, ..read_lines(&bytes) })
}

/// As [`read_details`], from a shared store.
pub fn read_shared(store: &SharedStore, id: &SessionId, extent: LogExtent) -> Result<SessionDetails, StoreError> {
    let len = store.row(id)?.len;
    let is_partial = extent == LogExtent::Bounded && len > MAX_WHOLE;
    let bytes = match is_partial {
        true => [store.read(id, 0..EDGE)?, store.read(id, len - EDGE..len)?].concat(),
        false => store.read(id, 0..len)?,
    };
    Ok(SessionDetails { is_partial, ..read_lines(&bytes) })
}

fn read_lines(bytes: &[u8]) -> SessionDetails {
    let is_wanted = |line: &&[u8]| WORDS.iter().any(|it| memmem::find(line, it).is_some());
    let lines = bytes.split(|it| *it == b'\n').filter(is_wanted);
    let entries: Vec<Entry> = lines.filter_map(|it| serde_json::from_slice(it).ok()).collect();
    let mut res = SessionDetails::default();
    for entry in &entries {
        match &entry.fact {
            Fact::Created { model, .. } | Fact::Model { model, .. } => res.model = Some(model.clone()),
            Fact::Event { event } => {
                if let EventKind::Usage { model, purpose, session_cost, .. } = &event.kind {
                    res.cost = session_cost.or(res.cost);
                    res.model = Some(model.clone()).filter(|_| *purpose == Purpose::Agent).or(res.model);
                }
            }
            _ => (),
        }
    }
    for entry in rewind::remaining_entries(&entries).filter(|it| rewind::user_message(it).is_some()) {
        if let Fact::Event { event } = &entry.fact
            && let EventKind::Message { content, .. } = &event.kind
        {
            res.prompts.push(joined_text(content));
        }
    }
    res
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{LogExtent, MAX_WHOLE, read_details};
    use castor_base::{money::Money, path::AbsPath};
    use castor_hands::disk;

    fn event(mut kind: Value) -> Value {
        for (key, value) in [("id", json!("s-0")), ("streamId", json!("s")), ("timestamp", json!(1))] {
            kind[key] = value;
        }
        json!({"at": 1, "fact": "event", "event": kind})
    }

    fn prompt(id: &str, text: &str) -> Value {
        event(json!({"type": "message", "role": "user", "messageId": id, "content": [{"type": "text", "text": text}]}))
    }

    fn usage(model: &str, cost: f64, purpose: &str) -> Value {
        event(json!({"type": "usage", "model": model, "input": 1, "output": 1, "cached": 0, "thought": 0, "total": 2,
            "size": 9, "purpose": purpose, "sessionCost": cost}))
    }

    #[test]
    fn the_edges_of_a_large_log_tell_model_and_cost() {
        let dir = tempfile::tempdir().unwrap();
        let path = AbsPath::new(dir.path().join("a.jsonl")).unwrap();
        let filler = event(json!({"type": "error", "status": "INTERNAL", "message": "x".repeat(200), "fatal": false}));
        let filler = format!("{filler}\n").repeat((MAX_WHOLE / 200) as usize);
        let lines = |values: &[Value]| values.iter().map(|it| format!("{it}\n")).collect::<String>();
        let created = json!({"at": 1, "fact": "created", "version": 1, "castor": "0", "session": "a", "cwd": "/w",
            "roots": ["/w"], "mode": "default", "model": "first"});
        let head = lines(&[created, prompt("m1", "one"), usage("second", 0.5, "agent")]);
        let end = lines(&[prompt("m3", "three"), usage("third", 1.5, "agent"), usage("router", 1.75, "router")]);
        let middle = lines(&[prompt("m2", "two")]);
        disk::write_atomic(&path, format!("{head}{filler}{middle}{filler}{end}").as_bytes()).unwrap();
        let it = read_details(&path, LogExtent::Bounded).unwrap();
        assert_eq!((it.model.as_deref(), it.cost), (Some("third"), Some(Money::dollars(1.75))));
        assert_eq!((it.prompts, it.is_partial), (vec!["one".to_owned(), "three".to_owned()], true));
        let it = read_details(&path, LogExtent::Whole).unwrap();
        assert_eq!((it.prompts.join(" ").as_str(), it.is_partial), ("one two three", false));

        let rewound = lines(&[json!({"at": 2, "fact": "rewound", "to": "m2"})]);
        disk::write_atomic(&path, format!("{head}{middle}{rewound}torn").as_bytes()).unwrap();
        let it = read_details(&path, LogExtent::Bounded).unwrap();
        assert_eq!((it.prompts, it.model.as_deref()), (vec!["one".to_owned()], Some("second")));
    }
}
