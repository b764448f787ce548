//! Requests to the client in place of a hook's command, and about its own policy. Who waits no longer withdraws them.

use std::time::Duration;

use tokio::time::timeout;

use super::effect_task::EffectTask;
use castor_base::{
    check::{CheckFinding, ClientCheck},
    hook::{HookEnd, HookReport, HookRun},
};
use castor_engine::step::Input;
use castor_wire::acp::own::{
    intercept::{self, InterceptRequest},
    policy::{self, ClientPolicyRequest},
};

/// Asks an interceptor, for no longer than its timeout.
pub async fn ask_interceptor(task: &EffectTask, run: &HookRun) -> HookReport {
    let params = serde_json::to_value(InterceptRequest::new(&task.resources.session, run)).unwrap_or_default();
    let limit = Duration::from_millis(run.hook.timeout_ms);
    let client = task.editor_client();
    match timeout(limit, client.ask(intercept::METHOD, params)).await {
        Err(_) => HookReport::from_end(HookEnd::TimedOut),
        Ok(None) => HookReport::from_end(HookEnd::NotStarted("is gone with its client".to_owned())),
        Ok(Some(outcome)) => intercept::report(run.hook.event, outcome),
    }
}

/// Answers a check with what the client's policy says. How long is the engine's matter.
pub async fn check(task: EffectTask, check: ClientCheck) {
    let future = task.catch_panic(ask_policy(&task, check));
    let Some(finding) = task.cancel.run_until_cancelled(future).await else { return };
    task.send_answer(Input::Checked { effect: task.id, finding: finding.and_then(|it| it) }).await;
}

/// # Errors
/// It gave no verdict: why.
async fn ask_policy(task: &EffectTask, check: ClientCheck) -> Result<CheckFinding, String> {
    let params = serde_json::to_value(ClientPolicyRequest::new(&task.resources.session, check)).unwrap_or_default();
    match task.editor_client().ask(policy::METHOD, params).await {
        None => Err("the client is gone".to_owned()),
        Some(outcome) => policy::finding(outcome),
    }
}
