//! Waves of tool calls: neighbours that can run in parallel, in the model's order.

use serde_json::Value;

use crate::engine::scheduler::call::{Call, CallState};

/// Edits of one file must not overtake each other, so edits never run beside anything. A question may end the turn, and another mode
/// changes what may follow.
const EXCLUSIVE_TOOLS: &[&str] = &["ask_user", "enter_plan_mode", "exit_plan_mode", "replace", "write_file"];

/// Indices of the calls that begin next.
pub fn next_wave(calls: &[Call]) -> Vec<usize> {
    let mut waiting = calls.iter().enumerate().filter(|(_, it)| matches!(it.state, CallState::Waiting));
    let Some((first, call)) = waiting.next() else { return Vec::new() };
    let mut res = vec![first];
    if is_parallel(call) {
        res.extend(waiting.take_while(|(_, it)| is_parallel(it)).map(|(idx, _)| idx));
    }
    res
}

fn is_parallel(call: &Call) -> bool {
    let waits = call.call.args.get("wait_for_previous").and_then(Value::as_bool).unwrap_or(false);
    !waits && !EXCLUSIVE_TOOLS.contains(&call.call.name.as_str())
}
