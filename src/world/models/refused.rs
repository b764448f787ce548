//! A model that may not be used: each request fails with the reason, as a matter of authentication.

use super::{Generator, Sink};
use crate::base::{
    fs::BoxFuture,
    model::{Failure, FailureKind, ModelRequest},
};

/// Stands where a session's model was before its credentials went.
#[derive(Clone, Debug)]
pub struct Refused {
    /// One line for people, with what can be done.
    pub why: String,
}

impl Generator for Refused {
    fn generate<'a>(&'a self, _: ModelRequest, _: &'a mut dyn Sink) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move { Err(Failure::new(FailureKind::Auth, self.why.clone())) })
    }
}
