//! Hunks of a patch on the text of a file: where each belongs, and the text with them.

use super::indents::IndentMap;
use castor_base::patch::{Hunk, HunkLine, LineKind};

/// How many places of an ambiguous hunk are named.
const MAX_PLACES: usize = 10;
/// Most comparisons of lines in the search for the place that was probably meant.
const MAX_NEAR: usize = 400_000;

/// The text with all hunks, and what is to be said of how they fitted.
#[derive(Debug, PartialEq, Eq)]
pub struct PatchedText {
    pub text: String,
    pub notes: Vec<String>,
}

/// Why a hunk does not fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HunkError {
    #[error("the line '{anchor}' behind @@ is not in the file{after}")]
    NoAnchor { anchor: String, after: String },
    #[error("its lines are not in the file{after}")]
    NotFound { after: String, near: Option<String> },
    #[error("its lines stand at line {line}, before those of the hunk above it")]
    OutOfOrder { line: usize },
    #[error("its lines are not the last ones of the file")]
    NotAtEnd,
    #[error("with other white space its lines stand at several places: lines {places}")]
    Ambiguous { places: String },
    #[error("its indentation and that of the file at line {line} contradict each other")]
    Indentation { line: usize, near: String },
}

impl HunkError {
    /// What to do next, for the model.
    pub fn advice(&self) -> String {
        match self {
            Self::NoAnchor { .. } => "Take a whole line of the file for @@, or leave it out.".to_owned(),
            Self::NotFound { near: Some(near), .. } => {
                format!(
                    "The file may have changed. The nearest lines are:\n{near}\nCopy ' ' and '-' lines from the file."
                )
            }
            Self::NotFound { .. } => "Read the file, and copy ' ' and '-' lines from it.".to_owned(),
            Self::OutOfOrder { .. } => "Put the hunks in the order of the file.".to_owned(),
            Self::NotAtEnd => "Leave '*** End of File' out, or give the last lines.".to_owned(),
            Self::Ambiguous { .. } => {
                "Copy more lines of the file, with their indentation, or name the place by @@.".to_owned()
            }
            Self::Indentation { near, .. } => format!("The file has:\n{near}\nCopy the lines as they are there."),
        }
    }
}

/// The text with all hunks in order; with an error comes the hunk's line in the patch.
///
/// # Errors
/// A hunk that fits nowhere, or not surely.
pub fn apply(text: &str, is_crlf: bool, hunks: &[Hunk]) -> Result<PatchedText, (usize, HunkError)> {
    let file = FileLines::new(text);
    let (mut at, mut notes, mut found) = (0, Vec::new(), Vec::new());
    for hunk in hunks {
        let place = file.place(hunk, at).map_err(|it| (hunk.line, it))?;
        notes.extend(place.note.clone());
        at = place.next;
        found.push(place);
    }
    // Lines without a place of their own come last.
    found.sort_by_key(|it| it.start);
    Ok(PatchedText { text: file.with(&found, if is_crlf { "\r\n" } else { "\n" }), notes })
}

struct FileLines<'a> {
    /// Without their ends.
    lines: Vec<&'a str>,
    ends: Vec<&'a str>,
}

/// Where a hunk belongs.
struct HunkPlace {
    start: usize,
    /// The new lines, each behind so many lines of the file.
    lines: Vec<NewLine>,
    len: usize,
    /// Where the next hunk may begin.
    next: usize,
    note: Option<String>,
}

enum NewLine {
    Kept(usize),
    New(String),
}

/// How alike lines have to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Likeness {
    Exact,
    TrailingBlanks,
    Blanks,
    Punctuation,
}

const LIKENESSES: [Likeness; 4] = [Likeness::Exact, Likeness::TrailingBlanks, Likeness::Blanks, Likeness::Punctuation];

impl Likeness {
    fn fits(self, own: &str, file: &str) -> bool {
        match self {
            Self::Exact => own == file,
            Self::TrailingBlanks => own.trim_end() == file.trim_end(),
            Self::Blanks => own.trim() == file.trim(),
            Self::Punctuation => own.trim().chars().map(plain_char).eq(file.trim().chars().map(plain_char)),
        }
    }

    /// What is to be said, if anything.
    fn describe(self) -> Option<&'static str> {
        match self {
            Self::Exact | Self::TrailingBlanks => None,
            Self::Blanks => Some("another indentation, which the new lines got"),
            Self::Punctuation => Some("other quotes, dashes or blanks"),
        }
    }
}

