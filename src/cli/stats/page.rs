//! Sums as one HTML page: plots and tables, without scripts or other files.

use super::{
    StatsReport,
    sums::{StatsGroup, StatsSums, SumsColumn},
    words::{bar_title, bar_value, folder_in_words, share_in_words, spent_by_cost, summary},
};
use crate::cli::{
    page::{
        PLOT_STYLE,
        column_plot::{ColumnPlot, PlotColumn},
        escape::{Text, put},
        figure::place,
        share_plot::{SharePlot, write_bar},
    },
    sessions::{
        export::{grouped, plotted_cost, plotted_tokens},
        time,
    },
};

const HEAD: &str = r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="color-scheme" content="light dark">
<title>castor: statistics</title>
"#;
const STYLE: &str = include_str!("page.css");
/// In milliseconds.
const MINUTE: f64 = 60_000.0;

type Row<'a> = (&'a str, &'a StatsSums);

const SPENDING: &[SumsColumn] = &[
    ("Cost", |it| it.spent.cost_in_words().unwrap_or_else(|| "–".to_owned())),
    ("Tokens in", |it| grouped(it.spent.usage.input)),
    ("Cached", |it| share_in_words(it.spent.cached_share())),
    ("Tokens out", |it| grouped(it.spent.output())),
    ("Requests", |it| grouped(it.requests)),
    ("Failed", |it| grouped(it.failed_requests)),
    ("Calls", |it| grouped(it.calls.total)),
    ("Questions", |it| grouped(it.answers.total())),
    ("Models", |it| time::duration(it.models_ms)),
    ("Waiting", |it| time::duration(it.waited_ms)),
];
const TOOLS: &[SumsColumn] = &[
    ("Calls", |it| grouped(it.calls.total)),
    ("Failed", |it| grouped(it.calls.failed)),
    ("Stopped", |it| grouped(it.calls.stopped)),
    ("Time", |it| time::duration(it.tools_ms)),
    ("Questions", |it| grouped(it.answers.total())),
    ("Refused", |it| grouped(it.answers.refused)),
    ("Waiting", |it| time::duration(it.waited_ms)),
];

pub fn html(report: &StatsReport<'_>, now_ms: u64) -> String {
    let mut out = HEAD.to_owned();
    put(&mut out, format_args!("<style>\n{STYLE}{PLOT_STYLE}</style>\n</head>\n<body>\n<main>\n<h1>Statistics</h1>\n"));
    out.push_str("<dl class=\"facts\">\n");
    for (name, value) in summary(report) {
        put(&mut out, format_args!("<div><dt>{name}</dt><dd>{}</dd></div>\n", Text(&value)));
    }
    out.push_str("</dl>\n");
    for it in report.unread {
        put(&mut out, format_args!("<p class=\"bad\">Not counted: {}</p>\n", Text(it)));
    }
    for group in &report.groups {
        write_group(report, *group, &mut out);
    }
    let when = time::minute(now_ms, report.zone);
    put(&mut out, format_args!("<footer>Made by castor on {when}.</footer>\n</main>\n</body>\n</html>\n"));
    out
}

fn write_group(report: &StatsReport<'_>, group: StatsGroup, out: &mut String) {
    let rows = report.table.rows(group);
    if rows.is_empty() {
        return;
    }
    let (title, columns) = match group {
        StatsGroup::Day => ("Days", SPENDING),
        StatsGroup::Model => ("Models", SPENDING),
        StatsGroup::Tool => ("Tools", TOOLS),
        StatsGroup::Folder => ("Folders", SPENDING),
    };
    put(out, format_args!("<section>\n<h2>{title}</h2>\n"));
    match group {
        StatsGroup::Day => write_days(&rows, out),
        _ => write_shares(report, group, &rows, out),
    }
    write_table(report, group, (rows.as_slice(), columns), out);
    out.push_str("</section>\n");
}

