//! The tool `list_background_processes`: what commands of the session left running.

use serde_json::Value;

use crate::builtin::{
    Builtin, Task, ToolContext, schema,
    shell::{BackgroundProcess, BackgroundProcesses},
};
use castor_base::{
    text::wrap_untrusted,
    tool::{BaseHash, Targets, ToolError, ToolKind, ToolOutput, ToolSpec, ToolTraits},
};

pub struct ListBackgroundProcesses {
    processes: BackgroundProcesses,
}

impl ListBackgroundProcesses {
    pub fn new(processes: BackgroundProcesses) -> Self {
        Self { processes }
    }
}

impl Builtin for ListBackgroundProcesses {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "list_background_processes".into(),
            title: "ListBackgroundProcesses".into(),
            description: "Lists commands of this session that were left in the background.".into(),
            kind: ToolKind::Read,
            traits: ToolTraits::LOOKS,
            parameters: schema::object(&[], []),
        }
    }

    fn targets<'a>(&'a self, _args: &'a Value, _ctx: &'a ToolContext) -> Task<'a, Targets> {
        Box::pin(async { Ok(Targets { title: "Background processes".to_owned(), ..Targets::default() }) })
    }

    fn run<'a>(&'a self, _args: &'a Value, _base: Option<&'a BaseHash>, ctx: &'a ToolContext) -> Task<'a, ToolOutput> {
        Box::pin(async { Ok::<_, ToolError>(list(&self.processes.of_session(ctx))) })
    }
}

fn list(all: &[BackgroundProcess]) -> ToolOutput {
    let lines: Vec<String> =
        all.iter().map(|it| format!("- PID {} ({}): `{}`", it.pid, it.status(), it.command)).collect();
    let text = wrap_untrusted(&lines.join("\n")).unwrap_or_else(|| "Nothing was left in the background.".to_owned());
    ToolOutput::told(text, format!("{} processes", all.len()))
}
