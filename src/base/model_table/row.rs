//! Rows of the model table: one model, or one family of models.

use jiff::civil::Date;
use serde::{Deserialize, Deserializer, de::Error};
use serde_json::{Map, Value};

use super::{
    edit_tool::EditTool, name_pattern::NamePattern, parameter::ParameterSet, service_life::ServiceLife,
    thinking::ThinkingRange,
};
use crate::price::Price;

/// What is known of the models whose name fits.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ModelRow {
    pub id: NamePattern,
    pub name: Option<String>,
    pub family: String,
    #[serde(flatten)]
    pub limits: TokenLimits,
    /// What it reads beside text.
    #[serde(default)]
    pub media: Vec<Medium>,
    #[serde(default)]
    pub thinking: ThinkingRange,
    #[serde(default)]
    pub edit: EditTool,
    #[serde(default)]
    pub structured: StructuredOutput,
    /// What it answers with an error, or what is deprecated.
    #[serde(default)]
    pub refused: ParameterSet,
    pub price: Option<ListedPrice>,
    #[serde(flatten)]
    pub life: ServiceLife,
    #[serde(flatten)]
    pub source: RowSource,
}

/// Keys of a row. A key that is none of them is a mistake, or the file is for a later castor.
pub(super) const ROW_KEYS: &[&str] = &[
    "id",
    "name",
    "family",
    "window",
    "output",
    "media",
    "thinking",
    "edit",
    "structured",
    "refused",
    "price",
    "retires",
    "routed",
    "successor",
    "confirmed",
    "source",
];

/// In tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct TokenLimits {
    pub window: Option<u64>,
    /// The longest answer.
    pub output: Option<u32>,
}

/// Where the row is from.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct RowSource {
    /// A page of the maker says so.
    #[serde(default = "yes")]
    pub confirmed: bool,
    /// A title or an address, and the day on which it was read.
    #[serde(default)]
    pub source: String,
}

fn yes() -> bool {
    true
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Medium {
    Image,
    Pdf,
    Audio,
    Video,
}

/// Whether a model can be held to a JSON schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StructuredOutput {
    #[default]
    Unknown,
    No,
    /// Only in a request without tools.
    WithoutTools,
    Yes,
}

impl<'de> Deserialize<'de> for StructuredOutput {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Value::deserialize(from)? {
            Value::Bool(true) => Ok(Self::Yes),
            Value::Bool(false) => Ok(Self::No),
            Value::String(it) if it == "without_tools" => Ok(Self::WithoutTools),
            _ => Err(D::Error::custom("`structured` should be true, false or \"without_tools\"")),
        }
    }
}

/// A price, and the one that follows it on a day that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedPrice {
    price: Price,
    /// The day on which it was read.
    pub read: Date,
    later: Option<(Date, Price)>,
}

impl ListedPrice {
    pub fn on(&self, day: Date) -> Price {
        self.later.filter(|(from, _)| day >= *from).map_or(self.price, |(_, it)| it)
    }
}

impl<'de> Deserialize<'de> for ListedPrice {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut members = Map::<String, Value>::deserialize(from)?;
        read_price(&mut members).map_err(|it| D::Error::custom(format!("`price` {it}")))
    }
}

fn read_price(members: &mut Map<String, Value>) -> Result<ListedPrice, String> {
    let read = take_date(members, "read")?;
    let later = match members.remove("later") {
        None => None,
        Some(Value::Object(mut it)) => Some((take_date(&mut it, "from")?, Price::read(&Value::Object(it))?)),
        Some(_) => return Err("has a `later` that is no table".to_owned()),
    };
    Ok(ListedPrice { price: Price::read(&Value::Object(std::mem::take(members)))?, read, later })
}

fn take_date(members: &mut Map<String, Value>, key: &str) -> Result<Date, String> {
    let date = members.remove(key);
    let date = date.as_ref().and_then(Value::as_str).and_then(|it| it.parse().ok());
    date.ok_or_else(|| format!("should name `{key}`, a day as in 2026-01-31"))
}

/// What the models of a family have in common.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelFamily {
    /// Of the maker's own service: prices hold there. `None`: castor's models without a provider.
    pub host: Option<String>,
    /// The maker's page of prices.
    pub page: Option<String>,
    /// The alias whose parameters conversations have.
    pub asks_as: Option<String>,
    /// How hard a request is may be asked for as a number.
    #[serde(default)]
    pub scores: bool,
    /// Media stands within results, not beside them.
    #[serde(default)]
    pub nests_media: bool,
    #[serde(default)]
    pub call_ids: CallIds,
}

/// The ids of calls that a model knows from its training.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallIds {
    #[default]
    Any,
    /// `functions.NAME:N`, counted over the conversation.
    Counted,
}
