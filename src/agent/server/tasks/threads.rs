//! Threads that do the loop's jobs; each job answers with an event, even if it fails.

use std::{fs::File, future::Future, panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt;
use tokio::{runtime::Handle, sync::mpsc::Sender};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Span};

use super::{
    Tools, checkpoint_tasks, client_checks,
    effect_task::{EffectTask, unknown_tool},
    finished_call::FinishedCall,
    host_call::call_host,
    jobs::{CompletionJob, EffectJob, Job, Workers},
    look_tasks, memory_tasks,
    pending_chores::{self, FileWrite},
    queues::Queues,
    server_errand,
    worker::Worker,
};
use crate::{
    panics,
    server::{event::Event, event_loop::unix_ms, traces},
    session::{
        checker_site::{HeldChecker, checker_site},
        hooks,
        policies::load_shipped,
        session_resources::SessionResources,
    },
};
use castor_base::{
    check::Check,
    fs::BoxFuture,
    hook::{HookEnd, HookReport, HookRun},
    host_tools::HostRun,
    model::{Chunk, Failure, FailureKind, ModelRequest, Purpose},
    model_table::ModelTable,
    path::AbsPath,
    server_offer::ServerQuery,
    tool::{Access, BaseHash, ToolCall, ToolError, ToolKind, ToolOutput},
};
use castor_engine::step::{CallHold, Effect, Input};
use castor_hands::{
    disk,
    process::{Groups, sandbox},
};
use castor_models::providers::Sink;
use castor_tools::{
    builtin::CallKnowledge,
    checkers,
    mcp::{self, HostHandles, ServerEvent, ServerIdentity},
    redaction::Stream,
    workspace::saved,
};

/// The workers of a process: tasks on threads of their own.
pub struct Threads {
    tools: Tools,
    groups: Groups,
    /// Decodes what models say, on the loop's own thread: one wake brings a chunk from its socket to the client.
    models: Handle,
    /// All other leaves: one that takes its thread's time, as it does to start a process, does not hold up the loop.
    leaves: Worker,
    queues: Queues,
    /// Answers of engine effects: bounded, and not taken while the client does not read.
    answers: Sender<Event>,
    /// What the loop takes whatever the client does.
    control: Sender<Event>,
}

impl Threads {
    /// `models`: the runtime of the loop.
    pub fn new(
        tools: Tools,
        groups: Groups,
        (answers, control): (Sender<Event>, Sender<Event>),
        models: Handle,
    ) -> Self {
        let leaves = Worker::new("castor-leaves");
        Self { tools, groups, models, leaves, queues: Queues::default(), answers, control }
    }

