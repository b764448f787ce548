//! Review of a plan: the question to the user, and what the answer changes.

use serde_json::Value;

use super::{BatchStatus, call::Call, denials::CancelReason, toolbox::CallContext};
use crate::{
    record::Step,
    session_tools::plan::{APPROVED, Planning},
};
use castor_base::{
    event::ToolProgress,
    log::{Answer, Fact, Mode},
    question::{Choice, Field, FieldKind, Form},
    text,
    tool::{Display, PolicyClass, Preview, ToolOutput},
};

/// Fields of the review, and the answers that are no mode.
const DECISION: &str = "decision";
const FEEDBACK: &str = "feedback";
const EDIT: &str = "edit";
const REJECT: &str = "reject";
/// Most of a plan that the question repeats, in bytes, and longest feedback, in characters.
const MAX_SHOWN: usize = 20_000;
const MAX_FEEDBACK: u32 = 10_000;

impl Call {
    /// The plan was read: the user is asked about it, or it holds where nobody can be asked.
    pub(super) fn ask_plan_review(&mut self, cx: &mut CallContext<'_, '_>, preview: &Preview) {
        let plan = match &preview.display {
            Some(Display::Text { text }) => text.clone(),
            _ => String::new(),
        };
        if cx.tools.interactive {
            if let Some(display) = preview.display.clone() {
                self.send_progress(cx.step, ToolProgress::Proposed { display });
            }
            let name = self.call.args.get("plan_filename").and_then(Value::as_str).unwrap_or_default();
            return self.ask_form(cx.step, form(&text::first_line(name, 200), &plan, &cx.tools.planning));
        }
        let mode =
            cx.step.record.mode_before_plan().filter(|it| cx.tools.planning.modes.contains(it)).unwrap_or_default();
        let output = accept_plan(cx.step, self, mode);
        self.run_after_hooks(cx, output);
    }

    /// The user's word on it. [`BatchStatus::Open`]: the calls go on.
    pub(super) fn on_plan_answer(&mut self, cx: &mut CallContext<'_, '_>, answer: &Answer) -> BatchStatus {
        if *answer == Answer::Cancelled {
            self.end(cx.step, CancelReason::USER.output());
            return BatchStatus::TurnCancelled;
        }
        let (output, question) = word(cx.step, self, &cx.tools.planning, answer);
        self.run_after_hooks(cx, output);
        match question {
            Some(question) => BatchStatus::AskedInText(question.to_owned()),
            None => BatchStatus::Open,
        }
    }
}

const WHAT_ELSE: &str = "What should be different in the plan?";
const IN_TEXT: &str = "The plan is ready. To carry it out, choose another mode (`/mode default`) and say so; or say what \
                       should be different.";

/// The result of the user's word, and the question in a message if the turn ends with it.
fn word(step: &mut Step<'_>, call: &Call, planning: &Planning, answer: &Answer) -> (ToolOutput, Option<&'static str>) {
    let said = |name: &str| match answer {
        Answer::Accepted { content } => content.get(name).and_then(Value::as_str).map(str::trim).unwrap_or_default(),
        _ => "",
    };
    let (decision, feedback) = (said(DECISION), said(FEEDBACK));
    let mode = Mode::parse(decision).filter(|it| planning.modes.contains(it));
    match (answer, mode) {
        (_, Some(mode)) => (accept_plan(step, call, mode), None),
        (Answer::Accepted { .. }, None) if decision == EDIT && feedback.is_empty() => {
            let text = "The user wants the plan changed, and says what in their next message.";
            (ToolOutput::told(text, "You want the plan changed."), Some(WHAT_ELSE))
        }
        (Answer::Accepted { .. }, None) => (rejection(decision, feedback), None),
        (Answer::InText, None) => {
            let text = "The client cannot show the plan for review, so the user was asked in a message. This is still plan \
                        mode; the user's next message is the answer.";
            (ToolOutput::told(text, "Your client cannot show the plan for review."), Some(IN_TEXT))
        }
        (Answer::Declined | Answer::Dismissed | Answer::Reject, None) => (rejection(REJECT, ""), None),
        _ => {
            let text = "The client could not ask the user about the plan. This is still plan mode.";
            let output =
                ToolOutput::stopped("cancelled", text, "Your client could not show the plan. Plan mode stays.");
            (output, None)
        }
    }
}

