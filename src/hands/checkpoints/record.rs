//! Checkpoint records: changes of each call and steps of a restore, in frames with a checksum.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::{ChangeAuthor, CheckpointId, Hash, Kind, Node, RelPath, SessionId, Step, git, hash_of};
use castor_base::{checkpoint::ChangeKind, sandbox::GIT_CONFIG};

/// A call, or a restore.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    pub session: SessionId,
    pub id: CheckpointId,
}

/// The cause of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// Not castor: the user or another program.
    User,
    /// The calls that were running; one of them, if there are several.
    Calls(Vec<Call>),
    /// As `Calls`, but castor was stopped meanwhile: or the user, after that.
    Stopped(Vec<Call>),
    /// No change of a file: only what is recorded was decided anew.
    Rules,
}

impl Cause {
    pub fn author(&self) -> ChangeAuthor {
        match self {
            Self::Calls(it) | Self::Stopped(it) => {
                let by = it.first().map(|it| (it.session.clone(), it.id.clone()));
                by.map_or(ChangeAuthor::Person, ChangeAuthor::Agent)
            }
            Self::User => ChangeAuthor::Person,
            Self::Rules => ChangeAuthor::Nobody,
        }
    }
}

/// A change of one path or ref, done or planned.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Change<T = Node> {
    pub path: RelPath,
    pub old: T,
    pub new: T,
}

/// The target of a ref; `None`: the ref is absent.
pub type Value = Option<Vec<u8>>;

impl<T: Clone> Change<T> {
    pub fn reversed(&self) -> Self {
        Self { path: self.path.clone(), old: self.new.clone(), new: self.old.clone() }
    }
}

impl Change {
    pub fn is_still(&self) -> bool {
        self.old.is_same(&self.new)
    }

    /// The content that is to come.
    pub fn new_content(&self) -> Option<Hash> {
        self.new.hash().filter(|_| self.is_new_content())
    }

    /// Tells whether more than a mode changes.
    pub fn is_new_content(&self) -> bool {
        self.old.kind != self.new.kind
    }

    /// Tells whether nothing changed but what castor itself puts into a repository while something confined runs.
    pub fn is_placeholder(&self) -> bool {
        let name = git::git_path(&self.path).and_then(|it| it.inner.rsplit(|it| *it == b'/').next());
        let own = GIT_CONFIG.iter().find(|it| name == Some(it.0.as_bytes()));
        let stands = |node: &Node| match (&node.kind, own.and_then(|it| it.1.text())) {
            (Kind::Absent, _) => true,
            (Kind::File(hash), Some(text)) => *hash == hash_of(text.as_bytes()),
            // The mark of a folder that castor made.
            (Kind::Dir, None) => node.mode & 0o1000 != 0,
            _ => false,
        };
        own.is_some() && stands(&self.old) && stands(&self.new)
    }

    pub fn step(&self) -> Step<'_> {
        Step { path: &self.path, old: self.old.state(), new: self.new.state() }
    }

    pub fn kind(&self) -> ChangeKind {
        match (self.old.is_absent(), self.new.is_absent()) {
            (true, _) => ChangeKind::Added,
            (_, true) => ChangeKind::Removed,
            _ => ChangeKind::Changed,
        }
    }
}

/// Changes between two walks over a root.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Delta {
    pub seq: u64,
    /// Seconds since 1970.
    pub at: i64,
    pub cause: Cause,
    pub changes: Vec<Change>,
}

impl Delta {
    pub fn calls(&self) -> &[Call] {
        match &self.cause {
            Cause::Calls(it) | Cause::Stopped(it) => it,
            Cause::User | Cause::Rules => &[],
        }
    }
}

/// The journal of a restore in one root. It is on disk first, so that a crash leaves the restore done or taken back.
#[derive(Debug, Serialize, Deserialize)]
pub struct Journal {
    pub call: Call,
    /// Sorted by path, so that a folder comes before what is in it.
    pub steps: Vec<Change>,
    pub refs: Vec<Change<Value>>,
}

impl Journal {
    pub const NAME: &[u8] = b"journal";

    pub fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.refs.is_empty()
    }

    pub fn reversed(&self) -> Self {
        let steps = self.steps.iter().map(Change::reversed).collect();
        Self { call: self.call.clone(), steps, refs: self.refs.iter().rev().map(Change::reversed).collect() }
    }
}

pub fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_secs()).unwrap_or(i64::MAX)
}
