//! Jobs of the loop become calls on the world; each call answers with an event, whatever becomes of it.

use std::{
    fs::File,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, OnceLock},
};

use futures_util::FutureExt;
use tokio::sync::mpsc::{Sender, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Span};

use crate::{
    app::{
        checkpoint_tasks,
        effect_task::EffectTask,
        event::Event,
        event_loop::unix_ms,
        hooks,
        jobs::{EffectJob, Job, Workers},
        panics,
        pending_chores::{self, FileWrite},
        redact_output,
        session_resources::SessionResources,
        tasks::Tools,
        traces,
        worker::Worker,
    },
    base::{
        check::Check,
        content::Part,
        fs::BoxFuture,
        hook::{HookEnd, HookReport, HookRun},
        memory::MemoryFile,
        model::{Chunk, Failure, FailureKind, ModelRequest},
        path::AbsPath,
        tool::{Access, BaseHash, Targets, ToolCall, ToolError, ToolKind, ToolOutput},
    },
    engine::step::{CallHold, Effect, Input},
    world::{
        self, checkers, disk,
        mcp::{self, HostHandles, ServerEvent, ServerIdentity},
        models::Sink,
        process::{Groups, sandbox},
        redaction::Stream,
        tools::{CallKnowledge, shell, truncate},
        workspace::{
            memory::{self, MemorySearch},
            saved,
        },
    },
};

/// The workers of a process: tasks on threads of their own.
pub struct Threads {
    tools: Tools,
    groups: Groups,
    /// Decodes what models say.
    models: Worker,
    /// All other leaves: one that takes its thread's time, as it does to start a process, does not hold up the models.
    leaves: Worker,
    /// What is to be written into the user's own files.
    saves: OnceLock<UnboundedSender<FileWrite>>,
    /// Answers of engine effects: bounded, and not taken while the client does not read.
    answers: Sender<Event>,
    /// What the loop takes whatever the client does.
    control: Sender<Event>,
}

impl Threads {
    pub fn new(tools: Tools, groups: Groups, answers: Sender<Event>, control: Sender<Event>) -> Self {
        Self {
            tools,
            groups,
            models: Worker::new("castor-models"),
            leaves: Worker::new("castor-leaves"),
            saves: OnceLock::new(),
            answers,
            control,
        }
    }

    fn start_effect(&self, job: EffectJob) {
        let EffectJob { resources, id, effect, cancel, log } = job;
        let (answers, requests, tools) = (self.answers.clone(), self.control.clone(), self.tools.clone());
        let (output_stream, leave) = (Arc::new(Stream::new(resources.model_input.secrets.clone())), Default::default());
        let hand = EffectTask { resources, id, cancel, answers, requests, tools, leave, output_stream };
        match effect {
            Effect::Generate { purpose, request } => {
                let span = traces::model_span(purpose, &request);
                self.models.spawn(generate(hand, request, span));
            }
            Effect::Resolve { call } => {
                // The first look takes a while: it is there when the call has run.
                let secrets = hand.resources.model_input.secrets.clone();
                self.spawn_blocking(move || _ = secrets.current_redactor(false));
                self.leaves.spawn(resolve(hand, call));
            }
            Effect::Check(it) => self.leaves.spawn(check(hand, *it, self.groups.clone())),
            Effect::Preview { call, places, seen } => {
                self.leaves.spawn(preview(hand, call, CallKnowledge::decided(places, seen)));
            }
            Effect::Run { call, places, base, seen, sandbox_grant: leave, hold, .. } => {
                let span = traces::tool_span(&call);
                let call = AllowedCall { call, known: CallKnowledge::decided(places, seen), base, hold };
                self.leaves.spawn(run(EffectTask { leave, ..hand }, call, log, span));
            }
            Effect::OpenCheckpoints => checkpoint_tasks::open_checkpoints(hand),
            Effect::Checkpoint { id, scope } => self.leaves.spawn(checkpoint_tasks::take_checkpoint(hand, id, scope)),
            Effect::CompareCheckpoint { id } => self.leaves.spawn(checkpoint_tasks::compare(hand, id)),
            Effect::Restore(order) => self.leaves.spawn(checkpoint_tasks::restore(hand, order)),
            Effect::Diff { of, paths } => self.leaves.spawn(checkpoint_tasks::diff(hand, of, paths)),
            Effect::RunHook(it) => {
                let span = traces::hook_span(&it.hook);
                self.leaves.spawn(hook(hand, *it, span));
            }
            Effect::ReadMemory => self.read_memory(hand, memory::read),
            Effect::DiscoverMemory { places } => self.read_memory(hand, move |it| memory::read_nested(it, &places)),
            // Said or timed by the loop itself.
            Effect::AskUser(_)
            | Effect::WithdrawQuestion { .. }
            | Effect::SetTimer { .. }
            | Effect::Abort { .. }
            | Effect::SaveGrant(_)
            | Effect::UpdateGrant { .. }
            | Effect::WriteScratch { .. }
            | Effect::UpdateHealth { .. }
            | Effect::ApplyTrust(_)
            | Effect::AnswerElicitation { .. }
            | Effect::RewindConversation { .. }
            | Effect::AnswerRewind { .. }
            | Effect::AnswerPrompt { .. } => (),
        }
    }

