//! The session log: facts, one JSON line each. A session is the fold over them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    agent::ClientAgent,
    checkpoint::{Changes, RestoreResult},
    client_settings::ClientPrompt,
    event::AgentEvent,
    fallback::Intent,
    hook::{HookEvent, HookSwitch},
    host_pattern,
    ids::{CallId, CheckpointId, MessageId, SessionId, ThreadId},
    left_out::LeftOut,
    limits::Limits,
    memory::MemoryFile,
    model::Failure,
    path::AbsPath,
    prompt_options::PromptOptions,
    state::StateDelta,
    trust::TrustChoice,
};

pub use crate::{
    grant::Grant,
    left_out::Mask,
    mode::Mode,
    principal::{ChildLink, Principal},
};

/// The version this castor writes. Newer ones are read as far as they are understood, and never written. Version 1 had
/// events of version 1. Up to version 2 lines had no checksums.
pub const VERSION: u32 = 3;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    /// Milliseconds since the Unix epoch.
    pub at: u64,
    #[serde(flatten)]
    pub fact: Fact,
}

/// What happened. Never an effect: replaying facts does nothing to the world.
// Nearly all facts are events: boxing them would only cost.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "fact", rename_all = "snake_case")]
pub enum Fact {
    /// First line of every log.
    Created {
        version: u32,
        castor: String,
        session: SessionId,
        cwd: AbsPath,
        roots: Vec<AbsPath>,
        mode: Mode,
        model: String,
        #[serde(default, skip_serializing_if = "Principal::is_root")]
        principal: Principal,
        /// The session that this one is a copy of, up to a point.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<SessionId>,
        /// The call that this session carries out, if an agent's run is what it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        child_of: Option<ChildLink>,
        /// That of its events; `None`: the main thread.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        thread: Option<ThreadId>,
        /// Whose `user:` keys its state has; `None`: `local`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user: Option<String>,
    },
    /// A log of an older version goes on in this one.
    Version {
        version: u32,
        castor: String,
    },
    /// Something was shown.
    Event {
        event: AgentEvent,
    },
    /// A request went to a model, and why to this one; `attempt` counts from 1 for each sample.
    Attempt {
        model: String,
        attempt: u32,
        /// Its size by the rule of thumb; 0: logs of old do not say.
        #[serde(default, skip_serializing_if = "is_zero")]
        tokens: u64,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        why: String,
    },
    /// The attempt failed. Abandoned: another follows, and what this one had shown is out of context.
    AttemptFailed {
        failure: Failure,
        abandoned: bool,
        /// What the failure means, and what is done about it, a word each.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        class: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        decision: String,
    },
    /// What follows where no further attempt helps: `to` takes over from `from`. Asked, it has the user's word.
    Fallback {
        from: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        intent: Option<Intent>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<Answer>,
        why: String,
    },
    Decision {
        call: CallId,
        decision: Decision,
        rule: String,
    },
    /// The user's word on a call.
    Answered {
        call: CallId,
        answer: Answer,
    },
    /// The user's word on the folder, as far as there was one.
    Trust {
        choice: TrustChoice,
        answer: Answer,
    },
    /// "Always" for this session.
    Granted {
        grant: Grant,
        /// It was written down for future sessions, too.
        #[serde(default, skip_serializing_if = "is_false")]
        lasting: bool,
    },
    Mode {
        mode: Mode,
    },
    Model {
        model: String,
        /// How much it reads at once, in tokens; 0: logs of old do not say.
        #[serde(default, skip_serializing_if = "is_zero")]
        window: u64,
    },
    Tuning {
        tuning: Tuning,
    },
    /// From the next prompt on the session is this agent's; `None`: castor's own again.
    Agent {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// Where a client brought it: the keys of a file, with `instructions`. It is there from now on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        definition: Option<ClientAgent>,
    },
    /// The session may start this agent from now on, or not, whatever the settings say.
    AgentSwitched {
        agent: String,
        enabled: bool,
    },
    /// The model has this skill from now on, or not, whatever the settings say.
    SkillSwitched {
        skill: String,
        enabled: bool,
    },
    /// A client's system prompt, which holds from here on.
    ClientPrompt {
        prompt: ClientPrompt,
    },
    /// What the next run of an agent that is not castor's begins with.
    PeerMemory {
        agent: String,
        memory: String,
    },
    /// The state has these values from now on; null: the key is gone. Keys of `temp:` are never logged.
    State {
        delta: StateDelta,
    },
    /// How far turns and session may go from now on, whatever the settings say; `None`: as those say.
    Limits {
        limits: Option<Limits>,
    },
    /// What holds from here to the end of the next turn alone.
    PromptOptions {
        options: PromptOptions,
    },
    /// So long the session worked since the last such entry, without the time in which the user was waited for.
    Worked {
        ms: u64,
    },
    /// What the model saw of the conversation is gone for it; it stays shown and logged.
    Cleared,
    /// This message of the user and all after it is gone for the model, and from what clients are shown of the past. What
    /// is no conversation stays as it is now: mode, grants, options, what was spent.
    Rewound {
        to: MessageId,
    },
    /// A standing yes was taken back.
    Revoked {
        grant: Grant,
    },
    /// Hooks had a say, or failed to. `context` goes to the model, behind the prompt; what hooks did to a call is in its
    /// events.
    Hooked {
        event: HookEvent,
        /// What they go by, in order.
        hooks: Vec<String>,
        /// stop, block or ask.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        verdict: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context: Option<String>,
        /// The prompt is taken back: the model does not see it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        retracts: bool,
        /// What they changed, as they said it.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        change: Map<String, Value>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        failed: Vec<String>,
    },
    /// The last prompt is not the model's to see: it was refused, as it is longer than what the model reads.
    Retracted {},
    /// A hook runs in this session from now on, or not.
    HookSwitched {
        hook: String,
        to: HookSwitch,
    },
    /// What the model is told of user and project from now on, in place of what it was told before.
    Remembered {
        files: Vec<MemoryFile>,
    },
    /// Files of folders that calls came to, and of which the model is told from here on, beside what it is told anyway.
    Discovered {
        files: Vec<MemoryFile>,
    },
    /// The model sees less of these results from now on; the log has them whole.
    Masked {
        masks: Vec<Mask>,
    },
    /// The model sees the summary in place of its first turns from now on.
    Compressed {
        turns: u64,
        summary: String,
        /// What a request is after it, in tokens by the rule of thumb; 0: nobody counted.
        #[serde(default)]
        tokens: u64,
    },
    /// It could not be compressed: why, and how large a request is, in tokens by the rule of thumb.
    NotCompressed {
        why: String,
        tokens: u64,
    },
    /// The model refused a request as too long: what it reads at once, and how large the request was for it and by the
    /// rule of thumb, in tokens.
    Outgrown {
        model: String,
        window: u64,
        size: u64,
        tokens: u64,
    },
    /// Requests to this model go without a part from here on: its provider refused it, or it made them too large.
    LeftOut {
        model: String,
        part: LeftOut,
    },
    /// What a call may change is held from here on; with `changes`: what it changed since. Without `call` it was taken
    /// beside what ran in the background, or for a hook.
    Checkpoint {
        id: CheckpointId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        changes: Option<Changes>,
    },
    /// Files were given back: what these calls changed, or these restores. The restore is a checkpoint itself.
    Restored {
        id: CheckpointId,
        undone: Vec<CheckpointId>,
        /// Not all paths were wanted.
        #[serde(default, skip_serializing_if = "is_false")]
        partial: bool,
        /// At most as many paths as a log entry names.
        files: RestoreResult,
    },
    /// Written by a newer castor.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

/// The newest version that a log has lines of, as far as it says so.
pub fn newest_version(entries: &[Entry]) -> u32 {
    entries.iter().map(version_of).max().unwrap_or_default()
}

/// The version that the log has from this fact on; 0: it does not say.
pub fn version_of(entry: &Entry) -> u32 {
    match entry.fact {
        Fact::Created { version, .. } | Fact::Version { version, .. } => version,
        _ => 0,
    }
}

// The signature that serde wants.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_false(it: &bool) -> bool {
    !it
}

