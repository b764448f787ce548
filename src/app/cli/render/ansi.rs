//! ANSI escape sequences for styled lines, and whether colour is wanted (`NO_COLOR`, `CLICOLOR_FORCE`, `TERM=dumb`).

use super::text::{Color, Line, Span, Style};

/// Appends the line without its line end. Without `color` it is only the text.
pub fn paint(line: &Line, color: bool, out: &mut String) {
    for span in &line.spans {
        if color { paint_span(span, out) } else { out.push_str(span.text()) }
    }
}

fn paint_span(span: &Span, out: &mut String) {
    if let Some(address) = span.link() {
        out.push_str(&format!("\u{1b}]8;;{address}\u{1b}\\"));
    }
    let codes = codes(span.style);
    if codes.is_empty() {
        out.push_str(span.text());
    } else {
        out.push_str(&format!("\u{1b}[{}m{}\u{1b}[0m", codes.join(";"), span.text()));
    }
    if span.link().is_some() {
        out.push_str("\u{1b}]8;;\u{1b}\\");
    }
}

fn codes(style: Style) -> Vec<&'static str> {
    let color = match style.color {
        Color::Default => None,
        Color::Red => Some("31"),
        Color::Green => Some("32"),
        Color::Yellow => Some("33"),
        Color::Blue => Some("34"),
        Color::Magenta => Some("35"),
        Color::Cyan => Some("36"),
        Color::Gray => Some("90"),
    };
    let marks = [(style.bold, "1"), (style.dim, "2"), (style.italic, "3"), (style.underline, "4"), (style.strike, "9")];
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
    use super::{paint, wants_color};
    use crate::app::cli::render::text::{Color, Line, Span, Style};

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