    fn start_effect(&self, job: EffectJob) {
        let EffectJob { resources, id, effect, cancel, log, output } = job;
        let (answers, requests, tools) = (self.answers.clone(), self.control.clone(), self.tools.clone());
        let (output_stream, sandbox_grant) =
            (Arc::new(Stream::new(resources.model_input.secrets.clone())), Default::default());
        let task = EffectTask { resources, id, cancel, answers, requests, tools, sandbox_grant, output_stream };
        match effect {
            Effect::Generate { purpose, request } => self.start_generate(task, purpose, request),
            Effect::AskServer(query) => self.leaves.spawn(ask_server(task, *query)),
            Effect::Resolve { call, sandbox_grant } => self.resolve_call(task.with_grant(*sandbox_grant), call),
            Effect::Check(it) => self.leaves.spawn(check(task, *it, self.groups.clone())),
            Effect::CheckByClient(it) => self.leaves.spawn(client_checks::check(task, *it)),
            Effect::Preview { call, places, seen } => {
                self.leaves.spawn(preview(task, call, CallKnowledge::decided(places, seen)));
            }
            Effect::Run { call, places, base, seen, sandbox_grant, hold, host, .. } => {
                let span = call_span(&task, &call, output.is_some());
                let call = AllowedCall { call, known: CallKnowledge::decided(places, seen), base, hold, output, host };
                self.leaves.spawn(run(task.with_grant(*sandbox_grant), call, log, span));
            }
            Effect::OpenCheckpoints => self.queues.look(task),
            Effect::Checkpoint { id, scope } => self.leaves.spawn(checkpoint_tasks::take_checkpoint(task, id, scope)),
            Effect::CompareCheckpoint { id } => self.leaves.spawn(checkpoint_tasks::compare(task, id)),
            Effect::Restore(order) => self.leaves.spawn(checkpoint_tasks::restore(task, order)),
            Effect::Diff { of, paths } => self.leaves.spawn(checkpoint_tasks::diff(task, of, paths)),
            Effect::Look { place } => self.leaves.spawn(checkpoint_tasks::look(task, place)),
            Effect::ShowUnseen { roots } => self.leaves.spawn(look_tasks::show_unseen(task, roots)),
            Effect::LookAt { bytes } => self.leaves.spawn(look_tasks::look_at(task, bytes)),
            Effect::RunHook(it) => self.run_hook(task, *it),
            Effect::ReadMemory => self.spawn_blocking(move || memory_tasks::read(&task)),
            Effect::ChangeMemory(order) => self.spawn_blocking(move || memory_tasks::change(&task, &order)),
            Effect::DiscoverMemory { places } => self.spawn_blocking(move || memory_tasks::discover(&task, &places)),
            // Said or timed by the loop itself.
            Effect::AskUser(_)
            | Effect::WithdrawQuestion { .. }
            | Effect::SetTimer { .. }
            | Effect::Abort { .. }
            | Effect::HintAgents { .. }
            | Effect::TellHook(_)
            | Effect::SaveGrant(_)
            | Effect::UpdateGrant { .. }
            | Effect::WriteScratch { .. }
            | Effect::UpdateHealth { .. }
            | Effect::RememberRefusal { .. }
            | Effect::WidenProgram { .. }
            | Effect::SayOnce { .. }
            | Effect::ApplyTrust(_)
            | Effect::ReadDefinitions
            | Effect::RenewCredential(_)
            | Effect::ManageServer(_)
            | Effect::SaveState { .. }
            | Effect::AnswerState { .. }
            | Effect::AnswerPolicy { .. }
            | Effect::ChooseAgent { .. }
            | Effect::AnswerElicitation { .. }
            | Effect::RewindConversation { .. }
            | Effect::AnswerRewind { .. }
            | Effect::AnswerPrompt { .. } => (),
        }
    }

    fn start_generate(&self, task: EffectTask, purpose: Purpose, request: ModelRequest) {
        let span = traces::model_span(purpose, &request);
        let may_block = task.resources.generator.may_block();
        let work = generate(task, request, span);
        match may_block {
            true => self.leaves.spawn(work),
            false => _ = self.models.spawn(work),
        }
    }

    fn resolve_call(&self, task: EffectTask, call: ToolCall) {
        // The first look takes a while: it is there when the call has run.
        let secrets = task.resources.model_input.secrets.clone();
        self.spawn_blocking(move || _ = secrets.current_redactor(false));
        self.leaves.spawn(resolve(task, call));
    }

    fn run_hook(&self, task: EffectTask, it: HookRun) {
        let span = traces::hook_span(&it.hook);
        self.leaves.spawn(hook(task, it, span));
    }

    /// Nobody asks for its answer; castor's own end waits for it for a moment.
    fn tell_hook(&self, resources: Arc<SessionResources>, it: HookRun) {
        let span = traces::hook_span(&it.hook);
        self.spawn_chore(async move {
            let (run, place) = hooks::complete(it, &resources, unix_ms());
            // Nobody waits, and the session may be over: the log tells.
            let nobody: castor_tools::hooks::Notice = Arc::new(|_| Box::pin(std::future::ready(())));
            let future = castor_tools::hooks::run(&run, &place, &resources.children.hooks.groups, &nobody)
                .instrument(span.clone());
            if let Ok(report) = AssertUnwindSafe(future).catch_unwind().await {
                traces::note_hook(&span, &report);
            }
        });
    }

