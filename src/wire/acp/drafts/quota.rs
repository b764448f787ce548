//! Draft of quotas and limits (RFD quotas-and-limits): `quota/read` and the update `quota_update`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json, value::RawValue};

use crate::acp::{session::iso_time, updates::notification};
use castor_base::{
    ids::SessionId,
    limits::{LimitKind, LimitSpan, LimitUsage, Limits},
    quota::RateLimit,
};

#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
#[schemars(rename = "QuotaRead")]
pub(in crate::acp) struct ReadMethod {
    params: Option<ReadParams>,
    result: Option<QuotaSnapshot>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "QuotaReadParams")]
struct ReadParams {
    /// Absent: what holds for every session.
    session_id: Option<SessionId>,
    #[serde(rename = "_meta")]
    #[allow(dead_code, reason = "nothing of it is known")]
    meta: Option<Map<String, Value>>,
}

/// All that is known of quotas at one time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuotaSnapshot {
    /// RFC 3339.
    pub updated_at: String,
    pub pools: Vec<QuotaPool>,
}

/// What use is charged to.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct QuotaPool {
    /// `castor.session`, `castor.turn`, or a provider's name.
    id: String,
    label: String,
    /// `available` or `exhausted`.
    state: &'static str,
    meters: Vec<QuotaMeter>,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuotaMeter {
    id: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    used: Option<Quantity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<Quantity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining: Option<Quantity>,
    /// RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    resets_at: Option<String>,
    /// `ok` or `exceeded`.
    status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
struct Quantity {
    /// Decimal.
    value: String,
    unit: &'static str,
}

/// Reads quota/read.
///
/// # Errors
/// See [`crate::acp::params`].
pub fn read_params(params: Option<&RawValue>) -> Result<Option<SessionId>, String> {
    let Some(params) = params else { return Ok(None) };
    let it: ReadParams = crate::acp::params(Some(params))?;
    Ok(it.session_id)
}

/// The limits that were set in castor, for a turn or a session. `None`: there are none.
pub fn pool_of_limits(span: LimitSpan, limits: &Limits, used: &LimitUsage) -> Option<QuotaPool> {
    let caps = limits.caps(span);
    let meter = |what: LimitKind| {
        let (cap, used, unit, is_reached) = match what {
            LimitKind::Requests => whole(caps.requests?, used.requests, "requests"),
            LimitKind::Tokens => whole(caps.tokens?, used.tokens, "tokens"),
            LimitKind::Time => whole(caps.seconds?, used.ms / 1000, "seconds"),
            LimitKind::Cost => {
                let (cap, used) = (caps.cost?, used.cost);
                (json!(cap.as_dollars()).to_string(), json!(used.as_dollars()).to_string(), "USD", used >= cap)
            }
        };
        let quantity = |value: String| Some(Quantity { value, unit });
        let (remaining, resets_at, status) = (None, None, status(is_reached));
        Some(QuotaMeter { id: what.name(), used: quantity(used), limit: quantity(cap), remaining, resets_at, status })
    };
    let meters: Vec<QuotaMeter> = LimitKind::ALL.into_iter().filter_map(meter).collect();
    let label = format!("Limits of this {}", span.name());
    (!meters.is_empty()).then(|| pool(format!("castor.{}", span.name()), label, meters))
}

fn whole(cap: u64, used: u64, unit: &'static str) -> (String, String, &'static str, bool) {
    (cap.to_string(), used.to_string(), unit, used >= cap)
}

/// What a provider said of its rate limits. One that is whole again since is not told any more.
pub fn pool_of_provider(name: &str, limits: &[RateLimit], now_ms: u64) -> Option<QuotaPool> {
    let known = limits.iter().filter(|it| it.resets_ms.is_none_or(|it| it > now_ms));
    let meter = |it: &RateLimit| {
        let unit = if it.what == "requests" { "requests" } else { "tokens" };
        let quantity = |value: u64| Quantity { value: value.to_string(), unit };
        QuotaMeter {
            id: it.what,
            used: None,
            limit: it.limit.map(quantity),
            remaining: Some(quantity(it.remaining)),
            resets_at: it.resets_ms.map(iso_time),
            status: status(it.remaining == 0),
        }
    };
    let meters: Vec<QuotaMeter> = known.map(meter).collect();
    (!meters.is_empty()).then(|| pool(name.to_owned(), format!("Rate limits of {name}"), meters))
}

fn status(is_reached: bool) -> &'static str {
    if is_reached { "exceeded" } else { "ok" }
}

fn pool(id: String, label: String, meters: Vec<QuotaMeter>) -> QuotaPool {
    let is_exhausted = meters.iter().any(|it| it.status == "exceeded");
    QuotaPool { id, label, state: if is_exhausted { "exhausted" } else { "available" }, meters }
}

/// The update, as clients with `session.quota` get it.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "QuotaUpdate")]
pub(in crate::acp) struct QuotaUpdate<'a> {
    /// `quota_update`.
    session_update: &'static str,
    #[serde(flatten)]
    snapshot: &'a QuotaSnapshot,
}

/// Appends it.
pub fn push_update(session: &SessionId, snapshot: &QuotaSnapshot, lines: &mut Vec<u8>) {
    let update = QuotaUpdate { session_update: "quota_update", snapshot };
    notification("session/update", &json!({ "sessionId": session, "update": update }), lines);
}
