//! The request of a turn: gathers what the context builder needs, and logs each part as a fact.

use std::{collections::BTreeMap, sync::Arc};

use crate::turn::{
    Spec,
    endings::Cause,
    model::{leaving_out, windows},
    spec::TurnContext,
    state::TurnState,
};
use crate::{
    context::{self, RequestMaterials, RequestNeed},
    record::{Record, Step},
    routing::aliases::WantedModel,
    step::Effect,
};
use castor_base::{
    content::joined_text,
    history::{Role, TurnPart},
    ids::CallId,
    left_out::{LeftOut, Mask, MediaInWords},
    log::Fact,
    model::ModelRequest,
    model_table::row::StructuredOutput,
    prompt_options::AnswerForm,
    tool_offer::ToolOffer,
};

/// Why there is no request yet.
pub(in crate::turn) enum MissingRequest {
    Ended(Cause),
    /// The result of this call is too large as it is.
    NeedsDistilling(CallId),
    /// The first turns are to be compressed; the request would be so large.
    NeedsCompression {
        n_turns: usize,
        size: u64,
    },
}

/// Whole, for this model: parameters of another one would be refused or do something else.
pub(in crate::turn) fn build_request(
    turn: &TurnState,
    cx: &mut TurnContext<'_, '_>,
    model: &str,
    compresses: bool,
) -> Result<ModelRequest, MissingRequest> {
    let (whole, scratch) = (windows::window(cx.step.record, cx.spec, model), &cx.spec.scratch);
    // By the rule of thumb, as all sizes here are; the provider may count more or less.
    let window = cx.step.record.token_scale().estimated_tokens(model, whole);
    let (compress_at, distill) = (cx.spec.bounds.compress_at(window).filter(|_| compresses), cx.spec.bounds.distill);
    let distill = distill.filter(|_| compresses);
    let body_limit = windows::body_limit(cx.step.record, cx.spec, model);
    let fitted = fit_tools(turn, cx, model);
    let tools = leaving_out::sent_tools(cx.step.record, cx.spec, model, &fitted);
    loop {
        let (record, instructions) = (&*cx.step.record, &cx.spec.instructions);
        let again = turn.attempts.retry_advice;
        let materials = RequestMaterials {
            record,
            instructions,
            tools: &tools,
            known_tools: &cx.spec.toolbox.known_tools,
            retry_advice: again,
            models: cx.spec.aliases.models(),
            window,
            body_limit,
            scratch,
            compress_at,
            distill,
        };
        // Each need that is met leaves less that could be asked for: this ends.
        match context::build(Arc::from(model), materials) {
            Ok(request) => return Ok(fill(request, turn, record, cx.spec)),
            Err(RequestNeed::Compress { n_turns, size }) => {
                return Err(MissingRequest::NeedsCompression { n_turns, size });
            }
            Err(RequestNeed::Distill(call)) => return Err(MissingRequest::NeedsDistilling(call)),
            Err(RequestNeed::Mask(masks)) => mask(cx.step, masks),
            Err(RequestNeed::LeaveOutMedia(media)) => leave_media_out(cx.step, model, media),
            Err(RequestNeed::Replace { n_turns, summary }) => {
                cx.step
                    .emit_notice("The conversation is longer than the model reads: castor left out its oldest part.");
                cx.step.log(Fact::Compressed { turns: n_turns as u64, summary, tokens: 0 });
            }
            Err(RequestNeed::TooLarge { size, .. }) => {
                let size = cx.step.record.token_scale().model_tokens(model, size);
                return Err(MissingRequest::Ended(Cause::TooLong { model: model.to_owned(), size, window: whole }));
            }
            Err(RequestNeed::BodyTooLarge { size, limit }) => {
                return Err(MissingRequest::Ended(Cause::BodyTooLarge { model: model.to_owned(), size, limit }));
            }
        }
    }
}

/// Holds the model to the form of the answer, where it can be held to it in such a request. Most that have tools beside it
/// would never use them: they hear of the form from the prompt alone, until that asks for nothing but the answer.
fn shape_answer(request: &mut ModelRequest, form: Option<&AnswerForm>) {
    let Some(form) = form else { return };
    let structured = request.traits.structured;
    let is_alone = matches!(structured, StructuredOutput::Unknown | StructuredOutput::WithoutTools);
    if is_alone && form.is_alone {
        request.tools = ToolOffer::default();
    }
    if structured == StructuredOutput::Yes || is_alone && request.tools.is_empty() {
        request.params.schema = Some(form.schema.clone());
    }
}

/// The request with its parameters, and without those that the model refuses.
fn fill(mut request: ModelRequest, turn: &TurnState, record: &Record, spec: &Spec) -> ModelRequest {
    let (role, is_retry) = (spec.role.as_deref(), turn.attempts.retry_advice.is_some());
    request.params.temperature = role.and_then(|it| it.temperature).filter(|_| !is_retry);
    let wanted = WantedModel {
        scope: role.map(|it| it.agent.as_str()),
        is_retry,
        ..WantedModel::for_agent(turn.router.name(record, &request.model))
    };
    spec.aliases.fill_params(&mut request, wanted);
    request.traits = spec.aliases.models().traits(&request.model);
    shape_answer(&mut request, record.answer_form());
    leaving_out::drop_refused(&mut request, record, spec);
    request
}

