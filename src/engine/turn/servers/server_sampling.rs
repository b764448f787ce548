//! Requests of MCP servers to a model, while something runs there: rules and the user allow them, within a budget. The model
//! gets the server's words alone; its answer goes to the server, and into the log.

use std::sync::Arc;

use serde_json::json;

use crate::turn::{
    servers::open_samplings::{CALL, OpenSampling, SamplingStage, cut},
    spec::TurnContext,
    state::TurnState,
    utility_call::{UtilityCall, UtilityLimits, UtilityProgress, UtilityRequest},
};
use crate::{
    policy,
    record::{Record, Step},
    routing::utility_models::UtilityModel,
    scheduler::{
        decide::own_verdict,
        elicitation::{cancel_elicitation, plain_name, reply},
    },
    step::{Confirmation, Input, QuestionTopic},
};
use castor_base::{
    elicitation::Reply,
    history::{Turn, TurnPart},
    ids::{CallId, EffectId, ElicitationId},
    log::{Answer, Decision, Fact, Grant},
    model::{ModelParams, Purpose},
    sampling::{SAMPLING, SamplingRequest, ServerAsk},
    tool::{Display, Targets, ToolKind},
};

/// How long a model may take.
const LIMIT_MS: u64 = 120_000;
/// Refusals of one turn that the user sees: a server may ask without end.
const MAX_TOLD: usize = 3;

const NOBODY: &str = "no rule allows it, and nobody is there to be asked";
const SAID_NO: &str = "the user said no";

/// Takes what is about a server's request to a model; what is not comes back.
pub(in crate::turn) fn on_input(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, input: Input) -> Option<Input> {
    match input {
        Input::ElicitationRequested { elicitation, calls, request: ServerAsk::Model(request) } => {
            begin(turn, cx, elicitation, &calls, request);
            return None;
        }
        _ if turn.samplings.open.is_empty() => return Some(input),
        Input::ElicitationWithdrawn { elicitation } => {
            let (gone, open) =
                std::mem::take(&mut turn.samplings.open).into_iter().partition(|it| it.id == elicitation);
            turn.samplings.open = open;
            let gone: Vec<OpenSampling> = gone;
            let is_none = gone.is_empty();
            gone.into_iter().for_each(|it| it.abandon(cx.step, "The server took it back."));
            return is_none.then_some(input);
        }
        Input::RunEnded { effect, .. } | Input::ServerAnswered { effect, .. } => {
            turn.samplings.end_of_call(cx.step, effect);
        }
        Input::Answered { question, ref answer } => {
            let is_it = |it: &OpenSampling| matches!(&it.stage, SamplingStage::Asking(it) if it.is_about(question));
            if let Some(at) = turn.samplings.open.iter().position(is_it) {
                on_answer(turn, cx, at, answer);
                return None;
            }
        }
        Input::Chunks { .. } | Input::Generated { .. } | Input::TimerFired { .. } => {
            return on_progress(turn, cx, &input).then_some(input);
        }
        _ => (),
    }
    Some(input)
}

fn begin(
    turn: &mut TurnState,
    cx: &mut TurnContext<'_, '_>,
    id: ElicitationId,
    calls: &[EffectId],
    request: Box<SamplingRequest>,
) {
    let running = turn.scheduler.running_work(&turn.tools, calls);
    let server = running.first().map(|it| it.server.clone()).filter(|it| !it.is_empty());
    let Some(server) = server else { return cancel_elicitation(cx.step, id) };
    let calls = running.iter().map(|it| it.effect).collect();
    let one = OpenSampling { id, server, calls, request, stage: SamplingStage::Done };
    if let Some(why) = over_budget(turn, cx) {
        return refuse(turn, cx.step, &one, &why);
    }
    if turn.samplings.rejected.contains(&one.server) {
        return refuse(turn, cx.step, &one, SAID_NO);
    }
    let verdict = decide(turn, cx.step.record, &one);
    let title = one.title();
    match verdict.decision {
        Decision::Deny if !turn.tools.interactive => refuse(turn, cx.step, &one, NOBODY),
        Decision::Deny => refuse(turn, cx.step, &one, &format!("the user's rules refuse it ({})", verdict.rule)),
        Decision::Ask if is_granted(cx.step.record, &one.server) => sample_unasked(turn, cx, one, title),
        Decision::Ask if !turn.tools.interactive => refuse(turn, cx.step, &one, NOBODY),
        Decision::Ask => {
            let confirm = confirmation(cx, turn, &one, verdict.why);
            let call =
                CALL.ask_and_wait(cx.step, title, |call| QuestionTopic::Confirmation(Confirmation { call, ..confirm }));
            let (decision, rule) = (verdict.decision, verdict.rule);
            cx.step.log(Fact::Decision { call: call.call().clone(), decision, rule });
            turn.samplings.open.push(OpenSampling { stage: SamplingStage::Asking(call), ..one });
        }
        Decision::Allow => sample_unasked(turn, cx, one, title),
    }
}

