//! Unseen files of agents as a question shows them.

use crate::{path::AbsPath, tool::FileDiff};

/// All that is unseen in some places, with the bytes that an approval is about.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UnseenFiles {
    /// Each without the agent's lines, and as it is.
    pub diffs: Vec<FileDiff>,
    /// SHA-256 by path.
    pub bytes: Vec<SeenBytes>,
}

/// A file and the SHA-256 of what a person saw of it.
pub type SeenBytes = (AbsPath, [u8; 32]);
