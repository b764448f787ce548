//! Tables of Markdown as boxes: columns fit the width, cells wrap; narrow terminals get `key: value` lines.

use pulldown_cmark::Alignment;

use crate::cli::render::{
    text::{Line, Style},
    wrap::wrap,
};

/// Below it a box has no room for words.
const MIN_BOX: usize = 30;
/// Least columns of a cell that has to wrap.
const MIN_COLUMN: usize = 6;
/// Columns of a border and its blanks, for each cell.
const BORDER: usize = 3;

/// Lines of a cell before they are wrapped.
type Cell = Vec<Line>;

#[derive(Debug)]
pub struct Table {
    alignments: Vec<Alignment>,
    /// The first one is the head.
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub fn new(alignments: Vec<Alignment>) -> Self {
        Self { alignments, rows: Vec::new() }
    }

    pub fn start_row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub fn add_cell(&mut self, mut cell: Cell) {
        let is_head = self.rows.len() == 1;
        for span in cell.iter_mut().flat_map(|it| &mut it.spans).filter(|_| is_head) {
            span.style.bold = true;
        }
        if let Some(row) = self.rows.last_mut() {
            row.push(cell);
        }
    }

    pub fn render(&self, width: usize) -> Vec<Line> {
        match self.fit_columns(width) {
            Some(columns) => self.render_box(&columns),
            None => self.render_pairs(width),
        }
    }

    /// Columns of each cell; nothing if they do not fit.
    fn fit_columns(&self, width: usize) -> Option<Vec<usize>> {
        let count = self.alignments.len();
        let mut columns = vec![1; count];
        for row in &self.rows {
            for (column, cell) in columns.iter_mut().zip(row) {
                *column = cell.iter().map(Line::width).chain([*column]).max().unwrap_or(1);
            }
        }
        let room = width.checked_sub(count * BORDER + 1)?;
        let mut excess = columns.iter().sum::<usize>().saturating_sub(room);
        if excess > 0 && width < MIN_BOX {
            return None;
        }
        // The widest give first.
        while excess > 0 {
            let widest = columns.iter_mut().max().filter(|it| **it > MIN_COLUMN)?;
            *widest -= 1;
            excess -= 1;
        }
        Some(columns)
    }

    fn render_box(&self, columns: &[usize]) -> Vec<Line> {
        let rows: Vec<Vec<Cell>> = self.rows.iter().map(|it| wrap_cells(it, columns)).collect();
        let is_wrapped = rows.iter().skip(1).flatten().any(|it| it.len() > 1);
        let mut res = vec![border(columns, ["┌", "┬", "┐"])];
        for (i, row) in rows.iter().enumerate() {
            if i == 1 || (i > 1 && is_wrapped) {
                res.push(border(columns, ["├", "┼", "┤"]));
            }
            let height = row.iter().map(Vec::len).max().unwrap_or(1).max(1);
            res.extend((0..height).map(|at| self.row_line(row, at, columns)));
        }
        res.push(border(columns, ["└", "┴", "┘"]));
        res
    }

    /// One line of a row of cells.
    fn row_line(&self, row: &[Cell], at: usize, columns: &[usize]) -> Line {
        let mut res = Line::new("│", Style::DIM);
        for (i, column) in columns.iter().enumerate() {
            let line = row.get(i).and_then(|it| it.get(at)).cloned().unwrap_or_default();
            let free = column.saturating_sub(line.width());
            let left = match self.alignments.get(i) {
                Some(Alignment::Right) => free,
                Some(Alignment::Center) => free / 2,
                _ => 0,
            };
            res.push(&" ".repeat(left + 1), Style::PLAIN);
            res.spans.extend(line.spans);
            res.push(&" ".repeat(free - left + 1), Style::PLAIN);
            res.push("│", Style::DIM);
        }
        res
    }

    fn render_pairs(&self, width: usize) -> Vec<Line> {
        let mut rows = self.rows.iter();
        let Some(head) = rows.next() else { return Vec::new() };
        let mut res = Vec::new();
        for row in rows {
            if !res.is_empty() {
                res.push(Line::default());
            }
            for (key, value) in head.iter().zip(row) {
                let mut line = join(key);
                if !line.spans.is_empty() {
                    line.push(": ", Style::PLAIN);
                }
                line.spans.extend(join(value).spans);
                res.extend(wrap(&line, width, "  "));
            }
        }
        if res.is_empty() {
            res.extend(head.iter().flat_map(|it| wrap(&join(it), width, "  ")));
        }
        res
    }
}

fn wrap_cells(row: &[Cell], columns: &[usize]) -> Vec<Cell> {
    let cells = row.iter().zip(columns);
    cells.map(|(cell, column)| cell.iter().flat_map(|it| wrap(it, *column, "")).collect()).collect()
}

fn border(columns: &[usize], [left, middle, right]: [&str; 3]) -> Line {
    let dashes: Vec<String> = columns.iter().map(|it| "─".repeat(it + BORDER - 1)).collect();
    Line::new(&format!("{left}{}{right}", dashes.join(middle)), Style::DIM)
}

/// The lines of a cell as one.
fn join(cell: &Cell) -> Line {
    let mut res = Line::default();
    for line in cell {
        if !res.spans.is_empty() {
            res.push(" ", Style::PLAIN);
        }
        res.spans.extend(line.spans.iter().cloned());
    }
    res
}