fn is_zero(it: &u64) -> bool {
    *it == 0
}

/// From mild to strict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Allow,
    Ask,
    #[default]
    Deny,
}

/// How the model is asked, beyond which one it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Tuning {
    pub thinking: ThoughtLevel,
    /// Whether the model's thoughts are asked for and shown.
    pub thoughts: bool,
}

impl Default for Tuning {
    fn default() -> Self {
        Self { thinking: ThoughtLevel::default(), thoughts: true }
    }
}

/// How much the model thinks before it answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ThoughtLevel {
    /// The model's own choice.
    #[default]
    Auto,
    Low,
    Medium,
    High,
}

impl ThoughtLevel {
    pub const ALL: &[ThoughtLevel] = &[Self::Auto, Self::Low, Self::Medium, Self::High];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|it| it.as_str() == text)
    }
}

/// What came back from the user, or why nothing did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    AllowOnce,
    /// Once, with other arguments than the model's.
    AllowEdited {
        args: Map<String, Value>,
    },
    AllowSession,
    /// For this session and all to come.
    AllowAlways,
    /// This, and from now on all that is confined: the mode `auto`.
    AllowAuto,
    Reject,
    /// The client withdrew: the turn is over.
    Cancelled,
    /// The client could not ask, or answered something else.
    Unable,
    /// A form was filled in so that it fits, or a link was followed.
    Accepted {
        content: Map<String, Value>,
    },
    /// The user chose not to answer.
    Declined,
    /// The question was closed without a choice.
    Dismissed,
    /// A form was filled in so that it does not fit: why.
    Unfit {
        why: String,
    },
    /// The client shows no such questions: it is asked in a message, and the next prompt is the answer.
    InText,
}

