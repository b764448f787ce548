//! The search of `grep_search`: files in order of path, in parallel, up to a bound.

use std::{
    io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Instant,
};

use grep_matcher::{LineTerminator, Matcher};
use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch};
use ignore::overrides::Override;
use tokio_util::sync::CancellationToken;

use crate::builtin::{
    grep_search::utf8_reader::Utf8Reader,
    skipped::{SkipReason, SkippedFiles},
    texts::text_file::{self, Encoding, MAX_BYTES, SNIFFED_BYTES},
    walk::{Excludes, WalkPlan},
};
use castor_base::{path::AbsPath, text::head};
use castor_hands::disk;

const MAX_LINE_CHARS: usize = 2000;
const THREADS: usize = 4;
/// Files searched between two looks at whether there is enough; grows, since most searches end early or not at all.
const FIRST_BATCH: usize = 32;
const MAX_BATCH: usize = 1024;
/// A line that needs more than this is not text.
const MAX_BUFFER_BYTES: usize = 64 * 1024 * 1024;
/// Extensions of files that a search skips unless they are named.
const NOISE: &[&str] = &["log", "tmp"];

pub struct SearchQuery {
    pub matcher: RegexMatcher,
    /// Lines that match this do not count.
    pub exclude: Option<RegexMatcher>,
    pub before: usize,
    pub after: usize,
    pub per_file: usize,
    pub total: usize,
    pub skipped: SkippedFiles,
}

/// The bounds of a search.
pub struct SearchBound {
    pub cancel: CancellationToken,
    pub at: Instant,
}

impl SearchBound {
    pub fn is_reached(&self) -> bool {
        self.cancel.is_cancelled() || self.is_late()
    }

    fn is_late(&self) -> bool {
        Instant::now() >= self.at
    }
}

#[derive(Debug, PartialEq)]
pub struct MatchedLine {
    pub number: u64,
    pub text: String,
    pub is_hit: bool,
}

pub struct FileHits {
    pub path: PathBuf,
    pub lines: Vec<MatchedLine>,
    pub hits: usize,
}

/// The reason why a result may be incomplete.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SearchLimit {
    No,
    Enough,
    Late,
}

pub struct SearchResult {
    pub files: Vec<FileHits>,
    pub hits: usize,
    pub cut: SearchLimit,
}

/// The regular files to search, in order.
pub fn files<'a>(
    plan: &'a WalkPlan,
    excludes: Excludes,
    include: Option<&'a Override>,
    stop: &'a SearchBound,
) -> impl Iterator<Item = PathBuf> + 'a {
    let named = !plan.is_dir;
    let is_noise = move |path: &Path| {
        let extension = path.extension().and_then(|it| it.to_str()).filter(|_| excludes == Excludes::Search);
        let ending = NOISE.iter().find(|it| extension == Some(**it));
        ending.map(|it| plan.skipped.add(SkipReason::Ending(it))).is_some()
    };
    plan.walk("", excludes)
        .take_while(|_| !stop.is_reached())
        .filter_map(|it| it.map_err(|_| plan.skipped.add(SkipReason::Unreadable)).ok())
        .filter(move |it| {
            let path = it.path();
            it.file_type().is_some_and(|it| it.is_file())
                && path.starts_with(&plan.start)
                && match include {
                    _ if named => true,
                    Some(include) => include.matched(plan.pattern_form(path), false).is_whitelist(),
                    None => !is_noise(path),
                }
        })
        .map(ignore::DirEntry::into_path)
}

pub fn search(query: &SearchQuery, mut files: impl Iterator<Item = PathBuf>, stop: &SearchBound) -> SearchResult {
    let mut found = SearchResult { files: Vec::new(), hits: 0, cut: SearchLimit::No };
    let mut size = FIRST_BATCH;
    loop {
        let batch: Vec<PathBuf> = files.by_ref().take(size).collect();
        if batch.is_empty() {
            found.cut = if stop.is_late() { SearchLimit::Late } else { found.cut };
            return found;
        }
        for mut file in search_batch(query, &batch, query.total - found.hits, stop) {
            keep_hits(&mut file, query.total - found.hits, query.after as u64);
            found.hits += file.hits;
            found.files.push(file);
            if found.hits >= query.total {
                found.cut = SearchLimit::Enough;
                return found;
            }
        }
        size = (size * 2).min(MAX_BATCH);
    }
}

