//! AIR `asyncTasks`: commands in the background as tasks, with their end, and the request to stop one.

use agent_client_protocol_schema::v1::Meta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json, value::RawValue};

use super::{air_meta, background_task::BackgroundTask};
use crate::acp::updates::{Playback, SessionView, notification};
use castor_base::ids::{CallId, SessionId};

#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
#[schemars(rename = "AsyncTaskStop")]
pub(in crate::acp) struct StopMethod {
    params: Option<StopParams>,
    result: Option<Stopped>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "AsyncTaskStopParams")]
pub struct StopParams {
    pub session_id: SessionId,
    /// The id of the call that started it.
    pub async_task_id: CallId,
    #[serde(rename = "_meta")]
    #[allow(dead_code, reason = "nothing of it is known")]
    meta: Option<Map<String, Value>>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AsyncTaskStopped")]
pub struct Stopped {
    /// False: there is no such task, or not any more.
    pub stopped: bool,
}

/// An update about a task: `async_task_spawned` or `async_task_state_update`.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "sessionUpdate", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(in crate::acp) enum TaskUpdate<'a> {
    AsyncTaskSpawned {
        async_task_id: &'a CallId,
        name: &'a str,
        task_type: &'static str,
        show_in_transcript: bool,
        can_stop: bool,
        tool_call_id: &'a CallId,
    },
    AsyncTaskStateUpdate {
        async_task_id: &'a CallId,
        /// `completed`, or `stopped` after a request for that.
        state: &'static str,
    },
}

/// Reads `_session/async_task/stop`.
///
/// # Errors
/// See [`super::super::params`].
pub fn read_stop(params: Option<&RawValue>) -> Result<StopParams, String> {
    crate::acp::params(params)
}

impl SessionView {
    /// What the end of a call says whose command goes on.
    pub(in crate::acp) fn background_mark(&self, data: &Value) -> Option<Meta> {
        let is_shown = self.profile.features.air.async_tasks && background_pid(data).is_some();
        is_shown.then(|| air_meta("asyncTasks", json!({ "backgrounded": true })))
    }

    /// Of a call that is not over, live.
    pub(in crate::acp) fn live_title(&self, call: &CallId, way: Playback) -> Option<String> {
        let shown = self.calls.get(call).filter(|_| way == Playback::Live)?;
        shown.call.as_ref().map(|it| it.title.clone())
    }

    /// A call ended, whose command perhaps goes on.
    pub(in crate::acp) fn begin_task(&mut self, call: &CallId, title: &str, data: &Value, lines: &mut Vec<u8>) {
        let Some(pid) = background_pid(data).filter(|_| self.profile.features.air.async_tasks) else { return };
        let update = TaskUpdate::AsyncTaskSpawned {
            async_task_id: call,
            name: title,
            task_type: "shell",
            show_in_transcript: false,
            can_stop: true,
            tool_call_id: call,
        };
        self.push_task(&update, lines);
        self.tasks.push(BackgroundTask { call: call.clone(), pid });
    }

    /// The session is shown anew: what goes on in the background is the same.
    pub fn adopt_tasks(&mut self, before: Self) {
        self.tasks = before.tasks;
    }

    /// All processes of a command are gone.
    pub fn end_task(&mut self, pid: u32, lines: &mut Vec<u8>) {
        let Some(at) = self.tasks.iter().position(|it| it.pid == pid) else { return };
        let task = self.tasks.remove(at);
        self.push_task(&TaskUpdate::AsyncTaskStateUpdate { async_task_id: &task.call, state: "completed" }, lines);
    }

    /// The first process of a task that is to be stopped; nothing more is told of it but that.
    pub fn stop_task(&mut self, call: &CallId, lines: &mut Vec<u8>) -> Option<u32> {
        let at = self.tasks.iter().position(|it| it.call == *call)?;
        let task = self.tasks.remove(at);
        self.push_task(&TaskUpdate::AsyncTaskStateUpdate { async_task_id: &task.call, state: "stopped" }, lines);
        Some(task.pid)
    }

    fn push_task(&self, update: &TaskUpdate<'_>, lines: &mut Vec<u8>) {
        notification("session/update", &json!({ "sessionId": self.session, "update": update }), lines);
    }
}

/// The first process of a command that goes on.
fn background_pid(data: &Value) -> Option<u32> {
    let is_background = data.get("background") == Some(&Value::Bool(true));
    let pid = data.get("pid")?.as_u64().and_then(|it| u32::try_from(it).ok());
    pid.filter(|_| is_background)
}
