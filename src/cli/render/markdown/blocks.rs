//! Blocks of Markdown read line by line: paragraphs, fenced code and list items are rendered as soon as they end.

use super::{
    MAX_OPEN,
    containers::{Container, Fence, interrupts, is_heading, is_indented_code, is_rule, open},
    leaf,
};
use crate::cli::{
    render::{highlight::Highlighter, text::Line, wrap::wrap},
    terminal_text::clean,
};

const MAX_DEPTH: usize = 24;
const TAB: usize = 4;
const CODE_INDENT: &str = "  ";

#[derive(Clone, Debug)]
enum Leaf {
    None,
    /// A paragraph, heading, table or the like, as it is written.
    Text(String),
    Code(Fence, Box<Highlighter>),
}

#[derive(Clone, Debug)]
pub struct Blocks {
    width: usize,
    containers: Vec<Container>,
    leaf: Leaf,
    /// The last line was cut in its middle: the next one is its rest.
    is_cut: bool,
    /// Header and delimiter row of a table that was too long to be shown at once.
    table_head: Option<String>,
    gap: Gap,
    done: Vec<Line>,
    /// Bytes that pulldown-cmark has read.
    pub(super) parsed: usize,
}

/// Whether an empty line comes before the next block.
#[derive(Clone, Debug, Default)]
struct Gap {
    /// Some block stands before.
    is_between: bool,
    is_due: bool,
    /// Containers around both blocks.
    depth: usize,
}

impl Blocks {
    pub fn new(width: usize) -> Self {
        let (containers, done, gap) = (Vec::new(), Vec::new(), Gap::default());
        Self { width, containers, leaf: Leaf::None, is_cut: false, table_head: None, gap, done, parsed: 0 }
    }

    /// Lines that were not taken yet.
    pub fn line_count(&self) -> usize {
        self.done.len()
    }

    pub fn take_lines(&mut self) -> Vec<Line> {
        std::mem::take(&mut self.done)
    }

    /// Ends all that is open.
    pub fn finish(&mut self) -> Vec<Line> {
        self.close_leaf();
        self.close_containers(0);
        let res = self.take_lines();
        *self = Self { parsed: self.parsed, ..Self::new(self.width) };
        res
    }

    /// A line with its line end. Without one it is a part of a long line.
    pub fn add_line(&mut self, line: &str) {
        let was_cut = std::mem::replace(&mut self.is_cut, !line.ends_with('\n'));
        // Before Markdown cuts an escape sequence in two.
        let line = expand_tabs(clean(line).trim_end_matches(['\n', '\r']));
        if was_cut {
            return self.add_rest(&line);
        }
        let (matched, rest) = self.match_containers(&line);
        let is_inside = matched == self.containers.len();
        if is_inside && matches!(self.leaf, Leaf::Code(..)) {
            return self.add_code(rest);
        }
        if rest.trim().is_empty() {
            self.close_containers(matched);
            self.close_leaf();
            self.gap.is_due = true;
            return;
        }
        let is_paragraph = matches!(self.leaf, Leaf::Text(_));
        if !is_inside && is_paragraph && !starts_block(rest) {
            // The paragraph goes on, although its quote or item is not repeated.
            return self.add_text(rest.trim_start_matches(' '));
        }
        let before = self.containers.get(matched).cloned();
        self.close_containers(matched);
        let rest = self.open_containers(rest, before);
        if !rest.trim().is_empty() {
            self.add_block_line(rest);
        }
    }

