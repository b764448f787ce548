//! The tracing layer that turns finished spans into records for the exporter.

use std::{
    fmt::Debug,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::SyncSender,
    },
    time::{SystemTime, UNIX_EPOCH},
};

use tracing::{
    Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};
use tracing_subscriber::{Layer, layer::Context, registry::LookupSpan};

use castor_base::text;

/// The name of spans that are moments, with no work in them.
pub const MOMENT: &str = "moment";
/// Longest text of an attribute, in bytes.
const MAX_TEXT: usize = 512;

pub enum ExportItem {
    Span(Box<EndedSpan>),
    /// Post what there is, then say so.
    Flush(SyncSender<()>),
}

/// A span that ended.
#[derive(Clone, Debug)]
pub struct EndedSpan {
    pub name: &'static str,
    pub place: SpanPlace,
    pub parent: Option<u64>,
    pub start_ns: u128,
    pub end_ns: u128,
    pub attributes: Vec<(&'static str, SpanValue)>,
    pub tracestate: Option<String>,
    /// The session that it belongs to.
    pub session: Option<Arc<str>>,
}

/// A span's trace and id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanPlace {
    pub trace: u128,
    pub span: u64,
    /// The program that began the trace decides whether it is kept.
    pub sampled: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum SpanValue {
    Text(String),
    Int(i64),
    Bool(bool),
}

/// Never waits: what finds the queue full is counted and dropped.
#[derive(Clone)]
pub struct SpanLayer {
    pub queue: SyncSender<ExportItem>,
    pub n_lost: Arc<AtomicU64>,
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for SpanLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let above = |it: &EndedSpan| (it.place, it.session.clone());
        let above = span.parent().and_then(|it| it.extensions().get::<EndedSpan>().map(above));
        let (parent, session) = above.map_or((None, None), |(place, session)| (Some(place), session));
        let mut ended = EndedSpan {
            name: span.name(),
            place: SpanPlace { trace: random(), span: random() as u64, sampled: true },
            parent: parent.map(|it| it.span),
            start_ns: now_ns(),
            end_ns: 0,
            attributes: Vec::new(),
            tracestate: None,
            session,
        };
        if let Some(it) = parent {
            ended.place = SpanPlace { span: ended.place.span, ..it };
        }
        attributes.record(&mut ended);
        span.extensions_mut().insert(ended);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(it) = span.extensions_mut().get_mut::<EndedSpan>() {
            values.record(it);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let Some(mut ended) = span.extensions_mut().remove::<EndedSpan>().filter(|it| it.place.sampled) else { return };
        ended.end_ns = now_ns();
        if self.queue.try_send(ExportItem::Span(Box::new(ended))).is_err() {
            self.n_lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl EndedSpan {
    fn add(&mut self, field: &Field, value: SpanValue) {
        match (field.name(), value) {
            // Recorded before the span has children.
            ("traceparent", SpanValue::Text(it)) => self.join_trace(&it),
            ("tracestate", SpanValue::Text(it)) => self.tracestate = Some(it),
            // For others down the line, of which we have none.
            ("baggage", _) => (),
            (name, value) => {
                if let ("session.id", SpanValue::Text(it)) = (name, &value) {
                    self.session = Some(it.as_str().into());
                }
                self.attributes.push((name, value));
            }
        }
    }

    /// The span becomes one of the client's trace; `traceparent` was checked where it was read.
    fn join_trace(&mut self, traceparent: &str) {
        let mut parts = traceparent.split('-').skip(1);
        let trace = parts.next().and_then(|it| u128::from_str_radix(it, 16).ok());
        let parent = parts.next().and_then(|it| u64::from_str_radix(it, 16).ok());
        let flags = parts.next().and_then(|it| u8::from_str_radix(it, 16).ok());
        if let (Some(trace), Some(parent), Some(flags)) = (trace, parent, flags) {
            self.place = SpanPlace { trace, sampled: flags & 1 == 1, ..self.place };
            self.parent = Some(parent);
        }
    }
}

impl Visit for EndedSpan {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record_str(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, SpanValue::Text(text::head(value, MAX_TEXT).to_owned()));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, SpanValue::Int(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, SpanValue::Int(i64::try_from(value).unwrap_or(i64::MAX)));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, SpanValue::Bool(value));
    }
}

pub fn now_ns() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_nanos())
}

/// Its lower half is random throughout, as span ids and the standard's trace ids ask for.
fn random() -> u128 {
    uuid::Uuid::now_v7().as_u128()
}
