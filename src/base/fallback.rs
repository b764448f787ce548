//! Outages of models: how long a failed model is skipped, and the question about a fallback model.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::question::{Choice, Field, FieldKind, Form};

/// A model that need not be asked for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Outage {
    pub cause: OutageCause,
    /// In milliseconds since the Unix epoch; `None`: until somebody chooses the model again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutageCause {
    Quota,
    /// A rate limit, for longer than anybody waits.
    Limit,
    Capacity,
    /// There is no such model for this key.
    Missing,
}

impl OutageCause {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Quota => "quota",
            Self::Limit => "rate limit",
            Self::Capacity => "capacity",
            Self::Missing => "missing",
        }
    }
}

impl Outage {
    pub fn is_over(&self, now_ms: u64) -> bool {
        self.until_ms.is_some_and(|it| it <= now_ms)
    }
}

/// How to continue when a model does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Intent {
    /// Once more: with the other model for the rest of this turn, where there is one.
    RetryOnce,
    /// The other model for the rest of the session.
    RetryAlways,
    /// Until the server's limit is whole again, then on.
    Wait,
    /// The turn ends, and the user comes back.
    RetryLater,
    Stop,
}

impl Intent {
    pub const ALL: &[Intent] = &[Self::RetryOnce, Self::RetryAlways, Self::Wait, Self::RetryLater, Self::Stop];
    /// The field of the form that carries it.
    pub const FIELD: &str = "model_fallback";

    pub fn as_str(self) -> &'static str {
        match self {
            Self::RetryOnce => "retry_once",
            Self::RetryAlways => "retry_always",
            Self::Wait => "wait",
            Self::RetryLater => "retry_later",
            Self::Stop => "stop",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|it| it.as_str() == text)
    }
}

/// The question; `message` says what happened, `other` may take over, `wait` is the server's own number in words.
pub fn question(message: String, model: &str, other: Option<&str>, wait: Option<&str>) -> Form {
    let title = |intent: Intent| match (intent, other, wait) {
        (Intent::RetryOnce, Some(other), _) => Some(format!("Go on with {other} in this turn")),
        (Intent::RetryOnce, None, _) => Some(format!("Try {model} again now")),
        (Intent::RetryAlways, Some(other), _) => Some(format!("Go on with {other} in this session")),
        (Intent::Wait, _, Some(wait)) => Some(format!("Wait {wait}, then continue with {model}")),
        (Intent::RetryLater, ..) => Some("End the turn, try again later".to_owned()),
        (Intent::Stop, ..) => Some("Stop".to_owned()),
        (Intent::RetryAlways, None, _) | (Intent::Wait, _, None) => None,
    };
    let option = |intent: &Intent| {
        let (value, title) = (intent.as_str().to_owned(), title(*intent)?);
        Some(Choice { value, title, description: None })
    };
    let kind = FieldKind::Choice { options: Intent::ALL.iter().filter_map(option).collect() };
    let (name, title) = (Intent::FIELD.to_owned(), Some("How to continue".to_owned()));
    Form { message, fields: vec![Field { name, title, description: None, required: true, default: None, kind }] }
}
