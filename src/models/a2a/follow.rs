//! Follows a remote task from its first message to its result. Streams that break off are resumed.

use std::{sync::Arc, time::Duration};

use a2a::{Message, SendMessageConfiguration, SendMessageRequest, StreamResponse};
use tokio::{
    runtime::Handle,
    time::{sleep, timeout},
};

use super::{
    Out,
    binding::RemoteCall,
    calls::{Caller, Events},
    messages::Memory,
    progress::{Outcome, TaskProgress},
};
use castor_base::model::{Failure, FailureKind};

/// Streams of one task that bring nothing, one after the other.
const MAX_EMPTY_STREAMS: u32 = 3;
/// Looks at a task that fail, one after the other.
const MAX_FAILED_LOOKS: u32 = 5;
/// Between looks, the first ones closer.
const LOOKS_EVERY: [Duration; 4] =
    [Duration::from_millis(200), Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(5)];
const CANCEL_LIMIT: Duration = Duration::from_secs(10);
const OUTPUT_MODES: &[&str] = &["text/plain", "text/markdown", "application/json"];

/// What changes while a task is followed.
pub struct Followed<'a> {
    pub progress: &'a mut TaskProgress,
    pub memory: &'a mut Memory,
    pub guard: &'a mut CancelOnDrop,
}

/// Nobody waits for the task any more: the server is told.
pub struct CancelOnDrop {
    caller: Arc<Caller>,
    task: Option<String>,
    runtime: Handle,
}

impl CancelOnDrop {
    pub fn new(caller: Arc<Caller>) -> Self {
        Self { caller, task: None, runtime: Handle::current() }
    }

    pub fn disarm(&mut self) {
        self.task = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let Some(task) = self.task.take() else { return };
        let caller = self.caller.clone();
        self.runtime.spawn(async move {
            // Whether it has ended by itself meanwhile does not matter.
            _ = timeout(CANCEL_LIMIT, caller.call(&RemoteCall::Cancel(&task))).await;
        });
    }
}

impl Followed<'_> {
    async fn take(&mut self, event: StreamResponse, out: &mut Out<'_>) {
        let thoughts = self.progress.take(event);
        self.guard.task = self.progress.task().filter(|_| self.progress.is_under_way()).map(str::to_owned);
        if self.progress.context() != self.memory.context.as_deref() {
            self.memory.context = self.progress.context().map(str::to_owned);
            self.memory.task = None;
            out.remember(self.memory).await;
        }
        out.think(thoughts).await;
    }
}

/// `message`: what begins the task; `None`: it is under way.
///
/// # Errors
/// The server cannot be reached, or does not answer as A2A wants.
pub async fn follow(
    caller: &Caller,
    message: Option<Message>,
    followed: &mut Followed<'_>,
    out: &mut Out<'_>,
) -> Result<Outcome, Failure> {
    let mut broke = None;
    if let Some(message) = message {
        broke = begin(caller, message, followed, out).await?;
    }
    let mut n_empty = 0;
    while caller.streams() && n_empty < MAX_EMPTY_STREAMS {
        if let Some(it) = followed.progress.outcome() {
            return Ok(it);
        }
        let Some(task) = followed.progress.task().map(str::to_owned) else { break };
        // Many servers cannot: then the task is looked at.
        let Ok(mut events) = caller.open(&RemoteCall::Subscribe(&task)).await else { break };
        let (count, _) = read(caller, &mut events, followed, out).await;
        n_empty = if count > 0 { 0 } else { n_empty + 1 };
    }
    poll(caller, broke, followed, out).await
}

/// Sends the message. What broke the stream, if something did.
async fn begin(
    caller: &Caller,
    message: Message,
    followed: &mut Followed<'_>,
    out: &mut Out<'_>,
) -> Result<Option<Failure>, Failure> {
    let modes = OUTPUT_MODES.iter().map(|it| (*it).to_owned()).collect();
    let configuration = SendMessageConfiguration {
        accepted_output_modes: Some(modes),
        task_push_notification_config: None,
        history_length: None,
        return_immediately: None,
    };
    let tenant = caller.tenant().map(str::to_owned);
    let request = SendMessageRequest { message, configuration: Some(configuration), metadata: None, tenant };
    if !caller.streams() {
        let event = caller.send(&RemoteCall::Send(&request)).await?;
        followed.take(event, out).await;
        return Ok(None);
    }
    let mut events = caller.open(&RemoteCall::Stream(&request)).await?;
    Ok(read(caller, &mut events, followed, out).await.1)
}

/// How many events came, and what broke the stream.
async fn read(
    caller: &Caller,
    events: &mut Events,
    followed: &mut Followed<'_>,
    out: &mut Out<'_>,
) -> (u32, Option<Failure>) {
    let mut count = 0;
    while followed.progress.outcome().is_none() {
        match caller.next(events).await {
            Ok(Some(it)) => followed.take(it, out).await,
            Ok(None) => return (count, None),
            Err(it) => return (count, Some(it)),
        }
        count += 1;
    }
    (count, None)
}

/// Looks at the task until it comes to something.
async fn poll(
    caller: &Caller,
    broke: Option<Failure>,
    followed: &mut Followed<'_>,
    out: &mut Out<'_>,
) -> Result<Outcome, Failure> {
    let (mut n_failed, mut waits) = (0, LOOKS_EVERY.iter());
    loop {
        if let Some(it) = followed.progress.outcome() {
            return Ok(it);
        }
        let Some(task) = followed.progress.task().map(str::to_owned) else {
            let nothing = || Failure::new(FailureKind::Stream, "the stream ended without a task or a message");
            return Err(broke.unwrap_or_else(nothing));
        };
        match caller.get_task(&task).await {
            Ok(it) => {
                n_failed = 0;
                followed.take(StreamResponse::Task(it), out).await;
            }
            Err(it) if n_failed + 1 >= MAX_FAILED_LOOKS || it.kind == FailureKind::Auth => return Err(it),
            Err(_) => n_failed += 1,
        }
        if followed.progress.outcome().is_none() {
            let wait = waits.next().or(LOOKS_EVERY.last());
            sleep(wait.copied().unwrap_or(CANCEL_LIMIT)).await;
        }
    }
}
