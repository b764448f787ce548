//! The event loop: waits for an event, steps the machine, sends its output; drains when stdin closes, in the middle of a turn too.
//!
//! To drain is to cancel all turns, to answer all requests, to run the hooks of sessions that end, and to kill what is left.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::{Notify, mpsc::Receiver},
};

use crate::server::{
    event::Event,
    machine::Machine,
    stdio::{self, Stdin, Stdout},
};
use castor_hands::process::heap::release_free_heap;

/// How often it is looked whether a client that is not listened to has gone.
const STDIN_POLL: Duration = Duration::from_millis(100);
/// Events of one loop turn: after so many the client sees what there is.
const BATCH: usize = 64;
/// A turn beyond this is logged with the event that began it.
const LONG_TURN: Duration = Duration::from_millis(50);
/// After a session has left the memory: seldom one leaves alone.
const RELEASE_AFTER: Duration = Duration::from_secs(3);

pub struct Inbox {
    /// Bytes of the client.
    pub stdin: Stdin,
    /// Written, editor requests: always taken.
    pub control: Receiver<Event>,
    /// Answers of the world: taken while the client reads.
    pub answers: Receiver<Event>,
    /// Woken by a shared store.
    pub stored: Arc<Notify>,
}

/// Which queues are listened to beside `control`.
#[derive(Clone, Copy)]
struct OpenQueues {
    stdin: bool,
    answers: bool,
    stored: bool,
    /// When a timer is due, in Unix milliseconds.
    due_ms: Option<u64>,
}

impl OpenQueues {
    fn of(machine: &Machine) -> Self {
        Self {
            stdin: machine.takes_stdin(),
            answers: machine.takes_answers(),
            stored: machine.is_storing(),
            due_ms: machine.next_timer_ms(),
        }
    }
}

/// Runs until the client is gone or a signal comes. Returns when the end began. `hooks_limit`: how long hooks may take then.
///
/// # Errors
/// When signals cannot be listened for.
pub async fn run(
    machine: &mut Machine,
    mut inbox: Inbox,
    stdout: &Stdout,
    hooks_limit: Duration,
) -> std::io::Result<Instant> {
    let [term, int, hup] = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
    let mut ends = [signal(term)?, signal(int)?, signal(hup)?];
    let (mut n_sessions, mut release_at) = (0, None);
    loop {
        // Signals and timers are heard only when the runtime gets a moment: a flood of requests must leave it one.
        tokio::task::yield_now().await;
        let event = tokio::select! {
            biased;
            event = next_event(&mut inbox, OpenQueues::of(machine), &mut ends) => event,
            () = wait_until(release_at) => {
                release_free_heap();
                release_at = None;
                continue;
            }
        };
        let (start, name) = (Instant::now(), event.name());
        let (mut next, mut n_handled, mut ended) = (Some(event), 0, false);
        while let Some(event) = next.take() {
            ended = machine.handle_event(event, unix_ms());
            n_handled += 1;
            // What is taken out of a queue is handled in this turn: nothing may fall between two turns.
            if !ended && n_handled < BATCH {
                next = ready_event(&mut inbox, OpenQueues::of(machine));
            }
        }
        let lines = machine.flush();
        send(stdout, machine, lines);
        machine.run_deferred();
        if machine.n_sessions() < n_sessions {
            release_at = release_at.or(Some(start + RELEASE_AFTER));
        }
        n_sessions = machine.n_sessions();
        if start.elapsed() > LONG_TURN {
            tracing::info!("a loop turn of {} ms began with {name}", start.elapsed().as_millis());
        }
        if ended {
            drain(machine, inbox, stdout, hooks_limit).await;
            return Ok(start);
        }
    }
}

pub fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_millis() as u64)
}

/// For ever without a time.
async fn wait_until(at: Option<Instant>) {
    match at {
        Some(it) => tokio::time::sleep_until(it.into()).await,
        None => std::future::pending().await,
    }
}

/// Ends what `flush` began.
fn send(stdout: &Stdout, machine: &mut Machine, lines: Vec<u8>) {
    if !lines.is_empty() {
        let is_idle = machine.unsent() == lines.len();
        machine.mark_sent(stdout.send(lines, is_idle));
    }
    machine.sync_logs();
}