    fn start_server(&self, server: u64, launch: ServerIdentity, handles: HostHandles, stop: CancellationToken) {
        // Always taken: a client that does not read must not keep tools from a session.
        let events = self.control.clone();
        let tell = move |event: ServerEvent| -> BoxFuture<'static, ()> {
            let events = events.clone();
            Box::pin(async move { _ = events.send(Event::Mcp { server, event }).await })
        };
        self.leaves.spawn(mcp::run_server(launch, handles, stop, Arc::new(tell)));
    }

    /// One that tells the loop that it is done.
    fn spawn_chore(&self, future: impl Future<Output = ()> + Send + 'static) {
        let events = self.control.clone();
        self.leaves.spawn(async move {
            future.await;
            _ = events.send(Event::ChoreDone).await;
        });
    }

    /// One after the other, as they were started: what was allowed may be taken back at once.
    fn save(&self, write: FileWrite) {
        self.queues.save(write, &self.leaves, &self.control);
    }

    /// What only blocks has threads of its own.
    fn spawn_blocking(&self, work: impl FnOnce() + Send + 'static) {
        self.models.spawn_blocking(work);
    }

    fn complete(&self, it: CompletionJob) {
        let events = self.control.clone();
        self.leaves.spawn(async move {
            let CompletionJob { ticket, connection, query } = it;
            let result = connection.complete(&query, &CancellationToken::new()).await;
            // The loop is gone only at exit.
            _ = events.send(Event::Completed { ticket, result }).await;
        });
    }
}

