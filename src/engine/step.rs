//! Inputs and effects of the engine: everything that a step takes and everything that it returns.

mod questions;
mod servers;

pub use questions::{Confirmation, QuestionTopic, TrustForm, UserQuestion};
pub use servers::{ForeignTool, McpTools, Server, ServerDown, ServerHealth, ServerStatus, WaitingQuestion};

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use serde_json::Value;

use castor_base::{
    agent::FolderAgents,
    check::{Check, CheckFinding, ClientCheck},
    checkpoint::{Changes, CheckpointResult, OnConflict, RestoreOrder, RestoreResult, Rewinds, Scope},
    client_settings::ClientSetting,
    content::{Part, PromptContent},
    credential::RenewalOrder,
    elicitation::Reply,
    event::{AgentEvent, PromptOutcome},
    fallback::Outage,
    file_prompt::FolderPrompts,
    held_program::{HeldProgram, ProgramName},
    hook::{HookReport, HookRun},
    host_tools::HostRun,
    ids::{CheckpointId, EffectId, ElicitationId, MessageId, PromptId, QuestionId, StreamId},
    limits::Limits,
    log::{Answer, Entry, Grant, Mode, PersistentGrant, Tuning},
    memory::MemoryFile,
    model::{Chunk, Failure, ModelRequest, Purpose, Usage},
    model_table::Parameter,
    path::AbsPath,
    policy_answer::{PolicyAnswer, PolicyOrder},
    prompt_stats::PromptStats,
    sampling::ServerAsk,
    sandbox::SandboxGrant,
    saved_memory::MemoryOrder,
    server_offer::ServerQuery,
    server_order::ServerOrder,
    state::{StateDelta, StateMap, StateOrder},
    terminal::{CommandReport, Screen},
    tool::{BaseHash, Preview, SeenFiles, TargetPath, Targets, ToolCall, ToolError, ToolOutput},
    trust::TrustChoice,
    unseen_files::{SeenBytes, UnseenFiles},
};

