//! Titles without the marks of Markdown, as one line of plain text.

use pulldown_cmark::{Event, Options, Parser, TagEnd};

/// A title without the marks of Markdown.
pub fn plain_title(text: &str) -> String {
    let mut res = String::new();
    for event in Parser::new_ext(text.trim(), Options::ENABLE_STRIKETHROUGH) {
        match event {
            Event::Text(it) | Event::Code(it) | Event::Html(it) | Event::InlineHtml(it) => res.push_str(&it),
            Event::SoftBreak | Event::HardBreak | Event::End(TagEnd::Paragraph | TagEnd::Heading(_) | TagEnd::Item) => {
                res.push(' ');
            }
            _ => (),
        }
    }
    res.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::plain_title;

    #[test]
    fn marks_are_gone() {
        for (text, expected) in [
            ("Fix **add()** in `calc.py`, then", "Fix add() in calc.py, then"),
            ("# Heading\n\nand more", "Heading and more"),
            ("snake_case *.rs and a <b> tag", "snake_case *.rs and a <b> tag"),
            ("[link](https://x) ~~gone~~", "link gone"),
            ("", ""),
        ] {
            assert_eq!(plain_title(text), expected);
        }
    }
}
