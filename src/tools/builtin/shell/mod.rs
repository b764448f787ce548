//! The tool `run_shell_command`: runs a command line and reports its output.

mod background;
mod completion;
mod denial_history;
pub mod limits;
mod live_output;
mod output;
mod output_log;
mod params;
mod report;
mod watch;

use std::{io, sync::Arc, time::Duration};

use serde_json::Value;

pub use background::{BackgroundProcess, BackgroundProcesses};

use self::{
    completion::Completion,
    denial_history::DenialHistory,
    limits::{LimitedCommand, TMP_IS_FULL, is_tmp_full, wait_until_passed},
    live_output::{LiveOutput, LiveStyle},
    output::Output,
    output_log::{OutputLog, RemainingProcess},
    params::ShellParams,
    report::ReportFacts,
    watch::{WatchEnd, WatchLimit, watch},
};
use super::{
    Builtin, Progress, Task, Terminals, ToolContext, paths,
    schema::{self, count, flag, text},
};
use castor_base::{
    content::Part,
    fs::BoxFuture,
    path::AbsPath,
    sandbox::{Confinement, Denial},
    terminal::{CommandLine, ObeyedFindings, RunningCommand, Terminal},
    tool::{
        BaseHash, Display, Preview, RUN_SHELL_COMMAND, Targets, ToolError, ToolKind, ToolOutput, ToolSpec, ToolTraits,
    },
};
use castor_hands::process::{
    Groups, OwnTerminal,
    command_group::{self, CommandGroup, GroupLimits},
    sandbox,
    table::Process,
};

