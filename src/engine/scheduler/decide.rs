//! Calls policy for a tool call, after all safety checkers that the rules name have answered.

use std::sync::Arc;

use crate::{
    policy::{self, CheckerVerdict, VerdictBasis},
    record::Step,
    scheduler::{
        call::{Call, CallState, Checking, Reviewer, Reviews},
        call_facts::CallFacts,
        client_policy::{apply_finding, disputed_verdict},
        denials, history, skill_calls,
        toolbox::{CallContext, Toolbox},
    },
    session_tools::{delegate, is_session_tool},
    step::Effect,
};
use castor_base::{
    check::{Check, CheckFinding, Checker, ClientCheck},
    ids::EffectId,
    log::{Decision, Fact, Mode},
    tool::{PolicyClass, Targets, ToolCall},
};

/// Decides, or asks the next safety checker first; last of all the client's own policy.
pub fn decide(call: &mut Call, cx: &mut CallContext<'_, '_>, targets: Targets, said: Reviews) {
    let facts = CallFacts::new(cx.tools, cx.step.record, &call.call, call.traits.class);
    let query = facts.query(cx.tools, cx.step.record, &targets);
    let query = policy::Query { kind: call.display.kind, checker_verdicts: &said.checkers, ..query };
    if let Some(it) = policy::next_checker(&cx.tools.rules, &query) {
        let who = Reviewer { checker: Some(it.checker), subject: it.subject, limit_ms: it.rule.timeout_ms };
        let checker = it.rule.checker.clone();
        return ask_checker(call, cx.step, (who, checker), (targets, said));
    }
    let own_policy = |query: &policy::Query| own_verdict(cx.tools, query);
    let mut verdict = own_policy(&query);
    if let Some(client) = cx.tools.client_policy
        && let Some(disputed) = disputed_verdict(&query, client, &verdict, own_policy)
    {
        let Some(finding) = combine_findings(&said.client, query.subjects().count()) else {
            let who = Reviewer { checker: None, subject: said.client.len(), limit_ms: client.timeout_ms };
            return ask_client(call, cx.step, (who, disputed), (targets, said));
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

/// The verdict of the session's rules and grants alone.
pub fn own_verdict(tools: &Toolbox, query: &policy::Query) -> policy::Verdict {
    policy::decide(&tools.rules, query)
}

/// Asks a safety checker, by its place in the rules.
fn ask_checker(
    call: &mut Call,
    step: &mut Step<'_>,
    (who, checker): (Reviewer, Arc<Checker>),
    known: (Targets, Reviews),
) {
    let history = checker.context.history.then(|| history::checker_history(step.record.turns()));
    let check = Check { checker, call: subject_call(&call.call, &known.0, who.subject), history };
    let effect = step.start_effect(Effect::Check(Box::new(check)));
    wait_for(call, step, (effect, who), known);
}

/// The call as it is reviewed: of a patch, what it does to one file.
fn subject_call(call: &ToolCall, targets: &Targets, subject: usize) -> ToolCall {
    match targets.parts.get(subject) {
        Some(it) => ToolCall { id: call.id.clone(), name: it.tool.clone(), args: it.args.clone() },
        None => call.clone(),
    }
}

fn about_file(file: &str, it: CheckFinding) -> CheckFinding {
    match it.decision {
        Decision::Allow => it,
        _ => CheckFinding { reason: format!("{file}: {}", it.reason), ..it },
    }
}

/// Combines the client's findings on all subjects; `None`: one is still to be asked about.
fn combine_findings(said: &[Result<CheckFinding, String>], n_subjects: usize) -> Option<&Result<CheckFinding, String>> {
    let strictness = |it: &&Result<CheckFinding, String>| it.as_ref().map_or(Decision::Deny, |it| it.decision);
    let worst = said.iter().max_by_key(strictness)?;
    (said.len() >= n_subjects || strictness(&worst) == Decision::Deny).then_some(worst)
}

/// Asks the client's policy about what castor's own says.
fn ask_client(
    call: &mut Call,
    step: &mut Step<'_>,
    (who, own): (Reviewer, policy::Verdict),
    known: (Targets, Reviews),
) {
    let check = ClientCheck {
        call: subject_call(&call.call, &known.0, who.subject),
        kind: call.display.kind,
        principal: step.record.principal.agent().map(str::to_owned),
        mode: step.record.mode,
        decision: own.decision,
        rule: own.rule,
        place: step.record.place(),
    };
    let effect = step.start_effect(Effect::CheckByClient(Box::new(check)));
    wait_for(call, step, (effect, who), known);
}

fn wait_for(
    call: &mut Call,
    step: &mut Step<'_>,
    (effect, who): (EffectId, Reviewer),
    (targets, said): (Targets, Reviews),
) {
    let timer = step.start_effect(Effect::SetTimer { at_ms: step.now.unix_ms.saturating_add(who.limit_ms) });
    call.state = CallState::Checking(Box::new(Checking { effect, timer, who, targets, said }));
}

pub(super) fn in_lines(reasons: impl Iterator<Item = String>) -> Option<String> {
    Some(reasons.collect::<Vec<_>>().join("\n")).filter(|it| !it.is_empty())
}

/// Adds the finding of the reviewer that was asked last, or its failure.
pub fn add_verdict(call: &mut Call, cx: &mut CallContext<'_, '_>, said: Result<CheckFinding, String>) {
    let CallState::Checking(it) = std::mem::replace(&mut call.state, CallState::Waiting) else { return };
    let Checking { who, targets, said: mut reviews, .. } = *it;
    let said = match targets.parts.get(who.subject).map(|it| &it.targets.title) {
        Some(file) => said.map_err(|it| format!("{file}: {it}")).map(|it| about_file(file, it)),
        None => said,
    };
    match who.checker {
        Some(checker) => reviews.checkers.push(CheckerVerdict { checker, subject: who.subject, result: said }),
        None => reviews.client.push(said),
    }
    decide(call, cx, targets, reviews);
}

/// It said nothing in its time.
pub fn checker_timed_out(call: &mut Call, cx: &mut CallContext<'_, '_>) {
    let Some(&Checking { effect, who: Reviewer { limit_ms, .. }, .. }) = call.state.checking() else { return };
    cx.step.start_effect(Effect::Abort { effect });
    add_verdict(call, cx, Err(format!("it did not answer within {limit_ms} ms")));
}
