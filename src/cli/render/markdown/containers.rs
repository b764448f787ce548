//! Block quotes and list items of Markdown: which of them a line belongs to, and which it opens.

use crate::cli::render::text::{Color, Line, Style};

/// Four blanks are code.
const MAX_INDENT: usize = 3;
const LEAST_SUBLIST: usize = 2;
const BULLETS: &[&str] = &["• ", "◦ ", "▪ "];

#[derive(Clone, Debug)]
pub enum Container {
    Quote,
    Item(Item),
}

#[derive(Clone, Debug)]
pub struct Item {
    /// Columns from the container's begin to the item's text.
    content: usize,
    /// The same to a list in it, at least: models often indent one less than the standard wants.
    sublist: usize,
    /// A bullet, or what stands behind the number.
    delimiter: char,
    number: Option<u64>,
    /// As it is shown. The first line of the item takes it.
    marker: Line,
    is_marked: bool,
}

impl Container {
    /// The rest of the line if it belongs to the container.
    pub fn strip<'a>(&self, line: &'a str) -> Option<&'a str> {
        match self {
            Self::Quote => strip_quote(line),
            Self::Item(_) if line.trim().is_empty() => Some(""),
            Self::Item(it) => {
                let indent = indent(line);
                let is_sublist = indent >= it.sublist && ListMarker::read(line).is_some();
                if indent >= it.content || is_sublist { line.get(indent.min(it.content)..) } else { None }
            }
        }
    }

    /// What stands before the next line of its text.
    pub fn take_prefix(&mut self) -> Line {
        match self {
            Self::Quote => Line::new("│ ", Style::DIM),
            Self::Item(it) if it.is_marked => Line::plain(&" ".repeat(it.marker.width())),
            Self::Item(it) => {
                it.is_marked = true;
                it.marker.clone()
            }
        }
    }

    /// What stands before an empty line between two blocks of it.
    pub fn gap_prefix(&self) -> Line {
        match self {
            Self::Quote => Line::new("│ ", Style::DIM),
            Self::Item(it) => Line::plain(&" ".repeat(it.marker.width())),
        }
    }

    pub fn width(&self) -> usize {
        match self {
            Self::Quote => 2,
            Self::Item(it) => it.marker.width(),
        }
    }

    pub fn is_unmarked_item(&self) -> bool {
        matches!(self, Self::Item(it) if !it.is_marked)
    }

    /// The item behind `self` in its list has the next number, whatever is written.
    fn next_number(&self, marker: &ListMarker) -> Option<u64> {
        match self {
            Self::Item(it) if it.delimiter == marker.delimiter => Some(it.number?.saturating_add(1)),
            _ => marker.number,
        }
    }
}

pub fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn strip_quote(line: &str) -> Option<&str> {
    if indent(line) > MAX_INDENT {
        return None;
    }
    let rest = line.trim_start_matches(' ').strip_prefix('>')?;
    Some(rest.strip_prefix(' ').unwrap_or(rest))
}

/// The container that a line opens, and the line's text in it. `before` is the container at this place up to now,
/// `depth` the number of lists around.
pub fn open<'a>(line: &'a str, before: Option<&Container>, depth: usize) -> Option<(Container, &'a str)> {
    if let Some(rest) = strip_quote(line) {
        return Some((Container::Quote, rest));
    }
    if is_rule(line) {
        return None;
    }
    let marker = ListMarker::read(line)?;
    let number = before.map_or(marker.number, |it| it.next_number(&marker));
    let (task, rest) = read_task(marker.rest);
    let shown = match (number, task) {
        (Some(number), _) => Line::plain(&format!("{number}{} ", marker.delimiter)),
        (None, Some(true)) => {
            let mut line = Line::plain("[");
            line.push("x", Style::color(Color::Green));
            line.push("] ", Style::PLAIN);
            line
        }
        (None, Some(false)) => Line::plain("[ ] "),
        (None, None) => Line::plain(BULLETS.get(depth % BULLETS.len()).unwrap_or(&"• ")),
    };
    let rest = if number.is_some() { marker.rest } else { rest };
    let item = Item {
        content: marker.content,
        sublist: indent(line) + LEAST_SUBLIST,
        delimiter: marker.delimiter,
        number,
        marker: shown,
        is_marked: false,
    };
    Some((Container::Item(item), rest))
}