impl Workers for Threads {
    fn start(&mut self, job: Job) {
        match job {
            Job::Effect(it) => self.start_effect(it),
            Job::Server { server, launch, handles, stop } => self.start_server(server, launch, handles, stop),
            Job::Complete(it) => self.complete(it),
            Job::ServerErrand { session, effect, errand, cancel } => {
                self.leaves.spawn(server_errand::run((session, effect), *errand, cancel, self.control.clone()));
            }
            Job::TellHook { resources, run } => self.tell_hook(resources, *run),
            Job::ProbeSandbox => self.spawn_blocking(|| _ = sandbox::has_mounts()),
            Job::LoadTables => {
                self.spawn_blocking(|| _ = ModelTable::built_in());
                self.spawn_blocking(load_shipped);
            }
            Job::SyncLog(log) => self.spawn_blocking(move || sync(&log)),
            Job::AskStore(job) => {
                let (events, ticket) = (self.control.clone(), job.ticket);
                // The loop is gone only at exit.
                let ask =
                    move || _ = events.blocking_send(Event::StoreAnswered { ticket, answer: job.ask().map(Box::new) });
                self.spawn_blocking(ask);
            }
            Job::NoteAgent(it) => self.spawn_chore(async move {
                _ = tokio::task::spawn_blocking(move || it.write()).await;
            }),
            Job::ReleaseCheckpoints { checkpoints, forget } => {
                self.spawn_chore(checkpoint_tasks::release_checkpoints(checkpoints, forget))
            }
            Job::Stash { file, text } => self.spawn_chore(pending_chores::stash(file, text)),
            Job::SavePolicy { home, folder, lasting } => {
                self.save(Box::new(move || saved::add(&home, &folder, &lasting)))
            }
            Job::SaveSandboxGrant { home, folder, grant, holds } => {
                self.save(Box::new(move || saved::save_grant(&home, &folder, &grant, holds)));
            }
            Job::SaveRefusal { home, row } => self.save(pending_chores::save_refusal(home, row)),
            Job::SaveState(it) => {
                let (events, session) = (self.control.clone(), it.session.clone());
                self.spawn_chore(async move {
                    // It fails only when castor ends.
                    let Ok(input) = tokio::task::spawn_blocking(move || it.save()).await else { return };
                    _ = events.send(Event::Engine { session, input }).await;
                });
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

/// The run of a sub-agent, which is over by now, had one.
fn call_span(task: &EffectTask, call: &ToolCall, has_run: bool) -> Span {
    match has_run {
        true => Span::none(),
        false => traces::tool_span(call, task.resources.mcp.server_name_of_call(call)),
    }
}

async fn generate(task: EffectTask, request: ModelRequest, span: Span) {
    let generator = task.resources.generator.clone();
    let mut sink = LoopSink(&task);
    span.in_scope(|| tracing::debug!("asks {}", request.model));
    // Cancelling drops the future, and with it the connection.
    let future = async {
        panics::panic_if(task.resources.fault.is_in_request(&request));
        generator.generate(request, &mut sink).await
    };
    let work = task.catch_panic(future).instrument(span.clone());
    let Some(result) = task.cancel.run_until_cancelled(work).await else {
        return traces::note_error(&span, "cancelled");
    };
    let result = result.unwrap_or_else(|panic| Err(Failure::new(FailureKind::Panicked, panic)));
    if let Err(it) = &result {
        traces::note_error(&span, it.kind.as_str());
    }
    // Before the loop hears of it: the turn may end then, and with it its span.
    drop(span);
    task.send_answer(Input::Generated { effect: task.id, result }).await;
}

async fn resolve(task: EffectTask, call: ToolCall) {
    let ctx = task.context(CallKnowledge::default());
    let future = async {
        match task.tool(&call.name) {
            Some(tool) => tool.targets(&call.args, &ctx).await,
            None => task.server_targets(&call),
        }
    };
    let result = task.catch_panic(future).await.unwrap_or_else(|panic| Err(panicked(panic)));
    task.send_answer(Input::Resolved { effect: task.id, result }).await;
}

async fn ask_server(task: EffectTask, query: ServerQuery) {
    let asking = task.catch_panic(task.resources.mcp.ask(&query, &task.cancel));
    let result = asking.await.and_then(|it| it);
    if !task.cancel.is_cancelled() {
        task.send_answer(Input::ServerAnswered { effect: task.id, result }).await;
    }
}

async fn check(task: EffectTask, check: Check, groups: Groups) {
    let (site, held) = checker_site(&task.resources, &check).await;
    if let Some(HeldChecker { held, notice }) = held {
        task.send_answer(Input::ProgramHeld(Box::new(held))).await;
        if let Some(it) = notice {
            task.send_answer(Input::Announce(it)).await;
        }
    }
    // Cancelling drops the future, and with it the program.
    let future = task.catch_panic(checkers::ask(check, site, &groups));
    let Some(finding) = task.cancel.run_until_cancelled(future).await else { return };
    task.send_answer(Input::Checked {
        effect: task.id,
        finding: finding.and_then(|it| it.map_err(|it| it.to_string())),
    })
    .await;
}

async fn preview(task: EffectTask, call: ToolCall, known: CallKnowledge) {
    let ctx = task.context(known);
    let future = async {
        if let Some(tool) = task.tool(&call.name) {
            tool.preview(&call.args, &ctx).await
        } else {
            Err(unknown_tool(&call))
        }
    };
    let result = task.catch_panic(future).await.unwrap_or_else(|panic| Err(panicked(panic)));
    task.send_answer(Input::Previewed { effect: task.id, result }).await;
}

/// A call that may run: on what was decided about, and nothing else.
struct AllowedCall {
    call: ToolCall,
    known: CallKnowledge,
    base: Option<BaseHash>,
    hold: Option<CallHold>,
    /// Of a sub-agent that has ended.
    output: Option<Box<ToolOutput>>,
    /// The host runs it.
    host: Option<Box<HostRun>>,
}

async fn run(task: EffectTask, allowed: AllowedCall, log: Option<File>, span: Span) {
    let AllowedCall { call, known, base, hold, output, host } = allowed;
    // A side effect that the log does not know of could not be told after a crash.
    if let Some(log) = log {
        sync_log(log).await;
    }
    if task.cancel.is_cancelled() {
        // Nobody wants its output, but that it has ended is waited for where files are to be restored.
        return task.send_answer(Input::RunEnded { effect: task.id, output: Box::default(), changes: None }).await;
    }
    let written: Vec<AbsPath> = written_files(&task, &call, &known);
    let ctx = task.checkpointed_context(known, hold.as_ref());
    let future = async {
        panics::panic_if(task.resources.fault.is_in_call(&call));
        if let Some(it) = output {
            return *it;
        }
        if let Some(host) = &host {
            return call_host(&task, host, &call).await;
        }
        match task.tool(&call.name) {
            Some(tool) => tool.run(&call.args, base.as_ref(), &ctx).await.unwrap_or_else(ToolOutput::failed),
            None => task.call_server(&call).await,
        }
    };
    let output = task.catch_panic(future).instrument(span.clone()).await;
    let output = output.unwrap_or_else(|panic| ToolOutput::failed(panicked(panic)));
    let targets = ctx.known.decided_targets.clone();
    let finished = FinishedCall { task: &task, call, output, targets, host, hold, written, span };
    let answer = finished.finish().await;
    task.send_answer(answer).await;
}

/// The files that castor's own tool writes: those its checkpoint is about.
fn written_files(task: &EffectTask, call: &ToolCall, known: &CallKnowledge) -> Vec<AbsPath> {
    let edits = task.tool(&call.name).is_some_and(|it| it.spec().kind == ToolKind::Edit);
    let places = known.decided_targets.iter().filter(|it| edits && it.access == Access::Write).map(|it| &it.real);
    places.filter(|it| task.resources.roots.iter().any(|root| it.is_within(root))).cloned().collect()
}

async fn hook(task: EffectTask, mut it: HookRun, span: Span) {
    let hold = checkpoint_tasks::take_for_hook(&task, it.checkpoint.take()).await;
    let notice = task.late_sender(|it| vec![it], Input::Notice);
    let future = async {
        if it.hook.is_of_client() {
            return client_checks::ask_interceptor(&task, &it).await;
        }
        let (run, place) = hooks::complete(it, &task.resources, unix_ms());
        castor_tools::hooks::run(&run, &place, &task.resources.children.hooks.groups, &notice).await
    };
    // Cancelling drops the future, and with it the processes.
    let work = task.catch_panic(future).instrument(span.clone());
    let report = task.cancel.run_until_cancelled(work).await;
    let changes = if let Some(id) = hold { Some(checkpoint_tasks::changes(&task, id, &[]).await) } else { None };
    let Some(report) = report else {
        traces::note_error(&span, "cancelled");
        let report = HookReport { changes, ..HookReport::from_end(HookEnd::NotStarted("cancelled".to_owned())) };
        return task.send_answer(Input::HookFinished { effect: task.id, report: Box::new(report) }).await;
    };
    let report = report.unwrap_or_else(|panic| HookReport::from_end(HookEnd::NotStarted(panic)));
    let report = HookReport { changes, ..report };
    traces::note_hook(&span, &report);
    drop(span);
    task.send_answer(Input::HookFinished { effect: task.id, report: Box::new(report) }).await;
}

async fn sync_log(log: File) {
    _ = tokio::task::spawn_blocking(move || sync(&log)).await;
}

fn sync(log: &File) {
    if let Err(it) = disk::sync_data(log) {
        tracing::warn!("the session log could not be synced: {it}");
    }
}

fn panicked(panic: String) -> ToolError {
    ToolError::new("unhandled_exception", panic)
}
