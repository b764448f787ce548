//! Telemetry in Gemini CLI's names: log events and metrics, derived from spans that ended. Off unless its settings or
//! variables ask for it.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Write},
    path::Path,
};

use serde_json::{Value as Json, json};

use super::{
    GeminiTelemetry, moments, otlp,
    records::{Attributes, MetricCount, Record},
    settings::{ExportSettings, SettingsError, collector},
    spans::{EndedSpan, MOMENT, SpanValue},
};
use castor_base::path::AbsPath;
use castor_hands::{disk, secrets::Env};

/// Where it goes.
#[derive(Debug)]
pub enum ExportTarget {
    /// OTLP over HTTP, as JSON; the URL is that of the collector, without `v1`.
    Collector(Box<ExportSettings>),
    /// Each message as a line.
    File(File),
}

#[derive(Debug)]
pub struct GeminiExport {
    pub sink: ExportTarget,
    /// Spans go there, too.
    pub traces: bool,
    /// Until when the last metrics counted.
    pub since_ns: u128,
}

/// `None`: nobody asked for it.
///
/// # Errors
/// What castor cannot do.
pub fn read(env: &Env, wishes: &GeminiTelemetry) -> Result<Option<GeminiExport>, SettingsError> {
    if !wishes.enabled {
        return Ok(None);
    }
    if wishes.target.as_deref() == Some("gcp") {
        return Err(SettingsError::NoCloud);
    }
    let sink = match &wishes.outfile {
        Some(name) => ExportTarget::File(open(name).map_err(|why| SettingsError::NoFile { name: name.clone(), why })?),
        None if wishes.protocol.as_deref() == Some("grpc") => return Err(SettingsError::NoGrpc),
        None => ExportTarget::Collector(Box::new(collector(env, wishes.endpoint.as_deref())?)),
    };
    Ok(Some(GeminiExport { sink, traces: wishes.traces, since_ns: 0 }))
}

/// Relative to where castor was started, as there.
fn open(name: &str) -> io::Result<File> {
    let path = std::path::absolute(Path::new(name))?;
    disk::open_private_log(&AbsPath::new(path).ok_or(io::ErrorKind::InvalidInput)?)
}

/// A line of the file.
///
/// # Errors
/// When it cannot be written.
pub fn write_line(mut file: &File, message: &Json) -> io::Result<()> {
    file.write_all(format!("{message}\n").as_bytes())
}

/// The messages about these spans, each with the end of its collector's address.
pub fn messages(
    export: &GeminiExport,
    resource: &[(String, String)],
    spans: &[EndedSpan],
    now_ns: u128,
) -> Vec<(&'static str, Json)> {
    let records: Vec<Record<'_>> = spans.iter().flat_map(records).collect();
    let mut res = Vec::new();
    let logs: Vec<Json> = records.iter().filter_map(Record::log).collect();
    if !logs.is_empty() {
        let scope = json!([{ "scope": otlp::scope(), "logRecords": logs }]);
        res.push((
            "v1/logs",
            json!({ "resourceLogs": [{ "resource": otlp::resource(resource), "scopeLogs": scope }] }),
        ));
    }
    let points = metrics(&records, export.since_ns, now_ns);
    if !points.is_empty() {
        let scope = json!([{ "scope": otlp::scope(), "metrics": points }]);
        let body = json!({ "resourceMetrics": [{ "resource": otlp::resource(resource), "scopeMetrics": scope }] });
        res.push(("v1/metrics", body));
    }
    if export.traces {
        res.push(("v1/traces", otlp::body(resource, spans)));
    }
    res
}

fn records(span: &EndedSpan) -> Vec<Record<'_>> {
    match span.name {
        "model" => {
            let begun = begin(span, "gemini_cli.api_request", ("model", "gen_ai.request.model"));
            [begun, model(span), operation(span)].into_iter().chain(check(span)).collect()
        }
        "tool" => [tool(span)]
            .into_iter()
            .chain(agent(span))
            .chain(file(span))
            .chain(truncated(span))
            .chain(edit(span))
            .collect(),
        "hook" => vec![hook(span)],
        "request" => request(span).into_iter().collect(),
        MOMENT => moments::record(span).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// It began: nothing but its name is known.
fn begin<'a>(span: &'a EndedSpan, event: &'static str, (name, ours): (&'static str, &str)) -> Record<'a> {
    let attributes = vec![(name, SpanValue::Text(text(span, ours)))];
    Record { span, event, at_ns: span.start_ns, attributes, counts: Vec::new(), measures: Vec::new() }
}

