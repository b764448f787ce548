//! ANSI escape sequences for styled lines, and whether colour is wanted (`NO_COLOR`, `CLICOLOR_FORCE`, `TERM=dumb`).

use clap::ValueEnum;

use super::text::{Color, Line, Span, Style};

/// What colours are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Palette {
    /// The sixteen colours that the terminal's own theme defines
    #[default]
    Terminal,
    /// Bright colours for a dark background
    Dark,
    /// Deep colours for a light background
    Light,
}

impl Palette {
    fn code(self, color: Color) -> Option<&'static str> {
        // The others are of the 256 colours that nearly every terminal has.
        let [terminal, dark, light] = match color {
            Color::Default => return None,
            Color::Red => ["31", "38;5;203", "38;5;160"],
            Color::Green => ["32", "38;5;114", "38;5;28"],
            Color::Yellow => ["33", "38;5;221", "38;5;130"],
            Color::Blue => ["34", "38;5;111", "38;5;25"],
            Color::Magenta => ["35", "38;5;176", "38;5;127"],
            Color::Cyan => ["36", "38;5;80", "38;5;30"],
            Color::Gray => ["90", "38;5;245", "38;5;242"],
        };
        Some(match self {
            Self::Terminal => terminal,
            Self::Dark => dark,
            Self::Light => light,
        })
    }
}

/// Appends the line without its line end. Without `color` it is only the text.
pub fn paint(line: &Line, color: bool, out: &mut String) {
    paint_with(line, color.then_some(Palette::Terminal), out);
}

/// The same in colours of a palette; `None`: only the text.
pub fn paint_with(line: &Line, palette: Option<Palette>, out: &mut String) {
    for span in &line.spans {
        match palette {
            Some(it) => paint_span(span, it, out),
            None => out.push_str(span.text()),
        }
    }
}

fn paint_span(span: &Span, palette: Palette, out: &mut String) {
    if let Some(address) = span.link() {
        out.push_str(&format!("\u{1b}]8;;{address}\u{1b}\\"));
    }
    let codes = codes(span.style, palette);
    if codes.is_empty() {
        out.push_str(span.text());
    } else {
        out.push_str(&format!("\u{1b}[{}m{}\u{1b}[0m", codes.join(";"), span.text()));
    }
    if span.link().is_some() {
        out.push_str("\u{1b}]8;;\u{1b}\\");
    }
}

fn codes(style: Style, palette: Palette) -> Vec<&'static str> {
    let color = palette.code(style.color);
    let marks = [
        (style.bold, "1"),
        (style.dim, "2"),
        (style.italic, "3"),
        (style.underline, "4"),
        (style.reverse, "7"),
        (style.strike, "9"),
    ];
    marks.into_iter().filter_map(|(is_on, code)| is_on.then_some(code)).chain(color).collect()
}

/// Whether a stream gets colour. `variable` gives an environment variable that is set and not empty.
pub fn wants_color(is_terminal: bool, variable: impl Fn(&str) -> Option<String>) -> bool {
    let forced = variable("CLICOLOR_FORCE").is_some_and(|it| it != "0");
    if variable("NO_COLOR").is_some() {
        return false;
    }
    forced
        || (is_terminal
            && variable("TERM").is_none_or(|it| it != "dumb")
            && variable("CLICOLOR").is_none_or(|it| it != "0"))
}

#[cfg(test)]
mod tests {
    use super::{Palette, paint, paint_with, wants_color};
    use crate::cli::render::text::{Color, Line, Span, Style};

    #[test]
    fn controls_of_others_do_not_get_out() {
        let mut line = Line::new("\u{1b}]0;x\u{7}red\u{1b}[2J", Style { bold: true, ..Style::color(Color::Red) });
        line.spans.push(Span::new("a\tb", Style::PLAIN).with_link("https://x\u{1b}\\y"));
        let (mut colored, mut plain) = (String::new(), String::new());
        paint(&line, true, &mut colored);
        paint(&line, false, &mut plain);
        assert_eq!(colored, "\u{1b}[1;31mred\u{1b}[0m\u{1b}]8;;https://xy\u{1b}\\a    b\u{1b}]8;;\u{1b}\\");
        assert_eq!(plain, "reda    b");
    }

    #[test]
    fn palettes_differ_in_colors_alone() {
        let line = Line::new("x", Style { bold: true, ..Style::color(Color::Yellow) });
        let painted = |palette| {
            let mut res = String::new();
            paint_with(&line, palette, &mut res);
            res
        };
        let all = [Palette::Terminal, Palette::Dark, Palette::Light].map(|it| painted(Some(it)));
        let codes = ["33", "38;5;221", "38;5;130"].map(|it| format!("\u{1b}[1;{it}mx\u{1b}[0m"));
        assert_eq!(all, codes);
        assert_eq!(painted(None), "x");
    }

    #[test]
    fn the_environment_decides_about_color() {
        for (terminal, variables, expected) in [
            (true, vec![], true),
            (false, vec![], false),
            (true, vec![("NO_COLOR", "1")], false),
            (true, vec![("TERM", "dumb")], false),
            (true, vec![("CLICOLOR", "0")], false),
            (false, vec![("CLICOLOR_FORCE", "1")], true),
            (true, vec![("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false),
        ] {
            let get = |name: &str| variables.iter().find(|it| it.0 == name).map(|it| it.1.to_owned());
            assert_eq!(wants_color(terminal, get), expected, "{variables:?}");
        }
    }
}
