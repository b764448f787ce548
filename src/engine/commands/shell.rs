//! `/shell`: the user's own command, decided about and run as a call of the model's would be; the model is told what came of it.

use serde_json::json;

use crate::{
    record::Step,
    scheduler::BatchStatus,
    step::Input,
    turn::{
        calls::flow_of,
        flow::{Flow, Phase},
        messages::send_message,
        spec::TurnContext,
        state::TurnState,
    },
};
use castor_base::{
    content::Part,
    event::{EXPANSION, Speaker},
    ids::CallId,
    log::Fact,
    text,
    tool::{RUN_SHELL_COMMAND, ToolCall},
};

/// Of a command without a result, in the words to the user.
const MAX_NAMED: usize = 200;

#[derive(Debug)]
struct UserCommand {
    command: String,
}

pub(super) fn begin(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, command: String) -> Flow {
    let id = CallId::from(cx.step.fresh_id("c"));
    let call = ToolCall { id, name: RUN_SHELL_COMMAND.to_owned(), args: json!({ "command": command }) };
    let (scheduler, mut calls) = turn.calls(cx.step);
    scheduler.propose_aside(&mut calls, call);
    let status = scheduler.advance(&mut calls);
    UserCommand { command }.go_on(turn, cx.step, status)
}

impl UserCommand {
    fn go_on(self, turn: &mut TurnState, step: &mut Step<'_>, status: BatchStatus) -> Flow {
        match status {
            BatchStatus::Open => Flow::wait(self),
            BatchStatus::Done => {
                let outcome = turn.scheduler.take_aside().into_iter().next();
                turn.scheduler.clear();
                match outcome.unwrap_or_else(|| Ok(String::new())) {
                    Ok(output) => {
                        tell(step, &format!("The user ran this command, and has seen its output.\n{output}"));
                        // The call has shown it all.
                        Flow::report("")
                    }
                    Err(error) => {
                        step.log(Fact::Retracted {});
                        let command = text::first_line(&self.command, MAX_NAMED);
                        Flow::report(format!("`{command}` gave no result. {}", text::end_sentence(&error.message)))
                    }
                }
            }
            other => {
                step.log(Fact::Retracted {});
                flow_of(step, other)
            }
        }
    }
}

impl Phase for UserCommand {
    fn step(self: Box<Self>, turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, input: Input) -> Flow {
        let (scheduler, mut calls) = turn.calls(cx.step);
        let status = scheduler.on_input(&mut calls, input);
        self.go_on(turn, cx.step, status)
    }

    /// It may have begun, and changed what the model knows.
    fn leave(&mut self, step: &mut Step<'_>) {
        tell(step, "The user stopped this command before it ended. What it had done by then is not known.");
    }
}

fn tell(step: &mut Step<'_>, text: &str) {
    send_message(step, Speaker::Developer, vec![Part::text(text)], &[EXPANSION]);
}