/// Extra environment of commands: the caller's name, and that no user can answer a question.
pub const ENV: &[(&str, &str)] = &[
    ("CASTOR", "1"),
    ("GEMINI_CLI", "1"),
    ("TERM", "xterm-256color"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("EDITOR", "true"),
    ("VISUAL", "true"),
    ("GIT_EDITOR", "true"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", ""),
    ("SSH_ASKPASS", ""),
    ("GH_PROMPT_DISABLED", "1"),
    ("GCM_INTERACTIVE", "never"),
];

const DESCRIPTION: &str = "Runs a command line with `bash -c`, in a process group of its own, with no terminal and \
nothing on its standard input: commands that ask questions fail. Returns what it printed to stdout and stderr, in order, \
and `Exit Code`, `Signal`, `Background PIDs` and `Process Group PGID` where they say something. A command that prints \
nothing for long is ended; use quiet, non-interactive flags where there are any. For servers and watchers set \
`is_background` instead of appending `&`: the call returns at once and the output goes to a file. Commands may be \
sandboxed: of the home they see tools only; /tmp is the session's, also for file tools.";

const NOT_BACKGROUND: &str = "It was not left in the background: the configuration that it was let write is for this one call, \
                      which waited for its end.";

/// Whose, in a notice.
const CUT_SHORT: &str = "a command that was cut short";
const IN_BACKGROUND: &str = "a command in the background";

/// For the model.
const ASKED_BEFORE: &str = "The user was asked for this before in this session, and is not asked again.";

const NOT_SANDBOXED: &str = "It would run in the editor's terminal, where castor's sandbox does not hold it.";

/// The tool. All commands of the process share one list of groups.
#[derive(Clone, Debug)]
pub struct Shell {
    groups: Groups,
    background: BackgroundProcesses,
    asked: DenialHistory,
}

impl Shell {
    pub fn new(groups: Groups, background: BackgroundProcesses) -> Self {
        Self { groups, background, asked: DenialHistory::default() }
    }

    async fn execute(&self, params: &ShellParams, silence: Option<Duration>, ctx: &ToolContext) -> ToolOutput {
        let StartedCommand { mut running, note, confined, group } = match self.start(params, silence, ctx).await {
            Ok(it) => it,
            Err(error) => return ToolOutput::failed(start_error(&error)),
        };
        let screen = running.screen();
        let style = LiveStyle::of(screen.as_ref());
        if let Some(screen) = screen {
            (ctx.terminals.attach)(screen).await;
        }
        // What may write configuration ends with its call, and so its call waits for its end.
        let is_open = confined.as_ref().is_some_and(|it| !it.grant.config.is_empty());
        let delay = (params.background && !is_open).then_some(params.delay);
        let tmp = confined.as_ref().map(|it| it.own_folders.tmp.clone());
        let leader = running.pid().map(Process::now);
        let (folder, limits) = (params.real_dir.clone(), ctx.settings.shell_limits);
        let limited = LimitedCommand { leader, group, folder, tmp: tmp.clone(), limits };
        let until = WatchLimit { cancel: ctx.cancel.clone(), silence, delay, command: Some(limited.clone()) };
        let (mut output, mut live) = (Output::default(), LiveOutput::new(ctx.progress.clone(), style));
        let ending = match watch(&mut *running, &until, &mut output, &mut live).await {
            // The kernel may have been faster.
            WatchEnd::Exited(it) if it.code != Some(0) => {
                limited.limit_of_end().await.map_or(WatchEnd::Exited(it), WatchEnd::Stopped)
            }
            it => it,
        };
        if ending.is_ended() {
            tokio::spawn(report_findings(CUT_SHORT, running.final_findings(), ctx.background.notice.clone()));
        }
        let stayed = (params.background && is_open).then(|| NOT_BACKGROUND.to_owned());
        let (pid, text) = (running.pid(), output.text());
        let left = LeftCommand { line: &params.command, printed: &text, children: children(&ending), limited };
        let log = if is_still_running(&ending) { self.leave_in_background(running, left, ctx).await } else { None };
        let full = match (&ending, tmp) {
            (WatchEnd::Exited(_), Some(tmp)) => is_tmp_full(&tmp).await.then(|| TMP_IS_FULL.to_owned()),
            _ => None,
        };
        let note = [note, stayed, full].into_iter().flatten().reduce(|all, it| format!("{all}\n{it}"));
        let (command, cwd) = (params.command.clone(), params.real_dir.clone());
        let res = ReportFacts { ending, pid, text, log, note, confined, command, cwd }.report();
        self.ask_once(res, ctx)
    }

    /// Without a question that the session had before.
    fn ask_once(&self, mut output: ToolOutput, ctx: &ToolContext) -> ToolOutput {
        let is_known = |it: &mut Denial| !self.asked.is_new(&ctx.scratch, it);
        if output.denial.take_if(is_known).is_some() {
            output.content.push(Part::text(ASKED_BEFORE));
        }
        output
    }

    async fn start(
        &self,
        params: &ShellParams,
        silence: Option<Duration>,
        ctx: &ToolContext,
    ) -> io::Result<StartedCommand> {
        let line =
            CommandLine { text: &params.command, cwd: &params.real_dir, env: ENV, limit: output::MAX_BYTES, silence };
        let Terminals { client, draws_output: drawn, .. } = &ctx.terminals;
        let mut note = None;
        // What goes on after its call is ours alone: the client's terminals end with the call.
        if let (Some(client), false) = (client, params.background) {
            // An editor that does not answer must not hold a call that nobody wants any more.
            match ctx.cancel.run_until_cancelled(client.start(line)).await {
                Some(Ok(running)) => return Ok(StartedCommand { running, note, confined: None, group: None }),
                Some(Err(why)) => {
                    note =
                        Some(format!("The editor's terminal could not be used ({why}); the command ran without it."));
                }
                None => return Err(io::Error::new(io::ErrorKind::Interrupted, "the turn was cancelled")),
            }
        }
        let (groups, env, drawn) = (self.groups.clone(), ctx.env.clone(), *drawn && !params.background);
        let confined = ctx.confined.as_deref().map(|it| Arc::new(sandbox::current_confinement(it)));
        confined.iter().for_each(|it| self.asked.forget_granted(&ctx.scratch, &it.grant));
        let apart = confined.as_ref().and_then(|it| it.grant.isolation_reason.clone()).filter(|it| !it.is_empty());
        let note = [note, apart].into_iter().flatten().reduce(|all, it| format!("{all}\n{it}"));
        let group = new_group(ctx.settings.shell_limits.of_group()).await;
        let terminal = OwnTerminal { groups, env, use_pty: drawn, confined: confined.clone(), group: group.clone() };
        Ok(StartedCommand { running: terminal.start(line).await?, note, confined, group })
    }
}

impl Shell {
    /// Leaves what still runs to itself until the session is closed; returns where its output goes. Without a log it is
    /// read on all the same.
    async fn leave_in_background(
        &self,
        mut running: Box<dyn RunningCommand>,
        left: LeftCommand<'_>,
        ctx: &ToolContext,
    ) -> Option<AbsPath> {
        let (path, log) = match running.is_open() {
            true => OutputLog::create(&ctx.scratch, left.printed)
                .await
                .map_or((None, None), |(path, log)| (Some(path), Some(log))),
            false => (None, None),
        };
        let mut log = log;
        let told_of = report_findings(IN_BACKGROUND, running.final_findings(), ctx.background.notice.clone());
        let (pid, emptied) = (running.pid(), ctx.background.on_group_empty.clone());
        tokio::spawn(async move {
            told_of.await;
            if let Some(it) = pid {
                emptied(it).await;
            }
        });
        let pids = left.children.clone().unwrap_or_else(|| pid.into_iter().collect());
        let listed = self.background.add(ctx, &pids, left.line, path.as_ref());
        let mut completion = Some(Completion {
            command: left.line.to_owned(),
            pid,
            log: path.clone(),
            tell: ctx.background.completed.clone(),
            printed: String::new(),
            listed: listed.clone(),
        });
        let (closed, limited) = (ctx.background.session_closed.clone(), left.limited);
        tokio::spawn(async move {
            let reading = async {
                let left = output_log::log_output(&mut *running, &mut log, &mut completion).await;
                listed.note_end("it prints nothing more");
                if left == RemainingProcess::Somebody {
                    std::future::pending::<()>().await;
                }
            };
            let stopped = tokio::select! {
                biased;
                () = closed.cancelled() => None,
                why = wait_until_passed(limited) => Some(why),
                () = reading => return,
            };
            // What it says at its end is for nobody.
            _ = running.end().await;
            if let (Some(why), Some(log)) = (&stopped, &mut log) {
                log.write(&format!("\n[Stopped, {why}]\n")).await;
            }
            match (stopped, completion) {
                (Some(why), Some(it)) => it.report_stop(&why).await,
                _ => listed.note_end("it was ended with the session"),
            }
        });
        path
    }
}

/// A command that goes on when its call has returned.
struct LeftCommand<'a> {
    line: &'a str,
    printed: &'a str,
    /// It has ended itself, and these go on.
    children: Option<Vec<u32>>,
    limited: LimitedCommand,
}

/// A command under way, and what is to be said of how it came to be.
struct StartedCommand {
    running: Box<dyn RunningCommand>,
    note: Option<String>,
    /// What held it.
    confined: Option<Arc<Confinement>>,
    group: Option<Arc<CommandGroup>>,
}

/// Where the system lends one.
async fn new_group(limits: GroupLimits) -> Option<Arc<CommandGroup>> {
    let made = paths::run_blocking(move || command_group::lent()?.make(limits).ok());
    made.await.ok()?.map(Arc::new)
}

impl Builtin for Shell {
    fn spec(&self) -> ToolSpec {
        let parameters = schema::object(
            &["command"],
            [
                ("command", text("The command line, as bash reads it.")),
                (
                    "description",
                    text("What it does, for the user, in one short sentence: above all where the command is long."),
                ),
                (
                    "dir_path",
                    text("The folder to run in, absolute or relative to the workspace; the workspace when absent."),
                ),
                (
                    "is_background",
                    flag("Leave it running, for servers and watchers; it is ended together with the session."),
                ),
                (
                    "delay_ms",
                    count(
                        0,
                        "With is_background: how long to watch its first output, in milliseconds; 200 when absent.",
                    ),
                ),
            ],
        );
        ToolSpec {
            name: RUN_SHELL_COMMAND.into(),
            title: "Shell".into(),
            description: DESCRIPTION.into(),
            kind: ToolKind::Execute,
            traits: ToolTraits::RUNS,
            parameters,
        }
    }

    fn targets<'a>(&'a self, args: &'a Value, ctx: &'a ToolContext) -> Task<'a, Targets> {
        Box::pin(async {
            let (params, looker) = (ShellParams::read(args, ctx)?, ctx.clone());
            paths::run_blocking(move || params.targets(&looker)).await
        })
    }

    /// What the command alone does not say: where it would run, if not in the session's folder; and that no sandbox of
    /// ours holds it, if the client's terminal runs it.
    fn preview<'a>(&'a self, args: &'a Value, ctx: &'a ToolContext) -> Task<'a, Preview> {
        Box::pin(async {
            let params = ShellParams::read(args, ctx)?;
            let ours = params.is_ours(ctx);
            let elsewhere = ctx.roots.first() != Some(&params.real_dir);
            let notes = [
                elsewhere.then(|| format!("It would run in {}.", params.real_dir)),
                (!ours && ctx.confined.is_some()).then(|| NOT_SANDBOXED.to_owned()),
            ];
            let notes: Vec<String> = notes.into_iter().flatten().collect();
            let display = (!notes.is_empty()).then(|| Display::Text { text: notes.join("\n") });
            Ok(Preview { display, base: None })
        })
    }

    fn run<'a>(&'a self, args: &'a Value, _base: Option<&'a BaseHash>, ctx: &'a ToolContext) -> Task<'a, ToolOutput> {
        Box::pin(async {
            let params = ShellParams::read(args, ctx)?;
            let silence = Some(ctx.settings.shell_inactivity_s).filter(|it| *it > 0).map(Duration::from_secs);
            Ok(self.execute(&params, silence, ctx).await)
        })
    }
}

/// The call has returned when that is known.
async fn report_findings(whose: &str, found: BoxFuture<'static, ObeyedFindings>, notice: Progress) {
    if let Some(it) = found.await.in_words(whose) {
        notice(it).await;
    }
}

/// Whether a process is left when the call has returned.
fn is_still_running(ending: &WatchEnd) -> bool {
    match ending {
        WatchEnd::Running => true,
        WatchEnd::Exited(exit) => !exit.left_running.is_empty(),
        _ => false,
    }
}

fn children(ending: &WatchEnd) -> Option<Vec<u32>> {
    match ending {
        WatchEnd::Exited(exit) => Some(exit.left_running.clone()),
        _ => None,
    }
}

fn start_error(error: &io::Error) -> ToolError {
    let message = match error.kind() {
        io::ErrorKind::ArgumentListTooLong => {
            "The command is too long for the system. Write it to a file and run that.".to_owned()
        }
        _ => format!("The command could not be started: {error}"),
    };
    ToolError::new("shell_execute_error", message)
}

#[cfg(test)]
mod tests;
