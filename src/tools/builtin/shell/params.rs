//! Arguments of `run_shell_command`, with errors that help a model.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::builtin::{ToolContext, paths, private_files};
use castor_base::{
    guarded_names::SECRETS,
    path::AbsPath,
    tool::{Access, TargetPath, Targets, ToolError},
};

/// A longer command is shown by its description, where it has one. In characters.
const TITLE_LEN: usize = 150;
/// How long a background command is watched before the call returns.
const DELAY_MS: u64 = 200;
const MAX_DELAY_MS: u64 = 60_000;

#[derive(Clone, Debug, PartialEq)]
pub struct ShellParams {
    pub command: String,
    pub description: Option<String>,
    /// As the call names it.
    pub dir: AbsPath,
    /// Where that really is.
    pub real_dir: AbsPath,
    pub background: bool,
    pub delay: Duration,
}

impl ShellParams {
    pub fn read(args: &Value, ctx: &ToolContext) -> Result<Self, ToolError> {
        let args = args.as_object().ok_or_else(|| invalid("The arguments must be an object."))?;
        let command = text(args, "command")?.ok_or_else(|| invalid("`command` is required."))?;
        if command.trim().is_empty() {
            return Err(invalid("`command` must not be empty."));
        }
        if command.contains('\0') {
            return Err(invalid("`command` must not contain NUL characters."));
        }
        let dir = text(args, "dir_path")?.filter(|it| !it.is_empty());
        let dir = dir.map_or_else(|| ctx.cwd.clone(), |it| ctx.resolve_path(it));
        Ok(Self {
            command: command.to_owned(),
            description: text(args, "description")?.map(str::to_owned),
            real_dir: real_dir(ctx, &dir)?,
            dir,
            background: flag(args, "is_background")?,
            delay: Duration::from_millis(number(args, "delay_ms")?.unwrap_or(DELAY_MS).min(MAX_DELAY_MS)),
        })
    }

    /// Whether it runs in a process of ours. The client's terminals hold nothing.
    pub fn is_ours(&self, ctx: &ToolContext) -> bool {
        self.background || ctx.terminals.client.is_none()
    }

    /// What it says of itself. What a command does where it runs is not known: the worst is assumed.
    pub fn targets(self, ctx: &ToolContext) -> Targets {
        let temporary = paths::is_temporary(ctx, &self.real_dir);
        let in_roots = temporary || ctx.roots.iter().any(|it| self.real_dir.is_within(it));
        // In a folder of secrets every name is one of a secret.
        let is_told = !in_roots || SECRETS.find(self.real_dir.as_path()).is_some();
        let (path, real, access) = (self.dir, self.real_dir, Access::Write);
        let dir = TargetPath { real, in_roots, temporary, ..TargetPath::in_root(path, access) };
        let long = self.command.chars().nth(TITLE_LEN).is_some();
        let description = self.description.filter(|it| long && !it.trim().is_empty());
        Targets {
            title: description.unwrap_or_else(|| self.command.clone()),
            paths: Vec::from_iter(is_told.then_some(dir)),
            command: Some(self.command),
            ..Targets::default()
        }
    }
}

fn real_dir(ctx: &ToolContext, dir: &AbsPath) -> Result<AbsPath, ToolError> {
    let real = paths::real_path(ctx, dir).unwrap_or_else(|_| dir.clone());
    private_files::real_dir(&real).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            ToolError::new("file_not_found", format!("Directory not found: {dir}. `dir_path` must be a folder."))
        }
        std::io::ErrorKind::NotADirectory => {
            ToolError::new("path_is_not_a_directory", format!("`dir_path` is not a directory: {dir}"))
        }
        std::io::ErrorKind::PermissionDenied => {
            ToolError::new("permission_denied", format!("Permission denied: {dir}"))
        }
        _ => ToolError::new("invalid_tool_params", format!("`dir_path` cannot be used: {dir}: {error}")),
    })
}

/// Models often write null for what they leave out.
fn present<'a>(args: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    args.get(name).filter(|it| !it.is_null())
}

fn text<'a>(args: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, ToolError> {
    let Some(value) = present(args, name) else { return Ok(None) };
    value.as_str().map(Some).ok_or_else(|| invalid(format!("`{name}` must be a string, not {}.", kind_of(value))))
}

fn flag(args: &Map<String, Value>, name: &str) -> Result<bool, ToolError> {
    let Some(value) = present(args, name) else { return Ok(false) };
    value.as_bool().ok_or_else(|| invalid(format!("`{name}` must be true or false, not {}.", kind_of(value))))
}

fn number(args: &Map<String, Value>, name: &str) -> Result<Option<u64>, ToolError> {
    let Some(value) = present(args, name) else { return Ok(None) };
    let wrong = || invalid(format!("`{name}` must be a whole number of milliseconds, not {}.", kind_of(value)));
    value.as_u64().map(Some).ok_or_else(wrong)
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(it) if it.is_u64() => "a number",
        Value::Number(it) if it.is_i64() => "a negative number",
        Value::Number(_) => "a fraction",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn invalid(message: impl Into<String>) -> ToolError {
    ToolError::new("invalid_tool_params", message)
}
