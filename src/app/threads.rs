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
        chores::{self, Write},
        desk::Desk,
        event::Event,
        event_loop::unix_ms,
        exit, fault,
        hand::Hand,
        holding, hooks,
        jobs::{EffectJob, Job, Workers},
        traces,
        worker::Worker,
        world::Tools,
    },
    base::{
        check::Check,
        content::Part,
        fs::BoxFuture,
        hook::{HookEnd, HookReport, HookRun},
        memory::MemoryFile,
        model::{Chunk, Failure, FailureKind, ModelRequest},
        path::AbsPath,
        sandbox::Leave,
        tool::{Access, BaseHash, Preview, Targets, ToolCall, ToolError, ToolKind, ToolOutput},
    },
    engine::step::{Effect, Hold, Input},
    world::{
        self, checkers, disk,
        mcp::{self, Doors, Launch, News},
        models::Sink,
        process::{Groups, sandbox},
        redaction::Stream,
        tools::{Known, shell, truncate},
        workspace::{
            memory::{self, Wanted},
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
    saves: OnceLock<UnboundedSender<Write>>,
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

    fn effect(&self, job: EffectJob) {
        let EffectJob { desk, id, effect, cancel, log } = job;
        let (answers, requests, tools) = (self.answers.clone(), self.control.clone(), self.tools.clone());
        let printed = Arc::new(Stream::new(desk.intake.secrets.clone()));
        let hand = Hand { desk, id, cancel, answers, requests, tools, leave: Leave::default(), printed };
        match effect {
            Effect::Generate { purpose, request } => {
                let span = traces::model_span(purpose, &request);
                self.models.spawn(generate(hand, request, span));
            }
            Effect::Resolve { call } => {
                // The first look takes a while: it is there when the call has run.
                let secrets = hand.desk.intake.secrets.clone();
                self.block(move || _ = secrets.look(false));
                self.leaves.spawn(resolve(hand, call));
            }
            Effect::Check(it) => self.leaves.spawn(check(hand, *it, self.groups.clone())),
            Effect::Preview { call, places, seen } => {
                self.leaves.spawn(preview(hand, call, Known { places, seen, ..Known::default() }))
            }
            Effect::Run { call, places, base, seen, leave, hold, .. } => {
                let span = traces::tool_span(&call);
                let known = Known { places, seen, ..Known::default() };
                self.leaves.spawn(run(Hand { leave, ..hand }, Allowed { call, known, base, hold }, log, span));
            }
            Effect::OpenCheckpoints => holding::open(hand),
            Effect::Checkpoint { id, scope } => self.leaves.spawn(holding::take(hand, id, scope)),
            Effect::Compare { id } => self.leaves.spawn(holding::compare(hand, id)),
            Effect::Restore(order) => self.leaves.spawn(holding::restore(hand, order)),
            Effect::Diff { of, paths } => self.leaves.spawn(holding::diff(hand, of, paths)),
            Effect::Hook(it) => {
                let span = traces::hook_span(&it.hook);
                self.leaves.spawn(hook(hand, *it, span));
            }
            Effect::Remember => self.remember(hand, memory::read),
            Effect::Discover { places } => self.remember(hand, move |it| memory::near(it, &places)),
            // Said or timed by the loop itself.
            Effect::Ask(_)
            | Effect::Withdraw { .. }
            | Effect::Wake { .. }
            | Effect::Abort { .. }
            | Effect::Save(_)
            | Effect::Keep { .. }
            | Effect::Stash { .. }
            | Effect::Health { .. }
            | Effect::Trust(_)
            | Effect::Reply { .. }
            | Effect::Rewind { .. }
            | Effect::Rewound { .. }
            | Effect::Settle { .. } => (),
        }
    }

    /// Nobody asks for its answer; castor's own end waits for it for a moment.
    fn farewell(&self, desk: Arc<Desk>, it: HookRun) {
        let span = traces::hook_span(&it.hook);
        self.chore(async move {
            let (run, place) = hooks::complete(it, &desk, unix_ms());
            // The session is over: the log tells.
            let nobody: world::hooks::Notice = Arc::new(|_| Box::pin(std::future::ready(())));
            let task = world::hooks::run(&run, &place, &desk.children.hooks.groups, &nobody).instrument(span.clone());
            if let Ok(report) = AssertUnwindSafe(task).catch_unwind().await {
                traces::note_hook(&span, &report);
            }
        });
    }

    fn server(&self, server: u64, launch: Launch, doors: Doors, stop: CancellationToken) {
        // Always taken: a client that does not read must not keep tools from a session.
        let events = self.control.clone();
        let tell = move |news: News| -> BoxFuture<'static, ()> {
            let events = events.clone();
            Box::pin(async move { _ = events.send(Event::Mcp { server, news }).await })
        };
        self.leaves.spawn(mcp::serve(launch, doors, stop, Arc::new(tell)));
    }

    /// One that tells the loop that it is done.
    fn chore(&self, task: impl Future<Output = ()> + Send + 'static) {
        let events = self.control.clone();
        self.leaves.spawn(async move {
            task.await;
            _ = events.send(Event::ChoreDone).await;
        });
    }

    /// One after the other, as they were started: what was allowed may be taken back at once.
    fn save(&self, write: Write) {
        let saves = self.saves.get_or_init(|| {
            let (sender, writes) = unbounded_channel();
            self.leaves.spawn(chores::save(writes, self.control.clone()));
            sender
        });
        // The task is gone only at exit.
        _ = saves.send(write);
    }

    /// What only blocks has threads of its own. They are with the worker that every session needs.
    fn block(&self, work: impl FnOnce() + Send + 'static) {
        self.models.block(work);
    }

    /// A look at the disk: not for the loop.
    fn remember(&self, hand: Hand, look: impl FnOnce(&Wanted) -> Vec<MemoryFile> + Send + 'static) {
        self.block(move || {
            let wanted = &hand.desk.intake.memory;
            let files = catch_unwind(AssertUnwindSafe(|| look(wanted).into())).map_err(|it| fault::in_words(&*it));
            // The loop is gone only at exit.
            _ = hand.answers.blocking_send(hand.event(Input::Remembered { effect: hand.id, files }));
        });
    }
}

