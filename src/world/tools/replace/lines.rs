//! Lines and edits of a text, with the file's line ends preserved.

use std::ops::Range;

use crate::world::tools::text_file;

/// `range`, in bytes of the text with LF only, becomes `text`.
#[derive(Clone, Debug, PartialEq)]
pub struct Edit {
    pub range: Range<usize>,
    pub text: String,
}

/// The lines of `text` without their ends. What follows a final line end is no line.
pub fn lines(text: &str) -> Vec<Range<usize>> {
    let mut start = 0;
    let spans = text.split_inclusive('\n').map(|line| {
        let span = start..start + line.strip_suffix('\n').unwrap_or(line).len();
        start += line.len();
        span
    });
    spans.collect()
}

pub fn indentation(line: &str) -> &str {
    line.get(..line.len() - line.trim_start_matches([' ', '\t']).len()).unwrap_or_default()
}

/// `text` with its first line at `indent` and the others as far from the first as they were.
pub fn reindent(text: &str, indent: &str) -> String {
    let first = indentation(text.split('\n').next().unwrap_or_default());
    let lines = text.split('\n').map(|line| match line.strip_prefix(first) {
        _ if line.trim().is_empty() => String::new(),
        Some(rest) => [indent, rest].concat(),
        None => [indent, line.trim_start()].concat(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// `original` with `edits` made: sorted, not overlapping, in terms of its LF-only text. Only what they cover changes;
/// `crlf` says how lines that they bring end.
pub fn apply(original: &str, edits: &[Edit], crlf: bool) -> String {
    // Where, in the LF-only text, the line ends are that lost a CR.
    let cuts: Vec<usize> = original.match_indices("\r\n").enumerate().map(|(n, (at, _))| at - n).collect();
    let in_original = |at: usize| at + cuts.partition_point(|it| *it < at);
    let mut res = String::with_capacity(original.len());
    let mut done = 0;
    for edit in edits {
        res.push_str(original.get(done..in_original(edit.range.start)).unwrap_or_default());
        match crlf {
            true => res.push_str(&text_file::to_crlf(&edit.text)),
            false => res.push_str(&edit.text),
        }
        done = in_original(edit.range.end);
    }
    res.push_str(original.get(done..).unwrap_or_default());
    keep_last_line_end(original, res, crlf)
}

/// Models are careless about the last line's end: it stays as it was, unless it is all that would change.
fn keep_last_line_end(original: &str, after: String, crlf: bool) -> String {
    let end = if crlf { "\r\n" } else { "\n" };
    let kept = match (original.ends_with('\n'), after.strip_suffix('\n')) {
        (true, None) if !after.is_empty() => [&after, end].concat(),
        (false, Some(rest)) => rest.strip_suffix('\r').unwrap_or(rest).to_owned(),
        _ => return after,
    };
    if kept == original { after } else { kept }
}