/// What was found in `batch`, in its order however the threads ran.
fn search_batch(query: &SearchQuery, batch: &[PathBuf], most: usize, stop: &SearchBound) -> Vec<FileHits> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut searcher = searcher(query);
        let mut res = Vec::new();
        while let Some((n, path)) = Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|n| Some((n, batch.get(n)?))) {
            if stop.is_reached() {
                break;
            }
            res.extend(search_file(query, &mut searcher, path, most, stop).map(|it| (n, it)));
        }
        res
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS).min(batch.len() / 4 + 1);
    let mut res = match threads {
        1 => work(),
        _ => thread::scope(|scope| {
            let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            running.into_iter().filter_map(|it| it.join().ok()).flatten().collect()
        }),
    };
    res.sort_by_key(|it| it.0);
    res.into_iter().map(|it| it.1).collect()
}

fn searcher(query: &SearchQuery) -> Searcher {
    SearcherBuilder::new()
        .line_terminator(LineTerminator::crlf())
        .binary_detection(BinaryDetection::quit(0))
        .before_context(query.before)
        .after_context(query.after)
        .heap_limit(Some(MAX_BUFFER_BYTES))
        .build()
}

fn search_file(
    query: &SearchQuery,
    searcher: &mut Searcher,
    path: &Path,
    most: usize,
    stop: &SearchBound,
) -> Option<FileHits> {
    let most = query.per_file.min(most);
    let mut sink = SearchHits { query, stop, most, hits: 0, last: 0, is_binary: false, lines: Vec::new() };
    let real = AbsPath::new(path)?;
    let Ok(file) = disk::open_real(&real) else {
        query.skipped.add(SkipReason::Unreadable);
        return None;
    };
    // A file that cannot be read to its end, or turns out to be binary, has what was found before.
    let mut reader = Utf8Reader::new(&file);
    _ = searcher.search_reader(&query.matcher, &mut reader, &mut sink);
    if reader.is_odd {
        sink.clear();
        search_decoded(searcher, &real, &mut sink);
    }
    if sink.is_binary {
        query.skipped.add(SkipReason::Binary);
    }
    let mut res = FileHits { path: path.to_owned(), hits: sink.hits, lines: sink.lines };
    if query.exclude.is_some() {
        drop_strays(&mut res.lines, query.before as u64, query.after as u64);
    }
    (res.hits > 0).then_some(res)
}

/// In text that is no UTF-8, as `read_file` shows it.
fn search_decoded(searcher: &mut Searcher, real: &AbsPath, sink: &mut SearchHits<'_>) {
    let matcher = &sink.query.matcher;
    let read = |max: u64| disk::read_real_head(real, max).unwrap_or_default();
    // Pictures and the like are not read whole.
    if text_file::decode(&read(SNIFFED_BYTES as u64)).is_none() {
        sink.is_binary = true;
        return;
    }
    let bytes = read(MAX_BYTES + 1);
    match text_file::decode(&bytes).filter(|_| bytes.len() as u64 <= MAX_BYTES) {
        Some(file) => {
            _ = searcher.search_slice(matcher, file.text.as_bytes(), &mut *sink);
            if file.encoding == Encoding::Unknown {
                sink.query.skipped.add(SkipReason::UnknownEncoding { is_hit: sink.hits > 0 });
            }
        }
        // Too much to decode: what is ASCII in it is found.
        None => _ = disk::open_real(real).and_then(|it| searcher.search_file(matcher, &it, &mut *sink)),
    }
}

