//! Forms: questions to the user with fields to fill in, and the check of the answers.

use std::fmt::Write;

use serde_json::{Map, Value};

/// A form for the user. Never for a secret: answers are logged, and the model reads them.
#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    /// Why it is asked, or the question itself.
    pub message: String,
    pub fields: Vec<Field>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub required: bool,
    pub kind: FieldKind,
    /// What is filled in already.
    pub default: Option<Value>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum FieldKind {
    /// Lengths in characters.
    Text {
        min: Option<u32>,
        max: Option<u32>,
        format: Option<TextFormat>,
    },
    /// One of these.
    Choice {
        options: Vec<Choice>,
    },
    /// Some of these.
    Choices {
        options: Vec<Choice>,
        min: Option<u64>,
        max: Option<u64>,
    },
    Number {
        min: Option<f64>,
        max: Option<f64>,
    },
    Integer {
        min: Option<i64>,
        max: Option<i64>,
    },
    Bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFormat {
    Email,
    Uri,
    Date,
    DateTime,
}

/// An option on offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// What the answer says.
    pub value: String,
    /// What the user reads.
    pub title: String,
    pub description: Option<String>,
}

impl Form {
    /// The answer as far as it was asked for.
    ///
    /// # Errors
    /// The first thing that does not fit: a client may send anything.
    pub fn check(&self, answer: &Map<String, Value>) -> Result<Map<String, Value>, String> {
        let mut res = Map::new();
        for field in &self.fields {
            match answer.get(&field.name).filter(|it| !it.is_null()) {
                Some(value) => {
                    let value = field.kind.check(value).map_err(|why| format!("`{}` {why}", field.name))?;
                    res.insert(field.name.clone(), value);
                }
                // What a user did not change is as it was proposed.
                None if let Some(value) = field.default.as_ref().filter(|_| !field.required) => {
                    res.insert(field.name.clone(), value.clone());
                }
                None if field.required => return Err(format!("`{}` is missing", field.name)),
                None => (),
            }
        }
        Ok(res)
    }

    /// The question as a message, for a client that can show nothing else. The answer is the user's next one.
    pub fn in_words(&self) -> String {
        let mut res = self.message.clone();
        for field in &self.fields {
            let words = field.label();
            if !words.is_empty() && words != self.message {
                _ = write!(res, "\n\n{words}");
            }
            for it in field.kind.options() {
                let more = it.description.as_ref().map(|it| format!(": {it}")).unwrap_or_default();
                _ = write!(res, "\n- {}{more}", it.title);
            }
        }
        res
    }
}

impl Field {
    /// What it asks for.
    pub fn label(&self) -> &str {
        self.description.as_deref().or(self.title.as_deref()).unwrap_or_default()
    }
}

impl FieldKind {
    pub fn options(&self) -> &[Choice] {
        match self {
            Self::Choice { options } | Self::Choices { options, .. } => options,
            _ => &[],
        }
    }

    /// The value, as far as it fits.
    ///
    /// # Errors
    /// Why it does not.
    pub fn check(&self, value: &Value) -> Result<Value, String> {
        match self {
            Self::Text { min, max, format } => {
                let text = value.as_str().ok_or("is not a text")?;
                let length = text.chars().count() as u64;
                check_bounds(length, min.map(u64::from), max.map(u64::from), "characters")?;
                format.map_or(Ok(()), |it| it.check(text))?;
                Ok(value.clone())
            }
            Self::Choice { options } => {
                let text = value.as_str().ok_or("is not a text")?;
                check_offered(options, text)?;
                Ok(value.clone())
            }
            Self::Choices { options, min, max } => {
                let values = value.as_array().ok_or("is not a list")?;
                check_bounds(values.len() as u64, *min, *max, "choices")?;
                for it in values {
                    check_offered(options, it.as_str().ok_or("holds something else than texts")?)?;
                }
                Ok(value.clone())
            }
            Self::Number { min, max } => {
                let number = value.as_f64().ok_or("is not a number")?;
                check_bounds(number, *min, *max, "")?;
                Ok(value.clone())
            }
            Self::Integer { min, max } => {
                let number = whole_number(value).ok_or("is not a whole number")?;
                check_bounds(number, *min, *max, "")?;
                Ok(number.into())
            }
            Self::Bool => value.as_bool().map(Value::from).ok_or_else(|| "is not true or false".to_owned()),
        }
    }
}

impl TextFormat {
    fn check(self, text: &str) -> Result<(), String> {
        let (fits, what) = match self {
            Self::Email => (is_email(text), "an email address"),
            Self::Uri => (is_uri(text), "a URI"),
            Self::Date => (text.parse::<jiff::civil::Date>().is_ok() && text.len() == 10, "a date such as 2026-01-31"),
            Self::DateTime => (text.parse::<jiff::Timestamp>().is_ok(), "a time such as 2026-01-31T12:00:00Z"),
        };
        if fits { Ok(()) } else { Err(format!("is not {what}")) }
    }
}

fn is_email(text: &str) -> bool {
    let plain = !text.chars().any(char::is_whitespace);
    plain && text.split_once('@').is_some_and(|(name, host)| !name.is_empty() && !host.is_empty())
}

