//! Escapes for HTML and SVG: text of a session never becomes markup.

use std::fmt::{self, Write as _};

/// Text of the session: escaped for elements and for attributes in either kind of quotes.
#[derive(Clone, Copy)]
pub struct Text<'a>(pub &'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for it in self.0.chars() {
            match it {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                it => printable(it).map_or(Ok(()), |it| f.write_char(it))?,
            }
        }
        Ok(())
    }
}

/// The text without controls, for what escapes by itself.
pub fn printable_text(text: &str) -> String {
    text.chars().filter_map(printable).collect()
}

/// Most controls are no characters of HTML; terminals' colours would stand there as rubbish.
fn printable(it: char) -> Option<char> {
    match it {
        '\r' => None,
        '\n' | '\t' => Some(it),
        it if it.is_control() => Some('\u{fffd}'),
        it => Some(it),
    }
}

/// Appends formatted text. Writing to a String cannot fail.
pub fn put(out: &mut String, text: fmt::Arguments<'_>) {
    _ = out.write_fmt(text);
}
