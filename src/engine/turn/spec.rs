//! The session's specification that turns are built from, and the scratch state between turns.

use std::{collections::BTreeSet, sync::Arc};

use jiff::civil::Date;

use super::{background_results::Completions, checkpoints::CheckpointState, live_state::LiveState, preamble::Preamble};
use crate::{
    context::{Instructions, distillation},
    record::Step,
    routing,
    scheduler::{FittedTools, Toolbox},
    step::Effect,
};
use castor_base::{
    agent::FolderAgents, fallback::Outage, file_prompt::FolderPrompts, limits::Limits, log::Mode, path::AbsPath,
    sampling::SamplingBudget,
};

/// The context that every part of a turn works with.
pub struct TurnContext<'a, 's> {
    pub step: &'a mut Step<'s>,
    pub spec: &'a Spec,
    pub scratch: &'a mut SessionScratch,
}

impl TurnContext<'_, '_> {
    /// A model is left alone for as long as its failure says: all sessions hear of it.
    pub(super) fn mark_out(&mut self, model: &str, outage: Outage) {
        self.scratch.health.mark_out(model, outage);
        self.step.start_effect(Effect::UpdateHealth { model: model.to_owned(), outage: Some(outage) });
    }
}

/// The parts that a session is built from; the same for all its turns.
#[derive(Clone, Debug)]
pub struct Spec {
    pub toolbox: Toolbox,
    pub instructions: Instructions,
    /// The folder for whole outputs of tools.
    pub scratch: AbsPath,
    pub memory_sources: MemorySources,
    pub bounds: TurnBounds,
    /// Fallback models.
    pub chain: routing::Chain,
    pub windows: routing::model_limits::ContextWindows,
    pub prices: Arc<routing::prices::Prices>,
    pub aliases: Arc<routing::aliases::Aliases>,
    pub helpers: routing::utility_models::UtilityModels,
    pub choices: Choices,
    /// `None`: castor's own agent.
    pub role: Option<Arc<AgentRole>>,
}

impl Spec {
    /// The same on a day: castor's own names of models lead to what is served then.
    #[must_use]
    pub fn on(&self, day: Date) -> Self {
        Self { aliases: Arc::new(routing::aliases::Aliases::clone(&self.aliases).on(day)), ..self.clone() }
    }

    /// The same for who works in these folders.
    #[must_use]
    pub fn in_folders(&self, cwd: &AbsPath, roots: &[AbsPath]) -> Self {
        Self { instructions: self.instructions.in_folders(cwd, roots), ..self.clone() }
    }
}

/// The choices that a session offers.
#[derive(Clone, Debug, Default)]
pub struct Choices {
    pub models: OfferedModels,
    pub modes: Modes,
    /// All of its folder.
    pub agents: FolderAgents,
    pub prompts: FolderPrompts,
}

/// The definition that requests to the model go by.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentRole {
    pub agent: String,
    pub temperature: Option<f64>,
    /// The key of the state that takes the result of its run.
    pub output_key: Option<String>,
}

/// The modes of a session.
#[derive(Clone, Debug, Default)]
pub struct Modes {
    /// The modes that settings leave on the list. Trust may come later.
    pub offered: Vec<Mode>,
    /// The modes of these that trust allows here.
    pub allowed: Vec<Mode>,
}

/// The most tools of a request to Gemini.
const GEMINI_TOOLS: usize = 512;

/// The models that can be chosen.
#[derive(Clone, Debug, Default)]
pub struct OfferedModels {
    /// Ids and names.
    pub listed: Vec<(String, String)>,
    /// The providers whose models can be chosen by name, listed or not.
    pub providers: Vec<OfferedProvider>,
}

/// A provider whose models are named `NAME/MODEL`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OfferedProvider {
    pub name: String,
    /// The most tools that a request may have; `None`: as many as there are.
    pub max_tools: Option<usize>,
}

impl OfferedModels {
    /// The most tools that a request to this model may have.
    pub fn max_tools(&self, model: &str) -> Option<usize> {
        let name = model.split_once('/').map_or("", |it| it.0);
        self.providers.iter().find(|it| it.name == name).map_or(Some(GEMINI_TOOLS), |it| it.max_tools)
    }
}

/// The places of memory files.
#[derive(Clone, Copy, Debug)]
pub struct MemorySources {
    pub at_start: bool,
    /// Those of sub-folders, when calls come there.
    pub just_in_time: bool,
}

/// The bounds of a turn.
#[derive(Clone, Copy, Debug)]
pub struct TurnBounds {
    /// The configured limits. No turn exceeds [`super::limits::MAX_SAMPLES`].
    pub limits: Limits,
    /// A model that repeats itself is stopped.
    pub watches_loops: bool,
    /// A model is asked if an answer is the last one.
    pub asks_next_speaker: bool,
    /// With models that fail.
    pub patience: routing::failure::RetryPatience,
    /// The part of a model's window from which on the conversation is compressed; 0: never.
    pub compress_above: f64,
    pub distill: Option<distillation::DistillationLimits>,
    /// The budget for requests of MCP servers to models.
    pub sampling: SamplingBudget,
}

impl Default for TurnBounds {
    /// The bounds without any settings.
    fn default() -> Self {
        let patience = routing::failure::RetryPatience::default();
        Self {
            limits: Limits::default(),
            watches_loops: true,
            asks_next_speaker: false,
            patience,
            compress_above: 0.5,
            distill: None,
            sampling: SamplingBudget::default(),
        }
    }
}

impl TurnBounds {
    /// The same in tokens.
    pub fn compress_at(&self, window: u64) -> Option<u64> {
        let at = window as f64 * self.compress_above;
        (self.compress_above > 0.0).then_some(at as u64)
    }
}

/// The scratch that a session keeps from turn to turn, beside its record.
#[derive(Clone, Debug, Default)]
pub struct SessionScratch {
    pub preamble: Preamble,
    pub background_results: Completions,
    pub checkpoints: CheckpointState,
    pub health: routing::health::Health,
    /// The memory files were read.
    pub memory_read: bool,
    /// Looking for those of sub-folders took too long once.
    pub discovery_off: bool,
    pub state: LiveState,
    /// Faults of files that were reported, and models that retire.
    pub told_faults: BTreeSet<String>,
    /// Chosen once for the same tools: a request that begins as the one before it is cheap.
    pub fitted_tools: Option<FittedTools>,
}

impl SessionScratch {
    /// Tells whether nothing would be lost but what is found out anew.
    pub fn is_at_rest(&self) -> bool {
        let has_said_all = self.preamble.is_empty() && self.background_results.is_empty();
        has_said_all && self.checkpoints.is_at_rest() && self.state.is_saved()
    }
}
