//! Log reader: accepts torn lines after a crash and entries of a newer castor.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    ops::Range,
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
    Ok(LogFacts::of_lines(&bytes))
}

impl LogFacts {
    pub fn of_lines(bytes: &[u8]) -> Self {
        let whole = memchr::memrchr(b'\n', bytes).map_or(0, |it| it + 1);
        let entries = parse_facts(bytes.get(..whole).unwrap_or_default());
        Self { entries, whole_len: whole as u64, has_torn_line: whole < bytes.len() }
    }
}

/// The facts of whole lines in these bytes, and how long those lines are. A line that is longer than the part is read whole.
pub fn read_part(file: &mut File, part: &Range<u64>) -> io::Result<(Vec<Entry>, u64)> {
    file.seek(SeekFrom::Start(part.start))?;
    let mut bytes = Vec::new();
    let mut left = part.end.saturating_sub(part.start);
    loop {
        let n = (&mut *file).take(left).read_to_end(&mut bytes)?;
        let whole = memchr::memrchr(b'\n', &bytes).map_or(0, |it| it + 1);
        if whole > 0 || n == 0 {
            return Ok((parse_lines(bytes.get(..whole).unwrap_or_default()), whole as u64));
        }
        left = n as u64;
    }
}

/// The facts in `lines`; none unless the first is `Created`.
pub fn parse_facts(lines: &[u8]) -> Vec<Entry> {
    let res = parse_lines(lines);
    match res.first() {
        Some(Entry { fact: Fact::Created { .. }, .. }) => res,
        _ => Vec::new(),
    }
}

pub fn parse_lines(lines: &[u8]) -> Vec<Entry> {
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
    res
}

/// A power cut may leave zeros where a line was to be; the next line then follows them.
pub fn without_nul(line: &[u8]) -> &[u8] {
    let start = line.iter().position(|it| *it != 0).unwrap_or(line.len());
    line.get(start..).unwrap_or_default()
}
