//! Parts that requests go without, since a provider refused them: tools and parameters, in this session and later ones.

use crate::turn::Spec;
use crate::{
    record::{Record, Step},
    routing::{
        failure_class::{FailureClass, classify},
        refusal::{RefusedPart, SentParts, read_refusal},
    },
    step::Effect,
};
use castor_base::{
    left_out::LeftOut,
    log::Fact,
    model::{Failure, ModelRequest},
    model_table::{Parameter, ParameterSet},
    tool_offer::ToolOffer,
};
/// The tools that `model` is told of.
fn offered_tools(record: &Record, model: &str, tools: &ToolOffer) -> ToolOffer {
    match record.refused_parts(model).filter(|it| !it.tools.is_empty()) {
        Some(it) => tools.without_names(&it.tools),
        None => tools.clone(),
    }
}

/// The tools that a request to `model` declares, of those that its provider takes: with its own tool for edits.
pub(in crate::turn) fn sent_tools(record: &Record, spec: &Spec, model: &str, fitted: &ToolOffer) -> ToolOffer {
    offered_tools(record, model, &fitted.for_edits(spec.aliases.models().traits(model).edit))
}

/// What requests to `model` go without, by this session and earlier ones; the table's own are in its traits.
pub(in crate::turn) fn refused_parameters(record: &Record, spec: &Spec, model: &str) -> ParameterSet {
    let here = record.refused_parts(model).map(|it| it.parameters).unwrap_or_default();
    here.union(spec.aliases.learned_refusals(model))
}

/// Takes out of a request what its model refuses.
pub(in crate::turn) fn drop_refused(request: &mut ModelRequest, record: &Record, spec: &Spec) {
    let refused = request.traits.refused.union(refused_parameters(record, spec, &request.model));
    request.traits.refused = refused;
    request.params.leave_out(refused);
}

/// The parameter that a refusal is about, and whether the model does not know it at all.
pub(in crate::turn) fn find_parameter(failure: &Failure) -> Option<(Parameter, bool)> {
    let found = may_name_a_part(failure).then(|| read_refusal(failure, SentParts { tools: &[], media: &[] }));
    match found.flatten()? {
        RefusedPart::Parameter { parameter, lasting } => Some((parameter, lasting)),
        _ => None,
    }
}

/// Other refusals are about the whole request, or about who sent it.
pub(in crate::turn) fn may_name_a_part(failure: &Failure) -> bool {
    let class = classify(failure).class;
    matches!(class, FailureClass::BadRequest | FailureClass::NotFound | FailureClass::ServerError)
}

/// From now on; `lasting`: in later sessions, too.
pub(in crate::turn) fn leave_parameter_out(step: &mut Step<'_>, model: &str, (parameter, lasting): (Parameter, bool)) {
    step.log(Fact::LeftOut { model: model.to_owned(), part: LeftOut::Parameter(parameter) });
    if lasting {
        step.start_effect(Effect::RememberRefusal { model: model.to_owned(), parameter });
    }
}
