//! Sandbox denial of a call: the question about more rights, and the second run with them.

use crate::{
    base::{
        log::{Answer, Fact, Grant},
        sandbox::{Denial, SandboxGrant},
        tool::{Display, ToolOutput},
    },
    engine::{
        policy,
        record::Step,
        scheduler::{
            call::{Call, CallState, Toolbox},
            display::describe_grant,
        },
        step::{Confirmation, Effect, QuestionTopic, UserQuestion},
    },
};

/// A command may need network and a folder or two; what is denied more often than this is better asked anew.
const MAX_EXPANSIONS: u8 = 3;

impl Call {
    /// Asks whether it may run again with what it was denied, and keeps the output. Gives it back where nothing is asked.
    pub fn ask_more_rights(&mut self, step: &mut Step<'_>, tools: &Toolbox, output: ToolOutput) -> Option<ToolOutput> {
        let Some(denial) = output.denial.clone().filter(|_| self.n_expansions < MAX_EXPANSIONS) else {
            return Some(output);
        };
        self.n_expansions += 1;
        let question = step.new_question_id();
        let about = QuestionTopic::Confirmation(Confirmation {
            call: self.call.id.clone(),
            title: self.question_title(),
            kind: self.display.kind,
            args: self.call.args.clone(),
            locations: self.display.locations.clone(),
            display: Some(Display::Text { text: format!("{} {}", denial.in_words(), denial.offer_text()) }),
            reason: None,
            session_grant: self.session_grant(&denial).as_ref().map(describe_grant),
            persistent_grant: self.persistent_grant(tools, &denial).as_ref().and_then(policy::permission_in_words),
            offers_auto: false,
        });
        step.start_effect(Effect::AskUser(Box::new(UserQuestion { id: question, about })));
        self.state = CallState::SandboxDenied { question, denial, output: Box::new(output) };
        None
    }

    /// What a yes for this session would be: the network for the line alone.
    fn session_grant(&self, denial: &Denial) -> Option<Grant> {
        match denial {
            Denial::Network => policy::network_for(&self.call),
            _ => denial.session_grant(),
        }
    }

    /// What a yes for ever would be, where it is on offer.
    fn persistent_grant(&self, tools: &Toolbox, denial: &Denial) -> Option<Grant> {
        policy::sandbox_permission(&self.call, denial).filter(|_| tools.saves_grants)
    }

    /// A yes for longer.
    pub fn grant_rights(&self, step: &mut Step<'_>, tools: &Toolbox, denial: &Denial, answer: &Answer) {
        let kept = self.persistent_grant(tools, denial).filter(|_| *answer == Answer::AllowAlways);
        if let Some(grant) = &kept {
            step.start_effect(Effect::UpdateGrant { grant: grant.clone(), holds: true });
        }
        let lasting = kept.is_some();
        if let Some(grant) = kept.or_else(|| self.session_grant(denial)) {
            step.log(Fact::Granted { grant, lasting });
        }
    }

    /// Runs it again with more rights.
    pub fn run_again(&mut self, step: &mut Step<'_>, tools: &Toolbox, denial: &Denial) {
        // What looks only with rights to write does not only look.
        let leave = SandboxGrant { read_only: false, ..std::mem::take(&mut self.sandbox_grant) };
        self.sandbox_grant = leave.union(&denial.grant_once());
        self.checkpoint_then_run(step, tools, None);
    }
}