/// The file of such rules, among the user's policies.
pub const GRANTS_FILE: &str = "auto-saved.toml";

/// A yes for ever, narrowed to what was asked: it becomes a rule in a file of the user's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersistentGrant {
    pub tool: String,
    pub server: Option<String>,
    /// Leading words of shell commands.
    pub prefixes: Vec<String>,
    /// Over the arguments.
    pub args_pattern: Option<String>,
    /// The mode it was said in, and those that ask less.
    pub modes: Vec<Mode>,
    /// Of a server's tool: what it said of itself then. It holds for nothing else.
    pub digest: Option<String>,
}

impl PersistentGrant {
    /// Over the arguments of a tool that is about one file, as the model names it.
    pub fn file_pattern(file: &str) -> String {
        let pair = format!("\"file_path\":{}", Value::from(file));
        format!("\\x00{}\\x00", regex::escape(&pair))
    }

    /// The file of such a pattern; `None`: it is another.
    pub fn file_of(pattern: &str) -> Option<String> {
        let escaped = pattern.strip_prefix("\\x00")?.strip_suffix("\\x00")?;
        let mut chars = escaped.chars();
        let mut pair = String::with_capacity(escaped.len());
        while let Some(it) = chars.next() {
            pair.push(if it == '\\' { chars.next()? } else { it });
        }
        let Value::String(file) = serde_json::from_str(pair.strip_prefix("\"file_path\":")?).ok()? else { return None };
        // Written by hand it may mean more.
        (Self::file_pattern(&file) == pattern).then_some(file)
    }

    /// What a yes is to, as its question names it.
    pub fn place_in_words(pattern: &str) -> String {
        host_pattern::host_of(pattern).unwrap_or_else(|| "this file".to_owned())
    }

    /// What a rule speaks of, behind the names of its tools.
    pub fn pattern_in_words(pattern: &str) -> String {
        Self::subject_of(pattern).map_or_else(|| format!(" {pattern}"), |it| format!(" of {it}"))
    }

    /// The file or the host of one of these patterns.
    pub fn subject_of(pattern: &str) -> Option<String> {
        Self::file_of(pattern).or_else(|| host_pattern::host_of(pattern))
    }

    /// Tells whether it means something else in another folder, as `npm test` and a relative path do.
    pub fn is_local(&self) -> bool {
        !self.prefixes.is_empty() || self.args_pattern.is_some()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Answer, Entry, Fact, PersistentGrant};

    #[test]
    fn a_file_is_shown_as_people_write_it() {
        for file in ["a.txt", "src/(x) [1]+$.rs", "a\"b\\c\n", "ä ö", ""] {
            assert_eq!(PersistentGrant::file_of(&PersistentGrant::file_pattern(file)).as_deref(), Some(file));
        }
        for other in ["a.txt", r#"\x00"file_path":"a.txt"\x00"#, r#"\x00"file_path":"a.*"\x00"#, r"\x00"] {
            assert_eq!(PersistentGrant::file_of(other), None, "{other}");
        }
    }

    /// Answers were only words once; logs with them are still there.
    #[test]
    fn answers_of_every_age_are_read() {
        let read = |answer| {
            let entry = json!({ "at": 1, "fact": "answered", "call": "c", "answer": answer });
            match serde_json::from_value::<Entry>(entry).unwrap().fact {
                Fact::Answered { answer, .. } => answer,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(read(json!("allow_once")), Answer::AllowOnce);
        assert_eq!(read(json!("unable")), Answer::Unable);
        let content = json!({ "0": "x" }).as_object().unwrap().clone();
        let edited = Answer::AllowEdited { args: content.clone() };
        for it in [edited, Answer::Accepted { content }, Answer::Unfit { why: "odd".to_owned() }, Answer::InText] {
            assert_eq!(read(serde_json::to_value(&it).unwrap()), it);
        }
    }
}