/// Cuts a file's hits to `most`. Those above it that are near enough stay as context.
fn keep_hits(file: &mut FileHits, most: usize, after: u64) {
    if file.hits <= most {
        return;
    }
    let last = file.lines.iter().filter(|it| it.is_hit).nth(most.saturating_sub(1)).map_or(0, |it| it.number);
    file.lines.retain(|it| it.number <= last.saturating_add(after));
    file.lines.iter_mut().for_each(|it| it.is_hit &= it.number <= last);
    file.hits = most;
}

/// Context of excluded lines is context of nothing.
fn drop_strays(lines: &mut Vec<MatchedLine>, before: u64, after: u64) {
    let hits: Vec<u64> = lines.iter().filter(|it| it.is_hit).map(|it| it.number).collect();
    lines.retain(|it| {
        let at = hits.partition_point(|hit| *hit < it.number);
        let below = hits.get(at).is_some_and(|hit| hit - it.number <= before);
        let above = at.checked_sub(1).and_then(|at| hits.get(at)).is_some_and(|hit| it.number - hit <= after);
        it.is_hit || below || above
    });
}

struct SearchHits<'a> {
    query: &'a SearchQuery,
    stop: &'a SearchBound,
    most: usize,
    hits: usize,
    /// The number of the last line that counted.
    last: u64,
    is_binary: bool,
    lines: Vec<MatchedLine>,
}

impl SearchHits<'_> {
    /// For another look at the same file.
    fn clear(&mut self) {
        (self.hits, self.last, self.is_binary) = (0, 0, false);
        self.lines.clear();
    }

    /// Tells whether there are enough hits, and the last one's context is over.
    fn is_past(&self, number: Option<u64>) -> bool {
        self.hits == self.most && number.unwrap_or_default() > self.last + self.query.after as u64
    }

    fn push(&mut self, number: Option<u64>, bytes: &[u8], is_hit: bool) {
        let number = number.unwrap_or_default();
        let text = String::from_utf8_lossy(head_bytes(bytes));
        self.lines.push(MatchedLine { number, text: short(text.trim_end()), is_hit });
    }
}

impl Sink for SearchHits<'_> {
    type Error = io::Error;

    fn matched(&mut self, _searcher: &Searcher, it: &SinkMatch<'_>) -> Result<bool, io::Error> {
        if self.stop.is_reached() || self.is_past(it.line_number()) {
            return Ok(false);
        }
        if self.hits == self.most {
            self.push(it.line_number(), it.bytes(), false);
            return Ok(true);
        }
        let excluded = match &self.query.exclude {
            Some(exclude) => exclude.is_match(it.bytes()).map_err(io::Error::other)?,
            None => false,
        };
        if !excluded {
            self.hits += 1;
            self.last = it.line_number().unwrap_or_default();
        }
        // An excluded line can still be context; without any, it would only take memory.
        if !excluded || self.query.before + self.query.after > 0 {
            self.push(it.line_number(), it.bytes(), !excluded);
        }
        Ok(self.hits < self.most || self.query.after > 0)
    }

    fn finish(&mut self, _searcher: &Searcher, it: &SinkFinish) -> Result<(), io::Error> {
        self.is_binary |= it.binary_byte_offset().is_some();
        Ok(())
    }

    fn context(&mut self, _searcher: &Searcher, it: &SinkContext<'_>) -> Result<bool, io::Error> {
        if self.is_past(it.line_number()) {
            return Ok(false);
        }
        self.push(it.line_number(), it.bytes(), false);
        Ok(true)
    }
}

/// Enough bytes for a line that is cut anyway: it may be all of a large file.
fn head_bytes(bytes: &[u8]) -> &[u8] {
    bytes.get(..(MAX_LINE_CHARS + 1) * 4).unwrap_or(bytes)
}

fn short(line: &str) -> String {
    match line.char_indices().nth(MAX_LINE_CHARS) {
        Some((at, _)) => format!("{}... [truncated]", head(line, at)),
        None => line.to_owned(),
    }
}
