//! Changes of a file as a unified diff: hunks with line numbers, and the changed words of a line emphasised.

use std::{borrow::Cow, collections::BTreeSet};

use similar::{Algorithm, ChangeTag, DiffOp, DiffTag, capture_diff_slices, diff_ratio, group_diff_ops};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::{
    highlight::Highlighter,
    text::{Color, Line, Span, Style},
    wrap::wrap,
};

/// Of both texts. Beyond it only sizes are shown.
const MAX_BYTES: usize = 1_000_000;
/// Lines of both texts between what they have in common at their ends. More of them count as replaced: the comparison
/// takes time with the square of their number.
const MAX_COMPARED: usize = 10_000;
/// Bytes of a line before and after.
const MAX_WORDS_COMPARED: usize = 4_000;
const CONTEXT: usize = 3;
/// From so many columns on, what was and what is stand beside each other.
const BESIDE_COLUMNS: usize = 116;
/// Wider is no terminal: a stream has lines without an end, and no place in their middle.
const MAX_COLUMNS: usize = 2_000;
const BESIDE_EDGE: &str = " │ ";
/// A tab where it has to be told from blanks; as wide as else.
const TAB: &str = "→   ";
/// Least share of a line that stays, so that its changed words are worth to be looked for.
const MIN_ALIKE: f32 = 0.4;

/// A diff to show, and what it counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiffView {
    pub added: usize,
    pub removed: usize,
    pub lines: Vec<Line>,
    /// Lines of the diff that `limit` left out.
    pub hidden: usize,
}

/// `old` is nothing for a new file; an empty `new` is a file that is gone or empty now. `limit` is a number of lines.
pub fn diff(path: &str, old: Option<&str>, new: &str, limit: Option<usize>, width: usize) -> DiffView {
    let before = old.unwrap_or_default();
    if before.len() + new.len() > MAX_BYTES {
        let text = format!("too large to compare: {} bytes before, {} bytes now", before.len(), new.len());
        return DiffView { lines: wrap(&Line::new(&text, Style::DIM), width, ""), ..DiffView::default() };
    }
    let (old_lines, new_lines) = (split(before), split(new));
    let ops = compare(&old_lines, &new_lines);
    let mut res = DiffView::default();
    for op in &ops {
        if op.tag() != DiffTag::Equal {
            res.removed += op.old_range().len();
            res.added += op.new_range().len();
        }
    }
    let rows = rows(&ops, &old_lines, &new_lines, limit.unwrap_or(usize::MAX));
    let digits = old_lines.len().max(new_lines.len()).max(1).ilog10() as usize + 1;
    // Nothing is changed in a new file: its code has the colours of its language.
    let mut painter = Painter { width, digits, code: old.is_none().then(|| Highlighter::new(path)) };
    let is_beside = (BESIDE_COLUMNS..MAX_COLUMNS).contains(&width) && res.added > 0 && res.removed > 0;
    let mut shown = 0;
    while shown < rows.len() {
        let rest = rows.get(shown..).unwrap_or_default();
        let taken = if is_beside {
            painter.paint_beside(rest, &mut res.lines)
        } else {
            painter.paint_first(rest, &mut res.lines)
        };
        if limit.is_some_and(|it| res.lines.len() > it) {
            break;
        }
        shown += taken;
    }
    res.lines.truncate(limit.unwrap_or(usize::MAX));
    res.hidden = rows.len() - shown;
    if res.hidden > 0 {
        let lines = if res.hidden == 1 { "line" } else { "lines" };
        res.lines.push(Line::new(&format!("… {} more {lines}", res.hidden), Style::DIM));
    }
    res
}

