//! Elicitation parser of MCP and ACP: a question as a form, with text that cannot deceive.

use std::borrow::Cow;

use serde_json::Value;

use castor_base::{
    ansi,
    elicitation::{ElicitationRequest, check_page_url},
    question::{Choice, Field, FieldKind, Form, TextFormat},
    text::is_deceptive,
};

/// A request of more bytes is nothing that a person would read.
const MAX_REQUEST: usize = 64 * 1024;
/// Texts are cut to so many characters.
const MAX_MESSAGE: usize = 2_000;
const MAX_TITLE: usize = 200;
const MAX_DESCRIPTION: usize = 500;
const MAX_FIELDS: usize = 20;
const MAX_OPTIONS: usize = 100;
/// In bytes: what goes back to the server as it is.
const MAX_NAME: usize = 200;
const MAX_URL: usize = 4 * 1024;

/// What castor does not ask, and why: for the server.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum ElicitationError {
    /// A part of the request is missing, or is no such thing.
    #[error("{0}")]
    Broken(Cow<'static, str>),
    #[error("{0}")]
    TooLarge(String),
    #[error("field `{0}` asks for a secret, and a form must not; use the mode `url` for it")]
    Secret(String),
    #[error("field `{name}`: {why}")]
    Field { name: String, why: Box<Self> },
}

/// Reads the params of elicitation/create.
///
/// # Errors
/// What castor does not ask.
pub fn parse(params: &Value) -> Result<ElicitationRequest, ElicitationError> {
    if params.to_string().len() > MAX_REQUEST {
        return Err(ElicitationError::TooLarge(format!("a question has {MAX_REQUEST} bytes at most")));
    }
    let message = plain(required(params, "message")?, MAX_MESSAGE);
    match params.get("mode").map(Value::as_str) {
        None | Some(Some("form")) => form(message, params.get("requestedSchema")).map(ElicitationRequest::Form),
        Some(Some("url")) => {
            let (url, id) = (required(params, "url")?, params.get("elicitationId").and_then(Value::as_str));
            let (url, id) = (url.to_owned(), id.unwrap_or_default().to_owned());
            if url.len() > MAX_URL || id.len() > MAX_NAME {
                let limits = format!("`url` has {MAX_URL} bytes at most, `elicitationId` {MAX_NAME}");
                return Err(ElicitationError::TooLarge(limits));
            }
            let url = check_page_url(&url).map_err(|why| broken(format!("`url` {why}")))?;
            Ok(ElicitationRequest::Page { message, url, id })
        }
        Some(_) => Err(broken("`mode` is `form` or `url`")),
    }
}

fn broken(why: impl Into<Cow<'static, str>>) -> ElicitationError {
    ElicitationError::Broken(why.into())
}

fn required<'a>(params: &'a Value, name: &str) -> Result<&'a str, ElicitationError> {
    params.get(name).and_then(Value::as_str).ok_or_else(|| broken(format!("`{name}` is required, and is a string")))
}

fn form(message: String, schema: Option<&Value>) -> Result<Form, ElicitationError> {
    let fields = schema.filter(|it| it.get("type").is_some_and(|it| it == "object"));
    let fields = fields.and_then(|it| it.get("properties")).and_then(Value::as_object);
    let fields = fields.ok_or_else(|| broken("`requestedSchema` is an object with `properties`"))?;
    if fields.len() > MAX_FIELDS {
        return Err(ElicitationError::TooLarge(format!("a form has {MAX_FIELDS} fields at most")));
    }
    let required = strings(schema.and_then(|it| it.get("required")));
    let field = |(name, it): (&String, &Value)| {
        let of_field = |why| ElicitationError::Field { name: plain(name, 50), why: Box::new(why) };
        field(name, it, required.contains(&name.as_str())).map_err(of_field)
    };
    let form = Form { message, fields: fields.iter().map(field).collect::<Result<_, _>>()? };
    match form.secret_field() {
        None => Ok(form),
        Some(it) => Err(ElicitationError::Secret(plain(&it.name, 50))),
    }
}