/// Whether the line begins a list item or quote even in the middle of a paragraph.
pub fn interrupts(line: &str) -> bool {
    if strip_quote(line).is_some() {
        return true;
    }
    !is_rule(line)
        && ListMarker::read(line).is_some_and(|it| it.number.is_none_or(|it| it == 1) && !it.rest.trim().is_empty())
}

struct ListMarker<'a> {
    delimiter: char,
    number: Option<u64>,
    content: usize,
    rest: &'a str,
}

impl<'a> ListMarker<'a> {
    /// The indent is the caller's matter where it is more than three.
    fn read(line: &'a str) -> Option<Self> {
        let start = indent(line);
        let text = line.get(start..)?;
        let digits = text.len() - text.trim_start_matches(|it: char| it.is_ascii_digit()).len();
        let number =
            if digits == 0 { None } else { Some(text.get(..digits).filter(|it| it.len() < 10)?.parse().ok()?) };
        let behind = text.get(digits..)?;
        let delimiter = behind.chars().next()?;
        let is_right =
            if number.is_some() { matches!(delimiter, '.' | ')') } else { matches!(delimiter, '-' | '*' | '+') };
        let behind = behind.get(1..).filter(|it| is_right && (it.trim().is_empty() || it.starts_with(' ')))?;
        let blanks = match indent(behind) {
            // The blanks behind the first one are those of code.
            it if it > MAX_INDENT + 1 || behind.trim().is_empty() => it.min(1),
            it => it,
        };
        let marker = start + digits + 1;
        Some(Self { delimiter, number, content: marker + blanks.max(1), rest: behind.get(blanks..)? })
    }
}

fn read_task(text: &str) -> (Option<bool>, &str) {
    for (mark, is_done) in [("[ ] ", false), ("[x] ", true), ("[X] ", true)] {
        if let Some(rest) = text.strip_prefix(mark) {
            return (Some(is_done), rest);
        }
    }
    (None, text)
}

/// A line of three or more `-`, `*` or `_`: a rule, or the underline of a heading.
pub fn is_rule(line: &str) -> bool {
    let mut marks = line.chars().filter(|it| *it != ' ').peekable();
    let first = marks.peek().copied();
    indent(line) <= MAX_INDENT
        && matches!(first, Some('-' | '*' | '_'))
        && marks.clone().count() >= 3
        && marks.all(|it| Some(it) == first)
}

/// `# Heading`
pub fn is_heading(line: &str) -> bool {
    let text = line.trim_start_matches(' ');
    let rest = text.trim_start_matches('#');
    indent(line) <= MAX_INDENT
        && (1..=6).contains(&(text.len() - rest.len()))
        && (rest.is_empty() || rest.starts_with(' '))
}

pub fn is_indented_code(line: &str) -> bool {
    indent(line) > MAX_INDENT
}

/// The fence around code: its marks, and what stands behind them.
#[derive(Clone, Debug)]
pub struct Fence {
    mark: char,
    len: usize,
    indent: usize,
}

impl Fence {
    /// The fence, and the language of its code.
    pub fn open(line: &str) -> Option<(Self, &str)> {
        let indent = indent(line);
        let text = line.get(indent..)?;
        let mark = text.chars().next().filter(|it| indent <= MAX_INDENT && matches!(it, '`' | '~'))?;
        let info = text.trim_start_matches(mark);
        let len = text.len() - info.len();
        if len < 3 || (mark == '`' && info.contains('`')) {
            return None;
        }
        let language = info.trim().split([' ', ',', '{', ':']).next().unwrap_or_default();
        Some((Self { mark, len, indent }, language))
    }

    pub fn is_closed_by(&self, line: &str) -> bool {
        let text = line.trim();
        indent(line) <= MAX_INDENT && text.len() >= self.len && text.chars().all(|it| it == self.mark)
    }

    /// A line of the code without the indent of the fence.
    pub fn strip<'a>(&self, line: &'a str) -> &'a str {
        line.get(indent(line).min(self.indent)..).unwrap_or(line)
    }
}
