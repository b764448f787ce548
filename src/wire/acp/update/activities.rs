//! The last activities of a sub-agent, as the call that started it shows them.

use std::collections::VecDeque;

use serde_json::Value;

use castor_base::{
    event::{Activity, ActivityKind},
    shown_text::show_text,
};

/// So many lines are shown.
const SHOWN: usize = 3;

#[derive(Debug, Default)]
pub struct RecentActivities(VecDeque<Line>);

#[derive(Debug)]
struct Line {
    mark: &'static str,
    text: String,
    /// The call that it is about.
    call: String,
}

impl RecentActivities {
    /// The lines to show. A call that ends is marked in its own line.
    pub fn push(&mut self, activity: &Activity) -> String {
        let said = |key: &str| activity.data.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let call = if said("callId").is_empty() { said("id") } else { said("callId") };
        let known = self.0.iter_mut().find(|it| !call.is_empty() && it.call == call);
        match (activity.kind, known) {
            (ActivityKind::ToolCallStart, Some(line)) => line.text = said("description"),
            (ActivityKind::ToolCallEnd, Some(line)) => line.mark = "✓",
            (ActivityKind::Error, Some(line)) => {
                line.mark = "✗";
                line.text = format!("{}: {}", line.text, said("error"));
            }
            (ActivityKind::ToolCallStart, None) => self.add("…", said("description"), call),
            (ActivityKind::ToolCallEnd, None) => self.add("✓", said("name"), call),
            (ActivityKind::ThoughtChunk, None) => self.add("·", said("text"), call),
            (ActivityKind::Error, None) => self.add("✗", said("error"), call),
            (ActivityKind::ThoughtChunk, Some(_)) => (),
        }
        let lines: Vec<String> = self.0.iter().map(|it| format!("{} {}", it.mark, show_text(&it.text))).collect();
        lines.join("\n")
    }

    fn add(&mut self, mark: &'static str, text: String, call: String) {
        if self.0.len() == SHOWN {
            self.0.pop_front();
        }
        self.0.push_back(Line { mark, text, call });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::RecentActivities;

    #[test]
    fn the_last_three_are_shown() {
        let mut recent = RecentActivities::default();
        let mut shown = |kind: &str, data: Value| {
            let activity = json!({ "isSubagentActivityEvent": true, "agentName": "a", "type": kind, "data": data });
            recent.push(&serde_json::from_value(activity).unwrap())
        };
        let start = |id: &str, what: &str| json!({ "name": "t", "description": what, "callId": id });
        assert_eq!(shown("THOUGHT_CHUNK", json!({ "text": "Looking" })), "· Looking");
        assert_eq!(shown("TOOL_CALL_START", start("1", "read a")), "· Looking\n… read a");
        assert_eq!(shown("TOOL_CALL_START", start("2", "read b")), "· Looking\n… read a\n… read b");
        assert_eq!(
            shown("TOOL_CALL_END", json!({ "name": "t", "id": "1", "output": "" })),
            "· Looking\n✓ read a\n… read b"
        );
        let failed = json!({ "error": "no such file", "context": "tool_call", "callId": "2" });
        assert_eq!(shown("ERROR", failed), "· Looking\n✓ read a\n✗ read b: no such file");
        assert_eq!(shown("ERROR", json!({ "error": "e", "context": "run" })), "✓ read a\n✗ read b: no such file\n✗ e");
    }
}
