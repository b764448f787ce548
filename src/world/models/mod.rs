//! Models behind the trait `Generator`: a request goes in, chunks stream out.

pub mod anthropic;
pub mod chat;
mod chunks;
pub mod demo;
pub mod error_body;
pub mod gemini;
pub mod google;
mod json;
mod lenient;
pub mod listing;
mod message_pieces;
mod provider_limits;
pub mod recording;
pub mod remote;
pub mod responses;
pub mod script;
pub mod switch;
#[cfg(test)]
mod tests_caching;
#[cfg(test)]
mod tests_streams;
pub mod unreachable_model;

use crate::base::{
    fs::BoxFuture,
    model::{Chunk, Failure, ModelRequest},
};

/// A provider of answers. Cancelling is dropping the future: the connection closes with it.
pub trait Generator: Send + Sync {
    /// Streams the answer into `sink`, in order; returns when it is complete or failed.
    fn generate<'a>(&'a self, request: ModelRequest, sink: &'a mut dyn Sink) -> BoxFuture<'a, Result<(), Failure>>;
}

/// The receiver of chunks. It waits while the loop cannot take more: then nothing more is read from the model.
pub trait Sink: Send {
    /// All chunks that one read brought.
    fn send(&mut self, chunks: Vec<Chunk>) -> BoxFuture<'_, ()>;
}