fn sample_unasked(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, one: OpenSampling, title: String) {
    let call = CALL.show(cx.step, title);
    sample(turn, cx, one, call);
}

fn over_budget(turn: &TurnState, cx: &TurnContext<'_, '_>) -> Option<String> {
    let budget = cx.spec.bounds.sampling;
    let spent = cx.step.record.spent.by_model.iter().filter(|(key, _)| key.0 == Purpose::McpSampling);
    let (mut n, mut tokens) = (turn.samplings.open.len() as u64, 0_u64);
    for (_, it) in spent {
        n += it.n_calls;
        tokens = tokens.saturating_add(it.usage.input).saturating_add(it.usage.output).saturating_add(it.usage.thought);
    }
    let used_up =
        |what: &str, key: &str| Some(format!("{what} of this session's budget are used up (setting `{key}`)"));
    if n >= budget.requests {
        return used_up(&format!("the {} requests", budget.requests), "mcp.sampling.maxRequests");
    }
    if tokens >= budget.tokens {
        return used_up(&format!("the {} tokens", budget.tokens), "mcp.sampling.maxTokens");
    }
    None
}

/// As if it were a call, by the server's name and its own.
fn decide(turn: &TurnState, record: &Record, one: &OpenSampling) -> policy::Verdict {
    let (args, targets) = (json!({ "text": one.request.in_words() }), Targets::default());
    let (grants, facts) = (turn.tools.grants(&record.grants), turn.tools.sandbox.facts);
    let origin = policy::CallOrigin {
        server: Some(&one.server),
        subagent: record.principal.agent(),
        ..policy::CallOrigin::default()
    };
    let query = policy::Query {
        mode: record.mode,
        interactive: turn.tools.interactive,
        grants: &grants,
        roots: &record.roots,
        origin,
        sandbox: policy::SandboxFacts { exposed: facts.exposed || record.secrets_exposed(), ..facts },
        ..policy::Query::new(SAMPLING, ToolKind::Other, &args, &targets)
    };
    own_verdict(&turn.tools, &query)
}

/// What the user allowed for the session.
fn grant(server: &str) -> Grant {
    Grant::Tool { tool: format!("{SAMPLING} of {server}") }
}

fn is_granted(record: &Record, server: &str) -> bool {
    record.grants.contains(&grant(server))
}

fn helper(turn: &TurnState, cx: &TurnContext<'_, '_>) -> UtilityModel {
    cx.spec.helpers.for_purpose(Purpose::McpSampling, &turn.model, &cx.spec.aliases)
}

/// The call's id is filled in when there is one.
fn confirmation(cx: &TurnContext<'_, '_>, turn: &TurnState, one: &OpenSampling, why: Option<String>) -> Confirmation {
    let model = helper(turn, cx).model;
    let shown = cut(&one.request.in_words());
    let server = plain_name(&one.server);
    let words = format!(
        "The answer goes to the server `{server}`, and costs at most {} tokens of {model}:\n\n{shown}",
        one.request.max_tokens
    );
    Confirmation {
        call: CallId::from(String::new()),
        tool: plain_name(&one.server).to_string().into(),
        title: one.title(),
        kind: ToolKind::Other,
        args: json!({ "server": one.server, "model": model, "maxTokens": one.request.max_tokens }),
        locations: Vec::new(),
        display: Some(Display::Text { text: words }),
        reason: why,
        session_grant: Some(format!("Allow requests of {server} to a model for this session")),
        persistent_grant: None,
        offers_auto: false,
        is_editable: false,
    }
}

