//! Why a sandbox could not be set up: a step that failed, what is not there, what is broken or has changed.

use std::{borrow::Cow, fmt::Display, path::PathBuf};

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SetupError {
    /// The system refused a step.
    #[error("{step}: {why}")]
    Failed { step: Cow<'static, str>, why: String },
    #[error("{0}")]
    Absent(&'static str),
    /// This process was not given what castor passes on.
    #[error("{0}")]
    Broken(String),
    /// Something else is mounted than castor planned.
    #[error("{} {how}", .place.display())]
    Changed { place: PathBuf, how: &'static str },
}

pub(super) fn failed<E: Display>(step: impl Into<Cow<'static, str>>) -> impl FnOnce(E) -> SetupError {
    |it| SetupError::Failed { step: step.into(), why: it.to_string() }
}

pub(super) fn broken(it: impl Display) -> SetupError {
    SetupError::Broken(it.to_string())
}
