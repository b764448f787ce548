//! A model that cannot be asked: each request fails with the reason.

use super::{Generator, Sink};
use castor_base::{
    fs::BoxFuture,
    model::{Failure, ModelRequest},
};

/// Stands where a session's model was before its credentials or its provider went.
#[derive(Clone, Debug)]
pub struct UnreachableModel {
    /// With what can be done.
    pub failure: Failure,
}

impl Generator for UnreachableModel {
    fn generate<'a>(&'a self, _: ModelRequest, _: &'a mut dyn Sink) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move { Err(self.failure.clone()) })
    }
}
