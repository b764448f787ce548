//! Paths as JSON, whatever their bytes.

use std::{
    ffi::OsString,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Text where it is text, else the bytes.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum PathJson {
    Text(String),
    Bytes(Vec<u8>),
}

impl PathJson {
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
    use super::{Deserialize, Deserializer, Path, PathBuf, PathJson, Serialize, Serializer};

    pub fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        PathJson::of(path.to_owned()).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        PathJson::deserialize(from).map(PathJson::path)
    }
}

pub(super) mod many {
    use super::{Deserialize, Deserializer, PathBuf, PathJson, Serializer};

    pub fn serialize<S: Serializer>(paths: &[PathBuf], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(paths.iter().cloned().map(PathJson::of))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<PathBuf>, D::Error> {
        Ok(Vec::<PathJson>::deserialize(from)?.into_iter().map(PathJson::path).collect())
    }
}

pub(super) mod maybe {
    use super::{Deserialize, Deserializer, PathBuf, PathJson, Serialize, Serializer};

    pub fn serialize<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
        path.clone().map(PathJson::of).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PathBuf>, D::Error> {
        Ok(Option::<PathJson>::deserialize(from)?.map(PathJson::path))
    }
}
