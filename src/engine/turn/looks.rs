//! The question whether the user looked at what an agent wrote, so that a program may run outside the sandbox.

use serde_json::json;

use super::{
    flow::{Flow, Phase},
    pseudo_call::{PseudoCall, PseudoCallKind},
    spec::TurnContext,
    state::TurnState,
};
use crate::{
    base::{
        event::Location,
        ids::{CallId, EffectId},
        log::Answer,
        text,
        tool::{Display, ToolKind},
        unseen_files::{KeptInside, SeenBytes, UnseenFiles},
    },
    engine::{
        record::Step,
        step::{Confirmation, Effect, Input, QuestionTopic},
    },
};

const LOOK: PseudoCallKind = PseudoCallKind { name: "look_at_files", error: "not_looked_at" };
/// Longest name of a program, in characters.
const MAX_PROGRAM: usize = 200;

/// The files are being read.
#[derive(Debug)]
struct ReadingUnseen {
    effect: EffectId,
    program: String,
}

/// The user has them before them.
#[derive(Debug)]
struct LookQuestion {
    asked: PseudoCall,
    program: String,
    bytes: Vec<SeenBytes>,
}

/// The user looked, which is being written down.
#[derive(Debug)]
struct SavingLook {
    effect: EffectId,
    asked: PseudoCall,
    program: String,
}

/// One program after the other, each once in a session.
pub(super) fn ask_about_unseen(_: &mut TurnState, cx: &mut TurnContext<'_, '_>) -> Flow {
    ask_next(cx)
}

fn ask_next(cx: &mut TurnContext<'_, '_>) -> Flow {
    let next = cx.scratch.preamble.take_kept_inside();
    // Where nobody can be asked it stays inside, which was told.
    let Some(KeptInside { program, roots }) = next.filter(|_| cx.spec.toolbox.interactive) else { return Flow::Next };
    Flow::wait(ReadingUnseen { effect: cx.step.start_effect(Effect::ShowUnseen { roots }), program })
}

impl Phase for ReadingUnseen {
    fn step(self: Box<Self>, _: &mut TurnState, cx: &mut TurnContext<'_, '_>, input: Input) -> Flow {
        match input {
            // What cannot be shown whole is no question: its notice names the command.
            Input::UnseenShown { effect, shown } if effect == self.effect => match shown {
                Some(shown) => {
                    cx.scratch.preamble.note_look_question(&self.program);
                    Flow::wait(ask(cx.step, &self.program, shown))
                }
                None => ask_next(cx),
            },
            other => Flow::Unrelated(self, other),
        }
    }

    fn leave(&mut self, step: &mut Step<'_>) {
        step.start_effect(Effect::Abort { effect: self.effect });
    }
}

fn ask(step: &mut Step<'_>, program: &str, UnseenFiles { diffs, bytes }: UnseenFiles) -> LookQuestion {
    let program = text::first_line(program, MAX_PROGRAM);
    let title = format!("Let {program} run outside the sandbox, with what an agent wrote?");
    let question = |call: CallId| {
        QuestionTopic::Confirmation(Confirmation {
            call,
            tool: LOOK.name.into(),
            title: title.clone(),
            kind: ToolKind::Other,
            args: json!({}),
            locations: bytes.iter().map(|(path, _)| Location { path: path.clone(), line: None }).collect(),
            display: Some(Display::Diffs { files: diffs }),
            reason: Some(
                "Its settings say that it runs outside, with your rights. It reaches files that an agent wrote and nobody \
                 looked at. An approval says that you looked at these changes, and lets it out while nothing more is written \
                 there. A rejection keeps it in the sandbox for this session."
                    .to_owned(),
            ),
            session_grant: None,
            persistent_grant: None,
            offers_auto: false,
            is_editable: false,
        })
    };
    LookQuestion { asked: LOOK.ask_and_wait(step, title.clone(), question), program, bytes }
}

impl Phase for LookQuestion {
    fn step(self: Box<Self>, _: &mut TurnState, cx: &mut TurnContext<'_, '_>, input: Input) -> Flow {
        match input {
            Input::Answered { question, answer } if self.asked.is_about(question) => {
                let Self { asked, program, bytes } = *self;
                asked.resume(cx.step);
                if answer != Answer::AllowOnce {
                    asked.end(cx.step, &format!("{program} stays in the sandbox."), true);
                    return ask_next(cx);
                }
                let effect = cx.step.start_effect(Effect::LookAt { bytes });
                Flow::wait(SavingLook { effect, asked, program })
            }
            other => Flow::Unrelated(self, other),
        }
    }

    fn leave(&mut self, step: &mut Step<'_>) {
        self.asked.withdraw(step, "The turn ended before.");
    }
}

impl Phase for SavingLook {
    fn step(self: Box<Self>, _: &mut TurnState, cx: &mut TurnContext<'_, '_>, input: Input) -> Flow {
        match input {
            Input::Diffed { effect, result } if effect == self.effect => {
                let Self { asked, program, .. } = *self;
                match result {
                    Ok(_) => asked.end(cx.step, &format!("Looked at; {program} runs outside from now on."), false),
                    Err(why) => asked.end(cx.step, &format!("{program} stays in the sandbox: {why}"), true),
                }
                ask_next(cx)
            }
            other => Flow::Unrelated(self, other),
        }
    }

    fn leave(&mut self, step: &mut Step<'_>) {
        self.asked.end(step, "The turn was cancelled; `castor looked` lists what is not looked at.", true);
    }
}
