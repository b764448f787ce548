//! A plot of columns: a value, or several upon each other, for each day or turn.

use super::{
    axis::round_end,
    escape::{Text, put},
    figure::{LEFT, N_COLORS, WIDTH, begin_bar, place, write_figure},
};

const HEIGHT: f64 = 150.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 20.0;
const MAX_BAR: f64 = 40.0;
/// More columns than this are drawn as sums of neighbours.
const MAX_COLUMNS: usize = 160;
/// Labels below the columns.
const MAX_LABELS: usize = 8;
/// Between the first and the last of columns that are one.
const TO: &str = " – ";

/// A column: what it is of, and a value of each series from the bottom up.
#[derive(Clone, Debug)]
pub struct PlotColumn {
    pub label: String,
    pub values: Vec<f64>,
}

#[derive(Clone, Debug)]
pub struct ColumnPlot<'a> {
    pub title: &'a str,
    /// Names of the values of a column, with the numbers of their colours.
    pub series: &'a [(&'a str, usize)],
    pub columns: Vec<PlotColumn>,
    pub in_words: fn(f64) -> String,
}

impl ColumnPlot<'_> {
    /// A figure; nothing where there is nothing but zeros.
    pub fn write(&self, out: &mut String) {
        let columns = merged(&self.columns);
        let most = columns.iter().map(|it| it.values.iter().sum::<f64>()).fold(0.0, f64::max);
        if most <= 0.0 {
            return;
        }
        let end = round_end(most);
        let mut legend = String::new();
        for (name, color) in self.series.iter().filter(|_| self.series.len() > 1) {
            put(&mut legend, format_args!("<i class=\"c{}\"></i>{}", color % N_COLORS, Text(name)));
        }
        write_figure(self.title, &legend, HEIGHT, out, |out| self.write_drawing(&columns, end, out));
    }

    fn write_drawing(&self, columns: &[PlotColumn], end: f64, out: &mut String) {
        self.write_scale(end, out);
        let step = (WIDTH - LEFT) / columns.len() as f64;
        let every = columns.len().div_ceil(MAX_LABELS);
        for (nth, column) in columns.iter().enumerate() {
            let left = LEFT + step * nth as f64;
            self.write_column(column, [left, step, end], out);
            if nth % every == 0 {
                let (x, y) = (place(left + step / 2.0), HEIGHT - 4.0);
                let label = column.label.split(TO).next().unwrap_or_default();
                put(out, format_args!("<text class=\"mid\" x=\"{x}\" y=\"{y}\">{}</text>\n", Text(label)));
            }
        }
    }

    fn write_scale(&self, end: f64, out: &mut String) {
        for part in [0.0, 0.5, 1.0] {
            let y = place(HEIGHT - BOTTOM - part * (HEIGHT - BOTTOM - TOP));
            put(out, format_args!("<line x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{y}\" y2=\"{y}\"/>"));
            let words = (self.in_words)(end * part);
            put(out, format_args!("<text class=\"end\" x=\"{}\" y=\"{y}\">{}</text>\n", LEFT - 6.0, Text(&words)));
        }
    }

    /// `left`, `step` and `end`: where its room begins, how wide that is, and the end of the scale.
    fn write_column(&self, column: &PlotColumn, [left, step, end]: [f64; 3], out: &mut String) {
        let room = HEIGHT - BOTTOM - TOP;
        put(out, format_args!("<g><title>{}: {}</title>", Text(&column.label), Text(&self.values_in_words(column))));
        put(out, format_args!("<rect class=\"hit\" x=\"{}\" y=\"{TOP}\" ", place(left)));
        put(out, format_args!("width=\"{}\" height=\"{}\"/>", place(step), place(room)));
        let width = (step * 0.8).min(MAX_BAR);
        let (x, mut top) = (left + (step - width) / 2.0, HEIGHT - BOTTOM);
        for (value, (_, color)) in column.values.iter().zip(self.series) {
            let height = (value / end * room).max(0.0);
            top -= height;
            if *value > 0.0 {
                begin_bar(*color, x, top, width, out);
                put(out, format_args!("height=\"{}\"/>", place(height.max(0.5))));
            }
        }
        out.push_str("</g>\n");
    }

    fn values_in_words(&self, column: &PlotColumn) -> String {
        let value = |(value, (name, _)): (&f64, &(&str, usize))| match self.series.len() {
            1 => (self.in_words)(*value),
            _ => format!("{name} {}", (self.in_words)(*value)),
        };
        column.values.iter().zip(self.series).map(value).collect::<Vec<_>>().join(", ")
    }
}

/// As many columns as can be told apart.
fn merged(columns: &[PlotColumn]) -> Vec<PlotColumn> {
    let size = columns.len().div_ceil(MAX_COLUMNS).max(1);
    let merge = |part: &[PlotColumn]| {
        let [first, last] = [part.first(), part.last()].map(|it| it.map_or("", |it| it.label.as_str()));
        let label = if part.len() == 1 { first.to_owned() } else { format!("{first}{TO}{last}") };
        let n = part.iter().map(|it| it.values.len()).max().unwrap_or_default();
        let sum = |nth: usize| part.iter().filter_map(|it| it.values.get(nth)).sum();
        PlotColumn { label, values: (0..n).map(sum).collect() }
    };
    columns.chunks(size).map(merge).collect()
}
