//! Builds the request that a model gets: an ordered table of processors over one draft.

mod instructions;

pub use instructions::{Instructions, Surroundings};

use std::sync::Arc;

use crate::{
    base::{
        history::{Role, Turn, TurnPart},
        model::{ModelRequest, Params},
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
}

type Processor = fn(&mut ModelRequest, Materials<'_>);

/// In order; a row is added where its work belongs.
pub const PROCESSORS: &[(&str, Processor)] =
    &[("instructions", instructions), ("parameters", parameters), ("history", history), ("hardening", hardening)];

/// The request for `model`, before routing has its say.
pub fn build(model: Arc<str>, materials: Materials<'_>) -> ModelRequest {
    let mut draft = ModelRequest {
        model,
        system: Arc::from(""),
        contents: Vec::new(),
        tools: materials.tools.clone(),
        params: Params::default(),
    };
    for (_, processor) in PROCESSORS {
        processor(&mut draft, materials);
    }
    draft
}

fn instructions(draft: &mut ModelRequest, materials: Materials<'_>) {
    draft.system = materials.instructions.text();
}

fn parameters(draft: &mut ModelRequest, materials: Materials<'_>) {
    let tuning = materials.record.tuning;
    draft.params.include_thoughts = tuning.thoughts && routing::limits::thinks(&draft.model);
    draft.params.thinking = routing::limits::thinking(&draft.model, tuning.thinking);
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
mod tests {
    use super::PROCESSORS;

    #[test]
    fn the_order_of_processors_is_this() {
        let names: Vec<&str> = PROCESSORS.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["instructions", "parameters", "history", "hardening"]);
    }
}
