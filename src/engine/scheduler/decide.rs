//! Calls policy for a tool call, after all safety checkers that the rules name have answered.

use std::sync::Arc;

use crate::{
    base::{
        check::{Check, CheckFinding, Checker, ClientCheck},
        ids::EffectId,
        log::{Decision, Fact, Mode},
        tool::{PolicyClass, Targets},
    },
    engine::{
        policy::{self, CheckerVerdict, VerdictBasis},
        record::Step,
        scheduler::{
            call::{Call, CallState, Checking, Reviews},
            call_facts::CallFacts,
            client_policy::{apply_finding, disputed_verdict},
            delegate, denials, history,
            session_tools::is_session_tool,
            skill_calls,
            toolbox::{CallContext, Toolbox},
        },
        step::Effect,
    },
};

/// Decides, or asks the next safety checker first; last of all the client's own policy.
pub fn decide(call: &mut Call, cx: &mut CallContext<'_, '_>, targets: Targets, said: Reviews) {
    let facts = CallFacts::new(cx.tools, cx.step.record, &call.call, call.traits.class);
    let query = facts.query(cx.tools, cx.step.record, &targets);
    let query = policy::Query { kind: call.display.kind, checker_verdicts: &said.checkers, ..query };
    if let Some((checker, who)) = policy::next_checker(&cx.tools.rules, &query) {
        let who = (checker, who.checker.clone(), who.timeout_ms);
        return ask_checker(call, cx.step, who, (targets, said));
    }
    let own_policy = |query: &policy::Query| own_verdict(cx.tools, query);
    let mut verdict = own_policy(&query);
    if let Some(client) = cx.tools.client_policy
        && let Some(disputed) = disputed_verdict(&query, client, &verdict, own_policy)
    {
        let Some(finding) = &said.client else {
            return ask_client(call, cx.step, (disputed, client.timeout_ms), (targets, said));
        };
        verdict = apply_finding(&query, (verdict, disputed), finding, client);
    }
    call.grant_if_allowed = verdict.sandbox_grant();
    call.offers_auto = verdict.offers_auto && cx.tools.offers_auto(cx.step.record);
    call.policy_reason = delegate::remote_reason(&cx.tools.agents, &call.call).or(verdict.why.clone());
    call.policy_reason = skill_calls::reason(cx.tools, &call.call).or(call.policy_reason.take());
    call.auto_allowed = cx.step.record.mode == Mode::Auto && verdict.decision == Decision::Allow;
    call.needs_undo = call.auto_allowed && verdict.basis == VerdictBasis::Mode;
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
/// By the rules and grants of the session alone.
pub fn own_verdict(tools: &Toolbox, query: &policy::Query) -> policy::Verdict {
    policy::decide(&tools.rules, query)
}

fn ask_checker(
    call: &mut Call,
    step: &mut Step<'_>,
    (checker, what, limit_ms): (usize, Arc<Checker>, u64),
    known: (Targets, Reviews),
) {
    let history = what.context.history.then(|| history::checker_history(step.record.turns()));
    let check = Check { checker: what, call: call.call.clone(), history };
    let effect = step.start_effect(Effect::Check(Box::new(check)));
    wait_for(call, step, (effect, Some(checker), limit_ms), known);
}

/// Asks the client's policy about what castor's own says.
fn ask_client(
    call: &mut Call,
    step: &mut Step<'_>,
    (own, limit_ms): (policy::Verdict, u64),
    known: (Targets, Reviews),
) {
    let check = ClientCheck {
        call: call.call.clone(),
        kind: call.display.kind,
        principal: step.record.principal.agent().map(str::to_owned),
        mode: step.record.mode,
        decision: own.decision,
        rule: own.rule,
        place: step.record.place(),
    };
    let effect = step.start_effect(Effect::CheckByClient(Box::new(check)));
    wait_for(call, step, (effect, None, limit_ms), known);
}

fn wait_for(
    call: &mut Call,
    step: &mut Step<'_>,
    (effect, checker, limit_ms): (EffectId, Option<usize>, u64),
    (targets, said): (Targets, Reviews),
) {
    let timer = step.start_effect(Effect::SetTimer { at_ms: step.now.unix_ms.saturating_add(limit_ms) });
    call.state = CallState::Checking(Box::new(Checking { effect, timer, checker, limit_ms, targets, said }));
}

fn in_lines(reasons: impl Iterator<Item = String>) -> Option<String> {
    Some(reasons.collect::<Vec<_>>().join("\n")).filter(|it| !it.is_empty())
}

/// Who was asked last said something, or failed.
pub fn add_verdict(call: &mut Call, cx: &mut CallContext<'_, '_>, said: Result<CheckFinding, String>) {
    let CallState::Checking(it) = std::mem::replace(&mut call.state, CallState::Waiting) else { return };
    let Checking { checker, targets, said: mut reviews, .. } = *it;
    match checker {
        Some(checker) => reviews.checkers.push(CheckerVerdict { checker, result: said }),
        None => reviews.client = Some(said),
    }
    decide(call, cx, targets, reviews);
}

/// It said nothing in its time.
pub fn checker_timed_out(call: &mut Call, cx: &mut CallContext<'_, '_>) {
    let Some(&Checking { effect, limit_ms, .. }) = call.state.checking() else { return };
    cx.step.start_effect(Effect::Abort { effect });
    add_verdict(call, cx, Err(format!("it did not answer within {limit_ms} ms")));
}
