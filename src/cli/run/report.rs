//! The JSON object of `castor run -o json`, in Gemini CLI's shape: answer, spent tokens and cost, changes, and the end.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    time::Duration,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cli::client::{
    change_summary::CheckpointList,
    changed_files::{ChangedFiles, EditChanges, merge_change},
};
use castor_base::{
    checkpoint::FileChange,
    prompt_stats::{DecisionStats, LineStats, PromptStats, TokenStats, ToolTally},
};
use castor_client::{
    CallCounts, Conversation,
    agents::{AgentRun, AgentState},
    failure::{Failure, RunError},
};
use castor_wire::acp::{
    client::{ContextUsage, SessionCost},
    meta::PromptAnswerMeta,
};

/// Warnings that are kept of a run.
const MAX_WARNINGS: usize = 100;

/// What `castor run -o json` writes: one object.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunOutput {
    /// Absent where none was opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The answer's text; empty where there is none.
    pub response: String,
    /// What models and tools took for the prompt. Absent where the agent did not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stats: Option<Stats>,
    /// Why there is no whole answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
    /// What the session warned of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    pub castor: OwnOutput,
}

impl RunOutput {
    pub fn to_line(&self) -> String {
        // No map in it has keys that are not texts.
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}

/// As Gemini CLI counts them.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stats {
    /// By the model's name.
    pub models: BTreeMap<String, ModelMetrics>,
    pub tools: ToolMetrics,
    files: FileMetrics,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelMetrics {
    api: ApiMetrics,
    pub tokens: TokenMetrics,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ApiMetrics {
    total_requests: u64,
    total_errors: u64,
    total_latency_ms: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenMetrics {
    /// The prompts without their cached part.
    pub input: u64,
    /// The whole prompts.
    pub prompt: u64,
    /// The answers without thoughts.
    pub candidates: u64,
    pub total: u64,
    pub cached: u64,
    /// Billed as output.
    thoughts: u64,
    /// Always 0: castor's tools ask no model behind its back.
    tool: u64,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolMetrics {
    pub total_calls: u64,
    total_success: u64,
    total_fail: u64,
    total_duration_ms: u64,
    total_decisions: Decisions,
    /// By the tool's name.
    by_name: BTreeMap<String, ToolCallMetrics>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ToolCallMetrics {
    count: u64,
    success: u64,
    fail: u64,
    duration_ms: u64,
    decisions: Decisions,
}

/// How calls were approved.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Decisions {
    accept: u64,
    reject: u64,
    /// Always 0: nobody can change a call.
    modify: u64,
    /// By a rule or the mode, without a question.
    auto_accept: u64,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FileMetrics {
    total_lines_added: u64,
    total_lines_removed: u64,
}

/// What Gemini CLI does not have.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OwnOutput {
    pub exit_code: u8,
    /// Why the turn ended, in the protocol's words; null after an error.
    pub stop_reason: Option<String>,
    pub duration_ms: u64,
    /// Tokens of the prompt, all models together; null where the agent did not say.
    pub tokens: Option<TokenStats>,
    /// Of the prompt; null: not known.
    pub cost: Option<Cost>,
    /// Of the session so far; null: not known.
    pub session_cost: Option<Cost>,
    /// How full the context window is; null: no model answered.
    pub context: Option<ContextFill>,
    pub tool_calls: CallCounts,
    /// Sub-agents that ran for the prompt, each after the one that started it.
    pub agents: Vec<AgentOutput>,
    /// What the prompt changed in files; null: not known.
    pub changes: Option<ChangedFiles>,
}

/// One run of a sub-agent.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentOutput {
    pub name: String,
    /// Of its own session.
    pub session_id: String,
    /// The session that started it.
    pub parent: String,
    /// `GOAL` for a result, else why there is none; null: nothing was heard of its end.
    pub terminate_reason: Option<String>,
    pub requests: u64,
    /// With those of the agents below it.
    pub tokens: u64,
    /// The same in money; null: not known.
    pub cost: Option<Cost>,
    /// Without the time in which the user was asked.
    pub duration_ms: u64,
    pub tool_calls: u64,
}

impl From<&AgentRun> for AgentOutput {
    fn from(it: &AgentRun) -> Self {
        let usual = match it.state {
            AgentState::Done => Some("GOAL"),
            AgentState::Stopped => Some("MAX_TURNS"),
            AgentState::Failed => Some("ERROR"),
            AgentState::Cancelled => Some("ABORTED"),
            AgentState::Running | AgentState::Waiting | AgentState::CutOff => None,
        };
        Self {
            name: it.name.clone(),
            session_id: it.session.clone(),
            parent: it.parent.clone(),
            terminate_reason: it.outcome.reason.clone().or_else(|| usual.map(str::to_owned)),
            requests: it.spent.requests,
            tokens: it.spent.tokens,
            cost: it.spent.cost.map(|amount| Cost { amount, currency: "USD".to_owned() }),
            // Its end is known: who runs at the end of the turn was cut off.
            duration_ms: u64::try_from(it.took(Duration::ZERO).as_millis()).unwrap_or(u64::MAX),
            tool_calls: it.spent.tool_calls,
        }
    }
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Cost {
    pub amount: f64,
    /// ISO 4217.
    pub currency: String,
}

impl Cost {
    /// `None`: the agent does not say in which money.
    fn of(told: SessionCost) -> Option<Self> {
        Some(Self { amount: told.amount, currency: told.currency? })
    }
}

#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct ContextFill {
    /// Tokens.
    pub used: u64,
    /// Tokens of the whole window.
    pub size: u64,
}

/// Facts for the report, as they come in.
#[derive(Debug, Default)]
pub struct RunReport {
    context: Option<ContextFill>,
    session_cost: Option<Cost>,
    cost: Option<Cost>,
    stats: Option<PromptStats>,
    /// From then on only the agent knows what was spent.
    is_prompt_sent: bool,
    /// Of a session that goes on.
    known_checkpoints: BTreeSet<String>,
    changes: Option<ChangedFiles>,
    warnings: Vec<String>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug)]
pub struct RunEnd<'a> {
    pub session: Option<&'a str>,
    /// The stop reason.
    pub end: &'a Result<String, Failure>,
    pub took: Duration,
}

impl RunReport {
    pub fn take_usage(&mut self, told: &ContextUsage) {
        let fill = told.used.zip(told.size).map(|(used, size)| ContextFill { used, size });
        self.context = fill.or(self.context);
        self.session_cost = told.cost.clone().and_then(Cost::of).or(self.session_cost.take());
    }

