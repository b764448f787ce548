//! Agents that are not castor's: a server that speaks A2A, or a program that speaks ACP.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    money::Money,
    path::AbsPath,
    sandbox::ProgramSandbox,
    tool::{ASK_USER, READ_FILE, RUN_SHELL_COMMAND, ToolKind, WRITE_FILE},
    trust::ScriptHashes,
};

/// What castor drives as an agent of a session.
#[derive(Clone, Debug, PartialEq)]
pub enum PeerAgent {
    Remote(RemoteAgent),
    Program(ProgramAgent),
}

/// A server that speaks A2A.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoteAgent {
    pub name: String,
    pub card: CardSource,
    pub auth: Option<RemoteAuth>,
}

/// What castor proves itself with to a server.
#[derive(Clone, Debug, PartialEq)]
pub enum RemoteAuth {
    /// A header with a key.
    ApiKey { header: String, key: KeySource },
    /// `Authorization: SCHEME CREDENTIALS`.
    Http { scheme: String, credentials: KeySource },
    /// `Authorization: Basic`, with both encoded.
    Basic { username: KeySource, password: KeySource },
    /// An access token of Google's, for the user's own credentials.
    Google,
}

impl RemoteAuth {
    /// Its word in agent files.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::ApiKey { .. } => "apiKey",
            Self::Http { .. } | Self::Basic { .. } => "http",
            Self::Google => "google-credentials",
        }
    }

    /// Where its secrets come from.
    pub fn sources(&self) -> Vec<&KeySource> {
        match self {
            Self::ApiKey { key: it, .. } | Self::Http { credentials: it, .. } => vec![it],
            Self::Basic { username, password } => vec![username, password],
            Self::Google => Vec::new(),
        }
    }
}

/// Where a secret comes from.
#[derive(Clone, PartialEq)]
pub enum KeySource {
    /// The file has the secret itself.
    Literal(String),
    Variable(String),
    /// What a command prints.
    Command(String),
}

impl KeySource {
    /// `$NAME`, `${NAME}` and `!command`; `$$` and `!!` begin a text with one of them.
    pub fn parse(text: &str) -> Self {
        if text.starts_with("$$") || text.starts_with("!!") {
            return Self::Literal(text.get(1..).unwrap_or_default().to_owned());
        }
        if let Some(command) = text.strip_prefix('!') {
            return Self::Command(command.trim().to_owned());
        }
        let name =
            text.strip_prefix('$').map(|it| it.strip_prefix('{').and_then(|it| it.strip_suffix('}')).unwrap_or(it));
        name.map_or_else(|| Self::Literal(text.to_owned()), |it| Self::Variable(it.to_owned()))
    }
}

/// A secret is not shown.
impl fmt::Debug for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(_) => f.write_str("Literal"),
            Self::Variable(it) => write!(f, "${it}"),
            Self::Command(it) => write!(f, "!{it}"),
        }
    }
}

/// Where the card of a remote agent is.
#[derive(Clone, Debug, PartialEq)]
pub enum CardSource {
    Url(String),
    /// The card itself.
    Json(String),
}

impl CardSource {
    /// For people: a query may hold keys.
    pub fn place(&self) -> &str {
        match self {
            Self::Url(it) => it.split(['?', '#']).next().unwrap_or_default(),
            Self::Json(_) => "the address in its card",
        }
    }
}

/// A program that speaks ACP on its stdin and stdout.
#[derive(Clone, PartialEq)]
pub struct ProgramAgent {
    pub command: String,
    pub args: Vec<String>,
    /// Variables that it gets beside those of commands.
    pub env: Vec<(String, String)>,
    /// What its definition says of its sandbox. Without a word it has the network.
    pub sandbox: ProgramSandbox,
    /// Files of the workspace that it runs, as they were trusted.
    pub scripts: ScriptHashes,
}

/// Values of variables may be keys: they are not shown.
impl fmt::Debug for ProgramAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.env.iter().map(|it| it.0.as_str()).collect();
        let mut res = f.debug_struct("ProgramAgent");
        res.field("line", &self.line()).field("env", &names).field("sandbox", &self.sandbox).finish()
    }
}

impl ProgramAgent {
    /// Command and arguments, for people.
    pub fn line(&self) -> String {
        let words = std::iter::once(&self.command).chain(&self.args).map(String::as_str);
        words.collect::<Vec<_>>().join(" ")
    }
}

/// The tool by which an agent asks whether it may do something by itself: rules see the tool of castor's that would do it.
pub const REQUEST_PERMISSION: &str = "request_permission";

/// Tools that a program may call through castor: what ACP has for files and terminals.
const PROGRAM_TOOLS: &[&str] = &[READ_FILE, WRITE_FILE, RUN_SHELL_COMMAND];

/// The kind of a custom event about a call that another agent makes by itself: a [`ReportedCall`].
pub const REPORTED_CALL: &str = "reported_call";

/// What another agent tells of itself while it works. castor decided and ran none of it.
#[derive(Clone, Debug, PartialEq)]
pub enum PeerReport {
    Call(ReportedCall),
    Notice(String),
    /// Entries of a plan, as the protocol has them.
    Plan(Value),
    /// What it spent since it said so before, and how much its model reads at once.
    Spent {
        cost: Money,
        window: Option<u64>,
    },
    /// What its next run in the same session begins with: nobody else reads it.
    Memory(String),
}

/// A call that another agent makes by itself, as it reports it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportedCall {
    /// The agent's own id of it, behind the agent's name.
    pub id: String,
    pub title: String,
    pub kind: ToolKind,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<AbsPath>,
    pub state: ReportedState,
    /// What it said of its result, cut short.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReportedState {
    #[default]
    Pending,
    InProgress,
    Completed,
    Failed,
}

impl ReportedState {
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Completed | Self::Failed)
    }
}

/// The kind of a custom event with what a run of another agent leaves to the next one: `{"memory": …}`.
pub const PEER_MEMORY: &str = "peer_memory";

impl PeerAgent {
    /// What stands in place of a model's name in its session.
    pub fn model(&self, agent: &str) -> String {
        match self {
            Self::Remote(_) => format!("a2a/{agent}"),
            Self::Program(_) => format!("acp/{agent}"),
        }
    }

    /// Tools of the session above that it may call through castor.
    pub fn tools(&self) -> &'static [&'static str] {
        match self {
            // A question of its own goes to the user.
            Self::Remote(_) => &[ASK_USER],
            Self::Program(_) => PROGRAM_TOOLS,
        }
    }
}
