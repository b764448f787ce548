//! Omissions: what of a request its provider refused by name, so that the next attempt goes without.

use std::sync::Arc;

use crate::turn::{
    model::leaving_out::{leave_parameter_out, may_name_a_part, refused_parameters, sent_tools},
    spec::TurnContext,
    state::TurnState,
};
use crate::{
    context::media::{PlacedMedia, find_media, in_words},
    record::Step,
    routing::refusal::{MediaChoice, MediaKind, RefusedPart, SentParts, read_refusal},
};
use castor_base::{
    history::Turn,
    left_out::{LeftOut, MediaInWords},
    log::Fact,
    model::Failure,
    model_table::Parameter,
    text::end_sentence,
};

/// Whoever refuses more tools than this refuses something else.
const MAX_TOOLS: usize = 16;

/// So many attempts leave out one image each.
const MAX_SINGLE: u32 = 4;

/// What the next attempt goes without.
#[derive(Debug)]
pub(in crate::turn) struct Omission {
    part: LeftOut,
    /// The model does not know the parameter at all.
    lasting: bool,
}

/// What of the request is refused, if castor can do without it and did not yet.
pub(in crate::turn) fn find_omission(
    turn: &TurnState,
    cx: &TurnContext<'_, '_>,
    failure: &Failure,
) -> Option<Omission> {
    if !may_name_a_part(failure) {
        return None;
    }
    let (record, model) = (&*cx.step.record, &*turn.model);
    let fitted = cx.scratch.fitted_tools.as_ref().filter(|it| it.from == turn.tools.tools);
    let tools = sent_tools(record, cx.spec, model, fitted.map_or(&turn.tools.tools, |it| &it.tools));
    let names: Vec<&str> = tools.iter().map(|it| &*it.name).collect();
    let kinds: Vec<MediaKind> = find_media(record.turns()).map(|it| MediaKind::of_mime(it.mime)).collect();
    let is_new = |it: Parameter| !refused_parameters(record, cx.spec, model).has(it);
    let n_left_out = record.refused_parts(model).map_or(0, |it| it.tools.len());
    match read_refusal(failure, SentParts { tools: &names, media: &kinds })? {
        RefusedPart::Parameter { parameter, lasting } => {
            // Neither name is known.
            let without = (parameter == Parameter::MaxTokensName).then_some(Parameter::MaxOutputTokens);
            let parameter = Some(parameter).filter(|it| is_new(*it)).or(without.filter(|it| is_new(*it)))?;
            Some(Omission { part: LeftOut::Parameter(parameter), lasting })
        }
        RefusedPart::Tool(at) => {
            let name = names.get(at).filter(|_| n_left_out < MAX_TOOLS)?;
            Some(Omission { part: LeftOut::Tool((*name).to_owned()), lasting: false })
        }
        RefusedPart::Media { kind, which } => {
            // One after the other costs an attempt each.
            let which = if turn.draft.attempt > MAX_SINGLE { MediaChoice::All } else { which };
            let media = choose_media(record.turns(), kind, which);
            (!media.is_empty()).then_some(Omission { part: LeftOut::Media(media), lasting: false })
        }
    }
}

fn choose_media(turns: &[Arc<Turn>], kind: MediaKind, which: MediaChoice) -> Vec<MediaInWords> {
    let all = find_media(turns).filter(|it| MediaKind::of_mime(it.mime) == kind);
    let (chosen, why): (Vec<PlacedMedia<'_>>, _) = match which {
        MediaChoice::All => (all.collect(), "the model does not take it"),
        MediaChoice::Largest => (all.max_by_key(|it| it.bytes).into_iter().collect(), "it is too large for the model"),
        MediaChoice::Newest => (all.last().into_iter().collect(), "the model could not read it"),
    };
    chosen.iter().map(|it| in_words(turns, it, why)).collect()
}

impl Omission {
    /// For the user.
    pub fn why(&self, model: &str, failure: &Failure) -> String {
        let what = match &self.part {
            LeftOut::Parameter(it) if self.lasting => format!(
                "It is asked again without `{name}`. castor leaves that out for 7 days; `castor models forget {model}` \
                 ends this.",
                name = it.as_str()
            ),
            LeftOut::Parameter(it) => {
                format!("It is asked again without `{}`, which stays out in this session.", it.as_str())
            }
            LeftOut::Tool(name) => format!(
                "It is asked again without the tool {name}, which stays out in this session; `/model {model}` brings it \
                 back."
            ),
            LeftOut::Media(media) if media.len() == 1 => {
                "It is asked again with a line of text in place of one attachment.".to_owned()
            }
            LeftOut::Media(media) => {
                format!("It is asked again with lines of text in place of {} attachments.", media.len())
            }
            LeftOut::BytesAbove(limit) => format!("It is asked again with at most {limit} bytes."),
        };
        format!("{model}: {} {what}", end_sentence(&failure.message))
    }

    pub fn apply(self, step: &mut Step<'_>, model: &str) {
        if let LeftOut::Parameter(parameter) = self.part {
            leave_parameter_out(step, model, (parameter, self.lasting));
        } else {
            step.log(Fact::LeftOut { model: model.to_owned(), part: self.part });
        }
    }
}
