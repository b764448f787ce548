//! Paths as JSON, whatever their bytes: a folder with an odd name in it must not keep every command from its start.

use std::{
    ffi::OsString,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Text where it is text, else the bytes.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Coded {
    Text(String),
    Bytes(Vec<u8>),
}

impl Coded {
    fn of(path: PathBuf) -> Self {
        path.into_os_string().into_string().map_or_else(|it| Self::Bytes(it.into_vec()), Self::Text)
    }

    fn path(self) -> PathBuf {
        match self {
            Self::Text(it) => it.into(),
            Self::Bytes(it) => OsString::from_vec(it).into(),
        }
    }
}

pub(super) mod one {
    use super::{Coded, Deserialize, Deserializer, Path, PathBuf, Serialize, Serializer};

    pub fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        Coded::of(path.to_owned()).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        Coded::deserialize(from).map(Coded::path)
    }
}

pub(super) mod many {
    use super::{Coded, Deserialize, Deserializer, PathBuf, Serializer};

    pub fn serialize<S: Serializer>(paths: &[PathBuf], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(paths.iter().cloned().map(Coded::of))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<PathBuf>, D::Error> {
        Ok(Vec::<Coded>::deserialize(from)?.into_iter().map(Coded::path).collect())
    }
}
