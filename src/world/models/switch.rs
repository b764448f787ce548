//! The model switch: sends each request to the service of the model that it names.

use std::sync::Arc;

use super::{Generator, Sink};
use crate::base::{
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
        let other = self.others.iter().find(|(model, _)| **model == *request.model);
        other.map_or(&self.main, |(_, it)| it).generate(request, sink)
    }
}
