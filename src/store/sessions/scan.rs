//! Log scan: the facts of a log one line at a time, and the lines that are a copy of another log's.

use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read};

use memchr::memmem;
use serde::Deserialize;

use super::{SessionStore, StoreError, chain::without_nul, io_error};
use castor_base::{
    ids::SessionId,
    log::{Entry, Fact},
    path::AbsPath,
};
use castor_hands::disk;

/// A longer line is passed over, in bytes: memory stays what it is, whatever a log holds.
const MAX_LINE: u64 = 16 << 20;
/// What the buffer of a line keeps for the next one, in bytes.
const KEPT: usize = 1 << 20;
/// Facts of a log that a fork does not take with it.
const NOT_COPIED: &[&str] = &["checkpoint", "restored", "version"];

/// What the first line of a log says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogHead {
    pub id: SessionId,
    /// Unix time in milliseconds. A fork has that of the log it is a copy of.
    pub created_ms: u64,
    pub cwd: AbsPath,
    pub is_fork: bool,
}

impl SessionStore {
    /// The ids of all sessions, without those of sub-agents. Looks into no log.
    ///
    /// # Errors
    /// A folder that is there and cannot be read.
    pub fn session_ids(&self) -> Result<Vec<SessionId>, StoreError> {
        if let Some(it) = &self.shared {
            return Ok(it.rows()?.into_iter().map(|it| it.id).collect());
        }
        let folder = self.folder();
        let files = match disk::read_dir(&folder) {
            Err(it) if it.kind() == ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(StoreError::Folder { folder, source }),
            Ok(it) => it,
        };
        let ids = files.iter().filter_map(|it| it.name.strip_suffix(".jsonl")).map(SessionId::from);
        Ok(ids.filter(SessionId::is_safe).collect())
    }

    /// `None`: nothing is in it yet.
    ///
    /// # Errors
    /// When it cannot be read, or does not begin as a log does.
    pub fn log_head(&self, id: &SessionId) -> Result<Option<LogHead>, StoreError> {
        let mut lines = self.log_lines(id, 1)?;
        if !lines.advance().map_err(|it| io_error(id, it))? {
            return Ok(None);
        }
        match serde_json::from_slice(lines.line()) {
            Ok(Entry { at: created_ms, fact: Fact::Created { cwd, parent, .. } }) => {
                Ok(Some(LogHead { id: id.clone(), created_ms, cwd, is_fork: parent.is_some() }))
            }
            _ => Err(io_error(id, io::Error::new(ErrorKind::InvalidData, "its first line is not that of a log"))),
        }
    }

    /// The facts of a log in order, with the numbers of their lines, from 1. Lines with none of the words are passed over,
    /// and so are lines that cannot be read.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn scan(&self, id: &SessionId, words: &[&[u8]], mut act: impl FnMut(u64, Entry)) -> Result<(), StoreError> {
        let mut lines = self.log_lines(id, u64::MAX)?;
        while lines.advance().map_err(|it| io_error(id, it))? {
            if words.iter().any(|it| memmem::find(lines.line(), it).is_some())
                && let Ok(entry) = serde_json::from_slice(lines.line())
            {
                act(lines.n, entry);
            }
        }
        Ok(())
    }

    /// How many lines at the beginning of a log are a copy of `origin`'s, as in a fork.
    ///
    /// # Errors
    /// When one of the two cannot be read.
    pub fn copied_lines(&self, id: &SessionId, origin: &SessionId) -> Result<u64, StoreError> {
        let mut copy = self.log_lines(id, u64::MAX)?;
        let mut origin_lines = self.log_lines(origin, u64::MAX)?;
        let mut n = 0;
        while copy.advance().map_err(|it| io_error(id, it))? {
            let Some(own) = LineKey::of(copy.line()) else { break };
            if origin_lines.next_key().map_err(|it| io_error(origin, it))? != Some(own) {
                break;
            }
            n = copy.n;
        }
        Ok(n)
    }

    /// When a log was written to, in Unix milliseconds; `None`: there is none.
    pub fn modified_ms(&self, id: &SessionId) -> Option<u64> {
        let path = self.log_path(id).ok()?;
        match &self.shared {
            Some(it) => it.row(id).ok().map(|it| it.changed_ms),
            None => disk::metadata(&path).ok().map(|it| it.modified_ms),
        }
    }

    /// The lines of a log; of a shared one those that begin before `end`.
    fn log_lines(&self, id: &SessionId, end: u64) -> Result<LogLines, StoreError> {
        let path = self.log_path(id)?;
        let reader: Box<dyn BufRead> = match &self.shared {
            Some(it) => Box::new(Cursor::new(it.read(id, 0..end)?)),
            None => {
                let file = disk::open_read(&path).map_err(|it| io_error(id, it))?;
                Box::new(BufReader::with_capacity(1 << 16, file))
            }
        };
        Ok(LogLines { reader, line: Vec::new(), n: 0 })
    }
}