fn on_answer(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, at: usize, answer: &Answer) {
    let mut one = turn.samplings.open.remove(at);
    let SamplingStage::Asking(asked) = std::mem::replace(&mut one.stage, SamplingStage::Done) else { return };
    asked.resume(cx.step);
    cx.step.log(Fact::Answered { call: asked.call().clone(), answer: answer.clone() });
    match answer {
        Answer::AllowOnce | Answer::AllowSession => {
            if *answer == Answer::AllowSession {
                cx.step.log(Fact::Granted { grant: grant(&one.server), lasting: false });
            }
            sample(turn, cx, one, asked.call().clone());
        }
        Answer::Reject | Answer::Cancelled => {
            asked.end(cx.step, "You said no.", true);
            turn.samplings.rejected.insert(one.server.clone());
            reply(cx.step, one.id, Reply::Refused(SAID_NO.to_owned()));
        }
        _ => {
            let why = "the user's client could not ask";
            asked.end(cx.step, &format!("It was refused: {why}."), true);
            reply(cx.step, one.id, Reply::Refused(why.to_owned()));
        }
    }
}

fn sample(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, mut one: OpenSampling, call: CallId) {
    let wanted = &one.request;
    let contents = wanted.messages.iter().map(|(role, parts)| {
        let mut res = Turn::new(*role);
        res.parts_mut().extend(parts.iter().cloned().map(TurnPart::Content));
        Arc::new(res)
    });
    let params = ModelParams {
        temperature: wanted.temperature,
        max_output_tokens: Some(wanted.max_tokens),
        stop: wanted.stop.clone(),
        ..ModelParams::default()
    };
    let wish = UtilityRequest {
        system: wanted.system.as_deref().unwrap_or_default().into(),
        contents: contents.collect(),
        params,
        // Counted by the rule of thumb: the provider holds the exact limit.
        limits: UtilityLimits { tokens: u64::from(wanted.max_tokens) * 2 + 100, ms: LIMIT_MS },
    };
    match UtilityCall::ask(cx, helper(turn, cx), wish) {
        Ok(utility) => {
            one.stage = SamplingStage::Answering { call, utility: Box::new(utility) };
            turn.samplings.open.push(one);
        }
        Err(why) => {
            CALL.end(cx.step, &call, &format!("No model was asked: {why}."), true);
            reply(cx.step, one.id, Reply::Refused(why.to_string()));
        }
    }
}

/// Tells whether the input was about none of them.
fn on_progress(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, input: &Input) -> bool {
    let mut is_unrelated = true;
    for mut one in std::mem::take(&mut turn.samplings.open) {
        let progress = match &mut one.stage {
            SamplingStage::Answering { utility, .. } if is_unrelated => utility.on_input(cx, input),
            _ => UtilityProgress::NotMine,
        };
        is_unrelated &= progress == UtilityProgress::NotMine;
        match progress {
            UtilityProgress::NotMine | UtilityProgress::Open => turn.samplings.open.push(one),
            UtilityProgress::Over(said) => one.finish(cx.step, said.map_err(|it| it.to_string())),
        }
    }
    is_unrelated
}

fn refuse(turn: &mut TurnState, step: &mut Step<'_>, one: &OpenSampling, why: &str) {
    if turn.samplings.n_told < MAX_TOLD {
        turn.samplings.n_told += 1;
        let call = CALL.show(step, one.title());
        CALL.end(step, &call, &format!("It was refused: {why}."), true);
    }
    reply(step, one.id, Reply::Refused(why.to_owned()));
}
