//! Provenance: bytes below a root that an agent left, and those of them that are unseen by the user.
//!
//! The record lies beside the checkpoints of a root, and follows their log: what a call left is the agent's, what differs
//! between two calls is a person's. A person's change clears the lines that it touches. Bytes that a commit from before
//! the session has are nobody's. What cannot be known is unseen: an error means unseen, too. All calls block.
//!
//! What checkpoints do not hold (built folders that git ignores, files above the limits) is unseen as a whole from the
//! first command that could write it. That a package manager of the user's made such a folder anew cannot be known for
//! sure: its files may be moved, linked or touched ones. So only a person's word clears it, or that a walk saw it gone.

mod commits;
mod filter;
mod ledger;
mod lines;
mod records;
#[cfg(test)]
mod tests;

pub use ledger::Ledger;
pub use lines::{LineSet, after_agent};
pub use records::{LookedBytes, Provenance, remove_store};

use std::{io, path::PathBuf};

use crate::disk::hash_of;
use castor_base::ids::{CheckpointId, SessionId};

pub use crate::disk::ContentHash;

/// Below a root, parts joined by `/`.
pub type PathBytes = Box<[u8]>;

/// A content by its hash, while the store has it.
pub type ContentReader<'a> = &'a dyn Fn(&ContentHash) -> Option<Vec<u8>>;

/// A call of an agent's, of a child, a server, or a hook around it.
pub type AgentCall = (SessionId, CheckpointId);

/// What stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Absent,
    /// Its bytes, or where a link leads.
    File(ContentHash),
    Dir,
    /// It is there, and checkpoints do not hold it.
    NotHeld,
}

/// Where bytes of a link are told from those of a file.
pub fn hash_of_link(to: &[u8]) -> ContentHash {
    hash_of(&[b"link\0", to].concat())
}

/// A change of one path.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    pub path: &'a [u8],
    pub old: State,
    pub new: State,
}

/// Who made a change.
#[derive(Clone, Debug)]
pub enum ChangeAuthor {
    Agent(AgentCall),
    Person,
    /// Nothing changed but what is held.
    Nobody,
}

/// What an agent left and nobody looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unseen {
    pub path: PathBuf,
    /// `None`: it is not known any more.
    pub by: Option<AgentCall>,
    /// Everything below it counts.
    pub is_folder: bool,
    /// The agent's own lines; `None`: all of it.
    pub lines: Option<LineSet>,
    /// The present bytes; `None`: it is known as a whole only.
    pub hash: Option<ContentHash>,
    /// Why more counts as unseen than an agent wrote.
    pub note: Option<String>,
}

#[derive(Debug, thiserror::Error)]
#[error("castor's record of what agents wrote cannot be read ({0}): all of it counts as not looked at")]
pub struct ProvenanceError(#[from] io::Error);
