//! Changed lines of a file with context, so that the model need not read it again.

use std::{fmt::Write, time::Duration};

use similar::TextDiff;

use castor_base::text::head;

const CONTEXT_LINES: usize = 5;
const MAX_BYTES: usize = 8 * 1024;
/// A worse diff is fine, a slow one is not.
const TIMEOUT: Duration = Duration::from_millis(200);

/// The lines of `after` that differ from `before`, with context; `...` stands for what is left out.
pub fn changed_lines(before: &str, after: &str) -> String {
    let diff = TextDiff::configure().timeout(TIMEOUT).diff_lines(before, after);
    let mut res = String::new();
    let mut shown_to = 0;
    for group in diff.grouped_ops(CONTEXT_LINES) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let range = first.new_range().start..last.new_range().end;
        if range.start > shown_to {
            res.push_str("...\n");
        }
        for line in range.clone().filter_map(|it| diff.new_slice(it)) {
            _ = writeln!(res, "{}", line.trim_end_matches(['\n', '\r']));
        }
        shown_to = range.end;
        if res.len() > MAX_BYTES {
            return format!("{}\n... (more changes not shown)", head(&res, MAX_BYTES));
        }
    }
    if shown_to < diff.new_len() {
        res.push_str("...");
    }
    res.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::changed_lines;

    #[test]
    fn shows_changes_in_context() {
        let lines = |it: std::ops::Range<u32>| it.map(|it| format!("{it}\n")).collect::<String>();
        let check = |before: &str, after: &str, expected: &str| assert_eq!(changed_lines(before, after), expected);
        check("a\nb\nc\n", "a\nx\nc\n", "a\nx\nc");
        let before = lines(0..30);
        let after = before.replace("15\n", "new\r\n");
        check(&before, &after, "...\n10\n11\n12\n13\n14\nnew\n16\n17\n18\n19\n20\n...");
        check("", "", "");
        assert!(changed_lines("", &lines(0..9000)).len() < 9000);
    }
}
