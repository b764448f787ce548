//! Agents that are not castor's: a server that speaks A2A, or a program that speaks ACP.

/// What castor drives as an agent of a session.
#[derive(Clone, Debug, PartialEq)]
pub enum PeerAgent {
    Remote(RemoteAgent),
    Program(ProgramAgent),
}

/// A server that speaks A2A.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoteAgent {
    pub card: CardSource,
}

/// Where the card of a remote agent is.
#[derive(Clone, Debug, PartialEq)]
pub enum CardSource {
    Url(String),
    /// The card itself.
    Json(String),
}

/// A program that speaks ACP on its stdin and stdout.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramAgent {
    pub command: String,
    pub args: Vec<String>,
    /// Variables that it gets beside those of commands.
    pub env: Vec<(String, String)>,
    /// Whether it has the network.
    pub network: bool,
    /// Paths outside the roots that it may read.
    pub readable: Vec<String>,
}

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
            Self::Remote(_) | Self::Program(_) => &[],
        }
    }
}
