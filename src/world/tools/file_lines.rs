//! Lines of a text file as a model gets them: so many at once, with a word about the rest, and long ones cut.

use std::{fmt::Write, ops::Range};

use serde_json::json;

use crate::{
    base::tool::{ToolError, ToolOutput},
    world::tools::{params::invalid, text_file},
};

const MAX_LINES: usize = 2000;
const MAX_LINE_CHARS: usize = 2000;

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
    let range = from..end.unwrap_or(limit).min(limit).min(total);
    let mut shortened = false;
    let mut body = String::new();
    for line in lines.get(range.clone()).unwrap_or_default() {
        shortened |= push_line(&mut body, line);
    }
    if range == (0..total) && !shortened {
        return Ok(ToolOutput::text(body));
    }
    let mut summary = format!("Read lines {}-{} of {total} from {shown}", range.start + 1, range.end);
    if shortened {
        summary.push_str(" (some lines were shortened)");
    }
    let data = json!({"startLine": range.start + 1, "endLine": range.end, "totalLines": total});
    Ok(ToolOutput { summary: Some(summary), data, ..ToolOutput::text(header(&range, total, shortened) + &body) })
}

/// Whether the line had to be cut.
fn push_line(body: &mut String, line: &str) -> bool {
    let cut = line.char_indices().nth(MAX_LINE_CHARS).filter(|it| line.get(it.0..) != Some("\n"));
    let Some((at, _)) = cut else {
        body.push_str(line);
        return false;
    };
    body.push_str(line.get(..at).unwrap_or_default());
    body.push_str("... [truncated]");
    body.push_str(if line.ends_with('\n') { "\n" } else { "" });
    true
}

fn header(range: &Range<usize>, total: usize, shortened: bool) -> String {
    let mut res = String::from("IMPORTANT: The file content has been truncated.\n");
    let note = if shortened { " (some lines were shortened)" } else { "" };
    _ = writeln!(res, "Status: Showing lines {}-{} of {total} total lines{note}.", range.start + 1, range.end);
    if range.end < total {
        _ = writeln!(
            res,
            "Action: To read more of the file, you can use the 'start_line' and 'end_line' parameters in a subsequent \
             'read_file' call. For example, to read the next section of the file, use start_line: {}.",
            range.end + 1
        );
    }
    res.push_str("\n--- FILE CONTENT (truncated) ---\n");
    res
}