    /// Nobody asks for its answer; castor's own end waits for it for a moment.
    fn run_session_end_hook(&self, desk: Arc<SessionResources>, it: HookRun) {
        let span = traces::hook_span(&it.hook);
        self.spawn_chore(async move {
            let (run, place) = hooks::complete(it, &desk, unix_ms());
            // The session is over: the log tells.
            let nobody: world::hooks::Notice = Arc::new(|_| Box::pin(std::future::ready(())));
            let task = world::hooks::run(&run, &place, &desk.children.hooks.groups, &nobody).instrument(span.clone());
            if let Ok(report) = AssertUnwindSafe(task).catch_unwind().await {
                traces::note_hook(&span, &report);
            }
        });
    }

    fn start_server(&self, server: u64, launch: ServerIdentity, doors: HostHandles, stop: CancellationToken) {
        // Always taken: a client that does not read must not keep tools from a session.
        let events = self.control.clone();
        let tell = move |news: ServerEvent| -> BoxFuture<'static, ()> {
            let events = events.clone();
            Box::pin(async move { _ = events.send(Event::Mcp { server, news }).await })
        };
        self.leaves.spawn(mcp::run_server(launch, doors, stop, Arc::new(tell)));
    }

    /// One that tells the loop that it is done.
    fn spawn_chore(&self, task: impl Future<Output = ()> + Send + 'static) {
        let events = self.control.clone();
        self.leaves.spawn(async move {
            task.await;
            _ = events.send(Event::ChoreDone).await;
        });
    }

    /// One after the other, as they were started: what was allowed may be taken back at once.
    fn queue_save(&self, write: FileWrite) {
        let saves = self.saves.get_or_init(|| {
            let (sender, writes) = unbounded_channel();
            self.leaves.spawn(pending_chores::run_saves(writes, self.control.clone()));
            sender
        });
        // The task is gone only at exit.
        _ = saves.send(write);
    }

    /// What only blocks has threads of its own. They are with the worker that every session needs.
    fn spawn_blocking(&self, work: impl FnOnce() + Send + 'static) {
        self.models.spawn_blocking(work);
    }

    /// A look at the disk: not for the loop.
    fn read_memory(&self, hand: EffectTask, look: impl FnOnce(&MemorySearch) -> Vec<MemoryFile> + Send + 'static) {
        self.spawn_blocking(move || {
            let wanted = &hand.resources.model_input.memory;
            let files =
                catch_unwind(AssertUnwindSafe(|| look(wanted).into())).map_err(|it| panics::panic_message(&*it));
            // The loop is gone only at exit.
            _ = hand.answers.blocking_send(hand.event(Input::MemoryRead { effect: hand.id, files }));
        });
    }
}

impl Workers for Threads {
    fn start(&mut self, job: Job) {
        match job {
            Job::Effect(it) => self.start_effect(it),
            Job::Server { server, launch, doors, stop } => self.start_server(server, launch, doors, stop),
            Job::SessionEndHook { desk, run } => self.run_session_end_hook(desk, *run),
            Job::ProbeSandbox => self.spawn_blocking(|| _ = sandbox::has_mounts()),
            Job::SyncLog(log) => self.spawn_blocking(move || sync(&log)),
            Job::ReleaseCheckpoints { checkpoints, forget } => {
                self.spawn_chore(checkpoint_tasks::release_checkpoints(checkpoints, forget))
            }
            Job::Stash { file, text } => self.spawn_chore(pending_chores::stash(file, text)),
            Job::SavePolicy { home, folder, lasting } => {
                self.queue_save(Box::new(move || saved::add(&home, &folder, &lasting)))
            }
            Job::SaveSandboxGrant { home, folder, grant, holds } => {
                self.queue_save(Box::new(move || saved::save_grant(&home, &folder, &grant, holds)));
            }
            Job::List(search) => {
                let events = self.control.clone();
                let look = move || _ = events.blocking_send(Event::SessionsListed(Box::new(search.look())));
                // The loop is gone only at exit.
                self.spawn_blocking(look);
            }
        }
    }
}

