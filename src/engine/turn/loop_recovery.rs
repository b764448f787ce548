//! Loop recovery: a nudge to the model first, then a question to the user.

use serde_json::Value;

use super::{
    Phase, SessionScratch, Spec, Turn,
    endings::Cause,
    loop_detection::{Loop, Loops},
    pseudo_call::PseudoCallKind,
};
use crate::{
    base::{
        content::Part,
        event::{EventKind, Speaker},
        history::{Role, TurnPart},
        ids::{CallId, MessageId, QuestionId},
        log::Answer,
        question::{Choice, Field, FieldKind, Form},
    },
    engine::{
        record::{Record, Step},
        step::{Effect, QuestionTopic, UserQuestion},
    },
};

const ASIDE: PseudoCallKind = PseudoCallKind { name: "loop_detected", error: "stopped" };
/// The field of the question, and the answer that lets the model go on. Any other one stops it.
const FIELD: &str = "loop_detected";
const GO_ON: &str = "retry_once";
const STOP: &str = "stop";

/// What was seen in this turn, and how often it was too much.
#[derive(Debug, Default)]
pub(super) struct LoopRecovery {
    loops: Loops,
    strikes: u32,
    /// Of questions to a model about it.
    pub(super) pace: super::model_checks::NextRequest,
}

/// The user has it before them.
#[derive(Debug)]
pub(super) struct LoopQuestion {
    pub question: QuestionId,
    call: CallId,
    why: String,
}

impl Turn {
    /// The calls have ended: the model is asked again, unless it goes round in circles.
    pub(super) fn after_calls(&mut self, step: &mut Step<'_>, spec: &Spec, kept: &mut SessionScratch) {
        let found = if spec.bounds.watches_loops { self.loop_recovery.ended(step.record) } else { None };
        match found {
            None => self.judge_progress(step, spec, kept),
            Some(it) => self.circled(step, spec, kept, it),
        }
    }

    /// The model said more. Where it says the same again and again, the answer is broken off: the model would not stop.
    pub(super) fn said_more(&mut self, step: &mut Step<'_>, spec: &Spec, kept: &mut SessionScratch, from: usize) {
        let Phase::Sampling { effect, response, .. } = &mut self.phase else { return };
        let delta = response.text().get(from..).unwrap_or_default();
        let Some(found) = self.loop_recovery.loops.record_text(delta).filter(|_| spec.bounds.watches_loops) else {
            return;
        };
        step.start_effect(Effect::Abort { effect: *effect });
        response.close(step);
        self.scheduler.cancel(step, "the model repeats itself");
        self.scheduler.clear();
        self.circled(step, spec, kept, found);
    }

    pub(super) fn circled(&mut self, step: &mut Step<'_>, spec: &Spec, kept: &mut SessionScratch, Loop { why }: Loop) {
        self.loop_recovery.strikes += 1;
        if self.loop_recovery.strikes == 1 {
            let message_id = MessageId::from(step.fresh_id("m"));
            let content = vec![Part::text(nudge(&why))];
            step.emit_event(EventKind::Message { role: Speaker::Developer, message_id, content, cuts: Vec::new() });
            return self.sample(step, spec, kept, 1);
        }
        if !spec.toolbox.interactive {
            return self.finish(step, &Cause::Loop(why));
        }
        let call = ASIDE.announce(step, "The model goes round in circles".to_owned());
        let question = step.new_question_id();
        let about = QuestionTopic::Fallback { call: call.clone(), form: form(&why).into() };
        step.start_effect(Effect::AskUser(Box::new(UserQuestion { id: question, about })));
        self.phase = Phase::AskingLoop(Box::new(LoopQuestion { question, call, why }));
    }

    /// The user's word; what is none stops.
    pub(super) fn on_loop_answer(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut SessionScratch,
        answer: &Answer,
    ) {
        let Phase::AskingLoop(asked) = std::mem::replace(&mut self.phase, Phase::Finished) else { return };
        let chosen = match answer {
            Answer::Accepted { content } => content.get(FIELD).and_then(Value::as_str),
            _ => None,
        };
        match (answer, chosen) {
            (Answer::Cancelled, _) => {
                ASIDE.end(step, &asked.call, "The question was withdrawn.", true);
                self.finish(step, &Cause::Cancelled);
            }
            (_, Some(GO_ON)) => {
                ASIDE.end(step, &asked.call, "Going on.", false);
                self.loop_recovery = LoopRecovery::from(self.n_samples);
                self.sample(step, spec, kept, 1);
            }
            _ => {
                ASIDE.end(step, &asked.call, "Stopped.", true);
                self.finish(step, &Cause::Loop(asked.why));
            }
        }
    }
}

impl LoopQuestion {
    pub fn withdraw(&self, step: &mut Step<'_>) {
        step.start_effect(Effect::WithdrawQuestion { question: self.question });
        ASIDE.end(step, &self.call, "The question was withdrawn with its turn.", true);
    }
}

impl LoopRecovery {
    /// Of what comes after this request of the turn: what was seen before says nothing of it.
    pub(super) fn from(n_samples: u32) -> Self {
        Self { pace: super::model_checks::NextRequest::from(n_samples), ..Self::default() }
    }

    /// The last calls of the record, with their results.
    fn ended(&mut self, record: &Record) -> Option<Loop> {
        let mut last = record.turns().iter().rev().skip_while(|it| it.role() == Role::User);
        let results = last.next().filter(|it| it.role() == Role::Tool)?;
        let calls = last.next()?;
        let mut res = None;
        for part in calls.parts() {
            let TurnPart::Call { call, .. } = part else { continue };
            let result = results.parts().iter().find_map(|it| match it {
                TurnPart::Result(it) if it.id == call.id => Some(it),
                _ => None,
            });
            let Some(result) = result else { continue };
            res = self.loops.record_call(&call.name, &call.args, &result.content).or(res);
        }
        res
    }
}

fn nudge(why: &str) -> String {
    format!(
        "This may be a loop: {why}. Stop and look at what has been learned so far. Do not repeat a call whose result is \
         known; try another way, or tell the user what stands in the way."
    )
}

fn form(why: &str) -> Form {
    let choice =
        |value: &str, title: &str| Choice { value: value.to_owned(), title: title.to_owned(), description: None };
    let options = vec![choice(GO_ON, "Let it go on"), choice(STOP, "Stop here")];
    let kind = FieldKind::Choice { options };
    let field = Field { name: FIELD.to_owned(), title: None, description: None, required: true, default: None, kind };
    Form { message: format!("The model goes round in circles: {why}. Let it go on?"), fields: vec![field] }
}
