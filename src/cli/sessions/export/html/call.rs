//! A call in the HTML page: an edit as its diff, a command with the end of its output, anything else folded.

use super::{
    super::{
        super::time,
        call::{self, Call, CallContent, EndedCall},
    },
    diff::diff,
};
use crate::cli::page::escape::{Text, put};
use castor_base::{path::AbsPath, tool::ToolKind};

/// Lines at the end of a long output that stay in view.
const TAIL: usize = 10;
/// An output of so many lines more is not worth folding.
const SLACK: usize = 5;
/// A longer diff is folded.
const MAX_OPEN_DIFF: usize = 300;

pub fn write_call(it: &Call<'_>, is_away: bool, cwd: &AbsPath, out: &mut String) {
    let away = if is_away { " away" } else { "" };
    match &it.content {
        Some(CallContent::Diffs(files)) => files.iter().for_each(|file| write_diff(it, file, (away, cwd), out)),
        _ if it.kind == ToolKind::Execute || is_failed(it) => {
            put(out, format_args!("<div class=\"call{away}\">\n<p class=\"head\">"));
            write_heading(it, it.about(), "", out);
            out.push_str("</p>\n");
            // Of a refused call the log has only words for the model.
            if !it.is_refused() {
                write_output(output(it), out);
                write_failure(it, out);
            }
            out.push_str("</div>\n");
        }
        _ => {
            put(out, format_args!("<details class=\"call{away}\">\n<summary>"));
            write_heading(it, it.about(), "", out);
            out.push_str("</summary>\n");
            let args = serde_json::to_string_pretty(it.args).unwrap_or_default();
            put(out, format_args!("<pre class=\"args\">{}</pre>\n", Text(&args)));
            if !output(it).is_empty() {
                put(out, format_args!("<pre>{}</pre>\n", Text(output(it))));
            }
            out.push_str("</details>\n");
        }
    }
}

fn write_diff(
    it: &Call<'_>,
    (path, before, after): &(&AbsPath, Option<&str>, &str),
    (away, cwd): (&str, &AbsPath),
    out: &mut String,
) {
    let path = path.as_path().strip_prefix(cwd.as_path()).unwrap_or(path.as_path()).display().to_string();
    let diff = diff(*before, after, &path);
    let open = if diff.n_lines > MAX_OPEN_DIFF { "" } else { " open" };
    put(out, format_args!("<details class=\"call edit{away}\"{open}>\n<summary>"));
    let (added, removed) = (diff.added, diff.removed);
    let count = match added + removed {
        0 => "unchanged".to_owned(),
        _ => format!("<span class=\"plus\">+{added}</span> <span class=\"minus\">−{removed}</span>"),
    };
    write_heading(it, &path, &count, out);
    out.push_str("</summary>\n");
    out.push_str(&diff.html);
    write_failure(it, out);
    out.push_str("</details>\n");
}

fn is_failed(it: &Call<'_>) -> bool {
    matches!(it.end, EndedCall::Failed(_) | EndedCall::Exit(_))
}

pub fn output<'a>(it: &'a Call<'_>) -> &'a str {
    match &it.content {
        Some(CallContent::Terminal { text, .. } | CallContent::Text(text)) => text,
        _ => &it.output,
    }
}

/// Mark, tool, what it is about, and how it ended.
pub fn write_heading(it: &Call<'_>, about: &str, count: &str, out: &mut String) {
    let (mark, class, end) = match it.end {
        EndedCall::Unknown => ("?", "dim", Some("no end is known".to_owned())),
        EndedCall::Succeeded => ("✓", "good", None),
        EndedCall::Exit(code) => ("✗", "bad", Some(format!("exit code {code}"))),
        EndedCall::Failed(_) => ("✗", "bad", Some("failed".to_owned()).filter(|_| !it.is_refused())),
    };
    let answer = it.answer.as_ref().map(|it| call::answer(it).to_owned());
    let took = it.took_ms.filter(|it| *it >= 100).map(time::duration);
    let facts: Vec<String> = [end, answer, took].into_iter().flatten().collect();
    put(out, format_args!("<span class=\"{class}\">{mark}</span> <b>{}</b> ", Text(it.name)));
    put(out, format_args!("<code>{}</code> {count} <small>{}</small>", Text(about), facts.join(" · ")));
}

fn write_failure(it: &Call<'_>, out: &mut String) {
    if let EndedCall::Failed(why) = it.end
        && !it.is_refused()
        && why.trim() != output(it).trim()
    {
        put(out, format_args!("<p class=\"bad text\">{}</p>\n", Text(why)));
    }
}

/// The output, its beginning folded where it is long.
pub fn write_output(text: &str, out: &mut String) {
    let text = text.trim_end_matches('\n');
    if text.is_empty() {
        return;
    }
    let n_lines = text.lines().count();
    let cut = match n_lines > TAIL + SLACK {
        true => text.match_indices('\n').nth(n_lines - TAIL - 1).map_or(0, |it| it.0 + 1),
        false => 0,
    };
    let (head, tail) = text.split_at(cut);
    if !head.is_empty() {
        put(out, format_args!("<details class=\"more\"><summary>{} lines before these</summary>", n_lines - TAIL));
        put(out, format_args!("<pre>{}</pre></details>\n", Text(head)));
    }
    put(out, format_args!("<pre>{}</pre>\n", Text(tail)));
}