fn split(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

fn compare(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let most = old.len().min(new.len()) - start;
    let end = old.iter().rev().zip(new.iter().rev()).take(most).take_while(|(a, b)| a == b).count();
    let (old_len, new_len) = (old.len() - start - end, new.len() - start - end);
    if old_len + new_len <= MAX_COMPARED {
        return capture_diff_slices(Algorithm::Myers, old, new);
    }
    vec![
        DiffOp::Equal { old_index: 0, new_index: 0, len: start },
        DiffOp::Replace { old_index: start, old_len, new_index: start, new_len },
        DiffOp::Equal { old_index: start + old_len, new_index: start + new_len, len: end },
    ]
}

enum Row<'a> {
    /// Lines of the file are left out here.
    Gap,
    /// `words` are the parts of the text, with whether they changed; `has_tabs_shown`: its indentation did.
    Change { tag: ChangeTag, number: usize, words: Vec<(&'a str, bool)>, has_tabs_shown: bool },
    /// A line that stays, with its number before and now.
    Same { before: usize, now: usize, text: &'a str },
}

/// Rows behind `limit` only count.
fn rows<'a>(ops: &[DiffOp], old: &[&'a str], new: &[&'a str], limit: usize) -> Vec<Row<'a>> {
    let mut res = Vec::new();
    for hunk in group_diff_ops(ops.to_vec(), CONTEXT) {
        if hunk.iter().all(|it| it.tag() == DiffTag::Equal) {
            continue;
        }
        if !res.is_empty() {
            res.push(Row::Gap);
        }
        for op in hunk {
            let (from, to) = (op.old_range(), op.new_range());
            let before = old.get(from.clone()).unwrap_or_default();
            let after = new.get(to.clone()).unwrap_or_default();
            if op.tag() == DiffTag::Equal {
                let numbers = (from.start + 1..).zip(to.start + 1..);
                let same = after.iter().zip(numbers);
                res.extend(same.map(|(text, (before, now))| Row::Same { before, now, text }));
                continue;
            }
            let is_compared = before.len() == after.len() && res.len() < limit;
            let (removed, added) =
                if is_compared { changed_words(before, after) } else { (whole(before), whole(after)) };
            let is_shown = is_reindented(before, after);
            add_rows((ChangeTag::Delete, is_shown), from.start, removed.into_iter(), &mut res);
            add_rows((ChangeTag::Insert, is_shown), to.start, added.into_iter(), &mut res);
        }
    }
    res
}

fn add_rows<'a>(
    (tag, has_tabs_shown): (ChangeTag, bool),
    start: usize,
    lines: impl Iterator<Item = Vec<(&'a str, bool)>>,
    out: &mut Vec<Row<'a>>,
) {
    out.extend(lines.enumerate().map(|(i, words)| Row::Change { tag, number: start + i + 1, words, has_tabs_shown }));
}

/// Whether tabs are among what lines begin with, and other lines that come begin otherwise than those that go.
fn is_reindented(before: &[&str], after: &[&str]) -> bool {
    let indents = |lines: &[&str]| -> BTreeSet<String> {
        let lines = lines.iter().filter(|it| !it.trim().is_empty());
        lines.map(|it| it.chars().take_while(|it| matches!(it, ' ' | '\t')).collect()).collect()
    };
    let (before, after) = (indents(before), indents(after));
    let has_tab = before.iter().chain(&after).any(|it| it.contains('\t'));
    has_tab && !before.is_empty() && !after.is_empty() && before != after
}

type Words<'a> = Vec<(&'a str, bool)>;

fn whole<'a>(lines: &[&'a str]) -> Vec<Words<'a>> {
    lines.iter().map(|it| vec![(*it, false)]).collect()
}

/// Where as many lines come as go, each is compared with its successor.
fn changed_words<'a>(before: &[&'a str], after: &[&'a str]) -> (Vec<Words<'a>>, Vec<Words<'a>>) {
    before.iter().zip(after).map(|(old, new)| compare_words(old, new)).unzip()
}