/// Chunks on their way to the loop; full means that nothing more is read from the model.
struct LoopSink<'a>(&'a EffectTask);

impl Sink for LoopSink<'_> {
    fn send(&mut self, chunks: Vec<Chunk>) -> BoxFuture<'_, ()> {
        traces::note_usage(&chunks);
        Box::pin(self.0.send_answer(Input::Chunks { effect: self.0.id, chunks }))
    }
}

async fn generate(hand: EffectTask, request: ModelRequest, span: Span) {
    let generator = hand.resources.generator.clone();
    let mut sink = LoopSink(&hand);
    span.in_scope(|| tracing::debug!("asks {}", request.model));
    // Cancelling drops the future, and with it the connection.
    let task = async {
        panics::panic_if(hand.resources.fault.is_in_request(&request));
        generator.generate(request, &mut sink).await
    };
    let work = hand.catch_panic(task).instrument(span.clone());
    let Some(result) = hand.cancel.run_until_cancelled(work).await else {
        return traces::note_error(&span, "cancelled");
    };
    let result = result.unwrap_or_else(|panic| Err(Failure::new(FailureKind::Panicked, panic)));
    if let Err(it) = &result {
        traces::note_error(&span, it.kind.as_str());
    }
    // Before the loop hears of it: the turn may end then, and with it its span.
    drop(span);
    hand.send_answer(Input::Generated { effect: hand.id, result }).await;
}

async fn resolve(hand: EffectTask, call: ToolCall) {
    let ctx = hand.context(CallKnowledge::default());
    let task = async {
        match hand.tool(&call.name) {
            Some(tool) => tool.targets(&call.args, &ctx).await,
            None => match hand.mcp_tool(&call.name) {
                Some(tool) => Ok(Targets { title: tool.spec.title.to_string(), ..Targets::default() }),
                None => Err(unknown(&call)),
            },
        }
    };
    let result = hand.catch_panic(task).await.unwrap_or_else(|panic| Err(panicked(panic)));
    hand.send_answer(Input::Resolved { effect: hand.id, result }).await;
}

async fn check(hand: EffectTask, check: Check, groups: Groups) {
    let desk = &hand.resources;
    let site = checkers::CheckSite {
        cwd: desk.cwd.clone(),
        roots: desk.roots.clone(),
        env: desk.children.env.to_vec(),
        confined: desk.children.confined.as_deref().cloned(),
    };
    // Cancelling drops the future, and with it the program.
    let task = hand.catch_panic(checkers::ask(check, site, &groups));
    let Some(said) = hand.cancel.run_until_cancelled(task).await else { return };
    hand.send_answer(Input::Checked { effect: hand.id, finding: said.unwrap_or_else(Err) }).await;
}

async fn preview(hand: EffectTask, call: ToolCall, known: CallKnowledge) {
    let ctx = hand.context(known);
    let task = async {
        match hand.tool(&call.name) {
            Some(tool) => tool.preview(&call.args, &ctx).await,
            None => Err(unknown(&call)),
        }
    };
    let result = hand.catch_panic(task).await.unwrap_or_else(|panic| Err(panicked(panic)));
    hand.send_answer(Input::Previewed { effect: hand.id, result }).await;
}

/// A call that may run: on what was decided about, and nothing else.
struct AllowedCall {
    call: ToolCall,
    known: CallKnowledge,
    base: Option<BaseHash>,
    hold: Option<CallHold>,
}

