//! Redaction: replaces the values of secret files in text for model, log and client.
//!
//! Where a value counts, `values` says; one that stands in a tracked file or in a published template counts for nothing.
//! Files are looked for by their names below the roots and in the home folder, with bounds: what lies deeper or is
//! larger is not known here. Nothing is read before the first call of a session.

mod files;
mod forms;
mod git_tracked;
mod stream;
mod values;

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::{Arc, Mutex, PoisonError},
};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use castor_base::{path::AbsPath, secret::mark};
use castor_hands::disk::{self, Stamp};

pub use stream::Stream;

/// The most bytes of all values together: a matcher is some hundred times as large.
const MAX_VALUES: usize = 64 << 10;
/// So much to find, in bytes, is found by a table of some megabytes; more of it by a smaller one that is slower.
const MAX_TABLE: usize = 8 << 10;
/// The bytes of a beginning that tell nearly all texts apart from values.
const PREFIX_LEN: usize = 3;

/// Sources of a session's secrets.
pub struct Secrets {
    roots: Vec<AbsPath>,
    home: Option<AbsPath>,
    /// The time when the session began (Unix, seconds).
    since_s: i64,
    known: Mutex<KnownValues>,
}

#[derive(Default)]
struct KnownValues {
    looked: bool,
    /// Its real path.
    home: Option<AbsPath>,
    files: BTreeMap<AbsPath, File>,
    /// Values that were found where everybody may read them, and stay public.
    public: BTreeSet<String>,
    redactor: Arc<Redactor>,
}

#[derive(Default)]
struct File {
    stamp: Option<Stamp>,
    /// The values, also those that a file once had: they were copied, perhaps, before they went.
    values: BTreeSet<String>,
}

impl Secrets {
    /// Looks at nothing yet. `roots` are real paths.
    pub fn new(roots: Vec<AbsPath>, home: Option<AbsPath>, since_s: i64) -> Self {
        Self { roots, home, since_s, known: Mutex::default() }
    }

    /// The redactor of all values known by now, with the new ones of known files. `anew`: a command ended, there may be
    /// other files. Blocks.
    pub fn current_redactor(&self, anew: bool) -> Arc<Redactor> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let paths: Vec<AbsPath> = match anew || !known.looked {
            true => {
                known.home = self.home.as_ref().and_then(|it| disk::real_path(it).ok());
                let found = files::find(&self.roots, known.home.as_ref(), self.since_s);
                known.public.extend(found.template_values);
                found.secrets.into_iter().collect()
            }
            false => known.files.keys().cloned().collect(),
        };
        known.looked = true;
        let mut is_other = false;
        for path in paths {
            let Some(stamp) = disk::read_stamp(&path) else { continue };
            let file = known.files.entry(path.clone()).or_default();
            if file.stamp != Some(stamp) {
                is_other = true;
                file.stamp = Some(stamp);
                file.values.extend(files::read(&path));
            }
        }
        if is_other {
            self.rebuild_redactor(&mut known);
        }
        known.redactor.clone()
    }

    fn rebuild_redactor(&self, known: &mut KnownValues) {
        let values = || known.files.values().flat_map(|it| &it.values);
        let open = values().filter(|it| !known.public.contains(*it)).cloned().collect();
        let public = git_tracked::tracked_values(&open, &self.roots, self.since_s);
        known.public.extend(public);
        let mut left = MAX_VALUES;
        let mut redactor = RedactionPlan::default();
        for (path, file) in &known.files {
            let source = redactor.sources.len();
            redactor.sources.push(Source { path: path.clone(), mark: mark(&self.name(path, known.home.as_ref())) });
            for it in file.values.iter().filter(|it| !known.public.contains(*it)) {
                left = left.saturating_sub(it.len());
                if left > 0 {
                    redactor.add(it, source);
                }
            }
        }
        known.redactor = Arc::new(redactor.build());
    }

    /// The file's name as people know it.
    fn name(&self, path: &AbsPath, home: Option<&AbsPath>) -> String {
        let root = self.roots.iter().find(|it| path.is_within(it));
        let of_home = || Some(format!("~/{}", path.relative_to(home.filter(|it| path.is_within(it))?)));
        root.map(|it| path.relative_to(it)).or_else(of_home).unwrap_or_else(|| path.to_string())
    }
}

/// A file, and what stands in the place of its values.
struct Source {
    path: AbsPath,
    mark: String,
}

