//! Texts of calls that were denied, refused or cancelled: one for the model, and one for the person.

use crate::policy::Verdict;
use castor_base::{
    check::Denier,
    log::Mode,
    text,
    tool::{ToolError, ToolOutput, UNASKED},
};

/// The reason why calls end before they were done: for the model a few words, for the person a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CancelReason {
    pub for_model: &'static str,
    pub for_person: &'static str,
}

impl CancelReason {
    pub const USER: Self = Self::new("the user cancelled the turn", "Cancelled by you.");
    const EARLIER: Self =
        Self::new("an earlier call was refused by the user", "Not run, because you did not allow an earlier call.");

    pub const fn new(for_model: &'static str, for_person: &'static str) -> Self {
        Self { for_model, for_person }
    }

    pub(super) fn output(self) -> ToolOutput {
        let for_model = format!("[Operation Cancelled] Reason: {}", self.for_model);
        ToolOutput::stopped("cancelled", for_model, self.for_person)
    }
}

/// After a no, what has not begun is not begun: it was planned for an approval.
pub(super) fn after_refusal() -> ToolOutput {
    CancelReason::EARLIER.output()
}

/// The user said no. `reason`: why they were asked, where a rule or a hook said so.
pub(super) fn refused(reason: Option<&str>) -> ToolOutput {
    let reason = reason.map_or_else(String::new, |it| format!(" {it}"));
    let for_model = format!("The user said no to this call. Do not try it in another way; ask what to do.{reason}");
    ToolOutput::stopped("cancelled", for_model, "Not allowed by you.")
}

/// The client answered with something that is no answer.
pub(super) fn unanswered() -> ToolOutput {
    ToolOutput::stopped(
        "cancelled",
        "The client could not ask the user, so the call was not made. Go on without it.",
        "Your client could not ask for an approval, so the call did not run. Choose another mode, or add a rule that \
         allows it.",
    )
}

/// Something wants the user's approval, and there is no user.
pub(super) fn unasked(why: &str) -> ToolOutput {
    ToolOutput::stopped(
        UNASKED,
        format!("{why} It needs the user's approval, and nobody can be asked."),
        format!("{why} The call needs an approval, and nobody can be asked. Run castor on a terminal to be asked."),
    )
}

/// Policy denies the call.
pub(super) fn denied(verdict: &Verdict, mode: Mode, interactive: bool) -> ToolOutput {
    let said = verdict.deny_message.as_deref().unwrap_or_default();
    let rule = &verdict.rule;
    let is_unasked =
        !interactive && (verdict.denier == Denier::Nobody || verdict.denier == Denier::Mode && mode != Mode::Plan);
    let for_person = match verdict.denier {
        Denier::Mode if mode == Mode::Plan => {
            "Plan mode changes nothing. To allow this, accept the plan or choose another mode.".to_owned()
        }
        Denier::Mode if interactive => format!("The mode {} does not allow this.", mode.as_str()),
        Denier::Mode => nobody_asked(None),
        Denier::Nobody if interactive => format!("castor cannot allow this: {rule}."),
        Denier::Nobody => nobody_asked(Some(rule)),
        Denier::Checker => format!("A safety checker denies this: {rule}"),
        Denier::Client => format!("Your client denies this: {rule}"),
        Denier::Rule => denied_by_rule(rule, said),
    };
    ToolOutput::stopped(if is_unasked { UNASKED } else { "policy_violation" }, for_model(said), for_person)
}

/// A tool that a rule hides, and that the model calls all the same.
pub(super) fn hidden(rule: &str, said: &str) -> ToolOutput {
    ToolOutput::stopped("policy_violation", for_model(said), denied_by_rule(rule, said))
}

fn for_model(said: &str) -> String {
    format!("Tool execution denied by policy. {said}").trim_end().to_owned()
}

fn denied_by_rule(rule: &str, said: &str) -> String {
    let said = text::end_sentence(said);
    let gap = if said.is_empty() { "" } else { " " };
    format!("A rule denies this: {rule}.{gap}{said} `castor policy check` shows how castor decides.")
}

fn nobody_asked(why: Option<&str>) -> String {
    let why = why.map_or_else(String::new, |it| format!(" ({it})"));
    format!(
        "This needs an approval{why}, and nobody can be asked. Run castor on a terminal, or add a rule that allows it: \
         `castor policy check --headless` shows which."
    )
}

