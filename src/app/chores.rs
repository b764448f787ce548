//! What is done beside sessions, and who waits for it.

use std::fs::File;

use serde_json::value::RawValue;
use tokio::sync::mpsc::{Sender, UnboundedReceiver};

use crate::{
    app::{dispatch::Handler, event::Event},
    base::path::AbsPath,
    wire::jsonrpc::queue::Ticket,
    world::{disk, workspace::Warning},
};

/// What is under way.
#[derive(Default)]
pub struct Chores {
    /// How many are not done.
    pub all: usize,
    /// Of these, what a session that is opened would read.
    pub saves: usize,
    /// Sessions that are to be opened when that is written.
    pub waiting: Vec<(Ticket, Handler, Option<Box<RawValue>>)>,
    /// Logs of turns that are over, which the client is told of first.
    pub unsynced: Vec<File>,
}

impl Chores {
    pub fn is_done(&mut self) {
        self.all = self.all.saturating_sub(1);
    }

    /// Who waited, unless more is to be written.
    pub fn is_saved(&mut self) -> Vec<(Ticket, Handler, Option<Box<RawValue>>)> {
        self.is_done();
        self.saves = self.saves.saturating_sub(1);
        if self.saves == 0 { std::mem::take(&mut self.waiting) } else { Vec::new() }
    }
}

/// Writes one of the user's own files.
pub type Write = Box<dyn FnOnce() -> std::io::Result<Option<Warning>> + Send>;

/// Without it the model finds nothing where the mask points to, and has to call the tool again.
pub async fn stash(file: AbsPath, text: String) {
    let written = tokio::task::spawn_blocking(move || disk::write_private(&file, text.as_bytes())).await;
    if let Ok(Err(it)) = written {
        tracing::warn!("a tool's whole output could not be kept: {it}");
    }
}

/// Writes them one after the other: each is a yes for ever, or takes one back.
pub async fn save(mut writes: UnboundedReceiver<Write>, events: Sender<Event>) {
    while let Some(it) = writes.recv().await {
        match tokio::task::spawn_blocking(it).await {
            Ok(Ok(None)) | Err(_) => (),
            Ok(Ok(Some(it))) => tracing::warn!("{it}"),
            Ok(Err(it)) => tracing::warn!("what is allowed for ever could not be saved: {it}"),
        }
        _ = events.send(Event::Saved).await;
    }
}