/// Something that happened. The engine ignores an answer to an effect that is over.
#[derive(Clone, Debug)]
pub enum Input {
    Prompt {
        prompt: PromptId,
        content: PromptContent,
    },
    /// Steering: text for the running turn; `starts_turn`: it begins one where none runs. Answered like a prompt.
    Steer {
        prompt: PromptId,
        content: Vec<Part>,
        starts_turn: bool,
    },
    /// Steering of the agent above, for a sub-agent at work.
    Hint(Vec<Part>),
    /// Ends the running prompt and all queued ones.
    Cancel,
    /// Ends one prompt, running or queued.
    CancelPrompt(PromptId),
    /// The user's choice of a mode, a model or another session option.
    SetOption(OptionValue),
    /// A client gives the session a title, or chose this model.
    Update {
        title: Option<String>,
        model: Option<String>,
    },
    /// An event for the log, of a client.
    CustomEvent {
        kind: String,
        data: Value,
    },
    /// A client gives the session a title or a system prompt.
    ClientSetting(ClientSetting),
    /// The conversation goes back to before this message of the user, as the session's log has it. While a turn runs
    /// nothing comes of it.
    RewindConversation {
        to: MessageId,
        log: Arc<[Entry]>,
    },
    /// The trust question that the next turn asks, or its notice.
    TrustPrompt(TrustPrompt),
    /// A notice for the user: now, or where no turn is under way at the start of the next one.
    Announce(String),
    /// A notice for user and model at the start of the next turn.
    Notice(String),
    /// A resource of a server that the session has read is another one now.
    ResourceChanged {
        server: String,
        uri: String,
    },
    /// The notice is not true any more; nothing comes of it where it was shown.
    WithdrawNotice(String),
    /// The report on a background command, for the next request to the model.
    BackgroundResult(CommandReport),
    /// All processes of a background command have ended. The number is that of its first process.
    BackgroundExited(u32),
    /// A credential was read again; whether another one is used from now on.
    CredentialRenewed {
        effect: EffectId,
        changed: bool,
    },
    /// A login at a server has this page, which `page` names.
    ServerPage {
        effect: EffectId,
        url: String,
        page: String,
    },
    /// What came of an order about a server, in words.
    ServerManaged {
        effect: EffectId,
        order: Box<ServerOrder>,
        result: Result<String, String>,
    },
    /// The trust decision is saved, or the reason why it is not.
    TrustApplied {
        effect: EffectId,
        result: Result<(), String>,
    },
    /// All MCP tools; they count from the next request to a model.
    ToolsChanged(McpTools),
    /// Memory files are others than those that were read: the next turn reads them again.
    MemoryOutdated,
    /// Agents, commands and skills of the folder as they are now; they count from the next prompt on.
    DefinitionsRead {
        /// `None`: nobody asked, as files changed.
        effect: Option<EffectId>,
        agents: FolderAgents,
        prompts: FolderPrompts,
    },
    /// A client reads or changes the state. Answered by `AnswerState`.
    State(Box<StateOrder>),
    /// A client asks what policy says of a call. Answered by `AnswerPolicy`.
    EvaluatePolicy(Box<PolicyOrder>),
    /// The values of `app:` and `user:` as they are now.
    SharedState(Arc<StateMap>),
    /// The same after a change of them, or the reason why nothing changed.
    StateSaved {
        effect: EffectId,
        result: Result<Arc<StateMap>, String>,
    },
    /// The session is another agent's from its next stream on.
    AgentChosen {
        effect: EffectId,
    },
    /// All models that are out. Other sessions report them, too.
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
    /// A safety checker's finding, or the reason why it gave none.
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
    /// The client shows the output of a call in its own terminal.
    TerminalAttached {
        effect: EffectId,
        screen: Screen,
    },
    OutputPrinted {
        effect: EffectId,
        text: String,
    },
    /// `changes`: what the call changed, if a checkpoint was taken; an error: why this is unknown.
    RunEnded {
        effect: EffectId,
        output: Box<ToolOutput>,
        changes: Option<Result<Changes, String>>,
    },
    /// The checkpoint is taken, or the reason why it is not.
    Checkpointed {
        effect: EffectId,
        result: Result<CheckpointResult, String>,
    },
    /// The changes since a checkpoint was taken.
    Compared {
        effect: EffectId,
        changes: Result<Changes, String>,
    },
    /// The result of a restore with its notices, or the reason why it failed.
    Restored {
        effect: EffectId,
        result: Result<(RestoreResult, Vec<String>), String>,
    },
    /// A diff for the user.
    Diffed {
        effect: EffectId,
        result: Result<String, String>,
    },
    /// What agents left in some places and nobody looked at, if all of it can be shown.
    UnseenShown {
        effect: EffectId,
        shown: Option<UnseenFiles>,
    },
    /// The sandbox holds a server, a safety checker or an agent, and the user is asked about it.
    ProgramHeld(Box<HeldProgram>),
    /// A rewind that a client requests, without a question. Answered by `AnswerRewind`.
    ClientRewind(Box<RewindOrder>),
    /// An MCP server asks the user or a model during one of these calls. Answered by `AnswerElicitation`, unless it is withdrawn.
    ElicitationRequested {
        elicitation: ElicitationId,
        calls: Vec<EffectId>,
        request: ServerAsk,
    },
    /// A server asks while none of its calls is running: the next turn asks the user. Answered and withdrawn as those.
    ServerQuestionWaits(Box<WaitingQuestion>),
    /// The server withdrew its question.
    ElicitationWithdrawn {
        elicitation: ElicitationId,
    },
    TimerFired {
        effect: EffectId,
    },
    /// An event of the sub-agent that a call started. The call's own end is a `RunEnded`.
    ChildEvent {
        effect: EffectId,
        event: Box<AgentEvent>,
    },
    /// That sub-agent, or one below it, waits for the user from now on, or does not any more.
    ChildWaits {
        effect: EffectId,
        waits: bool,
    },
    HookFinished {
        effect: EffectId,
        report: Box<HookReport>,
    },
    /// What came of a change of saved memory, in words.
    MemoryChanged {
        effect: EffectId,
        report: Result<String, String>,
    },
    /// What a server answered, or the reason why it did not.
    ServerAnswered {
        effect: EffectId,
        result: Result<Vec<Part>, String>,
    },
    /// The memory files as they are now, or the reason why they could not be read.
    MemoryRead {
        effect: EffectId,
        files: Result<Arc<[MemoryFile]>, String>,
        /// Files that do not count, and imports that failed: each a sentence for the user.
        faults: Vec<String>,
    },
}

