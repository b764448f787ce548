//! Utility calls: castor's own questions to a model, outside the conversation. The turn goes on whatever they return.

use std::sync::Arc;

use thiserror::Error;

use super::{spec::TurnContext, spent::has_spent_all};
use crate::turn::model::{leaving_out, windows};
use crate::{
    context::tokens,
    record::Step,
    routing::{
        self,
        failure_class::{FailureClass, classify},
        health::Availability,
        utility_models::UtilityModel,
    },
    step::{Effect, Input},
};
use castor_base::{
    content::Part,
    event::EventKind,
    history::{Role, Turn, TurnPart},
    ids::EffectId,
    model::{Chunk, Failure, Finish, ModelParams, ModelRequest, Purpose, Usage},
    model_table::Parameter,
    price::Price,
};

/// The question, in castor's words; foreign text in it is marked. Only castor sees the answer.
#[derive(Clone, Debug)]
pub struct UtilityRequest {
    pub system: Arc<str>,
    pub contents: Vec<Arc<Turn>>,
    /// What the question needs; settings may say otherwise.
    pub params: ModelParams,
    pub limits: UtilityLimits,
}

/// How much a question may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UtilityLimits {
    /// Of the answer, by the rule of thumb.
    pub tokens: u64,
    pub ms: u64,
}

/// A question without an answer yet.
#[derive(Debug)]
pub struct UtilityCall {
    purpose: Purpose,
    model: String,
    /// How much the model reads at once, in tokens.
    window: u64,
    /// The request, in tokens by the rule of thumb.
    size: u64,
    price: Option<Price>,
    limits: UtilityLimits,
    /// To be asked again without what the model refuses.
    request: Box<ModelRequest>,
    effect: EffectId,
    timer: EffectId,
    said: String,
    finish: Option<Finish>,
    usage: Option<Usage>,
}

/// What an input came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UtilityProgress {
    /// It is about something else.
    NotMine,
    Open,
    /// The answer, whole; or why there is none.
    Over(Result<String, UtilityError>),
}

/// Why a question got no answer.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum UtilityError {
    #[error("a limit of yours is used up")]
    Spent,
    #[error("{model} is known not to answer now ({cause})")]
    Unavailable { model: String, cause: &'static str },
    #[error("about {size} tokens are more than the {window} that {model} reads at once")]
    TooLong { model: String, size: u64, window: u64 },
    #[error("{model} said more than {limit} tokens")]
    AnswerTooLong { model: String, limit: u64 },
    #[error("{model} did not answer within {seconds} s")]
    TimedOut { model: String, seconds: u64 },
    #[error("{model} said nothing")]
    Empty { model: String },
    /// A part of an answer may say the opposite of the whole.
    #[error("the answer of {model} broke off")]
    BrokeOff { model: String },
    #[error("{model} failed: {message}")]
    Failed { model: String, message: Box<str> },
}

/// One turn of a question, or of an answer that it is about.
pub fn text_turn(role: Role, text: impl Into<String>) -> Arc<Turn> {
    let mut res = Turn::new(role);
    res.parts_mut().push(TurnPart::Content(Part::text(text)));
    Arc::new(res)
}

impl UtilityCall {
    /// Asks once: the turn can do without the answer.
    ///
    /// # Errors
    /// Where it is clear that no answer would come.
    pub fn ask(cx: &mut TurnContext<'_, '_>, helper: UtilityModel, wish: UtilityRequest) -> Result<Self, UtilityError> {
        let UtilityModel { purpose, model, params } = helper;
        let UtilityRequest { system, contents, params: needed, limits } = wish;
        if has_spent_all(cx) {
            return Err(UtilityError::Spent);
        }
        if let Availability::Unavailable(cause) = cx.scratch.health.availability(&model, cx.step.now.unix_ms) {
            return Err(UtilityError::Unavailable { model, cause: cause.as_str() });
        }
        let models = cx.spec.aliases.models();
        let thinking = needed.thinking.filter(|_| routing::model_limits::thinks(&model, models));
        let mut params = fill(params, ModelParams { thinking, ..needed });
        models.fit(&model, &mut params);
        let mut request = ModelRequest {
            model: model.as_str().into(),
            system,
            contents,
            tools: [].into(),
            params,
            traits: cx.spec.aliases.models().traits(&model),
        };
        let window = windows::window(cx.step.record, cx.spec, &model);
        let price = cx.spec.prices.of(&model, &cx.spec.aliases);
        let size = tokens::of_request(&request);
        let real = cx.step.record.token_scale().model_tokens(&model, size);
        if real > window {
            return Err(UtilityError::TooLong { model, size: real, window });
        }
        leaving_out::drop_refused(&mut request, cx.step.record, cx.spec);
        let again = Box::new(request.clone());
        let effect = cx.step.start_effect(Effect::Generate { purpose, request });
        let timer = cx.step.start_effect(Effect::SetTimer { at_ms: cx.step.now.unix_ms.saturating_add(limits.ms) });
        let (said, finish, usage) = (String::new(), None, None);
        Ok(Self { purpose, model, window, size, price, limits, request: again, effect, timer, said, finish, usage })
    }