async fn next_event(inbox: &mut Inbox, open: OpenQueues, [term, int, hup]: &mut [Signal; 3]) -> Event {
    let wait = Duration::from_millis(open.due_ms.unwrap_or_default().saturating_sub(unix_ms()));
    tokio::select! {
        biased;
        _ = term.recv() => Event::Terminate,
        _ = int.recv() => Event::Terminate,
        _ = hup.recv() => Event::Terminate,
        () = inbox.stored.notified(), if open.stored => Event::Stored,
        Some(event) = inbox.control.recv() => event,
        () = tokio::time::sleep(wait), if open.due_ms.is_some() => Event::Timer,
        event = inbox.stdin.next(), if open.stdin => event,
        () = wait_stdin_closed(), if !open.stdin => Event::StdinClosed,
        Some(event) = inbox.answers.recv(), if open.answers => event,
    }
}

/// The end of the input lies behind what is not taken from it: who neither reads nor writes is not waited for.
async fn wait_stdin_closed() {
    while !stdio::stdin_is_closed() {
        tokio::time::sleep(STDIN_POLL).await;
    }
}

/// Another event that is there already.
fn ready_event(inbox: &mut Inbox, open: OpenQueues) -> Option<Event> {
    let stdin = |inbox: &mut Inbox| open.stdin.then(|| inbox.stdin.ready()).flatten();
    let answers = |inbox: &mut Inbox| open.answers.then(|| inbox.answers.try_recv().ok()).flatten();
    inbox.control.try_recv().ok().or_else(|| stdin(inbox)).or_else(|| answers(inbox))
}

/// Stops all tasks, answers all requests, and writes what the client still reads, within half a second.
async fn drain(machine: &mut Machine, mut inbox: Inbox, stdout: &Stdout, hooks_limit: Duration) {
    machine.cancel_prompts();
    // A client may pipe requests and close stdin: listings are finished first.
    let listed = drain_while(machine, &mut inbox, Machine::is_reading);
    _ = tokio::time::timeout(Duration::from_millis(250), listed).await;
    let lines = machine.flush_last();
    send(stdout, machine, lines);
    machine.end_sessions();
    _ = tokio::time::timeout(hooks_limit, drain_while(machine, &mut inbox, Machine::has_chores)).await;
    let lines = machine.finish();
    send(stdout, machine, lines);
    let groups = machine.groups();
    let written = drain_while(machine, &mut inbox, Machine::has_unsent);
    let written = tokio::time::timeout(Duration::from_millis(500), written);
    // Both at once: the whole end takes less than a second, unless a command is just being started.
    _ = tokio::join!(written, groups.kill_all());
}

/// Takes what does not ask for anything new, while that is of use.
async fn drain_while(machine: &mut Machine, inbox: &mut Inbox, is_of_use: fn(&Machine) -> bool) {
    while is_of_use(machine) {
        match inbox.control.recv().await {
            Some(
                event @ (Event::SessionsListed(_)
                | Event::StoreAnswered { .. }
                | Event::Completed { .. }
                | Event::ChoreDone
                | Event::GrantSaved
                | Event::Written(_)),
            ) => _ = machine.handle_event(event, unix_ms()),
            Some(Event::StdoutClosed) | None => return,
            Some(_) => (),
        }
    }
}

#[cfg(test)]
mod tests {
    use nix::sys::signal::{Signal, raise};
    use tokio::{
        signal::unix::{SignalKind, signal},
        sync::mpsc::channel,
    };

    use super::{Inbox, OpenQueues, next_event};
    use crate::server::{event::Event, stdio::Stdin};

    #[tokio::test]
    async fn a_flood_of_requests_does_not_keep_a_signal_away() {
        let (requests, stdin) = channel(16);
        let ((_control, control), (_answers, answers)) = (channel(1), channel(1));
        let mut inbox = Inbox { stdin: Stdin::Thread(stdin), control, answers, stored: Default::default() };
        let (first, second) = (SignalKind::user_defined1(), SignalKind::user_defined2());
        let mut ends = [first, second, second].map(|it| signal(it).unwrap());
        let open = OpenQueues { stdin: true, answers: true, stored: false, due_ms: None };
        raise(Signal::SIGUSR1).unwrap();
        for _ in 0..10 {
            while requests.try_send(Event::Stdin(Vec::new())).is_ok() {}
            tokio::task::yield_now().await;
            let event = next_event(&mut inbox, open, &mut ends).await;
            if matches!(event, Event::Terminate) {
                return;
            }
        }
        panic!("the signal was not heard");
    }
}
