//! Extensions as a session lists them.

/// One that is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtensionSummary {
    pub name: String,
    pub version: String,
    /// `on`, or why it does not count.
    pub state: String,
    /// What it brings, in words; empty where it does not count.
    pub brings: String,
}
