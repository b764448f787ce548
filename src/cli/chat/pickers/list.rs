//! The list that pickers share: rows under headings, a search, a preview of the highlighted row.

use crate::cli::{
    chat::{
        composer::folds::plain,
        lower::{Drawn, Key, Theme},
    },
    render::{
        clip::{clip, with_end},
        text::{Line, Style},
        wrap::wrap,
    },
    terminal_text::clean_line,
};

/// Characters of a label and of a line of a preview.
const MAX_LABEL: usize = 400;
const MAX_QUERY: usize = 200;
const MAX_PREVIEW: usize = 30;
/// From here on a preview stands at the right; below it needs rows.
const WIDE: usize = 100;
const MIN_HEIGHT: usize = 12;
const ROWS_BELOW: usize = 4;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PickRow {
    /// Rows that follow each other with the same heading stand under it once.
    pub heading: String,
    pub label: String,
    /// At the right end, never cut.
    pub detail: String,
    /// What a search looks through besides the label.
    pub words: String,
    pub preview: Vec<String>,
    /// Of what the row stands for: the line that has the words.
    pub found_line: Option<String>,
}

/// What a key did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PickAnswer {
    Open,
    /// This row.
    Chosen(usize),
    Closed,
    /// The key means nothing to a list.
    Other,
}

#[derive(Debug, Default)]
pub struct PickList {
    title: String,
    rows: Vec<PickRow>,
    /// Typed characters search; without it they are the picker's own keys.
    has_search: bool,
    query: String,
    /// The rows that have the words, and which of them is highlighted.
    found: Vec<usize>,
    at: usize,
}

impl PickList {
    pub fn new(title: &str, rows: Vec<PickRow>) -> Self {
        let found = (0..rows.len()).collect();
        Self { title: title.to_owned(), rows, found, ..Self::default() }
    }

    pub fn with_search(self) -> Self {
        Self { has_search: true, ..self }
    }

    pub fn highlighting(self, row: usize) -> Self {
        Self { at: row.min(self.found.len().saturating_sub(1)), ..self }
    }

    pub fn highlighted(&self) -> Option<usize> {
        self.found.get(self.at).copied()
    }

    pub fn key(&mut self, key: &Key, page: usize) -> PickAnswer {
        let last = self.found.len().saturating_sub(1);
        match key {
            Key::Up | Key::Ctrl('p') => self.at = if self.at == 0 { last } else { self.at - 1 },
            Key::Down | Key::Ctrl('n') => self.at = if self.at >= last { 0 } else { self.at + 1 },
            Key::PageUp => self.at = self.at.saturating_sub(page),
            Key::PageDown => self.at = (self.at + page).min(last),
            Key::Home => self.at = 0,
            Key::End => self.at = last,
            Key::Enter => return self.highlighted().map_or(PickAnswer::Open, PickAnswer::Chosen),
            Key::Esc if self.query.is_empty() => return PickAnswer::Closed,
            Key::Esc | Key::Ctrl('u') => self.search(String::new()),
            Key::Char(it) if self.has_search => self.search(format!("{}{it}", self.query)),
            Key::Paste(it) if self.has_search => {
                let words = plain(it).replace('\n', " ");
                self.search(format!("{}{words}", self.query));
            }
            Key::Backspace if self.has_search => {
                let mut query = std::mem::take(&mut self.query);
                query.pop();
                self.search(query);
            }
            _ => return PickAnswer::Other,
        }
        PickAnswer::Open
    }

    pub fn query(&self) -> &str {
        &self.query
    }

    /// Rows whose contents have the words, each with the line that has them. What is highlighted stays so.
    pub fn add_found(&mut self, query: &str, lines: Vec<(usize, String)>) {
        if query != self.query {
            return;
        }
        let highlighted = self.highlighted();
        for (at, line) in lines {
            let Some(row) = self.rows.get_mut(at) else { continue };
            row.found_line = Some(line);
            self.found.push(at);
        }
        self.found.sort_unstable();
        self.found.dedup();
        self.at = highlighted.and_then(|row| self.found.iter().position(|it| *it == row)).unwrap_or_default();
    }

    /// Rows that have all the words, in any case and order.
    fn search(&mut self, query: String) {
        self.rows.iter_mut().for_each(|it| it.found_line = None);
        self.query = query.chars().take(MAX_QUERY).collect();
        let words: Vec<String> = self.query.split_whitespace().map(str::to_lowercase).collect();
        let has_all = |it: &PickRow| {
            let text = format!("{}\n{}\n{}\n{}", it.label, it.detail, it.words, it.heading).to_lowercase();
            words.iter().all(|it| text.contains(it))
        };
        self.found = self.rows.iter().enumerate().filter(|it| has_all(it.1)).map(|it| it.0).collect();
        self.at = 0;
    }

