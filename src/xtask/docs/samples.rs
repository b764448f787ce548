//! Values for the examples in the reference: what a member looks like, and which optional ones an example shows.

use serde_json::Value;

/// Members with their values, as JSON. The first that fits is shown; a member without one has a value of its type.
#[rustfmt::skip]
const SAMPLES: &[(&str, &str)] = &[
    ("afterTimestamp", r#""2026-11-23T18:44:48.497Z""#),
    ("agent", r#""reviewer""#),
    ("amount", "0.0004"),
    ("api-key", r#""a-key""#),
    ("args", r#"{"title":"lunch"}"#),
    ("args", r#""auth""#),
    ("argument", r#""repository""#),
    ("baggage", r#""tenant=a""#),
    ("baseUrl", r#""https://gateway.example.com""#),
    ("call", r#""c1""#),
    ("changes", "[]"),
    ("client", r#""my-editor""#),
    ("command", r#""/usr/local/bin/castor""#),
    ("checkpointId", r#""k1""#),
    ("code", r#""recovery_turn""#),
    ("config", r#"{"thought_level":"high"}"#),
    ("configOptions", r#"[{"id":"model","name":"Model","type":"select","currentValue":"demo","options":[{"value":"demo","name":"demo"}]}]"#),
    ("conflicts", "[]"),
    ("credential", r#""model/gemini""#),
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
    ("displayContent", r#""Soup.""#),
    ("displayName", r#""Reviewer""#),
    ("get", r#"["plan"]"#),
    ("id", r#""k1""#),
    ("headers", r#"{"x-tenant":"a"}"#),
    ("interactive", "false"),
    ("interceptor", r#""guard""#),
    ("intercepts", r#""before_tool""#),
    ("kind", r#""my-bot/ticket""#),
    ("label", r#""Log in""#),
    ("limits", r#""requests=5""#),
    ("llmContent", r#""Soup at noon.""#),
    ("messageId", r#""m1""#),
    ("methodId", r#""gemini-api-key""#),
    ("mode", r#""plan""#),
    ("model", r#""gemini-3.8-flash""#),
    ("name", r#""reviewer""#),
    ("notKept", "[]"),
    ("parametersSchema", r#"{"type":"object","properties":{"title":{"type":"string"}}}"#),
    ("payload", r#"{"tool_name":"write_file","tool_input":{"file_path":"other.md","content":"new"}}"#),
    ("point", r#""before_tool""#),
    ("policy", r#""veto""#),
    ("principal", r#""user""#),
    ("prompt", r#"[{"type":"text","text":"Use tabs."}]"#),
    ("removed", "[]"),
    ("replay", "true"),
    ("requestId", "4"),
    ("requestId", r#""c1""#),
    ("restored", r#"["/work/project/other.md"]"#),
    ("rule", r#""default/read-only.toml: read_file""#),
    ("server", r#""github""#),
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
    ("supportedHookPoints", r#""before_tool""#),
    ("terminal_id", r#""c1""#),
    ("threadId", r#""""#),
    ("time", r#""2026-11-23T18:44:48.560Z""#),
    ("timeoutMs", "5000"),
    ("title", r#""Review""#),
    ("tool", r#""read_file""#),
    ("tool_name", r#""write_file""#),
    ("tools", r#"["read_file","glob"]"#),
    (
        "tools",
        r#"[{"name":"read_file","displayName":"ReadFile","description":"Reads a file.","parametersSchema":{"type":"object"},"source":"castor","annotations":{"readOnly":true,"longRunning":false}}]"#,
    ),
    ("traceparent", r#""00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01""#),
    ("tracestate", r#""a=1""#),
    ("types", r#"["message","agent_end"]"#),
    ("userId", r#""u1""#),
    ("values", r#""castor""#),
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

/// Values of members of that name.
pub fn of(member: &str) -> impl Iterator<Item = Value> {
    SAMPLES.iter().filter(move |it| it.0 == member).filter_map(|it| serde_json::from_str(it.1).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_json() {
        for (name, text) in SAMPLES {
            assert!(serde_json::from_str::<Value>(text).is_ok(), "{name}: {text}");
        }
    }
}
