//! The tool `write_todos`: the model's task list, which the client shows as a plan.

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::record::{PLAN_EVENT, Step};
use castor_base::{
    event::EventKind,
    tool::{ToolError, ToolKind, ToolOutput, ToolSpec, ToolTraits},
};

pub const NAME: &str = "write_todos";

/// Most entries of a list, and most characters of one: everything that enters the context has a cap.
const MAX_TODOS: usize = 200;
const MAX_CHARS: usize = 2_000;

#[derive(Deserialize)]
struct Todo {
    description: String,
    status: Status,
}

#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Pending,
    InProgress,
    Completed,
    Cancelled,
    Blocked,
}

/// What is wrong with the model's call.
#[derive(Debug, Error)]
enum CallError {
    #[error("write_todos needs `todos`, a list of {{description, status}}.")]
    NoTodos,
    #[error("write_todos: `todos` is not valid: {0}.")]
    NotTodos(serde_json::Error),
    #[error("write_todos takes at most {MAX_TODOS} entries, not {0}.")]
    TooMany(usize),
    #[error("write_todos: each description has 1 to {MAX_CHARS} characters.")]
    DescriptionLength,
    #[error("write_todos: only one entry can be in_progress at a time.")]
    SeveralInProgress,
}

pub fn spec() -> ToolSpec {
    /// One for all sessions.
    static SPEC: LazyLock<ToolSpec> = LazyLock::new(build);
    SPEC.clone()
}

fn build() -> ToolSpec {
    let entry = json!({
        "type": "object",
        "properties": {
            "description": { "type": "string" },
            "status": { "type": "string", "enum": ["pending", "in_progress", "completed", "cancelled", "blocked"] }
        },
        "required": ["description", "status"]
    });
    ToolSpec {
        name: NAME.into(),
        title: "WriteTodos".into(),
        description: "Keeps the list of steps for the current task, which the user sees. Each call replaces the whole \
                      list. At most one entry is in_progress."
            .into(),
        kind: ToolKind::Think,
        traits: ToolTraits {
            instructions: Some("For work of several steps keep a list with write_todos and keep it current."),
            ..ToolTraits::TELLS
        },
        parameters: json!({
            "type": "object",
            "properties": { "todos": { "type": "array", "items": entry } },
            "required": ["todos"]
        })
        .into(),
    }
}

pub fn run(step: &mut Step<'_>, args: &Map<String, Value>) -> ToolOutput {
    let todos = match read(args) {
        Ok(it) => it,
        Err(why) => return ToolOutput::failed(ToolError::new("invalid_tool_params", why.to_string())),
    };
    let entries: Vec<Value> = todos.iter().filter_map(plan_entry).collect();
    step.emit_event(EventKind::Custom { kind: PLAN_EVENT.to_owned(), data: json!({ "entries": entries }) });
    if todos.is_empty() {
        return ToolOutput::text("Successfully cleared the todo list.");
    }
    let mut text = String::from("Successfully updated the todo list. The current list is now:");
    for (idx, todo) in todos.iter().enumerate() {
        text += &format!("\n{}. [{}] {}", idx + 1, name(todo.status), todo.description);
    }
    ToolOutput::text(text)
}

fn read(args: &Map<String, Value>) -> Result<Vec<Todo>, CallError> {
    let todos = args.get("todos").ok_or(CallError::NoTodos)?;
    let todos: Vec<Todo> = Vec::deserialize(todos).map_err(CallError::NotTodos)?;
    if todos.len() > MAX_TODOS {
        return Err(CallError::TooMany(todos.len()));
    }
    if todos.iter().any(|it| it.description.trim().is_empty() || it.description.chars().count() > MAX_CHARS) {
        return Err(CallError::DescriptionLength);
    }
    if todos.iter().filter(|it| it.status == Status::InProgress).count() > 1 {
        return Err(CallError::SeveralInProgress);
    }
    Ok(todos)
}

/// The protocol's plan knows no cancelled entries: they leave it. Blocked ones wait.
fn plan_entry(todo: &Todo) -> Option<Value> {
    let status = match todo.status {
        Status::Cancelled => return None,
        Status::Blocked => "pending",
        it => name(it),
    };
    Some(json!({ "content": todo.description, "priority": "medium", "status": status }))
}

fn name(status: Status) -> &'static str {
    match status {
        Status::Pending => "pending",
        Status::InProgress => "in_progress",
        Status::Completed => "completed",
        Status::Cancelled => "cancelled",
        Status::Blocked => "blocked",
    }
}
