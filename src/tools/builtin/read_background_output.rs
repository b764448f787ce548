//! The tool `read_background_output`: the end of what a command in the background printed.

use std::time::Duration;

use serde_json::Value;
use tokio::time::sleep;

use crate::builtin::{
    Builtin, Task, ToolContext,
    params::{CallArguments, invalid},
    paths, private_files,
    schema::{self, count},
    shell::{BackgroundProcess, BackgroundProcesses},
};
use castor_base::{
    text::wrap_untrusted,
    tool::{BaseHash, Targets, ToolError, ToolKind, ToolOutput, ToolSpec, ToolTraits},
};

/// What is looked at of an output, in bytes: its end.
const MAX_BYTES: u64 = 32 << 10;
const LINES: usize = 100;
/// The longest wait.
const MAX_DELAY_MS: u64 = 60_000;

pub struct ReadBackgroundOutput {
    processes: BackgroundProcesses,
}

impl ReadBackgroundOutput {
    pub fn new(processes: BackgroundProcesses) -> Self {
        Self { processes }
    }

    /// Of this session alone.
    fn find(&self, call: &Call, ctx: &ToolContext) -> Result<BackgroundProcess, ToolError> {
        self.processes.find(ctx, call.pid).ok_or_else(|| {
            let why = format!("No command that this session left in the background has the PID {}.", call.pid);
            ToolError::new("background_process_not_found", why)
        })
    }
}

struct Call {
    pid: usize,
    lines: usize,
    delay: Duration,
}

impl Call {
    fn parse(args: &Value) -> Result<Self, ToolError> {
        let params = CallArguments::of(args)?;
        let missing = || invalid("params must have required property 'pid'");
        let delay_ms = params.count("delay_ms", 0)?.and_then(|it| u64::try_from(it).ok()).unwrap_or_default();
        Ok(Self {
            pid: params.count("pid", 1)?.ok_or_else(missing)?,
            lines: params.count("lines", 1)?.unwrap_or(LINES),
            delay: Duration::from_millis(delay_ms.min(MAX_DELAY_MS)),
        })
    }
}

impl Builtin for ReadBackgroundOutput {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "read_background_output".into(),
            title: "ReadBackgroundOutput".into(),
            description: "Reads the end of what a command in the background printed.".into(),
            kind: ToolKind::Read,
            traits: ToolTraits::LOOKS,
            parameters: schema::object(
                &["pid"],
                [
                    ("pid", count(1, "Of the command.")),
                    ("lines", count(1, "Last lines (default 100).")),
                    ("delay_ms", count(0, "How long to wait first.")),
                ],
            ),
        }
    }

    fn targets<'a>(&'a self, args: &'a Value, ctx: &'a ToolContext) -> Task<'a, Targets> {
        Box::pin(async move {
            let call = Call::parse(args)?;
            let command = self.find(&call, ctx).map_or_else(|_| String::new(), |it| format!(": {}", it.command));
            Ok(Targets { title: format!("Output of PID {}{command}", call.pid), ..Targets::default() })
        })
    }

    fn run<'a>(&'a self, args: &'a Value, _base: Option<&'a BaseHash>, ctx: &'a ToolContext) -> Task<'a, ToolOutput> {
        Box::pin(async move {
            let call = Call::parse(args)?;
            self.find(&call, ctx)?;
            if ctx.cancel.run_until_cancelled(sleep(call.delay)).await.is_none() {
                return Err(ToolError::new("cancelled", "The wait was cancelled."));
            }
            let process = self.find(&call, ctx)?;
            paths::run_blocking(move || read(&process, call.lines)).await?
        })
    }
}

fn read(process: &BackgroundProcess, lines: usize) -> Result<ToolOutput, ToolError> {
    let head = format!("PID {} ({}): `{}`", process.pid, process.status(), process.command);
    let Some(log) = &process.log else { return Ok(ToolOutput::text(format!("{head}\nIt can print nothing."))) };
    let failed = |it: std::io::Error| ToolError::new("background_output_lost", format!("{log} cannot be read: {it}"));
    let (bytes, mut is_cut) = private_files::read_tail(log.as_path(), MAX_BYTES).map_err(failed)?;
    let text = String::from_utf8_lossy(&bytes);
    let all: Vec<&str> = text.lines().collect();
    // The first one may be half a line.
    let from = all.len().saturating_sub(lines).max(usize::from(is_cut));
    is_cut |= from > 0;
    let shown = all.get(from..).unwrap_or_default();
    let said = wrap_untrusted(&shown.join("\n")).unwrap_or_else(|| "(no output yet)".to_owned());
    let whole = if is_cut { format!("\nAll of its output: {log}") } else { String::new() };
    Ok(ToolOutput::told(format!("{head}\n{said}{whole}"), format!("{} lines", shown.len())))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{MAX_BYTES, ReadBackgroundOutput};
    use crate::builtin::{shell::BackgroundProcesses, testing::ToolFixture};

    #[test]
    fn the_end_of_an_output_is_read_of_the_session_alone() {
        let fixture = ToolFixture::new(&[("a.log", "one\ntwo\nthree\n"), ("b.log", "")]);
        let processes = BackgroundProcesses::default();
        let (tool, ctx) = (ReadBackgroundOutput::new(processes.clone()), fixture.ctx());
        processes.add(&ctx, &[7], "serve", Some(&fixture.cwd.join("a.log")));
        processes.add(&ctx, &[8], "quiet", Some(&fixture.cwd.join("b.log"))).note_end("exit code 1");
        processes.add(&ctx, &[9], "linked", Some(&fixture.cwd.join("c.log")));
        fixture.link("a.log", "c.log");
        let read = |args: serde_json::Value| fixture.result_text(&tool, &args);
        assert_eq!(
            read(json!({"pid": 7, "lines": 2})),
            "PID 7 (running): `serve`\n<untrusted_context>\ntwo\nthree\n</untrusted_context>\nAll of its output: $W/a.log"
        );
        assert_eq!(read(json!({"pid": 8})), "PID 8 (ended: exit code 1): `quiet`\n(no output yet)");
        assert!(read(json!({"pid": 9})).starts_with("background_output_lost"));
        assert!(read(json!({"pid": 10})).starts_with("background_process_not_found"));
        assert!(read(json!({})).contains("'pid'"));
        fixture.write("a.log", "0123456\n".repeat(MAX_BYTES as usize / 4).as_bytes());
        let text = read(json!({"pid": 7, "lines": 1_000_000}));
        assert!(text.contains("All of its output") && text.len() < MAX_BYTES as usize + 500);
    }
}
