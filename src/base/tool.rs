//! Tools: what they are called, what a call says, what it touches and what comes back.

use std::{borrow::Cow, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::base::{content::Part, ids::CallId, path::AbsPath, sandbox::Denial, schema::Schema};

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
    /// Whether a call changes something outside: such a call waits until the log is on disk.
    pub fn has_side_effects(self) -> bool {
        matches!(self, Self::Edit | Self::Delete | Self::Move | Self::Execute | Self::Other)
    }
}

/// A tool as the model is told of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    pub name: Cow<'static, str>,
    /// The user's name for it.
    pub title: Cow<'static, str>,
    pub description: Cow<'static, str>,
    pub kind: ToolKind,
    /// Of the arguments; `type` is `object`.
    pub parameters: Schema,
}

/// The model's wish. `args` is an object for every valid call, but comes from outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    pub id: CallId,
    pub name: String,
    pub args: Value,
}

/// What a call would touch: pure from its arguments, then resolved by the world (symlinks followed).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Targets {
    /// One line for people: the command itself, or the file with what is done to it.
    pub title: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<TargetPath>,
    /// The shell command, verbatim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Of a command: the files of secrets that the roots hold, as far as somebody looked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<AbsPath>,
    /// Of a command: what it names, and lies elsewhere than the name says, or is one of secrets by its place alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leads: Vec<Lead>,
    /// Of a command: those of `secrets` that git may show, or name; `None`: nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracked: Option<Vec<Tracked>>,
    /// Of a command: files of secrets that it would make, and that are not there.
    #[serde(default, skip_serializing_if = "<[AbsPath]>::is_empty")]
    pub absent: Box<[AbsPath]>,
    /// Of a command: names that git checks out, and something is lost: a path, and no branch of that name; or a branch that
    /// is moved.
    #[serde(default, skip_serializing_if = "<[String]>::is_empty")]
    pub undone: Box<[String]>,
    /// Of a command: what the repository around its folder has git run, also where git only looks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_runs: Option<String>,
    #[serde(flatten)]
    pub beyond: Box<Beyond>,
    /// Of a command: it names more than was looked up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unseen: bool,
}

/// What a command that a sandbox holds would do beyond that.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Beyond {
    /// The git folders, whose settings it cannot write, of the repositories around its folder and around others in which it
    /// has git write settings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repositories: Vec<Repository>,
    /// Files outside of the roots that its output goes to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<Output>,
    /// What it would have git change though it is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reworked: Option<Reworked>,
    /// What of it surely needs the network, behind what changes something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub far: Option<Reach>,
}

/// What surely needs the network when other things are done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reach {
    /// What people are told of it: `git push`.
    pub words: String,
    /// Where it keeps what it downloaded, if it cannot write there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<AbsPath>,
}

/// A name that leads elsewhere: there is a link on the way, or it is another name of a file of secrets. Also one that says
/// less than its place does, as `deploy` in `.ssh`: then both places are the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lead {
    /// As the command says it, a pattern too; empty for a link that nobody named, below the roots.
    pub name: String,
    /// The same, absolute.
    pub path: AbsPath,
    pub real: AbsPath,
    /// Whether `real` lies within one of the session's roots.
    pub in_roots: bool,
}

/// A file of secrets that git has a copy of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tracked {
    pub path: AbsPath,
    /// It is not now as it was when it was added.
    pub changed: bool,
}

/// The git folder of the repository around a folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Repository {
    /// As the command leads there; empty: it is there.
    pub dir: String,
    pub git: AbsPath,
}

/// A file outside of the roots that a command's output goes to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Output {
    /// As the command says it; from home with `~`.
    pub name: String,
    pub real: AbsPath,
}

/// What git would change in work trees, and a sandbox holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reworked {
    /// Configuration, whole pieces of it.
    pub places: Vec<AbsPath>,
    /// What git will have to do is only known when it runs: these are what it may change.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub perhaps: bool,
    /// A folder outside that git would make.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<AbsPath>,
    /// A folder in which git would change files, and commands write only a part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top: Option<AbsPath>,
    /// A yes does not open that: it holds what is kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub closed: bool,
}

/// What a command has git do to the files of a work tree, as far as its words say it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rework {
    /// Where git is told to work, from where the command runs, or from home with `~`; empty: there.
    pub dir: String,
    /// What it is about; nothing: all.
    pub paths: Vec<String>,
    pub changes: Vec<Change>,
}

