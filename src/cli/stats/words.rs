//! Sums in words, for the terminal and the page.

use super::{
    StatsReport,
    sums::{AnswerCounts, StatsGroup, StatsSums},
};
use crate::cli::{
    render::columns::in_home,
    sessions::{export::grouped, time},
};
use castor_base::path::AbsPath;

/// Names and values of the total. What there is nothing of is left out.
pub fn summary(report: &StatsReport<'_>) -> Vec<(&'static str, String)> {
    let it = &report.table.total;
    let mut sessions = counted(it.sessions, "session");
    for (n, what) in [(it.agents, "sub-agent"), (it.prompts, "prompt")] {
        if n > 0 {
            sessions += &format!(", {}", counted(n, what));
        }
    }
    let cached = format!("; {} of the input came from the cache", share_in_words(it.spent.cached_share()));
    let cached = if it.spent.usage.cached > 0 { cached } else { String::new() };
    let rows = [
        ("Sessions", true, sessions + &period_in_words(report)),
        ("Cost", it.requests > 0, it.spent.cost_in_words().unwrap_or_else(|| "unknown".to_owned())),
        ("Tokens", it.tokens() > 0, it.spent.tokens_in_words() + &cached),
        ("Requests", it.requests > 0, grouped(it.requests) + &parts(&[(it.failed_requests, "failed")])),
        ("Tool calls", it.calls.total > 0, calls_in_words(it)),
        ("Questions", it.answers.total() > 0, answers_in_words(&it.answers)),
        ("Time", it.models_ms + it.tools_ms + it.waited_ms > 0, times_in_words(it)),
    ];
    rows.into_iter().filter(|it| it.1).map(|(name, _, value)| (name, value)).collect()
}

fn calls_in_words(it: &StatsSums) -> String {
    grouped(it.calls.total) + &parts(&[(it.calls.failed, "failed"), (it.calls.stopped, "did not run to their end")])
}

pub fn answers_in_words(it: &AnswerCounts) -> String {
    let answers = [
        (it.once, "allowed once"),
        (it.lasting, "allowed for longer"),
        (it.refused, "refused"),
        (it.filled, "answered in words"),
        (it.none, "without an answer"),
    ];
    grouped(it.total()) + &parts(&answers)
}

pub fn times_in_words(it: &StatsSums) -> String {
    let [models, tools, waited] = [it.models_ms, it.tools_ms, it.waited_ms].map(time::duration);
    format!("models {models}, tools {tools}, waiting for you {waited}")
}

/// `: 3 failed, 1 refused`
fn parts(parts: &[(u64, &str)]) -> String {
    let words: Vec<String> =
        parts.iter().filter(|it| it.0 > 0).map(|(n, what)| format!("{} {what}", grouped(*n))).collect();
    if words.is_empty() { String::new() } else { format!(": {}", words.join(", ")) }
}

fn counted(n: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(n), if n == 1 { "" } else { "s" })
}

fn period_in_words(report: &StatsReport<'_>) -> String {
    let minute = |ms: u64| time::minute(ms, report.zone);
    match (report.period.start, report.period.end) {
        (0, u64::MAX) => String::new(),
        (0, end) => format!(", before {}", minute(end)),
        (start, u64::MAX) => format!(", since {}", minute(start)),
        (start, end) => format!(", from {} to {}", minute(start), minute(end)),
    }
}

/// `81 %`
pub fn share_in_words(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// With `~` for the home.
pub fn folder_in_words(report: &StatsReport<'_>, folder: &str) -> String {
    AbsPath::new(folder).map_or_else(|| folder.to_owned(), |it| in_home(&it, report.home))
}

/// Whether a price is known: else tokens tell more.
pub fn spent_by_cost(report: &StatsReport<'_>) -> bool {
    report.table.total.spent.cost.is_some_and(|it| it.as_dollars() > 0.0)
}

/// By what the rows of a group are compared.
pub fn bar_value(group: StatsGroup, it: &StatsSums, by_cost: bool) -> f64 {
    match group {
        StatsGroup::Tool => it.calls.total as f64,
        _ if by_cost => it.spent.cost.unwrap_or_default().as_dollars(),
        _ => it.tokens() as f64,
    }
}

pub fn bar_title(group: StatsGroup, by_cost: bool) -> &'static str {
    match group {
        StatsGroup::Tool => "CALLS",
        _ if by_cost => "COST",
        _ => "TOKENS",
    }
}
