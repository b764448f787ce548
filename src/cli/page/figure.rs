//! Shared parts of all plots: a figure with its caption, the measures of the drawing, and the beginning of a bar.

use super::escape::{Text, put};

/// Columns of the drawing; it is as wide as the page at last.
pub const WIDTH: f64 = 720.0;
/// Where a drawing begins that has labels beside it.
pub const LEFT: f64 = 64.0;
/// Colours that `plot.css` has.
pub const N_COLORS: usize = 8;

/// `legend` is HTML that stands behind the title; `draw` writes what the drawing holds.
pub fn write_figure(title: &str, legend: &str, height: f64, out: &mut String, draw: impl FnOnce(&mut String)) {
    put(out, format_args!("<figure>\n<figcaption>{}{legend}</figcaption>\n", Text(title)));
    put(out, format_args!("<svg class=\"plot\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" "));
    put(out, format_args!("aria-label=\"{}\">\n", Text(title)));
    draw(out);
    out.push_str("</svg>\n</figure>\n");
}

/// `12.5`: a place in a drawing, to a tenth.
pub fn place(it: f64) -> String {
    // A zero has no sign.
    let text = format!("{:.1}", (it * 10.0).round() / 10.0 + 0.0);
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// A bar, up to its height and what it holds.
pub fn begin_bar(color: usize, x: f64, y: f64, width: f64, out: &mut String) {
    put(out, format_args!("<rect class=\"c{}\" x=\"{}\" ", color % N_COLORS, place(x)));
    put(out, format_args!("y=\"{}\" width=\"{}\" ", place(y), place(width)));
}