    pub fn on_input(&mut self, cx: &mut TurnContext<'_, '_>, input: &Input) -> UtilityProgress {
        match input {
            Input::Chunks { effect, chunks } if *effect == self.effect => {
                chunks.iter().for_each(|it| self.take(it));
                if tokens::of_text(&self.said) <= self.limits.tokens {
                    return UtilityProgress::Open;
                }
                self.abandon(cx.step);
                UtilityProgress::Over(Err(UtilityError::AnswerTooLong {
                    model: self.model.clone(),
                    limit: self.limits.tokens,
                }))
            }
            Input::Generated { effect, result } if *effect == self.effect => {
                if let Some(request) = result.as_ref().err().and_then(|it| self.reduce(cx.step, it)) {
                    self.effect = cx.step.start_effect(Effect::Generate { purpose: self.purpose, request });
                    return UtilityProgress::Open;
                }
                cx.step.start_effect(Effect::Abort { effect: self.timer });
                self.bill(cx.step);
                UtilityProgress::Over(match result {
                    Ok(()) => self.answer(),
                    Err(failure) => {
                        if let Some(it) = routing::failure::outage(failure, cx.step.now.unix_ms) {
                            cx.mark_out(&self.model, it);
                        }
                        windows::learn_window(cx.step, &self.model, self.size, failure);
                        Err(UtilityError::Failed {
                            model: self.model.clone(),
                            message: failure.message.as_str().into(),
                        })
                    }
                })
            }
            Input::TimerFired { effect } if *effect == self.timer => {
                cx.step.start_effect(Effect::Abort { effect: self.effect });
                self.bill(cx.step);
                UtilityProgress::Over(Err(UtilityError::TimedOut {
                    model: self.model.clone(),
                    seconds: self.limits.ms / 1_000,
                }))
            }
            _ => UtilityProgress::NotMine,
        }
    }

    pub fn model(&self) -> &str {
        &self.model
    }

    /// Tells whether the answer ends where its tokens did.
    pub fn is_cut(&self) -> bool {
        self.finish == Some(Finish::MaxTokens)
    }

    /// The answer is no longer needed; its cost so far is reported.
    pub fn abandon(&mut self, step: &mut Step<'_>) {
        step.start_effect(Effect::Abort { effect: self.effect });
        step.start_effect(Effect::Abort { effect: self.timer });
        self.bill(step);
    }

    /// The same question without a parameter that is refused, each once. A shape goes where nothing is named.
    fn reduce(&mut self, step: &mut Step<'_>, failure: &Failure) -> Option<ModelRequest> {
        let named = leaving_out::find_parameter(failure);
        let is_refused = classify(failure).class == FailureClass::BadRequest;
        let shape = (is_refused && self.request.params.schema.is_some()).then_some(Parameter::Schema);
        let named = named.filter(|(it, _)| !self.request.traits.refused.has(*it));
        let parameter = named.map(|(it, _)| it).or(shape)?;
        named.into_iter().for_each(|it| leaving_out::leave_parameter_out(step, &self.model, it));
        self.request.traits.refused = self.request.traits.refused.with(parameter);
        let refused = self.request.traits.refused;
        self.request.params.leave_out(refused);
        Some((*self.request).clone())
    }

    fn take(&mut self, chunk: &Chunk) {
        match chunk {
            Chunk::Text { text, .. } => self.said += text,
            Chunk::Usage(usage) => self.usage = Some(*usage),
            Chunk::Finish(finish) => self.finish = Some(finish.clone()),
            // Nobody reads thoughts of this; there are no tools to call.
            Chunk::Thought { .. } | Chunk::Call { .. } | Chunk::Media { .. } | Chunk::Report(_) => (),
        }
    }

    fn bill(&mut self, step: &mut Step<'_>) {
        if let Some(usage) = self.usage.take().or_else(|| self.estimate()) {
            let cost = self.price.map(|it| it.cost(&usage));
            let session_cost = step.record.spent.cost_with(cost);
            let (model, size, purpose) = (self.model.clone(), self.window, self.purpose);
            step.emit_event(EventKind::Usage { model, usage, size, purpose, cost, session_cost });
        }
    }

    /// By the rule of thumb, where the budget of a server hangs on it and the provider does not say.
    fn estimate(&self) -> Option<Usage> {
        let output = tokens::of_text(&self.said);
        let all = Usage { input: self.size, output, total: self.size.saturating_add(output), ..Usage::default() };
        (self.purpose == Purpose::McpSampling).then_some(all)
    }

    fn answer(&mut self) -> Result<String, UtilityError> {
        let model = || self.model.clone();
        match &self.finish {
            Some(Finish::Stop) if self.said.trim().is_empty() => Err(UtilityError::Empty { model: model() }),
            Some(Finish::Stop) => Ok(std::mem::take(&mut self.said)),
            // A server knows what to make of it.
            Some(Finish::MaxTokens) if self.purpose == Purpose::McpSampling && !self.said.is_empty() => {
                Ok(std::mem::take(&mut self.said))
            }
            _ => Err(UtilityError::BrokeOff { model: model() }),
        }
    }
}

fn fill(params: ModelParams, needed: ModelParams) -> ModelParams {
    ModelParams {
        temperature: params.temperature.or(needed.temperature),
        top_p: params.top_p.or(needed.top_p),
        top_k: params.top_k.or(needed.top_k),
        max_output_tokens: params.max_output_tokens.or(needed.max_output_tokens),
        thinking: params.thinking.or(needed.thinking),
        include_thoughts: false,
        stop: if params.stop.is_empty() { needed.stop } else { params.stop },
        schema: needed.schema,
        searches_web: false,
    }
}