/// A client's order to rewind a session.
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

/// The result of a rewind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RewindResult {
    pub files: RestoreResult,
    /// Of the restore, where files were restored.
    pub checkpoint: Option<CheckpointId>,
}

/// The reason why a rewind is refused.
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
    /// A person saw the diff of this one call, and said yes to it: they looked at what it leaves.
    pub is_looked_at: bool,
}

/// A doubt about the folder.
#[derive(Clone, Debug)]
pub enum TrustPrompt {
    Ask(TrustForm),
    /// No user can be asked.
    Tell(String),
}

/// One of the session's options, with its new value.
#[derive(Clone, Debug, PartialEq)]
pub enum OptionValue {
    Mode(Mode),
    Model(String),
    Tuning(Tuning),
    /// `None`: castor's own.
    Agent(Option<String>),
    /// `None`: as configured.
    Limits(Option<Limits>),
}

/// Something that the engine wants done. The answer returns as an [`Input`] with the same id.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Answered by `Chunks` and one `Generated`.
    Generate { purpose: Purpose, request: ModelRequest },
    /// The session is to be this agent's, as if a client had chosen it. Answered by `AgentChosen`.
    ChooseAgent { agent: String },
    /// Answered by `Resolved`. `sandbox_grant`: what the user allows beyond the sandbox.
    Resolve { call: ToolCall, sandbox_grant: Box<SandboxGrant> },
    /// Answered by `Checked`.
    Check(Box<Check>),
    /// The same by the client's own policy.
    CheckByClient(Box<ClientCheck>),
    /// Answered by `Previewed`. `places`: the targets of the decision; the tool touches no others. `seen`: files
    /// as the model last saw them, where the call may write whole ones.
    Preview { call: ToolCall, places: Arc<[TargetPath]>, seen: SeenFiles },
    /// Answered by `TerminalAttached`, `OutputPrinted` and one `RunEnded`. `durable`: not before the log is on disk.
    /// `sandbox_grant`: what the user allows beyond the sandbox. A call that starts a sub-agent is answered by
    /// `ChildEvent`s before its `RunEnded`.
    Run {
        call: ToolCall,
        places: Arc<[TargetPath]>,
        base: Option<BaseHash>,
        seen: SeenFiles,
        durable: bool,
        sandbox_grant: Box<SandboxGrant>,
        /// What it changes is told with its end.
        hold: Option<CallHold>,
        /// The host runs it.
        host: Option<Box<HostRun>>,
    },
    /// The first walk over the roots, before the first checkpoint. Answered by `Checkpointed`.
    OpenCheckpoints,
    /// Answered by `Checkpointed`.
    Checkpoint { id: CheckpointId, scope: Scope },
    /// Answered by `Compared`.
    CompareCheckpoint { id: CheckpointId },
    /// Answered by `Restored`.
    Restore(RestoreOrder),
    /// The changes of these calls; `paths`: of these only, and as the files are now. Answered by `Diffed`.
    Diff { of: Vec<CheckpointId>, paths: Option<Vec<PathBuf>> },
    /// A person says that they looked at what agents left in a place; empty: in the folder. Answered by `Diffed`.
    Look { place: String },
    /// Reads what nobody looked at in these places. Answered by `UnseenShown`.
    ShowUnseen { roots: Vec<AbsPath> },
    /// A person looked at exactly these bytes; servers that were kept inside start anew. Answered by `Diffed`.
    LookAt { bytes: Vec<SeenBytes> },
    /// The user gives a program more for the session; a server starts anew with it. Not answered.
    WidenProgram { program: ProgramName, grant: Box<SandboxGrant> },
    /// Rewinds the conversation, too. Answered by `Input::RewindConversation`; its log is empty if it cannot be read.
    RewindConversation { to: MessageId },
    /// The one answer to `ClientRewind`.
    AnswerRewind { prompt: PromptId, result: Box<Result<RewindResult, RewindRefusal>> },
    /// Answered by `Answered`, with the question's id.
    AskUser(Box<UserQuestion>),
    /// Saves a permanent grant. Not answered.
    SaveGrant(PersistentGrant),
    /// Saves a permanent sandbox grant for commands in the session's folder (`holds`), or revokes any permanent
    /// grant. Not answered.
    UpdateGrant { grant: Grant, holds: bool },
    /// Saves the user's trust decision, then applies it. Answered by `TrustApplied`.
    ApplyTrust(TrustChoice),
    /// Reads a credential again, and reaches its server with what is there now. Answered by `CredentialRenewed`.
    RenewCredential(Box<RenewalOrder>),
    /// Does what the user wants of a server. Answered by `ServerPage`, where it is a login, and one `ServerManaged`.
    ManageServer(Box<ServerOrder>),
    /// The reply to a server's elicitation. Not answered.
    AnswerElicitation { elicitation: ElicitationId, reply: Reply },
    /// Health of a model, for all sessions that reach it in the same way. `None`: it is available. Not answered.
    UpdateHealth { model: String, outage: Option<Outage> },
    /// A model does not take this parameter: later sessions leave it out, for a week. Not answered.
    RememberRefusal { model: String, parameter: Parameter },
    /// Says something, unless it was said under this subject before, in whatever session. Answered by `Announce`, or not.
    SayOnce { subject: String, text: String },
    /// Changes values that sessions share, all or none. Answered by `StateSaved`. No change: reads them.
    SaveState { user: String, delta: StateDelta },
    /// The one answer to `EvaluatePolicy`; an error: there is no such tool, or it does not take the arguments.
    AnswerPolicy { prompt: PromptId, result: Box<Result<PolicyAnswer, String>> },
    /// The one answer to `State`: the values, or the reason why nothing changed.
    AnswerState { prompt: PromptId, result: Result<StateMap, String> },
    /// The answer is no longer needed.
    WithdrawQuestion { question: QuestionId },
    /// Answered by `TimerFired` at `at_ms` (Unix, milliseconds) or later.
    SetTimer { at_ms: u64 },
    /// What the user says is for the sub-agents at work, too: each gets a `Hint`. Not answered.
    HintAgents { content: Vec<Part> },
    /// Cancels the effect with that id; the engine does not wait for an answer.
    Abort { effect: EffectId },
    /// Writes a text to a file that the model may read later. Not answered.
    WriteScratch { file: AbsPath, text: String },
    /// Answered by `HookFinished`.
    RunHook(Box<HookRun>),
    /// The same for one that only listens. Not answered.
    TellHook(Box<HookRun>),
    /// Answered by `MemoryRead`.
    ReadMemory,
    /// Answered by `ServerAnswered`.
    AskServer(Box<ServerQuery>),
    /// Answered by `MemoryChanged`.
    ChangeMemory(Box<MemoryOrder>),
    /// Answered by `DefinitionsRead`.
    ReadDefinitions,
    /// Memory files of the subfolders that lead to these places. Answered by `MemoryRead`.
    DiscoverMemory { places: Vec<AbsPath> },
    /// The one answer to a prompt, with the tokens that models used for it. `stats`: of a turn, all that it took.
    AnswerPrompt { prompt: PromptId, outcome: PromptOutcome, usage: Option<Usage>, stats: Option<Box<PromptStats>> },
}

/// The output of a step, in order.
#[derive(Debug, Default)]
pub struct StepOutput {
    pub acts: Vec<Act>,
    /// Changes of the state that came up; the session makes facts or effects of them before its step ends.
    pub state_changes: Vec<StateDelta>,
}

#[derive(Debug)]
// Nearly all acts are facts: boxing them would only cost.
#[allow(clippy::large_enum_variant)]
pub enum Act {
    /// A fact: logged, then shown if it is something to show.
    Log(Entry),
    Do(EffectId, Effect),
    /// A prompt begins a stream, whose start is logged next.
    BeginStream {
        prompt: PromptId,
        stream: StreamId,
    },
}
