//! Picker of options: the mode, the model and every other option of the session, and then its values.

use std::cell::Cell;

use super::list::{PickAnswer, PickList, PickRow};
use crate::cli::chat::lower::{Action, Drawn, Key, Panel, Theme};
use castor_wire::acp::client::{OfferedValue, OptionSetting, SessionOption};

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
    /// `None`: nothing can be chosen in it.
    pub fn of(it: &SessionOption) -> Option<Self> {
        let (current, values) = match it.current_value.as_ref()? {
            OptionSetting::Flag(it) => (it.to_string(), vec![value_named("true", "on"), value_named("false", "off")]),
            OptionSetting::Value(current) => (current.clone(), rows("", it.options.as_deref()?)),
        };
        let name = if it.name.is_empty() { it.id.clone() } else { it.name.clone() };
        Some(Self { id: it.id.clone(), name, description: it.description.clone().unwrap_or_default(), current, values })
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

fn rows(group: &str, offered: &[OfferedValue]) -> Vec<OptionValue> {
    let row = |it: &OfferedValue| match it {
        OfferedValue::Group { name, group, options } => {
            rows(name.as_ref().or(group.as_ref()).map(String::as_str).unwrap_or_default(), options)
        }
        OfferedValue::One { value, name, description } => vec![OptionValue {
            value: value.clone(),
            name: name.clone().unwrap_or_else(|| value.clone()),
            description: description.clone().unwrap_or_default(),
            group: group.to_owned(),
        }],
    };
    offered.iter().flat_map(row).collect()
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
