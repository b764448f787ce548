//! Picker of options: the mode, the model and every other option of the session, and then its values.

use std::cell::Cell;

use serde_json::Value;

use super::list::{PickAnswer, PickList, PickRow};
use crate::app::cli::chat::lower::{Action, Drawn, Key, Panel, Theme};

const KEYS: &str = "Enter chooses · type to search · Esc goes back";

/// An option of the session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OptionRow {
    pub id: String,
    pub name: String,
    pub description: String,
    pub current: String,
    pub values: Vec<OptionValue>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OptionValue {
    pub value: String,
    pub name: String,
    pub description: String,
    /// The group that it stands in.
    pub group: String,
}

impl OptionRow {
    /// From `configOptions`. An option of a kind that is not known is left out.
    pub fn read_all(options: &Value) -> Vec<Self> {
        let all = options.as_array().map(Vec::as_slice).unwrap_or_default();
        all.iter().filter_map(Self::read).collect()
    }

    fn read(it: &Value) -> Option<Self> {
        let (current, values) = match it.get("currentValue")? {
            Value::Bool(it) => (it.to_string(), vec![value_named("true", "on"), value_named("false", "off")]),
            Value::String(current) => (current.clone(), read_values(it.get("options")?)),
            _ => return None,
        };
        let text = |key: &str| it.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let id = it.get("id")?.as_str()?.to_owned();
        let name = if text("name").is_empty() { id.clone() } else { text("name") };
        Some(Self { id, name, description: text("description"), current, values })
    }

    /// The name of the value that is chosen.
    fn current_name(&self) -> &str {
        let value = self.values.iter().find(|it| it.value == self.current);
        value.map_or(&self.current, |it| &it.name)
    }
}

fn value_named(value: &str, name: &str) -> OptionValue {
    OptionValue { value: value.to_owned(), name: name.to_owned(), ..OptionValue::default() }
}

fn read_values(list: &Value) -> Vec<OptionValue> {
    let mut res = Vec::new();
    for it in list.as_array().map(Vec::as_slice).unwrap_or_default() {
        let text = |it: &Value, key: &str| it.get(key).and_then(Value::as_str).map(str::to_owned);
        if let Some(inner) = it.get("options") {
            let group = text(it, "name").or_else(|| text(it, "group")).unwrap_or_default();
            res.extend(read_values(inner).into_iter().map(|it| OptionValue { group: group.clone(), ..it }));
        } else if let Some(value) = text(it, "value") {
            let name = text(it, "name").unwrap_or_else(|| value.clone());
            let description = text(it, "description").unwrap_or_default();
            res.push(OptionValue { value, name, description, group: String::new() });
        }
    }
    res
}

#[derive(Debug)]
pub struct OptionPicker {
    options: Vec<OptionRow>,
    /// The option whose values are shown.
    open: Option<usize>,
    list: PickList,
    page: Cell<usize>,
}

impl OptionPicker {
    pub fn new(options: Vec<OptionRow>) -> Self {
        let mut res = Self { options, open: None, list: PickList::default(), page: Cell::new(10) };
        res.show_options(0);
        res
    }

    /// The values of one option at once, where there is such an option.
    pub fn of_option(options: Vec<OptionRow>, id: &str) -> Self {
        let mut res = Self::new(options);
        if let Some(at) = res.options.iter().position(|it| it.id == id) {
            res.show_values(at);
        }
        res
    }

    fn show_options(&mut self, at: usize) {
        let rows = self.options.iter().map(|it| PickRow {
            label: it.name.clone(),
            detail: it.current_name().to_owned(),
            words: it.id.clone(),
            preview: Some(it.description.clone()).filter(|it| !it.is_empty()).into_iter().collect(),
            ..PickRow::default()
        });
        self.list = PickList::new("options", rows.collect()).with_search().highlighting(at);
        self.open = None;
    }

    fn show_values(&mut self, at: usize) {
        let Some(option) = self.options.get(at) else { return };
        let rows = option.values.iter().map(|it| PickRow {
            heading: it.group.clone(),
            label: it.name.clone(),
            detail: if it.value == option.current { "now".to_owned() } else { String::new() },
            words: it.value.clone(),
            preview: Some(it.description.clone()).filter(|it| !it.is_empty()).into_iter().collect(),
            ..PickRow::default()
        });
        let current = option.values.iter().position(|it| it.value == option.current);
        self.list = PickList::new(&option.name, rows.collect()).with_search().highlighting(current.unwrap_or_default());
        self.open = Some(at);
    }

    fn choose(&mut self, at: usize, out: &mut Vec<Action>) {
        let Some(option) = self.open.and_then(|it| self.options.get(it)) else { return self.show_values(at) };
        if let Some(it) = option.values.get(at) {
            out.push(Action::SetOption { id: option.id.clone(), value: it.value.clone() });
            out.push(Action::Close);
        }
    }
}

impl Panel for OptionPicker {
    fn key(&mut self, key: &Key, out: &mut Vec<Action>) {
        match self.list.key(key, self.page.get()) {
            PickAnswer::Chosen(at) => self.choose(at, out),
            PickAnswer::Closed => match self.open {
                Some(at) => self.show_options(at),
                None => out.push(Action::Close),
            },
            PickAnswer::Open | PickAnswer::Other => (),
        }
    }

    fn draw(&self, width: u16, height: u16, _theme: &Theme) -> Drawn {
        self.page.set(usize::from(height).saturating_sub(3).max(1));
        self.list.draw(width, height, KEYS)
    }
}