    fn match_containers<'a>(&self, line: &'a str) -> (usize, &'a str) {
        let mut rest = line;
        for (i, container) in self.containers.iter().enumerate() {
            match container.strip(rest) {
                Some(it) => rest = it,
                None => return (i, rest),
            }
        }
        (self.containers.len(), rest)
    }

    /// `before` is the container that the line has ended.
    fn open_containers<'a>(&mut self, line: &'a str, mut before: Option<Container>) -> &'a str {
        let mut rest = line;
        while self.containers.len() < MAX_DEPTH && !is_indented_code(rest) {
            if matches!(self.leaf, Leaf::Text(_)) && !interrupts(rest) {
                break;
            }
            let depth = self.containers.iter().filter(|it| matches!(it, Container::Item(_))).count();
            let Some((container, text)) = open(rest, before.take().as_ref(), depth) else { break };
            self.close_leaf();
            self.containers.push(container);
            rest = text;
        }
        rest
    }

    fn add_block_line(&mut self, line: &str) {
        if let Some((fence, language)) = Fence::open(line) {
            self.close_leaf();
            self.gap.is_due |= self.containers.is_empty();
            self.leaf = Leaf::Code(fence, Box::new(Highlighter::new(language)));
            return;
        }
        if is_heading(line) {
            self.close_leaf();
            self.add_text(line);
            return self.close_leaf();
        }
        let is_first = matches!(self.leaf, Leaf::None);
        // Shown as it is: what it defines may be used before and behind.
        let is_definition = is_first && line.trim_start().starts_with('[') && line.contains("]:");
        if is_definition {
            self.add_text(&format!("\\{}", line.trim_start()));
        } else {
            self.add_text(line);
        }
        let is_underline = !is_first && line.trim().chars().all(|it| it == '=');
        if is_definition || is_underline || is_rule(line) {
            self.close_leaf();
        }
    }

    fn add_text(&mut self, line: &str) {
        match &mut self.leaf {
            Leaf::Text(text) => {
                text.push('\n');
                text.push_str(line);
            }
            _ => self.leaf = Leaf::Text(line.to_owned()),
        }
        self.bound_text();
    }

    /// More of a line that was cut.
    fn add_rest(&mut self, rest: &str) {
        match &mut self.leaf {
            Leaf::Code(..) => return self.add_code_line(rest),
            Leaf::Text(text) => text.push_str(rest),
            // No mark of a block: it stands within a line.
            Leaf::None if rest.starts_with(|it: char| it.is_ascii_punctuation()) => {
                self.leaf = Leaf::Text(format!("\\{rest}"));
            }
            Leaf::None => self.leaf = Leaf::Text(rest.trim_start().to_owned()),
        }
        self.bound_text();
    }

    fn bound_text(&mut self) {
        let Leaf::Text(text) = &self.leaf else { return };
        if text.len() < MAX_OPEN {
            return;
        }
        let head = leaf::table_head(text);
        self.close_leaf();
        // The table goes on below its head, which is repeated.
        if let Some(head) = head.filter(|it| it.len() < MAX_OPEN / 2) {
            self.table_head = Some(head.clone());
            self.leaf = Leaf::Text(head);
        }
    }

    fn add_code(&mut self, line: &str) {
        let Leaf::Code(fence, _) = &self.leaf else { return };
        if fence.is_closed_by(line) {
            self.leaf = Leaf::None;
            self.gap.is_due |= self.containers.is_empty();
            return;
        }
        let line = fence.strip(line).to_owned();
        self.add_code_line(&line);
    }

    fn add_code_line(&mut self, code: &str) {
        let Leaf::Code(_, highlighter) = &mut self.leaf else { return };
        let mut line = Line::plain(CODE_INDENT);
        line.spans.extend(highlighter.line(code).spans);
        let lines = if code.trim().is_empty() {
            vec![Line::default()]
        } else {
            wrap(&line, self.text_width(), &CODE_INDENT.repeat(2))
        };
        self.put(lines);
    }

    fn close_containers(&mut self, len: usize) {
        if self.containers.len() == len {
            return;
        }
        self.close_leaf();
        while self.containers.len() > len {
            if self.containers.last().is_some_and(Container::is_unmarked_item) {
                self.put(vec![Line::default()]);
            }
            self.containers.pop();
        }
        self.gap.depth = self.gap.depth.min(len);
    }

    fn close_leaf(&mut self) {
        let Leaf::Text(text) = std::mem::replace(&mut self.leaf, Leaf::None) else { return };
        // Nothing came behind the head that is repeated.
        if self.table_head.take().is_some_and(|it| it == text) {
            return;
        }
        self.parsed += text.len();
        let view = leaf::render(&text, self.text_width());
        self.gap.is_due |= view.is_heading;
        self.put(view.lines);
        self.gap.is_due |= view.is_heading;
    }

    /// Columns within the containers.
    fn text_width(&self) -> usize {
        let prefix: usize = self.containers.iter().skip(self.unshown()).map(Container::width).sum();
        self.width - prefix
    }

    /// Containers on the outside for which there is no room.
    fn unshown(&self) -> usize {
        let mut width: usize = self.containers.iter().map(Container::width).sum();
        for (i, container) in self.containers.iter().enumerate() {
            if width <= self.width / 2 {
                return i;
            }
            width -= container.width();
        }
        self.containers.len()
    }

    fn put(&mut self, lines: Vec<Line>) {
        if lines.is_empty() {
            return;
        }
        let unshown = self.unshown();
        if self.gap.is_between && self.gap.is_due {
            let shared = self.containers.iter().take(self.gap.depth).skip(unshown);
            let spans = shared.flat_map(|it| it.gap_prefix().spans).collect();
            self.done.push(trim_end(Line { spans }));
        }
        for line in lines {
            let containers = self.containers.iter_mut().map(Container::take_prefix).skip(unshown);
            let mut spans: Vec<_> = containers.flat_map(|it| it.spans).collect();
            spans.extend(line.spans);
            self.done.push(trim_end(Line { spans }));
        }
        self.gap = Gap { is_between: true, is_due: false, depth: self.containers.len() };
    }
}

fn starts_block(line: &str) -> bool {
    !is_indented_code(line)
        && (interrupts_all(line) || is_heading(line) || is_rule(line) || Fence::open(line).is_some())
}

/// Behind an item that has ended, any number begins an item.
fn interrupts_all(line: &str) -> bool {
    interrupts(line) || open(line, None, 0).is_some()
}

fn trim_end(mut line: Line) -> Line {
    while line.spans.last().is_some_and(|it| it.text().trim().is_empty() && it.link().is_none()) {
        line.spans.pop();
    }
    if let Some(last) = line.spans.pop() {
        line.append(last.text().trim_end(), &last);
    }
    line
}

/// Blanks up to the next stop, so that columns can be counted.
fn expand_tabs(line: &str) -> String {
    let mut res = String::with_capacity(line.len());
    let mut column = 0;
    for it in line.chars() {
        let width = if it == '\t' { TAB - column % TAB } else { 1 };
        if it == '\t' {
            res.push_str(&" ".repeat(width))
        } else {
            res.push(it)
        }
        column += width;
    }
    res
}
