//! Inputs and effects of the engine: everything that a step takes and everything that it returns.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::base::{
    check::{Check, CheckFinding},
    checkpoint::{Changes, CheckpointResult, OnConflict, RestoreOrder, RestoreResult, Rewinds, Scope},
    content::Part,
    elicitation::{ElicitationRequest, Reply},
    event::{Location, PromptOutcome},
    fallback::Outage,
    hook::{HookReport, HookRun},
    ids::{CallId, CheckpointId, EffectId, ElicitationId, MessageId, PromptId, QuestionId},
    limits::Limits,
    log::{Answer, Entry, Grant, Mode, PersistentGrant, Tuning},
    memory::MemoryFile,
    model::{Chunk, Failure, ModelRequest, Purpose, Usage},
    path::AbsPath,
    question::Form,
    sandbox::SandboxGrant,
    terminal::Screen,
    tool::{BaseHash, Display, Preview, TargetPath, Targets, ToolCall, ToolError, ToolKind, ToolOutput, ToolSpec},
    trust::TrustChoice,
};

/// Something that happened. Answers to effects that are over are normal and ignored.
#[derive(Clone, Debug)]
pub enum Input {
    Prompt {
        prompt: PromptId,
        content: Vec<Part>,
    },
    /// Words for the running turn. Answered by `Settle`, like a prompt.
    Steer {
        prompt: PromptId,
        content: Vec<Part>,
    },
    /// Ends the running prompt and all that wait.
    Cancel,
    /// Ends one prompt, running or waiting.
    CancelPrompt(PromptId),
    /// The user's choice among what is on offer.
    SetOption(OptionValue),
    /// The conversation goes back to before this message of the user, as the session's log has it. While a turn runs
    /// nothing comes of it.
    RewindConversation {
        to: MessageId,
        log: Arc<[Entry]>,
    },
    /// The folder is not trusted, or not as it is now: what the next turn asks or tells.
    TrustPrompt(TrustPrompt),
    /// For user and model at the start of the next turn.
    Notice(String),
    /// What became of a command in the background: for the next request to the model.
    BackgroundResult(String),
    /// Nobody is left of a command that went on after its call, by the number of its first process.
    BackgroundExited(u32),
    /// What the user said about the folder holds, or why it could not be written down.
    TrustApplied {
        effect: EffectId,
        result: Result<(), String>,
    },
    /// The tools from outside, whole; they hold from the next request to a model.
    ToolsChanged(McpTools),
    /// Models that need not be asked for now, whole: other sessions found out, too.
    Outages(BTreeMap<String, Outage>),
    Chunks {
        effect: EffectId,
        chunks: Vec<Chunk>,
    },
    Generated {
        effect: EffectId,
        result: Result<(), Failure>,
    },
    Resolved {
        effect: EffectId,
        result: Result<Targets, ToolError>,
    },
    /// What a safety checker says; an error: why it says nothing.
    Checked {
        effect: EffectId,
        finding: Result<CheckFinding, String>,
    },
    Previewed {
        effect: EffectId,
        result: Result<Preview, ToolError>,
    },
    Answered {
        question: QuestionId,
        answer: Answer,
    },
    /// The output of a call is seen in a terminal of the client's.
    TerminalAttached {
        effect: EffectId,
        screen: Screen,
    },
    OutputPrinted {
        effect: EffectId,
        text: String,
    },
    /// `changes`: what it changed, where its run was held by a checkpoint; an error: why nobody knows.
    RunEnded {
        effect: EffectId,
        output: Box<ToolOutput>,
        changes: Option<Result<Changes, String>>,
    },
    /// What a call may change is held, or why it is not.
    Checkpointed {
        effect: EffectId,
        result: Result<CheckpointResult, String>,
    },
    /// What changed since a checkpoint was taken.
    Compared {
        effect: EffectId,
        changes: Result<Changes, String>,
    },
    /// What a restore came to, with what is to be said about it; or why it could not be done.
    Restored {
        effect: EffectId,
        result: Result<(RestoreResult, Vec<String>), String>,
    },
    /// A diff for people.
    Diffed {
        effect: EffectId,
        result: Result<String, String>,
    },
    /// A client goes back, without asking anybody. Answered by `Rewound`.
    ClientRewind(Box<RewindOrder>),
    /// A server asks the user, for one of these running calls. Answered by `Reply`, unless it is taken back.
    ElicitationRequested {
        elicitation: ElicitationId,
        calls: Vec<EffectId>,
        request: ElicitationRequest,
    },
    /// The server no longer wants to know.
    ElicitationWithdrawn {
        elicitation: ElicitationId,
    },
    TimerFired {
        effect: EffectId,
    },
    HookFinished {
        effect: EffectId,
        report: Box<HookReport>,
    },
    /// The memory files that were asked for, as they are now, or why nobody could look.
    MemoryRead {
        effect: EffectId,
        files: Result<Arc<[MemoryFile]>, String>,
    },
}