    pub fn take_warning(&mut self, message: &str) {
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(message.to_owned());
        }
    }

    pub fn note_prompt(&mut self) {
        self.is_prompt_sent = true;
    }

    /// What the answer to the prompt, or its error, says beside it.
    pub fn take_meta(&mut self, meta: Option<&PromptAnswerMeta>) {
        let Some(meta) = meta else { return };
        self.cost = meta.cost().and_then(Cost::of);
        self.stats = meta.castor.stats.as_deref().cloned();
    }

    /// A session that goes on has checkpoints already.
    pub fn note_known(&mut self, listing: &Value) {
        let read = CheckpointList::deserialize(listing).map(|it| it.checkpoints).unwrap_or_default();
        self.known_checkpoints = read.into_iter().map(|it| it.id).collect();
    }

    /// The checkpoints of the session after the prompt.
    pub fn take_changes(&mut self, listing: &Value) {
        let Ok(CheckpointList { checkpoints }) = CheckpointList::deserialize(listing) else { return };
        let mut res = ChangedFiles::default();
        let mut files: BTreeMap<PathBuf, FileChange> = BTreeMap::new();
        for it in checkpoints.into_iter().filter(|it| !self.known_checkpoints.contains(&it.id) && !it.files.is_empty())
        {
            res.checkpoints.push(it.id);
            for it in it.files.into_iter().map(|it| it.change) {
                res.added += it.added;
                res.removed += it.removed;
                match files.get_mut(&it.path) {
                    Some(earlier) => merge_change(earlier, &it),
                    None => _ = files.insert(it.path.clone(), it),
                }
            }
        }
        res.files = files.into_values().collect();
        self.changes = Some(res);
    }

