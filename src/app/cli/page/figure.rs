//! Frame of a plot: a figure with its caption, and in it the drawing.

use super::{
    axis::WIDTH,
    escape::{Text, put},
};

/// `legend` is HTML that stands behind the title; `draw` writes what the drawing holds.
pub fn write_figure(title: &str, legend: &str, height: f64, out: &mut String, draw: impl FnOnce(&mut String)) {
    put(out, format_args!("<figure>\n<figcaption>{}{legend}</figcaption>\n", Text(title)));
    put(out, format_args!("<svg class=\"plot\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" "));
    put(out, format_args!("aria-label=\"{}\">\n", Text(title)));
    draw(out);
    out.push_str("</svg>\n</figure>\n");
}
