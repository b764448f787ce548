//! Answers as JSON: `castor run --json-schema`. The model gets the schema with the prompt, and once more what is wrong.

use jsonschema::Validator;
use serde_json::{Value, json};

use super::input_args::read_text;
use crate::cli::terminal_text::clean_line;
use castor_base::path::AbsPath;
use castor_client::failure::Failure;

const FLAG: &str = "--json-schema";
/// Bytes of a schema. The model reads all of it.
const MAX_SCHEMA: usize = 64 << 10;
/// Faults that are named, and characters of one.
const MAX_FAULTS: usize = 20;
const MAX_FAULT: usize = 300;
/// A longer answer is not looked through for JSON.
const MAX_ANSWER: usize = 4 << 20;

/// A schema that answers are held against.
#[derive(Debug)]
pub struct AnswerSchema {
    text: String,
    schema: Value,
    validator: Validator,
}

impl AnswerSchema {
    /// `given` is the schema itself, or the name of its file. References to other files and addresses are not followed.
    ///
    /// # Errors
    /// For a file that cannot be read, and for what is no JSON Schema.
    pub fn load(given: &str, cwd: &AbsPath) -> Result<Self, Failure> {
        let text = match given.trim_start().starts_with(['{', '[']) || matches!(given.trim(), "true" | "false") {
            true => given.to_owned(),
            false => read_text(FLAG, given, cwd, MAX_SCHEMA)?,
        };
        if text.len() > MAX_SCHEMA {
            return Err(Failure::input(format!("{FLAG} has more than {MAX_SCHEMA} bytes")));
        }
        let wrong = |it: String| Failure::input(format!("{FLAG}: {}", clean_line(&it, MAX_FAULT)));
        let schema: Value = serde_json::from_str(&text).map_err(|it| wrong(format!("this is no JSON: {it}")))?;
        let validator =
            jsonschema::validator_for(&schema).map_err(|it| wrong(format!("this is no JSON Schema: {it}")))?;
        Ok(Self { text: schema.to_string(), schema, validator })
    }

    /// For the model, behind the prompt.
    pub fn instruction(&self) -> String {
        format!(
            "Your last message must be one JSON value and nothing else, without a code fence. It must fit this JSON \
             Schema:\n{}",
            self.text
        )
    }

    /// For the provider, which may hold the model to it. `is_alone`: the prompt asks for nothing else.
    pub fn options(&self, is_alone: bool) -> Option<Value> {
        let schema = self.schema.as_object()?;
        Some(json!({ "castor": { "answerSchema": schema, "answerOnly": is_alone } }))
    }

    /// For the model, after an answer that does not fit.
    pub fn retry(&self, faults: &[String]) -> String {
        format!(
            "Your answer does not fit the JSON Schema:\n- {}\nSend the whole JSON value again, corrected, and nothing \
             else.",
            faults.join("\n- ")
        )
    }

    /// The JSON of an answer in one line, or what is wrong with it.
    ///
    /// # Errors
    /// The faults, each in one line.
    pub fn check(&self, answer: &str) -> Result<String, Vec<String>> {
        let mut first: Option<Vec<String>> = None;
        for text in candidates(answer) {
            let faults = match serde_json::from_str::<Value>(text) {
                Ok(value) => self.faults(&value),
                Err(error) => vec![format!("the answer is no JSON: {error}")],
            };
            if faults.is_empty() {
                // Numbers stay as they were written: the text goes out, not what was read of it.
                return Ok(compact(text));
            }
            first.get_or_insert(faults);
        }
        Err(first.unwrap_or_else(|| vec!["the answer has no JSON value in it".to_owned()]))
    }

    fn faults(&self, value: &Value) -> Vec<String> {
        let fault = |it: jsonschema::ValidationError<'_>| {
            let at = it.instance_path().to_string();
            clean_line(&format!("{}: {it}", if at.is_empty() { "/" } else { &at }), MAX_FAULT)
        };
        self.validator.iter_errors(value).take(MAX_FAULTS).map(fault).collect()
    }
}

/// Where in an answer the JSON may be: all of it, between the last fences, from the first bracket to the last.
fn candidates(answer: &str) -> Vec<&str> {
    let answer = answer.trim();
    if answer.is_empty() || answer.len() > MAX_ANSWER {
        return Vec::new();
    }
    let mut res = vec![answer];
    let fences: Vec<usize> = answer.match_indices("```").map(|it| it.0).collect();
    if let [.., open, close] = fences.as_slice()
        && let Some((_, inner)) = answer.get(*open..*close).and_then(|it| it.split_once('\n'))
    {
        res.push(inner.trim());
    }
    for (open, close) in [('{', '}'), ('[', ']')] {
        if let (Some(start), Some(end)) = (answer.find(open), answer.rfind(close))
            && let Some(inner) = answer.get(start..end + 1)
            && inner != answer
        {
            res.push(inner);
        }
    }
    // What can be read as JSON at all says best what is wrong with it.
    res.sort_by_key(|it| serde_json::from_str::<serde::de::IgnoredAny>(it).is_err());
    res
}

/// The same JSON in one line. `text` is JSON.
fn compact(text: &str) -> String {
    let (mut res, mut in_string, mut is_escaped) = (String::with_capacity(text.len()), false, false);
    for it in text.chars() {
        if !in_string && it.is_ascii_whitespace() {
            continue;
        }
        in_string ^= it == '"' && !is_escaped;
        is_escaped = in_string && it == '\\' && !is_escaped;
        res.push(it);
    }
    res
}

#[cfg(test)]
mod tests {
    use super::AnswerSchema;
    use castor_base::path::AbsPath;

    const SCHEMA: &str = r#"{"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}"#;

    fn load(given: &str) -> Result<AnswerSchema, String> {
        AnswerSchema::load(given, &AbsPath::new("/").unwrap()).map_err(|it| it.message)
    }

    #[test]
    fn answers_are_found_and_checked() {
        let schema = load(SCHEMA).unwrap();
        for (answer, expected) in [
            (r#"{"n": 1}"#, Ok(r#"{"n":1}"#)),
            ("Here it is:\n```json\n{\"n\":\n 2, \"t\": \"a b \\\" c\"}\n```\nDone.", Ok(r#"{"n":2,"t":"a b \" c"}"#)),
            (r#"The answer is {"n": 3}."#, Ok(r#"{"n":3}"#)),
            (r#"{"n": 12345678901234567890123}"#, Ok(r#"{"n":12345678901234567890123}"#)),
            (r#"{"n": "x"}"#, Err(r#"/n: "x" is not of type "integer""#)),
            (r#"I found {"m": 1}"#, Err(r#"/: "n" is a required property"#)),
            ("nothing", Err("the answer is no JSON: expected ident at line 1 column 2")),
            ("", Err("the answer has no JSON value in it")),
        ] {
            let found = schema.check(answer).map_err(|it| it.join("; "));
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{answer}");
        }
        let list = load(r#"{"type": "array"}"#).unwrap();
        assert_eq!(list.check("Files: [1, 2]").unwrap(), "[1,2]");
    }

    #[test]
    fn what_is_no_schema_is_refused() {
        for (given, says) in [
            ("{", "no JSON"),
            (r#"{"type": "nothing"}"#, "no JSON Schema"),
            ("no-such-file.json", "cannot be read"),
            (r#"{"$ref": "https://example.com/s.json"}"#, "no JSON Schema"),
        ] {
            let why = load(given).err().unwrap();
            assert!(why.contains(says) && why.starts_with("--json-schema"), "{why}");
        }
    }
}
