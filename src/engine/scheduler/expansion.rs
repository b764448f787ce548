//! A call that ran into the sandbox: the question about it, and running it again with more rights.

use crate::{
    base::{
        log::{Answer, Fact, Grant},
        sandbox::{Denial, Leave},
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
            always: self.for_session(&denial).as_ref().map(in_words),
            lasting: self.for_ever(tools, &denial).as_ref().and_then(policy::permission_in_words),
            offers_auto: false,
        });
        step.effect(Effect::Ask(Box::new(Question { id: question, about })));
        self.state = State::Denied { question, denial, output: Box::new(output) };
        None
    }

    /// What a yes for this session would be: the network for the line alone.
    fn for_session(&self, denial: &Denial) -> Option<Grant> {
        match denial {
            Denial::Network => policy::network_for(&self.call),
            _ => denial.grant(),
        }
    }

    /// What a yes for ever would be, where it is on offer.
    fn for_ever(&self, tools: &Toolbox, denial: &Denial) -> Option<Grant> {
        policy::permission(&self.call, denial).filter(|_| tools.saves)
    }

    /// A yes for longer.
    pub fn grant_more(&self, step: &mut Step<'_>, tools: &Toolbox, denial: &Denial, answer: &Answer) {
        let kept = self.for_ever(tools, denial).filter(|_| *answer == Answer::AllowAlways);
        if let Some(grant) = &kept {
            step.effect(Effect::Keep { grant: grant.clone(), holds: true });
        }
        let lasting = kept.is_some();
        if let Some(grant) = kept.or_else(|| self.for_session(denial)) {
            step.log(Fact::Granted { grant, lasting });
        }
    }

    /// Runs it again with more rights.
    pub fn run_again(&mut self, step: &mut Step<'_>, tools: &Toolbox, denial: &Denial) {
        // What looks only with rights to write does not only look.
        let leave = Leave { looks: false, ..std::mem::take(&mut self.leave) };
        self.leave = leave.and(&denial.leave());
        self.hold(step, tools, None);
    }
}
