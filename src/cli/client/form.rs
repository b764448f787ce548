//! Forms on the terminal: one field after the other, each answered by keys or by a line.

use serde_json::{Map, Value};

use super::{
    keys::KeyPress,
    line_editor::LineEditor,
    menu::{Menu, MenuOption},
};
use crate::cli::{
    render::{
        text::{Color, Line, Style},
        wrap::wrap,
    },
    terminal_text::clean_line,
};
use castor_base::{
    mode::Mode,
    question::{Field, FieldKind, Form},
};

const MAX_LABEL: usize = 500;
/// Typed in place of an answer.
const DECLINE: &str = "-";

/// The fields of a plan's review: what should be different is asked about a plan that was not accepted.
const PLAN_DECISION: &str = "decision";
const PLAN_FEEDBACK: &str = "feedback";

/// A form that is being filled in.
#[derive(Debug)]
pub struct FormInProgress {
    form: Form,
    content: Map<String, Value>,
    at: usize,
    /// What is typed or marked of the field that is next.
    input: FieldInput,
    /// Why the last answer was not taken.
    error: Option<String>,
}

#[derive(Debug)]
enum FieldInput {
    Menu(Menu),
    Line(LineEditor),
}

impl FieldInput {
    fn new(field: Option<&Field>) -> Self {
        let Some(field) = field else { return Self::Menu(yes_or_no_menu()) };
        let default = field.default.as_ref();
        let mut menu = match &field.kind {
            FieldKind::Choice { options } | FieldKind::Choices { options, .. } => {
                let option = |it: &castor_base::question::Choice| MenuOption {
                    description: it.description.clone(),
                    ..MenuOption::new(&it.value, &it.title)
                };
                Menu::new(options.iter().map(option).collect())
            }
            FieldKind::Bool => yes_or_no_menu(),
            FieldKind::Text { .. } | FieldKind::Number { .. } | FieldKind::Integer { .. } => {
                let preset = default.map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned));
                return Self::Line(LineEditor::with_text(&preset.unwrap_or_default()));
            }
        };
        match default {
            Some(Value::String(it)) => menu.highlight(it),
            Some(Value::Bool(it)) => menu.highlight(if *it { YES } else { NO }),
            _ => (),
        }
        if matches!(field.kind, FieldKind::Choices { .. }) {
            let checked = default.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
            menu = menu.with_several(&checked.collect::<Vec<_>>());
        }
        Self::Menu(menu)
    }
}

const YES: &str = "yes";
const NO: &str = "no";

