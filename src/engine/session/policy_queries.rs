//! Policy questions of a client: a look at the targets, then the answer; no call is made.

use std::collections::BTreeMap;

use crate::{
    policy,
    record::Step,
    scheduler::{Toolbox, evaluate},
    session_tools::is_session_tool,
    step::{Effect, Input},
};
use castor_base::{
    ids::{CallId, EffectId, PromptId},
    policy_answer::{PolicyAnswer, PolicyOrder},
    tool::{PolicyClass, Targets, ToolCall},
};

/// Most questions that wait for a look at their targets.
const MAX_WAITING: usize = 256;

#[derive(Debug, Default)]
pub(super) struct PolicyQueries {
    waiting: BTreeMap<EffectId, PolicyOrder>,
}

impl PolicyQueries {
    /// Before anything else is done about an input.
    pub fn handle_input(&mut self, input: &Input, step: &mut Step<'_>, tools: &Toolbox) {
        match input {
            Input::EvaluatePolicy(order) => self.begin(PolicyOrder::clone(order), step, tools),
            Input::Resolved { effect, result } => {
                let Some(order) = self.waiting.remove(effect) else { return };
                let refused = |why: &str| format!("{} does not take these arguments: {why}", order.tool);
                let targets = result.as_ref().map_err(|it| refused(&it.message));
                let result = targets.map(|it| answer(&order, step, tools, it));
                settle(step, order.prompt, result);
            }
            _ => (),
        }
    }

    /// Looks at what the call would touch, where it touches anything.
    fn begin(&mut self, order: PolicyOrder, step: &mut Step<'_>, tools: &Toolbox) {
        if tools.known_tool(&order.tool).is_none() {
            return settle(step, order.prompt, Err(format!("the session has no tool {:?}", order.tool)));
        }
        if is_session_tool(&order.tool) || tools.traits(&order.tool).class == PolicyClass::Delegate {
            let result = answer(&order, step, tools, &Targets::default());
            return settle(step, order.prompt, Ok(result));
        }
        if self.waiting.len() == MAX_WAITING {
            return settle(step, order.prompt, Err(format!("{MAX_WAITING} such questions are open; wait for answers")));
        }
        let call = call_of(&order);
        let sandbox_grant = policy::sandbox_grant(&call, &step.record.active_grants(&tools.folder_grants));
        let effect = step.start_effect(Effect::Resolve { call, sandbox_grant: Box::new(sandbox_grant) });
        self.waiting.insert(effect, order);
    }
}

fn call_of(order: &PolicyOrder) -> ToolCall {
    ToolCall { id: CallId::from("policy"), name: order.tool.clone(), args: order.args.clone() }
}

fn answer(order: &PolicyOrder, step: &Step<'_>, tools: &Toolbox, targets: &Targets) -> PolicyAnswer {
    evaluate(tools, step.record, (&call_of(order), order.mode, order.principal.as_deref()), targets)
}

fn settle(step: &mut Step<'_>, prompt: PromptId, result: Result<PolicyAnswer, String>) {
    step.start_effect(Effect::AnswerPolicy { prompt, result: Box::new(result) });
}
