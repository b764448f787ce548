//! Hooks and interceptors of the scripts' sessions, and a client that has a say in policy.

use std::collections::BTreeSet;

use serde_json::Value;

use super::spec::Spec;
use crate::{hooks::Hooks, step::Effect};
use castor_base::{
    check::ClientPolicy,
    hook::{Hook, HookEvent, HookSource},
};

/// How hooks, and what clients ask and are asked, are shown.
pub(super) fn shown(id: u64, effect: &Effect) -> String {
    match effect {
        Effect::TellHook(it) => format!("Tell {} {}", it.hook.key(), Value::Object(it.input.clone())),
        Effect::RunHook(it) => format!("#{id} Hook {} {}", it.hook.key(), Value::Object(it.input.clone())),
        Effect::CheckByClient(it) => {
            format!("#{id} Ask the client about {}: {:?} by {}", it.call.id, it.decision, it.rule)
        }
        it => format!("#{id} {it:?}"),
    }
}

/// With the hooks that the session's name names: `(hooks BeforeRun AfterModel:observes BeforeTool:client)`. Each has its
/// word as its name. `(policy veto)` or `(policy host)` is the client's part in policy.
pub(super) fn spec(name: &str, spec: Spec) -> Spec {
    let mut spec = spec;
    if let Some((_, role)) = name.split_once("(policy ") {
        let client = ClientPolicy { may_allow: role.starts_with("host"), timeout_ms: 500 };
        spec.toolbox = spec.toolbox.with_client_policy(Some(client));
    }
    let Some((words, _)) = name.split_once("(hooks ").and_then(|(_, it)| it.split_once(')')) else { return spec };
    let hook = |word: &str| {
        let (event, mark) = word.split_once(':').unwrap_or((word, ""));
        let source = if mark.starts_with("client") { HookSource::Client } else { HookSource::User };
        Hook {
            event: HookEvent::parse(event).unwrap(),
            matcher: None,
            sequential: false,
            observes: mark == "observes",
            command: word.to_owned(),
            name: None,
            description: None,
            timeout_ms: 1_000,
            env: Vec::new(),
            source,
            scripts: Vec::new(),
            sandbox: Default::default(),
        }
    };
    let (clients, own): (Vec<Hook>, Vec<Hook>) = words.split(' ').map(hook).partition(Hook::is_of_client);
    let hooks = Hooks::new(own, BTreeSet::new()).with_interceptors(&clients);
    Spec { toolbox: spec.toolbox.clone().with_hooks(hooks), ..spec }
}
