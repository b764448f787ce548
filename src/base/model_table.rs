//! Model table: dated rows of what is known of models. One file comes with castor; the user may have a newer one.

pub mod edit_tool;
mod fitting;
pub mod name_pattern;
pub mod parameter;
pub mod row;
mod rows;
pub mod service_life;
pub mod thinking;

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use jiff::civil::Date;
use serde::Deserialize;

use self::{
    edit_tool::EditTool,
    row::{CallIds, ModelFamily, ModelRow, ROW_KEYS, StructuredOutput},
    rows::ModelRows,
    service_life::read_day,
    thinking::{ThinkingKind, ThinkingRange},
};

pub use parameter::{Parameter, ParameterSet};

/// The rows that castor brings, as the build made them of `models.toml`. A test reads that file with all checks.
const BUILT_IN: &str = include_str!(concat!(env!("OUT_DIR"), "/models.json"));
/// The longest chain of successors.
const MAX_SUCCESSORS: usize = 16;

/// What is known of all models.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelTable {
    /// The day on which the rows were read.
    #[serde(deserialize_with = "read_day")]
    date: Option<Date>,
    /// The model where nobody names one.
    #[serde(default)]
    default: String,
    /// The models on offer where no provider gave its list, best first.
    #[serde(default)]
    offered: Vec<String>,
    #[serde(default, rename = "alias")]
    pub aliases: Vec<AliasRow>,
    #[serde(default, rename = "family")]
    families: BTreeMap<String, ModelFamily>,
    #[serde(default, rename = "model")]
    pub rows: ModelRows,
}

/// Another name of a model, or of parameters.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AliasRow {
    pub name: String,
    pub extends: Option<String>,
    pub model: Option<String>,
    /// The names that the router chooses from: for hard work, and for the rest.
    pub auto: Option<AutoModels>,
    /// Parameters in the words of Gemini's API.
    #[serde(default)]
    pub generation: serde_json::Map<String, serde_json::Value>,
    /// The models that an old name once stood for.
    #[serde(default)]
    pub was: Vec<String>,
}

/// Names or models.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AutoModels {
    pub pro: String,
    pub flash: String,
}

/// What the dialects have to know of a request's model. All unknown: as little as possible is sent beside the messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelTraits {
    pub edit: EditTool,
    pub structured: StructuredOutput,
    pub thinking: ThinkingKind,
    /// The longest answer, in tokens.
    pub max_output: Option<u32>,
    /// Media stands within results, not beside them.
    pub nests_media: bool,
    pub call_ids: CallIds,
    pub refused: ParameterSet,
}

/// The reason why a file is no model table.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct TableError(String);

impl ModelTable {
    /// The rows that castor brings.
    pub fn built_in() -> Arc<Self> {
        /// One for all sessions; read when it is first needed.
        static TABLE: LazyLock<Arc<ModelTable>> =
            LazyLock::new(|| Arc::new(serde_json::from_str(BUILT_IN).unwrap_or_default()));
        TABLE.clone()
    }

    /// # Errors
    /// What is wrong with it, in words.
    pub fn parse(text: &str) -> Result<Self, TableError> {
        let whole: toml::Table = text.parse().map_err(|it: toml::de::Error| TableError(it.to_string()))?;
        let rows = whole.get("model").and_then(toml::Value::as_array).into_iter().flatten();
        for row in rows.filter_map(toml::Value::as_table) {
            if let Some(odd) = row.keys().find(|it| !ROW_KEYS.contains(&it.as_str())) {
                let id = row.get("id").and_then(toml::Value::as_str).unwrap_or("without an id");
                return Err(TableError(format!("model {id}: `{odd}` is none of {}", ROW_KEYS.join(", "))));
            }
        }
        let res: Self = whole.try_into().map_err(|it: toml::de::Error| TableError(it.to_string()))?;
        res.check().map_or(Ok(res), |it| Err(TableError(it)))
    }