fn is_uri(text: &str) -> bool {
    let scheme = text.split_once(':').map(|(it, _)| it).unwrap_or_default();
    let plain = !text.chars().any(char::is_whitespace);
    let named = scheme.starts_with(|it: char| it.is_ascii_alphabetic());
    plain && named && scheme.chars().all(|it| it.is_ascii_alphanumeric() || "+-.".contains(it))
}

fn check_offered(options: &[Choice], value: &str) -> Result<(), String> {
    match options.iter().any(|it| it.value == value) {
        true => Ok(()),
        false => Err("is not one of the choices".to_owned()),
    }
}

fn check_bounds<T: PartialOrd>(it: T, min: Option<T>, max: Option<T>, what: &str) -> Result<(), String> {
    let wrong = |plain: &str, counted: &str| match what {
        "" => Err(plain.to_owned()),
        what => Err(format!("{counted} {what}")),
    };
    if min.is_some_and(|min| it < min) {
        return wrong("is too small", "has too few");
    }
    if max.is_some_and(|max| it > max) {
        return wrong("is too large", "has too many");
    }
    Ok(())
}

/// Also `3.0`: some clients know only one kind of number.
fn whole_number(value: &Value) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let from_float = || value.as_f64().filter(|it| it.fract() == 0.0 && it.abs() <= EXACT).map(|it| it as i64);
    value.as_i64().or_else(from_float)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Choice, Field, FieldKind, Form, TextFormat};

    fn choice(value: &str) -> Choice {
        Choice { value: value.to_owned(), title: value.to_uppercase(), description: None }
    }

    fn form(kind: FieldKind) -> Form {
        let field = Field { name: "x".to_owned(), title: None, description: None, required: true, kind, default: None };
        Form { message: "Well?".to_owned(), fields: vec![field] }
    }

    fn check(kind: FieldKind, value: Value, expected: &str) {
        let answer = json!({ "x": value, "more": 1 });
        let said = match form(kind).check(answer.as_object().unwrap()) {
            Ok(it) => Value::from(it).to_string(),
            Err(why) => why,
        };
        assert_eq!(said, expected, "{value}");
    }

    #[test]
    fn answers_fit_their_fields() {
        let text = |min, max, format| FieldKind::Text { min, max, format };
        check(text(None, None, None), json!("ñ"), r#"{"x":"ñ"}"#);
        check(text(None, None, None), json!(1), "`x` is not a text");
        check(text(None, None, None), json!(null), "`x` is missing");
        check(text(Some(2), None, None), json!("ñ"), "`x` has too few characters");
        check(text(None, Some(1), None), json!("ññ"), "`x` has too many characters");
        let formats = [
            (TextFormat::Email, "a@b", "`x` is not an email address"),
            (TextFormat::Uri, "https://a.b/c", "`x` is not a URI"),
            (TextFormat::Date, "2026-01-31", "`x` is not a date such as 2026-01-31"),
            (TextFormat::DateTime, "2026-01-31T12:00:00Z", "`x` is not a time such as 2026-01-31T12:00:00Z"),
        ];
        for (format, good, why) in formats {
            check(text(None, None, Some(format)), json!(good), &json!({ "x": good }).to_string());
            check(text(None, None, Some(format)), json!("no thing"), why);
        }
        let options = || vec![choice("a"), choice("b")];
        check(FieldKind::Choice { options: options() }, json!("b"), r#"{"x":"b"}"#);
        check(FieldKind::Choice { options: options() }, json!("B"), "`x` is not one of the choices");
        let many = |min, max| FieldKind::Choices { options: options(), min, max };
        check(many(None, None), json!(["b", "a"]), r#"{"x":["b","a"]}"#);
        check(many(None, None), json!("a"), "`x` is not a list");
        check(many(None, None), json!(["c"]), "`x` is not one of the choices");
        check(many(None, None), json!([1]), "`x` holds something else than texts");
        check(many(Some(1), None), json!([]), "`x` has too few choices");
        check(many(None, Some(1)), json!(["a", "b"]), "`x` has too many choices");
        let integer = |min, max| FieldKind::Integer { min, max };
        check(integer(None, None), json!(3.0), r#"{"x":3}"#);
        check(integer(None, None), json!(3.5), "`x` is not a whole number");
        check(integer(Some(4), None), json!(3), "`x` is too small");
        check(integer(None, Some(2)), json!(3), "`x` is too large");
        check(FieldKind::Number { min: Some(0.5), max: None }, json!(0.5), r#"{"x":0.5}"#);
        check(FieldKind::Number { min: None, max: None }, json!("1"), "`x` is not a number");
        check(FieldKind::Bool, json!(false), r#"{"x":false}"#);
        check(FieldKind::Bool, json!("true"), "`x` is not true or false");
    }

    #[test]
    fn a_question_can_be_said() {
        let mut form = form(FieldKind::Choice { options: vec![choice("a"), choice("b")] });
        form.fields[0].description = Some("Which one?".to_owned());
        assert_eq!(form.in_words(), "Well?\n\nWhich one?\n- A\n- B");
        form.message = "Which one?".to_owned();
        assert_eq!(form.in_words(), "Which one?\n- A\n- B");
    }
}
