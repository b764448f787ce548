//! Orders about files beneath roots, and what comes of them: what a client on another machine may do with files here.

use std::{collections::BTreeMap, io};

use crate::path::AbsPath;

/// One order. A path that does not really lie in one of the roots is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileOrder {
    pub roots: Vec<AbsPath>,
    pub path: AbsPath,
    pub act: FileAct,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileAct {
    Read,
    List,
    /// `follows`: of what a link leads to, and not of the link.
    Resolve {
        follows: bool,
    },
    Write(FileWrite),
    MakeFolder,
    Delete {
        recursive: bool,
    },
    /// `replaces`: what stands at the other path goes.
    Move {
        to: AbsPath,
        replaces: bool,
    },
    Copy {
        to: AbsPath,
        replaces: bool,
    },
    /// What is there, for a comparison later.
    Scan(ScanFilter),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileWrite {
    pub bytes: Vec<u8>,
    pub place: WritePlace,
    /// In bytes: of the beginning, or back from the end for `Append`.
    pub position: usize,
    /// There must be no such file.
    pub is_new: bool,
    /// The version that the file must have.
    pub etag: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WritePlace {
    /// What stood behind the position goes.
    Truncate,
    Append,
    Insert,
}

/// Patterns are globs of paths below the scanned folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScanFilter {
    pub recursive: bool,
    /// `None`: all.
    pub includes: Option<Vec<String>>,
    pub excludes: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum FileAnswer {
    Bytes(Vec<u8>),
    Entries(Vec<(String, FileKind)>),
    Facts(FileFacts),
    Done,
    /// Versions by path.
    Scan(BTreeMap<String, String>),
}

#[derive(Debug, PartialEq, Eq)]
pub struct FileFacts {
    pub path: AbsPath,
    pub kind: FileKind,
    pub len: u64,
    pub modified_ms: u64,
    /// Another one after each change.
    pub etag: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    File,
    Folder,
    Link,
}

/// Why an order was not carried out, in words where there is more to say.
#[derive(Debug, PartialEq, Eq)]
pub enum FileTrouble {
    Missing,
    Denied(String),
    Exists,
    /// It has another version than the order says.
    Conflict,
    Failed(String),
}

impl From<io::Error> for FileTrouble {
    fn from(it: io::Error) -> Self {
        match it.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::Missing,
            io::ErrorKind::AlreadyExists => Self::Exists,
            io::ErrorKind::PermissionDenied => Self::Denied(it.to_string()),
            _ => Self::Failed(it.to_string()),
        }
    }
}
