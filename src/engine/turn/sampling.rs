//! A model is asked, and what of its answer is heard.

use super::{
    Attempt, Kept, MAX_SAMPLES, Phase, Spec, Turn, compressing,
    endings::Cause,
    recovery::Failed,
    response::{Judged, Response},
    upkeep::{self, Unbuilt},
};
use crate::{
    base::{
        ids::EffectId,
        log::Fact,
        model::{Chunk, Failure, ModelRequest, Purpose},
    },
    engine::{context::tokens, record::Step, step::Effect},
};

impl Turn {
    pub(super) fn sample(&mut self, step: &mut Step<'_>, spec: &Spec, kept: &mut Kept, attempt: u32) {
        if attempt == 1 && self.n_samples >= MAX_SAMPLES {
            return self.finish(step, &Cause::MaxSamples(self.n_samples));
        }
        if let Some(cause) = self.spent(step.record, spec).filter(|_| attempt == 1) {
            return self.finish(step, &cause);
        }
        self.n_samples += u32::from(attempt == 1);
        kept.completions.tell(step);
        self.take_steering(step);
        self.tools = spec.toolbox.in_mode(step.record.mode);
        self.ask_model(step, spec, kept, attempt, true);
    }

    /// `compresses`: models may be asked first how to make it shorter.
    pub(super) fn ask_model(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut Kept,
        attempt: u32,
        compresses: bool,
    ) {
        let why = self.follow(step, &spec.aliases);
        match self.build(step, spec, &self.model, compresses) {
            Ok(request) if self.is_open(step.record, spec) => {
                self.find_model(step, spec, kept, attempt, &request.contents);
            }
            Ok(request) => self.request(step, spec, kept, Attempt { attempt, why }, request),
            Err(Unbuilt::Long { n_turns, size }) => {
                let old = compressing::Old { goal: compressing::Goal::Request { attempt }, n_turns, size };
                self.compress(step, spec, kept, old);
            }
            Err(Unbuilt::Large(call)) => self.distill(step, spec, kept, call, attempt),
            Err(Unbuilt::Over(cause)) => {
                upkeep::retract(step, &cause);
                self.finish(step, &cause);
            }
        }
    }

    pub(super) fn send(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        Attempt { attempt, why }: Attempt,
        request: ModelRequest,
    ) {
        let (model, held) = (request.model.clone(), Self::held(step, spec, &request));
        let tokens = tokens::of_request(&request);
        step.log(Fact::Attempt { model: model.to_string(), attempt, tokens, why });
        let effect = step.effect(Effect::Generate { purpose: Purpose::Agent, request });
        self.phase = Phase::Sampling { effect, attempt, response: Response::new(model, spec, step.record), held };
    }

    pub(super) fn generated(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut Kept,
        effect: EffectId,
        result: Result<(), Failure>,
    ) {
        if !matches!(self.phase, Phase::Sampling { effect: own, .. } if own == effect) {
            return;
        }
        let phase = std::mem::replace(&mut self.phase, Phase::Calling);
        let Phase::Sampling { attempt, mut response, held, .. } = phase else { return };
        match (result, held) {
            (Err(failure), _) => {
                response.close(step);
                let (shown, said) = (response.has_shown(), response.messages().to_vec());
                self.failed(step, spec, kept, Failed { failure, attempt, shown, said, cause: None, nudge: None });
            }
            (Ok(()), Some(held)) => self.show_hooks(step, spec, kept, (response, attempt), held),
            (Ok(()), None) => self.answered_by_model(step, spec, kept, response, attempt),
        }
    }

    /// An answer is there, and shown: its calls are made, or it was the last one.
    pub(super) fn answered_by_model(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut Kept,
        mut response: Response,
        attempt: u32,
    ) {
        response.close(step);
        if !self.scheduler.is_empty() {
            self.answered_well(step, kept);
            self.talk.said += response.said();
            if let Some(cause) = self.broke(step.record, spec) {
                return self.finish(step, &cause);
            }
            self.phase = Phase::Calling;
            let standing = self.scheduler.advance(step, &self.tools);
            return self.called(step, spec, kept, standing);
        }
        match response.judge(self.n_samples > 1) {
            Judged::Answer(cause) => {
                self.answered_well(step, kept);
                self.talk.said += response.said();
                if self.is_steered() {
                    return self.sample(step, spec, kept, 1);
                }
                self.judge_speaker(step, spec, kept, cause);
            }
            Judged::None(empty) => {
                let (failure, nudge, shown) = (empty.failure(), empty.nudge(), response.has_shown());
                let (said, cause) = (response.messages().to_vec(), Some(empty.cause()));
                self.failed(step, spec, kept, Failed { failure, attempt, shown, said, cause, nudge });
            }
        }
    }

    pub(super) fn heard(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut Kept,
        effect: EffectId,
        chunks: Vec<Chunk>,
    ) {
        let Phase::Sampling { effect: own, response, held, .. } = &mut self.phase else { return };
        match held {
            _ if *own != effect => (),
            Some(held) => held.chunks.extend(chunks),
            None => {
                let from = response.said().len();
                response.take(step, &self.tools, &mut self.scheduler, chunks);
                self.said_more(step, spec, kept, from);
            }
        }
    }
}
