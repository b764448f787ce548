//! The request builder for models: an ordered table of processors over one draft.

pub mod body_size;
mod budget;
pub mod compression;
pub mod distillation;
mod instructions;
pub mod masking;
pub mod media;
mod planning;
pub mod snapshot;
pub mod tokens;

pub use instructions::{Instructions, SessionEnvironment};
pub use planning::PLANS_FOLDER as PLANS;

use std::sync::Arc;

use crate::{record::Record, routing};
use castor_base::{
    history::{Role, Turn, TurnPart},
    ids::CallId,
    left_out::{Mask, MediaInWords},
    model::{ModelParams, ModelRequest},
    model_table::ModelTable,
    path::AbsPath,
    tool::ToolSpec,
    tool_offer::ToolOffer,
};

/// The materials of a request, besides the record.
#[derive(Clone, Copy, Debug)]
pub struct RequestMaterials<'a> {
    pub record: &'a Record,
    pub instructions: &'a Instructions,
    pub tools: &'a ToolOffer,
    /// Castor's own, also those that are not on offer.
    pub known_tools: &'a [ToolSpec],
    /// The last answer was none.
    pub retry_advice: Option<RetryAdvice>,
    pub models: &'a ModelTable,
    /// The model's window, in tokens.
    pub window: u64,
    /// The most bytes that its server takes at once.
    pub body_limit: u64,
    /// The folder for whole outputs.
    pub scratch: &'a AbsPath,
    /// From how many tokens on the conversation is compressed; `None`: not now.
    pub compress_at: Option<u64>,
    /// The limits of very large results; `None`: they stay as they are.
    pub distill: Option<distillation::DistillationLimits>,
}

/// A further attempt that should not end like the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetryAdvice {
    /// The advice to the model about that one.
    pub nudge: Option<&'static str>,
}

/// A step that must come before the request. Each is a fact, so that it stays so.
#[derive(Clone, Debug, PartialEq)]
pub enum RequestNeed {
    /// The first turns are to give way to a snapshot of them. The request would be so large.
    Compress {
        n_turns: usize,
        size: u64,
    },
    /// The result of this call is to be distilled.
    Distill(CallId),
    Mask(Vec<Mask>),
    /// Words stand for these media from here on.
    LeaveOutMedia(Vec<MediaInWords>),
    /// The first turns give way to these words.
    Replace {
        n_turns: usize,
        summary: String,
    },
    /// There is more than the model reads, in tokens, and nothing to leave out.
    TooLarge {
        size: u64,
        window: u64,
    },
    /// The same in bytes.
    BodyTooLarge {
        size: u64,
        limit: u64,
    },
}

#[derive(Clone, Copy)]
pub enum Processor {
    Transform(fn(&mut ModelRequest, RequestMaterials<'_>)),
    /// Looks at what there is, and at the record.
    Check(fn(&ModelRequest, RequestMaterials<'_>) -> Option<RequestNeed>),
}

use Processor::{Check, Transform};

/// The processors in order; a row is added where its work belongs.
pub const PROCESSORS: &[(&str, Processor)] = &[
    ("instructions", Transform(instructions)),
    ("memory", Transform(memory)),
    ("planning", Transform(planning::add_plan_instructions)),
    ("again", Transform(add_retry_advice)),
    ("distillation", Check(distillation::due)),
    ("compression", Check(compression::due)),
    ("masking", Check(masking)),
    ("bytes", Check(body_size::check)),
    ("budget", Check(budget::check)),
    ("history", Transform(set_history)),
    ("hardening", Transform(drop_empty_turns)),
    ("parameters", Transform(parameters)),
];

/// The request for `model`, before routing has its say; or what it takes.
///
/// # Errors
/// When that is done, or is a fact, it is built again.
pub fn build(model: Arc<str>, materials: RequestMaterials<'_>) -> Result<ModelRequest, RequestNeed> {
    let mut draft = ModelRequest {
        model,
        system: Arc::from(""),
        contents: Vec::new(),
        tools: materials.tools.clone(),
        params: ModelParams::default(),
        traits: Default::default(),
    };
    for (_, processor) in PROCESSORS {
        match processor {
            Transform(shape) => shape(&mut draft, materials),
            Check(check) => check(&draft, materials).map_or(Ok(()), Err)?,
        }
    }
    Ok(draft)
}

fn instructions(draft: &mut ModelRequest, materials: RequestMaterials<'_>) {
    draft.system = materials.instructions.text(materials.tools);
}

/// Behind what castor itself says.
fn memory(draft: &mut ModelRequest, materials: RequestMaterials<'_>) {
    if let Some(text) = materials.record.memory().text() {
        draft.system = format!("{}\n\n{text}", draft.system).into();
    }
}

fn parameters(draft: &mut ModelRequest, materials: RequestMaterials<'_>) {
    let tuning = materials.record.tuning;
    draft.params.include_thoughts = tuning.thoughts && routing::model_limits::thinks(&draft.model, materials.models);
    draft.params.thinking = routing::model_limits::thinking(&draft.model, tuning.thinking, materials.models);
}

/// Adds advice on the model's last attempt. The name of the retry says how it is asked then.
fn add_retry_advice(draft: &mut ModelRequest, materials: RequestMaterials<'_>) {
    if let Some(nudge) = materials.retry_advice.and_then(|it| it.nudge) {
        draft.system = format!("{}\n\n{nudge}", draft.system).into();
    }
}

fn masking(_: &ModelRequest, materials: RequestMaterials<'_>) -> Option<RequestNeed> {
    let masks = masking::mask_due(materials.record.turns(), materials.scratch, materials.known_tools);
    (!masks.is_empty()).then_some(RequestNeed::Mask(masks))
}

/// All turns, shared and not copied: each is encoded once in its life.
fn set_history(draft: &mut ModelRequest, materials: RequestMaterials<'_>) {
    draft.contents = materials.record.turns().to_vec();
}

/// Providers refuse turns without content; a cancelled answer may have left one.
fn drop_empty_turns(draft: &mut ModelRequest, _: RequestMaterials<'_>) {
    draft.contents.retain(|it| !is_empty(it));
}

fn is_empty(turn: &Turn) -> bool {
    use castor_base::content::Part;
    turn.role() == Role::Model
        && turn.parts().iter().all(|it| match it {
            TurnPart::Content(Part::Text { text, .. }) => text.is_empty(),
            // Providers refuse thoughts that nothing follows.
            TurnPart::Content(Part::Thought { .. }) => true,
            _ => false,
        })
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_body_size;
#[cfg(test)]
mod tests_compression;