fn write_days(rows: &[Row<'_>], out: &mut String) {
    let days = |values: fn(&StatsSums) -> Vec<f64>| {
        rows.iter().map(|(name, it)| PlotColumn { label: (*name).to_owned(), values: values(it) }).collect()
    };
    let cost = |it: &StatsSums| vec![it.spent.cost.unwrap_or_default().as_dollars()];
    ColumnPlot { title: "Cost a day", series: &[("cost", 0)], columns: days(cost), in_words: plotted_cost }.write(out);
    let tokens = |it: &StatsSums| {
        let usage = &it.spent.usage;
        vec![usage.cached as f64, usage.input.saturating_sub(usage.cached) as f64, it.spent.output() as f64]
    };
    let series = [("from the cache", 1), ("other input", 0), ("output", 2)];
    ColumnPlot { title: "Tokens a day", series: &series, columns: days(tokens), in_words: plotted_tokens }.write(out);
    write_times(days(|it| [it.models_ms, it.tools_ms, it.waited_ms].map(|it| it as f64 / MINUTE).to_vec()), out);
}

/// Of minutes a day; in hours where they are many.
fn write_times(mut columns: Vec<PlotColumn>, out: &mut String) {
    let most = columns.iter().map(|it| it.values.iter().sum::<f64>()).fold(0.0, f64::max);
    let (unit, in_words): (f64, fn(f64) -> String) = match most > 120.0 {
        true => (60.0, |it| format!("{} h", place(it))),
        false => (1.0, |it| format!("{} min", place(it))),
    };
    columns.iter_mut().flat_map(|it| &mut it.values).for_each(|it| *it /= unit);
    let series = [("models", 0), ("tools", 3), ("waiting for you", 2)];
    ColumnPlot { title: "Time a day", series: &series, columns, in_words }.write(out);
}

fn write_shares(report: &StatsReport<'_>, group: StatsGroup, rows: &[Row<'_>], out: &mut String) {
    let by_cost = spent_by_cost(report);
    let (title, in_words): (_, fn(f64) -> String) = match group {
        StatsGroup::Tool => ("Calls", plotted_tokens),
        _ if by_cost => ("Cost", plotted_cost),
        _ => ("Tokens", plotted_tokens),
    };
    let part = |(name, it): &Row<'_>| (name_in_words(report, group, name), bar_value(group, it, by_cost));
    let mut parts: Vec<(String, f64)> = rows.iter().map(part).collect();
    parts.sort_by(|one, two| two.1.total_cmp(&one.1));
    SharePlot { title, parts, in_words }.write(out);
}

fn write_table(
    report: &StatsReport<'_>,
    group: StatsGroup,
    (rows, columns): (&[Row<'_>], &[SumsColumn]),
    out: &mut String,
) {
    let by_cost = spent_by_cost(report);
    let value = |it: &StatsSums| bar_value(group, it, by_cost);
    let most = rows.iter().map(|it| value(it.1)).fold(0.0, f64::max);
    let heading = bar_title(group, by_cost).to_lowercase();
    put(out, format_args!("<div class=\"table\"><table>\n<tr><th>{}</th><th>{heading}</th>", group.as_str()));
    for (name, _) in columns {
        put(out, format_args!("<th class=\"n\">{name}</th>"));
    }
    out.push_str("</tr>\n");
    for (name, it) in rows {
        put(out, format_args!("<tr><td><code>{}</code></td><td>", Text(&name_in_words(report, group, name))));
        write_bar(if most > 0.0 { value(it) / most } else { 0.0 }, out);
        out.push_str("</td>");
        for (_, words) in columns {
            put(out, format_args!("<td class=\"n\">{}</td>", Text(&words(it))));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table></div>\n");
}

fn name_in_words(report: &StatsReport<'_>, group: StatsGroup, name: &str) -> String {
    if group == StatsGroup::Folder { folder_in_words(report, name) } else { name.to_owned() }
}
