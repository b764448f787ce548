//! Forms on the terminal: one field after the other, each answered by a line.

use serde_json::{Map, Value};

use crate::app::cli::terminal_text::clean_line;
use crate::base::question::{Field, FieldKind, Form};

const MAX_LABEL: usize = 500;
/// Typed in place of an answer.
const DECLINE: &str = "-";

/// A form that is being filled in.
pub struct FormInProgress {
    form: Form,
    content: Map<String, Value>,
    at: usize,
}

#[derive(Debug, PartialEq)]
pub enum FormEvent {
    /// It is not done: what to show next.
    Open(String),
    Done(Map<String, Value>),
    Declined,
}

impl FormInProgress {
    pub fn new(form: Form) -> Self {
        Self { form, content: Map::new(), at: 0 }
    }

    /// Asks for the field that is next. A form without fields is a question by itself.
    pub fn prompt(&self) -> String {
        let Some(field) = self.form.fields.get(self.at) else { return "  y or n: ".to_owned() };
        let mut res = String::new();
        for (at, it) in field.kind.options().iter().enumerate() {
            let more = it.description.as_ref().map(|it| format!(": {it}")).unwrap_or_default();
            res += &format!("  {}) {}\n", at + 1, clean_line(&format!("{}{more}", it.title), MAX_LABEL));
        }
        let name = field.title.as_deref().unwrap_or(&field.name);
        let more = field.description.as_deref().filter(|it| *it != name && *it != self.form.message);
        let label = more.map_or_else(|| name.to_owned(), |it| format!("{name} ({it})"));
        let preset = field.default.as_ref().map(|it| format!(" [{}]", it.as_str().unwrap_or(&it.to_string())));
        let label = clean_line(&format!("{label}{}", preset.unwrap_or_default()), MAX_LABEL);
        format!("{res}  {label}, {}: ", input_hint(field))
    }

    /// Takes a line that was typed.
    pub fn take(&mut self, line: &str) -> FormEvent {
        let line = line.trim();
        if line == DECLINE {
            return FormEvent::Declined;
        }
        let Some(field) = self.form.fields.get(self.at) else {
            return match yes_or_no(line) {
                Some(true) => FormEvent::Done(Map::new()),
                Some(false) => FormEvent::Declined,
                None => FormEvent::Open(self.prompt()),
            };
        };
        let value = match (line, &field.default) {
            ("", Some(it)) => Some(it.clone()),
            ("", None) if !field.required => None,
            _ => match read(&field.kind, line).and_then(|it| field.kind.check(&it)) {
                Ok(it) => Some(it),
                Err(why) => return FormEvent::Open(format!("  that {why}\n{}", self.prompt())),
            },
        };
        if let Some(it) = value {
            self.content.insert(field.name.clone(), it);
        }
        self.at += 1;
        match self.at < self.form.fields.len() {
            true => FormEvent::Open(self.prompt()),
            false => FormEvent::Done(std::mem::take(&mut self.content)),
        }
    }
}

fn input_hint(field: &Field) -> String {
    let what = match &field.kind {
        FieldKind::Choice { options } => format!("1-{}", options.len()),
        FieldKind::Choices { options, .. } => format!("some of 1-{}", options.len()),
        FieldKind::Bool => "y or n".to_owned(),
        FieldKind::Number { .. } | FieldKind::Integer { .. } => "a number".to_owned(),
        FieldKind::Text { .. } => "a line".to_owned(),
    };
    let or_nothing = if field.required { "" } else { ", or nothing" };
    format!("{what}{or_nothing}, {DECLINE} to decline")
}

pub fn yes_or_no(line: &str) -> Option<bool> {
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" => Some(true),
        "n" | "no" => Some(false),
        _ => None,
    }
}

/// # Errors
/// Completes "that …".
fn read(kind: &FieldKind, line: &str) -> Result<Value, String> {
    let option = |it: &str| {
        let at = it.parse::<usize>().ok().and_then(|it| it.checked_sub(1));
        let option = at.and_then(|it| kind.options().get(it)).ok_or("is no number of the list")?;
        Ok(Value::from(option.value.as_str()))
    };
    match kind {
        FieldKind::Text { .. } => Ok(line.into()),
        FieldKind::Choice { .. } => option(line),
        FieldKind::Choices { .. } => {
            line.split([' ', ',']).filter(|it| !it.is_empty()).map(option).collect::<Result<_, _>>().map(Value::Array)
        }
        FieldKind::Number { .. } | FieldKind::Integer { .. } => {
            serde_json::from_str(line).map_err(|_| "is not a number".to_owned())
        }
        FieldKind::Bool => yes_or_no(line).map(Value::from).ok_or_else(|| "is neither y nor n".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{FormEvent, FormInProgress};
    use crate::base::question::{Choice, Field, FieldKind, Form};

    fn field(name: &str, required: bool, kind: FieldKind) -> Field {
        Field { name: name.to_owned(), title: None, description: None, required, kind, default: None }
    }

    fn options() -> Vec<Choice> {
        ["a", "b"].map(|it| Choice { value: it.to_owned(), title: it.to_uppercase(), description: None }).into()
    }

    #[test]
    fn each_field_gets_a_line() {
        let text = FieldKind::Text { min: Some(2), max: None, format: None };
        let preset = field("number", true, FieldKind::Integer { min: None, max: Some(9) });
        let fields = vec![
            field("text", true, text.clone()),
            field("choice", true, FieldKind::Choice { options: options() }),
            field("choices", true, FieldKind::Choices { options: options(), min: None, max: None }),
            Field { default: Some(json!(7)), ..preset },
            field("sure", true, FieldKind::Bool),
            field("more", false, text),
        ];
        let mut filling = FormInProgress::new(Form { message: "m".to_owned(), fields });
        let mut said = filling.prompt();
        for line in ["x", "xy", "3", "2", "2, 1", "x", "", "perhaps", "Y"] {
            match filling.take(line) {
                FormEvent::Open(more) => said += &format!("{line}\n{more}"),
                other => panic!("{other:?}"),
            }
        }
        let expected = "  text, a line, - to decline: x
  that has too few characters
  text, a line, - to decline: xy
  1) A
  2) B
  choice, 1-2, - to decline: 3
  that is no number of the list
  1) A
  2) B
  choice, 1-2, - to decline: 2
  1) A
  2) B
  choices, some of 1-2, - to decline: 2, 1
  number [7], a number, - to decline: x
  that is not a number
  number [7], a number, - to decline: \n  sure, y or n, - to decline: perhaps
  that is neither y nor n
  sure, y or n, - to decline: Y
  more, a line, or nothing, - to decline: ";
        assert_eq!(said, expected);
        let content = json!({"text": "xy", "choice": "b", "choices": ["b", "a"], "number": 7, "sure": true});
        assert_eq!(filling.take(""), FormEvent::Done(content.as_object().unwrap().clone()));
    }

    #[test]
    fn a_form_without_fields_is_yes_or_no() {
        let filling = || FormInProgress::new(Form { message: "m".to_owned(), fields: Vec::new() });
        assert_eq!(filling().prompt(), "  y or n: ");
        assert_eq!(filling().take("?"), FormEvent::Open("  y or n: ".to_owned()));
        assert_eq!(filling().take("yes"), FormEvent::Done(serde_json::Map::new()));
        assert_eq!(filling().take("n"), FormEvent::Declined);
        assert_eq!(filling().take(" - "), FormEvent::Declined);
    }
}
