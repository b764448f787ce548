//! Log reader: one line at a time; accepts torn lines after a crash and entries of a newer castor.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom},
    ops::Range,
};

use super::{
    chain::{LineSum, read_seal, without_nul},
    chain_check::{ChainCheck, CheckedLine, LogDamage},
};
use castor_base::{
    endings::OpenStreams,
    log::{Entry, Fact},
};

/// What is read at once, in bytes.
const BUFFER: usize = 1 << 18;

/// How a log ends, and what of it is damaged.
#[derive(Debug, Default)]
pub struct LogEnd {
    /// The first fact is `Created`: of another log none counts.
    pub is_log: bool,
    /// Bytes up to the end of the last whole line.
    pub whole_len: u64,
    /// Bytes of half a line that follow.
    pub torn_len: u64,
    /// What the next line names.
    pub sum: LineSum,
    pub damage: LogDamage,
}

impl LogEnd {
    /// The log was so long once. Bytes that it has too little may be those of damage that is known.
    pub fn note_len(&mut self, len: u64) {
        if self.torn_len > 0 {
            self.damage.add_end(format!("its last {} bytes are no whole line", self.torn_len));
        } else if self.whole_len < len && self.damage.n == 0 {
            self.damage.add_end(format!("its last {} bytes are missing", len - self.whole_len));
        }
    }
}

/// What is known of a log when its facts are read once.
#[derive(Default)]
pub struct LogFold {
    pub streams: OpenStreams,
    pub last_at: u64,
}

impl LogFold {
    pub fn take(&mut self, entry: &Entry) {
        self.streams.take(entry);
        self.last_at = self.last_at.max(entry.at);
    }
}

/// Every fact that counts. A line that does not costs only itself.
pub fn fold_file(file: &mut File, take: impl FnMut(Entry)) -> io::Result<LogEnd> {
    super::rewind(file)?;
    fold_lines(BufReader::with_capacity(BUFFER, file), take)
}

/// The same of any lines.
pub fn fold_lines(mut source: impl BufRead, mut take: impl FnMut(Entry)) -> io::Result<LogEnd> {
    let (mut res, mut check, mut line) = (LogEnd::default(), ChainCheck::default(), Vec::new());
    let mut is_first = true;
    loop {
        line.clear();
        let n = source.read_until(b'\n', &mut line)? as u64;
        if line.pop_if(|it| *it == b'\n').is_none() {
            (res.torn_len, (res.sum, res.damage)) = (n, check.end());
            break;
        }
        res.whole_len += n;
        let CheckedLine::Fact(entry) = check.check(&line) else { continue };
        if std::mem::take(&mut is_first) {
            res.is_log = matches!(entry.fact, Fact::Created { .. });
        }
        if res.is_log {
            take(*entry);
        }
    }
    if res.damage.n > 0 {
        tracing::warn!("a session log is damaged: {}", res.damage);
    }
    Ok(res)
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

/// The facts of some lines of a log, each one checked by itself.
pub fn parse_lines(lines: &[u8]) -> Vec<Entry> {
    let mut res: Vec<Entry> = Vec::new();
    let mut n_bad = 0;
    for line in lines.split(|it| *it == b'\n').map(without_nul).filter(|it| !it.is_empty()) {
        match serde_json::from_slice(line) {
            Ok(entry) if read_seal(line).is_none_or(|it| it.is_sound) => res.push(entry),
            _ => n_bad += 1,
        }
    }
    if n_bad > 0 {
        tracing::warn!("{n_bad} lines of a session log could not be read and were passed over");
    }
    res
}