fn compare_words<'a>(old: &'a str, new: &'a str) -> (Words<'a>, Words<'a>) {
    let unchanged = (vec![(old, false)], vec![(new, false)]);
    // A word may cut an escape sequence in two.
    let is_odd = |it: char| it.is_control() && !matches!(it, '\n' | '\r' | '\t');
    if old.len() + new.len() > MAX_WORDS_COMPARED || old.contains(is_odd) || new.contains(is_odd) {
        return unchanged;
    }
    let (before, after): (Vec<_>, Vec<_>) = (old.split_word_bounds().collect(), new.split_word_bounds().collect());
    let ops = capture_diff_slices(Algorithm::Myers, &before, &after);
    if diff_ratio(&ops, before.len(), after.len()) < MIN_ALIKE {
        return unchanged;
    }
    let (mut removed, mut added) = (Vec::new(), Vec::new());
    for op in ops {
        let is_changed = op.tag() != DiffTag::Equal;
        let own = |words: &[&'a str]| words.iter().map(|it| (*it, is_changed)).collect::<Words>();
        removed.extend(own(before.get(op.old_range()).unwrap_or_default()));
        added.extend(own(after.get(op.new_range()).unwrap_or_default()));
    }
    (removed, added)
}

struct Painter {
    width: usize,
    /// Columns of the greatest line number.
    digits: usize,
    code: Option<Highlighter>,
}

impl Painter {
    /// One row below the other; gives how many rows that were.
    fn paint_first(&mut self, rows: &[Row], out: &mut Vec<Line>) -> usize {
        match rows.first() {
            Some(Row::Gap) => out.push(self.gap()),
            Some(Row::Same { now, text, .. }) => {
                out.extend(self.line(ChangeTag::Equal, *now, &[(*text, false)], self.width))
            }
            Some(Row::Change { tag, number, words, has_tabs_shown }) => {
                out.extend(self.line(*tag, *number, &with_tabs(words, *has_tabs_shown), self.width));
            }
            None => (),
        }
        1
    }

    /// What goes at the left, what comes at the right; gives how many rows that were.
    fn paint_beside(&mut self, rows: &[Row], out: &mut Vec<Line>) -> usize {
        let width = (self.width.saturating_sub(BESIDE_EDGE.width())) / 2;
        match rows.first() {
            Some(Row::Gap) => out.push(self.gap()),
            Some(Row::Same { before, now, text }) => {
                let left = self.line(ChangeTag::Equal, *before, &[(*text, false)], width);
                let right = self.line(ChangeTag::Equal, *now, &[(*text, false)], width);
                out.extend(beside(left, right, width));
            }
            Some(Row::Change { .. }) => return self.paint_changes_beside(rows, width, out),
            None => (),
        }
        1
    }

    /// The lines that go and come at one place, pair by pair.
    fn paint_changes_beside(&mut self, rows: &[Row], width: usize, out: &mut Vec<Line>) -> usize {
        let of = |wanted: ChangeTag, from: usize| {
            let is_wanted = |it: &&Row| matches!(it, Row::Change { tag, .. } if *tag == wanted);
            rows.get(from..).unwrap_or_default().iter().take_while(is_wanted).count()
        };
        let removed = of(ChangeTag::Delete, 0);
        let added = of(ChangeTag::Insert, removed);
        for at in 0..removed.max(added) {
            let mut cell = |place: Option<usize>| match place.and_then(|it| rows.get(it)) {
                Some(Row::Change { tag, number, words, has_tabs_shown }) => {
                    self.line(*tag, *number, &with_tabs(words, *has_tabs_shown), width)
                }
                _ => Vec::new(),
            };
            let left = cell((at < removed).then_some(at));
            let right = cell((at < added).then_some(removed + at));
            out.extend(beside(left, right, width));
        }
        (removed + added).max(1)
    }

    fn gap(&self) -> Line {
        Line::new(&format!("{:>1$}", "⋮", self.digits), Style::DIM)
    }