impl Workers for Threads {
    fn start(&mut self, job: Job) {
        match job {
            Job::Effect(it) => self.effect(it),
            Job::Server { server, launch, doors, stop } => self.server(server, launch, doors, stop),
            Job::Farewell { desk, run } => self.farewell(desk, *run),
            Job::Probe => self.block(|| _ = sandbox::has_mounts()),
            Job::Sync(log) => self.block(move || sync(&log)),
            Job::Part { checkpoints, forget } => self.chore(holding::part(checkpoints, forget)),
            Job::Stash { file, text } => self.chore(chores::stash(file, text)),
            Job::Save { home, folder, lasting } => self.save(Box::new(move || saved::add(&home, &folder, &lasting))),
            Job::Keep { home, folder, grant, holds } => {
                self.save(Box::new(move || saved::keep(&home, &folder, &grant, holds)));
            }
            Job::List(search) => {
                let events = self.control.clone();
                let look = move || _ = events.blocking_send(Event::Listed(Box::new(search.look())));
                // The loop is gone only at exit.
                self.block(look);
            }
        }
    }
}

/// Chunks on their way to the loop; full means that nothing more is read from the model.
struct LoopSink<'a>(&'a Hand);

impl Sink for LoopSink<'_> {
    fn send(&mut self, chunks: Vec<Chunk>) -> BoxFuture<'_, ()> {
        traces::note_usage(&chunks);
        Box::pin(self.0.say(Input::Chunks { effect: self.0.id, chunks }))
    }
}

async fn generate(hand: Hand, request: ModelRequest, span: Span) {
    let generator = hand.desk.generator.clone();
    let mut sink = LoopSink(&hand);
    span.in_scope(|| tracing::debug!("asks {}", request.model));
    // Cancelling drops the future, and with it the connection.
    let task = async {
        fault::trip(hand.desk.fault.is_in_request(&request));
        generator.generate(request, &mut sink).await
    };
    let work = hand.guard(task).instrument(span.clone());
    let Some(result) = hand.cancel.run_until_cancelled(work).await else {
        return traces::note_error(&span, "cancelled");
    };
    let result = result.unwrap_or_else(|panic| Err(Failure::new(FailureKind::Panicked, panic)));
    if let Err(it) = &result {
        traces::note_error(&span, it.kind.as_str());
    }
    // Before the loop hears of it: the turn may end then, and with it its span.
    drop(span);
    hand.say(Input::Generated { effect: hand.id, result }).await;
}

async fn resolve(hand: Hand, call: ToolCall) {
    let ctx = hand.context(Known::default());
    let task = async {
        match hand.tool(&call.name) {
            Some(tool) => tool.targets(&call.args, &ctx).await,
            None => match hand.mcp_tool(&call.name) {
                Some(tool) => Ok(Targets { title: tool.spec.title.to_string(), ..Targets::default() }),
                None => Err(unknown(&call)),
            },
        }
    };
    let result = hand.guard(task).await.unwrap_or_else(|panic| Err(panicked(panic)));
    hand.say(Input::Resolved { effect: hand.id, result }).await;
}

async fn check(hand: Hand, check: Check, groups: Groups) {
    let desk = &hand.desk;
    let site = checkers::Site {
        cwd: desk.cwd.clone(),
        roots: desk.roots.clone(),
        env: desk.children.env.to_vec(),
        confined: desk.children.confined.as_deref().cloned(),
    };
    // Cancelling drops the future, and with it the program.
    let task = hand.guard(checkers::ask(check, site, &groups));
    let Some(said) = hand.cancel.run_until_cancelled(task).await else { return };
    hand.say(Input::Checked { effect: hand.id, said: said.unwrap_or_else(Err) }).await;
}