/// By what two lines are the same fact: a fork has another session and another title.
#[derive(Debug, PartialEq, Deserialize)]
struct LineKey {
    at: u64,
    fact: String,
    event: Option<EventKey>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct EventKey {
    id: String,
}

impl LineKey {
    fn of(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }
}

/// The whole lines of a log, one in memory at a time.
struct LogLines {
    reader: Box<dyn BufRead>,
    line: Vec<u8>,
    n: u64,
}

impl LogLines {
    /// Whether there is another line. Half a line at the end is none.
    fn advance(&mut self) -> io::Result<bool> {
        loop {
            self.line.clear();
            self.line.shrink_to(KEPT);
            let n = (&mut self.reader).take(MAX_LINE).read_until(b'\n', &mut self.line)? as u64;
            if self.line.pop_if(|it| *it == b'\n').is_none() {
                if n < MAX_LINE {
                    return Ok(false);
                }
                self.reader.skip_until(b'\n')?;
                continue;
            }
            if !self.line().is_empty() {
                self.n += 1;
                return Ok(true);
            }
        }
    }

    fn line(&self) -> &[u8] {
        without_nul(&self.line)
    }

    /// Of the next line that a fork would have.
    fn next_key(&mut self) -> io::Result<Option<LineKey>> {
        while self.advance()? {
            if let Some(key) = LineKey::of(self.line())
                && !NOT_COPIED.contains(&key.fact.as_str())
            {
                return Ok(Some(key));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{LogHead, MAX_LINE};
    use crate::sessions::SessionStore;
    use castor_base::{ids::SessionId, path::AbsPath};
    use castor_hands::disk;

    fn created(id: &str, parent: Option<&str>) -> Value {
        json!({"at": 1, "fact": "created", "version": 2, "castor": "0", "session": id, "cwd": "/w", "roots": ["/w"],
            "mode": "default", "model": "m", "parent": parent})
    }

    fn event(at: u64, id: &str) -> Value {
        json!({"at": at, "fact": "event", "event": {"id": id, "streamId": "s", "timestamp": at, "type": "agent_start"}})
    }

    fn store(logs: &[(&str, &str)]) -> (tempfile::TempDir, SessionStore) {
        let dir = tempfile::tempdir().unwrap();
        let home = AbsPath::new(dir.path()).unwrap();
        for (id, text) in logs {
            disk::write_atomic(&home.join(format!("sessions/{id}.jsonl")), text.as_bytes()).unwrap();
        }
        (dir, SessionStore::new(home))
    }

    fn lines(values: &[Value]) -> String {
        values.iter().map(|it| format!("{it}\n")).collect()
    }

    #[test]
    fn lines_come_one_by_one() {
        let long = format!("{{\"at\": 1, \"x\": \"{}\"}}\n", "y".repeat(MAX_LINE as usize));
        let text = [lines(&[created("a", None), event(2, "s-0")]), "\0\0\n\nno JSON\n".to_owned(), long];
        let text = text.concat() + &lines(&[event(3, "s-1")]) + "{\"at\": 4, \"fact\": \"clea";
        let (_dir, store) = store(&[("a", &text), ("empty", ""), ("odd", "no log\n")]);
        let mut found = Vec::new();
        store.scan(&"a".into(), &[b"agent_start"], |n, it| found.push((n, it.at))).unwrap();
        assert_eq!(found, [(2, 2), (4, 3)], "each line that has a word and can be read");
        let head = store.log_head(&"a".into()).unwrap().unwrap();
        let cwd = AbsPath::new("/w").unwrap();
        assert_eq!(head, LogHead { id: "a".into(), created_ms: 1, cwd, is_fork: false });
        assert_eq!(store.log_head(&"empty".into()).unwrap(), None);
        let why = store.log_head(&"odd".into()).unwrap_err().to_string();
        assert_eq!(why, "the log of session odd: its first line is not that of a log");
        let mut ids = store.session_ids().unwrap();
        ids.sort();
        assert_eq!(ids, ["a", "empty", "odd"].map(SessionId::from));
    }

    /// A fork has no checkpoints of its parent, and goes another way behind the copy.
    #[test]
    fn a_copy_ends_where_the_logs_differ() {
        let checkpoint = json!({"at": 2, "fact": "checkpoint", "id": "k"});
        let parent = [created("a", None), checkpoint, event(3, "s-0"), event(4, "s-1"), event(5, "s-2")];
        let fork = [created("b", Some("a")), event(3, "s-0"), event(4, "s-1"), event(9, "s-9"), event(5, "s-2")];
        let (_dir, store) = store(&[("a", &lines(&parent)), ("b", &lines(&fork)), ("c", &lines(&[event(1, "s-0")]))]);
        let copied = |id: &str, origin: &str| store.copied_lines(&id.into(), &origin.into()).unwrap();
        assert_eq!((copied("b", "a"), copied("c", "a"), copied("a", "a")), (3, 0, 1), "its own checkpoint is no copy");
        assert!(store.copied_lines(&"b".into(), &"gone".into()).is_err());
    }
}