/// Where a client wants a session to be again.
#[derive(Clone, Debug, PartialEq)]
pub struct RewindOrder {
    pub prompt: PromptId,
    pub to: RewindTarget,
    pub what: Rewinds,
    pub on_conflict: OnConflict,
    /// Only these, and what is below them.
    pub paths: Option<Vec<PathBuf>>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum RewindTarget {
    /// Before this message of the user's.
    Message(MessageId),
    /// Before this checkpoint was taken.
    Checkpoint(CheckpointId),
    /// What the last restore took back is there again.
    Redo,
}

/// What going back came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RewindResult {
    pub files: RestoreResult,
    /// Of the restore, where files were restored.
    pub checkpoint: Option<CheckpointId>,
}

/// Why a session does not go back.
#[derive(Clone, Debug, PartialEq)]
pub enum RewindRefusal {
    /// Something is under way: what.
    Busy(String),
    /// It has no such place to go back to.
    Unknown(String),
    Failed(String),
}

/// A checkpoint that holds what a call may change.
#[derive(Clone, Debug, PartialEq)]
pub struct CallHold {
    pub id: CheckpointId,
    /// Of a call that is allowed because it can be undone: what could not be given back is read-only to it.
    pub read_only: Option<Vec<AbsPath>>,
}

/// A doubt about the folder.
#[derive(Clone, Debug)]
pub enum TrustPrompt {
    Ask(Arc<Form>),
    /// Nobody can be asked.
    Tell(String),
}

/// One of the session's options, with its new value.
#[derive(Clone, Debug, PartialEq)]
pub enum OptionValue {
    Mode(Mode),
    Model(String),
    Tuning(Tuning),
    /// `None`: as configured.
    Limits(Option<Limits>),
}

/// The tools that a session has from outside, how their servers are, and what is to be said about them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct McpTools {
    pub tools: Vec<ForeignTool>,
    /// All that are configured, each name once.
    pub servers: Vec<Server>,
    /// For user and model at the start of the next turn, a line each.
    pub notices: Vec<String>,
}

/// A tool from outside, and whose it is.
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignTool {
    pub spec: ToolSpec,
    /// As the configuration names it.
    pub server: String,
    /// What the server says of its tool.
    pub annotations: Value,
    /// The user trusts the server: its tools run without a question, and what it says of them is believed.
    pub trusted: bool,
}

impl ForeignTool {
    /// Of what its server says of it. A server that waits until its tool is allowed, and then makes another one of it,
    /// is asked about again.
    pub fn digest(&self) -> String {
        let said = (&self.server, &self.spec.description, &self.spec.parameters, &self.annotations);
        let digest = Sha256::digest(serde_json::to_vec(&said).unwrap_or_default());
        digest.iter().take(16).map(|it| format!("{it:02x}")).collect()
    }
}

/// A configured server.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    pub name: String,
    pub status: ServerStatus,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ServerStatus {
    /// It has not told its tools yet; a turn waits for it no longer than this (Unix, milliseconds).
    Starting {
        until_ms: u64,
    },
    Ready,
    /// It is gone: why. Its tools stay on offer: the next call starts it again.
    Down(String),
    /// It could not be reached, or is gone for good: why.
    Lost(String),
    /// It is not to be started: why.
    Off(String),
    /// It is not to be started in a folder that is not trusted.
    Untrusted,
}

