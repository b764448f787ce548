//! Sums as CSV (RFC 4180): one row for each name of a group, for spreadsheets.

use super::{StatsReport, sums::SumsColumn};

const COLUMNS: &[SumsColumn] = &[
    ("sessions", |it| it.sessions.to_string()),
    ("agents", |it| it.agents.to_string()),
    ("prompts", |it| it.prompts.to_string()),
    ("requests", |it| it.requests.to_string()),
    ("failed_requests", |it| it.failed_requests.to_string()),
    ("input_tokens", |it| it.spent.usage.input.to_string()),
    ("cached_tokens", |it| it.spent.usage.cached.to_string()),
    ("output_tokens", |it| it.spent.output().to_string()),
    ("thought_tokens", |it| it.spent.usage.thought.to_string()),
    ("cost_usd", |it| it.spent.cost.map(|it| it.as_dollars().to_string()).unwrap_or_default()),
    ("calls", |it| it.calls.total.to_string()),
    ("failed_calls", |it| it.calls.failed.to_string()),
    ("stopped_calls", |it| it.calls.stopped.to_string()),
    ("questions", |it| it.answers.total().to_string()),
    ("allowed_once", |it| it.answers.once.to_string()),
    ("allowed_for_longer", |it| it.answers.lasting.to_string()),
    ("refused", |it| it.answers.refused.to_string()),
    ("models_ms", |it| it.models_ms.to_string()),
    ("tools_ms", |it| it.tools_ms.to_string()),
    ("waited_ms", |it| it.waited_ms.to_string()),
];
/// With these a spreadsheet begins a formula; names of models and tools come from outside.
const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

pub fn csv(report: &StatsReport<'_>) -> String {
    let mut out = String::new();
    for group in &report.groups {
        let names = COLUMNS.iter().map(|it| it.0.to_owned());
        push_row(&mut out, std::iter::once(group.as_str().to_owned()).chain(names));
        for (name, sums) in report.table.rows(*group) {
            push_row(&mut out, std::iter::once(quoted(name)).chain(COLUMNS.iter().map(|it| (it.1)(sums))));
        }
    }
    out
}

fn push_row(out: &mut String, cells: impl Iterator<Item = String>) {
    out.push_str(&cells.collect::<Vec<_>>().join(","));
    out.push_str("\r\n");
}

fn quoted(text: &str) -> String {
    let text = if text.starts_with(FORMULA) { format!("'{text}") } else { text.to_owned() };
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn names_stay_in_their_cells() {
        let texts = ["plain", "a,b", "say \"x\"", "two\nlines", "=cmd|'/c calc'!A1", "-1", "@x,y"].map(quoted);
        let expected =
            ["plain", "\"a,b\"", "\"say \"\"x\"\"\"", "\"two\nlines\"", "'=cmd|'/c calc'!A1", "'-1", "\"'@x,y\""];
        assert_eq!(texts, expected);
    }
}