fn model(span: &EndedSpan) -> Record<'_> {
    let (model, ms) = (text(span, "gen_ai.request.model"), millis(span));
    let named = || vec![("model", SpanValue::Text(model.clone()))];
    let mut attributes = named();
    attributes.push(("duration_ms", SpanValue::Int(ms)));
    let mut counts: Vec<MetricCount> = vec![("gemini_cli.api.request.count", named(), 1)];
    for (ours, count, kind) in [
        ("gen_ai.usage.input_tokens", "input_token_count", "input"),
        ("gen_ai.usage.output_tokens", "output_token_count", "output"),
        ("castor.usage.cached_tokens", "cached_content_token_count", "cache"),
        ("castor.usage.thought_tokens", "thoughts_token_count", "thought"),
    ] {
        let Some(n) = int(span, ours) else { continue };
        attributes.push((count, SpanValue::Int(n)));
        let of_kind = named().into_iter().chain([("type", SpanValue::Text(kind.to_owned()))]).collect();
        counts.push(("gemini_cli.token.usage", of_kind, n));
    }
    let failed = find(span, "error.type").cloned();
    let event = if failed.is_some() { "gemini_cli.api_error" } else { "gemini_cli.api_response" };
    attributes.extend(failed.map(|it| ("error_type", it)));
    let measures = vec![("gemini_cli.api.request.latency", named(), ms)];
    Record { span, event, at_ns: span.end_ns, attributes, counts, measures }
}

/// The same in the names of OpenTelemetry's conventions for models, as Gemini CLI has them.
fn operation(span: &EndedSpan) -> Record<'_> {
    let named: Attributes = ["gen_ai.operation.name", "gen_ai.request.model", "error.type"]
        .into_iter()
        .filter_map(|it| Some((it, find(span, it)?.clone())))
        .collect();
    let (mut attributes, mut measures) = (named.clone(), vec![(OPERATION_DURATION, named.clone(), millis(span))]);
    for (ours, kind) in [("gen_ai.usage.input_tokens", "input"), ("gen_ai.usage.output_tokens", "output")] {
        let Some(n) = int(span, ours) else { continue };
        attributes.push((ours, SpanValue::Int(n)));
        let of_kind = named.iter().cloned().chain([("gen_ai.token.type", SpanValue::Text(kind.to_owned()))]).collect();
        measures.push((CLIENT_TOKENS, of_kind, n));
    }
    let event = "gen_ai.client.inference.operation.details";
    Record { span, event, at_ns: span.end_ns, attributes, counts: Vec::new(), measures }
}

/// Questions to a model about the turn itself.
fn check(span: &EndedSpan) -> Option<Record<'_>> {
    let event = match text(span, "castor.model.purpose").as_str() {
        "next_speaker" => "gemini_cli.next_speaker_check",
        "loop_detector" | "loop_double_check" => "gemini_cli.llm_loop_check",
        _ => return None,
    };
    let attributes = vec![("model", SpanValue::Text(text(span, "gen_ai.request.model")))];
    Some(Record { span, event, at_ns: span.end_ns, attributes, counts: Vec::new(), measures: Vec::new() })
}

/// A call that read or wrote a file.
fn file(span: &EndedSpan) -> Option<Record<'_>> {
    let operation = find(span, "castor.file.operation")?.clone();
    let name = SpanValue::Text(text(span, "gen_ai.tool.name"));
    let mut by = vec![("operation", operation)];
    by.extend(find(span, "castor.file.extension").cloned().map(|it| ("extension", it)));
    let mut attributes = vec![("tool_name", name.clone())];
    attributes.extend(by.clone());
    let mut counts: Vec<MetricCount> = vec![("gemini_cli.file.operation.count", by, 1)];
    for (ours, kind) in [("castor.lines.added", "added"), ("castor.lines.removed", "removed")] {
        let Some(n) = int(span, ours) else { continue };
        let of_kind = vec![("function_name", name.clone()), ("type", SpanValue::Text(kind.to_owned()))];
        counts.push(("gemini_cli.lines.changed", of_kind, n));
    }
    let event = "gemini_cli.file_operation";
    Some(Record { span, event, at_ns: span.end_ns, attributes, counts, measures: Vec::new() })
}

/// How the place of an edit was found.
fn edit(span: &EndedSpan) -> Option<Record<'_>> {
    let strategy = match text(span, "castor.edit.strategy").as_str() {
        "" => return None,
        "tokens" => "regex".to_owned(),
        other => other.to_owned(),
    };
    let (event, attributes) = ("gemini_cli.edit_strategy", vec![("strategy", SpanValue::Text(strategy))]);
    Some(Record { span, event, at_ns: span.end_ns, attributes, counts: Vec::new(), measures: Vec::new() })
}

