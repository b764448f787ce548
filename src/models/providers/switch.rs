//! The model switch: sends each request to the service of the model that it names.

use std::sync::Arc;

use super::{Generator, Sink};
use castor_base::{
    fs::BoxFuture,
    model::{Failure, ModelRequest},
};

/// A model, and others that may take its place in the middle of a turn.
pub struct ModelSwitch {
    pub main: Arc<dyn Generator>,
    /// By the names that requests have.
    pub others: Vec<(String, Arc<dyn Generator>)>,
}

impl Generator for ModelSwitch {
    fn generate<'a>(&'a self, request: ModelRequest, sink: &'a mut dyn Sink) -> BoxFuture<'a, Result<(), Failure>> {
        self.of(&request.model).generate(request, sink)
    }

    fn credential_hash(&self, model: &str) -> Option<String> {
        self.of(model).credential_hash(model)
    }

    fn address(&self, model: &str) -> Option<String> {
        self.of(model).address(model)
    }
}

impl ModelSwitch {
    fn of(&self, model: &str) -> &Arc<dyn Generator> {
        let other = self.others.iter().find(|(it, _)| it == model);
        other.map_or(&self.main, |(_, it)| it)
    }
}
