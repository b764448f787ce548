//! Tools: their specifications, calls, targets, previews, outputs and errors.

use std::{borrow::Cow, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    agent_right::AgentRight,
    content::{HostAnswer, Part, joined_text},
    credential::Credential,
    ids::CallId,
    path::AbsPath,
    sandbox::Denial,
    schema::Schema,
    state::StateDelta,
    text::{self, wrap_untrusted},
};

/// What a tool does, in the protocol's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    Read,
    Edit,
    Delete,
    Move,
    Search,
    Execute,
    Think,
    Fetch,
    SwitchMode,
    Other,
}

impl ToolKind {
    /// Tells whether a call changes something outside: such a call waits until the log is on disk.
    pub fn has_side_effects(self) -> bool {
        matches!(self, Self::Edit | Self::Delete | Self::Move | Self::Execute | Self::Other)
    }
}

/// The tools for whole files, which other agents have through castor.
pub const READ_FILE: &str = "read_file";
pub const WRITE_FILE: &str = "write_file";
/// The tool that edits one file.
pub const REPLACE: &str = "replace";
/// The tool that lists a folder, which prompts of files name, too.
pub const LIST_DIRECTORY: &str = "list_directory";
/// The tool that runs commands: policies speak of what it runs.
pub const RUN_SHELL_COMMAND: &str = "run_shell_command";
/// The tool that asks the user.
pub const ASK_USER: &str = "ask_user";
/// The tool whose result says that the user accepted a plan.
pub const EXIT_PLAN_MODE: &str = "exit_plan_mode";

/// Which of castor's own rules speak of a tool: `shipped/*.toml` names the class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PolicyClass {
    /// None: a server's tool is asked about.
    #[default]
    Foreign,
    /// It only looks.
    Look,
    /// It tells the user what the model is about.
    Tell,
    Edit,
    Run,
    /// It asks a server that the model names.
    Fetch,
    /// The call is a question to the user.
    Question,
    /// It starts a sub-agent, whose own calls are decided about one by one.
    Delegate,
    EnterPlan,
    ExitPlan,
    /// It gives the model instructions of a file.
    Skill,
}

impl PolicyClass {
    /// Tells whether its calls act outside of the session: on files, programs, or what a server or a host does.
    pub fn acts_outside(self) -> bool {
        match self {
            Self::Foreign | Self::Look | Self::Edit | Self::Run | Self::Fetch => true,
            Self::Tell | Self::Question | Self::Delegate | Self::EnterPlan | Self::ExitPlan | Self::Skill => false,
        }
    }

    /// What castor's own rules say in the mode `default`, for people.
    pub fn default_decision(self) -> &'static str {
        match self {
            Self::Look | Self::Tell | Self::Delegate => "allow",
            Self::Foreign | Self::Edit | Self::Run | Self::Fetch | Self::EnterPlan | Self::Skill => "ask",
            Self::Question | Self::ExitPlan => "asks by itself",
        }
    }

    /// Its name in rules that castor brings along.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Foreign => "own:none",
            Self::Look => "own:look",
            Self::Tell => "own:tell",
            Self::Edit => "own:edit",
            Self::Run => "own:run",
            Self::Fetch => "own:fetch",
            Self::Question => "own:question",
            Self::Delegate => "own:delegate",
            Self::EnterPlan => "own:enter-plan",
            Self::ExitPlan => "own:exit-plan",
            Self::Skill => "own:skill",
        }
    }
}

/// How castor treats a tool, beside what the model is told of it. The default is a server's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ToolTraits {
    pub class: PolicyClass,
    /// It is alone in its wave: edits of one file must not overtake each other, a question may end the turn, and another
    /// mode changes what may follow.
    pub is_exclusive: bool,
    /// It writes a file as a whole: what came in between would be lost.
    pub overwrites: bool,
    /// A yes for ever names commands or one file, never the tool as a whole.
    pub narrows_grants: bool,
    /// Its results count for the whole session: they are not masked, however old they are.
    pub keeps_results: bool,
    /// The model asked for its results by name: they are not distilled, however large they are.
    pub returns_whole: bool,
    /// Its argument is a patch: each file of it is decided about by itself, and providers that take grammars get its own.
    pub is_patch: bool,
    /// A line of the system prompt, where the tool is on offer.
    pub instructions: Option<&'static str>,
    /// Only agents have it that were given this right.
    pub right: Option<AgentRight>,
}

