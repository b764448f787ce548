//! Lines cut at the edge of the terminal, for what may take one row only.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::text::{Line, Style};

/// The line in at most `width` columns; an ellipsis stands for the rest.
pub fn clip(line: &Line, width: usize) -> Line {
    if line.width() <= width {
        return line.clone();
    }
    let (mut res, mut used) = (Line::default(), 0);
    for span in &line.spans {
        for piece in span.text().graphemes(true) {
            used += piece.width();
            if used >= width {
                res.push("…", Style::DIM);
                return res;
            }
            res.append(piece, span);
        }
    }
    res
}

/// `line` and behind it `end`, which is never cut; in one row.
pub fn with_end(mut line: Line, end: Line, width: usize) -> Line {
    if end.width() == 0 {
        return clip(&line, width);
    }
    let room = width.saturating_sub(end.width() + 2);
    line = clip(&line, room);
    line.push("  ", Style::PLAIN);
    line.spans.extend(end.spans);
    line
}

#[cfg(test)]
mod tests {
    use super::{clip, with_end};
    use crate::cli::render::text::{Line, Style};

    #[test]
    fn a_long_line_ends_in_an_ellipsis() {
        let clipped = |text: &str, width| clip(&Line::plain(text), width).text();
        assert_eq!(clipped("abcdef", 6), "abcdef");
        assert_eq!(clipped("abcdef", 5), "abcd…");
        assert_eq!(clipped("日本語日本語", 6), "日本…");
        assert_eq!(clipped("👩\u{200d}🚀👩\u{200d}🚀👩\u{200d}🚀", 5), "👩\u{200d}🚀👩\u{200d}🚀…");
    }

    #[test]
    fn seconds_stay_visible() {
        let line = with_end(Line::plain("cargo test --all"), Line::new("12 s", Style::DIM), 14);
        assert_eq!(line.text(), "cargo t…  12 s");
    }
}