/// Names are as git reads them.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// What a commit has otherwise takes the place of what is there.
    To(String),
    /// The same, or it is a path, and what was changed there goes.
    ToOrPath(String),
    /// What a commit has otherwise since both were one.
    Merged(String),
    /// What these commits changed is changed once more, or back: words of `git log`.
    Commits(Vec<String>),
    Stash(String),
    Patch(String),
    /// What was changed and is in no commit goes.
    Dirty,
    /// The same, where this setting of git is on.
    DirtyIf(String),
    /// So does what git does not know.
    Untracked,
    /// The same, with what git is told to pass by.
    Ignored,
    /// All that git knows there goes, or goes elsewhere, submodules too.
    Moved,
    /// A work tree is made there.
    Tree(String),
    /// A repository is made there.
    Clone(String),
    /// A linked work tree goes, or goes to another place; nothing: those that are gone already are forgotten.
    Trees(Vec<String>),
    /// What its settings say that a word stands for, which may be one of these.
    Alias {
        name: String,
        means: Vec<(&'static str, Rework)>,
    },
    /// Nobody knows yet.
    Unknown,
}

/// A command that surely needs the network, behind one that changes something.
#[derive(Clone, Debug, PartialEq)]
pub struct Far {
    /// What people are told of it: `git push`.
    pub words: String,
    /// Where to look whether it does; `None`: its words say it.
    pub remote: Option<Remote>,
}

/// What git reaches out for.
#[derive(Clone, Debug, PartialEq)]
pub struct Remote {
    /// Where git is told to work, as in [`Rework`].
    pub dir: String,
    pub which: Which,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Which {
    Named(String),
    /// That which the branch follows, where it follows one.
    Upstream,
    /// One of them, or all.
    Any,
    /// Those of its submodules, where they are not there yet.
    Modules,
}

/// A name that git takes for a branch or a path, as it finds them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedOut {
    pub name: String,
    /// A branch of that name is moved, and what only that had is lost.
    pub moves: bool,
}

/// What a command names: who reads commands cannot look, and who looks does not read them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Words {
    /// Names and patterns of names, as the command says them; from home with `~`.
    pub names: Vec<String>,
    /// Folders that it changes to, said in the same way.
    pub dirs: Vec<String>,
    /// There were more than anybody looks up.
    pub more: bool,
    /// Files of secrets that it makes, or overwrites.
    pub makes: Vec<String>,
    /// It may have git show what is in files that nobody names.
    pub shows: bool,
    /// What it has git check out.
    pub checked_out: Vec<CheckedOut>,
    /// What it has git do to files.
    pub reworks: Vec<Rework>,
    /// Folders in which it has git write settings, other than its own.
    pub repositories: Vec<String>,
    /// What of it may need the network when other things are done.
    pub far: Vec<Far>,
    /// Files that its output goes to, said as in `names`.
    pub outputs: Vec<String>,
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
    /// A repository's settings name it: git obeys what is there, as it does hooks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub named: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    Read,
    Write,
}

/// What a call would do, shown before it is allowed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Preview {
    pub display: Option<Display>,
    /// What the preview was made from; the run is refused when it no longer holds.
    pub base: Option<BaseHash>,
}

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
pub struct Seen {
    /// Where it really is.
    pub path: AbsPath,
    /// Its `BaseHash`, in hexadecimal digits.
    pub hash: String,
    /// That of what a part was changed of; `None`: all that is there was read or written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
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
    /// What a command printed, its end kept; `exit` is `None` while it runs or when a signal ended it.
    Terminal {
        text: String,
        exit: Option<i32>,
    },
}

/// Why a call failed, in the field's words (`policy_violation`, `invalid_tool_params`, `file_not_found`, …).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolError {
    pub kind: String,
    /// Says what happened and what to do about it; the model and the user both read it.
    pub message: String,
}

impl ToolError {
    pub fn new(kind: &str, message: impl Into<String>) -> Self {
        Self { kind: kind.to_owned(), message: message.into() }
    }
}

/// What a tool's run returns. A failed command is not a failed tool: its output says so.
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
    pub tail: Option<TailCall>,
    /// It failed, most likely because it was confined: the user may allow more and have it run again.
    pub denied: Option<Denial>,
    pub seen: Option<Box<Seen>>,
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

    pub fn failed(error: ToolError) -> Self {
        Self { error: Some(error), ..Self::default() }
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
