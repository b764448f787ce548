//! An entry of a checkpoint: a file by its hash, a folder, a link, or something that is not recorded.

use rustix::fs::Stat;
use serde::{Deserialize, Serialize};

use crate::{
    disk::disk_mark::DiskMark,
    provenance::{State, hash_of_link},
};

pub use crate::disk::dirfd::{ancestors, file_type, is_within, join, split, strip_dir};

/// SHA-256 of a file's bytes.
pub type Hash = [u8; 32];

/// Below a root, parts joined by `/`; the root itself is empty. Any bytes but NUL.
pub type RelPath = Box<[u8]>;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// There is nothing.
    #[default]
    Absent,
    File(Hash),
    Dir,
    /// Where it leads, as it says.
    Link(Box<[u8]>),
    Skipped(NotHeld),
}

/// The reason why an entry is not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NotHeld {
    /// One file with more bytes than the limit.
    Big,
    /// The root has more than the limit.
    Full,
    Unreadable,
    /// A pipe, a socket, a device.
    Special,
    /// A folder that is built from the rest.
    Exempt,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Node {
    pub kind: Kind,
    /// Permission bits; never set-uid or set-gid.
    pub mode: u16,
    pub mark: DiskMark,
    /// It was so young when it was looked at that a later change may leave the same mark.
    pub young: bool,
}

/// Seconds in which a disk's clock may not tell two changes apart.
const YOUNG: i64 = 2;

impl Node {
    pub fn new(kind: Kind, stat: &Stat, now: i64) -> Self {
        let mark = DiskMark::of(stat);
        let mode = match kind {
            Kind::Dir => bits(stat),
            Kind::Link(_) => 0,
            _ => bits(stat) & 0o777,
        };
        Self { kind, mode, young: mark.ctime.0 >= now - YOUNG, mark }
    }

    /// A file as a client or a plan has it: the disk is asked again at the next look.
    pub fn unseen(kind: Kind, mode: u16, size: u64) -> Self {
        Self { kind, mode, mark: DiskMark { size, ..DiskMark::default() }, young: true }
    }

    pub fn hash(&self) -> Option<Hash> {
        if let Kind::File(it) = self.kind { Some(it) } else { None }
    }

    pub fn state(&self) -> State {
        match &self.kind {
            Kind::Absent => State::Absent,
            Kind::File(it) => State::File(*it),
            Kind::Dir => State::Dir,
            Kind::Link(to) => State::File(hash_of_link(to)),
            Kind::Skipped(_) => State::NotHeld,
        }
    }

    pub fn is_absent(&self) -> bool {
        self.kind == Kind::Absent
    }

    pub fn is_dir(&self) -> bool {
        self.kind == Kind::Dir
    }

    /// A folder that its owner may not change.
    pub fn is_closed(&self) -> bool {
        self.is_dir() && self.mode & 0o700 != 0o700
    }

    pub fn why(&self) -> Option<NotHeld> {
        if let Kind::Skipped(it) = self.kind { Some(it) } else { None }
    }

    /// A folder into which nobody looks, unless a path in it is named.
    pub fn is_passed_over(&self) -> bool {
        matches!(self.kind, Kind::Skipped(NotHeld::Exempt | NotHeld::Full))
    }

    /// Tells whether nothing that is held differs. Times and inodes are no part of it, but of what is not held they are
    /// all that is known.
    pub fn is_same(&self, other: &Self) -> bool {
        let known = match &self.kind {
            Kind::Skipped(NotHeld::Big | NotHeld::Full | NotHeld::Unreadable) => self.mark == other.mark,
            Kind::Absent | Kind::Link(_) | Kind::Skipped(_) => true,
            Kind::File(_) | Kind::Dir => self.mode == other.mode,
        };
        self.kind == other.kind && known
    }
}

/// Permissions, and whether a folder lets everybody remove only what is their own.
pub fn bits(stat: &Stat) -> u16 {
    (stat.st_mode & 0o1777) as u16
}