/// Its output went to a file, and the model has the ends of it.
fn truncated(span: &EndedSpan) -> Option<Record<'_>> {
    let before = int(span, "castor.output.whole")?;
    let attributes = vec![
        ("tool_name", SpanValue::Text(text(span, "gen_ai.tool.name"))),
        ("original_content_length", SpanValue::Int(before)),
        ("truncated_content_length", SpanValue::Int(int(span, "castor.output.size").unwrap_or_default())),
    ];
    let event = "gemini_cli.tool_output_truncated";
    Some(Record { span, event, at_ns: span.end_ns, attributes, counts: Vec::new(), measures: Vec::new() })
}

fn tool(span: &EndedSpan) -> Record<'_> {
    let (name, ms) = (text(span, "gen_ai.tool.name"), millis(span));
    let failed = find(span, "error.type").cloned();
    let kind = if name.starts_with("mcp_") { "mcp" } else { "native" };
    let named = vec![
        ("function_name", SpanValue::Text(name)),
        ("success", SpanValue::Bool(failed.is_none())),
        ("tool_type", SpanValue::Text(kind.to_owned())),
    ];
    let mut attributes = named.clone();
    attributes.push(("duration_ms", SpanValue::Int(ms)));
    attributes.extend(failed.map(|it| ("error_type", it)));
    for (theirs, ours) in [("mcp_server_name", "castor.mcp.server"), ("content_length", "castor.output.size")] {
        attributes.extend(find(span, ours).cloned().map(|it| (theirs, it)));
    }
    let of_name = named.iter().take(1).cloned().collect();
    let counts = vec![("gemini_cli.tool.call.count", named, 1)];
    let measures = vec![("gemini_cli.tool.call.latency", of_name, ms)];
    Record { span, event: "gemini_cli.tool_call", at_ns: span.end_ns, attributes, counts, measures }
}

/// A call that ran a sub-agent: its begin and its end.
fn agent(span: &EndedSpan) -> Vec<Record<'_>> {
    let Some(name) = find(span, "gen_ai.agent.name").cloned() else { return Vec::new() };
    let start = begin(span, "gemini_cli.agent.start", ("agent_name", "gen_ai.agent.name"));
    let (ms, turns) = (millis(span), int(span, "castor.agent.turns").unwrap_or_default());
    let reason = SpanValue::Text(text(span, "castor.agent.end"));
    let named = vec![("agent_name", name), ("terminate_reason", reason)];
    let mut attributes = named.clone();
    attributes.extend([("duration_ms", SpanValue::Int(ms)), ("turn_count", SpanValue::Int(turns))]);
    let of_name: Attributes = named.iter().take(1).cloned().collect();
    let measures = vec![("gemini_cli.agent.duration", of_name.clone(), ms), ("gemini_cli.agent.turns", of_name, turns)];
    let counts = vec![("gemini_cli.agent.run.count", named, 1)];
    let finish = Record { span, event: "gemini_cli.agent.finish", at_ns: span.end_ns, attributes, counts, measures };
    [start].into_iter().chain(recovery(span, &finish)).chain([finish]).collect()
}

/// The one turn that it had after it ran into a limit.
fn recovery<'a>(span: &'a EndedSpan, finish: &Record<'_>) -> Option<Record<'a>> {
    let outcome = text(span, "castor.agent.recovery");
    if outcome.is_empty() {
        return None;
    }
    let success = ("success", SpanValue::Bool(outcome == "succeeded"));
    // What the run would have ended with is not known by then, nor how long this turn took.
    let known = finish.attributes.iter().filter(|it| ["agent_name", "turn_count"].contains(&it.0));
    let attributes: Attributes = known.cloned().chain([success]).collect();
    let by = attributes.iter().filter(|it| it.0 != "turn_count").cloned().collect();
    let counts = vec![("gemini_cli.agent.recovery_attempt.count", by, 1)];
    let event = "gemini_cli.agent.recovery_attempt";
    Some(Record { span, event, at_ns: span.end_ns, attributes, counts, measures: Vec::new() })
}

fn hook(span: &EndedSpan) -> Record<'_> {
    let ms = millis(span);
    let code = int(span, "process.exit.code");
    let ended_well = find(span, "error.type").is_none() && code.is_none_or(|it| it == 0);
    let named = vec![
        ("hook_event_name", SpanValue::Text(text(span, "castor.hook.event"))),
        ("hook_name", SpanValue::Text(text(span, "castor.hook.name"))),
        ("success", SpanValue::Bool(ended_well)),
    ];
    let mut attributes = named.clone();
    attributes.push(("duration_ms", SpanValue::Int(ms)));
    attributes.extend(code.map(|it| ("exit_code", SpanValue::Int(it))));
    let measures = vec![("gemini_cli.hook_call.latency", named.clone(), ms)];
    Record {
        span,
        event: "gemini_cli.hook_call",
        at_ns: span.end_ns,
        attributes,
        counts: vec![("gemini_cli.hook_call.count", named, 1)],
        measures,
    }
}

