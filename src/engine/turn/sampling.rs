//! A model is asked, and what of its answer is heard.

use super::{
    Attempt, MAX_SAMPLES, Phase, SessionScratch, Spec, Turn, compressing,
    endings::Cause,
    failure_recovery::FailedAttempt,
    request_builder::{self, MissingRequest},
    response::{AnswerKind, Response},
};
use crate::{
    base::{
        ids::EffectId,
        log::Fact,
        model::{Chunk, Failure, ModelRequest, Purpose},
    },
    engine::{context::tokens, record::Step, scheduler::CallContext, step::Effect},
};

impl Turn {
    pub(super) fn sample(&mut self, step: &mut Step<'_>, spec: &Spec, kept: &mut SessionScratch, attempt: u32) {
        if attempt == 1 && self.n_samples >= MAX_SAMPLES {
            return self.finish(step, &Cause::MaxSamples(self.n_samples));
        }
        if let Some(cause) = self.exhausted_limit(step.record, spec).filter(|_| attempt == 1) {
            return self.finish(step, &cause);
        }
        self.n_samples += u32::from(attempt == 1);
        kept.background_results.tell(step);
        self.take_steering(step);
        self.tools = spec.toolbox.in_mode(step.record.mode);
        self.ask_model(step, spec, kept, attempt, true);
    }

    /// `compresses`: models may be asked first how to make it shorter.
    pub(super) fn ask_model(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut SessionScratch,
        attempt: u32,
        compresses: bool,
    ) {
        let why = self.select_model(step, &spec.aliases);
        match self.build_request(step, spec, &self.model, compresses) {
            Ok(request) if self.is_open(step.record, spec) => {
                self.find_model(step, spec, kept, attempt, &request.contents);
            }
            Ok(request) => self.run_request_hooks(step, spec, kept, Attempt { attempt, why }, request),
            Err(MissingRequest::NeedsCompression { n_turns, size }) => {
                let old =
                    compressing::OldContext { goal: compressing::CompressionGoal::Request { attempt }, n_turns, size };
                self.compress(step, spec, kept, old);
            }
            Err(MissingRequest::NeedsDistilling(call)) => self.distill(step, spec, kept, call, attempt),
            Err(MissingRequest::Ended(cause)) => {
                request_builder::retract(step, &cause);
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
        let (model, held) = (request.model.clone(), Self::buffer_for_hooks(step, spec, &request));
        let tokens = tokens::of_request(&request);
        step.log(Fact::Attempt { model: model.to_string(), attempt, tokens, why });
        let effect = step.start_effect(Effect::Generate { purpose: Purpose::Agent, request });
        self.phase =
            Phase::Sampling { effect, attempt, response: Response::new(model, spec, step.record), buffered: held };
    }

    pub(super) fn on_generated(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut SessionScratch,
        effect: EffectId,
        result: Result<(), Failure>,
    ) {
        if !matches!(self.phase, Phase::Sampling { effect: own, .. } if own == effect) {
            return;
        }
        let phase = std::mem::replace(&mut self.phase, Phase::RunningCalls);
        let Phase::Sampling { attempt, mut response, buffered: held, .. } = phase else { return };
        match (result, held) {
            (Err(failure), _) => {
                response.close(step);
                let (shown, said) = (response.has_shown(), response.messages().to_vec());
                self.on_attempt_failed(
                    step,
                    spec,
                    kept,
                    FailedAttempt { failure, attempt, shown, said, cause: None, nudge: None },
                );
            }
            (Ok(()), Some(held)) => self.run_answer_hooks(step, spec, kept, (response, attempt), held),
            (Ok(()), None) => self.on_model_answer(step, spec, kept, response, attempt),
        }
    }

    /// An answer is there, and shown: its calls are made, or it was the last one.
    pub(super) fn on_model_answer(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut SessionScratch,
        mut response: Response,
        attempt: u32,
    ) {
        response.close(step);
        if !self.scheduler.is_empty() {
            self.answered_well(step, kept);
            self.transcript.answer_text += response.text();
            if let Some(cause) = self.broke(step.record, spec) {
                return self.finish(step, &cause);
            }
            self.phase = Phase::RunningCalls;
            let standing = self.scheduler.advance(&mut CallContext { step, tools: &self.tools });
            return self.on_batch_status(step, spec, kept, standing);
        }
        match response.classify_answer(self.n_samples > 1) {
            AnswerKind::Answer(cause) => {
                self.answered_well(step, kept);
                self.transcript.answer_text += response.text();
                if self.is_steered() {
                    return self.sample(step, spec, kept, 1);
                }
                self.judge_speaker(step, spec, kept, cause);
            }
            AnswerKind::None(empty) => {
                let (failure, nudge, shown) = (empty.failure(), empty.nudge(), response.has_shown());
                let (said, cause) = (response.messages().to_vec(), Some(empty.cause()));
                self.on_attempt_failed(step, spec, kept, FailedAttempt { failure, attempt, shown, said, cause, nudge });
            }
        }
    }

    pub(super) fn on_chunks(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut SessionScratch,
        effect: EffectId,
        chunks: Vec<Chunk>,
    ) {
        let Phase::Sampling { effect: own, response, buffered: held, .. } = &mut self.phase else { return };
        match held {
            _ if *own != effect => (),
            Some(held) => held.chunks.extend(chunks),
            None => {
                let from = response.text().len();
                response.take_chunks(&mut CallContext { step, tools: &self.tools }, &mut self.scheduler, chunks);
                self.said_more(step, spec, kept, from);
            }
        }
    }
}