/// Typographic quotes, dashes and blanks as they are typed on a keyboard.
fn plain_char(it: char) -> char {
    match it {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        _ => it,
    }
}

impl<'a> FileLines<'a> {
    fn new(text: &'a str) -> Self {
        let split = |it: &'a str| {
            let line = it.strip_suffix('\n').map_or(it, |it| it.strip_suffix('\r').unwrap_or(it));
            (line, it.get(line.len()..).unwrap_or_default())
        };
        let (lines, ends) = text.split_inclusive('\n').map(split).unzip();
        Self { lines, ends }
    }

    fn place(&self, hunk: &Hunk, from: usize) -> Result<HunkPlace, HunkError> {
        let mut at = from;
        for anchor in &hunk.anchors {
            at = self.behind_anchor(anchor, at)?;
        }
        let old = |it: &&HunkLine| it.kind != LineKind::Add;
        if !hunk.lines.iter().any(|it| old(&it)) {
            return Ok(self.addition(hunk, at));
        }
        let mut lines = hunk.lines.as_slice();
        loop {
            let pattern: Vec<&str> = lines.iter().filter(old).map(|it| it.text.as_str()).collect();
            if let Some((start, likeness, more)) = self.find(&pattern, at, hunk.at_end)? {
                return self.fit(lines, start, likeness, &more);
            }
            // An empty last line may only stand for the end of the line before it.
            match lines {
                [rest @ .., last] if pattern.len() > 1 && last.kind != LineKind::Add && last.text.trim().is_empty() => {
                    lines = rest;
                }
                _ => return Err(self.not_found(hunk, at)),
            }
        }
    }

    /// The line behind the one that an anchor names. One that was passed already need not come again.
    fn behind_anchor(&self, anchor: &str, from: usize) -> Result<usize, HunkError> {
        let rest = self.lines.get(from..).unwrap_or_default();
        let found = LIKENESSES.iter().find_map(|likeness| rest.iter().position(|it| likeness.fits(anchor, it)));
        if let Some(at) = found {
            return Ok(from + at + 1);
        }
        let before = self.lines.get(..from).unwrap_or_default();
        if before.iter().any(|it| Likeness::Blanks.fits(anchor, it)) {
            return Ok(from);
        }
        let mut begun = rest.iter().enumerate().filter(|it| it.1.trim().starts_with(anchor.trim()));
        match (begun.next(), begun.next()) {
            (Some((at, _)), None) => Ok(from + at + 1),
            _ => Err(HunkError::NoAnchor { anchor: anchor.to_owned(), after: after(from) }),
        }
    }

    /// Lines alone: behind their anchor, or at the end.
    fn addition(&self, hunk: &Hunk, at: usize) -> HunkPlace {
        let has_blank_end = self.lines.last().is_some_and(|it| it.is_empty());
        let end = self.lines.len() - usize::from(has_blank_end);
        let start = if hunk.anchors.is_empty() || hunk.at_end { end.max(at) } else { at };
        let lines = hunk.lines.iter().map(|it| NewLine::New(it.text.clone())).collect();
        HunkPlace { start, lines, len: 0, next: at, note: None }
    }

    /// The first place from `from` on, how alike it is, and further ones. Unlike lines need a place of their own.
    fn find(
        &self,
        old: &[&str],
        from: usize,
        at_end: bool,
    ) -> Result<Option<(usize, Likeness, Vec<usize>)>, HunkError> {
        for likeness in LIKENESSES {
            let mut places = self.places(old, from, likeness).filter(|it| !at_end || self.is_end(it + old.len()));
            let Some(first) = places.next() else { continue };
            let more: Vec<usize> = places.take(MAX_PLACES).collect();
            if likeness >= Likeness::Blanks && !more.is_empty() {
                return Err(HunkError::Ambiguous { places: place_list(first, &more) });
            }
            return Ok(Some((first, likeness, more)));
        }
        Ok(None)
    }

    fn places(&self, old: &[&str], from: usize, likeness: Likeness) -> impl Iterator<Item = usize> {
        let windows = self.lines.get(from..).unwrap_or_default().windows(old.len().max(1)).enumerate();
        let fits = move |it: &&[&str]| old.iter().zip(it.iter()).all(|(own, file)| likeness.fits(own, file));
        windows.filter(move |it| fits(&it.1)).map(move |it| from + it.0)
    }

    /// Tells whether nothing but blank lines comes from there on.
    fn is_end(&self, at: usize) -> bool {
        self.lines.get(at..).unwrap_or_default().iter().all(|it| it.trim().is_empty())
    }

    fn fit(
        &self,
        lines: &[HunkLine],
        start: usize,
        likeness: Likeness,
        more: &[usize],
    ) -> Result<HunkPlace, HunkError> {
        let old: Vec<&str> = lines.iter().filter(|it| it.kind != LineKind::Add).map(|it| it.text.as_str()).collect();
        let window = self.lines.get(start..start + old.len()).unwrap_or_default();
        let is_loose = likeness >= Likeness::Blanks;
        let pairs = old.iter().copied().zip(window.iter().copied()).filter(|_| is_loose);
        let refused = || HunkError::Indentation { line: start + 1, near: numbered(start, window) };
        let indents = IndentMap::from_pairs(pairs).ok_or_else(refused)?;
        let (mut res, mut at) = (Vec::new(), start);
        for line in lines {
            match line.kind {
                LineKind::Add => res.push(NewLine::New(indents.retype(&line.text).ok_or_else(refused)?)),
                LineKind::Keep => res.push(NewLine::Kept(at)),
                LineKind::Remove => (),
            }
            at += usize::from(line.kind != LineKind::Add);
        }
        let place = start + 1;
        let note = likeness.describe().map(|it| format!("the file has {it}, from line {place} on"));
        let others = || format!("its lines stand at lines {}; the first was changed", place_list(start, more));
        let note = note.or_else(|| (!more.is_empty()).then(others));
        Ok(HunkPlace { start, lines: res, len: old.len(), next: start + old.len(), note })
    }

    fn not_found(&self, hunk: &Hunk, from: usize) -> HunkError {
        let old: Vec<&str> =
            hunk.lines.iter().filter(|it| it.kind != LineKind::Add).map(|it| it.text.as_str()).collect();
        let place = |from| LIKENESSES.iter().find_map(|it| self.places(&old, from, *it).next());
        match (place(from), place(0)) {
            (Some(_), _) => HunkError::NotAtEnd,
            (None, Some(at)) => HunkError::OutOfOrder { line: at + 1 },
            (None, None) => HunkError::NotFound { after: after(from), near: self.nearest(&old) },
        }
    }

    /// The lines of the file that have most in common with `old`.
    fn nearest(&self, old: &[&str]) -> Option<String> {
        let n_windows = (MAX_NEAR / old.len().max(1)).min(self.lines.len());
        let alike = |at: usize| {
            let window = self.lines.get(at..).unwrap_or_default().iter();
            window
                .zip(old)
                .filter(|(file, own)| !own.trim().is_empty() && Likeness::Punctuation.fits(own, file))
                .count()
        };
        let (n, at) = (0..n_windows).map(|at| (alike(at), at)).max_by_key(|it| (it.0, std::cmp::Reverse(it.1)))?;
        let end = (at + old.len()).min(self.lines.len());
        (n > 0).then(|| numbered(at, self.lines.get(at..end).unwrap_or_default()))
    }

    fn with(&self, places: &[HunkPlace], end: &str) -> String {
        let (mut res, mut at) = (String::new(), 0);
        // Nothing of the file is the last line any more once a new one follows it.
        let add = |res: &mut String, text: &str, line_end: &str| {
            if !res.is_empty() && !res.ends_with('\n') {
                res.push_str(end);
            }
            res.push_str(text);
            res.push_str(line_end);
        };
        let kept = |it: usize| {
            (self.lines.get(it).copied().unwrap_or_default(), self.ends.get(it).copied().unwrap_or_default())
        };
        for place in places {
            for it in at..place.start {
                add(&mut res, kept(it).0, kept(it).1);
            }
            for line in &place.lines {
                match line {
                    NewLine::Kept(it) => add(&mut res, kept(*it).0, kept(*it).1),
                    NewLine::New(text) => add(&mut res, text, end),
                }
            }
            at = place.start + place.len;
        }
        for it in at..self.lines.len() {
            add(&mut res, kept(it).0, kept(it).1);
        }
        res
    }
}

fn after(from: usize) -> String {
    if from == 0 { String::new() } else { format!(" after line {from}") }
}

fn place_list(first: usize, more: &[usize]) -> String {
    let all: Vec<String> = std::iter::once(&first).chain(more).map(|it| (it + 1).to_string()).collect();
    all.join(", ")
}

fn numbered(from: usize, lines: &[&str]) -> String {
    let lines: Vec<String> = lines.iter().enumerate().map(|(at, it)| format!("{}: {it}", from + at + 1)).collect();
    lines.join("\n")
}
