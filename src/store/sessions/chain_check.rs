//! Checks of a log: which of its lines count, and what is damaged.

use std::{collections::HashSet, fmt};

use serde_json::Value;

use super::chain::{LineSum, Seal, read_seal, without_nul};
use castor_base::{
    log::{Entry, Fact},
    path::AbsPath,
};

/// Damaged places that are remembered, and that are told in one sentence.
const MAX_PLACES: usize = 1000;
const MAX_TOLD: usize = 3;

/// A fold over the lines of a log. From the first line with a checksum on, each has one.
#[derive(Debug)]
pub struct ChainCheck {
    /// `None`: not known, after a line that was changed.
    last: Option<LineSum>,
    /// The last one that is known.
    newest: LineSum,
    is_sealed: bool,
    n_lines: usize,
    sums: HashSet<LineSum>,
    damage: LogDamage,
}

/// What of a log is not as castor wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogDamage {
    /// In how many places.
    pub n: usize,
    /// The first of them.
    pub places: Vec<DamagedLine>,
    /// Lines have checksums. Older logs have none, and may have lines of editors and of crashes.
    pub is_sealed: bool,
    /// A file with the bytes that the next write takes away.
    pub kept: Option<AbsPath>,
}

/// A line that does not count, or before which something is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedLine {
    /// From 1; 0: the end.
    pub line: usize,
    /// Bytes that do not count.
    pub len: usize,
    pub why: String,
}

/// What a line is.
#[derive(Debug, PartialEq)]
pub enum CheckedLine {
    /// It counts.
    Fact(Box<Entry>),
    /// Only a newer castor understands it.
    Unknown,
    /// It is empty, or damaged.
    Nothing,
}

impl CheckedLine {
    pub fn is_first(&self) -> bool {
        matches!(self, Self::Fact(it) if matches!(it.fact, Fact::Created { .. }))
    }
}

impl LogDamage {
    /// Behind its last whole line something is wrong.
    pub fn add_end(&mut self, why: String) {
        self.add(0, 0, why);
    }

    fn add(&mut self, line: usize, len: usize, why: impl Into<String>) {
        self.n += 1;
        if self.places.len() < MAX_PLACES {
            self.places.push(DamagedLine { line, len, why: why.into() });
        }
    }
}

impl fmt::Display for LogDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, it) in self.places.iter().take(MAX_TOLD).enumerate() {
            let between = if at == 0 { "" } else { "; " };
            match it.line {
                0 => write!(f, "{between}{}", it.why)?,
                line => write!(f, "{between}line {line}: {}", it.why)?,
            }
        }
        match self.n.saturating_sub(MAX_TOLD) {
            0 => Ok(()),
            more => write!(f, "; and {more} places more"),
        }
    }
}

impl Default for ChainCheck {
    fn default() -> Self {
        let newest = LineSum::default();
        let (sums, damage) = (HashSet::new(), LogDamage::default());
        Self { last: Some(newest), newest, is_sealed: false, n_lines: 0, sums, damage }
    }
}

impl ChainCheck {
    /// The next line, without its end.
    pub fn check(&mut self, whole: &[u8]) -> CheckedLine {
        self.n_lines += 1;
        let (n, line) = (self.n_lines, without_nul(whole));
        if line.is_empty() {
            match whole.is_empty() {
                true if !self.is_sealed => (),
                true => self.damage.add(n, 0, "an empty line"),
                false => self.damage.add(n, whole.len(), "zero bytes"),
            }
            return CheckedLine::Nothing;
        }
        if line.len() < whole.len() {
            self.damage.add(n, whole.len() - line.len(), "zero bytes before the fact, which stays");
        }
        let seal = read_seal(line);
        let read = self.check_seal(line, seal).map_err(str::to_owned).and_then(|()| parse(line));
        let why = match read {
            Ok(it) => return it,
            Err(it) => it,
        };
        // Blank lines are nobody's.
        if line.trim_ascii().is_empty() && !self.is_sealed {
            return CheckedLine::Nothing;
        }
        // Without the first line there is no session at all.
        let first = if n == 1 { parse(line).ok().filter(CheckedLine::is_first) } else { None };
        self.damage.add(n, if first.is_some() { 0 } else { line.len() }, why);
        first.unwrap_or(CheckedLine::Nothing)
    }

    /// # Errors
    /// Why the line does not count.
    fn check_seal(&mut self, line: &[u8], seal: Option<Seal>) -> Result<(), &'static str> {
        let Some(seal) = seal else {
            if self.is_sealed {
                self.last = None;
                return Err("it has no checksum");
            }
            self.newest = LineSum::of_unsealed(self.newest, line);
            self.last = Some(self.newest);
            return Ok(());
        };
        self.is_sealed = true;
        if !seal.is_sound {
            self.last = None;
            return Err("its checksum is that of another line");
        }
        if self.sums.contains(&seal.own) {
            return Err("it stands there a second time");
        }
        if self.last.is_some_and(|it| it != seal.before) {
            self.damage.add(self.n_lines, 0, "something is missing before it, or is in another order");
        }
        (self.last, self.newest) = (Some(seal.own), seal.own);
        self.sums.insert(seal.own);
        Ok(())
    }

    /// What the next line names, and what was found.
    pub fn end(self) -> (LineSum, LogDamage) {
        (self.newest, LogDamage { is_sealed: self.is_sealed, ..self.damage })
    }
}

/// # Errors
/// Why it is no fact.
fn parse(line: &[u8]) -> Result<CheckedLine, String> {
    let why = match serde_json::from_slice(line) {
        Ok(entry) => return Ok(CheckedLine::Fact(Box::new(entry))),
        Err(it) => it,
    };
    let value: Value = serde_json::from_slice(line).map_err(|it| it.to_string())?;
    let looks_so = value.get("at").is_some_and(Value::is_u64) && value.get("fact").is_some_and(Value::is_string);
    if looks_so { Ok(CheckedLine::Unknown) } else { Err(why.to_string()) }
}
