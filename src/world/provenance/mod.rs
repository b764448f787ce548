//! Provenance: bytes below a root that an agent left, and those of them that are unseen by the user.
//!
//! The record lies beside the checkpoints of a root, and follows their log: what a call left is the agent's, what differs
//! between two calls is a person's. A person's change clears the lines that it touches. Bytes that a commit from before
//! the session has are nobody's. What cannot be known is unseen: an error means unseen, too. All calls block.
//!
//! What checkpoints do not hold (built folders that git ignores, files above the limits) is unseen as a whole from the
//! first command that could write it. That a package manager of the user's made such a folder anew cannot be known for
//! sure: its files may be moved, linked or touched ones. So only a person's word clears it, or that a walk saw it gone.

mod book;
mod commits;
mod filter;
mod ledger;
mod lines;
mod query;
#[cfg(test)]
mod tests;

pub use ledger::{Ledger, content, remove_store};
pub use lines::{LineSet, changed};
pub use query::Provenance;

use std::{io, ops::Range, path::PathBuf};

use crate::base::ids::{CheckpointId, SessionId};

pub use crate::world::disk::ContentHash;

/// Below a root, parts joined by `/`.
pub type PathBytes = Box<[u8]>;

/// What stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State<'a> {
    Absent,
    File(ContentHash),
    /// Where it leads.
    Link(&'a [u8]),
    Dir,
    /// It is there, and checkpoints do not hold it.
    NotHeld,
}

/// A change of one path.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    pub path: &'a [u8],
    pub old: State<'a>,
    pub new: State<'a>,
}

/// Who made a change.
#[derive(Clone, Copy, Debug)]
pub enum ChangeAuthor<'a> {
    /// A call of an agent's, of a child, a server, or a hook around it.
    Agent(&'a SessionId, &'a CheckpointId),
    Person,
    /// Nothing changed but what is held.
    Nobody,
}

/// What an agent left and nobody looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unseen {
    pub path: PathBuf,
    /// Empty where it is not known any more, as `call`.
    pub session: SessionId,
    pub call: CheckpointId,
    /// Everything below it counts.
    pub is_folder: bool,
    /// The agent's own lines, from 0; `None`: all of it.
    pub lines: Option<Vec<Range<usize>>>,
    /// The present bytes; `None`: it is known as a whole only.
    pub hash: Option<ContentHash>,
    /// Why more counts as unseen than an agent wrote.
    pub note: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum ProvenanceError {
    #[error("castor's record of what agents wrote cannot be read ({0}): all of it counts as not looked at")]
    Io(#[from] io::Error),
    #[error("another castor is busy with the record of what agents wrote")]
    Busy,
}