    /// What is wrong beyond the form.
    fn check(&self) -> Option<String> {
        if self.rows.is_empty() {
            return Some("there is no [[model]] in it".to_owned());
        }
        let stray = self.rows.iter().find(|it| !self.families.contains_key(&it.family));
        if let Some(it) = stray {
            return Some(format!("model {}: there is no family {:?}", it.id.as_str(), it.family));
        }
        let of_aliases = self.aliases.iter().flat_map(|it| {
            let auto = it.auto.iter().flat_map(|it| [&it.pro, &it.flash]);
            it.model.iter().chain(auto)
        });
        let mut leads_to = [&self.default].into_iter().chain(&self.offered).chain(of_aliases);
        leads_to.find_map(|it| self.fault_of_target(it))
    }

    /// What castor itself leads to is known, and served at least when the table is made.
    fn fault_of_target(&self, model: &str) -> Option<String> {
        if self.alias(model).is_some() {
            return None;
        }
        let Some(row) = self.row(model) else { return Some(format!("it leads to {model:?}, which no row knows")) };
        let on = row.life.retires.filter(|it| *it <= self.date())?;
        Some(format!("it leads to {model}, which is switched off on {on}, before its own date {}", self.date()))
    }

    /// The day on which its rows were read.
    pub fn date(&self) -> Date {
        self.date.unwrap_or(Date::ZERO)
    }

    /// The row of a model, whoever serves it. The longest pattern wins.
    pub fn row(&self, model: &str) -> Option<&ModelRow> {
        self.rows.of(model)
    }

    pub fn family(&self, row: &ModelRow) -> Option<&ModelFamily> {
        self.families.get(&row.family)
    }

    pub fn family_of(&self, model: &str) -> Option<&ModelFamily> {
        self.row(model).and_then(|it| self.family(it))
    }

    pub fn traits(&self, model: &str) -> ModelTraits {
        let Some(row) = self.row(model) else { return ModelTraits::default() };
        let family = self.family(row);
        ModelTraits {
            edit: row.edit,
            structured: row.structured,
            thinking: row.thinking.kind,
            max_output: row.limits.output,
            nests_media: family.is_some_and(|it| it.nests_media),
            call_ids: family.map(|it| it.call_ids).unwrap_or_default(),
            refused: row.refused,
        }
    }

    pub fn alias(&self, name: &str) -> Option<&AliasRow> {
        self.aliases.iter().find(|it| it.name == name)
    }

    /// How the model may be told how much to think.
    pub fn thinking(&self, model: &str) -> Option<&ThinkingRange> {
        self.row(model).map(|it| &it.thinking)
    }

    /// The row of who answers on a day: past its date a maker may answer with the successor, at that one's price.
    pub fn answering<'a>(&'a self, row: &'a ModelRow, day: Date) -> &'a ModelRow {
        let mut res = row;
        for _ in 0..MAX_SUCCESSORS {
            let life = Some(&res.life).filter(|it| it.routed && it.is_over(day));
            match life.and_then(|it| self.row(it.successor.as_deref()?)) {
                Some(next) => res = next,
                None => return res,
            }
        }
        res
    }

    /// The model itself while it is served, then its successor, and so on.
    pub fn served<'a>(&'a self, model: &'a str, day: Date) -> &'a str {
        let mut res = model;
        for _ in 0..MAX_SUCCESSORS {
            match self.row(res).map(|it| &it.life).filter(|it| it.is_over(day)).and_then(|it| it.successor.as_deref()) {
                Some(next) => res = next,
                None => return res,
            }
        }
        res
    }

    /// The default before it moves to a successor.
    pub fn first_default(&self) -> &str {
        &self.default
    }

    /// The model where nobody names one.
    pub fn default_model(&self, day: Date) -> &str {
        self.served(&self.default, day)
    }

    /// The models on offer where no provider gave its list, best first, and their names.
    pub fn offered(&self, day: Date) -> Vec<(String, String)> {
        let mut res: Vec<(String, String)> = Vec::new();
        for id in self.offered.iter().map(|it| self.served(it, day)) {
            if !res.iter().any(|(it, _)| it == id) {
                let name = self.row(id).and_then(|it| it.name.clone());
                res.push((id.to_owned(), name.unwrap_or_else(|| id.to_owned())));
            }
        }
        res
    }
}

#[cfg(test)]
mod tests;
