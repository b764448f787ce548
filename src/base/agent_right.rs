//! Rights that an agent's definition gives beyond those of the session above it.

use serde::{Deserialize, Serialize};

/// What only agents may do whose definition says so. Definitions of a workspace cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AgentRight {
    /// To put facts into the memory inbox.
    MemoryInbox,
    /// To read earlier sessions of the folder.
    MemoryExtraction,
}
