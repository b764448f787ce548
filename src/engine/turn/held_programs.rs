//! Questions about programs of the user's that the sandbox holds, each asked once in a session.
//!
//! One is whether the user looked at what an agent wrote, so that a program may run outside. The other is whether a program
//! gets what the sandbox refused it.

use serde_json::json;

use super::{
    flow::{Flow, Phase},
    pseudo_call::{PseudoCall, PseudoCallKind},
    spec::TurnContext,
    state::TurnState,
};
use crate::{
    record::Step,
    step::{Confirmation, Effect, Input, QuestionTopic},
};
use castor_base::{
    event::Location,
    held_program::{HeldProgram, HoldReason, ProgramName},
    ids::{CallId, EffectId},
    log::Answer,
    sandbox::{Denial, SandboxGrant},
    text,
    tool::{Display, ToolKind},
    unseen_files::{SeenBytes, UnseenFiles},
};

const LOOK: PseudoCallKind = PseudoCallKind { name: "look_at_files", error: "not_looked_at" };
const WIDEN: PseudoCallKind = PseudoCallKind { name: "widen_sandbox", error: "not_widened" };
/// Longest name of a program, in characters.
const MAX_PROGRAM: usize = 200;

/// The files are being read.
#[derive(Debug)]
struct ReadingUnseen {
    effect: EffectId,
    program: ProgramName,
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

/// The user is asked whether a program gets what it lacked.
#[derive(Debug)]
struct WidenQuestion {
    asked: PseudoCall,
    program: ProgramName,
    grant: SandboxGrant,
}

/// One program after the other, each once in a session.
pub(super) fn ask_about_held(_: &mut TurnState, cx: &mut TurnContext<'_, '_>) -> Flow {
    ask_next(cx)
}

fn ask_next(cx: &mut TurnContext<'_, '_>) -> Flow {
    let next = cx.scratch.preamble.take_held_program();
    // Where nobody can be asked it stays as it is, which was told.
    let Some(HeldProgram { program, why }) = next.filter(|_| cx.spec.toolbox.interactive) else { return Flow::Next };
    let denial = match why {
        HoldReason::Unseen(roots) => {
            let effect = cx.step.start_effect(Effect::ShowUnseen { roots });
            return Flow::wait(ReadingUnseen { effect, program });
        }
        HoldReason::Lacks(it) => it,
    };
    // What no question gives was told.
    let Some(grant) = denial.program_grant() else { return ask_next(cx) };
    cx.scratch.preamble.note_told_program(&program);
    let asked = ask_for_rights(cx.step, &program, &denial);
    Flow::wait(WidenQuestion { asked, program, grant })
}

impl Phase for ReadingUnseen {
    fn step(self: Box<Self>, _: &mut TurnState, cx: &mut TurnContext<'_, '_>, input: Input) -> Flow {
        match input {
            // What cannot be shown whole is no question: its notice names the command.
            Input::UnseenShown { effect, shown } if effect == self.effect => match shown {
                Some(shown) => {
                    cx.scratch.preamble.note_told_program(&self.program);
                    Flow::wait(ask_to_look(cx.step, &self.program, shown))
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

/// A question whose yes holds for this one, with its reason.
fn ask(step: &mut Step<'_>, kind: PseudoCallKind, title: &str, reason: String, shown: UnseenFiles) -> PseudoCall {
    let UnseenFiles { diffs, bytes } = shown;
    let question = |call: CallId| {
        QuestionTopic::Confirmation(Confirmation {
            call,
            tool: kind.name.into(),
            title: title.to_owned(),
            kind: ToolKind::Other,
            args: json!({}),
            locations: bytes.into_iter().map(|(path, _)| Location { path, line: None }).collect(),
            display: (!diffs.is_empty()).then_some(Display::Diffs { files: diffs }),
            reason: Some(reason),
            session_grant: None,
            persistent_grant: None,
            offers_auto: false,
            is_editable: false,
        })
    };
    kind.ask_and_wait(step, title.to_owned(), question)
}

fn ask_to_look(step: &mut Step<'_>, program: &ProgramName, shown: UnseenFiles) -> LookQuestion {
    let program = text::first_line(&program.to_string(), MAX_PROGRAM);
    let title = format!("Let {program} run outside the sandbox, with what an agent wrote?");
    let reason = "Its settings say that it runs outside, with your rights. It reaches files that an agent wrote and nobody \
                  looked at. An approval says that you looked at these changes, and lets it out while nothing more is written \
                  there. A rejection keeps it in the sandbox for this session.";
    let bytes = shown.bytes.clone();
    LookQuestion { asked: ask(step, LOOK, &title, reason.to_owned(), shown), program, bytes }
}

fn ask_for_rights(step: &mut Step<'_>, program: &ProgramName, denial: &Denial) -> PseudoCall {
    let program = text::first_line(&program.to_string(), MAX_PROGRAM);
    let title = format!("Let {program} {}?", denial.program_offer());
    let (why, key) = (denial.in_words(), denial.settings_key());
    let reason = format!(
        "It runs in the sandbox of commands, and failed there. {why} An approval gives it that for this session. For good, \
         add {key} to it in your settings. After a rejection castor asks nothing more about it in this session."
    );
    ask(step, WIDEN, &title, reason, UnseenFiles::default())
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

impl Phase for WidenQuestion {
    fn step(self: Box<Self>, _: &mut TurnState, cx: &mut TurnContext<'_, '_>, input: Input) -> Flow {
        match input {
            Input::Answered { question, answer } if self.asked.is_about(question) => {
                let Self { asked, program, grant } = *self;
                asked.resume(cx.step);
                if answer != Answer::AllowOnce {
                    asked.end(cx.step, "It stays as it is.", true);
                    return ask_next(cx);
                }
                asked.end(cx.step, "It has that for this session.", false);
                cx.step.start_effect(Effect::WidenProgram { program, grant: Box::new(grant) });
                ask_next(cx)
            }
            other => Flow::Unrelated(self, other),
        }
    }

    fn leave(&mut self, step: &mut Step<'_>) {
        self.asked.withdraw(step, "The turn ended before.");
    }
}
