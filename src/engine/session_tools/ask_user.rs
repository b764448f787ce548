//! The tool `ask_user`: the model's questions to the user. It needs no approval: the question is the call.

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use thiserror::Error;

use castor_base::{
    elicitation::asks_for_secret,
    log::Answer,
    question::{Choice, Field, FieldKind, Form},
    tool::{ASK_USER, ToolError, ToolKind, ToolOutput, ToolSpec, ToolTraits},
};

pub const NAME: &str = ASK_USER;

/// Questions of one call, and options of one question.
const MAX_QUESTIONS: usize = 4;
const OPTIONS: std::ops::RangeInclusive<usize> = 2..=4;
/// Longest text of a call, in characters, and longest answer.
const MAX_CHARS: usize = 2_000;
const MAX_ANSWER: u32 = 10_000;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PendingQuestion {
    question: String,
    #[serde(default)]
    header: Option<String>,
    #[serde(default, rename = "type")]
    kind: QuestionKind,
    #[serde(default)]
    options: Option<Vec<GrantOffer>>,
    #[serde(default)]
    multi_select: Option<bool>,
    #[serde(default)]
    placeholder: Option<String>,
}

#[derive(Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum QuestionKind {
    #[default]
    Choice,
    Text,
    YesNo,
}

#[derive(Deserialize)]
struct GrantOffer {
    label: String,
    #[serde(default)]
    description: Option<String>,
}