async fn run(hand: EffectTask, allowed: AllowedCall, log: Option<File>, span: Span) {
    let AllowedCall { call, known, base, hold } = allowed;
    // A side effect that the log does not know of could not be told after a crash.
    if let Some(log) = log {
        sync_log(log).await;
    }
    if hand.cancel.is_cancelled() {
        // Nobody wants its output, but that it has ended is waited for where files are to be restored.
        return hand.send_answer(Input::RunEnded { effect: hand.id, output: Box::default(), changes: None }).await;
    }
    let written: Vec<AbsPath> = written_files(&hand, &call, &known);
    let ctx = hand.checkpointed_context(known, hold.as_ref());
    let task = async {
        panics::panic_if(hand.resources.fault.is_in_call(&call));
        match (hand.tool(&call.name), hand.mcp_tool(&call.name)) {
            (Some(tool), _) => tool.run(&call.args, base.as_ref(), &ctx).await.unwrap_or_else(ToolOutput::failed),
            (None, Some(tool)) => hand.call_mcp(tool, &call).await,
            (None, None) => ToolOutput::failed(unknown(&call)),
        }
    };
    let output = hand.catch_panic(task).instrument(span.clone()).await;
    let mut output = output.unwrap_or_else(|panic| ToolOutput::failed(panicked(panic)));
    let is_of_files = hand.tool(&call.name).is_some() && call.name != shell::Shell::NAME;
    redact_output::redact_call_output(&hand.resources, &mut output, is_of_files.then_some(&*ctx.known.decided_targets))
        .await;
    // Tools of files page by themselves.
    let output = if is_of_files { output } else { truncate_output(&hand.resources, &call, output).await };
    let rest = hand.output_stream.end();
    if !rest.is_empty() {
        hand.send_answer(Input::OutputPrinted { effect: hand.id, text: rest }).await;
    }
    if let Some(it) = &output.error {
        traces::note_error(&span, &it.kind);
    }
    let changes = match hold {
        Some(it) => Some(checkpoint_tasks::changes(&hand, it.id, &written).await),
        None => None,
    };
    drop(span);
    hand.send_answer(Input::RunEnded { effect: hand.id, output: Box::new(output), changes }).await;
}

/// The files that castor's own tool writes: those its checkpoint is about.
fn written_files(hand: &EffectTask, call: &ToolCall, known: &CallKnowledge) -> Vec<AbsPath> {
    let edits = hand.tool(&call.name).is_some_and(|it| it.spec().kind == ToolKind::Edit);
    let places = known.decided_targets.iter().filter(|it| edits && it.access == Access::Write).map(|it| &it.real);
    places.filter(|it| hand.resources.roots.iter().any(|root| it.is_within(root))).cloned().collect()
}

async fn hook(hand: EffectTask, mut it: HookRun, span: Span) {
    let hold = checkpoint_tasks::take_for_hook(&hand, it.checkpoint.take()).await;
    let (run, place) = hooks::complete(it, &hand.resources, unix_ms());
    let notice = hand.text_sender(Input::Notice);
    let task = world::hooks::run(&run, &place, &hand.resources.children.hooks.groups, &notice);
    // Cancelling drops the future, and with it the processes.
    let work = hand.catch_panic(task).instrument(span.clone());
    let report = hand.cancel.run_until_cancelled(work).await;
    let changes = match hold {
        Some(id) => Some(checkpoint_tasks::changes(&hand, id, &[]).await),
        None => None,
    };
    let Some(report) = report else {
        traces::note_error(&span, "cancelled");
        let report = HookReport { changes, ..HookReport::from_end(HookEnd::NotStarted("cancelled".to_owned())) };
        return hand.send_answer(Input::HookFinished { effect: hand.id, report: Box::new(report) }).await;
    };
    let report = report.unwrap_or_else(|panic| HookReport::from_end(HookEnd::NotStarted(panic)));
    let report = HookReport { changes, ..report };
    traces::note_hook(&span, &report);
    drop(span);
    hand.send_answer(Input::HookFinished { effect: hand.id, report: Box::new(report) }).await;
}

/// Text beyond the threshold goes to a file that the model can read in pieces.
async fn truncate_output(desk: &Arc<SessionResources>, call: &ToolCall, mut output: ToolOutput) -> ToolOutput {
    let max = desk.model_input.truncate_at;
    let long = |it: &Part| it.as_text().is_some_and(|text| text.len() > max);
    if max == 0 || !output.content.iter().any(long) {
        return output;
    }
    let (desk, call) = (desk.clone(), call.id.clone());
    let cutting = tokio::task::spawn_blocking(move || {
        for part in &mut output.content {
            if let Part::Text { text, .. } = part {
                *text = truncate::truncate(text, max, &desk.scratch, &call).into_owned();
            }
        }
        output
    });
    cutting.await.unwrap_or_else(|it| ToolOutput::failed(panicked(it.to_string())))
}

async fn sync_log(log: File) {
    _ = tokio::task::spawn_blocking(move || sync(&log)).await;
}

fn sync(log: &File) {
    if let Err(it) = disk::sync_data(log) {
        tracing::warn!("the session log could not be synced: {it}");
    }
}

fn unknown(call: &ToolCall) -> ToolError {
    ToolError::new("tool_not_registered", format!("Tool \"{}\" not found.", call.name))
}

fn panicked(panic: String) -> ToolError {
    ToolError::new("unhandled_exception", panic)
}
