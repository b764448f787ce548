//! The one loop: waits for an event, handles it, says what came of it.

use std::time::{Duration, Instant};

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc::Receiver,
};

use crate::{
    app::{
        dispatch,
        event::Event,
        flush, listing, mcp,
        state::{State, Timers, unix_ms},
        stdio::{self, Stdout},
        sweep,
        terminals::How,
    },
    base::ids::SessionId,
    engine::step::Input,
    wire::jsonrpc::frame::Framer,
};

/// Unwritten bytes above which no model or tool output is taken.
const SOFT: usize = 1024 * 1024;
/// Unwritten bytes above which the client is not listened to either: it must read first.
const HARD: usize = 64 * 1024 * 1024;
/// How often it is looked whether a client that is not listened to has gone.
const LOOK: Duration = Duration::from_millis(100);
/// Events of one loop turn: after so many the client sees what there is.
const BATCH: usize = 64;
/// A turn beyond this is logged with the event that began it.
const LONG_TURN: Duration = Duration::from_millis(50);

pub struct Inbox {
    /// Bytes of the client.
    pub stdin: Receiver<Event>,
    /// Written, editor requests: always taken.
    pub control: Receiver<Event>,
    /// Answers of the world: taken while the client reads.
    pub answers: Receiver<Event>,
}

/// Runs until the client is gone or a signal comes.
///
/// # Errors
/// When signals cannot be listened for.
pub async fn run(state: &mut State, mut inbox: Inbox, stdout: &Stdout) -> std::io::Result<()> {
    let mut framer = Framer::default();
    let mut unsent = 0;
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    loop {
        // Signals and timers are heard only when the runtime gets a moment: a flood of requests must leave it one.
        tokio::task::yield_now().await;
        let event = next_event(&state.timers, &mut inbox, unsent, &mut term, &mut int).await;
        let (start, name) = (Instant::now(), event.name());
        let (mut next, mut n_handled, mut ended) = (Some(event), 0, false);
        while let Some(event) = next.take() {
            match event {
                Event::Written(n) => unsent = usize::saturating_sub(unsent, n),
                other => ended = handle(state, &mut framer, other),
            }
            n_handled += 1;
            // What is taken out of a queue is handled in this turn: nothing may fall between two turns.
            if !ended && n_handled < BATCH {
                next = ready_event(&mut inbox, unsent);
            }
        }
        let lines = flush::flush(state);
        if !lines.is_empty() {
            unsent += lines.len();
            stdout.send(lines);
        }
        sweep::when_due(state);
        if start.elapsed() > LONG_TURN {
            tracing::warn!("a loop turn of {} ms began with {name}", start.elapsed().as_millis());
        }
        if ended {
            return drain(state, inbox, stdout, unsent).await;
        }
    }
}

/// Handles one event; true when it is the last one.
fn handle(state: &mut State, framer: &mut Framer, event: Event) -> bool {
    match event {
        Event::Stdin(bytes) => {
            framer.push(&bytes);
            while let Some(frame) = framer.next() {
                dispatch::frame(state, frame);
            }
        }
        Event::StdinClosed => {
            if let Some(frame) = framer.finish() {
                dispatch::frame(state, frame);
            }
            return true;
        }
        Event::StdoutClosed | Event::Terminate => return true,
        Event::Engine { session, input } => {
            let ran = match input {
                Input::Ran { effect, .. } => Some(effect),
                _ => None,
            };
            state.world.ended(&session, &input);
            state.step(&session, input);
            if let Some(effect) = ran {
                let requests = state.terminals.give_back(&session, effect, How::Release);
                state.tell(requests);
            }
        }
        Event::Mcp { server, news } => mcp::heard(state, server, news),
        Event::Editor(request) => flush::ask_editor(state, request),
        Event::Listed(listing) => listing::answer(state, *listing),
        Event::Timer => {
            while let Some((session, effect)) = state.timers.pop_due(unix_ms()) {
                state.step(&session, Input::Woke { effect });
            }
        }
        // Counted by the loop.
        Event::Written(_) => (),
    }
    false
}