/// A patch's change of one file cannot be changed by itself: the failure says so.
pub(super) fn file_changed_by_hook() -> ToolOutput {
    ToolOutput::stopped(
        "blocked_by_hook",
        "A hook wants other arguments for a file of this patch, which a patch cannot be given. Nothing was done. Change \
         that file with write_file or replace.",
        "A hook changes the arguments of write_file or replace, which a file of a patch cannot be given; nothing was done.",
    )
}

/// A hook stopped the whole turn.
pub(super) fn stopped_by_hook(why: &str) -> ToolOutput {
    let for_model = format!("Agent execution stopped by hook: {why}");
    ToolOutput::stopped("stop_execution", for_model, format!("A hook stopped the turn: {why}"))
}

/// A hook did not let the call run.
pub(super) fn blocked_by_hook(why: &str) -> ToolOutput {
    let for_model = format!("Tool execution blocked: {why}");
    ToolOutput::stopped("policy_violation", for_model, format!("A hook blocked this call: {why}"))
}

/// A hook keeps the result from the model.
pub(super) fn withheld_by_hook(why: &str) -> ToolOutput {
    let for_model = format!("Tool result blocked: {why}");
    ToolOutput::stopped("execution_failed", for_model, format!("The call ran. A hook withheld its result: {why}"))
}

/// A hook changed the arguments into something that the tool does not take.
pub(super) fn changed_badly_by_hook(error: &ToolError) -> ToolOutput {
    let why = &error.message;
    let for_model = format!("Tool parameter modification by hook failed validation: {why}");
    ToolOutput::stopped(
        &error.kind,
        for_model,
        format!("A hook changed the arguments, and the tool refuses them: {why}"),
    )
}

#[cfg(test)]
mod tests {
    use super::{
        CancelReason, blocked_by_hook, denied, hidden, refused, stopped_by_hook, unanswered, withheld_by_hook,
    };
    use crate::policy::Verdict;
    use castor_base::{check::Denier, content::joined_text, log::Mode, tool::ToolOutput};

    /// The model reads `for_model`, the person `for_person`.
    fn check(output: ToolOutput, for_model: &str, for_person: &str) {
        let error = output.error.unwrap();
        assert_eq!((joined_text(&output.content).as_str(), error.message.as_str()), (for_model, for_person));
    }

    #[test]
    fn the_model_and_the_person_read_texts_of_their_own() {
        let no = "The user said no to this call. Do not try it in another way; ask what to do.";
        check(refused(None), no, "Not allowed by you.");
        check(refused(Some("A hook asks: sure?")), &format!("{no} A hook asks: sure?"), "Not allowed by you.");
        let cancelled = "[Operation Cancelled] Reason: the user cancelled the turn";
        check(CancelReason::USER.output(), cancelled, "Cancelled by you.");
        check(
            hidden("p.toml:1: ls", ""),
            "Tool execution denied by policy.",
            "A rule denies this: p.toml:1: ls. \
            `castor policy check` shows how castor decides.",
        );
        check(stopped_by_hook("w"), "Agent execution stopped by hook: w", "A hook stopped the turn: w");
        check(blocked_by_hook("w"), "Tool execution blocked: w", "A hook blocked this call: w");
        check(withheld_by_hook("w"), "Tool result blocked: w", "The call ran. A hook withheld its result: w");
        let person = unanswered().error.unwrap().message;
        assert!(person.starts_with("Your client could not ask"), "{person}");
    }

    #[test]
    fn a_denial_says_what_denies() {
        let said = |denier, mode, interactive| {
            let verdict = Verdict::denied(denier, "p.toml:12: ls".to_owned(), "Why.".to_owned());
            let output = denied(&verdict, mode, interactive);
            assert_eq!(joined_text(&output.content), "Tool execution denied by policy. Why.");
            output.error.unwrap().message
        };
        let rule = "A rule denies this: p.toml:12: ls. Why. `castor policy check` shows how castor decides.";
        assert_eq!(said(Denier::Rule, Mode::Yolo, true), rule);
        assert_eq!(said(Denier::Checker, Mode::Default, true), "A safety checker denies this: p.toml:12: ls");
        let plan = "Plan mode changes nothing. To allow this, accept the plan or choose another mode.";
        assert_eq!(said(Denier::Mode, Mode::Plan, true), plan);
        let nobody = said(Denier::Nobody, Mode::Default, false);
        assert!(nobody.starts_with("This needs an approval (p.toml:12: ls), and nobody can be asked."), "{nobody}");
        assert!(
            said(Denier::Mode, Mode::Default, false).starts_with("This needs an approval, and nobody can be asked.")
        );
    }
}