    fn line<T: AsRef<str>>(&mut self, tag: ChangeTag, number: usize, words: &[(T, bool)], width: usize) -> Vec<Line> {
        let (sign, style) = match tag {
            ChangeTag::Equal => (' ', Style::PLAIN),
            ChangeTag::Delete => ('-', Style::color(Color::Red)),
            ChangeTag::Insert => ('+', Style::color(Color::Green)),
        };
        let mut line = Line::new(&format!("{number:>width$} ", width = self.digits), Style::DIM);
        line.push(&format!("{sign} "), style);
        match &mut self.code {
            Some(code) => {
                let text: String = words.iter().map(|it| it.0.as_ref()).collect();
                line.spans.extend(code.line(text.trim_end_matches(['\n', '\r'])).spans);
            }
            None => add_words(words, tag, style, &mut line),
        }
        wrap(&line, width, &" ".repeat(self.digits + 3))
    }
}

/// The words, with the tabs that the line begins with drawn if that is wanted.
fn with_tabs<'a>(words: &[(&'a str, bool)], is_shown: bool) -> Vec<(Cow<'a, str>, bool)> {
    let mut is_indent = is_shown;
    let mut drawn = |word: &'a str| {
        let text = word.trim_start_matches([' ', '\t']);
        let (indent, text) = word.split_at(word.len() - text.len());
        let res = if is_indent && indent.contains('\t') {
            Cow::Owned(indent.replace('\t', TAB) + text)
        } else {
            Cow::Borrowed(word)
        };
        is_indent &= text.is_empty();
        res
    };
    words.iter().map(|(word, is_changed)| (drawn(word), *is_changed)).collect()
}

/// Two cells as rows of one table.
fn beside(left: Vec<Line>, right: Vec<Line>, width: usize) -> Vec<Line> {
    let rows = left.len().max(right.len());
    let (mut left, mut right) = (left.into_iter(), right.into_iter());
    let mut res = Vec::with_capacity(rows);
    for _ in 0..rows {
        let mut line = left.next().unwrap_or_default();
        let room = width.saturating_sub(line.width());
        line.push(&" ".repeat(room), Style::PLAIN);
        line.push(BESIDE_EDGE, Style::DIM);
        line.spans.extend(right.next().unwrap_or_default().spans);
        res.push(line);
    }
    res
}