/// A fault of the model's call.
#[derive(Debug, Error)]
enum CallError {
    #[error("`questions` is required")]
    NoQuestions,
    #[error("`questions` is not valid: {0}")]
    NotQuestions(serde_json::Error),
    #[error("1 to {MAX_QUESTIONS} questions, not {0}")]
    QuestionCount(usize),
    #[error("a secret must not be asked for here; say in your message where the user should put it")]
    AsksForSecret,
    #[error("{} to {} options for a choice", OPTIONS.start(), OPTIONS.end())]
    OptionCount,
    #[error("two options have the same label")]
    SameLabel,
    #[error("each {what} has 1 to {MAX_CHARS} characters")]
    TextLength { what: &'static str },
}

pub fn spec() -> ToolSpec {
    /// One for all sessions.
    static SPEC: LazyLock<ToolSpec> = LazyLock::new(build);
    SPEC.clone()
}

fn build() -> ToolSpec {
    let option = json!({
        "type": "object",
        "properties": { "label": { "type": "string" }, "description": { "type": "string" } },
        "required": ["label"]
    });
    let question = json!({
        "type": "object",
        "properties": {
            "question": { "type": "string" },
            "header": { "type": "string", "description": "One or two words that name it." },
            "type": { "type": "string", "enum": ["choice", "text", "yesno"] },
            "options": { "type": "array", "items": option, "description": "2 to 4, for `choice`." },
            "multiSelect": { "type": "boolean", "description": "Whether several options may be chosen." },
            "placeholder": { "type": "string", "description": "An example of an answer, for `text`." }
        },
        "required": ["question", "type"]
    });
    ToolSpec {
        name: NAME.into(),
        title: "AskUser".into(),
        description:
            "Asks the user 1 to 4 questions, when the task cannot be settled without an answer that only they \
                      have. Returns {\"answers\": {index: answer}}. Never ask for passwords, keys or other secrets."
                .into(),
        kind: ToolKind::Other,
        traits: ToolTraits::ASKS,
        parameters: json!({
            "type": "object",
            "properties": { "questions": { "type": "array", "items": question } },
            "required": ["questions"]
        })
        .into(),
    }
}

/// The form that the user gets. Its fields are named by the questions' indices.
///
/// # Errors
/// For the model: what is wrong with its call.
pub fn form(args: &Map<String, Value>) -> Result<Form, ToolError> {
    read(args).map_err(|why| ToolError::new("invalid_tool_params", format!("{NAME}: {why}.")))
}

fn read(args: &Map<String, Value>) -> Result<Form, CallError> {
    let questions = args.get("questions").ok_or(CallError::NoQuestions)?;
    let questions: Vec<PendingQuestion> = Vec::deserialize(questions).map_err(CallError::NotQuestions)?;
    if questions.is_empty() || questions.len() > MAX_QUESTIONS {
        return Err(CallError::QuestionCount(questions.len()));
    }
    let fields = questions.into_iter().enumerate().map(|(at, it)| field(at, it)).collect::<Result<Vec<_>, _>>()?;
    let message = match fields.as_slice() {
        [only] => only.label().to_owned(),
        more => format!("The agent has {} questions.", more.len()),
    };
    Ok(Form { message, fields })
}

fn field(at: usize, it: PendingQuestion) -> Result<Field, CallError> {
    let question = plain(&it.question, "question")?;
    let header = it.header.as_deref().map(|it| plain(it, "header")).transpose()?;
    let kind = match it.kind {
        QuestionKind::YesNo => FieldKind::Bool,
        QuestionKind::Text if asks_for_secret(&question) => return Err(CallError::AsksForSecret),
        QuestionKind::Text => FieldKind::Text { min: Some(1), max: Some(MAX_ANSWER), format: None },
        QuestionKind::Choice => {
            let options = it.options.unwrap_or_default();
            if !OPTIONS.contains(&options.len()) {
                return Err(CallError::OptionCount);
            }
            choices(options, it.multi_select.unwrap_or(false))?
        }
    };
    let description = match it.placeholder.filter(|it| !it.trim().is_empty()) {
        Some(example) => format!("{question} (for example: {})", plain(&example, "placeholder")?),
        None => question,
    };
    Ok(Field {
        name: at.to_string(),
        title: header,
        description: Some(description),
        required: true,
        kind,
        default: None,
    })
}

fn choices(options: Vec<GrantOffer>, several: bool) -> Result<FieldKind, CallError> {
    let mut res: Vec<Choice> = Vec::new();
    for it in options {
        let label = plain(&it.label, "label")?;
        if res.iter().any(|it| it.value == label) {
            return Err(CallError::SameLabel);
        }
        let description = it.description.filter(|it| !it.trim().is_empty());
        let description = description.as_deref().map(|it| plain(it, "description")).transpose()?;
        res.push(Choice { value: label.clone(), title: label, description });
    }
    Ok(match several {
        true => FieldKind::Choices { options: res, min: Some(1), max: None },
        false => FieldKind::Choice { options: res },
    })
}

fn plain(text: &str, what: &'static str) -> Result<String, CallError> {
    let text = text.trim();
    match text.is_empty() || text.chars().nth(MAX_CHARS).is_some() {
        true => Err(CallError::TextLength { what }),
        false => Ok(text.to_owned()),
    }
}

/// The model's result; `None`: this ends the turn.
pub fn output(form: &Form, answer: &Answer) -> Option<ToolOutput> {
    let failed = |for_model: &str, for_person: &str| ToolOutput::stopped("cancelled", for_model, for_person);
    Some(match answer {
        Answer::Accepted { content } => answers(form, content),
        Answer::Declined => ToolOutput::told(
            "The user chose not to answer. Go on without an answer, or stop.",
            "You chose not to answer.",
        ),
        Answer::Dismissed => {
            ToolOutput::told("User dismissed ask_user dialog without answering.", "You closed the question.")
        }
        Answer::Unfit { why } => failed(
            &format!("The client's answer does not fit the question: {why}. No answer reached castor."),
            &format!("Your answer did not reach the model: it does not fit the question ({why})."),
        ),
        Answer::InText => ToolOutput::told(
            "The client cannot show questions, so the user was asked in a message. Their next message is the answer.",
            "Your client cannot show questions. Your next message is the answer.",
        ),
        Answer::Cancelled => return None,
        Answer::Unable
        | Answer::AllowOnce
        | Answer::AllowEdited { .. }
        | Answer::AllowSession
        | Answer::AllowAlways
        | Answer::AllowAuto
        | Answer::Reject => failed(
            "The client could not ask the user. Go on without an answer, or ask in your message.",
            "Your client could not show the question.",
        ),
    })
}

fn answers(form: &Form, content: &Map<String, Value>) -> ToolOutput {
    let said = form.fields.iter().filter_map(|it| Some((it, in_words(content.get(&it.name)?))));
    let (mut answers, mut lines) = (Map::new(), Vec::new());
    for (field, words) in said {
        lines.push(format!("{} → {words}", field.title.as_deref().unwrap_or(field.label())));
        answers.insert(field.name.clone(), words.into());
    }
    let summary = (!lines.is_empty()).then(|| lines.join("\n"));
    ToolOutput { summary, ..ToolOutput::text(json!({ "answers": answers }).to_string()) }
}

fn in_words(value: &Value) -> String {
    match value {
        Value::Bool(true) => "Yes".to_owned(),
        Value::Bool(false) => "No".to_owned(),
        Value::String(it) => it.clone(),
        Value::Array(them) => them.iter().map(in_words).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{form, output};
    use castor_base::{content::joined_text, log::Answer};

    fn read(questions: Value) -> String {
        match form(json!({ "questions": questions }).as_object().unwrap()) {
            Ok(it) => it.in_words(),
            Err(error) => format!("{}: {}", error.kind, error.message),
        }
    }

    #[test]
    fn calls_are_read_or_refused() {
        let wrong = |why: &str| format!("invalid_tool_params: ask_user: {why}.");
        assert_eq!(read(json!([])), wrong("1 to 4 questions, not 0"));
        let yes = json!({ "question": "Sure?", "type": "yesno" });
        assert_eq!(read(json!([yes, yes, yes, yes, yes])), wrong("1 to 4 questions, not 5"));
        assert_eq!(read(json!([{ "question": " ", "type": "text" }])), wrong("each question has 1 to 2000 characters"));
        let few = json!([{ "question": "Q", "type": "choice", "options": [{ "label": "a" }] }]);
        assert_eq!(read(few), wrong("2 to 4 options for a choice"));
        let same = json!([{ "question": "Q", "type": "choice", "options": [{ "label": "a" }, { "label": "a" }] }]);
        assert_eq!(read(same), wrong("two options have the same label"));
        assert!(read(json!([{ "question": "Q", "type": "odd" }])).contains("unknown variant"));
        let secret = json!([{ "question": "What is your API_KEY?", "type": "text" }]);
        assert!(read(secret).starts_with("invalid_tool_params: ask_user: a secret must not be asked for here"));
        assert_eq!(read(json!([yes])), "Sure?");
        let text = json!({ "question": "Name?", "type": "text", "placeholder": "Ann", "header": "Name" });
        assert_eq!(read(json!([yes, text])), "The agent has 2 questions.\n\nSure?\n\nName? (for example: Ann)");
    }

    #[test]
    fn answers_are_told_by_index() {
        let options = json!([{ "label": "a" }, { "label": "b" }]);
        let args = json!({ "questions": [
            { "question": "Sure?", "type": "yesno", "header": "Sure" },
            { "question": "Which?", "type": "choice", "options": options, "multiSelect": true },
        ] });
        let form = form(args.as_object().unwrap()).unwrap();
        let content = json!({ "0": true, "1": ["a", "b"] }).as_object().unwrap().clone();
        let told = output(&form, &Answer::Accepted { content }).unwrap();
        assert_eq!(joined_text(&told.content), r#"{"answers":{"0":"Yes","1":"a, b"}}"#);
        assert_eq!(told.summary.as_deref(), Some("Sure → Yes\nWhich? → a, b"));
        assert!(output(&form, &Answer::Cancelled).is_none());
        assert!(output(&form, &Answer::Unable).unwrap().error.is_some());
        assert!(output(&form, &Answer::Unfit { why: "`0` is missing".to_owned() }).unwrap().error.is_some());
        assert!(output(&form, &Answer::Declined).unwrap().error.is_none());
    }
}