fn field(name: &str, it: &Value, required: bool) -> Result<Field, ElicitationError> {
    if name.is_empty() || name.len() > MAX_NAME || name.chars().any(is_deceptive) {
        return Err(broken(format!("a name has 1 to {MAX_NAME} bytes, and no control characters")));
    }
    let kind = kind(it)?;
    let text =
        |name: &str, max| it.get(name).and_then(Value::as_str).map(|it| plain(it, max)).filter(|it| !it.is_empty());
    Ok(Field {
        name: name.to_owned(),
        title: text("title", MAX_TITLE),
        description: text("description", MAX_DESCRIPTION),
        required,
        // A wrong one is no reason not to ask.
        default: it.get("default").and_then(|it| kind.check(it).ok()),
        kind,
    })
}

fn kind(it: &Value) -> Result<FieldKind, ElicitationError> {
    const KINDS: &str = "castor asks for a string, number, integer, boolean, or an array of choices";
    let size = |name: &str| it.get(name).and_then(Value::as_u64);
    let number = |name: &str| it.get(name).and_then(Value::as_f64);
    let whole = |name: &str| number(name).filter(|it| it.fract() == 0.0).map(|it| it as i64);
    Ok(match it.get("type").and_then(Value::as_str) {
        Some("string") => match options(it)? {
            Some(options) => FieldKind::Choice { options },
            None => text(it)?,
        },
        Some("number") => FieldKind::Number { min: number("minimum"), max: number("maximum") },
        Some("integer") => FieldKind::Integer { min: whole("minimum"), max: whole("maximum") },
        Some("boolean") => FieldKind::Bool,
        Some("array") => {
            let options = it.get("items").map(options).transpose()?.flatten().ok_or_else(|| broken(KINDS))?;
            FieldKind::Choices { options, min: size("minItems"), max: size("maxItems") }
        }
        _ => return Err(broken(KINDS)),
    })
}

fn text(it: &Value) -> Result<FieldKind, ElicitationError> {
    let length = |name: &str| it.get(name).and_then(Value::as_u64).and_then(|it| u32::try_from(it).ok());
    let format = match it.get("format").map(Value::as_str) {
        None => None,
        Some(Some("email")) => Some(TextFormat::Email),
        Some(Some("uri")) => Some(TextFormat::Uri),
        Some(Some("date")) => Some(TextFormat::Date),
        Some(Some("date-time")) => Some(TextFormat::DateTime),
        Some(_) => return Err(broken("`format` is email, uri, date or date-time")),
    };
    Ok(FieldKind::Text { min: length("minLength"), max: length("maxLength"), format })
}

/// What is on offer, in each of the forms that MCP has had for it. `None`: whatever is typed.
fn options(it: &Value) -> Result<Option<Vec<Choice>>, ElicitationError> {
    let named = ["oneOf", "anyOf"].iter().find_map(|name| it.get(*name));
    let plain_ones = it.get("enum");
    let options: Vec<Choice> = match (named, plain_ones) {
        (Some(them), _) => all(them, |_, it| {
            let value = it.get("const")?.as_str()?;
            let description = it.get("description").and_then(Value::as_str).map(|it| plain(it, MAX_DESCRIPTION));
            Some(Choice { description, ..choice(value, it.get("title").and_then(Value::as_str).unwrap_or(value)) })
        }),
        (None, Some(them)) => {
            let names = strings(it.get("enumNames"));
            all(them, |at, it| it.as_str().map(|it| choice(it, names.get(at).copied().unwrap_or(it))))
        }
        (None, None) => return Ok(None),
    }
    .ok_or_else(|| broken("options are strings: `enum`, or `oneOf` with `const` and `title`"))?;
    let twice = |(at, it): (usize, &Choice)| options.iter().take(at).any(|other| other.value == it.value);
    if options.is_empty() || options.len() > MAX_OPTIONS || options.iter().any(|it| it.value.len() > MAX_NAME) {
        let limits = format!("a choice has 1 to {MAX_OPTIONS} options of {MAX_NAME} bytes at most");
        return Err(ElicitationError::TooLarge(limits));
    }
    match options.iter().enumerate().any(twice) {
        true => Err(broken("an option is there twice")),
        false => Ok(Some(options)),
    }
}

