//! Sums on a terminal: what there is in all, then a table with bars for each group.

use super::{
    StatsReport,
    sums::{StatsGroup, StatsSums},
    words::{bar_title, bar_value, folder_in_words, share_in_words, spent_by_cost, summary},
};
use crate::cli::{
    render::{
        clip::clip,
        columns::{self, TableColumn, cut, cut_start},
        text::{Color, Line, Style},
    },
    sessions::{
        export::{compact, grouped},
        time,
    },
    terminal_text::{clean_line, escape_line},
};

/// Rows of a group among others.
const N_ROWS: usize = 10;
/// The same of days, the last of them.
const N_DAYS: usize = 31;
/// Columns of a bar.
const MIN_BAR: usize = 8;
const MAX_BAR: usize = 40;
const MAX_NAME: usize = 32;
/// Characters of a name that are looked at.
const MAX_CHARS: usize = 200;
/// Eighths of a block, from one to seven.
const EIGHTHS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// How wide the terminal is, and what it can draw.
#[derive(Clone, Copy, Debug)]
pub struct StatsScreen {
    pub width: usize,
    /// Blocks; else `#`.
    pub has_blocks: bool,
}

pub fn lines(report: &StatsReport<'_>, screen: StatsScreen) -> Vec<Line> {
    let mut res = Vec::new();
    for (nth, (name, value)) in summary(report).into_iter().enumerate() {
        let mut line = Line::new(&format!("{name:<11}"), Style::DIM);
        line.push(&value, if nth == 0 { Style::BOLD } else { Style::PLAIN });
        res.push(line);
    }
    for group in &report.groups {
        let table = table(report, *group, screen);
        if !table.is_empty() {
            res.push(Line::default());
            res.extend(table);
        }
    }
    res
}

fn table(report: &StatsReport<'_>, group: StatsGroup, screen: StatsScreen) -> Vec<Line> {
    let all = report.table.rows(group);
    let max = if report.groups.len() == 1 { usize::MAX } else { N_ROWS };
    let rows: Vec<_> = match group {
        StatsGroup::Day if report.groups.len() > 1 => all.iter().skip(all.len().saturating_sub(N_DAYS)).collect(),
        _ => all.iter().take(max).collect(),
    };
    if rows.is_empty() {
        return Vec::new();
    }
    let by_cost = spent_by_cost(report);
    let mut columns = columns_of(report, group, &rows);
    let room = columns::fit(&mut columns, MIN_BAR, screen.width).min(MAX_BAR);
    let mut heading = columns::headings(&columns);
    // The calls of tools are a column already.
    if group != StatsGroup::Tool {
        heading.push(bar_title(group, by_cost), Style::BOLD);
    }
    let value = |it: &StatsSums| bar_value(group, it, by_cost);
    let most = rows.iter().map(|it| value(it.1)).fold(0.0, f64::max);
    let mut res = vec![heading];
    for (at, (_, sums)) in rows.iter().enumerate() {
        let mut line = columns::row(&columns, at);
        line.push(&bar(value(sums) / most, room, screen.has_blocks), Style::color(Color::Blue));
        res.push(line);
    }
    if all.len() > rows.len() {
        let more = format!("… {} more: --by {} shows all", all.len() - rows.len(), group.as_str());
        res.push(Line::new(&more, Style::DIM));
    }
    res.iter().map(|it| clip(it, screen.width)).collect()
}

fn columns_of(report: &StatsReport<'_>, group: StatsGroup, rows: &[&(&str, &StatsSums)]) -> Vec<TableColumn> {
    let cells = |of: &dyn Fn(&StatsSums) -> String| rows.iter().map(|it| of(it.1)).collect();
    let name = |it: &&(&str, &StatsSums)| match group {
        StatsGroup::Folder => cut_start(&escape_line(&folder_in_words(report, it.0)), MAX_NAME),
        _ => cut(&clean_line(it.0, MAX_CHARS), MAX_NAME),
    };
    let number = |heading, cells| TableColumn { is_number: true, ..TableColumn::new(heading, cells, Style::PLAIN) };
    let needed = |it: TableColumn| TableColumn { is_needed: true, ..it };
    let names = rows.iter().map(name).collect();
    let mut res = vec![needed(TableColumn::new(heading(group), names, Style::color(Color::Cyan)))];
    if group == StatsGroup::Tool {
        res.push(needed(number("CALLS", cells(&|it| grouped(it.calls.total)))));
        res.push(number("FAILED", cells(&|it| count(it.calls.failed))));
        res.push(number("STOPPED", cells(&|it| count(it.calls.stopped))));
        res.push(number("TIME", cells(&|it| time::duration(it.tools_ms))));
        res.push(number("QUESTIONS", cells(&|it| count(it.answers.total()))));
        return res;
    }
    res.push(needed(number("COST", cells(&|it| it.spent.cost_in_words().unwrap_or_else(|| "-".to_owned())))));
    res.push(number("IN", cells(&|it| compact(it.spent.usage.input))));
    res.push(number("OUT", cells(&|it| compact(it.spent.output()))));
    res.push(number("CACHED", cells(&|it| share_in_words(it.spent.cached_share()))));
    res.push(number("REQUESTS", cells(&|it| grouped(it.requests))));
    res.push(number("CALLS", cells(&|it| grouped(it.calls.total))));
    if group != StatsGroup::Model {
        res.push(number("SESSIONS", cells(&|it| grouped(it.sessions))));
    }
    res
}

fn heading(group: StatsGroup) -> &'static str {
    match group {
        StatsGroup::Day => "DAY",
        StatsGroup::Model => "MODEL",
        StatsGroup::Tool => "TOOL",
        StatsGroup::Folder => "FOLDER",
    }
}

fn count(n: u64) -> String {
    if n == 0 { "-".to_owned() } else { grouped(n) }
}

/// As long as the share of the room, to an eighth of a column; what is not nothing is seen.
fn bar(share: f64, room: usize, has_blocks: bool) -> String {
    if !share.is_finite() || share <= 0.0 {
        return String::new();
    }
    // Not more than the room, which is some tens.
    let eighths = (share.min(1.0) * room as f64 * 8.0).round().max(1.0) as usize;
    match has_blocks {
        true => {
            let part = (eighths % 8).checked_sub(1).and_then(|it| EIGHTHS.get(it));
            "█".repeat(eighths / 8) + &part.map(ToString::to_string).unwrap_or_default()
        }
        false => "#".repeat(eighths.div_ceil(8)),
    }
}

#[cfg(test)]
mod tests {
    use super::bar;

    #[test]
    fn bars_are_as_long_as_their_share() {
        let blocks = [0.0, 0.001, 0.5, 0.55, 1.0, 9.0, f64::NAN].map(|it| bar(it, 10, true));
        assert_eq!(blocks, ["", "▏", "█████", "█████▌", "██████████", "██████████", ""]);
        assert_eq!([0.0, 0.001, 0.55, 1.0].map(|it| bar(it, 10, false)), ["", "#", "######", "##########"]);
    }
}
