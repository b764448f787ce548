//! Waves of tool calls: neighbours that can run in parallel, in the model's order.

use serde_json::Value;

use crate::scheduler::call::{Call, CallState};

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
    // A prompt may read what the command before it made.
    !waits && !call.traits.is_exclusive && !call.is_aside
}
