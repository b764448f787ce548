//! A call that ran into the sandbox: the question about it, and running it again with more rights.

use serde_json::Value;

use crate::{
    base::{
        content::{Part, joined_text},
        log::{Answer, Fact, Grant},
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

/// For the user, behind what a yes does.
const DONE_TWICE: &str = " What the line had done before that is done twice then.";

impl Call {
    /// Asks whether it may run again with what it was denied, and keeps the output. Gives it back where nothing is asked.
    pub fn ask_for_more(&mut self, step: &mut Step<'_>, tools: &Toolbox, output: ToolOutput) -> Option<ToolOutput> {
        let Some(denial) = output.denied.clone().filter(|_| self.n_expansions < MAX_EXPANSIONS) else {
            return Some(output);
        };
        if let Some(why) = policy::half_done(&self.call, &denial, &joined_text(&output.content)) {
            return Some(told(output, why));
        }
        let twice = if policy::done_before(&self.call) { DONE_TWICE } else { "" };
        self.n_expansions += 1;
        let question = step.question();
        let about = About::Confirmation(Confirmation {
            call: self.call.id.clone(),
            title: self.asked_title(),
            kind: self.display.kind,
            args: self.call.args.clone(),
            locations: self.display.locations.clone(),
            display: Some(Display::Text { text: format!("{} {}{twice}", denial.in_words(), denial.offer()) }),
            reason: None,
            always: denial.grant().as_ref().map(in_words),
            lasting: self.kept(tools, &denial).as_ref().and_then(policy::kept_in_words),
        });
        step.effect(Effect::Ask(Box::new(Question { id: question, about })));
        self.state = State::Denied { question, denial, output: Box::new(output) };
        None
    }

    /// Whether a standing yes gives it the network.
    pub fn has_network(&self, step: &Step<'_>, tools: &Toolbox) -> bool {
        policy::leave(&self.call, &step.record.standing(&tools.kept)).network
    }

    /// What a yes for ever would be, where it is on offer.
    pub fn kept(&self, tools: &Toolbox, denial: &Denial) -> Option<Grant> {
        policy::kept(&self.call, denial).filter(|_| tools.saves)
    }

    /// A yes for longer.
    pub fn grant_more(&self, step: &mut Step<'_>, tools: &Toolbox, denial: &Denial, answer: &Answer) {
        let kept = self.kept(tools, denial).filter(|_| *answer == Answer::AllowAlways);
        if let Some(grant) = &kept {
            step.effect(Effect::Keep { grant: grant.clone(), holds: true });
        }
        let lasting = kept.is_some();
        if let Some(grant) = kept.or_else(|| denial.grant()) {
            step.log(Fact::Granted { grant, lasting });
        }
    }

    /// What the model is told of a no to the call.
    pub fn refusal(&self) -> &'static str {
        match (self.opens.network, self.state.grant()) {
            (false, _) => "The user said no to this call. Do not try it in another way; ask what to do.",
            (true, Some(Grant::Network)) => {
                "The user said no to the network, which a part of this line needs, so nothing of it was run. Run the parts \
                 that need no network by themselves, or stop."
            }
            (true, _) => {
                "The user said no to this call, and nothing of it was run. The question was also about the network, which \
                 a part of the line needs. Do not try it in another way; ask what to do, or run the parts apart: each is \
                 asked about by itself."
            }
        }
    }

    /// Runs it again with more rights.
    pub fn run_again(&mut self, step: &mut Step<'_>, tools: &Toolbox, denial: &Denial) {
        self.leave = std::mem::take(&mut self.leave).and(&denial.leave());
        self.hold(step, tools, None);
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
