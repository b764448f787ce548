//! Hooks before a request goes to the model: BeforeModel and BeforeToolSelection.

use serde_json::{Value, json};

use crate::hooks::{HookOutcome, HookVerdict, llm};
use crate::turn::{
    answer,
    flow::{Flow, Station},
    model::request_builder::{MissingRequest, build_request},
    spec::TurnContext,
    state::TurnState,
    turn_hooks::{HookContinuation, cause_of, fire_hooks},
};
use castor_base::{hook::HookEvent, tool_offer::ToolOffer};

#[derive(Debug)]
struct BeforeModel;
#[derive(Debug)]
struct BeforeToolSelection;

pub(in crate::turn) fn before_model(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>) -> Flow {
    fire_with_request(turn, cx, HookEvent::BeforeModel, BeforeModel)
}

pub(in crate::turn) fn choose_tools(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>) -> Flow {
    fire_with_request(turn, cx, HookEvent::BeforeToolSelection, BeforeToolSelection)
}

fn fire_with_request(
    turn: &mut TurnState,
    cx: &mut TurnContext<'_, '_>,
    event: HookEvent,
    then: impl HookContinuation,
) -> Flow {
    let Some(request) = &turn.draft.request else { return Flow::Go(Station::Model) };
    // The whole request in another form, for nobody.
    if !cx.spec.toolbox.hooks.has(event, "", &cx.step.record.switches) {
        return Flow::Next;
    }
    let input = json!({ "llm_request": llm::request_json(request) });
    fire_hooks(turn, cx, (event, "", input), then)
}

impl HookContinuation for BeforeModel {
    fn go_on(self, turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, outcome: &HookOutcome) -> Flow {
        cx.step.log_hooks(HookEvent::BeforeModel, outcome, None, false);
        let answer = outcome.changed_object("llm_response").and_then(llm::response_text);
        match (&outcome.verdict, answer) {
            (Some(HookVerdict::Block(_)), Some(text)) => {
                return answer::take_other_answer(turn, cx, text);
            }
            (Some(verdict), _) => return Flow::End(cause_of(verdict)),
            (None, Some(_)) => cx.step.emit_notice("A hook's llm_response counts only where it blocks; ignored."),
            (None, None) => (),
        }
        let Some(said) = outcome.changed_object("llm_request") else { return Flow::Next };
        let Some(mut request) = turn.draft.request.take() else { return Flow::Next };
        let model = said.get("model").and_then(Value::as_str).unwrap_or(&request.model);
        if *model != *request.model {
            turn.draft.why = format!("a hook named it in place of {}", request.model);
            request = match build_request(turn, cx, model, false) {
                Ok(request) => request,
                Err(MissingRequest::Ended(cause)) => return Flow::End(cause),
                // Not asked for here.
                Err(MissingRequest::NeedsCompression { .. } | MissingRequest::NeedsDistilling(_)) => request,
            };
        }
        llm::apply_change(&mut request, said);
        turn.draft.request = Some(request);
        Flow::Next
    }
}

impl HookContinuation for BeforeToolSelection {
    /// Tools that are not offered cannot be called either.
    fn go_on(self, turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, outcome: &HookOutcome) -> Flow {
        cx.step.log_hooks(HookEvent::BeforeToolSelection, outcome, None, false);
        if let Some(config) = outcome.changed_object("toolConfig") {
            let names = config.get("allowedFunctionNames").and_then(Value::as_array);
            let names: Vec<&str> = names.into_iter().flatten().filter_map(Value::as_str).collect();
            let none = config.get("mode").and_then(Value::as_str) == Some("NONE");
            if none || !names.is_empty() {
                turn.tools = turn.tools.only(&names);
                let kept =
                    |it: &ToolOffer| it.iter().filter(|it| turn.tools.find(&it.name).is_some()).cloned().collect();
                turn.draft.request.iter_mut().for_each(|it| it.tools = kept(&it.tools));
            }
        }
        Flow::Next
    }
}
