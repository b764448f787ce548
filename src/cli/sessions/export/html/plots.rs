//! Plots in the HTML page: the times of a session, and what each turn used and cost.

use jiff::tz::TimeZone;

use super::super::{
    super::{
        spans::{SpanKind, TimeSpan},
        time,
    },
    spending::{plotted_cost, plotted_tokens},
    story::{Story, Turn},
};
use crate::cli::page::{
    column_plot::{ColumnPlot, PlotColumn},
    strip_plot::{StripMark, StripPlot, StripSpan},
};

/// From the top: what the lane has, its name, and the number of its colour.
const LANES: [(SpanKind, &str, usize); 4] = [
    (SpanKind::Model, "models", 0),
    (SpanKind::Tool, "tools", 3),
    (SpanKind::Agent, "agents", 4),
    (SpanKind::Waiting, "you", 2),
];

pub fn write_plots(story: &Story<'_>, zone: &TimeZone, out: &mut String) {
    write_times(story, zone, out);
    // Of one turn the page says as much in a line.
    if story.turns.len() > 1 {
        write_turns(story, out);
    }
}

fn write_times(story: &Story<'_>, zone: &TimeZone, out: &mut String) {
    let total = |kind: SpanKind| story.spans.iter().filter(|it| it.kind == kind).map(TimeSpan::ms).sum::<u64>();
    let lanes: Vec<_> = LANES.into_iter().map(|it| (it, total(it.0))).filter(|it| it.1 > 0).collect();
    let words: Vec<String> =
        lanes.iter().map(|((_, name, _), ms)| format!("{} {}", lane_in_words(name), time::duration(*ms))).collect();
    let title = format!("Time: {}. Times without work are cut short.", words.join(", "));
    let span = |it: &TimeSpan| {
        let lane = lanes.iter().position(|lane| lane.0.0 == it.kind)?;
        let name = if it.name.is_empty() { "castor" } else { &it.name };
        let title = format!("{name}, {} at {}", time::duration(it.ms()), time::clock(it.from, zone));
        Some(StripSpan { lane, from: it.from, to: it.to, title })
    };
    let mark = |(nth, turn): (usize, &Turn)| StripMark {
        at: turn.at_ms,
        label: (nth + 1).to_string(),
        link: format!("#turn-{}", nth + 1),
    };
    let names: Vec<(&str, usize)> = lanes.iter().map(|((_, name, color), _)| (*name, *color)).collect();
    StripPlot {
        title: &title,
        lanes: &names,
        spans: story.spans.iter().filter_map(span).collect(),
        marks: story.turns.iter().enumerate().map(mark).collect(),
    }
    .write(out);
}

fn lane_in_words(name: &str) -> &str {
    if name == "you" { "waiting for you" } else { name }
}

fn write_turns(story: &Story<'_>, out: &mut String) {
    let turns = |values: fn(&Turn) -> Vec<f64>| {
        let column = |(nth, it): (usize, &Turn)| PlotColumn { label: (nth + 1).to_string(), values: values(it) };
        story.turns.iter().enumerate().map(column).collect()
    };
    let tokens = |it: &Turn| {
        let usage = &it.spent.usage;
        vec![usage.cached as f64, usage.input.saturating_sub(usage.cached) as f64, it.spent.output() as f64]
    };
    let series = [("from the cache", 1), ("other input", 0), ("output", 2)];
    ColumnPlot { title: "Tokens a turn", series: &series, columns: turns(tokens), in_words: plotted_tokens }.write(out);
    let cost = |it: &Turn| vec![it.spent.cost.unwrap_or_default().as_dollars()];
    ColumnPlot { title: "Cost a turn", series: &[("cost", 0)], columns: turns(cost), in_words: plotted_cost }
        .write(out);
}
