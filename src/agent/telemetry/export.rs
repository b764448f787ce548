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

use reqwest::Url;
use secrecy::ExposeSecret;
use serde_json::Value as Json;
use tracing::Level;
use tracing_subscriber::{Layer, filter::filter_fn};

use super::{
    Boxed, GeminiTelemetry,
    gemini::{self, ExportTarget, GeminiExport},
    is_ours, otlp,
    settings::{self, ExportSettings},
    spans::{EndedSpan, ExportItem, SpanLayer, now_ns},
};
use castor_base::model::{Failure, FailureKind};
use castor_hands::{
    http::{Http, HttpLink},
    secrets::Env,
};

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

/// The exporter, and the layer that feeds it, where somebody names a collector. What is wrong with their words is said on
/// stderr.
pub fn wanted(env: &Env, wishes: &GeminiTelemetry) -> Option<(Exporter, Boxed)> {
    let spans = settings::read(env).unwrap_or_else(|why| {
        eprintln!("castor: no spans are exported: {why}");
        None
    });
    let gemini = gemini::read(env, wishes).unwrap_or_else(|why| {
        eprintln!("castor: no telemetry in Gemini CLI's names is exported: {why}");
        None
    });
    let (exporter, spans) = start(Targets { spans, gemini, resource: settings::resource(env) })?.ok()?;
    let filter = filter_fn(|it| it.is_span() && is_ours(it.target()) && *it.level() <= Level::INFO);
    Some((exporter, spans.with_filter(filter).boxed()))
}

/// Who wants to know.
struct Targets {
    spans: Option<ExportSettings>,
    gemini: Option<GeminiExport>,
    resource: Vec<(String, String)>,
}

impl Targets {
    /// All of them are reached in the same way.
    fn link(&self) -> Option<HttpLink> {
        let collector = self.gemini.as_ref().and_then(|it| match &it.sink {
            ExportTarget::Collector(it) => Some(it.link.clone()),
            ExportTarget::File(_) => None,
        });
        self.spans.as_ref().map(|it| it.link.clone()).or(collector)
    }
}

/// `None`: nobody wants to know. An error: there is no thread to be had.
fn start(targets: Targets) -> Option<io::Result<(Exporter, SpanLayer)>> {
    if targets.spans.is_none() && targets.gemini.is_none() {
        return None;
    }
    let (queue, items) = sync_channel(QUEUE_LEN);
    let n_lost = Arc::new(AtomicU64::new(0));
    let http = Http::new(targets.link().unwrap_or_default());
    let post = Poster { http, targets, n_lost: n_lost.clone(), has_failed: false };
    let begin = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let run = move || run(&items, post, &runtime);
        std::thread::Builder::new().name("castor-spans".to_owned()).spawn(run)?;
        Ok((Exporter { queue: queue.clone() }, SpanLayer { queue, n_lost }))
    };
    Some(begin())
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
    targets: Targets,
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
        let of_spans = match &self.targets.spans {
            Some(it) => self.post_body(it, it.url.clone(), &otlp::body(&it.resource, spans)).await,
            None => Ok(()),
        };
        let of_gemini = self.post_gemini(spans).await;
        match of_spans.and(of_gemini) {
            Ok(()) => self.has_failed = false,
            // Said once each time that it begins to fail.
            Err(why) if !self.has_failed => {
                self.has_failed = true;
                tracing::warn!("spans are not exported: {}", why.message);
            }
            Err(why) => tracing::debug!("spans are not exported: {}", why.message),
        }
    }

    async fn post_gemini(&mut self, spans: &[EndedSpan]) -> Result<(), Failure> {
        let now_ns = now_ns();
        let Some(export) = &self.targets.gemini else { return Ok(()) };
        let messages = gemini::messages(export, &self.targets.resource, spans, now_ns);
        for (place, body) in messages {
            match &export.sink {
                ExportTarget::Collector(it) => {
                    let url = it.url.join(place).unwrap_or_else(|_| it.url.clone());
                    self.post_body(it, url, &body).await?;
                }
                ExportTarget::File(file) => gemini::write_line(file, &body)
                    .map_err(|it| Failure::new(FailureKind::Status, format!("telemetry.outfile: {it}")))?,
            }
        }
        if let Some(it) = &mut self.targets.gemini {
            it.since_ns = now_ns;
        }
        Ok(())
    }

    async fn post_body(&self, to: &ExportSettings, url: Url, body: &Json) -> Result<(), Failure> {
        let client = self.http.client()?;
        let mut request = client.post(url.clone()).json(body);
        for (name, value) in &to.headers {
            request = request.header(name, value.expose_secret());
        }
        let answer = self.http.send(request, &url).await?;
        match answer.status() {
            it if it.is_success() => Ok(()),
            it => {
                let check = "check OTEL_EXPORTER_OTLP_ENDPOINT and its headers";
                let text = format!("the collector answered HTTP {}; {check}", it.as_u16());
                Err(Failure::new(FailureKind::Status, text))
            }
        }
    }
}
