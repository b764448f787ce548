//! The tool `exit_plan_mode`: reads the plan for the user's review. The engine handles the answer.

use serde_json::Value;

use crate::builtin::{
    Builtin, Task, ToolContext,
    params::{CallArguments, invalid},
    paths,
    schema::{self, text},
    texts::text_file,
};
use castor_base::{
    path::AbsPath,
    tool::{
        Access, BaseHash, Display, EXIT_PLAN_MODE, Preview, Targets, ToolError, ToolKind, ToolOutput, ToolSpec,
        ToolTraits,
    },
};
use castor_hands::disk;

/// The folder of plans below the session's own.
const FOLDER: &str = "plans";

pub struct ExitPlanMode;

impl Builtin for ExitPlanMode {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: EXIT_PLAN_MODE.into(),
            title: "ExitPlanMode".into(),
            description:
                "Has the user review the plan, which ends plan mode if they accept it. The plan is a Markdown \
                          file in the folder of plans."
                    .into(),
            kind: ToolKind::SwitchMode,
            traits: ToolTraits::EXITS_PLAN,
            parameters: schema::object(&["plan_filename"], [("plan_filename", text("Name of the plan's file."))]),
        }
    }

    fn targets<'a>(&'a self, args: &'a Value, ctx: &'a ToolContext) -> Task<'a, Targets> {
        Box::pin(async move {
            let path = plan_of(args, ctx)?;
            let target = paths::resolve_target(ctx, &path, Access::Read, None).await?;
            let folder = ctx.scratch.join(FOLDER);
            let real_folder = paths::run_blocking(move || disk::real_path(&folder).unwrap_or(folder)).await?;
            if !target.real.is_within(&real_folder) {
                let why = format!(
                    "Access denied: plan path ({path}) must be within the designated plans directory ({real_folder})."
                );
                return Err(ToolError::new("invalid_tool_params", why));
            }
            Ok(Targets {
                title: format!("Plan {}", path.relative_to(&real_folder)),
                paths: vec![target],
                ..Targets::default()
            })
        })
    }

    fn preview<'a>(&'a self, args: &'a Value, ctx: &'a ToolContext) -> Task<'a, Preview> {
        Box::pin(async move {
            let path = plan_of(args, ctx)?;
            let bytes = text_file::load(ctx, &path).await?.bytes;
            let bytes = bytes.ok_or_else(|| {
                let why = format!("Plan file does not exist: {path}. Write the plan there before calling this tool.");
                ToolError::new("file_not_found", why)
            })?;
            let plan = String::from_utf8_lossy(&bytes).into_owned();
            if plan.trim().is_empty() {
                return Err(invalid(format!(
                    "Plan file is empty: {path}. Write the plan there before calling this tool."
                )));
            }
            Ok(Preview { display: Some(Display::Text { text: plan }), base: None })
        })
    }

    /// The engine asks in its place: it is never run.
    fn run<'a>(&'a self, _: &'a Value, _: Option<&'a BaseHash>, _: &'a ToolContext) -> Task<'a, ToolOutput> {
        Box::pin(async { Err(ToolError::new("execution_failed", "A plan is reviewed, not run.")) })
    }
}

fn plan_of(args: &Value, ctx: &ToolContext) -> Result<AbsPath, ToolError> {
    let name = CallArguments::of(args)?.text("plan_filename")?.trim();
    match name.trim_start_matches("./").trim_start_matches("plans/") {
        "" => Err(invalid("The 'plan_filename' parameter must be non-empty.".to_owned())),
        name => Ok(ctx.scratch.join(FOLDER).join(name)),
    }
}