async fn preview(hand: Hand, call: ToolCall, known: Known) {
    let ctx = hand.context(known);
    let task = async {
        match hand.tool(&call.name) {
            Some(tool) => tool.preview(&call.args, &ctx).await,
            None if hand.mcp_tool(&call.name).is_some() => Ok(Preview::default()),
            None => Err(unknown(&call)),
        }
    };
    let result = hand.guard(task).await.unwrap_or_else(|panic| Err(panicked(panic)));
    hand.say(Input::Previewed { effect: hand.id, result }).await;
}

/// A call that may run: on what was decided about, and nothing else.
struct Allowed {
    call: ToolCall,
    known: Known,
    base: Option<BaseHash>,
    hold: Option<Hold>,
}

async fn run(hand: Hand, allowed: Allowed, log: Option<File>, span: Span) {
    let Allowed { call, known, base, hold } = allowed;
    // A side effect that the log does not know of could not be told after a crash.
    if let Some(log) = log {
        sync_log(log).await;
    }
    if hand.cancel.is_cancelled() {
        // Nobody wants its output, but that it has ended is waited for where files are to be restored.
        return hand.say(Input::Ran { effect: hand.id, output: Box::default(), changes: None }).await;
    }
    let written: Vec<AbsPath> = written(&hand, &call, &known);
    let ctx = hand.held_context(known, hold.as_ref());
    let task = async {
        fault::trip(hand.desk.fault.is_in_call(&call));
        match (hand.tool(&call.name), hand.mcp_tool(&call.name)) {
            (Some(tool), _) => tool.run(&call.args, base.as_ref(), &ctx).await.unwrap_or_else(ToolOutput::failed),
            (None, Some(tool)) => hand.call_mcp(tool, &call).await,
            (None, None) => ToolOutput::failed(unknown(&call)),
        }
    };
    let output = hand.guard(task).instrument(span.clone()).await;
    let mut output = output.unwrap_or_else(|panic| ToolOutput::failed(panicked(panic)));
    let is_of_files = hand.tool(&call.name).is_some() && call.name != shell::Shell::NAME;
    exit::output(&hand.desk, &mut output, is_of_files.then_some(&*ctx.known.places)).await;
    // Tools of files page by themselves.
    let output = if is_of_files { output } else { cut(&hand.desk, &call, output).await };
    let rest = hand.printed.end();
    if !rest.is_empty() {
        hand.say(Input::Printed { effect: hand.id, text: rest }).await;
    }
    if let Some(it) = &output.error {
        traces::note_error(&span, &it.kind);
    }
    let changes = match hold {
        Some(it) => Some(holding::changes(&hand, it.id, &written).await),
        None => None,
    };
    drop(span);
    hand.say(Input::Ran { effect: hand.id, output: Box::new(output), changes }).await;
}

/// The files that castor's own tool writes: those its checkpoint is about.
fn written(hand: &Hand, call: &ToolCall, known: &Known) -> Vec<AbsPath> {
    let edits = hand.tool(&call.name).is_some_and(|it| it.spec().kind == ToolKind::Edit);
    let places = known.places.iter().filter(|it| edits && it.access == Access::Write).map(|it| &it.real);
    places.filter(|it| hand.desk.roots.iter().any(|root| it.is_within(root))).cloned().collect()
}

async fn hook(hand: Hand, mut it: HookRun, span: Span) {
    let hold = holding::take_for_hook(&hand, it.hold.take()).await;
    let (run, place) = hooks::complete(it, &hand.desk, unix_ms());
    let notice = hand.teller(Input::Noticed);
    let task = world::hooks::run(&run, &place, &hand.desk.children.hooks.groups, &notice);
    // Cancelling drops the future, and with it the processes.
    let work = hand.guard(task).instrument(span.clone());
    let report = hand.cancel.run_until_cancelled(work).await;
    let changes = match hold {
        Some(id) => Some(holding::changes(&hand, id, &[]).await),
        None => None,
    };
    let Some(report) = report else {
        traces::note_error(&span, "cancelled");
        let report = HookReport { changes, ..HookReport::of(HookEnd::NotStarted("cancelled".to_owned())) };
        return hand.say(Input::Hooked { effect: hand.id, report: Box::new(report) }).await;
    };
    let report = report.unwrap_or_else(|panic| HookReport::of(HookEnd::NotStarted(panic)));
    let report = HookReport { changes, ..report };
    traces::note_hook(&span, &report);
    drop(span);
    hand.say(Input::Hooked { effect: hand.id, report: Box::new(report) }).await;
}

/// Text beyond the threshold goes to a file that the model can read in pieces.
async fn cut(desk: &Arc<Desk>, call: &ToolCall, mut output: ToolOutput) -> ToolOutput {
    let max = desk.intake.truncate_at;
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