impl ToolTraits {
    const NONE: Self = Self {
        class: PolicyClass::Foreign,
        is_exclusive: false,
        overwrites: false,
        narrows_grants: false,
        keeps_results: false,
        returns_whole: false,
        is_patch: false,
        instructions: None,
        right: None,
    };
    /// Below the roots nobody is asked about it, and a rule does not reach beyond them.
    pub const LOOKS: Self = Self { class: PolicyClass::Look, narrows_grants: true, ..Self::NONE };
    pub const TELLS: Self = Self { class: PolicyClass::Tell, ..Self::NONE };
    pub const DELEGATES: Self =
        Self { class: PolicyClass::Delegate, keeps_results: true, returns_whole: true, ..Self::NONE };
    pub const EDITS: Self = Self { class: PolicyClass::Edit, is_exclusive: true, narrows_grants: true, ..Self::NONE };
    pub const RUNS: Self = Self { class: PolicyClass::Run, narrows_grants: true, ..Self::NONE };
    /// A yes is for the hosts that the call names.
    pub const FETCHES: Self = Self { class: PolicyClass::Fetch, narrows_grants: true, ..Self::NONE };
    pub const ASKS: Self = Self { class: PolicyClass::Question, ..Self::ENTERS_PLAN };
    pub const ENTERS_PLAN: Self =
        Self { class: PolicyClass::EnterPlan, is_exclusive: true, keeps_results: true, ..Self::NONE };
    pub const ACTIVATES: Self =
        Self { class: PolicyClass::Skill, is_exclusive: true, keeps_results: true, returns_whole: true, ..Self::NONE };
    pub const EXITS_PLAN: Self = Self { class: PolicyClass::ExitPlan, ..Self::ENTERS_PLAN };
}

/// A tool as the model is told of it, and how castor treats it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolSpec {
    pub name: Cow<'static, str>,
    /// The user's name for it.
    pub title: Cow<'static, str>,
    pub description: Cow<'static, str>,
    pub kind: ToolKind,
    /// Of the arguments; `type` is `object`.
    pub parameters: Schema,
    pub traits: ToolTraits,
}

/// How the tool of this name is treated.
pub fn find_traits(tools: &[ToolSpec], name: &str) -> ToolTraits {
    tools.iter().find(|it| it.name == name).map(|it| it.traits).unwrap_or_default()
}

/// The model's wish. `args` is an object for every valid call, but comes from outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    pub id: CallId,
    pub name: String,
    pub args: Value,
}

/// The targets of a call: from its arguments, then resolved by the world (symlinks followed).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Targets {
    /// One line for people: the command itself, or the file with what is done to it.
    pub title: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<TargetPath>,
    /// The shell command, verbatim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// What it asks on the network, with ports that are not the usual ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// The calls that it stands for: policy decides about each. Empty: it is one thing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<TargetPart>,
}

/// What a call does to one file, as the call of another tool that would do the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetPart {
    pub tool: String,
    pub args: Value,
    pub targets: Targets,
}

impl Targets {
    /// Tells whether it asks something on the network, and only these.
    pub fn asks_only(&self, hosts: &[String]) -> bool {
        !self.hosts.is_empty() && self.hosts.iter().all(|it| hosts.contains(it))
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetPath {
    /// As the call names it, absolute: what people are shown.
    pub path: AbsPath,
    /// Where it really is; equal to `path` unless a symlink is on the way.
    pub real: AbsPath,
    pub access: Access,
    /// 1-based.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Whether `real` lies within one of the session's roots.
    pub in_roots: bool,
    /// It lies in the session's own folder for temporary files.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub temporary: bool,
    /// It lies in the part of the home folder that commands do not see.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    /// A repository's settings name it: git obeys what is there, as it does hooks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub named: bool,
    /// No command would see it, or none would write what this is to write.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
}

impl TargetPath {
    /// One in a root, by no link.
    pub fn in_root(path: AbsPath, access: Access) -> Self {
        let (real, line, no) = (path.clone(), None, false);
        Self { path, real, access, line, in_roots: true, temporary: no, hidden: no, named: no, held: no }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    Read,
    Write,
}

/// The preview of a call, shown before it is allowed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Preview {
    pub display: Option<Display>,
    /// What the preview was made from; the run is refused when it no longer holds.
    pub base: Option<BaseHash>,
}

/// Files as the model last saw them: where each really is, and its hash then.
pub type SeenFiles = Vec<(AbsPath, BaseHash)>;

/// SHA-256 of a file's real path and content; `None` inside: there was no file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseHash(pub Option<[u8; 32]>);

impl BaseHash {
    /// In hexadecimal digits; `None`: there was no file.
    pub fn to_hex(&self) -> Option<String> {
        self.0.map(|it| it.iter().map(|it| format!("{it:02x}")).collect())
    }

    /// Of what `to_hex` gave; `None`: it is no such thing.
    pub fn from_hex(text: &str) -> Option<Self> {
        let digit = |at: usize| text.get(at..at + 2).and_then(|it| u8::from_str_radix(it, 16).ok());
        let bytes: Option<Vec<u8>> = (0..text.len()).step_by(2).map(digit).collect();
        Some(Self(Some(bytes?.try_into().ok()?)))
    }
}

/// What the model knows of a file from then on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Seen")]
pub struct FileKnowledge {
    /// Where it really is.
    pub path: AbsPath,
    /// Its `BaseHash`, in hexadecimal digits.
    pub hash: String,
    /// That of what a part was changed of; `None`: all that is there was read or written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Of further files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<FileKnowledge>,
}

/// How a result is shown to people.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Display {
    Text {
        text: String,
    },
    /// Whole texts, not hunks. `before` is `None` for a new file.
    Diff {
        path: AbsPath,
        before: Option<Arc<str>>,
        after: Arc<str>,
    },
    /// The same of several files, of which some may come or go.
    Diffs {
        files: Vec<FileDiff>,
    },
    /// What a command printed, its end kept; `exit` is `None` while it runs or when a signal ended it.
    Terminal {
        text: String,
        exit: Option<i32>,
    },
}

/// A file's text before and after a change; `None`: there is no file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileDiff {
    pub path: AbsPath,
    pub before: Option<Arc<str>>,
    pub after: Option<Arc<str>>,
}

