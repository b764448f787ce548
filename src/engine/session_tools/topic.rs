//! The tool `update_topic`: the current subject, which the client shows as the session's title.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::record::{Step, TitleSource};
use castor_base::{
    text,
    tool::{ToolError, ToolKind, ToolOutput, ToolSpec, ToolTraits},
};

pub const NAME: &str = "update_topic";

/// Longest title and longest other text, in characters.
const MAX_TITLE: usize = 80;
const MAX_CHARS: usize = 2_000;

#[derive(Deserialize)]
struct Topic {
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    summary: Option<String>,
    strategic_intent: String,
}

/// What is wrong with the model's call.
#[derive(Debug, Error)]
enum CallError {
    #[error("update_topic: the arguments are not valid: {0}.")]
    NotTopic(serde_json::Error),
    #[error("update_topic: strategic_intent has 1 to {MAX_CHARS} characters, summary at most as many.")]
    TextLength,
}

pub fn spec() -> ToolSpec {
    let text = |description: &str| json!({ "type": "string", "description": description });
    ToolSpec {
        name: NAME.into(),
        title: "UpdateTopic".into(),
        description:
            "Tells the user what the work is about, when that changes: at the start of a task, and at each new \
                      phase of it."
                .into(),
        kind: ToolKind::Think,
        traits: ToolTraits::TELLS,
        parameters: json!({
            "type": "object",
            "properties": {
                "title": text("The topic in a few words, if it is a new one."),
                "summary": text("What was found out or done so far, in a few sentences."),
                "strategic_intent": text("What is done next, in a sentence.")
            },
            "required": ["strategic_intent"]
        })
        .into(),
    }
}

pub fn run(step: &mut Step<'_>, args: &Map<String, Value>) -> ToolOutput {
    let topic = match read(args) {
        Ok(it) => it,
        Err(why) => return ToolOutput::failed(ToolError::new("invalid_tool_params", why.to_string())),
    };
    let mut told = Vec::new();
    if let Some(title) = &topic.title {
        step.set_title(TitleSource::Model, title);
        told.push(format!("Current topic: \"{title}\""));
    } else if let Some(title) = &step.record.title {
        told.push(format!("Current topic: \"{title}\""));
    }
    told.extend(topic.summary.as_ref().map(|it| format!("Topic summary: {it}")));
    told.push(format!("Strategic intent: {}", topic.strategic_intent));
    let shown = [topic.title, topic.summary, Some(topic.strategic_intent)];
    let summary = shown.into_iter().flatten().collect::<Vec<_>>().join("\n");
    ToolOutput { summary: Some(summary), ..ToolOutput::text(told.join("\n")) }
}

fn read(args: &Map<String, Value>) -> Result<Topic, CallError> {
    let topic = Topic::deserialize(Value::Object(args.clone()));
    let mut topic = topic.map_err(CallError::NotTopic)?;
    let fits = |it: &str| !it.trim().is_empty() && it.chars().nth(MAX_CHARS).is_none();
    if !fits(&topic.strategic_intent) || topic.summary.as_deref().is_some_and(|it| it.chars().nth(MAX_CHARS).is_some())
    {
        return Err(CallError::TextLength);
    }
    topic.title = topic.title.map(|it| text::first_line(&it, MAX_TITLE)).filter(|it| !it.trim().is_empty());
    topic.summary = topic.summary.filter(|it| !it.trim().is_empty());
    Ok(topic)
}