fn add_words<T: AsRef<str>>(words: &[(T, bool)], tag: ChangeTag, style: Style, line: &mut Line) {
    for (word, is_changed) in words {
        let style = if *is_changed { Style { bold: true, underline: true, ..style } } else { style };
        let span = Span::new(word.as_ref().trim_end_matches(['\n', '\r']), style);
        line.append(span.text(), &span);
    }
    // Else two lines that differ in this alone look alike.
    let text = words.last().map_or("", |it| it.0.as_ref());
    let mark = match text {
        _ if tag == ChangeTag::Equal => "",
        it if it.ends_with("\r\n") => "␍",
        it if !it.ends_with('\n') => " (no line end)",
        _ => "",
    };
    if !mark.is_empty() {
        line.push(mark, Style::DIM);
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::expect_file;

    use super::{DiffView, MAX_BYTES, MAX_COMPARED, diff};
    use crate::cli::render::{ansi, text::Line};

    const OLD: &str = "fn main() {\n    let first = 1;\n    let second = 2;\n    print(first);\n}\n\n// a\n// b\n// c\n// d\n// e\n// f\nfn last() {}\n";
    const NEW: &str = "fn main() {\n    let first = 10;\n    let other = 2;\n    print(first);\n    print(other);\n}\n\n// a\n// b\n// c\n// d\n// e\n// f\n";

    fn show(title: &str, view: &DiffView, out: &mut String) {
        writeln!(out, "== {title}: +{} -{}, {} hidden", view.added, view.removed, view.hidden).unwrap();
        for line in &view.lines {
            ansi::paint(line, false, out);
            out.push('\n');
        }
    }

    #[test]
    fn diffs_look_as_they_should() {
        let mut res = String::new();
        for (title, old, new, limit, width) in [
            ("change", Some(OLD), NEW, None, 80),
            ("few lines", Some(OLD), NEW, Some(4), 80),
            ("narrow", Some(OLD), NEW, Some(5), 14),
            ("new file", None, NEW, Some(2), 80),
            ("deletion", Some("a\nb\n"), "", None, 80),
            ("nothing", Some(OLD), OLD, None, 80),
            ("line ends", Some("a\r\nb\r\nc"), "a\nb\nc\n", None, 80),
            ("wide characters and controls", Some("日本\n"), "日本語\t\u{1b}[31m👩‍👩‍👧‍👦\n", None, 80),
            ("insertion at the begin", Some("b\n"), "a\nb\n", None, 80),
            ("all lines", Some("one\ntwo\n"), "1\n2\n3\n", Some(3), 80),
            ("beside", Some(OLD), NEW, None, 120),
            ("beside, with few lines", Some(OLD), NEW, Some(3), 120),
            ("beside, of long lines", Some(&format!("日本 {}\n", "a ".repeat(40))), "b\n", None, 120),
            ("wide, and only more", Some("b\n"), "a\nb\n", None, 120),
        ] {
            show(title, &diff("src/main.rs", old, new, limit, width), &mut res);
        }
        let mut colored = String::new();
        for line in diff("a.rs", Some(OLD), NEW, None, 80)
            .lines
            .iter()
            .chain(&diff("a.rs", None, "fn x() {}\n", None, 80).lines)
        {
            ansi::paint(line, true, &mut colored);
            colored.push('\n');
        }
        write!(res, "== colors\n{}", colored.replace("\u{1b}[0m", "⟧").replace("\u{1b}[", "⟦")).unwrap();
        expect_file!["diff.txt"].assert_eq(&res);
    }

    /// A line of tabs and one of blanks else look alike.
    #[test]
    fn tabs_are_drawn_where_the_indentation_changed() {
        let check = |old: &str, new: &str, width: usize, expected: &[&str]| {
            let lines = diff("Makefile", Some(old), new, None, width).lines;
            assert_eq!(lines.iter().map(Line::text).collect::<Vec<_>>(), expected);
        };
        let blanks = "all:\n    clang a\n";
        check("all:\n\tgcc a\n", blanks, 80, &["1   all:", "2 - →   gcc a", "2 +     clang a"]);
        check("\tif a:\n", "\t\tif a:\n", 80, &["1 - →   if a:", "1 + →   →   if a:"]);
        check("\tgcc a\n", "\tclang a\n", 80, &["1 -     gcc a", "1 +     clang a"]);
        check("  a\n", "    a\n", 80, &["1 -   a", "1 +     a"]);
        check("a\n", "a\n\tb\n", 80, &["1   a", "2 +     b"]);
        let beside = diff("a", Some("\ta\n"), "    a\n", None, 120).lines.iter().map(Line::text).collect::<String>();
        assert!(beside.starts_with("1 - →   a") && beside.ends_with("│ 1 +     a"), "{beside}");
    }

    #[test]
    fn large_files_are_bounded() {
        let large = "x\n".repeat(MAX_BYTES / 2);
        let view = diff("a", Some("x\n"), &large, None, 80);
        assert_eq!(
            view.lines.iter().map(Line::text).collect::<String>(),
            format!("too large to compare: 2 bytes before, {MAX_BYTES} bytes now")
        );
        let lines = |from: usize| (from..from + MAX_COMPARED).map(|it| format!("{it}\n")).collect::<String>();
        let view =
            diff("a", Some(&format!("same\n{}end\n", lines(0))), &format!("same\n{}end\n", lines(1)), Some(3), 80);
        assert_eq!((view.added, view.removed), (MAX_COMPARED, MAX_COMPARED));
        assert_eq!(view.lines.len(), 4);
        let word = "y".repeat(300_000);
        assert_eq!(diff("a", Some(&word), &format!("{word}z"), Some(20), 80).added, 1);
    }

    #[test]
    fn no_line_is_wider_than_the_width() {
        for width in [10, 11, 20, 40, 116, 120, 121, 300, usize::MAX] {
            for line in diff("a.rs", Some(OLD), NEW, None, width).lines {
                assert!(line.width() <= width, "{}", line.text());
            }
        }
    }
}
