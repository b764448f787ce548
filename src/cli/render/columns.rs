//! Tables on a terminal: columns as wide as their cells, of which the last ones give way on a narrow terminal.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::text::{Line, Style};
use castor_base::path::AbsPath;

/// Between two columns.
const GAP: usize = 2;

/// A column of a table but the last one, which takes the room that is left.
pub struct TableColumn {
    pub heading: &'static str,
    pub cells: Vec<String>,
    pub style: Style,
    pub is_number: bool,
    /// It stays, however narrow the terminal is.
    pub is_needed: bool,
}

impl TableColumn {
    pub fn new(heading: &'static str, cells: Vec<String>, style: Style) -> Self {
        Self { heading, cells, style, is_number: false, is_needed: false }
    }

    fn width(&self) -> usize {
        self.cells.iter().map(|it| it.width()).max().unwrap_or_default().max(self.heading.width())
    }
}

/// Removes columns that can be spared, from the right, until `last` columns are left for the last one. Returns how many
/// there are for it.
pub fn fit(columns: &mut Vec<TableColumn>, last: usize, width: usize) -> usize {
    let total = |columns: &[TableColumn]| columns.iter().map(|it| it.width() + GAP).sum::<usize>();
    while total(columns) + last > width
        && let Some(at) = columns.iter().rposition(|it| !it.is_needed)
    {
        columns.remove(at);
    }
    width.saturating_sub(total(columns))
}

/// The headings of all columns.
pub fn headings(columns: &[TableColumn]) -> Line {
    let mut line = Line::default();
    for it in columns {
        push_cell(&mut line, it.heading, it, Style::BOLD);
    }
    line
}

/// The cells of a row.
pub fn row(columns: &[TableColumn], at: usize) -> Line {
    let mut line = Line::default();
    for it in columns {
        push_cell(&mut line, it.cells.get(at).map_or("", String::as_str), it, it.style);
    }
    line
}

fn push_cell(line: &mut Line, text: &str, column: &TableColumn, style: Style) {
    let pad = " ".repeat(column.width().saturating_sub(text.width()));
    let gap = " ".repeat(GAP);
    let (before, after) = if column.is_number { (pad, gap) } else { (String::new(), pad + &gap) };
    line.push(&before, Style::PLAIN);
    line.push(text, style);
    line.push(&after, Style::PLAIN);
}

/// The path with `~` for the home.
pub fn in_home(cwd: &AbsPath, home: Option<&AbsPath>) -> String {
    match home.and_then(|home| cwd.as_path().strip_prefix(home.as_path()).ok()) {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", rest.display()),
        None => cwd.to_string(),
    }
}

/// The text in at most `width` columns, with an ellipsis where it was longer.
pub fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut used = 1;
    let fits = |it: &&str| {
        used += it.width();
        used <= width
    };
    let head: String = text.graphemes(true).take_while(fits).collect();
    format!("{}…", head.trim_end())
}

/// The same of the end of the text.
pub fn cut_start(text: &str, width: usize) -> String {
    let mut used = 1;
    let fits = |it: &&str| {
        used += it.width();
        used <= width
    };
    match text.width() <= width {
        true => text.to_owned(),
        false => {
            let mut end: Vec<&str> = text.graphemes(true).rev().take_while(fits).collect();
            end.reverse();
            format!("…{}", end.concat())
        }
    }
}
