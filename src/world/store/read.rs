//! Log reader: accepts torn lines after a crash and entries of a newer castor.

use std::{
    fs::File,
    io::{self, Read},
};

use crate::base::log::{Entry, Fact};

pub struct LogFacts {
    /// Empty unless the first one is `Created`.
    pub entries: Vec<Entry>,
    /// Bytes up to the end of the last whole line.
    pub whole_len: u64,
    /// Whether half a line follows.
    pub has_torn_line: bool,
}

/// Every line that can be read. A line that cannot costs only itself.
pub fn read_log(file: &mut File) -> io::Result<LogFacts> {
    super::rewind(file)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let whole = memchr::memrchr(b'\n', &bytes).map_or(0, |it| it + 1);
    let entries = parse_facts(bytes.get(..whole).unwrap_or_default());
    Ok(LogFacts { entries, whole_len: whole as u64, has_torn_line: whole < bytes.len() })
}

/// The facts in `lines`; none unless the first is `Created`.
pub fn parse_facts(lines: &[u8]) -> Vec<Entry> {
    let mut res: Vec<Entry> = Vec::new();
    let mut n_bad = 0;
    for line in lines.split(|it| *it == b'\n').map(without_nul).filter(|it| !it.is_empty()) {
        match serde_json::from_slice(line) {
            Ok(entry) => res.push(entry),
            Err(_) => n_bad += 1,
        }
    }
    if n_bad > 0 {
        tracing::warn!("{n_bad} lines of a session log could not be read and were passed over");
    }
    match res.first() {
        Some(Entry { fact: Fact::Created { .. }, .. }) => res,
        _ => Vec::new(),
    }
}

/// A power cut may leave zeros where a line was to be; the next line then follows them.
pub fn without_nul(line: &[u8]) -> &[u8] {
    let start = line.iter().position(|it| *it != 0).unwrap_or(line.len());
    line.get(start..).unwrap_or_default()
}