fn all(them: &Value, read: impl Fn(usize, &Value) -> Option<Choice>) -> Option<Vec<Choice>> {
    them.as_array()?.iter().enumerate().map(|(at, it)| read(at, it)).collect()
}

fn choice(value: &str, title: &str) -> Choice {
    Choice { value: value.to_owned(), title: plain(title, MAX_TITLE), description: None }
}

fn strings(it: Option<&Value>) -> Vec<&str> {
    let all = it.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    all.iter().filter_map(Value::as_str).collect()
}

/// Text of a server as people may read it: it looks like nothing else than it is, and has an end.
fn plain(text: &str, max: usize) -> String {
    let text = ansi::plain(text).0;
    let mut res: String = text.trim().chars().filter(|it| *it == '\n' || !is_deceptive(*it)).take(max + 1).collect();
    if res.chars().count() > max {
        res.pop();
        res.push('…');
    }
    res
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{MAX_MESSAGE, parse};
    use castor_base::elicitation::ElicitationRequest;

    /// What the one field of a form is read as, or what is wrong with it.
    fn field(it: Value) -> String {
        let schema = json!({"type": "object", "properties": {"x": it}, "required": ["x"]});
        match parse(&json!({"message": "m", "requestedSchema": schema})) {
            Ok(ElicitationRequest::Form(form)) => format!("{:?} {:?}", form.fields[0].kind, form.fields[0].default),
            Ok(other) => format!("{other:?}"),
            Err(why) => why.to_string(),
        }
    }

    #[test]
    fn fields_are_read_or_refused() {
        let kinds = "field `x`: castor asks for a string, number, integer, boolean, or an array of choices";
        let two = json!([{"const": "a", "title": "A"}, {"const": "b"}]);
        let described = json!([{"const": "a", "title": "A", "description": "one\u{1b}[2J"}]);
        let texts = "Text { min: Some(1), max: None, format: Some(Email) } Some(String(\"a@b\"))";
        let choice =
            |value: &str, title: &str| format!("Choice {{ value: {value:?}, title: {title:?}, description: None }}");
        let offered = format!("[{}, {}]", choice("a", "A"), choice("b", "b"));
        for (it, expected) in [
            (json!({"type": "string", "minLength": 1, "format": "email", "default": "a@b"}), texts.to_owned()),
            (json!({"type": "string", "oneOf": two}), format!("Choice {{ options: {offered} }} None")),
            (
                json!({"type": "string", "oneOf": described}),
                format!("Choice {{ options: [{}] }} None", choice("a", "A").replace("None", "Some(\"one\")")),
            ),
            (
                json!({"type": "string", "enum": ["a", "b"], "enumNames": ["A"], "default": "c"}),
                format!("Choice {{ options: {offered} }} None"),
            ),
            (
                json!({"type": "array", "items": {"anyOf": two}, "minItems": 1, "default": ["b"]}),
                format!("Choices {{ options: {offered}, min: Some(1), max: None }} Some(Array [String(\"b\")])"),
            ),
            (json!({"type": "number", "minimum": 0.5}), "Number { min: Some(0.5), max: None } None".to_owned()),
            (json!({"type": "integer", "maximum": 3.0}), "Integer { min: None, max: Some(3) } None".to_owned()),
            (json!({"type": "boolean", "default": true}), "Bool Some(Bool(true))".to_owned()),
            (json!({"type": "object"}), kinds.to_owned()),
            (json!({"$ref": "#/x"}), kinds.to_owned()),
            (json!({"type": ["string", "null"]}), kinds.to_owned()),
            (json!({"type": "array", "items": {"type": "string"}}), kinds.to_owned()),
            (json!({"type": "array"}), kinds.to_owned()),
            (json!("string"), kinds.to_owned()),
            (
                json!({"type": "string", "enum": [1]}),
                "field `x`: options are strings: `enum`, or `oneOf` with `const` and `title`".to_owned(),
            ),
            (
                json!({"type": "string", "enum": []}),
                "field `x`: a choice has 1 to 100 options of 200 bytes at most".to_owned(),
            ),
            (json!({"type": "string", "enum": ["a", "a"]}), "field `x`: an option is there twice".to_owned()),
            (
                json!({"type": "string", "format": "password"}),
                "field `x`: `format` is email, uri, date or date-time".to_owned(),
            ),
            (
                json!({"type": "string", "title": "API key"}),
                "field `x` asks for a secret, and a form must not; use the mode `url` for it".to_owned(),
            ),
        ] {
            assert_eq!(field(it.clone()), expected, "{it}");
        }
    }

    fn check(params: Value, expected: &str) {
        assert_eq!(parse(&params).unwrap_err().to_string(), expected, "{params}");
    }

    #[test]
    fn requests_are_read_or_refused() {
        let schema = json!({"type": "object", "properties": {}});
        check(json!(null), "`message` is required, and is a string");
        check(json!({"message": 1}), "`message` is required, and is a string");
        check(json!({"message": "m"}), "`requestedSchema` is an object with `properties`");
        check(json!({"message": "m", "requestedSchema": [1]}), "`requestedSchema` is an object with `properties`");
        check(json!({"message": "m", "mode": "shout", "requestedSchema": schema}), "`mode` is `form` or `url`");
        check(json!({"message": "m", "mode": 1, "requestedSchema": schema}), "`mode` is `form` or `url`");
        check(json!({"message": "m", "mode": "url"}), "`url` is required, and is a string");
        for (url, why) in [
            ("x", "`url` is no address"),
            ("http://a.b", "`url` is not encrypted: use https"),
            ("https://a:b@c.d", "`url` has a user or a password in it"),
            ("javascript:alert(1)", "`url` is no https address"),
        ] {
            check(json!({"message": "m", "mode": "url", "url": url}), why);
        }
        check(json!({"message": "m".repeat(70_000)}), "a question has 65536 bytes at most");
        let many: Value = (0..21).map(|n| (n.to_string(), json!({"type": "boolean"}))).collect();
        let many = json!({"type": "object", "properties": many});
        check(json!({"message": "m", "requestedSchema": many}), "a form has 20 fields at most");
        let odd = json!({"type": "object", "properties": {"a\u{7}b": {"type": "boolean"}}});
        let why = "field `ab`: a name has 1 to 200 bytes, and no control characters";
        check(json!({"message": "m", "requestedSchema": odd}), why);
        let page = parse(&json!({"mode": "url", "message": "m", "url": "https://a.b", "elicitationId": "e"}));
        let expected =
            ElicitationRequest::Page { message: "m".to_owned(), url: "https://a.b/".to_owned(), id: "e".to_owned() };
        assert_eq!(page, Ok(expected));
    }

    #[test]
    fn texts_are_what_they_look_like() {
        let schema = json!({"type": "object", "properties": {}});
        let message = |it: &str| match parse(&json!({"message": it, "requestedSchema": schema})) {
            Ok(ElicitationRequest::Form(form)) => form.message,
            other => format!("{other:?}"),
        };
        assert_eq!(message(" a\u{1b}[2Jb\u{202e}c\u{7}\r\nd\u{200b} "), "abc\nd");
        let long = message(&"x".repeat(MAX_MESSAGE + 1));
        assert_eq!((long.chars().count(), long.ends_with("x…")), (MAX_MESSAGE + 1, true));
    }
}
