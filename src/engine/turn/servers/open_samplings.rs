//! Requests of MCP servers to a model that are under way in a turn, and how they end.

use std::collections::BTreeSet;

use crate::turn::{
    pseudo_call::{PseudoCall, PseudoCallKind},
    utility_call::UtilityCall,
};
use crate::{
    record::Step,
    scheduler::elicitation::{plain_name, reply},
};
use castor_base::{
    elicitation::{Reply, SampledAnswer},
    ids::{CallId, EffectId, ElicitationId},
    sampling::SamplingRequest,
    text,
};

/// What the user is shown of a request, and of an answer, in bytes.
const MAX_SHOWN: usize = 8_000;

pub(in crate::turn) const CALL: PseudoCallKind = PseudoCallKind { name: "mcp_sampling", error: "sampling_refused" };
const OVER: &str = "the call that it was for is over";

/// All of one turn.
#[derive(Debug, Default)]
pub(in crate::turn) struct ServerSamplings {
    pub(in crate::turn) open: Vec<OpenSampling>,
    /// Servers that the user said no to: they do not ask again in this turn.
    pub(in crate::turn) rejected: BTreeSet<String>,
    pub(in crate::turn) n_told: usize,
}

#[derive(Debug)]
pub(in crate::turn) struct OpenSampling {
    pub(in crate::turn) id: ElicitationId,
    pub(in crate::turn) server: String,
    /// What it may be for: it ends with the last of them.
    pub(in crate::turn) calls: Vec<EffectId>,
    pub(in crate::turn) request: Box<SamplingRequest>,
    pub(in crate::turn) stage: SamplingStage,
}

#[derive(Debug)]
pub(in crate::turn) enum SamplingStage {
    /// The user has the question.
    Asking(PseudoCall),
    /// A model has it.
    Answering {
        call: CallId,
        utility: Box<UtilityCall>,
    },
    Done,
}

impl ServerSamplings {
    /// Nobody waits for any of them any more.
    pub(in crate::turn) fn leave(&mut self, step: &mut Step<'_>) {
        for it in std::mem::take(&mut self.open) {
            it.end_with_call(step);
        }
    }

    /// A call of a server is over.
    pub(in crate::turn) fn end_of_call(&mut self, step: &mut Step<'_>, effect: EffectId) {
        self.open.iter_mut().for_each(|it| it.calls.retain(|it| *it != effect));
        for it in self.open.extract_if(.., |it| it.calls.is_empty()) {
            it.end_with_call(step);
        }
    }
}

impl OpenSampling {
    pub(in crate::turn) fn title(&self) -> String {
        format!("MCP server \"{}\" asks a model", plain_name(&self.server))
    }

    pub(in crate::turn) fn finish(self, step: &mut Step<'_>, said: Result<String, String>) {
        let SamplingStage::Answering { call, utility } = self.stage else { return };
        match said {
            Ok(said) => {
                let (model, is_cut) = (utility.model().to_owned(), utility.is_cut());
                CALL.end(step, &call, &format!("{model} answered:\n\n{}", cut(&said)), false);
                reply(step, self.id, Reply::Sampled(SampledAnswer { text: said, model, is_cut }));
            }
            Err(why) => {
                CALL.end(step, &call, &format!("There is no answer: {why}."), true);
                reply(step, self.id, Reply::Refused(format!("the model did not answer: {why}")));
            }
        }
    }

    /// What was spent by now is told.
    pub(in crate::turn) fn abandon(self, step: &mut Step<'_>, why: &str) {
        match self.stage {
            SamplingStage::Asking(it) => it.withdraw(step, why),
            SamplingStage::Answering { call, mut utility } => {
                utility.abandon(step);
                CALL.end(step, &call, why, true);
            }
            SamplingStage::Done => (),
        }
    }

    fn end_with_call(self, step: &mut Step<'_>) {
        reply(step, self.id, Reply::Cancelled(Some(OVER.to_owned())));
        self.abandon(step, "The call is over.");
    }
}

pub(in crate::turn) fn cut(it: &str) -> String {
    let shown = text::head(it, MAX_SHOWN);
    match it.len() - shown.len() {
        0 => shown.to_owned(),
        n => format!("{shown}\n… and {n} bytes more"),
    }
}
