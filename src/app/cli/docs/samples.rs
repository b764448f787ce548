//! Values for the examples in the reference: what a member looks like, and which optional ones an example shows.

use serde_json::Value;

/// Members with their values, as JSON. A member that is not here has a value of its type.
#[rustfmt::skip]
const SAMPLES: &[(&str, &str)] = &[
    ("afterTimestamp", r#""2026-11-23T18:44:48.497Z""#),
    ("agent", r#""reviewer""#),
    ("amount", "0.0004"),
    ("api-key", r#""a-key""#),
    ("baggage", r#""tenant=a""#),
    ("baseUrl", r#""https://gateway.example.com""#),
    ("call", r#""c1""#),
    ("changes", "[]"),
    ("checkpointId", r#""k1""#),
    ("config", r#"{"thought_level":"high"}"#),
    ("configOptions", r#"[{"id":"model","name":"Model","type":"select","currentValue":"demo","options":[{"value":"demo","name":"demo"}]}]"#),
    ("conflicts", "[]"),
    ("currency", r#""USD""#),
    ("cwd", r#""/work/project""#),
    ("data", r#""running 48 tests\n""#),
    ("discards", r#"["m2"]"#),
    (
        "event",
        r#"{"id":"t1-0","streamId":"t1","timestamp":"2026-11-23T18:44:48.544Z","agentId":"castor","source":"agent","type":"agent_start"}"#,
    ),
    ("eventId", r#""t1-5""#),
    (
        "events",
        r#"[{"id":"t1-6","streamId":"t1","timestamp":"2026-11-23T18:44:48.650Z","agentId":"castor","source":"agent","type":"agent_end","reason":"completed"}]"#,
    ),
    ("exit_code", "0"),
    ("files", r#"[{"path":"other.md","change":"changed","added":1,"removed":0}]"#),
    ("description", r#""Reviews a change.""#),
    ("get", r#"["plan"]"#),
    ("id", r#""k1""#),
    ("headers", r#"{"x-tenant":"a"}"#),
    ("interactive", "false"),
    ("limits", r#""requests=5""#),
    ("messageId", r#""m1""#),
    ("mode", r#""plan""#),
    ("model", r#""gemini-2.5-flash""#),
    ("name", r#""reviewer""#),
    ("notKept", "[]"),
    ("prompt", r#"[{"type":"text","text":"Use tabs."}]"#),
    ("replay", "true"),
    ("requestId", "4"),
    ("restored", r#"["/work/project/other.md"]"#),
    ("sessionId", r#""01a2""#),
    ("set", r#"{"plan":"draft"}"#),
    ("signal", "null"),
    ("state", r#"{"plan":"draft"}"#),
    (
        "stats",
        r#"{"models":{},"tools":{"total":0,"succeeded":0,"failed":0,"durationMs":0,"decisions":{"accepted":0,"rejected":0,"automatic":0},"byName":{}},"files":{"added":0,"removed":0}}"#,
    ),
    ("streamId", r#""t1""#),
    ("subscriptionId", r#""sub-1""#),
    ("terminal_id", r#""c1""#),
    ("threadId", r#""""#),
    ("time", r#""2026-11-23T18:44:48.560Z""#),
    ("title", r#""Review""#),
    ("tool_name", r#""write_file""#),
    ("tools", r#"["read_file","glob"]"#),
    ("traceparent", r#""00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01""#),
    ("tracestate", r#""a=1""#),
    ("types", r#"["message","agent_end"]"#),
    ("userId", r#""u1""#),
    ("version", "2"),
    ("warnings", "[]"),
    ("what", r#""files""#),
];

/// Optional members that the example of a method shows.
pub const SHOWN: &[(&str, &[&str])] = &[
    ("_castor/agents/list", &["sessionId"]),
    ("_castor/session/events", &["eventId"]),
    ("_castor/session/subscribe", &["types", "replay"]),
    ("_castor/session/stream", &["eventId", "streamId"]),
    ("_castor/session/update", &["title", "model"]),
    ("_castor/session/event", &["subscriptionId"]),
    ("_castor/session/rewind", &["messageId", "what"]),
    ("_castor/session/state", &["get", "set"]),
];

/// The value of a member of that name.
pub fn of(member: &str) -> Option<Value> {
    let (_, text) = SAMPLES.iter().find(|it| it.0 == member)?;
    serde_json::from_str(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_json() {
        for (name, text) in SAMPLES {
            assert!(of(name).is_some(), "{name}: {text}");
        }
    }
}
