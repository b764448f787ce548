//! A gate before a model: it refuses requests for other models than those that may be used.

use std::sync::Arc;

use castor_base::{
    fs::BoxFuture,
    model::{Failure, FailureKind, ModelRequest},
};
use castor_models::providers::{Generator, Sink};

pub struct OnlyModels {
    pub inner: Arc<dyn Generator>,
    pub models: Vec<String>,
}

/// In words, if it may not be used.
pub fn model_refusal(model: &str, only: &[String]) -> Option<String> {
    let is_fine = only.is_empty() || only.iter().any(|it| it == model);
    (!is_fine).then(|| format!("{model} is not one of the models that may be used here: {}", only.join(", ")))
}

impl Generator for OnlyModels {
    fn generate<'a>(&'a self, request: ModelRequest, sink: &'a mut dyn Sink) -> BoxFuture<'a, Result<(), Failure>> {
        match model_refusal(&request.model, &self.models) {
            None => self.inner.generate(request, sink),
            Some(why) => Box::pin(async move { Err(Failure::new(FailureKind::Auth, why)) }),
        }
    }

    fn credential_hash(&self, model: &str) -> Option<String> {
        self.inner.credential_hash(model)
    }

    fn address(&self, model: &str) -> Option<String> {
        self.inner.address(model)
    }
}
