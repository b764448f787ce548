//! The span exporter: a thread that posts finished spans from a bounded queue.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    time::{Duration, Instant},
};

use secrecy::ExposeSecret;
use tracing::Level;
use tracing_subscriber::{Layer, filter::filter_fn};

use super::{
    Boxed, is_ours, otlp,
    settings::{self, Settings},
    spans::{EndedSpan, ExportItem, SpanLayer},
};
use crate::world::{http::Http, secrets::Env};

/// Spans that wait; more are dropped.
const QUEUE_LEN: usize = 2_048;
/// Spans of one post.
const BATCH_SIZE: usize = 256;
/// How long a span waits for others.
const BATCH_DELAY: Duration = Duration::from_secs(1);

/// The end of the queue that castor's own end holds.
pub struct Exporter {
    queue: SyncSender<ExportItem>,
}

impl Exporter {
    /// Waits, no longer than this, for what is still to be posted; a collector that does not answer loses it.
    pub fn flush(&self, limit: Duration) {
        let (done, wait) = sync_channel(1);
        if self.queue.try_send(ExportItem::Flush(done)).is_ok() {
            _ = wait.recv_timeout(limit);
        }
    }
}

/// The exporter, and the layer that feeds it, where the environment names a collector. What is wrong with its words is
/// said on stderr.
pub fn wanted(env: &Env) -> Option<(Exporter, Boxed)> {
    let settings = settings::read(env).unwrap_or_else(|why| {
        eprintln!("castor: no spans are exported: {why}");
        None
    });
    let (exporter, spans) = start(settings?).ok()?;
    let filter = filter_fn(|it| it.is_span() && is_ours(it.target()) && *it.level() <= Level::INFO);
    Some((exporter, spans.with_filter(filter).boxed()))
}

/// # Errors
/// When there is no thread to be had.
fn start(settings: Settings) -> io::Result<(Exporter, SpanLayer)> {
    let (queue, items) = sync_channel(QUEUE_LEN);
    let n_lost = Arc::new(AtomicU64::new(0));
    let post = Poster { http: Http::new(settings.link.clone()), settings, n_lost: n_lost.clone(), has_failed: false };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let run = move || run(&items, post, &runtime);
    std::thread::Builder::new().name("castor-spans".to_owned()).spawn(run)?;
    Ok((Exporter { queue: queue.clone() }, SpanLayer { queue, n_lost }))
}

/// Until the last sender is gone.
fn run(items: &Receiver<ExportItem>, mut post: Poster, runtime: &tokio::runtime::Runtime) {
    while let Ok(first) = items.recv() {
        let (mut spans, mut asked) = (Vec::new(), None);
        let until = Instant::now() + BATCH_DELAY;
        let mut next = Some(first);
        while let Some(item) = next.take() {
            match item {
                ExportItem::Span(it) => spans.push(*it),
                ExportItem::Flush(done) => asked = Some(done),
            }
            if spans.len() < BATCH_SIZE && asked.is_none() {
                next = items.recv_timeout(until.saturating_duration_since(Instant::now())).ok();
            }
        }
        if !spans.is_empty() {
            runtime.block_on(post.post(&spans));
        }
        if let Some(done) = asked {
            _ = done.try_send(());
        }
    }
}

struct Poster {
    http: Http,
    settings: Settings,
    n_lost: Arc<AtomicU64>,
    has_failed: bool,
}

impl Poster {
    /// Once: a collector that is away is no reason to keep anything.
    async fn post(&mut self, spans: &[EndedSpan]) {
        let n_lost = self.n_lost.swap(0, Ordering::Relaxed);
        if n_lost > 0 {
            tracing::warn!("{n_lost} spans were dropped: the collector is too slow");
        }
        match self.try_post(spans).await {
            Ok(()) => self.has_failed = false,
            // Said once each time that it begins to fail.
            Err(why) if !self.has_failed => {
                self.has_failed = true;
                tracing::warn!("spans are not exported: {why}");
            }
            Err(why) => tracing::debug!("spans are not exported: {why}"),
        }
    }

    async fn try_post(&self, spans: &[EndedSpan]) -> Result<(), String> {
        let body = otlp::body(&self.settings.resource, spans);
        let client = self.http.client().map_err(|it| it.message)?;
        let mut request = client.post(self.settings.url.clone()).json(&body);
        for (name, value) in &self.settings.headers {
            request = request.header(name, value.expose_secret());
        }
        let answer = self.http.send(request, &self.settings.url).await.map_err(|it| it.message)?;
        match answer.status() {
            it if it.is_success() => Ok(()),
            it => Err(format!(
                "the collector answered HTTP {}; check OTEL_EXPORTER_OTLP_ENDPOINT and its headers",
                it.as_u16()
            )),
        }
    }
}
