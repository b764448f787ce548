//! Text with a bound: everything that enters the model's context or an update has a cap.

/// The longest prefix of `text` that is at most `max` bytes and ends between characters.
pub fn head(text: &str, max: usize) -> &str {
    let mut end = max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// The longest suffix of `text` that is at most `max` bytes and starts between characters.
pub fn tail(text: &str, max: usize) -> &str {
    let mut start = text.len().saturating_sub(max);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text.get(start..).unwrap_or_default()
}

/// The first line of `text`, cut to `max` characters with an ellipsis: for titles.
pub fn first_line(text: &str, max: usize) -> String {
    let line = text.trim().lines().next().unwrap_or_default().trim();
    match line.char_indices().nth(max) {
        Some((at, _)) => format!("{}…", head(line, at).trim_end()),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{first_line, head, tail};

    #[test]
    fn cuts_between_characters() {
        assert_eq!(head("añb", 2), "a");
        assert_eq!(tail("añb", 2), "b");
        assert_eq!(tail("añb", 3), "ñb");
        assert_eq!(head("ab", 9), "ab");
        assert_eq!(first_line("  hello world\nmore", 5), "hello…");
    }
}
