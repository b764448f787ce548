//! Parameters that a model may refuse: a closed list. Messages, tools and safety settings are none of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An optional part of a request: the answer may be another without it, and is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Parameter {
    Temperature,
    TopP,
    TopK,
    Stop,
    MaxOutputTokens,
    /// The limit of an answer goes by another name there.
    MaxTokensName,
    Thinking,
    IncludeThoughts,
    /// What the answer has to look like.
    Schema,
    StreamOptions,
    ParallelToolCalls,
    Store,
    /// What else an answer is to bring, such as encrypted thoughts.
    Include,
    CacheControl,
    /// A call of one tool is demanded.
    ForcedTool,
    /// Tools, in the chat dialect.
    ChatTools,
    /// Tools beside a word for how much to think, in the chat dialect.
    ChatToolsWithEffort,
}

use Parameter as P;

/// What people call each, and what providers do: in lower case and without `_`.
const NAMES: &[(Parameter, &str, &[&str])] = &[
    (P::Temperature, "temperature", &["temperature"]),
    (P::TopP, "top_p", &["topp"]),
    (P::TopK, "top_k", &["topk"]),
    (P::Stop, "stop", &["stop", "stopsequences"]),
    (P::MaxOutputTokens, "max_output_tokens", &["maxoutputtokens", "maxtokens", "maxcompletiontokens"]),
    (P::MaxTokensName, "the name of max_tokens", &[]),
    (
        P::Thinking,
        "thinking",
        &[
            "thinking",
            "thinkingconfig",
            "thinkinglevel",
            "thinkingbudget",
            "budgettokens",
            "enablethinking",
            "reasoning",
            "reasoningeffort",
            "effort",
            "outputconfig",
        ],
    ),
    (P::IncludeThoughts, "thoughts", &["includethoughts", "summary", "reasoningsummary", "display"]),
    (
        P::Schema,
        "response_format",
        &[
            "responseformat",
            "format",
            "textformat",
            "jsonschema",
            "responsejsonschema",
            "responseschema",
            "responsemimetype",
            "outputformat",
            "toolchoice",
        ],
    ),
    (P::StreamOptions, "stream_options", &["streamoptions", "includeusage"]),
    (P::ParallelToolCalls, "parallel_tool_calls", &["paralleltoolcalls"]),
    (P::Store, "store", &["store"]),
    (P::Include, "include", &["include"]),
    (P::CacheControl, "cache_control", &["cachecontrol"]),
];

impl Parameter {
    /// By a provider's name for it, in lower case and without `_`.
    pub fn of_name(name: &str) -> Option<Self> {
        NAMES.iter().find(|(.., names)| names.contains(&name)).map(|(it, ..)| *it)
    }

    /// For people.
    pub fn as_str(self) -> &'static str {
        NAMES.iter().find(|(it, ..)| *it == self).map_or("", |(_, name, _)| name)
    }
}

/// Some of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "Vec<Parameter>")]
pub struct ParameterSet(u32);

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

fn bit(it: Parameter) -> u32 {
    1 << (it as u32)
}

impl From<Vec<Parameter>> for ParameterSet {
    fn from(list: Vec<Parameter>) -> Self {
        list.into_iter().fold(Self::default(), Self::with)
    }
}
