//! Parts that castor's HTML pages share: escapes, and plots as SVG text. Numbers in, text out.

pub mod axis;
pub mod column_plot;
pub mod escape;
pub mod figure;
pub mod share_plot;
pub mod strip_plot;

/// Colours and text of the plots; a page has `--ink`, `--dim`, `--line` and `--paper` of its own.
pub const PLOT_STYLE: &str = include_str!("plot.css");

#[cfg(test)]
pub mod tests;
