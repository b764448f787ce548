//! What a command prints, shown while it runs: at once at first, then not too often and not too much.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::output::plain;
use crate::{
    base::{fs::BoxFuture, text::tail},
    world::tools::Progress,
};

/// Between two updates.
const PERIOD: Duration = Duration::from_millis(50);
/// The most that one update holds, without the note on what was left out.
const CHUNK: usize = 16 * 1024;

/// Holds what was not shown yet: its end. The command never waits for the editor.
pub struct Live {
    progress: Progress,
    fresh: String,
    omitted: usize,
    next: Instant,
    sending: Option<BoxFuture<'static, ()>>,
}

impl Live {
    pub fn new(progress: Progress) -> Self {
        Self { progress, fresh: String::new(), omitted: 0, next: Instant::now(), sending: None }
    }

    pub fn push(&mut self, text: &str) {
        let kept = tail(text, CHUNK);
        self.omitted += text.len() - kept.len();
        self.fresh.push_str(kept);
        if self.fresh.len() > CHUNK {
            let kept = tail(&self.fresh, CHUNK).to_owned();
            self.omitted += self.fresh.len() - kept.len();
            self.fresh = kept;
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
        if self.fresh.is_empty() {
            std::future::pending::<()>().await;
        }
        sleep_until(self.next).await;
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
        let fresh = std::mem::take(&mut self.fresh);
        let (shown, rest) = plain(&fresh);
        rest.clone_into(&mut self.fresh);
        self.next = Instant::now() + PERIOD;
        let text = match std::mem::take(&mut self.omitted) {
            0 => shown,
            omitted => format!("… {omitted} bytes omitted\n{shown}"),
        };
        if !text.is_empty() {
            self.sending = Some((self.progress)(text));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use tokio::{
        sync::{Semaphore, mpsc},
        time::{Instant, timeout},
    };

    use super::{CHUNK, Live};
    use crate::world::tools::Progress;

    fn recorder(gate: Arc<Semaphore>) -> (Progress, mpsc::UnboundedReceiver<(u128, String)>) {
        let (sender, shown) = mpsc::unbounded_channel();
        let start = Instant::now();
        let progress: Progress = Arc::new(move |text| {
            let (sender, gate) = (sender.clone(), gate.clone());
            Box::pin(async move {
                gate.acquire().await.unwrap().forget();
                sender.send((start.elapsed().as_millis(), text)).unwrap();
            })
        });
        (progress, shown)
    }

    /// Steps for `ms` of (paused) time.
    async fn run(live: &mut Live, ms: u64) {
        let all = async {
            loop {
                live.step().await;
            }
        };
        _ = timeout(Duration::from_millis(ms), all).await;
    }

    #[tokio::test(start_paused = true)]
    async fn first_at_once_then_every_50_ms() {
        let (progress, mut shown) = recorder(Arc::new(Semaphore::new(99)));
        let mut live = Live::new(progress);
        for n in 0..11 {
            live.push(&n.to_string());
            run(&mut live, 10).await;
        }
        live.push("end\x1b[0m\x1b[");
        live.finish().await;
        let shown: Vec<_> = std::iter::from_fn(|| shown.try_recv().ok()).collect();
        let texts: Vec<_> = shown.iter().map(|it| it.1.as_str()).collect();
        assert_eq!(texts, ["0", "12345", "678910", "end"]);
        assert_eq!(shown[0].0, 0);
        assert!(shown.windows(2).take(2).all(|it| it[1].0 - it[0].0 >= 50), "{shown:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_gets_the_end() {
        let gate = Arc::new(Semaphore::new(1));
        let (progress, mut shown) = recorder(gate.clone());
        let mut live = Live::new(progress);
        live.push("first");
        run(&mut live, 1).await;
        live.push("blocked");
        run(&mut live, 100).await;
        for _ in 0..1000 {
            live.push(&"é".repeat(1000));
            assert!(live.fresh.len() <= CHUNK);
        }
        live.push(&"z".repeat(CHUNK - 1));
        gate.add_permits(9);
        live.finish().await;
        let texts: Vec<_> = std::iter::from_fn(|| shown.try_recv().ok()).map(|it| it.1).collect();
        assert_eq!(texts[..2], ["first", "blocked"]);
        assert_eq!(texts[2], format!("… 2000000 bytes omitted\n{}", "z".repeat(CHUNK - 1)));
        assert_eq!(texts.len(), 3);
    }
}
