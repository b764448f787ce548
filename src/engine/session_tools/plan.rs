//! The plan mode tools `enter_plan_mode` and `exit_plan_mode`, and where plans are written.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::record::Step;
use castor_base::{
    log::{Fact, Mode},
    path::AbsPath,
    text,
    tool::{Display, ToolCall, ToolKind, ToolOutput, ToolSpec, ToolTraits},
};

pub const ENTER: &str = "enter_plan_mode";
/// How its result begins where the user accepted the plan.
pub const APPROVED: &str = "Plan approved.";

/// Most of the model's reason for a plan, in bytes.
const MAX_REASON: usize = 2_000;

/// Where plans are written, and how a session may go on after one.
#[derive(Clone, Debug, Default)]
pub struct Planning {
    /// Canonical.
    pub folder: Option<AbsPath>,
    pub modes: Vec<Mode>,
}

pub fn enter_spec() -> ToolSpec {
    /// One for all sessions.
    static SPEC: LazyLock<ToolSpec> = LazyLock::new(build);
    SPEC.clone()
}

fn build() -> ToolSpec {
    ToolSpec {
        name: ENTER.into(),
        title: "EnterPlanMode".into(),
        description: "Switches to plan mode, for a task that should be planned and agreed on before anything is \
                      changed. Asks the user first."
            .into(),
        kind: ToolKind::SwitchMode,
        traits: ToolTraits::ENTERS_PLAN,
        parameters: json!({
            "type": "object",
            "properties": { "reason": { "type": "string", "description": "Why a plan is needed, in a sentence." } }
        })
        .into(),
    }
}

/// Why the model wants a plan, for the question about it.
pub fn plan_reason(call: &ToolCall) -> Option<Display> {
    let reason = call.args.get("reason").and_then(Value::as_str).map(str::trim).filter(|it| !it.is_empty())?;
    (call.name == ENTER).then(|| Display::Text { text: text::head(reason, MAX_REASON).to_owned() })
}

pub fn enter(step: &mut Step<'_>, _: &Map<String, Value>) -> ToolOutput {
    step.log(Fact::Mode { mode: Mode::Plan });
    ToolOutput::text("Switching to Plan mode.")
}
