//! State of a turn that all its phases share.

use std::sync::Arc;

use super::{
    endings::Cause, loop_detection::LoopWatch, open_samplings::ServerSamplings, router::Router, steering::Steering,
};
use crate::{
    base::{
        content::PromptContent, file_prompt::Expansion, ids::EffectId, limits::Limits, model::ModelRequest,
        server_offer::ServerQuery,
    },
    engine::{
        context::RetryAdvice,
        record::Step,
        routing::failure::AttemptCounts,
        scheduler::{CallContext, CancelReason, Scheduler, Toolbox, delegate::Composition},
        step::Effect,
    },
};

#[derive(Debug)]
pub(super) struct TurnState {
    /// The model that is asked now.
    pub model: Arc<str>,
    pub router: Router,
    pub attempts: Attempts,
    pub draft: RequestDraft,
    pub scheduler: Scheduler,
    /// What servers ask of a model.
    pub samplings: ServerSamplings,
    /// As the current request told the model of them.
    pub tools: Toolbox,
    pub transcript: TurnTranscript,
    /// What the user said meanwhile.
    pub steering: Steering,
    pub loops: LoopWatch,
    /// Of a sub-agent that ran into a limit.
    pub recovery: Option<Recovery>,
    /// What the turn ends with where nothing else comes up.
    pub ending: Cause,
}

/// How the model did in this turn so far.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    pub counts: AttemptCounts,
    /// The model has one attempt in this turn.
    pub is_single: bool,
    pub retry_advice: Option<RetryAdvice>,
    pub renewal: Renewal,
}

/// What was done so far about a credential that is refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Renewal {
    #[default]
    Nothing,
    /// It was read again, and was another one.
    Reread,
    /// The user was asked, and the request was made once more.
    Asked,
}

/// The request that is being made.
#[derive(Debug, Default)]
pub(super) struct RequestDraft {
    /// How often the model was asked, attempts aside.
    pub n_samples: u32,
    /// Of this sample, from 1.
    pub attempt: u32,
    /// Why this model is asked.
    pub why: String,
    pub request: Option<ModelRequest>,
    /// No model is asked again how to make it shorter.
    pub is_compressed: bool,
}

/// What is said in a turn as a whole; hooks are told of it.
#[derive(Debug, Default)]
pub(super) struct TurnTranscript {
    /// The prompt, as long as its hooks have not heard it. Where the turn is cancelled by then, it joins no history: what they
    /// would have changed of it is not known.
    pub unheard: Option<Box<PromptContent>>,
    /// What the prompt stands for, as long as it is not filled in.
    pub expansion: Option<Box<Expansion>>,
    /// The prompt's text.
    pub prompt_text: String,
    /// What of it the user typed: nothing that was piped, or that a server made.
    pub typed_text: String,
    /// The agent's, so far.
    pub answer_text: String,
    /// A hook did not let the agent stop.
    pub is_sent_back: bool,
}

/// The one turn that follows the end of a run, so that what was found is not lost.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Recovery {
    /// What ended the run.
    pub cause: Cause,
    /// Its requests and time of work may reach so far, in seconds.
    pub until: u64,
    pub is_asked: bool,
}

impl TurnState {
    /// How far it may go, in the recovery of a run as well.
    pub fn granted(&self, limits: Limits) -> Limits {
        let Some(it) = &self.recovery else { return limits };
        let mut res = limits;
        (res.turn.requests, res.turn.seconds) = (None, Some(it.until));
        res
    }

    pub fn new(model: Arc<str>, router: Router, tools: Toolbox, prompt_text: String) -> Self {
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
