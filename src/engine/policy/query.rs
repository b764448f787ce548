//! The policy query: a tool call with its origin, its targets and what the sandbox can hold.

use serde_json::Value;

use super::names::current_name;
use castor_base::{
    check::CheckFinding,
    log::{Grant, Mode},
    path::AbsPath,
    tool::{Access, RUN_SHELL_COMMAND, Targets, ToolKind},
};

/// The subject of a policy decision.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    pub tool: &'a str,
    pub kind: ToolKind,
    pub args: &'a Value,
    pub targets: &'a Targets,
    pub mode: Mode,
    /// The user can be asked.
    pub interactive: bool,
    /// What the user allowed for this session.
    pub grants: &'a [Grant],
    /// The folders of the session, canonical.
    pub roots: &'a [AbsPath],
    pub origin: CallOrigin<'a>,
    /// What safety checkers said of it.
    pub checker_verdicts: &'a [CheckerVerdict],
    /// The session's folder of plans, canonical.
    pub plans: Option<&'a AbsPath>,
    pub sandbox: SandboxFacts,
}

impl<'a> Query<'a> {
    /// A call of a tool of castor's own in the default mode, of a session that allowed nothing and has no sandbox.
    pub fn new(tool: &'a str, kind: ToolKind, args: &'a Value, targets: &'a Targets) -> Self {
        Self {
            tool,
            kind,
            args,
            targets,
            mode: Mode::Default,
            interactive: true,
            grants: &[],
            roots: &[],
            origin: CallOrigin::default(),
            checker_verdicts: &[],
            plans: None,
            sandbox: SandboxFacts::default(),
        }
    }

    /// The subjects of the decision: the files of a patch, each by itself; else the call as it is.
    pub fn subjects(&self) -> impl Iterator<Item = Self> {
        let parts = self.targets.parts.iter().map(|it| Self {
            tool: &it.tool,
            args: &it.args,
            targets: &it.targets,
            origin: CallOrigin { called: Some(self.tool), ..self.origin },
            ..*self
        });
        parts.chain(self.targets.parts.is_empty().then_some(*self))
    }

    /// Tells whether all that the call touches are Markdown files in the folder of plans, where they really are.
    pub fn is_plan_file(&self) -> bool {
        let paths = &self.targets.paths;
        let Some(plans) = self.plans.filter(|_| self.origin.server.is_none() && !paths.is_empty()) else {
            return false;
        };
        let is_markdown = |name: &str| name.rsplit_once('.').is_some_and(|(_, it)| it.eq_ignore_ascii_case("md"));
        paths.iter().all(|it| {
            let name = it.real.as_path().file_name().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
            it.access == Access::Write && it.real != *plans && it.real.is_within(plans) && is_markdown(&name)
        })
    }

    /// Tells whether it is an edit, and all that it writes lies in the session's own folder for temporary files. Not
    /// where only plans are written.
    pub fn writes_temporary_only(&self) -> bool {
        let mut written = self.targets.paths.iter().filter(|it| it.access == Access::Write).peekable();
        let is_edit = self.kind == ToolKind::Edit && self.origin.server.is_none() && self.mode != Mode::Plan;
        is_edit && written.peek().is_some() && written.all(|it| it.temporary)
    }

    /// The command of a call that runs one.
    ///
    /// # Errors
    /// Its arguments say another than its targets, or none.
    pub fn command(&self) -> Option<Result<&'a str, &'static str>> {
        let argument = self.args.get("command").and_then(Value::as_str);
        let is_shell = current_name(self.tool) == RUN_SHELL_COMMAND;
        match (self.targets.command.as_deref(), argument) {
            (Some(target), Some(argument)) if is_shell && target.trim() != argument.trim() => {
                Some(Err("its arguments and its targets name different commands"))
            }
            (Some(target), _) => Some(Ok(target)),
            (None, Some(argument)) if is_shell => Some(Ok(argument)),
            (None, _) if is_shell => Some(Err("it names no command")),
            (None, _) => None,
        }
    }
}

/// The tool's MCP server, if any, and the caller.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallOrigin<'a> {
    /// The MCP server that the tool comes from, as the configuration names it.
    pub server: Option<&'a str>,
    pub annotations: Option<Annotations<'a>>,
    /// Of what a server says of its tool, all of it.
    pub digest: Option<&'a str>,
    /// The sub-agent that calls.
    pub subagent: Option<&'a str>,
    /// The tool that was called, where the query's only stands for what the call does to one file.
    pub called: Option<&'a str>,
}

/// A server's annotations of its tool.
#[derive(Clone, Copy, Debug)]
pub struct Annotations<'a> {
    pub members: &'a Value,
    /// The user trusts the server. Else its words can make a decision stricter, never milder.
    pub trusted: bool,
}

/// A checker's finding by its place in the rules, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckerVerdict {
    pub checker: usize,
    /// Which of the subjects of the decision it is about.
    pub subject: usize,
    pub result: Result<CheckFinding, String>,
}

/// Facts about the sandbox, and whether changes can be undone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SandboxFacts {
    /// Commands run in one.
    pub available: bool,
    /// It holds by mounts: what is secret is masked, and what only looks runs with everything read-only.
    pub mounts: bool,
    pub trusted: bool,
    /// The folder is trusted or brings nothing to trust, and its repository's configuration names no programs.
    pub plain_repository: bool,
    /// A whole checkpoint can be taken before a call.
    pub undoable: bool,
    /// A command of this session could read secrets of the workspace.
    pub exposed: bool,
}

impl SandboxFacts {
    /// One that lacks nothing.
    pub const WHOLE: Self =
        Self { available: true, mounts: true, trusted: true, plain_repository: true, undoable: true, exposed: false };

    /// Tells whether commands of yolo have the network unasked: secrets or the network, never both.
    pub fn gives_network(&self) -> bool {
        self.available && self.mounts && !self.exposed
    }
}

/// Whether the mode `auto` is on offer.
///
/// # Errors
/// What is missing, for people.
pub fn check_auto_available(facts: SandboxFacts) -> Result<(), &'static str> {
    match facts {
        SandboxFacts { trusted: false, plain_repository: false, .. } => Err("the mode auto needs a trusted folder"),
        SandboxFacts { available: false, .. } => {
            Err("the mode auto needs a sandbox, and commands run without one here")
        }
        SandboxFacts { mounts: false, .. } => {
            Err("the mode auto needs a sandbox with mounts, which this system does not allow; castor doctor says more")
        }
        SandboxFacts { undoable: false, .. } => {
            Err("the mode auto needs checkpoints, and general.checkpointing.enabled is false in the settings")
        }
        _ => Ok(()),
    }
}