/// Finds values in texts.
#[derive(Default)]
pub struct Redactor {
    /// `None`: there is nothing to find.
    matcher: Option<AhoCorasick>,
    /// The texts that it finds, sorted, each with its files.
    texts: Vec<(String, Vec<usize>)>,
    heads: HashSet<[u8; PREFIX_LEN]>,
    longest: usize,
    sources: Vec<Source>,
}

#[derive(Default)]
struct RedactionPlan {
    texts: BTreeMap<String, Vec<usize>>,
    sources: Vec<Source>,
}

impl RedactionPlan {
    fn add(&mut self, value: &str, source: usize) {
        for it in forms::forms(value) {
            let sources = self.texts.entry(it).or_default();
            if !sources.contains(&source) {
                sources.push(source);
            }
        }
    }

    fn build(self) -> Redactor {
        let texts: Vec<_> = self.texts.into_iter().collect();
        let mut builder = AhoCorasick::builder();
        let kind = match texts.iter().map(|it| it.0.len()).sum::<usize>() {
            0..=MAX_TABLE => AhoCorasickKind::DFA,
            _ => AhoCorasickKind::ContiguousNFA,
        };
        builder.match_kind(MatchKind::LeftmostLongest).kind(Some(kind));
        let matcher = (!texts.is_empty()).then(|| builder.build(texts.iter().map(|it| &it.0)).ok()).flatten();
        let longest = texts.iter().map(|it| it.0.len()).max().unwrap_or_default();
        let heads = texts.iter().filter_map(|it| it.0.as_bytes().first_chunk().copied()).collect();
        Redactor { matcher, texts, heads, longest, sources: self.sources }
    }
}

impl Redactor {
    /// Tells whether nothing has to be looked for.
    pub fn is_idle(&self) -> bool {
        self.matcher.is_none()
    }

    /// `text` with marks in the places of values. Those of `shown` stay: the user said yes to these files.
    pub fn redact<'t>(&self, text: &'t str, shown: &[AbsPath]) -> Cow<'t, str> {
        let (mut res, mut at) = (String::new(), 0);
        for it in self.matcher.iter().flat_map(|it| it.find_iter(text)) {
            let Some(mark) = self.mark_of(it.pattern().as_usize(), shown) else { continue };
            res.push_str(text.get(at..it.start()).unwrap_or_default());
            res.push_str(mark);
            at = it.end();
        }
        match at {
            0 => Cow::Borrowed(text),
            _ => Cow::Owned(res + text.get(at..).unwrap_or_default()),
        }
    }

    fn mark_of(&self, pattern: usize, shown: &[AbsPath]) -> Option<&str> {
        let sources = &self.texts.get(pattern)?.1;
        let mut files = sources.iter().filter_map(|it| self.sources.get(*it));
        let is_shown = shown.iter().any(|path| files.clone().any(|it| it.path == *path));
        files.next().filter(|_| !is_shown).map(|it| it.mark.as_str())
    }

    /// Redacts the part of a text that is final whatever follows, and tells its length.
    fn redact_prefix(&self, text: &str) -> (String, usize) {
        let (mut res, mut at, mut open) = (String::new(), 0, self.partial_match_start(text, 0));
        for it in self.matcher.iter().flat_map(|it| it.find_iter(text)) {
            // A longer one may begin in its place.
            if it.start() >= open {
                break;
            }
            res.push_str(text.get(at..it.start()).unwrap_or_default());
            res.push_str(self.mark_of(it.pattern().as_usize(), &[]).unwrap_or_default());
            at = it.end();
            if open < at {
                open = self.partial_match_start(text, at);
            }
        }
        res.push_str(text.get(at..open).unwrap_or_default());
        (res, open)
    }

    /// The place, at `from` or later, where the first text that may end behind the end begins.
    fn partial_match_start(&self, text: &str, from: usize) -> usize {
        let last = text.len().saturating_sub(self.longest.saturating_sub(1)).max(from);
        let begins = |at: &usize| {
            let Some(end) = text.get(*at..).filter(|it| !it.is_empty()) else { return false };
            if end.as_bytes().first_chunk().is_some_and(|it| !self.heads.contains(it)) {
                return false;
            }
            let first = self.texts.partition_point(|it| it.0.as_str() <= end);
            self.texts.get(first).is_some_and(|it| it.0.starts_with(end))
        };
        (last..text.len()).find(begins).unwrap_or(text.len())
    }
}

#[cfg(test)]
mod tests;