    /// `keys` says in the last line what other keys do.
    pub fn draw(&self, width: u16, height: u16, keys: &str) -> Drawn {
        let (width, height) = (usize::from(width), usize::from(height));
        if width == 0 || height == 0 {
            return Drawn::default();
        }
        let mut title = Line::new(&self.title, Theme::ACCENT);
        if self.has_search {
            title.push("  search: ", Theme::HINT);
            title.push(&self.query, Style::PLAIN);
        }
        let column = title.width().min(width.saturating_sub(1));
        let cursor = self.has_search.then(|| (0, u16::try_from(column).unwrap_or(u16::MAX)));
        let mut lines = vec![clip(&title, width)];
        let room = height.saturating_sub(2);
        let preview = self.preview();
        if width >= WIDE && !preview.is_empty() {
            lines.extend(self.beside(&preview, width, room));
        } else {
            let below = if height >= MIN_HEIGHT { preview.len().min(ROWS_BELOW) } else { 0 };
            lines.extend(self.draw_rows(width, room.saturating_sub(below)));
            lines.extend(preview.iter().take(below).map(|it| clip(&Line::new(&format!("  {it}"), Theme::HINT), width)));
        }
        lines.push(clip(&Line::new(keys, Theme::HINT), width));
        lines.truncate(height);
        Drawn { lines, cursor }
    }

    fn preview(&self) -> Vec<String> {
        let row = self.highlighted().and_then(|it| self.rows.get(it));
        let lines = row.into_iter().flat_map(|it| it.found_line.iter().chain(&it.preview));
        lines.map(|it| clean_line(it, MAX_LABEL)).collect()
    }

    fn beside(&self, preview: &[String], width: usize, room: usize) -> Vec<Line> {
        let left = width / 2;
        let right = width - left - 3;
        let mut rows = self.draw_rows(left, room);
        let wrapped = preview.iter().take(MAX_PREVIEW).flat_map(|it| wrap(&Line::new(it, Theme::HINT), right, ""));
        let wrapped: Vec<Line> = wrapped.take(room).collect();
        rows.resize(rows.len().max(wrapped.len()), Line::default());
        for (row, text) in rows.iter_mut().zip(wrapped.into_iter().chain(std::iter::repeat(Line::default()))) {
            row.push(&" ".repeat(left.saturating_sub(row.width())), Style::PLAIN);
            row.push(" │ ", Theme::BORDER);
            row.spans.extend(text.spans);
        }
        rows
    }

    /// Headings and rows around the highlighted one.
    fn draw_rows(&self, width: usize, room: usize) -> Vec<Line> {
        if self.found.is_empty() {
            let text = if self.rows.is_empty() { "  nothing here" } else { "  nothing found" };
            return [clip(&Line::new(text, Theme::HINT), width)].into_iter().take(room).collect();
        }
        let (mut lines, mut heading, mut here) = (Vec::new(), "", 0);
        for (at, row) in self.found.iter().enumerate().filter_map(|(at, it)| Some((at, self.rows.get(*it)?))) {
            if row.heading != heading {
                heading = &row.heading;
                lines.push(clip(&Line::new(&clean_line(heading, MAX_LABEL), Theme::HINT), width));
            }
            if at == self.at {
                here = lines.len();
            }
            lines.push(draw_row(row, at == self.at, width));
        }
        let first = (here + 1).saturating_sub(room.div_ceil(2)).min(lines.len().saturating_sub(room));
        let mut shown: Vec<Line> = lines.drain(first..).take(room).collect();
        // What does not fit above is said, unless it would hide the row itself.
        if first > 0 && shown.len() > 2 && here > first {
            shown.splice(..1, [clip(&Line::new(&format!("  … {first} more above"), Theme::HINT), width)]);
        }
        shown
    }
}

fn draw_row(row: &PickRow, is_highlighted: bool, width: usize) -> Line {
    let mut line = Line::new(if is_highlighted { "› " } else { "  " }, Theme::ACCENT);
    line.push(&clean_line(&row.label, MAX_LABEL), if is_highlighted { Style::BOLD } else { Style::PLAIN });
    let detail = clean_line(&row.detail, MAX_LABEL);
    let end = if detail.is_empty() { Line::default() } else { Line::new(&detail, Theme::HINT) };
    // On a narrow screen the label matters more.
    if end.width() * 2 > width { clip(&line, width) } else { clip(&with_end(line, end, width), width) }
}
