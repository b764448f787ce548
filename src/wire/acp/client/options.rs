//! Options and slash commands that a session offers, as its agent tells them.

use serde::{Deserialize, Serialize};

/// An option of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionOption {
    /// Version 2 has another name for it.
    #[serde(alias = "configId")]
    pub id: String,
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub description: Option<String>,
    /// `mode`, `model`, or a word of the agent's own.
    #[serde(default)]
    pub category: Option<String>,
    /// `select` or `boolean`.
    #[serde(rename = "type", default)]
    pub form: Option<String>,
    #[serde(default)]
    pub current_value: Option<OptionSetting>,
    /// `None`: it is no list to choose from.
    #[serde(default)]
    pub options: Option<Vec<OfferedValue>>,
}

/// What an option is set to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OptionSetting {
    Flag(bool),
    Value(String),
}

/// A value that can be chosen, or a group of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OfferedValue {
    Group {
        #[serde(default)]
        name: Option<String>,
        #[serde(default)]
        group: Option<String>,
        options: Vec<Self>,
    },
    One {
        value: String,
        #[serde(default)]
        name: Option<String>,
        #[serde(default)]
        description: Option<String>,
    },
}

/// A slash command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OfferedCommand {
    pub name: String,
    pub description: String,
    pub input: Option<CommandInput>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CommandInput {
    pub hint: Option<String>,
}

impl SessionOption {
    /// What the option is about; options of other agents may have an id only.
    pub fn subject(&self) -> &str {
        self.category.as_deref().unwrap_or(&self.id)
    }

    /// The value that is chosen; `None`: it is no word.
    pub fn chosen(&self) -> Option<&str> {
        match &self.current_value {
            Some(OptionSetting::Value(it)) => Some(it),
            Some(OptionSetting::Flag(_)) | None => None,
        }
    }
}

impl OfferedCommand {
    /// What can come behind it.
    pub fn hint(&self) -> Option<&str> {
        self.input.as_ref()?.hint.as_deref()
    }
}