fn form(name: &str, plan: &str, planning: &Planning) -> Form {
    let choice =
        |value: &str, title: &str| Choice { value: value.to_owned(), title: title.to_owned(), description: None };
    let mut options: Vec<Choice> = planning
        .modes
        .iter()
        .filter_map(|mode| {
            let title = match mode {
                Mode::Plan => return None,
                Mode::Default => "Accept, and ask before each change",
                Mode::AutoEdit => "Accept, and edit files without asking",
                Mode::Auto => "Accept, and do what is confined without asking",
                Mode::Yolo => "Accept, and do everything without asking",
            };
            Some(choice(mode.as_str(), title))
        })
        .collect();
    options.push(choice(EDIT, "Change the plan"));
    options.push(choice(REJECT, "Reject, and stay in plan mode"));
    let field = |name: &str, title: &str, required, kind| Field {
        name: name.to_owned(),
        title: Some(title.to_owned()),
        description: None,
        required,
        kind,
        default: None,
    };
    let text = FieldKind::Text { min: None, max: Some(MAX_FEEDBACK), format: None };
    let fields = vec![
        field(DECISION, "The plan", true, FieldKind::Choice { options }),
        // Clients ask for all fields, whatever was chosen.
        field(FEEDBACK, "What should be different (leave it empty if you accept)", false, text),
    ];
    Form { message: format!("Review the plan {name}:\n\n{}", text::head(plan, MAX_SHOWN)), fields }
}

fn accept_plan(step: &mut Step<'_>, call: &Call, mode: Mode) -> ToolOutput {
    step.log(Fact::Mode { mode });
    let path = call.places.first().map(|it| it.path.to_string()).unwrap_or_default();
    let then = match mode {
        Mode::Plan | Mode::Default => "edits will require confirmation",
        Mode::AutoEdit => "edits will be applied automatically",
        Mode::Auto => "edits and confined commands will run automatically",
        Mode::Yolo => "all calls will run automatically",
    };
    let text = format!(
        "{APPROVED} Switching to {} mode ({then}).\n\nThe approved implementation plan is stored at: {path}\nRead and \
         follow the plan strictly during implementation.",
        mode.as_str()
    );
    let summary = Some(format!("Plan approved; the mode is {} now", mode.as_str()));
    ToolOutput { summary, ..ToolOutput::text(text) }
}

fn rejection(decision: &str, feedback: &str) -> ToolOutput {
    match (decision, feedback) {
        (_, "") => ToolOutput::told(
            "Plan rejected. No feedback provided. This is still plan mode: ask the user what to change.",
            "Plan rejected. Plan mode stays.",
        ),
        (EDIT, it) => ToolOutput::told(
            format!("The user wants the plan changed: {it}\n\nRevise the plan and call exit_plan_mode again."),
            format!("You want the plan changed: {it}"),
        ),
        (_, it) => ToolOutput::told(
            format!("Plan rejected. User feedback: {it}\n\nRevise the plan, or ask the user."),
            format!("Plan rejected: {it}"),
        ),
    }
}

/// Resolves a relative path in plan mode to a file in the folder of plans: nothing else can be written.
pub(super) fn resolve_plan_path(call: &mut Call, mode: Mode, planning: &Planning) {
    let is_edit = call.is_of(PolicyClass::Edit);
    let Some(folder) = planning.folder.as_ref().filter(|_| is_edit && mode == Mode::Plan) else { return };
    if let Some(Value::String(path)) = call.call.args.get_mut("file_path")
        && !path.starts_with(['/', '~'])
    {
        let name = path.trim_start_matches("./").trim_start_matches("plans/").to_owned();
        *path = folder.join(name).to_string();
    }
}
