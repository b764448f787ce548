//! Plugins: castor's own functions at points of a turn, before the user's hooks. The first answer counts.

use std::sync::Arc;

use serde_json::Value;

use crate::base::{
    content::Part,
    event::EventKind,
    model::{Chunk, Failure, ModelRequest},
    tool::{ToolCall, ToolOutput},
};

/// Points of a turn for plugins, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PluginPoint {
    /// `Parts` replace what the user said.
    OnUserMessage,
    /// `Parts` are the answer, and nothing else happens.
    BeforeRun,
    /// The same, when trust is settled and the user's hooks let the prompt pass.
    BeforeAgent,
    /// `Chunks` are the answer, and no model is asked.
    BeforeModel,
    /// `Chunks` in place of the model's.
    AfterModel,
    /// `Chunks` in place of an error.
    OnModelError,
    /// `Args` in place of the call's, or `Output` and it does not run.
    BeforeTool,
    /// `Output` in place of the tool's, which failed.
    OnToolError,
    /// `Output` in place of the tool's.
    AfterTool,
    /// `Event` in place of what would be told.
    OnEvent,
    /// `Parts` follow the answer.
    AfterAgent,
    /// The turn is over; nothing that is said is heard.
    AfterRun,
}

/// A name that no point has.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no point {0:?}; there are {names}", names = PluginPoint::ALL.iter().map(|it| it.0).collect::<Vec<_>>().join(", "))]
pub struct UnknownPoint(String);

impl PluginPoint {
    pub const ALL: &[(&str, PluginPoint)] = &[
        ("on_user_message", Self::OnUserMessage),
        ("before_run", Self::BeforeRun),
        ("before_agent", Self::BeforeAgent),
        ("before_model", Self::BeforeModel),
        ("after_model", Self::AfterModel),
        ("on_model_error", Self::OnModelError),
        ("before_tool", Self::BeforeTool),
        ("on_tool_error", Self::OnToolError),
        ("after_tool", Self::AfterTool),
        ("on_event", Self::OnEvent),
        ("after_agent", Self::AfterAgent),
        ("after_run", Self::AfterRun),
    ];

    /// # Errors
    /// With the name that no point has, and those that there are.
    pub fn parse(name: &str) -> Result<Self, UnknownPoint> {
        let found = Self::ALL.iter().find(|(it, _)| *it == name).map(|(_, point)| *point);
        found.ok_or_else(|| UnknownPoint(name.to_owned()))
    }
}

/// The data that a plugin sees.
#[derive(Clone, Copy, Debug)]
pub enum PluginMoment<'a> {
    /// Of the turn as a whole.
    Turn,
    Message(&'a [Part]),
    Request(&'a ModelRequest),
    Answer(&'a [Chunk]),
    Failure(&'a Failure),
    Call(&'a ToolCall),
    Result(&'a ToolCall, &'a ToolOutput),
    Event(&'a EventKind),
}

/// What it may say. What does not fit the point is not heard.
#[derive(Clone, Debug, PartialEq)]
// Few are made, and none is kept.
#[allow(clippy::large_enum_variant)]
pub enum Reply {
    Parts(Vec<Part>),
    Chunks(Vec<Chunk>),
    Args(Value),
    Output(ToolOutput),
    Event(EventKind),
}

/// Pure, as all that runs in a step.
pub type PluginRun = fn(PluginMoment<'_>) -> Option<Reply>;

/// The plugins of a session, in the order in which they are asked.
#[derive(Clone, Debug, Default)]
pub struct Plugins(Arc<[(PluginPoint, PluginRun)]>);

impl Plugins {
    /// Rows of a point's name and the function to call there.
    ///
    /// # Errors
    /// A name that no point has.
    pub fn new(rows: &[(&str, PluginRun)]) -> Result<Self, UnknownPoint> {
        let rows = rows.iter().map(|(name, run)| Ok((PluginPoint::parse(name)?, *run)));
        Ok(Self(rows.collect::<Result<Vec<_>, _>>()?.into()))
    }

    pub fn has(&self, point: PluginPoint) -> bool {
        self.0.iter().any(|(it, _)| *it == point)
    }

    /// The first answer.
    pub fn ask(&self, point: PluginPoint, moment: PluginMoment<'_>) -> Option<Reply> {
        self.0.iter().filter(|(it, _)| *it == point).find_map(|(_, run)| run(moment))
    }

    pub fn parts(&self, point: PluginPoint, moment: PluginMoment<'_>) -> Option<Vec<Part>> {
        match self.ask(point, moment) {
            Some(Reply::Parts(it)) if !it.is_empty() => Some(it),
            _ => None,
        }
    }

    pub fn chunks(&self, point: PluginPoint, moment: PluginMoment<'_>) -> Option<Vec<Chunk>> {
        match self.ask(point, moment) {
            Some(Reply::Chunks(it)) if !it.is_empty() => Some(it),
            _ => None,
        }
    }

    pub fn output(&self, point: PluginPoint, moment: PluginMoment<'_>) -> Option<ToolOutput> {
        match self.ask(point, moment) {
            Some(Reply::Output(it)) => Some(it),
            _ => None,
        }
    }
}
