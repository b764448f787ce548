//! Live output of a running command, limited in rate and size.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::builtin::Progress;
use castor_base::{ansi::plain, fs::BoxFuture, terminal::Screen, text::tail};

/// Between two updates.
const PERIOD: Duration = Duration::from_millis(50);
/// The most that one update holds, without the note on what was left out.
const CHUNK: usize = 16 * 1024;

/// The way in which output is shown while a command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveStyle {
    /// As text, without escape sequences.
    Plain,
    /// As it is, for a client that draws it.
    Raw,
    /// Not by us: the client has it from its own terminal.
    Hidden,
}

impl LiveStyle {
    pub fn of(screen: Option<&Screen>) -> Self {
        match screen {
            None => Self::Plain,
            Some(Screen::Drawn { .. }) => Self::Raw,
            Some(Screen::Client { .. }) => Self::Hidden,
        }
    }
}

/// Shows what is pushed. The command never waits for the editor: what is too much is left out.
pub struct LiveOutput {
    style: LiveStyle,
    progress: Progress,
    fresh: UnshownOutput,
    sending: Option<BoxFuture<'static, ()>>,
}

impl LiveOutput {
    pub fn new(progress: Progress, style: LiveStyle) -> Self {
        Self { style, progress, fresh: UnshownOutput::new(Instant::now()), sending: None }
    }

    pub fn push(&mut self, text: &str) {
        if self.style != LiveStyle::Hidden {
            self.fresh.push(text);
        }
    }

    /// One step of showing: returns when something moved, never when there is nothing to show. Dropping the future
    /// loses nothing.
    pub async fn step(&mut self) {
        if let Some(sending) = &mut self.sending {
            sending.await;
            self.sending = None;
            return;
        }
        match self.fresh.due() {
            Some(due) => sleep_until(due).await,
            None => std::future::pending().await,
        }
        self.send();
    }

    /// Shows the rest.
    pub async fn finish(&mut self) {
        loop {
            if let Some(sending) = &mut self.sending {
                sending.await;
                self.sending = None;
            }
            self.send();
            if self.sending.is_none() {
                return;
            }
        }
    }

    fn send(&mut self) {
        self.sending = self.fresh.take(Instant::now(), self.style).map(|text| (self.progress)(text));
    }
}

/// What was not shown yet: its end. Asks no clock.
struct UnshownOutput {
    text: String,
    omitted: usize,
    next: Instant,
}

impl UnshownOutput {
    fn new(now: Instant) -> Self {
        Self { text: String::new(), omitted: 0, next: now }
    }

    fn push(&mut self, text: &str) {
        let kept = tail(text, CHUNK);
        self.omitted += text.len() - kept.len();
        self.text.push_str(kept);
        if self.text.len() > CHUNK {
            let kept = tail(&self.text, CHUNK).to_owned();
            self.omitted += self.text.len() - kept.len();
            self.text = kept;
        }
    }

    /// When to take it, if there is anything.
    fn due(&self) -> Option<Instant> {
        (!self.text.is_empty()).then_some(self.next)
    }

    /// For people; as plain text, an escape sequence that is not complete stays for the next time.
    fn take(&mut self, now: Instant, style: LiveStyle) -> Option<String> {
        let text = std::mem::take(&mut self.text);
        let shown = match style {
            LiveStyle::Raw | LiveStyle::Hidden => text,
            LiveStyle::Plain => {
                let (shown, rest) = plain(&text);
                rest.clone_into(&mut self.text);
                shown
            }
        };
        self.next = now + PERIOD;
        let res = match std::mem::take(&mut self.omitted) {
            0 => shown,
            omitted => format!("… {omitted} bytes omitted\n{shown}"),
        };
        (!res.is_empty()).then_some(res)
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use futures_util::FutureExt;
    use tokio::{sync::Semaphore, time::Instant};

    use super::{CHUNK, LiveOutput, LiveStyle, UnshownOutput};
    use castor_base::fs::BoxFuture;

    #[test]
    fn first_at_once_then_every_50_ms() {
        let start = Instant::now();
        let mut fresh = UnshownOutput::new(start);
        let mut shown = Vec::new();
        for ms in (0..120).step_by(10) {
            let now = start + Duration::from_millis(ms);
            fresh.push(&format!("{ms} "));
            if fresh.due().is_some_and(|it| it <= now) {
                shown.extend(fresh.take(now, LiveStyle::Plain));
            }
        }
        assert_eq!(shown, ["0 ", "10 20 30 40 50 ", "60 70 80 90 100 "]);
        fresh.push("end\x1b[0m\x1b[");
        assert_eq!(fresh.take(start, LiveStyle::Plain).as_deref(), Some("110 end"));
        fresh.push("1mbold");
        assert_eq!(fresh.take(start, LiveStyle::Plain).as_deref(), Some("bold"));
        assert_eq!((fresh.due(), fresh.take(start, LiveStyle::Plain)), (None, None));
    }

    #[test]
    fn too_much_is_left_out() {
        let mut fresh = UnshownOutput::new(Instant::now());
        for _ in 0..1000 {
            fresh.push(&"é".repeat(1000));
            assert!(fresh.text.len() <= CHUNK);
        }
        fresh.push(&"z".repeat(CHUNK - 1));
        let text = fresh.take(Instant::now(), LiveStyle::Plain).unwrap();
        assert_eq!(text, format!("… 2000000 bytes omitted\n{}", "z".repeat(CHUNK - 1)));
    }

    #[tokio::test]
    async fn a_slow_reader_stops_nobody() {
        let gate = Arc::new(Semaphore::new(0));
        let (sender, mut shown) = tokio::sync::mpsc::unbounded_channel();
        let open = gate.clone();
        let progress = Arc::new(move |text| -> BoxFuture<'static, ()> {
            let (sender, gate) = (sender.clone(), gate.clone());
            Box::pin(async move {
                gate.acquire().await.unwrap().forget();
                sender.send(text).unwrap();
            })
        });
        let mut live = LiveOutput::new(progress, LiveStyle::Plain);
        live.push("first ");
        live.step().await;
        assert!(live.step().now_or_never().is_none(), "it waits for the reader");
        live.push("second ");
        live.push("third");
        open.add_permits(9);
        live.finish().await;
        let shown: Vec<_> = std::iter::from_fn(|| shown.try_recv().ok()).collect();
        assert_eq!(shown, ["first ", "second third"]);
    }
}
