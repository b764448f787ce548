//! Parts of requests that providers refused in this session, and media that words stand for.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::Record;
use castor_base::{
    content::Part,
    history::{Turn, TurnPart},
    left_out::{LeftOut, MediaInWords},
    model_table::ParameterSet,
};

/// By model.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RefusedParts(BTreeMap<String, ModelRefusals>);

/// What requests to one model go without.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelRefusals {
    pub parameters: ParameterSet,
    pub tools: BTreeSet<String>,
    /// The largest body that its server takes, in bytes.
    pub body_limit: Option<u64>,
}

impl RefusedParts {
    pub fn note(&mut self, model: &str, part: &LeftOut) {
        let known = self.0.entry(model.to_owned()).or_default();
        match part {
            LeftOut::Parameter(it) => known.parameters = known.parameters.with(*it),
            LeftOut::Tool(name) => _ = known.tools.insert(name.clone()),
            LeftOut::BytesAbove(limit) => known.body_limit = Some(*limit),
            LeftOut::Media(_) => (),
        }
    }

    /// The user chose a model: its server may be another one by now.
    pub fn forget(&mut self) {
        self.0.clear();
    }
}

impl Record {
    pub(super) fn leave_out(&mut self, model: &str, part: &LeftOut) {
        match part {
            LeftOut::Media(all) => put_words(&mut self.past.history.turns, all),
            other => self.past.refused.note(model, other),
        }
    }

    /// What requests to `model` go without since it refused that here.
    pub fn refused_parts(&self, model: &str) -> Option<&ModelRefusals> {
        self.past.refused.0.get(model)
    }
}

/// Puts words in the place of media.
fn put_words(turns: &mut [Arc<Turn>], all: &[MediaInWords]) {
    for MediaInWords { place, text } in all {
        let Some(turn) = turns.get_mut(place.turn) else { continue };
        let part = Arc::make_mut(turn).parts_mut().get_mut(place.part);
        let content = match (part, place.item) {
            (Some(TurnPart::Content(it)), None) => Some(it),
            (Some(TurnPart::Result(result)), Some(item)) => result.content.get_mut(item),
            _ => None,
        };
        if let Some(it) = content.filter(|it| it.bytes().is_some()) {
            *it = Part::text(text.as_str());
        }
    }
}
