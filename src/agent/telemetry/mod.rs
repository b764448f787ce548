//! Telemetry: the diagnostic log (`CASTOR_LOG`) and OpenTelemetry spans. It never delays a prompt.
//!
//! Keys do not get here: our own words never hold one, and of other crates, which at their lower levels print whole
//! requests, only warnings are taken.

#[cfg(feature = "otel")]
mod export;
#[cfg(not(feature = "otel"))]
#[path = "unexported.rs"]
mod export;
#[cfg(feature = "otel")]
mod gemini;
#[cfg(feature = "otel")]
mod moments;
#[cfg(feature = "otel")]
mod otlp;
#[cfg(feature = "otel")]
mod records;
#[cfg(feature = "otel")]
mod settings;
#[cfg(feature = "otel")]
mod spans;

use std::{
    fmt,
    fs::File,
    io::{self, IsTerminal},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tracing::{Event, Level, level_filters::LevelFilter};
use tracing_subscriber::{
    EnvFilter, Layer, Registry,
    filter::{FilterExt, filter_fn},
    fmt::{
        FmtContext, FormatEvent, FormatFields,
        format::{FmtSpan, Writer},
    },
    layer::SubscriberExt,
    registry::LookupSpan,
    util::SubscriberInitExt,
};

use castor_base::path::AbsPath;
use castor_hands::{disk, secrets::Env};
pub use export::Exporter;

/// What decides which lines are logged: tracing's filters, such as `debug` or `castor_tools=trace`.
pub const LOG_VAR: &str = "CASTOR_LOG";
/// Where the log goes instead of stderr; it is appended to.
pub const LOG_FILE_VAR: &str = "CASTOR_LOG_FILE";

type Boxed = Box<dyn Layer<Registry> + Send + Sync>;

/// What Gemini CLI's settings and variables ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GeminiTelemetry {
    pub enabled: bool,
    /// Spans go to the same place.
    pub traces: bool,
    pub target: Option<String>,
    pub endpoint: Option<String>,
    pub protocol: Option<String>,
    /// In place of a collector.
    pub outfile: Option<String>,
}

/// Begins the log and, where the environment names a collector, the export of spans. What is wrong with the wishes is
/// said on stderr, and castor goes on without.
pub fn start(env: &Env, wishes: &GeminiTelemetry) -> Option<Exporter> {
    let mut layers = vec![log_layer(env)];
    let exporter = export::wanted(env, wishes).map(|(exporter, spans)| {
        layers.push(spans);
        exporter
    });
    // A second one in the same process is refused, which is fine: there is a log then.
    _ = tracing_subscriber::registry().with(layers).try_init();
    exporter
}

fn log_layer(env: &Env) -> Boxed {
    let text = env.get(LOG_VAR).unwrap_or("warn");
    let filter = EnvFilter::try_new(text).unwrap_or_else(|it| {
        eprintln!("castor: {LOG_VAR}: {it}; write a level such as debug, or castor_tools=trace");
        EnvFilter::new("warn")
    });
    // The crate rmcp says whole addresses when one cannot be reached, and keys are in those of many servers. What is worth
    // knowing of it, `tools::mcp` says.
    let may_speak = |target: &str| !target.starts_with("rmcp");
    let ours = filter_fn(move |it| is_ours(it.target()) || *it.level() <= Level::WARN && may_speak(it.target()));
    let filter = filter.and(ours.with_max_level_hint(LevelFilter::TRACE));
    // What cannot be written to stderr cannot be complained about there: that would be a panic, of the loop itself.
    let layer = tracing_subscriber::fmt::layer().with_span_events(FmtSpan::CLOSE).log_internal_errors(false);
    match env.get(LOG_FILE_VAR).map(open) {
        Some(Ok(file)) => layer.with_writer(Arc::new(TextLog::new(file))).with_ansi(false).with_filter(filter).boxed(),
        other => {
            if let Some(Err(it)) = other {
                eprintln!("castor: {LOG_FILE_VAR}: {it}; the log is here");
            }
            // Editors and `run` read lines from a pipe: no colours there.
            let layer = layer.with_writer(io::stderr).with_ansi(io::stderr().is_terminal());
            match env.get(LOG_VAR) {
                Some(_) => layer.without_time().with_filter(filter).boxed(),
                // Nobody asked for a log: people read this.
                None => layer.event_format(PlainLine).with_filter(filter).boxed(),
            }
        }
    }
}

/// `warning: ` and the message: no time, and no module's path.
struct PlainLine;

impl<S, N> FormatEvent<S, N> for PlainLine
where
    S: tracing::Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, cx: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let word = if *event.metadata().level() == Level::ERROR { "error" } else { "warning" };
        write!(out, "{word}: ")?;
        cx.field_format().format_fields(out.by_ref(), event)?;
        writeln!(out)
    }
}

/// A log file. What it cannot take is lost, which is said once.
struct TextLog {
    file: File,
    is_broken: AtomicBool,
}

impl TextLog {
    fn new(file: File) -> Self {
        Self { file, is_broken: AtomicBool::new(false) }
    }
}

impl io::Write for &TextLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = (&self.file).write(bytes);
        if let Err(it) = &written
            && !self.is_broken.swap(true, Ordering::Relaxed)
        {
            // Not with a macro, which would panic where nobody reads stderr.
            _ = writeln!(io::stderr(), "castor: {LOG_FILE_VAR}: {it}; log lines are lost");
        }
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        (&self.file).flush()
    }
}

/// Relative to where castor was started: the path is the shell's.
fn open(path: &str) -> io::Result<File> {
    let path = std::path::absolute(Path::new(path))?;
    let path = AbsPath::new(path).ok_or(io::ErrorKind::InvalidInput)?;
    disk::open_private_log(&path)
}

/// True for castor's own crates: `castor`, `castor_agent` and the like.
fn is_ours(target: &str) -> bool {
    target.strip_prefix("castor").is_some_and(|it| it.is_empty() || it.starts_with("::") || it.starts_with('_'))
}
