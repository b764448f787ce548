//! Expansion of a typed command or skill: runs its commands and reads its files under policy, and makes the model's prompt.

use serde_json::json;

use crate::turn::{
    calls::flow_of,
    flow::{Flow, Phase},
    prompt::command_template::{Piece, pieces},
    spec::TurnContext,
    state::TurnState,
};
use crate::{
    record::Step,
    scheduler::{BatchStatus, skill_calls},
    step::Input,
    turn::messages::send_message,
};
use castor_base::{
    content::Part,
    event::{EXPANSION, Speaker},
    file_prompt::{Expansion, ExpansionSource},
    ids::CallId,
    log::Fact,
    text,
    tool::{LIST_DIRECTORY, READ_FILE, RUN_SHELL_COMMAND, ToolCall, ToolError},
};

/// Kinds of errors with which a file is only not there: the prompt goes on without it.
const ABSENT: &[&str] = &["file_not_found", "target_is_directory", "read_content_failure", "file_too_large"];

#[derive(Debug)]
struct Expanding {
    name: String,
    pieces: Vec<Piece>,
}

/// The prompt that a command stands for, where the user typed one. What is wrong in files is told here, once.
pub(in crate::turn) fn expand(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>) -> Flow {
    tell_faults(cx);
    let Some(it) = turn.transcript.expansion.take() else { return Flow::Next };
    let Expansion { source, args } = *it;
    match source {
        ExpansionSource::Skill(it) => {
            skill_calls::open_folder(cx.step, &it);
            let task = if args.is_empty() { String::new() } else { format!("\n\nThe task: {args}") };
            finish(turn, cx, format!("The user activates a skill for this.\n{}{task}", it.as_text()))
        }
        ExpansionSource::Command(command) => match pieces(&command, &args) {
            Ok(pieces) => fill(turn, cx, Expanding { name: command.name, pieces }),
            Err(why) => refuse(cx, &command.name, &why),
        },
    }
}

fn tell_faults(cx: &mut TurnContext<'_, '_>) {
    // The session above a sub-agent's says it.
    if cx.spec.toolbox.task.is_some() {
        return;
    }
    for it in cx.spec.choices.prompts.faults.iter() {
        if cx.scratch.told_faults.insert(it.clone()) {
            cx.step.emit_notice(it);
        }
    }
}

/// Begins the calls that the prompt waits for.
fn fill(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, expanding: Expanding) -> Flow {
    for piece in &expanding.pieces {
        let (name, args) = match piece {
            Piece::Text(_) => continue,
            Piece::Shell(command) => (RUN_SHELL_COMMAND, json!({ "command": command })),
            Piece::File { path, .. } if path.ends_with('/') => (LIST_DIRECTORY, json!({ "dir_path": path })),
            Piece::File { path, .. } => (READ_FILE, json!({ "file_path": path })),
        };
        let call = ToolCall { id: CallId::from(cx.step.fresh_id("c")), name: name.to_owned(), args };
        let (scheduler, mut calls) = turn.calls(cx.step);
        scheduler.propose_aside(&mut calls, call);
    }
    let (scheduler, mut calls) = turn.calls(cx.step);
    let status = scheduler.advance(&mut calls);
    go_on(turn, cx, expanding, status)
}

impl Phase for Expanding {
    fn step(self: Box<Self>, turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, input: Input) -> Flow {
        let (scheduler, mut calls) = turn.calls(cx.step);
        let status = scheduler.on_input(&mut calls, input);
        go_on(turn, cx, *self, status)
    }

    fn leave(&mut self, _: &mut Step<'_>) {}
}

fn go_on(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, expanding: Expanding, status: BatchStatus) -> Flow {
    match status {
        BatchStatus::Open => Flow::wait(expanding),
        BatchStatus::Done => join(turn, cx, expanding),
        other => flow_of(cx.step, other),
    }
}

/// All have ended. A command that did not run ends the prompt: it was written for what that brings.
fn join(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, expanding: Expanding) -> Flow {
    let mut outcomes = turn.scheduler.take_aside().into_iter();
    turn.scheduler.clear();
    let mut prompt = String::new();
    for piece in expanding.pieces {
        let outcome = match &piece {
            Piece::Text(it) => Ok(it.clone()),
            Piece::Shell(_) | Piece::File { .. } => outcomes.next().unwrap_or_else(|| Ok(String::new())),
        };
        match (piece, outcome) {
            (_, Ok(text)) => prompt += &text,
            (Piece::File { path, written }, Err(error)) if is_absent(&error) => {
                let path = text::path_in_words(&path);
                cx.step.emit_notice(&format!(
                    "/{} names {path}, and continues without it: {}",
                    expanding.name, error.message
                ));
                prompt += &written;
            }
            (Piece::File { path, .. }, Err(error)) => {
                let why = format!("{} was not read. {}", text::path_in_words(&path), error.message);
                return refuse(cx, &expanding.name, &why);
            }
            (Piece::Shell(what) | Piece::Text(what), Err(error)) => {
                let what = text::first_line(&what, 200);
                return refuse(cx, &expanding.name, &format!("`{what}` did not run. {}", error.message));
            }
        }
    }
    let name = expanding.name;
    finish(turn, cx, format!("The command /{name} stands for this prompt of the user's:\n\n{prompt}"))
}

fn is_absent(error: &ToolError) -> bool {
    ABSENT.contains(&error.kind.as_str())
}

/// The model gets nothing of it.
fn refuse(cx: &mut TurnContext<'_, '_>, name: &str, why: &str) -> Flow {
    cx.step.log(Fact::Retracted {});
    Flow::report(format!("/{name} ends here, and the model was not asked: {}", text::end_sentence(why)))
}

fn finish(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, prompt: String) -> Flow {
    turn.transcript.prompt_text.clone_from(&prompt);
    send_message(cx.step, Speaker::Developer, vec![Part::text(prompt)], &[EXPANSION]);
    Flow::Next
}
