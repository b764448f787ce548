//! A model alias as it is written: the alias that it extends, its model and generation parameters.

use serde_json::{Map, Value};

/// An alias or what an override sets: a model, and generation parameters in the words of Gemini's API.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelConfig {
    pub model: Option<String>,
    pub generation: Map<String, Value>,
}

/// One alias as it is written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Alias {
    pub extends: Option<String>,
    pub config: ModelConfig,
}
