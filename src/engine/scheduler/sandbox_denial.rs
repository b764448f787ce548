//! Sandbox denial of a call: the question about more rights, and the second run with them.

use crate::{
    policy,
    scheduler::{
        BatchStatus,
        call::{Call, CallState},
        display::describe_grant,
        toolbox::{CallContext, Toolbox},
    },
    step::{Confirmation, Effect, QuestionTopic, UserQuestion},
};
use castor_base::{
    content::Part,
    log::{Answer, Fact, Grant},
    sandbox::{Denial, SandboxGrant},
    text,
    tool::{Display, ToolOutput},
};

/// A command may need network and a folder or two; what is denied more often than this is better asked anew.
const MAX_EXPANSIONS: u8 = 3;
/// The bytes and lines of a command's output above the question.
const SHOWN: usize = 2_000;
const SHOWN_LINES: usize = 10;

impl Call {
    /// Asks whether it may run again with what it was denied, and keeps the output. Gives it back where nothing is asked.
    pub fn ask_more_rights(&mut self, cx: &mut CallContext<'_, '_>, output: ToolOutput) -> Option<ToolOutput> {
        let Some(denial) = output.denial.clone().filter(|_| self.n_expansions < MAX_EXPANSIONS) else {
            return Some(output);
        };
        self.n_expansions += 1;
        let question = cx.step.new_question_id();
        let said = format!("{} {}", denial.in_words(), denial.offer_text());
        let display = Display::Text { text: format!("{}{said}", printed_end(&output)) };
        let about = QuestionTopic::Confirmation(Confirmation {
            session_grant: self.session_grant(&denial).as_ref().map(describe_grant),
            persistent_grant: self.persistent_grant(cx.tools, &denial).as_ref().and_then(policy::permission_in_words),
            ..self.confirmation(Some(display))
        });
        cx.step.start_effect(Effect::AskUser(Box::new(UserQuestion { id: question, about })));
        self.state = CallState::SandboxDenied { question, denial, output: Box::new(output) };
        None
    }

    /// The grant of an approval for this session: the network, and secrets with hosts, for the line alone.
    fn session_grant(&self, denial: &Denial) -> Option<Grant> {
        match denial {
            Denial::Network => policy::network_for(&self.call),
            Denial::Secrets { files, hosts } => policy::secrets_for(&self.call, files, hosts),
            _ => denial.session_grant(),
        }
    }

    /// The permission of a permanent approval, where it is available.
    fn persistent_grant(&self, tools: &Toolbox, denial: &Denial) -> Option<Grant> {
        policy::sandbox_permission(&self.call, denial).filter(|_| tools.saves_grants())
    }

    /// The user's word on running it again.
    pub fn on_denial_answer(&mut self, cx: &mut CallContext<'_, '_>, answer: &Answer) -> BatchStatus {
        let CallState::SandboxDenied { denial, mut output, .. } = std::mem::replace(&mut self.state, CallState::Done)
        else {
            return BatchStatus::Open;
        };
        let why = match answer {
            Answer::AllowOnce | Answer::AllowSession | Answer::AllowAlways => {
                if *answer != Answer::AllowOnce {
                    self.grant_rights(cx, &denial, answer);
                }
                self.run_again(cx, &denial);
                return BatchStatus::Open;
            }
            Answer::Cancelled => {
                self.end(cx.step, *output);
                return BatchStatus::TurnCancelled;
            }
            Answer::Reject => "The user said no to more rights for this command. Go on within the sandbox, or stop.",
            _ => "The client could not ask the user for more rights.",
        };
        output.content.push(Part::text(why));
        self.end(cx.step, *output);
        BatchStatus::Open
    }

    /// A yes for longer.
    fn grant_rights(&self, cx: &mut CallContext<'_, '_>, denial: &Denial, answer: &Answer) {
        let kept = self.persistent_grant(cx.tools, denial).filter(|_| *answer == Answer::AllowAlways);
        if let Some(grant) = &kept {
            cx.step.start_effect(Effect::UpdateGrant { grant: grant.clone(), holds: true });
        }
        let lasting = kept.is_some();
        if let Some(grant) = kept.or_else(|| self.session_grant(denial)) {
            cx.step.log(Fact::Granted { grant, lasting });
        }
    }

    /// Runs it again with more rights.
    fn run_again(&mut self, cx: &mut CallContext<'_, '_>, denial: &Denial) {
        // What looks only with rights to write does not only look.
        let leave = SandboxGrant { read_only: false, ..std::mem::take(&mut self.sandbox_grant) };
        self.sandbox_grant = leave.union(&denial.grant_once());
        self.checkpoint_then_run(cx, None);
    }
}

/// The end of what a command printed, above the question about it.
fn printed_end(output: &ToolOutput) -> String {
    let Some(Display::Terminal { text, .. }) = &output.display else { return String::new() };
    let lines: Vec<&str> = text::tail(text, SHOWN).trim().lines().collect();
    let end = lines.get(lines.len().saturating_sub(SHOWN_LINES)..).unwrap_or_default().join("\n");
    if end.is_empty() { end } else { format!("```\n{end}\n```\n") }
}
