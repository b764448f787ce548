//! A call that ran into the sandbox: the question about it, and running it again with more rights.

use serde_json::Value;

use crate::{
    base::{
        content::{Part, joined_text},
        event::ToolProgress,
        log::Grant,
        sandbox::Denial,
        tool::{Display, ToolOutput},
    },
    engine::{
        policy,
        record::Step,
        scheduler::{
            call::{Call, State, Toolbox},
            display::in_words,
        },
        step::{About, Confirmation, Effect, Question},
    },
};

/// A command may need network and a folder or two; what is denied more often than this is better asked anew.
const MAX_EXPANSIONS: u8 = 3;

impl Call {
    /// Asks whether it may run again with what it was denied, and keeps the output. Gives it back where nothing is asked.
    pub fn ask_for_more(&mut self, step: &mut Step<'_>, tools: &Toolbox, output: ToolOutput) -> Option<ToolOutput> {
        let Some(denial) = output.denied.clone().filter(|_| self.n_expansions < MAX_EXPANSIONS) else {
            return Some(output);
        };
        if let Some(why) = policy::half_done(&self.call, &denial, &joined_text(&output.content)) {
            return Some(told(output, why));
        }
        self.n_expansions += 1;
        let question = step.question();
        let about = About::Confirmation(Confirmation {
            call: self.call.id.clone(),
            title: self.asked_title(),
            kind: self.display.kind,
            args: self.call.args.clone(),
            locations: self.display.locations.clone(),
            display: Some(Display::Text { text: format!("{} {}", denial.in_words(), denial.offer()) }),
            reason: None,
            always: denial.grant().as_ref().map(in_words),
            lasting: self.kept(tools, &denial).as_ref().and_then(policy::kept_in_words),
        });
        step.effect(Effect::Ask(Box::new(Question { id: question, about })));
        self.state = State::Denied { question, denial, output: Box::new(output) };
        None
    }

    /// What a yes for ever would be, where it is on offer.
    pub fn kept(&self, tools: &Toolbox, denial: &Denial) -> Option<Grant> {
        policy::kept(&self.call, denial).filter(|_| tools.saves)
    }

    /// Runs it again with more rights.
    pub fn run_again(&mut self, step: &mut Step<'_>, tools: &Toolbox, denial: &Denial) {
        self.leave = std::mem::take(&mut self.leave).and(&denial.leave());
        self.tell(step, ToolProgress::Started { display: None });
        self.start(step, tools, None);
    }
}

/// For the model, and for people beside what else the sandbox says.
fn told(mut output: ToolOutput, why: &str) -> ToolOutput {
    output.content.push(Part::text(why));
    if let Some(Value::String(said)) = output.data.get_mut("sandbox") {
        *said = format!("{said}\n{why}");
    }
    output
}
