//! Builds the request that a model gets: an ordered table of processors over one draft.

mod budget;
pub mod compression;
pub mod distillation;
mod instructions;
pub mod masking;
mod planning;
pub mod snapshot;
pub mod tokens;

pub use instructions::{Instructions, Surroundings};
pub use planning::FOLDER as PLANS;

use std::sync::Arc;

use crate::{
    base::{
        history::{Role, Turn, TurnPart},
        ids::CallId,
        log::Mask,
        model::{ModelRequest, Params},
        path::AbsPath,
        tool::ToolSpec,
    },
    engine::{record::Record, routing},
};

/// What a request is built from, besides the record.
#[derive(Clone, Copy, Debug)]
pub struct Materials<'a> {
    pub record: &'a Record,
    pub instructions: &'a Instructions,
    pub tools: &'a Arc<[ToolSpec]>,
    /// The last answer was none.
    pub again: Option<Again>,
    /// How much the model reads at once, in tokens.
    pub window: u64,
    /// Where whole outputs go.
    pub scratch: &'a AbsPath,
    /// From how many tokens on the conversation is compressed; `None`: not now.
    pub compress_at: Option<u64>,
    /// What is done with very large results; `None`: nothing.
    pub distill: Option<distillation::Limits>,
}

/// A further attempt that should not end like the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Again {
    /// What the model is told about that one.
    pub nudge: Option<&'static str>,
}

/// What has to be so before there is a request. Each is a fact, so that it stays so.
#[derive(Clone, Debug, PartialEq)]
pub enum Need {
    /// The first turns are to give way to a snapshot of them. The request would be so large.
    Compress {
        n_turns: usize,
        size: u64,
    },
    /// The result of this call is to be distilled.
    Distill(CallId),
    Mask(Vec<Mask>),
    /// The first turns give way to these words.
    Replace {
        n_turns: usize,
        summary: String,
    },
    /// There is more than the model reads, in tokens, and nothing to leave out.
    Room {
        size: u64,
        window: u64,
    },
}

#[derive(Clone, Copy)]
pub enum Processor {
    Shapes(fn(&mut ModelRequest, Materials<'_>)),
    /// Looks at what there is, and at the record.
    Checks(fn(&ModelRequest, Materials<'_>) -> Option<Need>),
}

use Processor::{Checks, Shapes};

/// In order; a row is added where its work belongs.
pub const PROCESSORS: &[(&str, Processor)] = &[
    ("instructions", Shapes(instructions)),
    ("memory", Shapes(memory)),
    ("planning", Shapes(planning::shape)),
    ("again", Shapes(again)),
    ("distillation", Checks(distillation::due)),
    ("compression", Checks(compression::due)),
    ("masking", Checks(masking)),
    ("budget", Checks(budget::check)),
    ("history", Shapes(history)),
    ("hardening", Shapes(hardening)),
    ("parameters", Shapes(parameters)),
];

/// The request for `model`, before routing has its say; or what it takes.
///
/// # Errors
/// When that is done, or is a fact, it is built again.
pub fn build(model: Arc<str>, materials: Materials<'_>) -> Result<ModelRequest, Need> {
    let mut draft = ModelRequest {
        model,
        system: Arc::from(""),
        contents: Vec::new(),
        tools: materials.tools.clone(),
        params: Params::default(),
    };
    for (_, processor) in PROCESSORS {
        match processor {
            Shapes(shape) => shape(&mut draft, materials),
            Checks(check) => check(&draft, materials).map_or(Ok(()), Err)?,
        }
    }
    Ok(draft)
}

fn instructions(draft: &mut ModelRequest, materials: Materials<'_>) {
    draft.system = materials.instructions.text(materials.tools);
}

/// Behind what castor itself says.
fn memory(draft: &mut ModelRequest, materials: Materials<'_>) {
    if let Some(text) = materials.record.memory().text() {
        draft.system = format!("{}\n\n{text}", draft.system).into();
    }
}

fn parameters(draft: &mut ModelRequest, materials: Materials<'_>) {
    let tuning = materials.record.tuning;
    draft.params.include_thoughts = tuning.thoughts && routing::limits::thinks(&draft.model);
    draft.params.thinking = routing::limits::thinking(&draft.model, tuning.thinking);
}

/// What the model is told of its last attempt. How it is asked then, its name says.
fn again(draft: &mut ModelRequest, materials: Materials<'_>) {
    if let Some(nudge) = materials.again.and_then(|it| it.nudge) {
        draft.system = format!("{}\n\n{nudge}", draft.system).into();
    }
}

fn masking(_: &ModelRequest, materials: Materials<'_>) -> Option<Need> {
    let masks = masking::due(materials.record.turns(), materials.scratch);
    (!masks.is_empty()).then_some(Need::Mask(masks))
}

/// All turns, shared and not copied: each is encoded once in its life.
fn history(draft: &mut ModelRequest, materials: Materials<'_>) {
    draft.contents = materials.record.turns().to_vec();
}

/// Providers refuse turns without content; a cancelled answer may have left one.
fn hardening(draft: &mut ModelRequest, _: Materials<'_>) {
    draft.contents.retain(|it| !is_empty(it));
}

fn is_empty(turn: &Turn) -> bool {
    use crate::base::content::Part;
    turn.role() == Role::Model
        && turn.parts().iter().all(|it| match it {
            TurnPart::Content(Part::Text { text, .. }) => text.is_empty(),
            // Thoughts are not sent back.
            TurnPart::Content(Part::Thought { .. }) => true,
            _ => false,
        })
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_compression;
