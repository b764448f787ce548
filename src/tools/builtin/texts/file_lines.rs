//! Lines of a text file as a model gets them: so much at once, with a word about the rest, and long ones cut.

use std::{fmt::Write, ops::Range};

use serde_json::json;

use crate::builtin::{params::invalid, texts::text_file};
use castor_base::tool::{ToolError, ToolOutput};

const MAX_LINES: usize = 2000;
const MAX_LINE_CHARS: usize = 2000;
/// With the words around it a file's text is 64 KiB at most.
const MAX_BYTES: usize = 60 << 10;

/// The lines from `start` to `end`, from 1; without them as many as go at once. `shown` is the file's name.
///
/// # Errors
/// A start behind the end.
pub fn file_lines(
    text: &str,
    (start, end): (Option<usize>, Option<usize>),
    shown: &str,
) -> Result<ToolOutput, ToolError> {
    let text = text_file::to_lf(text);
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let total = lines.len();
    let from = start.unwrap_or(1) - 1;
    if from > 0 && from >= total {
        return Err(invalid(format!("start_line {} is past the end of {shown}, which has {total} lines.", from + 1)));
    }
    let limit = from.saturating_add(MAX_LINES);
    let wanted = from..end.unwrap_or(limit).min(limit).min(total);
    let mut range = from..from;
    let (mut body, mut shortened) = (String::new(), None);
    for line in lines.get(wanted).unwrap_or_default() {
        let (start, is_whole) = shown_part(line);
        // No line is longer than all that may be shown.
        if body.len() + line.len().min(start.len() + CUT.len() + 1) > MAX_BYTES {
            break;
        }
        range.end += 1;
        body.push_str(start);
        if !is_whole {
            shortened.get_or_insert(range.end);
            body.push_str(CUT);
            body.push_str(if line.ends_with('\n') { "\n" } else { "" });
        }
    }
    if range == (0..total) && shortened.is_none() {
        return Ok(ToolOutput::text(body));
    }
    let mut summary = format!("Read lines {}-{} of {total} from {shown}", range.start + 1, range.end);
    if shortened.is_some() {
        summary.push_str(" (some lines were shortened)");
    }
    let data = json!({"startLine": range.start + 1, "endLine": range.end, "totalLines": total});
    Ok(ToolOutput { summary: Some(summary), data, ..ToolOutput::text(header(&range, total, shortened) + &body) })
}

const CUT: &str = "... [truncated]";

/// As much of a line as goes at once, and whether that is all of it.
fn shown_part(line: &str) -> (&str, bool) {
    let cut = line.char_indices().nth(MAX_LINE_CHARS).filter(|it| line.get(it.0..) != Some("\n"));
    cut.and_then(|(at, _)| line.get(..at)).map_or((line, true), |it| (it, false))
}

/// `shortened` is the number of the first line that is cut.
fn header(range: &Range<usize>, total: usize, shortened: Option<usize>) -> String {
    let mut res = String::from("IMPORTANT: The file content has been truncated.\n");
    let note = if shortened.is_some() { " (some lines were shortened)" } else { "" };
    _ = writeln!(res, "Status: Showing lines {}-{} of {total} total lines{note}.", range.start + 1, range.end);
    if range.end < total {
        _ = writeln!(
            res,
            "Action: To read more of the file, you can use the 'start_line' and 'end_line' parameters in a subsequent \
             'read_file' call. For example, to read the next section of the file, use start_line: {}.",
            range.end + 1
        );
    }
    if let Some(line) = shortened {
        _ = writeln!(
            res,
            "Lines of more than {MAX_LINE_CHARS} characters are cut. To read on in one, use a command, for example: \
             sed -n {line}p FILE | cut -c {}-{}",
            MAX_LINE_CHARS + 1,
            MAX_LINE_CHARS * 5,
        );
    }
    res.push_str("\n--- FILE CONTENT (truncated) ---\n");
    res
}

#[cfg(test)]
mod tests {
    use super::{MAX_BYTES, file_lines};
    use castor_base::content::joined_text;

    /// The text, its first and last line, and where to go on.
    fn read(text: &str, start: Option<usize>) -> (String, u64, u64) {
        let output = file_lines(text, (start, None), "f").unwrap();
        let line = |name: &str| output.data.get(name).and_then(serde_json::Value::as_u64).unwrap_or_default();
        (joined_text(&output.content), line("startLine"), line("endLine"))
    }

    /// Whatever the file, step by step all its lines come, each once, and never more than 64 KiB at once.
    #[test]
    fn all_of_a_file_can_be_read_piece_by_piece() {
        for text in [
            "short\n".repeat(40_000),
            "x".repeat(1000) + &"\n".repeat(9) + &"\u{6e2c}\u{8a66}".repeat(900),
            format!("{}\n", "\u{6e2c}".repeat(700)).repeat(500),
            format!("{}\r\n", "a b".repeat(400)).repeat(300),
            "\u{1f389}".repeat(30_000) + "\n" + &"y".repeat(3 << 20),
        ] {
            let lines: Vec<&str> = text.lines().collect();
            let mut next = 1;
            while next <= lines.len() {
                let (said, start, end) = read(&text, Some(next));
                assert!(said.len() <= 64 << 10, "{}", said.len());
                let (start, end) = if end == 0 { (1, lines.len()) } else { (start as usize, end as usize) };
                assert_eq!(start, next);
                let body = said.split_once("(truncated) ---\n").map_or(said.as_str(), |it| it.1);
                let shown: Vec<&str> = body.lines().collect();
                assert_eq!(shown.len(), end - start + 1);
                let is_of = |(shown, line): (&&str, &&str)| line.starts_with(shown.trim_end_matches("... [truncated]"));
                assert!(shown.iter().zip(&lines[start - 1..]).all(is_of));
                assert_eq!(end < lines.len(), said.contains(&format!("use start_line: {}.", end + 1)));
                next = end + 1;
            }
        }
    }

    #[test]
    fn text_that_fits_comes_as_it_is() {
        let line = "0123456789abcde\n";
        assert!(read(&line.repeat(2001), None).0.starts_with("IMPORTANT"), "more than 2000 lines");
        let fits = "x".repeat(1999) + "\n";
        let fits = fits.repeat(MAX_BYTES / 2000);
        assert_eq!(read(&fits, None).0, fits);
        let more = fits.clone() + "and more of it, by some bytes\n".repeat(60).as_str();
        let (said, _, end) = read(&more, None);
        assert!(said.contains("Showing lines 1-") && end >= 30 && end < more.lines().count() as u64, "{end}");
        assert!(read(&"z".repeat(3 << 20), None).0.contains("sed -n 1p FILE | cut -c 2001-10000"));
    }
}