fn yes_or_no_menu() -> Menu {
    Menu::new(vec![MenuOption::new(YES, "Yes").with_letter('y'), MenuOption::new(NO, "No").with_letter('n')])
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
        let input = FieldInput::new(form.fields.first());
        Self { form, content: Map::new(), at: 0, input, error: None }
    }

    pub fn message(&self) -> &str {
        &self.form.message
    }

    /// Asks for the field that is next. A form without fields is a question by itself.
    pub fn prompt(&self) -> String {
        let Some(field) = self.form.fields.get(self.at) else { return "  y or n: ".to_owned() };
        let mut res = String::new();
        for (at, it) in field.kind.options().iter().enumerate() {
            let more = it.description.as_ref().map(|it| format!(": {it}")).unwrap_or_default();
            res += &format!("  {}) {}\n", at + 1, clean_line(&format!("{}{more}", it.title), MAX_LABEL));
        }
        let label = self.label(field);
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
        match self.fill(value) {
            Some(content) => FormEvent::Done(content),
            None => FormEvent::Open(self.prompt()),
        }
    }

    /// Takes a key.
    pub fn key(&mut self, key: &KeyPress) -> FormEvent {
        if *key == KeyPress::Esc {
            return FormEvent::Declined;
        }
        self.error = None;
        let Some(value) = self.input_value(key) else { return FormEvent::Open(String::new()) };
        let Some(field) = self.form.fields.get(self.at) else {
            return if value == Value::Bool(true) { FormEvent::Done(Map::new()) } else { FormEvent::Declined };
        };
        let value = match value {
            Value::Null if !field.required => Ok(None),
            Value::Null => Err("is needed".to_owned()),
            Value::String(text) if matches!(self.input, FieldInput::Line(_)) => {
                read(&field.kind, &text).and_then(|it| field.kind.check(&it)).map(Some)
            }
            value => field.kind.check(&value).map(Some),
        };
        match value.map(|it| self.fill(it)) {
            Err(why) => self.error = Some(format!("that {why}")),
            Ok(Some(content)) => return FormEvent::Done(content),
            Ok(None) => (),
        }
        FormEvent::Open(String::new())
    }

    /// Whether a letter, a digit or pasted text means something here.
    pub fn takes(&self, key: &KeyPress) -> bool {
        match &self.input {
            FieldInput::Menu(menu) => menu.takes(key),
            FieldInput::Line(_) => true,
        }
    }

    /// What a key answers with, if it ends the field: `null` for nothing.
    fn input_value(&mut self, key: &KeyPress) -> Option<Value> {
        let field = self.form.fields.get(self.at);
        let several = field.is_some_and(|it| matches!(it.kind, FieldKind::Choices { .. }));
        match &mut self.input {
            FieldInput::Line(editor) => match key {
                KeyPress::Enter => {
                    let text = editor.text().trim();
                    Some(if text.is_empty() { Value::Null } else { text.into() })
                }
                _ => {
                    editor.key(key);
                    None
                }
            },
            FieldInput::Menu(menu) if several => {
                menu.key(key);
                let chosen: Vec<&str> = menu.checked().map(|it| it.id.as_str()).collect();
                let nothing = chosen.is_empty() && field.is_some_and(|it| !it.required);
                (*key == KeyPress::Enter).then(|| if nothing { Value::Null } else { chosen.into() })
            }
            FieldInput::Menu(menu) => {
                let skips = *key == KeyPress::Enter && menu.is_open() && field.is_some_and(|it| !it.required);
                let chosen = menu.key(key).and_then(|at| menu.get(at));
                let is_bool = field.is_none_or(|it| matches!(it.kind, FieldKind::Bool));
                match chosen {
                    Some(it) if is_bool => Some((it.id == YES).into()),
                    Some(it) => Some(it.id.as_str().into()),
                    None => skips.then_some(Value::Null),
                }
            }
        }
    }

    /// Goes to the next field; gives the content after the last.
    fn fill(&mut self, value: Option<Value>) -> Option<Map<String, Value>> {
        if let (Some(field), Some(value)) = (self.form.fields.get(self.at), value) {
            self.content.insert(field.name.clone(), value);
        }
        self.at += 1;
        if self.form.fields.get(self.at).is_some_and(|it| self.is_moot(it)) {
            self.at += 1;
        }
        self.error = None;
        self.input = FieldInput::new(self.form.fields.get(self.at));
        (self.at >= self.form.fields.len()).then(|| std::mem::take(&mut self.content))
    }

    /// Nothing should be different in a plan that was accepted.
    fn is_moot(&self, field: &Field) -> bool {
        let decision = self.content.get(PLAN_DECISION).and_then(Value::as_str);
        field.name == PLAN_FEEDBACK && !field.required && decision.is_some_and(|it| Mode::parse(it).is_some())
    }

    /// The question of a field, where the message does not ask it already.
    fn label(&self, field: &Field) -> String {
        let name = field.title.as_deref().unwrap_or(&field.name);
        // The rest is for clients that show all fields at once.
        let is_plan = field.name == PLAN_FEEDBACK && self.content.contains_key(PLAN_DECISION);
        let name = if is_plan { name.split(" (").next().unwrap_or(name) } else { name };
        let more = field.description.as_deref().filter(|it| *it != name && *it != self.form.message);
        more.map_or_else(|| name.to_owned(), |it| format!("{name} ({it})"))
    }

    /// The label where it adds something: the message of one choice asks already.
    fn heading(&self, field: &Field) -> Option<String> {
        let label = clean_line(&self.label(field), MAX_LABEL);
        let message = &self.form.message;
        let is_plan = self.form.fields.iter().any(|it| it.name == PLAN_FEEDBACK);
        let asks = is_plan || self.form.fields.len() == 1 && message.contains('?');
        if label == clean_line(message, MAX_LABEL) || asks && matches!(self.input, FieldInput::Menu(_)) {
            return None;
        }
        match self.form.fields.len() {
            count @ 2.. if !is_plan => Some(format!("{}/{count} {label}", self.at + 1)),
            _ => Some(label),
        }
    }

    pub fn draw(&self, width: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        if let Some(label) = self.form.fields.get(self.at).and_then(|it| self.heading(it)) {
            lines.extend(wrap(&Line::new(&format!("  {label}"), Style::BOLD), width, "  "));
        }
        match &self.input {
            FieldInput::Menu(menu) => lines.extend(menu.draw(width)),
            FieldInput::Line(editor) => lines.extend(wrap(&editor.draw("  › "), width, "    ")),
        }
        if let Some(error) = &self.error {
            lines.extend(wrap(&Line::new(&format!("  {error}"), Style::color(Color::Red)), width, "  "));
        }
        lines
    }

    pub fn hint(&self) -> String {
        let field = self.form.fields.get(self.at);
        let may_skip = field.is_some_and(|it| !it.required);
        let enter = match (&self.input, field.map(|it| &it.kind)) {
            (FieldInput::Menu(_), Some(FieldKind::Choices { .. })) => "digits or space mark · enter sends · ",
            (FieldInput::Menu(menu), _) if menu.is_open() && may_skip => "enter skips · ",
            (FieldInput::Menu(_), _) => "",
            (FieldInput::Line(editor), _) if editor.is_empty() && may_skip => "enter skips · ",
            (FieldInput::Line(_), _) => "enter sends · ",
        };
        format!("{enter}esc declines")
    }

    /// What was filled in, in words.
    pub fn record(&self, content: &Map<String, Value>) -> String {
        let values = self.form.fields.iter().filter_map(|field| {
            let value = content.get(&field.name)?;
            let title = |it: &Value| {
                let options = field.kind.options();
                let text = it.as_str().map_or_else(|| it.to_string(), str::to_owned);
                options.iter().find(|it| it.value == text).map_or(text, |it| it.title.clone())
            };
            Some(match value {
                Value::Array(many) if many.is_empty() => "none".to_owned(),
                Value::Array(many) => many.iter().map(title).collect::<Vec<_>>().join(", "),
                Value::Bool(it) => (if *it { YES } else { NO }).to_owned(),
                one => title(one),
            })
        });
        let values = values.collect::<Vec<_>>().join(" · ");
        if values.is_empty() { YES.to_owned() } else { values }
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
    use castor_base::question::{Choice, Field, FieldKind, Form};

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
