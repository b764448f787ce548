//! Sums over sessions: what they cost, did, asked and took, in all and for each model, tool, folder and day.

use std::collections::BTreeMap;

use clap::ValueEnum;

use crate::cli::sessions::export::Spending;
use castor_base::log::Answer;

/// What sums are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum StatsGroup {
    Day,
    Model,
    Tool,
    Folder,
}

impl StatsGroup {
    pub const ALL: [Self; 4] = [Self::Day, Self::Model, Self::Tool, Self::Folder];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Model => "model",
            Self::Tool => "tool",
            Self::Folder => "folder",
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatsSums {
    /// Those in which something happened.
    pub sessions: u64,
    /// Runs of sub-agents.
    pub agents: u64,
    pub prompts: u64,
    pub requests: u64,
    pub failed_requests: u64,
    pub spent: Spending,
    pub calls: ToolCallCounts,
    pub answers: AnswerCounts,
    pub waited_ms: u64,
    pub models_ms: u64,
    pub tools_ms: u64,
}

/// The heading of a column, and the words of a cell.
pub type SumsColumn = (&'static str, fn(&StatsSums) -> String);

/// Calls of tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToolCallCounts {
    pub total: u64,
    /// The tool gave an error.
    pub failed: u64,
    /// Denied, refused, cancelled or cut off: the tool had no say in it.
    pub stopped: u64,
}

/// What the user said to questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnswerCounts {
    pub once: u64,
    /// For the session, permanently, or for all that is confined.
    pub lasting: u64,
    pub refused: u64,
    /// Forms that were filled in, and links that were followed.
    pub filled: u64,
    /// Cancelled, dismissed, or not shown by the client.
    pub none: u64,
}

impl AnswerCounts {
    pub fn total(&self) -> u64 {
        self.once + self.lasting + self.refused + self.filled + self.none
    }

    pub fn add(&mut self, answer: &Answer) {
        let count = match answer {
            Answer::AllowOnce | Answer::AllowEdited { .. } => &mut self.once,
            Answer::AllowSession | Answer::AllowAlways | Answer::AllowAuto => &mut self.lasting,
            Answer::Reject | Answer::Declined => &mut self.refused,
            Answer::Accepted { .. } | Answer::Unfit { .. } | Answer::InText => &mut self.filled,
            Answer::Cancelled | Answer::Unable | Answer::Dismissed => &mut self.none,
        };
        *count += 1;
    }

    fn merge(&mut self, other: Self) {
        let Self { once, lasting, refused, filled, none } = other;
        self.once += once;
        self.lasting += lasting;
        self.refused += refused;
        self.filled += filled;
        self.none += none;
    }
}

impl StatsSums {
    pub fn merge(&mut self, other: &Self) {
        let Self { sessions, agents, prompts, requests, failed_requests, spent, calls, answers, .. } = other;
        self.sessions += sessions;
        self.agents += agents;
        self.prompts += prompts;
        self.requests += requests;
        self.failed_requests += failed_requests;
        self.spent = self.spent.plus(spent);
        self.calls.total += calls.total;
        self.calls.failed += calls.failed;
        self.calls.stopped += calls.stopped;
        self.answers.merge(*answers);
        self.waited_ms += other.waited_ms;
        self.models_ms += other.models_ms;
        self.tools_ms += other.tools_ms;
    }

    pub fn tokens(&self) -> u64 {
        self.spent.usage.input.saturating_add(self.spent.output())
    }
}

/// Sums in all, and by group and name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatsTable {
    pub total: StatsSums,
    groups: BTreeMap<(StatsGroup, String), StatsSums>,
}

impl StatsTable {
    /// Adds to the total, and to each group that has a name.
    pub fn add(&mut self, names: &[(StatsGroup, Option<&str>)], mut act: impl FnMut(&mut StatsSums)) {
        act(&mut self.total);
        for (group, name) in names {
            let Some(name) = name else { continue };
            act(self.groups.entry((*group, (*name).to_owned())).or_default());
        }
    }

    /// The same to everything that is there, if anything is.
    pub fn add_to_all(&mut self, mut act: impl FnMut(&mut StatsSums)) {
        if self.groups.is_empty() {
            return;
        }
        act(&mut self.total);
        self.groups.values_mut().for_each(act);
    }

    pub fn merge(&mut self, other: Self) {
        self.total.merge(&other.total);
        for (key, sums) in other.groups {
            self.groups.entry(key).or_default().merge(&sums);
        }
    }

    /// Days in order, the rest by what it cost or used, the most first.
    pub fn rows(&self, group: StatsGroup) -> Vec<(&str, &StatsSums)> {
        let of_group = self.groups.iter().filter(|(key, _)| key.0 == group);
        let mut res: Vec<(&str, &StatsSums)> = of_group.map(|(key, sums)| (key.1.as_str(), sums)).collect();
        match group {
            StatsGroup::Day => (),
            StatsGroup::Tool => res.sort_by_key(|(_, it)| std::cmp::Reverse((it.calls.total, it.tools_ms))),
            _ => res.sort_by_key(|(_, it)| std::cmp::Reverse((it.spent.cost, it.tokens(), it.requests))),
        }
        res
    }
}