impl FileDiff {
    fn texts(&self) -> (&AbsPath, Option<&str>, &str) {
        (&self.path, self.before.as_deref(), self.after.as_deref().unwrap_or_default())
    }
}

impl Display {
    /// The files that change, each with its texts. One that goes has an empty text.
    pub fn diffs(&self) -> Vec<(&AbsPath, Option<&str>, &str)> {
        match self {
            Self::Diff { path, before, after } => vec![(path, before.as_deref(), after)],
            Self::Diffs { files } => files.iter().map(FileDiff::texts).collect(),
            Self::Text { .. } | Self::Terminal { .. } => Vec::new(),
        }
    }
}

/// The kind of error of a call that needs an approval where nobody can be asked.
pub const UNASKED: &str = "approval_required";

/// Why a call failed, in the field's words (`policy_violation`, `invalid_tool_params`, `file_not_found`, …).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolError {
    pub kind: String,
    /// For the person: what happened, and how to change it. The model reads it where the output has no content.
    pub message: String,
    /// For the model, until it is the content of an output: what happened, and what to do next.
    #[serde(skip)]
    pub for_model: Option<String>,
}

impl ToolError {
    pub fn new(kind: &str, message: impl Into<String>) -> Self {
        Self { kind: kind.to_owned(), message: message.into(), for_model: None }
    }

    pub fn with_model_text(self, text: impl Into<String>) -> Self {
        Self { for_model: Some(text.into()), ..self }
    }
}

/// The output of a tool's run. A failed command is not a failed tool: its output says so.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOutput {
    /// For the model.
    pub content: Vec<Part>,
    /// For people; `None`: the content's text will do.
    pub display: Option<Display>,
    /// One line for people, such as `Read lines 1-20 of 90`.
    pub summary: Option<String>,
    pub error: Option<ToolError>,
    /// For programs: `exitCode`, counts. Null when there is nothing.
    pub data: Value,
    /// Another call to make in this one's place; policy sees it anew.
    pub tail_call: Option<TailCall>,
    /// It failed, most likely because it was confined: the user may allow more and have it run again.
    pub denial: Option<Denial>,
    /// Its server refused the credential of the call.
    pub credential: Option<Box<Credential>>,
    pub file_knowledge: Option<Box<FileKnowledge>>,
    /// What the session's state takes with the end of the call.
    pub state: StateDelta,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TailCall {
    pub name: String,
    pub args: Value,
}

impl ToolOutput {
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Part::text(text)], ..Self::default() }
    }

    pub fn failed(mut error: ToolError) -> Self {
        let content = error.for_model.take().map(Part::text).into_iter().collect();
        Self { content, error: Some(error), ..Self::default() }
    }

    /// A failure with a text for the model, which says what to do next, and one for the person.
    pub fn stopped(kind: &str, for_model: impl Into<String>, for_person: impl Into<String>) -> Self {
        Self::failed(ToolError::new(kind, for_person).with_model_text(for_model))
    }

    /// A result with a text for the model, and a line for the person.
    pub fn told(for_model: impl Into<String>, for_person: impl Into<String>) -> Self {
        Self { summary: Some(for_person.into()), ..Self::text(for_model) }
    }
}

/// The most that people are shown of what a host says, in bytes.
const SHOWN_OF_HOST: usize = 32 * 1024;
/// The most that an error's one message repeats of it, in bytes.
const MAX_HOST_ERROR: usize = 2_000;

impl ToolOutput {
    /// What a host says a call came to. Its text is marked, as that of servers: it gives no orders.
    pub fn of_host(tool: &str, answer: HostAnswer) -> Self {
        let HostAnswer { content, shown, is_error } = answer;
        let shown = shown.unwrap_or_else(|| joined_text(&content));
        let mark = |it: Part| match it {
            Part::Text { text, .. } => wrap_untrusted(&text).map(Part::text),
            it => Some(it),
        };
        let mut content: Vec<Part> = content.into_iter().filter_map(mark).collect();
        if content.is_empty() {
            content.push(Part::text(format!("[Tool '{tool}' returned nothing]")));
        }
        if !is_error {
            let display = Display::Text { text: text::head(&shown, SHOWN_OF_HOST).to_owned() };
            return Self { content, display: Some(display), ..Self::default() };
        }
        let said = text::head(&shown, MAX_HOST_ERROR);
        let message = format!("The host's tool '{tool}' reported an error: {said}");
        content.insert(0, Part::text(format!("Tool '{tool}' reported an error:")));
        Self { content, error: Some(ToolError::new("host_tool_error", message)), ..Self::default() }
    }
}

/// The end of a call, as the model gets it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallResult {
    pub id: CallId,
    pub name: String,
    pub content: Vec<Part>,
    pub is_error: bool,
}
