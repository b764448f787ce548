//! State of a turn that all its phases share.

use std::sync::Arc;

use super::{endings::Cause, steering::Steering};
use crate::turn::{checks::loop_detection::LoopWatch, model::router::Router, servers::open_samplings::ServerSamplings};
use crate::{
    context::RetryAdvice,
    record::Step,
    routing::failure::AttemptCounts,
    scheduler::{CallContext, CancelReason, Scheduler, Toolbox},
    session_tools::delegate::Composition,
    step::Effect,
};
use castor_base::{
    content::PromptContent, file_prompt::Expansion, ids::EffectId, limits::Limits, model::ModelRequest,
    server_offer::ServerQuery,
};

#[derive(Debug)]
pub struct TurnState {
    /// The model that is asked now.
    pub model: Arc<str>,
    pub(super) router: Router,
    pub attempts: Attempts,
    pub draft: RequestDraft,
    pub scheduler: Scheduler,
    /// Requests of servers to a model.
    pub(super) samplings: ServerSamplings,
    /// The tools as the current request described them to the model.
    pub tools: Toolbox,
    pub transcript: TurnTranscript,
    /// Messages of the user in mid-turn.
    pub(super) steering: Steering,
    pub(super) loops: LoopWatch,
    /// The recovery of a sub-agent that ran into a limit.
    pub recovery: Option<Recovery>,
    /// The cause that ends the turn where nothing else comes up.
    pub ending: Cause,
}

/// The model's attempts in this turn so far.
#[derive(Debug, Default)]
pub struct Attempts {
    pub counts: AttemptCounts,
    /// The model has one attempt in this turn.
    pub is_single: bool,
    pub retry_advice: Option<RetryAdvice>,
    pub renewal: Renewal,
}

/// The state of the renewal of a credential that is refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Renewal {
    #[default]
    Nothing,
    /// It was read again, and was another one.
    Reread,
    /// The user was asked, and the request was made once more.
    Asked,
}

/// The request that is being made.
#[derive(Debug, Default)]
pub struct RequestDraft {
    /// The number of samples, further attempts aside.
    pub n_samples: u32,
    /// The number of this sample's attempt, from 1.
    pub attempt: u32,
    /// The reason for the choice of this model.
    pub why: String,
    pub request: Option<ModelRequest>,
    /// No model is asked again how to make it shorter.
    pub is_compressed: bool,
}

/// The texts of a turn as a whole; hooks read them.
#[derive(Debug, Default)]
pub struct TurnTranscript {
    /// The prompt, as long as its hooks have not heard it. Where the turn is cancelled by then, it joins no history: what they
    /// would have changed of it is not known.
    pub unheard: Option<Box<PromptContent>>,
    /// The expansion that the prompt stands for, as long as it is not filled in.
    pub expansion: Option<Box<Expansion>>,
    /// The prompt's text.
    pub prompt_text: String,
    /// The part of the prompt that the user typed: nothing that was piped, or that a server made.
    pub typed_text: String,
    /// The agent's, so far.
    pub answer_text: String,
    /// A hook did not let the agent stop.
    pub is_sent_back: bool,
}

/// The one turn that follows the end of a run, so that what was found is not lost.
#[derive(Clone, Debug, PartialEq)]
pub struct Recovery {
    /// The cause of the run's end.
    pub cause: Cause,
    /// Its requests and time of work may reach so far, in seconds.
    pub until: u64,
    pub is_asked: bool,
}

impl TurnState {
    /// The limits of the turn, in the recovery of a run as well.
    pub fn granted(&self, limits: Limits) -> Limits {
        let Some(it) = &self.recovery else { return limits };
        let mut res = limits;
        (res.turn.requests, res.turn.seconds) = (None, Some(it.until));
        res
    }

    pub(super) fn new(model: Arc<str>, router: Router, tools: Toolbox, prompt_text: String) -> Self {
        Self {
            model,
            router,
            attempts: Attempts::default(),
            draft: RequestDraft::default(),
            scheduler: Scheduler::default(),
            samplings: ServerSamplings::default(),
            tools,
            transcript: TurnTranscript { prompt_text, ..TurnTranscript::default() },
            steering: Steering::default(),
            loops: LoopWatch::default(),
            recovery: None,
            ending: Cause::Completed,
        }
    }

    /// The agents that it runs in place of asking a model.
    pub fn composition(&self) -> Option<&Composition> {
        self.tools.task.as_ref()?.composition()
    }

    /// The calls, and what they are made with.
    pub fn calls<'a, 's>(&'a mut self, step: &'a mut Step<'s>) -> (&'a mut Scheduler, CallContext<'a, 's>) {
        (&mut self.scheduler, CallContext { step, tools: &self.tools })
    }

    /// A server is asked for a prompt or a resource; meanwhile it may ask, too.
    pub fn ask_server(&mut self, step: &mut Step<'_>, query: &ServerQuery) -> EffectId {
        let effect = step.start_effect(Effect::AskServer(Box::new(query.clone())));
        self.scheduler.begin_query(effect, &query.server);
        effect
    }

    /// The model's answer does not count, nor do its calls.
    pub fn drop_calls(&mut self, step: &mut Step<'_>, why: CancelReason) {
        self.samplings.leave(step);
        self.scheduler.cancel(step, why);
        self.scheduler.clear();
    }
}
