//! Calls policy for a tool call, after all safety checkers that the rules name have answered.

use std::sync::Arc;

use crate::{
    base::{
        check::{Check, CheckFinding, Checker},
        log::{Decision, Fact, Mode},
        tool::{PolicyClass, Targets},
    },
    engine::{
        policy::{self, CheckerVerdict},
        record::Step,
        scheduler::{
            call::{Call, CallState, Checking},
            delegate, denials, history,
            session_tools::is_session_tool,
            toolbox::CallContext,
        },
        step::Effect,
    },
};

/// Decides, or asks the next safety checker first.
pub fn decide(call: &mut Call, cx: &mut CallContext<'_, '_>, targets: Targets, heard: Vec<CheckerVerdict>) {
    let grants = cx.tools.grants(&cx.step.record.grants);
    let outside = cx.tools.foreign_tool(&call.call.name);
    let digest = outside.map(|it| it.digest());
    let (tool, args) = delegate::as_rules_see(&cx.tools.agents, &call.call, call.traits.class);
    let query = policy::Query {
        tool: &tool,
        kind: call.display.kind,
        args: &args,
        targets: &targets,
        mode: cx.step.record.mode,
        interactive: cx.tools.interactive,
        grants: &grants,
        roots: &cx.step.record.roots,
        origin: policy::CallOrigin {
            server: outside.map(|it| it.server.as_str()),
            annotations: outside.map(|it| policy::Annotations { members: &it.annotations, trusted: it.trusted }),
            digest: digest.as_deref(),
            subagent: cx.step.record.principal.agent(),
        },
        checker_verdicts: &heard,
        plans: cx.tools.planning.folder.as_ref(),
        sandbox: policy::SandboxFacts { exposed: cx.step.record.secrets_exposed(), ..cx.tools.sandbox.facts },
    };
    if let Some((checker, who)) = policy::next_checker(&cx.tools.rules, &query) {
        let who = (checker, who.checker.clone(), who.timeout_ms);
        return ask_checker(call, cx.step, who, (targets, heard));
    }
    let verdict = policy::decide(&cx.tools.rules, &query);
    call.grant_if_allowed = verdict.sandbox_grant();
    call.offers_auto = verdict.offers_auto && cx.tools.offers_auto(cx.step.record);
    call.policy_reason = delegate::remote_reason(&cx.tools.agents, &call.call).or(verdict.why.clone());
    call.auto_allowed = cx.step.record.mode == Mode::Auto && verdict.decision == Decision::Allow;
    call.needs_undo = call.auto_allowed && verdict.by_mode;
    cx.step.log(Fact::Decision { call: call.call.id.clone(), decision: verdict.decision, rule: verdict.rule.clone() });
    match verdict.decision {
        // Its question is the asking, and what it is about has to be read first.
        Decision::Allow | Decision::Ask if call.is_of(PolicyClass::ExitPlan) => call.ask(cx, None),
        Decision::Allow if call.hook_effects.ask_reason.is_some() && !call.is_of(PolicyClass::Question) => {
            let why = call.hook_effects.ask_reason.take().unwrap_or_default();
            if !cx.tools.interactive {
                return call.end(cx.step, denials::unasked(&why));
            }
            call.ask_reason = Some(why);
            call.ask(cx, None);
        }
        Decision::Allow => call.allow(),
        Decision::Deny => {
            let output = denials::denied(&verdict, cx.step.record.mode, cx.tools.interactive);
            call.end(cx.step, output);
        }
        // Its question is the asking.
        Decision::Ask if call.is_of(PolicyClass::Question) => call.allow(),
        Decision::Ask if is_session_tool(&call.call.name) => call.ask(cx, verdict.grant.filter(|_| !call.asks_only)),
        Decision::Ask => {
            call.ask_reason = in_lines(verdict.reason.into_iter().chain(call.hook_effects.ask_reason.take()));
            call.ask(cx, verdict.grant);
        }
    }
}

/// Asks a safety checker, by its place in the rules.
fn ask_checker(
    call: &mut Call,
    step: &mut Step<'_>,
    (checker, what, limit_ms): (usize, Arc<Checker>, u64),
    (targets, heard): (Targets, Vec<CheckerVerdict>),
) {
    let history = what.context.history.then(|| history::checker_history(step.record.turns()));
    let check = Check { checker: what, call: call.call.clone(), history };
    let effect = step.start_effect(Effect::Check(Box::new(check)));
    let timer = step.start_effect(Effect::SetTimer { at_ms: step.now.unix_ms.saturating_add(limit_ms) });
    call.state = CallState::Checking(Box::new(Checking { effect, timer, checker, limit_ms, targets, verdicts: heard }));
}

fn in_lines(reasons: impl Iterator<Item = String>) -> Option<String> {
    Some(reasons.collect::<Vec<_>>().join("\n")).filter(|it| !it.is_empty())
}

/// The checker that was asked last said something, or failed.
pub fn add_verdict(call: &mut Call, cx: &mut CallContext<'_, '_>, said: Result<CheckFinding, String>) {
    let CallState::Checking(it) = std::mem::replace(&mut call.state, CallState::Waiting) else { return };
    let Checking { checker, targets, verdicts: mut heard, .. } = *it;
    heard.push(CheckerVerdict { checker, result: said });
    decide(call, cx, targets, heard);
}

/// It said nothing in its time.
pub fn checker_timed_out(call: &mut Call, cx: &mut CallContext<'_, '_>) {
    let Some(&Checking { effect, limit_ms, .. }) = call.state.checking() else { return };
    cx.step.start_effect(Effect::Abort { effect });
    add_verdict(call, cx, Err(format!("it did not answer within {limit_ms} ms")));
}
