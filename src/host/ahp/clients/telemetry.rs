//! Telemetry for clients, in the shapes of OTLP: the log of the agent, and tokens and cost of turns.

use std::collections::BTreeSet;

use ahp::ahp_types::{
    notifications::{OtlpExportLogsParams, OtlpExportMetricsParams},
    state::TelemetryCapabilities,
};
use serde_json::{Map, Value, json};

use super::{Clients, channel::Channel};
use castor_wire::acp::client::PromptAnswer;

/// Severities by name, each with its first number in OTLP.
const SEVERITIES: &[(&str, u8)] =
    &[("TRACE", 1), ("DEBUG", 5), ("INFO", 9), ("WARN", 13), ("ERROR", 17), ("FATAL", 21)];
/// Lines without a severity are for people.
const PLAIN: (&str, u8) = ("INFO", 9);

pub fn capabilities() -> TelemetryCapabilities {
    let logs = format!("{}{{level}}", Channel::Logs(String::new()).uri());
    TelemetryCapabilities { logs: Some(logs), traces: None, metrics: Some(Channel::Metrics.uri()) }
}

/// The least severity of a channel of logs; `None`: there is no such level.
pub fn least_severity(level: &str) -> Option<u8> {
    SEVERITIES.iter().find(|it| it.0.eq_ignore_ascii_case(level)).map(|it| it.1)
}

impl Clients {
    /// One line of the agent's log goes to those that follow its severity.
    pub fn export_log(&mut self, line: &str) {
        let named = line.split_whitespace().take(3).find_map(|word| SEVERITIES.iter().find(|it| it.0 == word));
        let (name, number) = named.copied().unwrap_or(PLAIN);
        let record = json!({
            "timeUnixNano": nanos(self.now_ms), "severityNumber": number, "severityText": name,
            "body": { "stringValue": line },
        });
        let payload = payload("resourceLogs", "scopeLogs", "logRecords", vec![record]);
        let least = |it: &Channel| if let Channel::Logs(level) = it { least_severity(level) } else { None };
        let followed = self.all.values().flat_map(|it| &it.subscriptions);
        let followed = followed.filter(|it| least(it).is_some_and(|it| it <= number));
        for channel in followed.cloned().collect::<BTreeSet<Channel>>() {
            let params = OtlpExportLogsParams { channel: channel.uri(), payload: payload.clone() };
            self.broadcast(&channel, "otlp/exportLogs", &params);
        }
    }

    /// Tokens and cost of a turn, from the answer to its prompt.
    pub fn export_metrics(&mut self, session: &str, answer: &PromptAnswer) {
        let now = nanos(self.now_ms);
        let point = |name: &str, number: Value, kind: Option<&str>| {
            let all = [("castor.session.id", session)].into_iter().chain(kind.map(|it| ("gen_ai.token.type", it)));
            let attributes: Vec<Value> = all.map(|(key, it)| attribute(key, it)).collect();
            json!({ "timeUnixNano": now, "attributes": attributes, name: number })
        };
        let tokens = |n: u64, kind: &str| point("asInt", json!(n.to_string()), Some(kind));
        let tokens = answer.usage.map(|it| vec![tokens(it.input_tokens, "input"), tokens(it.output_tokens, "output")]);
        let cost = answer.cost().map(|it| vec![point("asDouble", json!(it.amount), None)]);
        let tokens = tokens.map(|it| sum("gen_ai.client.token.usage", "{token}", it));
        let cost = cost.map(|it| sum("castor.turn.cost", "USD", it));
        let metrics: Vec<Value> = tokens.into_iter().chain(cost).collect();
        if !metrics.is_empty() {
            let payload = payload("resourceMetrics", "scopeMetrics", "metrics", metrics);
            let params = OtlpExportMetricsParams { channel: Channel::Metrics.uri(), payload };
            self.broadcast(&Channel::Metrics, "otlp/exportMetrics", &params);
        }
    }
}

/// What one turn adds.
fn sum(name: &str, unit: &str, points: Vec<Value>) -> Value {
    let sum = json!({ "aggregationTemporality": 1, "isMonotonic": true, "dataPoints": points });
    json!({ "name": name, "unit": unit, "sum": sum })
}

fn payload(of_resource: &str, of_scope: &str, name: &str, list: Vec<Value>) -> Map<String, Value> {
    let scope = json!({ "scope": { "name": "castor acp" }, name: list });
    let resource = json!({ "resource": { "attributes": [attribute("service.name", "castor")] }, of_scope: [scope] });
    Map::from_iter([(of_resource.to_owned(), json!([resource]))])
}

fn attribute(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

/// OTLP has numbers of 64 bits as texts.
fn nanos(ms: u64) -> String {
    ms.saturating_mul(1_000_000).to_string()
}