async fn next_event(timers: &Timers, inbox: &mut Inbox, unsent: usize, term: &mut Signal, int: &mut Signal) -> Event {
    let due = timers.next_ms();
    let wait = Duration::from_millis(due.unwrap_or_default().saturating_sub(unix_ms()));
    tokio::select! {
        biased;
        _ = term.recv() => Event::Terminate,
        _ = int.recv() => Event::Terminate,
        Some(event) = inbox.control.recv() => event,
        () = tokio::time::sleep(wait), if due.is_some() => Event::Timer,
        event = inbox.stdin.recv(), if unsent < HARD => event.unwrap_or(Event::StdinClosed),
        () = gone(), if unsent >= HARD => Event::StdinClosed,
        Some(event) = inbox.answers.recv(), if unsent < SOFT => event,
    }
}

/// The end of the input lies behind what is not taken from it: who neither reads nor writes is not waited for.
async fn gone() {
    while !stdio::stdin_is_closed() {
        tokio::time::sleep(LOOK).await;
    }
}

/// Another event that is there already.
fn ready_event(inbox: &mut Inbox, unsent: usize) -> Option<Event> {
    let stdin = |inbox: &mut Inbox| (unsent < HARD).then(|| inbox.stdin.try_recv().ok()).flatten();
    let answers = |inbox: &mut Inbox| (unsent < SOFT).then(|| inbox.answers.try_recv().ok()).flatten();
    inbox.control.try_recv().ok().or_else(|| stdin(inbox)).or_else(|| answers(inbox))
}

/// Everything is stopped, everybody is answered, and what the client still reads is written; at most half a second.
async fn drain(state: &mut State, mut inbox: Inbox, stdout: &Stdout, mut unsent: usize) -> std::io::Result<()> {
    let ids: Vec<SessionId> = state.sessions.keys().cloned().collect();
    for id in ids {
        state.step(&id, Input::Cancel);
    }
    // Who sends a script and closes wants its answers too: a listing is always near its end.
    let listed = async {
        while state.world.n_listings > 0 {
            match inbox.control.recv().await {
                Some(Event::Listed(it)) => listing::answer(state, *it),
                Some(Event::Written(n)) => unsent = unsent.saturating_sub(n),
                Some(Event::StdoutClosed) | None => return,
                Some(_) => (),
            }
        }
    };
    _ = tokio::time::timeout(Duration::from_millis(250), listed).await;
    // Prompts end as cancelled; what is open then has no better answer.
    let mut lines = flush::flush(state);
    flush::answer_all(state);
    state.world.abort_all();
    state.world.mcp.stop_all();
    lines.extend(flush::flush(state));
    if !lines.is_empty() {
        unsent += lines.len();
        stdout.send(lines);
    }
    let written = async {
        while unsent > 0 {
            match inbox.control.recv().await {
                Some(Event::Written(n)) => unsent = unsent.saturating_sub(n),
                Some(Event::StdoutClosed) | None => return,
                Some(_) => (),
            }
        }
    };
    let written = tokio::time::timeout(Duration::from_millis(500), written);
    // Both at once: the whole end takes less than a second.
    _ = tokio::join!(written, state.world.groups.kill_all());
    Ok(())
}

#[cfg(test)]
mod tests {
    use nix::sys::signal::{Signal, raise};
    use tokio::{
        signal::unix::{SignalKind, signal},
        sync::mpsc::channel,
    };

    use super::{Inbox, next_event};
    use crate::app::{event::Event, state::Timers};

    #[tokio::test]
    async fn a_flood_of_requests_does_not_keep_a_signal_away() {
        let (requests, stdin) = channel(16);
        let ((_control, control), (_answers, answers)) = (channel(1), channel(1));
        let mut inbox = Inbox { stdin, control, answers };
        let mut first = signal(SignalKind::user_defined1()).unwrap();
        let mut second = signal(SignalKind::user_defined2()).unwrap();
        raise(Signal::SIGUSR1).unwrap();
        for _ in 0..10 {
            while requests.try_send(Event::Stdin(Vec::new())).is_ok() {}
            tokio::task::yield_now().await;
            let event = next_event(&Timers::default(), &mut inbox, 0, &mut first, &mut second).await;
            if matches!(event, Event::Terminate) {
                return;
            }
        }
        panic!("the signal was not heard");
    }
}
