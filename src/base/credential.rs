//! Refused credentials: whose they are and where they are renewed, never what they are.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A credential that a server does not take any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Credential {
    pub owner: CredentialOwner,
    /// Of the provider, the MCP server or the agent.
    pub name: String,
    /// The address where the user renews it; without one only a terminal helps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
    /// `castor auth login` stores another.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub can_log_in: bool,
    /// The server keeps it: nothing of castor's changes when it is renewed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_outside: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CredentialOwner {
    /// The provider of a model.
    Model,
    /// An MCP server.
    Server,
    /// A remote agent.
    Agent,
}

const LOGIN: &str = "Or run `castor auth login` in a terminal: it stores another key.";
const UNCHANGED: &str = "Nothing has changed yet: castor still has the credential that was refused.";

impl Credential {
    pub fn new(owner: CredentialOwner, name: impl Into<String>, page: Option<String>) -> Self {
        Self { owner, name: name.into(), page, can_log_in: false, is_outside: false }
    }

    /// The same for all that wait for it: `model/gemini`, `server/github`, `agent/weather`.
    pub fn key(&self) -> String {
        let owner = match self.owner {
            CredentialOwner::Model => "model",
            CredentialOwner::Server => "server",
            CredentialOwner::Agent => "agent",
        };
        format!("{owner}/{}", self.name)
    }

    /// The question in a few words.
    pub fn title(&self) -> String {
        match self.owner {
            CredentialOwner::Model => format!("The key for {} is refused", self.name),
            CredentialOwner::Server => format!("MCP server {} wants an authorization", self.name),
            CredentialOwner::Agent => format!("Agent {} wants an authorization", self.name),
        }
    }

    /// The whole question. `why` is a sentence; `is_repeated`: it was accepted before, and castor found nothing new.
    pub fn question(&self, why: &str, is_repeated: bool) -> String {
        let unchanged = is_repeated.then_some(UNCHANGED);
        let login = self.can_log_in.then_some(LOGIN);
        let then = "Renew it, then accept: castor tries again.";
        let all: Vec<&str> = [unchanged, Some(why), login, Some(then)].into_iter().flatten().collect();
        all.join(" ")
    }
}

/// An order to read a credential again.
#[derive(Clone, Debug, PartialEq)]
pub struct RenewalOrder {
    pub credential: Credential,
    /// The model or the tool that was refused.
    pub asker: String,
    /// The user says that it was renewed.
    pub is_asked: bool,
}
