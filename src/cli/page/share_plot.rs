//! A plot of shares: one bar in parts, with a legend; and a bar in a cell of a table.

use super::{
    escape::{Text, put},
    figure::{N_COLORS, WIDTH, begin_bar, place, write_figure},
};

const HEIGHT: f64 = 22.0;
/// Parts with a colour of their own; the last is all the others.
const MAX_PARTS: usize = N_COLORS;
const OTHERS: &str = "others";

#[derive(Clone, Debug)]
pub struct SharePlot<'a> {
    pub title: &'a str,
    /// Names and values, the largest first.
    pub parts: Vec<(String, f64)>,
    pub in_words: fn(f64) -> String,
}

impl SharePlot<'_> {
    /// A figure; nothing where the shares have no sum.
    pub fn write(&self, out: &mut String) {
        let sum: f64 = self.parts.iter().map(|it| it.1).sum();
        if sum <= 0.0 {
            return;
        }
        let mut parts: Vec<(&str, f64)> = self.parts.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        if parts.len() > MAX_PARTS {
            let rest: f64 = parts.drain(MAX_PARTS - 1..).map(|it| it.1).sum();
            parts.push((OTHERS, rest));
        }
        parts.retain(|it| it.1 > 0.0);
        let words = |value: f64| format!("{}, {:.0} %", (self.in_words)(value), value / sum * 100.0);
        let mut legend = ":".to_owned();
        for (nth, (name, value)) in parts.iter().enumerate() {
            put(&mut legend, format_args!(" <i class=\"c{nth}\"></i>{} ({})", Text(name), Text(&words(*value))));
        }
        write_figure(self.title, &legend, HEIGHT, out, |out| {
            let mut left = 0.0;
            for (nth, (name, value)) in parts.iter().enumerate() {
                let width = value / sum * WIDTH;
                begin_bar(nth, left, 0.0, width, out);
                put(
                    out,
                    format_args!(
                        "height=\"{HEIGHT}\"><title>{}: {}</title></rect>\n",
                        Text(name),
                        Text(&words(*value))
                    ),
                );
                left += width;
            }
        });
    }
}

/// A bar in a cell, which is full where the share is 1.
pub fn write_bar(share: f64, out: &mut String) {
    let width = place(share.clamp(0.0, 1.0) * 100.0);
    out.push_str("<svg class=\"bar\" viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\" aria-hidden=\"true\">");
    put(out, format_args!("<rect class=\"c0\" x=\"0\" y=\"0\" width=\"{width}\" height=\"8\"/></svg>"));
}
