//! Utility calls: their ends, their cost, and that they leave nothing open.

use super::{
    SessionScratch, TurnContext,
    tests::spec,
    utility_call::{UtilityCall, UtilityLimits, UtilityProgress, UtilityRequest, text_turn},
};
use crate::{
    record::{Record, SerialNumbers, SessionOrigin, Step},
    routing::utility_models::UtilityModel,
    step::{Act, Effect, Input, StepOutput},
};
use castor_base::{
    clock::Now,
    fallback::{Outage, OutageCause},
    history::Role,
    ids::{EffectId, SessionId},
    log::{Mode, Principal},
    model::{Chunk, Failure, FailureKind, Finish, ModelParams, Purpose, Usage},
    path::AbsPath,
};

const MODEL: EffectId = EffectId(1);
const TIMER: EffectId = EffectId(2);

fn helper() -> UtilityModel {
    let params = ModelParams { temperature: Some(0.5), ..ModelParams::default() };
    UtilityModel { purpose: Purpose::Router, model: "small".to_owned(), params }
}

fn wish(text: &str) -> UtilityRequest {
    let params = ModelParams { temperature: Some(0.0), max_output_tokens: Some(9), ..ModelParams::default() };
    let limits = UtilityLimits { tokens: 10, ms: 2_000 };
    UtilityRequest { system: "Choose.".into(), contents: vec![text_turn(Role::User, text)], params, limits }
}

/// What happens to one question: what it comes to, and the effects and facts, a word each.
fn asked(kept: &mut SessionScratch, inputs: &[Input]) -> (Result<String, String>, Vec<String>, Record) {
    let cwd = AbsPath::new("/w").unwrap();
    let (session, roots) = (SessionId::from("s"), vec![cwd.clone()]);
    let origin = SessionOrigin {
        session,
        cwd,
        roots,
        mode: Mode::Default,
        model: "m".into(),
        principal: Principal::Root,
        child_of: None,
        thread: None,
        user: None,
    };
    let (mut record, mut serial, mut out) = (Record::new(origin), SerialNumbers::default(), StepOutput::default());
    let spec = spec("");
    let mut step = Step::new(&mut record, &mut serial, Now { unix_ms: 1_000, seed: 0 }, &mut out);
    let cx = &mut TurnContext { step: &mut step, spec: &spec, scratch: kept };
    let heard = UtilityCall::ask(cx, helper(), wish("Which?"))
        .map(|mut it| inputs.iter().fold(UtilityProgress::Open, |_, input| it.on_input(cx, input)))
        .map(|it| in_words(&it))
        .map_err(|it| it.to_string());
    let said = out.acts.iter().map(|it| match it {
        Act::Do(id, Effect::Generate { purpose, request }) => {
            let ModelParams { temperature, max_output_tokens, .. } = request.params;
            format!("{} asks {} {temperature:?} {max_output_tokens:?} as {}", id.0, request.model, purpose.as_str())
        }
        Act::Do(id, Effect::SetTimer { at_ms }) => format!("{} wakes at {at_ms}", id.0),
        Act::Do(_, Effect::Abort { effect }) => format!("aborts {}", effect.0),
        Act::Do(_, Effect::UpdateHealth { model, .. }) => format!("{model} is out"),
        Act::Do(_, other) => format!("{other:?}"),
        Act::Log(_) => "logs".to_owned(),
        Act::BeginStream { stream, .. } => format!("begins {stream}"),
    });
    (heard, said.collect(), record)
}

fn in_words(progress: &UtilityProgress) -> String {
    match progress {
        UtilityProgress::Over(Ok(answer)) => format!("answer: {answer}"),
        UtilityProgress::Over(Err(why)) => why.to_string(),
        other => format!("{other:?}"),
    }
}

fn chunks(text: &str, finish: Finish) -> Input {
    let usage = Usage { input: 5, output: 1, total: 6, ..Usage::default() };
    let text = Chunk::Text { text: text.to_owned(), signature: None };
    Input::Chunks { effect: MODEL, chunks: vec![text, Chunk::Usage(usage), Chunk::Finish(finish)] }
}

#[test]
fn each_question_ends_once_and_is_billed() {
    let ended = || Input::Generated { effect: MODEL, result: Ok(()) };
    let failure = Failure { status: Some(404), ..Failure::new(FailureKind::Status, "no such model") };
    let failed = Input::Generated { effect: MODEL, result: Err(failure) };
    let cut = "the answer of small broke off";
    for (inputs, comes_to, then) in [
        (vec![chunks("flash", Finish::Stop), ended()], "answer: flash", "aborts 2, logs"),
        (vec![chunks(" \n", Finish::Stop), ended()], "small said nothing", "aborts 2, logs"),
        (vec![chunks("fla", Finish::MaxTokens), ended()], cut, "aborts 2, logs"),
        (vec![chunks("fla", Finish::Safety("SAFETY".into())), ended()], cut, "aborts 2, logs"),
        (vec![ended()], cut, "aborts 2"),
        (vec![failed], "small failed: no such model", "aborts 2, small is out"),
        (vec![chunks(&"long ".repeat(20), Finish::Stop)], "small said more than 10 tokens", "aborts 1, aborts 2, logs"),
        (
            vec![chunks("fla", Finish::Stop), Input::TimerFired { effect: TIMER }],
            "small did not answer within 2 s",
            "aborts 1, logs",
        ),
        (vec![Input::TimerFired { effect: EffectId(3) }], "NotMine", ""),
        (vec![Input::Generated { effect: EffectId(3), result: Ok(()) }], "NotMine", ""),
        (vec![chunks("flash", Finish::Stop)], "Open", ""),
    ] {
        let (heard, said, record) = asked(&mut SessionScratch::default(), &inputs);
        assert_eq!(heard.as_deref(), Ok(comes_to), "{inputs:?}");
        assert_eq!(said[..2], ["1 asks small Some(0.5) Some(9) as router", "2 wakes at 3000"], "{inputs:?}");
        assert_eq!(said[2..].join(", "), then, "{inputs:?}");
        let n_calls = record.spent.by_model.get(&(Purpose::Router, "small".to_owned())).map_or(0, |it| it.n_calls);
        assert_eq!(n_calls, u64::from(then.contains("logs")), "{inputs:?}");
        assert_eq!(record.spent.last, None, "it fills no context");
    }
}

#[test]
fn unavailable_model_gets_no_utility_call() {
    let mut kept = SessionScratch::default();
    kept.health.mark_out("small", Outage { cause: OutageCause::Quota, until_ms: Some(2_000) });
    let (heard, said, _) = asked(&mut kept, &[]);
    assert_eq!((heard, said), (Err("small is known not to answer now (quota)".to_owned()), vec![]));
    kept.health.mark_out("small", Outage { cause: OutageCause::Quota, until_ms: Some(999) });
    assert_eq!(asked(&mut kept, &[]).0, Ok("Open".to_owned()));
}
