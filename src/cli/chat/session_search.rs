//! Search in what was said in sessions: their logs are read, the newest first, as far as there is room.

use castor_base::{
    content::joined_text,
    event::{AgentEvent, EventKind, Speaker},
    ids::SessionId,
    log::{Entry, Fact},
    text::first_line,
};
use castor_hands::disk;
use castor_store::sessions::SessionStore;

/// Logs that are looked at, bytes of each of them from its end, and bytes of all.
const MAX_SESSIONS: usize = 300;
const MAX_LOG: u64 = 4 << 20;
const MAX_BYTES: u64 = 64 << 20;
/// Characters in front of the words in the line that is shown, and of the line.
const BEFORE: usize = 30;
const MAX_LINE: usize = 160;

/// Ids of sessions in which all words of the query were said, each with a line that has the first of them.
///
/// `is_wanted`: somebody still waits for it. Blocks.
pub fn find_in_texts(
    store: &SessionStore,
    ids: &[String],
    query: &str,
    is_wanted: impl Fn() -> bool,
) -> Vec<(String, String)> {
    let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    let (mut res, mut read) = (Vec::new(), 0);
    for id in ids.iter().take(MAX_SESSIONS) {
        if read >= MAX_BYTES || !is_wanted() {
            break;
        }
        let session = SessionId::from(id.as_str());
        let Some(size) = store.log_file(&session).and_then(|it| disk::metadata(&it).ok()).map(|it| it.len) else {
            continue;
        };
        let start = size.saturating_sub(MAX_LOG);
        read += size - start;
        // The first line is in part, and passed over.
        let Ok((entries, _)) = store.read_part(&session, start..size) else { continue };
        res.extend(find_line(&entries, &words).map(|it| (id.clone(), it)));
    }
    res
}

/// `None`: a word is not in what was said.
fn find_line(entries: &[Entry], words: &[String]) -> Option<String> {
    let first = words.first()?;
    let mut missing: Vec<&String> = words.iter().collect();
    let mut res = None;
    for text in entries.iter().filter_map(message_text) {
        let lower = text.to_lowercase();
        missing.retain(|it| !lower.contains(it.as_str()));
        if res.is_none() {
            res = text.lines().find(|it| it.to_lowercase().contains(first.as_str())).map(|it| around(it, first));
        }
    }
    res.filter(|_| missing.is_empty())
}

fn message_text(entry: &Entry) -> Option<String> {
    match &entry.fact {
        Fact::Event { event: AgentEvent { kind: EventKind::Message { role, content, .. }, .. } }
            if *role != Speaker::Developer =>
        {
            Some(joined_text(content))
        }
        _ => None,
    }
}

/// The line from shortly before the word on.
fn around(line: &str, word: &str) -> String {
    let lower = line.to_lowercase();
    let before = lower.find(word).and_then(|at| lower.get(..at)).map_or(0, |it| it.chars().count());
    let shown: String = line.chars().skip(before.saturating_sub(BEFORE)).collect();
    let mark = if before > BEFORE { "…" } else { "" };
    format!("{mark}{}", first_line(&shown, MAX_LINE))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::find_in_texts;
    use castor_base::{ids::SessionId, path::AbsPath};
    use castor_store::sessions::SessionStore;

    fn message(role: &str, text: &str) -> Value {
        let content = json!([{"type": "text", "text": text}]);
        json!({"at": 2, "fact": "event", "event": {"id": "s-0", "streamId": "s", "timestamp": 2, "type": "message",
            "role": role, "messageId": "m1", "content": content}})
    }

    #[test]
    fn sessions_are_found_by_what_was_said_in_them() {
        let dir = tempfile::tempdir().unwrap();
        let store = SessionStore::new(AbsPath::new(dir.path().join("home")).unwrap());
        let created = json!({"at": 1, "fact": "created", "version": 1, "castor": "0", "session": "01a20986-0000-00001",
            "cwd": "/w", "roots": ["/w"], "mode": "default", "model": "demo"});
        let log = [
            created,
            message("user", "Why is the Tokenizer slow?"),
            message("agent", &format!("First.\n{} it copies each word.", "x".repeat(50))),
            message("developer", "castor's own note"),
        ];
        let log: Vec<_> = log.into_iter().map(|it| serde_json::from_value(it).unwrap()).collect();
        store.create_with(&SessionId::from("01a20986-0000-00001"), &log).unwrap();
        let ids = ["01a20986-0000-00001".to_owned(), "01a20986-0000-00002".to_owned(), "../x".to_owned()];
        let find = |query: &str| find_in_texts(&store, &ids, query, || true);
        let found = |line: &str| vec![(ids[0].clone(), line.to_owned())];
        assert_eq!(find("tokenizer"), found("Why is the Tokenizer slow?"));
        assert_eq!(find("COPIES tokenizer"), found(&format!("…{} it copies each word.", "x".repeat(26))));
        assert_eq!(find("tokenizer parser"), []);
        assert_eq!(find("own note"), []);
        assert_eq!(find_in_texts(&store, &ids, "tokenizer", || false), []);
    }
}
