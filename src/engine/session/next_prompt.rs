//! The way of a prompt into its session: the first taker that knows what to do with it takes it.

use std::sync::Arc;

use super::{Session, client_rewind, options::clear_outage, restart_session};
use crate::{
    commands,
    record::Step,
    step::StepOutput,
    turn::{Turn, TurnContext},
};
use castor_base::{
    clock::Now,
    content::{Part, PromptContent},
    file_prompt::Expansion,
    ids::PromptId,
};

/// A prompt whose turn it is.
struct NextPrompt {
    prompt: PromptId,
    content: PromptContent,
    /// The command or skill of a file that it calls.
    expansion: Option<Expansion>,
}

impl NextPrompt {
    /// The words that may call a command. Words that come with results of the host call none.
    fn typed(&self) -> &[Part] {
        if self.content.results.is_empty() { &self.content.parts } else { &[] }
    }
}

/// Takes a prompt, or gives it back for the next one.
type Taker = fn(&mut Session, NextPrompt, Now, &mut StepOutput) -> Option<NextPrompt>;

/// All that may take a prompt, in this order.
const TAKERS: &[Taker] = &[refuse_unfit, run_own_command, ask_server, refuse_unknown_command, begin_turn];

impl Session {
    /// Begins the next prompt as soon as the one before it is over, with all that it began from `start` on.
    pub(super) fn begin_next_prompt(&mut self, now: Now, out: &mut StepOutput, start: usize) {
        // The user chose another one since.
        _ = self.ordered_model.take_if(|it| it.model != self.record.model);
        while self.turn.as_ref().is_none_or(Turn::is_finished) {
            if let Some(before) = self.turn.take_if(|it| it.is_transferred()) {
                self.hand_over(before, now, out);
                continue;
            }
            let Some((prompt, mut content)) = self.take_waiting(now, out, start) else { return };
            let expansion = self.begin_expansion(&mut content);
            let next = Some(NextPrompt { prompt, content, expansion });
            TAKERS.iter().fold(next, |next, take| take(self, next?, now, out));
        }
    }

    /// The agent that a turn was handed to goes on with its prompt.
    fn hand_over(&mut self, before: Turn, now: Now, out: &mut StepOutput) {
        self.leave_lost_agent(now, out);
        self.renew_spec(now);
        let mut step = Step::new(&mut self.record, &mut self.serial, now, out);
        let cx = &mut TurnContext { step: &mut step, spec: &self.spec, scratch: &mut self.scratch };
        self.turn = Some(Turn::take_over(cx, before));
    }

    fn take_waiting(&mut self, now: Now, out: &mut StepOutput, start: usize) -> Option<(PromptId, PromptContent)> {
        if let Some(mut turn) = self.turn.take() {
            turn.reject_steering(&mut Step::new(&mut self.record, &mut self.serial, now, out));
            self.scratch.state.end_turn();
        }
        client_rewind::track_rewind(&mut self.non_turn_work.rewinding, out.acts.get(start..).unwrap_or_default());
        let next = if self.non_turn_work.rewinding.is_none() { self.waiting.pop_front() } else { None };
        // The tools that the host brought for the prompt before leave with it.
        if next.is_none() && !Arc::ptr_eq(self.spec.toolbox.host(), self.folder.toolbox.host()) {
            self.renew_spec(now);
        }
        next
    }
}

fn refuse_unfit(session: &mut Session, next: NextPrompt, now: Now, out: &mut StepOutput) -> Option<NextPrompt> {
    session.prepare_prompt(next.prompt, &next.content, now, out).then_some(next)
}

fn run_own_command(session: &mut Session, next: NextPrompt, now: Now, out: &mut StepOutput) -> Option<NextPrompt> {
    let Some((command, args)) = commands::find_command(next.typed()) else { return Some(next) };
    let mut step = Step::new(&mut session.record, &mut session.serial, now, out);
    let before = step.record.model.clone();
    let turn = commands::run_command(command, args, &mut step, &session.spec, (next.prompt, &next.content.parts));
    let cx = &mut TurnContext { step: &mut step, spec: &session.spec, scratch: &mut session.scratch };
    if let Some(turn) = turn {
        session.turn = Some(turn.start(cx, next.prompt, next.content.parts));
        return None;
    }
    if command.clears {
        restart_session(cx);
    }
    if cx.step.record.model != before {
        clear_outage(cx);
    }
    None
}

/// Asks an MCP server for the prompt that a command of its own stands for.
fn ask_server(session: &mut Session, next: NextPrompt, now: Now, out: &mut StepOutput) -> Option<NextPrompt> {
    let order = commands::find_server_prompt(next.typed(), &session.spec).filter(|_| next.expansion.is_none());
    let Some(order) = order else { return Some(next) };
    let mut step = Step::new(&mut session.record, &mut session.serial, now, out);
    let cx = &mut TurnContext { step: &mut step, spec: &session.spec, scratch: &mut session.scratch };
    session.turn = Some(order.start(cx, next.prompt, next.content.parts));
    None
}

fn refuse_unknown_command(
    session: &mut Session,
    next: NextPrompt,
    now: Now,
    out: &mut StepOutput,
) -> Option<NextPrompt> {
    let why = commands::suggest_command(next.typed(), &session.spec).filter(|_| next.expansion.is_none());
    let Some(why) = why else { return Some(next) };
    let mut step = Step::new(&mut session.record, &mut session.serial, now, out);
    commands::refuse_command(&mut step, next.prompt, &next.content.parts, why);
    None
}

fn begin_turn(session: &mut Session, next: NextPrompt, now: Now, out: &mut StepOutput) -> Option<NextPrompt> {
    let mut step = Step::new(&mut session.record, &mut session.serial, now, out);
    let cx = &mut TurnContext { step: &mut step, spec: &session.spec, scratch: &mut session.scratch };
    session.turn = Some(Turn::begin(cx, next.prompt, next.content, next.expansion));
    None
}
