//! The `_meta` of an answer to a question about a call: arguments that the user changed.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Of the answer to a question about a call.
#[derive(Default, Deserialize, JsonSchema)]
pub struct QuestionAnswerMeta {
    #[serde(default)]
    castor: OwnQuestionAnswerMeta,
}

#[derive(Default, Deserialize, JsonSchema)]
struct OwnQuestionAnswerMeta {
    /// With the option `allow_once`: all arguments of the call, in place of the model's. castor decides about it anew,
    /// and asks again if there is something new to ask.
    #[serde(default)]
    input: Option<Map<String, Value>>,
}

impl QuestionAnswerMeta {
    /// `None`: it says something, and nothing that castor understands.
    pub fn read(meta: Option<Map<String, Value>>) -> Option<Self> {
        meta.map_or_else(|| Some(Self::default()), |it| serde_json::from_value(Value::Object(it)).ok())
    }

    pub fn input(self) -> Option<Map<String, Value>> {
        self.castor.input
    }
}