    /// What the prompt cost, where that is known.
    pub fn cost(&self) -> Option<&Cost> {
        self.cost.as_ref()
    }

    /// What the prompt took; `None`: the agent did not say.
    pub fn stats(&self) -> Option<&PromptStats> {
        self.stats.as_ref()
    }

    /// Its tokens, all models together.
    pub fn tokens(&self) -> Option<TokenStats> {
        let tokens = |it: &PromptStats| it.models.values().fold(TokenStats::default(), |all, it| all.plus(&it.tokens));
        self.stats.as_ref().map(tokens)
    }

    /// Without checkpoints the edits say what changed.
    fn take_edits(&mut self, edits: &EditChanges) {
        let has_checkpoints = self.changes.as_ref().is_some_and(|it| !it.checkpoints.is_empty());
        let Some(edits) = edits.list().filter(|_| !has_checkpoints) else { return };
        if let Some(stats) = &mut self.stats {
            stats.files = stats.files.or(Some(LineStats { added: edits.added, removed: edits.removed }));
        }
        self.changes = Some(edits);
    }

    /// All of it; the changes go into it.
    pub fn finish(
        &mut self,
        end: &RunEnd<'_>,
        response: String,
        talk: &Conversation,
        edits: &EditChanges,
    ) -> RunOutput {
        let failure = end.end.as_ref().err();
        let untouched = (!self.is_prompt_sent).then(PromptStats::default);
        self.stats = self.stats.take().or(untouched);
        self.take_edits(edits);
        RunOutput {
            session_id: end.session.map(str::to_owned),
            response,
            stats: self.stats.as_ref().map(Stats::from),
            error: failure.map(Failure::to_error),
            warnings: std::mem::take(&mut self.warnings),
            castor: OwnOutput {
                exit_code: failure.map_or(0, |it| it.exit.code()),
                stop_reason: end.end.as_ref().ok().cloned(),
                duration_ms: u64::try_from(end.took.as_millis()).unwrap_or(u64::MAX),
                tokens: self.tokens(),
                cost: self.cost.clone(),
                session_cost: self.session_cost.clone(),
                context: self.context,
                tool_calls: talk.counts(),
                agents: talk.agents.all().iter().map(AgentOutput::from).collect(),
                changes: self.changes.take(),
            },
        }
    }
}

impl From<&PromptStats> for Stats {
    fn from(it: &PromptStats) -> Self {
        let model = |it: &castor_base::prompt_stats::ModelStats| ModelMetrics {
            api: ApiMetrics { total_requests: it.requests, total_errors: it.errors, total_latency_ms: it.latency_ms },
            tokens: TokenMetrics {
                input: it.tokens.input.saturating_sub(it.tokens.cached),
                prompt: it.tokens.input,
                candidates: it.tokens.output,
                total: it.tokens.total,
                cached: it.tokens.cached,
                thoughts: it.tokens.thoughts,
                tool: 0,
            },
        };
        let tools = &it.tools;
        let lines = it.files.unwrap_or_default();
        Self {
            models: it.models.iter().map(|(name, it)| (name.clone(), model(it))).collect(),
            tools: ToolMetrics {
                total_calls: tools.all.total,
                total_success: tools.all.succeeded,
                total_fail: tools.all.failed,
                total_duration_ms: tools.all.duration_ms,
                total_decisions: tools.all.decisions.into(),
                by_name: tools.by_name.iter().map(|(name, it)| (name.clone(), ToolCallMetrics::from(it))).collect(),
            },
            files: FileMetrics { total_lines_added: lines.added, total_lines_removed: lines.removed },
        }
    }
}

impl From<&ToolTally> for ToolCallMetrics {
    fn from(it: &ToolTally) -> Self {
        Self {
            count: it.total,
            success: it.succeeded,
            fail: it.failed,
            duration_ms: it.duration_ms,
            decisions: it.decisions.into(),
        }
    }
}

impl From<DecisionStats> for Decisions {
    fn from(it: DecisionStats) -> Self {
        Self { accept: it.accepted, reject: it.rejected, modify: 0, auto_accept: it.automatic }
    }
}
