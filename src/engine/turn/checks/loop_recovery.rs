//! Loop recovery: a nudge to the model first, then a question to the user.

use serde_json::Value;

use crate::turn::{
    checks::loop_detection::{Loop, LoopWatch, Loops},
    endings::Cause,
    flow::{Flow, Phase, Station},
    messages::{ModelNote, tell_model},
    pseudo_call::{PseudoCall, PseudoCallKind},
    spec::TurnContext,
    state::TurnState,
};
use crate::{
    record::{Record, Step},
    step::Input,
};
use castor_base::{
    history::{Role, TurnPart},
    log::Answer,
    question::{Choice, Field, FieldKind, Form},
};

/// What the call goes by that shows a loop.
pub const LOOP_DETECTED: &str = "loop_detected";
const LOOP: PseudoCallKind = PseudoCallKind { name: LOOP_DETECTED, error: "stopped" };
/// The field of the question, and the answer that lets the model go on. Any other one stops it.
const FIELD: &str = "loop_detected";
const GO_ON: &str = "retry_once";
const STOP: &str = "stop";

/// The user has it before them.
#[derive(Debug)]
struct LoopQuestion {
    asked: PseudoCall,
    why: String,
}

/// The calls have ended: the model is asked again, unless it repeats itself to the letter.
pub(in crate::turn) fn check_repetition(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>) -> Flow {
    let watches = cx.spec.bounds.watches_loops;
    let found = if watches { record_last_calls(&mut turn.loops.repeated, cx.step.record) } else { None };
    found.map_or(Flow::Next, |it| stop_loop(turn, cx, it))
}

pub(in crate::turn) fn stop_loop(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, found: Loop) -> Flow {
    turn.loops.strikes += 1;
    if turn.loops.strikes == 1 {
        tell_model(cx.step, nudge(&found));
        return Flow::Go(Station::Limits);
    }
    if !cx.spec.toolbox.interactive {
        return Flow::End(Cause::Loop(found.why));
    }
    let why = found.why;
    let asked = LOOP.ask_how(cx.step, "The model repeats itself".to_owned(), form(&why));
    Flow::wait(LoopQuestion { asked, why })
}

impl Phase for LoopQuestion {
    fn step(self: Box<Self>, turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, input: Input) -> Flow {
        match input {
            Input::Answered { question, answer } if self.asked.is_about(question) => {
                self.take_answer(turn, cx.step, &answer)
            }
            other => Flow::Unrelated(self, other),
        }
    }

    fn leave(&mut self, step: &mut Step<'_>) {
        self.asked.withdraw(step, "The question was withdrawn with its turn.");
    }
}

impl LoopQuestion {
    /// The user's word; what is none stops.
    fn take_answer(self, turn: &mut TurnState, step: &mut Step<'_>, answer: &Answer) -> Flow {
        let chosen = match answer {
            Answer::Accepted { content } => content.get(FIELD).and_then(Value::as_str),
            _ => None,
        };
        match (answer, chosen) {
            (Answer::Cancelled, _) => {
                self.asked.end(step, "The question was withdrawn.", true);
                Flow::End(Cause::Cancelled)
            }
            (_, Some(GO_ON)) => {
                self.asked.end(step, "Going on.", false);
                turn.loops = LoopWatch::from(turn.draft.n_samples);
                Flow::Go(Station::Limits)
            }
            _ => {
                self.asked.end(step, "Stopped.", true);
                Flow::End(Cause::Loop(self.why))
            }
        }
    }
}

/// The last calls of the record, with their results.
fn record_last_calls(loops: &mut Loops, record: &Record) -> Option<Loop> {
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
        res = loops.record_call(&call.name, &call.args, &result.content).or(res);
    }
    res
}

fn nudge(it: &Loop) -> ModelNote {
    const ADVICE: &str = "Stop and look at what has been learned so far. Do not repeat a call whose result is known; try \
                          another way, or tell the user what stands in the way.";
    match it.is_quoted {
        true => ModelNote::from("This may be a loop: ").and_quote(&*it.why).and(format!("\n{ADVICE}")),
        false => format!("This may be a loop: {}. {ADVICE}", it.why).into(),
    }
}

fn form(why: &str) -> Form {
    let choice =
        |value: &str, title: &str| Choice { value: value.to_owned(), title: title.to_owned(), description: None };
    let options = vec![choice(GO_ON, "Let it continue"), choice(STOP, "Stop here")];
    let kind = FieldKind::Choice { options };
    let field = Field { name: FIELD.to_owned(), title: None, description: None, required: true, default: None, kind };
    Form { message: format!("The model repeats itself: {why}. Let it continue?"), fields: vec![field] }
}
