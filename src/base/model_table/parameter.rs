//! Parameters that a model may refuse: a closed list. Messages, tools and safety settings are none of them.

use serde::{Deserialize, Serialize};

/// An optional part of a request: the answer may be another without it, and is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Parameter {
    Temperature,
    TopP,
    TopK,
    Stop,
    MaxOutputTokens,
    Thinking,
    IncludeThoughts,
    /// What the answer has to look like.
    Schema,
    StreamOptions,
    ParallelToolCalls,
    Store,
    CacheControl,
}

/// Some of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "Vec<Parameter>")]
pub struct ParameterSet(u16);

impl ParameterSet {
    pub fn has(self, it: Parameter) -> bool {
        self.0 & bit(it) != 0
    }

    #[must_use]
    pub fn with(self, it: Parameter) -> Self {
        Self(self.0 | bit(it))
    }

    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

fn bit(it: Parameter) -> u16 {
    1 << (it as u16)
}

impl From<Vec<Parameter>> for ParameterSet {
    fn from(list: Vec<Parameter>) -> Self {
        list.into_iter().fold(Self::default(), Self::with)
    }
}
