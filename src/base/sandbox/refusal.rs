//! Refusals: what a sandbox kept the processes of a command from, as the kernel told it.

use core::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::path::AbsPath;

/// What a process wanted and did not get.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refused {
    /// A connection, or a message, to an address.
    Connect(SocketAddr),
    /// The address of a name; empty: of one that nobody knows.
    Lookup(String),
    /// To make, change, rename or remove what is there.
    Write(AbsPath),
    /// A socket of another program.
    Socket(AbsPath),
    /// To read a secret file, in whose place an empty one lies.
    Read(AbsPath),
    /// A connection to castor's door, which says by itself where to it was refused.
    Door,
}

/// One refusal, and whether it did harm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    pub what: Refused,
    /// The process that met it, or one above that, ended with another code than 0.
    pub failed: bool,
}

impl Refusal {
    /// Where the data of a call has those of its command, in words.
    pub const KEY: &str = "refused";

    pub fn failed(what: Refused) -> Self {
        Self { what, failed: true }
    }
}

impl Refused {
    /// For the model, in a list.
    pub fn in_words(&self) -> String {
        match self {
            Self::Connect(to) if !self.is_far() => format!("connecting to {to}, a server outside the sandbox"),
            Self::Connect(to) => format!("connecting to {to}"),
            Self::Lookup(name) if name.is_empty() => "looking up a host".to_owned(),
            Self::Lookup(name) => format!("looking up {name}"),
            Self::Write(path) => format!("writing {path}"),
            Self::Socket(path) => format!("connecting to {path}, a socket of another program"),
            Self::Read(path) => format!("reading {path}, which is a secret"),
            Self::Door => "connecting to castor's door".to_owned(),
        }
    }

    /// Tells whether it is about another machine.
    pub fn is_far(&self) -> bool {
        match self {
            Self::Connect(to) => !to.ip().to_canonical().is_loopback(),
            Self::Lookup(_) => true,
            _ => false,
        }
    }
}
