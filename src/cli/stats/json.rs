//! Sums as JSON, for programs.

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    StatsReport,
    sums::{StatsGroup, StatsSums},
};
use crate::cli::sessions::time;
use castor_base::money::Money;

/// What `castor stats -o json` writes: one object.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StatsOutput<'a> {
    /// The first time that counts; null: the beginning.
    since: Option<String>,
    /// The first time that does not count any more; null: the end.
    until: Option<String>,
    /// Logs that could not be read, in words.
    unread: &'a [String],
    total: StatsSumsOutput,
    /// By day in the local time zone, `2026-01-31`; absent with `--by` of something else, as are the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    days: Option<Vec<StatsRowOutput<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    models: Option<Vec<StatsRowOutput<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<StatsRowOutput<'a>>>,
    /// By the folder that sessions work in.
    #[serde(skip_serializing_if = "Option::is_none")]
    folders: Option<Vec<StatsRowOutput<'a>>>,
}

#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StatsRowOutput<'a> {
    name: &'a str,
    sums: StatsSumsOutput,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StatsSumsOutput {
    /// Those in which something of it happened.
    sessions: u64,
    /// Runs of sub-agents.
    agents: u64,
    prompts: u64,
    /// To models.
    requests: u64,
    failed_requests: u64,
    tokens: TokensOutput,
    /// In US dollars, as far as prices are known; null: none is.
    cost: Option<Money>,
    /// The price of a request was not known.
    cost_is_partial: bool,
    calls: CallsOutput,
    questions: QuestionsOutput,
    milliseconds: MillisecondsOutput,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TokensOutput {
    /// Those from the cache included.
    input: u64,
    cached: u64,
    /// Those of thoughts included.
    output: u64,
    thoughts: u64,
    /// Of the input, from 0 to 1.
    cached_share: f64,
}

/// Calls of tools.
#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CallsOutput {
    total: u64,
    /// The tool gave an error.
    failed: u64,
    /// Denied, refused, cancelled or cut off.
    stopped: u64,
}

/// Questions to the user, and how they were answered.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct QuestionsOutput {
    asked: u64,
    allowed_once: u64,
    /// For the session, permanently, or for all that is confined.
    allowed_for_longer: u64,
    refused: u64,
    answered_in_words: u64,
    without_answer: u64,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct MillisecondsOutput {
    models: u64,
    tools: u64,
    /// The user had a question before them.
    waiting_for_user: u64,
}

pub fn json(report: &StatsReport<'_>) -> String {
    let iso = |ms: u64| Some(time::iso(ms)).filter(|_| ![0, u64::MAX].contains(&ms));
    let rows = |group: StatsGroup| {
        let row = |(name, it): (_, &StatsSums)| StatsRowOutput { name, sums: sums(it) };
        report.groups.contains(&group).then(|| report.table.rows(group).into_iter().map(row).collect())
    };
    let output = StatsOutput {
        since: iso(report.period.start),
        until: iso(report.period.end),
        unread: report.unread,
        total: sums(&report.table.total),
        days: rows(StatsGroup::Day),
        models: rows(StatsGroup::Model),
        tools: rows(StatsGroup::Tool),
        folders: rows(StatsGroup::Folder),
    };
    // Structs can always be written.
    serde_json::to_string_pretty(&output).unwrap_or_default() + "\n"
}

fn sums(it: &StatsSums) -> StatsSumsOutput {
    let (usage, answers) = (&it.spent.usage, &it.answers);
    StatsSumsOutput {
        sessions: it.sessions,
        agents: it.agents,
        prompts: it.prompts,
        requests: it.requests,
        failed_requests: it.failed_requests,
        tokens: TokensOutput {
            input: usage.input,
            cached: usage.cached,
            output: it.spent.output(),
            thoughts: usage.thought,
            cached_share: it.spent.cached_share(),
        },
        cost: it.spent.cost,
        cost_is_partial: it.spent.is_cost_partial,
        calls: CallsOutput { total: it.calls.total, failed: it.calls.failed, stopped: it.calls.stopped },
        questions: QuestionsOutput {
            asked: answers.total(),
            allowed_once: answers.once,
            allowed_for_longer: answers.lasting,
            refused: answers.refused,
            answered_in_words: answers.filled,
            without_answer: answers.none,
        },
        milliseconds: MillisecondsOutput { models: it.models_ms, tools: it.tools_ms, waiting_for_user: it.waited_ms },
    }
}
