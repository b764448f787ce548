//! Calls that are not the model's: what the commands of a file's prompt come to.

use super::{CallContext, Scheduler, call::Call};
use castor_base::tool::{ToolCall, ToolError};

impl Scheduler {
    /// It is decided about and run like one of the model's, and the model is not told of it.
    pub fn propose_aside(&mut self, cx: &mut CallContext<'_, '_>, call: ToolCall) {
        let args = call.args.clone();
        let mut call = Call::new(cx.tools, call, &cx.step.record.cwd);
        call.is_aside = true;
        call.show(cx.step, args, None);
        self.calls.push(call);
    }

    /// The outcomes of the calls that are not the model's, in their order; all have ended.
    pub fn take_aside(&mut self) -> Vec<Result<String, ToolError>> {
        let outcome = |it: Call| it.outcome.unwrap_or_else(|| Ok(String::new()));
        std::mem::take(&mut self.calls).into_iter().filter(|it| it.is_aside).map(outcome).collect()
    }
}