fn request(span: &EndedSpan) -> Option<Record<'_>> {
    let record = |event, counts| {
        let at_ns = span.end_ns;
        Record { span, event, at_ns, attributes: Vec::new(), counts, measures: Vec::new() }
    };
    match text(span, "rpc.method").as_str() {
        "session/new" => Some(record("", vec![("gemini_cli.session.count", Vec::new(), 1)])),
        "session/prompt" => Some(record("gemini_cli.user_prompt", Vec::new())),
        _ => None,
    }
}

const OPERATION_DURATION: &str = "gen_ai.client.operation.duration";
const CLIENT_TOKENS: &str = "gen_ai.client.token.usage";
/// All others are in milliseconds.
const UNITS: &[(&str, &str)] = &[("gemini_cli.agent.turns", "1"), (OPERATION_DURATION, "s"), (CLIENT_TOKENS, "token")];

/// What was counted and measured since the last message, added up for each set of attributes.
fn metrics(records: &[Record<'_>], since_ns: u128, now_ns: u128) -> Vec<Json> {
    const DELTA: u8 = 1;
    let since_ns =
        records.iter().map(|it| it.span.start_ns).chain([now_ns]).min().map_or(since_ns, |it| it.max(since_ns));
    let times = |attributes: &Json| json!({ "attributes": attributes, "startTimeUnixNano": since_ns.to_string(), "timeUnixNano": now_ns.to_string() });
    let with = |attributes: &Json, more: Json| {
        let mut res = times(attributes);
        if let (Some(res), Json::Object(more)) = (res.as_object_mut(), more) {
            res.extend(more);
        }
        res
    };
    let mut sums: BTreeMap<&str, BTreeMap<String, (Json, i64)>> = BTreeMap::new();
    for (name, attributes, n) in records.iter().flat_map(|it| &it.counts) {
        let attributes = otlp::attributes(attributes);
        let at = sums.entry(name).or_default().entry(attributes.to_string()).or_insert_with(|| (attributes, 0));
        at.1 += n;
    }
    let mut spreads: BTreeMap<&str, BTreeMap<String, (Json, Vec<i64>)>> = BTreeMap::new();
    for (name, attributes, n) in records.iter().flat_map(|it| &it.measures) {
        let attributes = otlp::attributes(attributes);
        let all = spreads.entry(name).or_default().entry(attributes.to_string());
        all.or_insert_with(|| (attributes, Vec::new())).1.push(*n);
    }
    let sums = sums.into_iter().map(|(name, points)| {
        let points = points.values().map(|(it, n)| with(it, json!({ "asInt": n.to_string() })));
        let sum =
            json!({ "aggregationTemporality": DELTA, "isMonotonic": true, "dataPoints": points.collect::<Vec<_>>() });
        json!({ "name": name, "sum": sum })
    });
    let spreads = spreads.into_iter().map(|(name, points)| {
        let unit = UNITS.iter().find(|it| it.0 == name).map_or("ms", |it| it.1);
        let points = points.values().map(|(it, all)| {
            let n = all.len().to_string();
            let in_unit = |it: i64| if unit == "s" { json!(it as f64 / 1_000.0) } else { json!(it) };
            with(
                it,
                json!({
                    "count": n,
                    "sum": in_unit(all.iter().sum()),
                    "min": all.iter().min().copied().map(in_unit),
                    "max": all.iter().max().copied().map(in_unit),
                    "bucketCounts": [n],
                    "explicitBounds": [],
                }),
            )
        });
        let spread = json!({ "aggregationTemporality": DELTA, "dataPoints": points.collect::<Vec<_>>() });
        json!({ "name": name, "unit": unit, "histogram": spread })
    });
    sums.chain(spreads).collect()
}

fn find<'s>(span: &'s EndedSpan, key: &str) -> Option<&'s SpanValue> {
    span.attributes.iter().find(|it| it.0 == key).map(|it| &it.1)
}

fn text(span: &EndedSpan, key: &str) -> String {
    match find(span, key) {
        Some(SpanValue::Text(it)) => it.clone(),
        _ => String::new(),
    }
}

fn int(span: &EndedSpan, key: &str) -> Option<i64> {
    match find(span, key) {
        Some(SpanValue::Int(it)) => Some(*it),
        _ => None,
    }
}

fn millis(span: &EndedSpan) -> i64 {
    i64::try_from(span.end_ns.saturating_sub(span.start_ns) / 1_000_000).unwrap_or(i64::MAX)
}
