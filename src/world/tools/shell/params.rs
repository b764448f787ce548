//! The arguments of a shell call: checked, with words that help a model to do better.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::{
    base::{
        guarded::SECRETS,
        path::AbsPath,
        tool::{Access, Beyond, Repository, TargetPath, Targets, ToolError},
    },
    world::{
        disk,
        process::sandbox::repository,
        tools::{
            ToolContext, git_runs,
            leads::{self, Found, Places},
            saved,
        },
    },
};

/// A longer command is shown by its description, where it has one. In characters.
const TITLE_LEN: usize = 150;
/// How long a background command is watched before the call returns.
const DELAY_MS: u64 = 200;
const MAX_DELAY_MS: u64 = 60_000;

#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    pub command: String,
    pub description: Option<String>,
    /// As the call names it.
    pub dir: AbsPath,
    /// Where that really is.
    pub real_dir: AbsPath,
    pub background: bool,
    pub delay: Duration,
}

impl Params {
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
        let dir = dir.map_or_else(|| ctx.cwd.clone(), |it| ctx.place(it));
        Ok(Self {
            command: command.to_owned(),
            description: text(args, "description")?.map(str::to_owned),
            real_dir: real_dir(&dir)?,
            dir,
            background: flag(args, "is_background")?,
            delay: Duration::from_millis(number(args, "delay_ms")?.unwrap_or(DELAY_MS).min(MAX_DELAY_MS)),
        })
    }

    /// Whether it runs in a process of ours. The client's terminals hold nothing.
    pub fn is_ours(&self, ctx: &ToolContext) -> bool {
        self.background || ctx.terminals.client.is_none()
    }

    /// Blocks: it looks where names lead, and for names of secrets.
    pub fn targets(self, ctx: &ToolContext) -> Targets {
        let roots = &ctx.roots;
        let in_roots = roots.iter().any(|it| self.real_dir.is_within(it));
        // What a command does where it runs is not known: the worst is assumed.
        let write = |path, real| TargetPath { path, real, access: Access::Write, line: None, in_roots, named: false };
        let repository = bare_repository(&self.real_dir).map(|it| write(it.clone(), it));
        // In a folder of secrets every name is one of a secret.
        let is_told = !in_roots || SECRETS.find(self.real_dir.as_path()).is_some();
        let home = ctx.home();
        let places = Places { roots, scratch: Some(&ctx.scratch), home: home.as_ref() };
        let Found { leads, secrets, tracked, undone, unseen } = leads::look(&ctx.known.words, &self.real_dir, &places);
        // `git -C sub status` is of another repository, perhaps.
        let dirs = ctx.known.words.dirs.iter().filter_map(|it| disk::real_path(&self.real_dir.join(it)).ok());
        let made = ctx.known.words.makes.iter().map(|it| self.real_dir.join(it));
        let absent = made.filter(is_absent).collect();
        let git_runs = std::iter::once(self.real_dir.clone()).chain(dirs).find_map(|it| git_runs::look(&it));
        let confined = ctx.confined.as_deref().filter(|_| self.is_ours(ctx));
        let named = ctx.known.words.repositories.iter().map(String::as_str);
        let repositories = std::iter::once("").chain(named).filter_map(|it| {
            let git = repository::held_around(confined?, &disk::real_path(&self.real_dir.join(it)).ok()?)?;
            Some(Repository { dir: it.to_owned(), git })
        });
        let repositories = repositories.collect();
        let outputs = confined.map_or_else(Vec::new, |_| leads::outputs(&ctx.known.words, &self.real_dir, &places));
        let long = self.command.chars().nth(TITLE_LEN).is_some();
        let description = self.description.filter(|it| long && !it.trim().is_empty());
        Targets {
            title: description.unwrap_or_else(|| self.command.clone()),
            paths: if is_told { vec![write(self.dir, self.real_dir)] } else { Vec::from_iter(repository) },
            command: Some(self.command),
            secrets,
            leads,
            tracked,
            absent,
            undone,
            git_runs,
            beyond: Box::new(Beyond { repositories, outputs, reworked: None, far: None }),
            unseen,
        }
    }
}

/// Whether nothing is there, nor a link that leads elsewhere.
fn is_absent(path: &AbsPath) -> bool {
    let missing = disk::metadata(path).is_err_and(|it| it.kind() == std::io::ErrorKind::NotFound);
    missing && disk::real_place(path.as_path()).is_ok_and(|it| it == *path)
}

/// The `HEAD` that makes the folder, or one above it, a repository to git though nobody named it `.git`: it may come
/// with a project, and its configuration names programs that git runs.
fn bare_repository(dir: &AbsPath) -> Option<AbsPath> {
    for dir in std::iter::successors(Some(dir.clone()), AbsPath::parent) {
        let has = |name: &str| disk::metadata(&dir.join(name)).is_ok();
        if has(".git") {
            return None;
        }
        if has("HEAD") && has("refs") {
            return Some(dir.join("HEAD"));
        }
    }
    None
}

fn real_dir(dir: &AbsPath) -> Result<AbsPath, ToolError> {
    saved::real_dir(dir).map_err(|error| match error.kind() {
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

#[cfg(test)]
mod tests {
    use super::is_absent;
    use crate::world::tools::testing::Ground;

    #[test]
    fn a_link_to_nothing_is_there() {
        let ground = Ground::new(&[("a/.env", "x"), ("b/x", "x")]);
        ground.link("../../out/.env", "b/.env");
        let absent = |name: &str| is_absent(&ground.ctx().cwd.join(name));
        assert_eq!(["a/.env", "b/.env", ".env", "a/.env/x"].map(absent), [false, false, true, false]);
    }
}
