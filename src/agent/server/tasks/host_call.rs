//! A call that the session's host runs: one request to the client, with a limit of time.

use std::time::Duration;

use tokio::time::timeout;

use super::effect_task::EffectTask;
use castor_base::{
    host_tools::HostRun,
    tool::{ToolCall, ToolError, ToolOutput},
};
use castor_wire::acp::own::host_tools::{CALL, HostReply, call_params, read_answer};

/// What the host answers. The loop takes the request back when nobody waits for the answer any more.
pub async fn call_host(task: &EffectTask, run: &HostRun, call: &ToolCall) -> ToolOutput {
    let client = task.editor_client();
    let params = call_params(&client.session.root(), &run.stream, call);
    let name = call.name.as_str();
    let answer = match timeout(Duration::from_millis(run.timeout_ms), client.ask(CALL, params)).await {
        Ok(Some(Ok(it))) => it,
        Ok(Some(Err(it))) => return failed("host_tool_error", format!("The host failed at '{name}': {}", it.message)),
        Ok(None) => return failed("host_gone", format!("The host is gone: '{name}' has no result.")),
        Err(_) => {
            let why = format!("The host did not answer '{name}' within {} ms.", run.timeout_ms);
            return failed("host_tool_timeout", why);
        }
    };
    match read_answer(answer) {
        Ok(HostReply { answer, tail_call }) => ToolOutput { tail_call, ..ToolOutput::of_host(name, answer) },
        Err(why) => failed("host_tool_answer", format!("The host's answer to '{name}' is not usable: {why}.")),
    }
}

fn failed(kind: &str, why: String) -> ToolOutput {
    ToolOutput::failed(ToolError::new(kind, why))
}
