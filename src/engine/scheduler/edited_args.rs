//! A yes to a call with other arguments than the model's: hooks, checkers and policy see these as they saw the first.

use serde_json::{Map, Value};

use super::{
    call::{Call, EditedApproval},
    display::first_display,
    plan_review::resolve_plan_path,
    toolbox::CallContext,
};
use castor_base::tool::{ToolError, ToolOutput};

impl Call {
    /// The model learns what ran in place of what it asked for.
    pub(super) fn allow_edited(&mut self, cx: &mut CallContext<'_, '_>, args: Map<String, Value>) {
        if self.asks_only {
            let why = "The user allowed it with other arguments, which the agent cannot be given.";
            return self.end(cx.step, ToolOutput::failed(ToolError::new("cancelled", why)));
        }
        let (reasons, grant) = (self.reasons(), std::mem::take(&mut self.grant_if_allowed));
        self.call.args = Value::Object(args);
        resolve_plan_path(self, cx.step.record.mode, &cx.tools.planning);
        self.note(format!("The user changed the arguments of this call to {}.", self.call.args));
        self.edited = Some(EditedApproval { args: self.call.args.clone(), reasons, grant });
        self.display = first_display(cx.tools, &self.call, &cx.step.record.cwd);
        self.display_dirty = true;
        (self.ask_reason, self.policy_reason) = (None, None);
        self.run_before_hooks(cx);
    }

    /// The yes holds where there is nothing to ask that the user had not read. A place out of the folders, a link, or
    /// another reason of policy is a question of its own.
    pub(super) fn is_approved_as_edited(&mut self) -> bool {
        let Some(yes) = self.edited.take() else { return false };
        let leads_away = self.places.iter().any(|it| !it.in_roots || it.path != it.real);
        !leads_away && yes.args == self.call.args && yes.reasons == self.reasons() && yes.grant == self.grant_if_allowed
    }
}
