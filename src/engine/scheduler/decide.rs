//! Policy's one word on a call: at once, or when everybody was heard whom the rules name.

use std::sync::Arc;

use crate::{
    base::{
        check::{Check, Checker, Finding},
        log::{Decision, Fact, Mode},
        tool::{Targets, ToolError, ToolOutput},
    },
    engine::{
        policy::{self, CheckerVerdict},
        record::Step,
        scheduler::{
            ask,
            call::{Call, Checking, State, Toolbox},
            history, plan, unknown,
        },
        step::Effect,
    },
};

/// Decides, or asks the next safety checker first.
pub fn decide(call: &mut Call, step: &mut Step<'_>, tools: &Toolbox, targets: Targets, heard: Vec<CheckerVerdict>) {
    let grants = tools.grants(&step.record.grants);
    let outside = tools.outside(&call.call.name);
    let digest = outside.map(|it| it.digest());
    let query = policy::Query {
        tool: &call.call.name,
        kind: call.display.kind,
        args: &call.call.args,
        targets: &targets,
        mode: step.record.mode,
        interactive: tools.interactive,
        grants: &grants,
        roots: &step.record.roots,
        origin: policy::Origin {
            server: outside.map(|it| it.server.as_str()),
            annotations: outside.map(|it| policy::Annotations { said: &it.annotations, believed: it.trusted }),
            digest: digest.as_deref(),
            subagent: step.record.principal.agent(),
        },
        heard: &heard,
        plans: tools.planning.folder.as_ref(),
        sandbox: policy::Sandbox { exposed: step.record.is_exposed(), ..tools.confinement },
    };
    if let Some((checker, who)) = policy::next_checker(&tools.rules, &query) {
        let who = (checker, who.what.clone(), who.timeout_ms);
        return check(call, step, who, (targets, heard));
    }
    let verdict = policy::decide(&tools.rules, &query);
    call.opens = verdict.leave();
    call.offers_auto = verdict.offers_auto && tools.offers_auto(step.record);
    call.why = verdict.why;
    call.is_unasked = step.record.mode == Mode::Auto && verdict.decision == Decision::Allow;
    call.needs_undo = call.is_unasked && verdict.by_mode;
    step.log(Fact::Decision { call: call.call.id.clone(), decision: verdict.decision, rule: verdict.rule });
    match verdict.decision {
        // Its question is the asking, and what it is about has to be read first.
        Decision::Allow | Decision::Ask if call.call.name == plan::EXIT => call.preview(step, None),
        Decision::Allow if call.hooked.forced.is_some() && call.call.name != ask::NAME => {
            let why = call.hooked.forced.take().unwrap_or_default();
            if !tools.interactive {
                let text = format!("This call needs a word of the user's, and nobody can be asked. {why}");
                return call.end(step, ToolOutput::failed(ToolError::new("policy_violation", text)));
            }
            call.reason = Some(why);
            call.preview(step, None);
        }
        Decision::Allow => call.allow(),
        Decision::Deny => {
            let why = verdict.deny_message.unwrap_or_default();
            call.end(step, ToolOutput::failed(unknown::denied(&why)));
        }
        // Its question is the asking.
        Decision::Ask if call.call.name == ask::NAME => call.allow(),
        Decision::Ask if tools.is_session_tool(&call.call.name) => call.ask_at_once(step, tools, verdict.grant),
        Decision::Ask => {
            call.reason = in_lines(verdict.reason.into_iter().chain(call.hooked.forced.take()));
            call.preview(step, verdict.grant);
        }
    }
}

/// Asks a safety checker, by its place in the rules.
fn check(
    call: &mut Call,
    step: &mut Step<'_>,
    (checker, what, limit_ms): (usize, Arc<Checker>, u64),
    (targets, heard): (Targets, Vec<CheckerVerdict>),
) {
    let history = what.wants.history.then(|| history::of(step.record.turns()));
    let check = Check { checker: what, call: call.call.clone(), history };
    let effect = step.effect(Effect::Check(Box::new(check)));
    let timer = step.effect(Effect::Wake { at_ms: step.now.unix_ms.saturating_add(limit_ms) });
    call.state = State::Checking(Box::new(Checking { effect, timer, checker, limit_ms, targets, heard }));
}

fn in_lines(reasons: impl Iterator<Item = String>) -> Option<String> {
    Some(reasons.collect::<Vec<_>>().join("\n")).filter(|it| !it.is_empty())
}

/// The checker that was asked last said something, or failed.
pub fn heard(call: &mut Call, step: &mut Step<'_>, tools: &Toolbox, said: Result<Finding, String>) {
    let State::Checking(it) = std::mem::replace(&mut call.state, State::Waiting) else { return };
    let Checking { checker, targets, mut heard, .. } = *it;
    heard.push(CheckerVerdict { checker, said });
    decide(call, step, tools, targets, heard);
}

/// It said nothing in its time.
pub fn too_late(call: &mut Call, step: &mut Step<'_>, tools: &Toolbox) {
    let Some(&Checking { effect, limit_ms, .. }) = call.state.checks() else { return };
    step.effect(Effect::Abort { effect });
    heard(call, step, tools, Err(format!("it did not answer within {limit_ms} ms")));
}