/// Something the engine wants done. The answer comes back as an [`Input`] with the same id.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Answered by `Chunks` and one `Generated`.
    Generate { purpose: Purpose, request: ModelRequest },
    /// Answered by `Resolved`.
    Resolve { call: ToolCall },
    /// Answered by `Checked`.
    Check(Box<Check>),
    /// Answered by `Previewed`. `places` is what was decided about: nothing else is to be touched. `seen`: what the model
    /// knows of the file that it writes as a whole.
    Preview { call: ToolCall, places: Arc<[TargetPath]>, seen: Option<BaseHash> },
    /// Answered by `Attached`, `Printed` and one `Ran`. Durable: not before the log is on disk.
    /// `leave`: what the user allows it beyond the sandbox.
    Run {
        call: ToolCall,
        places: Arc<[TargetPath]>,
        base: Option<BaseHash>,
        seen: Option<BaseHash>,
        durable: bool,
        sandbox_grant: SandboxGrant,
        /// What it changes is told with its end.
        hold: Option<CallHold>,
    },
    /// The first look at what the roots hold, with time until a checkpoint is taken. Answered by `Checkpointed`.
    OpenCheckpoints,
    /// Answered by `Checkpointed`.
    Checkpoint { id: CheckpointId, scope: Scope },
    /// Answered by `Compared`.
    CompareCheckpoint { id: CheckpointId },
    /// Answered by `Restored`.
    Restore(RestoreOrder),
    /// What these calls changed; `paths`: of these only, and as the files are now. Answered by `Diffed`.
    Diff { of: Vec<CheckpointId>, paths: Option<Vec<PathBuf>> },
    /// The conversation is to go back, too. Answered by `Rewind`, whose log is empty where it cannot be read.
    RewindConversation { to: MessageId },
    /// The one answer to `GoBack`.
    AnswerRewind { prompt: PromptId, result: Box<Result<RewindResult, RewindRefusal>> },
    /// Answered by `Answered`, with the question's id.
    AskUser(Box<UserQuestion>),
    /// A yes for ever, to be written down. Not answered.
    SaveGrant(PersistentGrant),
    /// What commands may do beyond the sandbox in the session's folder, for ever, is written down (`holds`); or any grant is
    /// struck out of what holds for ever. Not answered.
    UpdateGrant { grant: Grant, holds: bool },
    /// The user's word on the folder: written down, then whatever follows from it. Answered by `Joined`.
    ApplyTrust(TrustChoice),
    /// What a server is told that asked the user. Not answered.
    AnswerElicitation { elicitation: ElicitationId, reply: Reply },
    /// What came of a model, for all sessions that reach it in the same way. `None`: it is well again. Not answered.
    UpdateHealth { model: String, outage: Option<Outage> },
    /// Nobody waits for the answer any more.
    WithdrawQuestion { question: QuestionId },
    /// Answered by `Woke` at `at_ms` (Unix, milliseconds) or later.
    SetTimer { at_ms: u64 },
    /// What was asked for under that id is no longer wanted; no answer is waited for.
    Abort { effect: EffectId },
    /// A text that the model may read later, in a file of its own. Not answered.
    WriteScratch { file: AbsPath, text: String },
    /// Answered by `Hooked`.
    RunHook(Box<HookRun>),
    /// The memory files are to be read. Answered by `Remembered`.
    ReadMemory,
    /// Those of the folders that lead to these places, below the session's own. Answered by `Remembered`.
    DiscoverMemory { places: Vec<AbsPath> },
    /// The one answer to a prompt, and what the models took for it where any was asked.
    AnswerPrompt { prompt: PromptId, outcome: PromptOutcome, usage: Option<Usage> },
}

/// What the user is asked. Answered once, or withdrawn.
#[derive(Clone, Debug, PartialEq)]
pub struct UserQuestion {
    pub id: QuestionId,
    pub about: QuestionTopic,
}

#[derive(Clone, Debug, PartialEq)]
pub enum QuestionTopic {
    Confirmation(Confirmation),
    /// Is the folder trusted? A form whose options are [`TrustChoice`]s.
    Trust {
        call: CallId,
        form: Arc<Form>,
    },
    /// How to go on without this model? A form whose options are [`Intent`](crate::base::fallback::Intent)s.
    Fallback {
        call: CallId,
        form: Arc<Form>,
    },
    /// Fields to fill in, for a call or for the session.
    Form {
        call: Option<CallId>,
        form: Arc<Form>,
    },
    /// A page to visit, for what must not go through a form. The id names it until it is completed.
    Link {
        call: Option<CallId>,
        message: String,
        url: String,
        elicitation: String,
    },
}

/// May this call run?
#[derive(Clone, Debug, PartialEq)]
pub struct Confirmation {
    pub call: CallId,
    pub title: String,
    pub kind: ToolKind,
    pub args: Value,
    pub locations: Vec<Location>,
    /// What it would do.
    pub display: Option<Display>,
    /// Why it is asked, where that is more than the rules' default.
    pub reason: Option<String>,
    /// What "for this session" would allow, in words; `None`: not on offer.
    pub session_grant: Option<String>,
    /// The same for ever.
    pub persistent_grant: Option<String>,
    /// Whether the mode `auto` is a choice.
    pub offers_auto: bool,
}

/// What a step says, in order.
#[derive(Debug, Default)]
pub struct StepOutput {
    pub acts: Vec<Act>,
}

#[derive(Debug)]
// Nearly all acts are facts: boxing them would only cost.
#[allow(clippy::large_enum_variant)]
pub enum Act {
    /// A fact: logged, then shown if it is something to show.
    Log(Entry),
    Do(EffectId, Effect),
}