/// As many tools as the model's provider takes. The user is told once which are not among them.
fn fit_tools(turn: &TurnState, cx: &mut TurnContext<'_, '_>, model: &str) -> ToolOffer {
    let all = &turn.tools.tools;
    let Some(max) = cx.spec.choices.models.max_tools(model).filter(|it| *it < all.len()) else { return all.clone() };
    let before = cx.scratch.fitted_tools.take();
    if let Some(it) = before.as_ref().filter(|it| it.max == max && it.from == *all) {
        let tools = it.tools.clone();
        cx.scratch.fitted_tools = before;
        return tools;
    }
    let mut n_calls: BTreeMap<&str, usize> = BTreeMap::new();
    for part in cx.step.record.turns().iter().flat_map(|it| it.parts()) {
        if let TurnPart::Call { call, .. } = part {
            *n_calls.entry(&call.name).or_default() += 1;
        }
    }
    let fitted = turn.tools.fit(max, |name| n_calls.get(name).copied().unwrap_or_default());
    if before.is_none_or(|it| it.left != fitted.left) && !fitted.left.is_empty() {
        cx.step.emit_notice(&fitted.notice(model));
    }
    let tools = fitted.tools.clone();
    cx.scratch.fitted_tools = Some(fitted);
    tools
}

/// A prompt that is too long to be read is not in the way of the next one, nor paid for as a part of a summary.
pub(in crate::turn) fn retract(step: &mut Step<'_>, cause: &Cause) {
    let is_prompt = step.record.turns().last().is_some_and(|it| it.role() == Role::User);
    if is_prompt && matches!(cause, Cause::TooLong { .. } | Cause::BodyTooLarge { .. }) {
        step.log(Fact::Retracted {});
    }
}

fn leave_media_out(step: &mut Step<'_>, model: &str, media: Vec<MediaInWords>) {
    let n = media.len();
    let what = if n == 1 { "an attachment".to_owned() } else { format!("{n} attachments") };
    step.emit_notice(&format!(
        "The conversation has more bytes than {model} takes at once: a line of text stands for {what}, the oldest first."
    ));
    step.log(Fact::LeftOut { model: model.to_owned(), part: LeftOut::Media(media) });
}

/// The whole outputs go to files first: that is where the masks point to.
pub(in crate::turn) fn mask(step: &mut Step<'_>, masks: Vec<Mask>) {
    let mut whole = Vec::new();
    for part in step.record.turns().iter().flat_map(|it| it.parts()) {
        let TurnPart::Result(result) = part else { continue };
        if let Some(mask) = masks.iter().find(|it| it.call == result.id) {
            whole.push((mask.path.clone(), joined_text(&result.content)));
        }
    }
    whole.into_iter().for_each(|(file, text)| _ = step.start_effect(Effect::WriteScratch { file, text }));
    step.log(Fact::Masked { masks });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::shape_answer;
    use castor_base::{
        model::{ModelParams, ModelRequest},
        model_table::{ModelTraits, row::StructuredOutput},
        prompt_options::AnswerForm,
        tool::{ToolKind, ToolSpec},
    };

    /// Whether the request has tools, and whether it has the form.
    fn check(structured: StructuredOutput, has_tools: bool, is_alone: bool, expected: (bool, bool)) {
        let tool = ToolSpec {
            name: "t".into(),
            title: "".into(),
            description: "".into(),
            kind: ToolKind::Other,
            traits: Default::default(),
            parameters: json!({}).into(),
        };
        let mut request = ModelRequest {
            model: "m".into(),
            system: "".into(),
            contents: Vec::new(),
            tools: has_tools.then_some(tool).into_iter().collect(),
            params: ModelParams::default(),
            traits: ModelTraits { structured, ..ModelTraits::default() },
        };
        let form = AnswerForm { schema: json!({"type": "object"}).into(), is_alone };
        shape_answer(&mut request, None);
        assert_eq!((!request.tools.is_empty(), request.params.schema.is_some()), (has_tools, false));
        shape_answer(&mut request, Some(&form));
        let got = (!request.tools.is_empty(), request.params.schema.is_some());
        assert_eq!(got, expected, "{structured:?} {has_tools} {is_alone}");
    }

    #[test]
    fn a_model_is_held_to_the_form_where_it_can_be() {
        use StructuredOutput::{No, Unknown, WithoutTools, Yes};
        for is_alone in [false, true] {
            check(Yes, true, is_alone, (true, true));
            check(Yes, false, is_alone, (false, true));
            check(No, true, is_alone, (true, false));
            check(No, false, is_alone, (false, false));
        }
        for structured in [Unknown, WithoutTools] {
            check(structured, true, false, (true, false));
            check(structured, false, false, (false, true));
            check(structured, true, true, (false, true));
        }
    }
}
