//! Chores beside sessions, such as saving a permission, and the requests that wait for them.

use std::fs::File;

use tokio::sync::mpsc::{Sender, UnboundedReceiver};

use super::store_requests::{StoreRequests, WaitingRequest};
use crate::{
    model::refused_parameters::{self, RefusedParameter},
    server::event::Event,
};
use castor_base::path::AbsPath;
use castor_hands::disk;
use castor_tools::workspace::Warning;

/// What is under way.
#[derive(Default)]
pub struct PendingChores {
    /// How many are not done.
    pub n_running: usize,
    /// Of these, what a session that is opened would read.
    pub n_saves: usize,
    /// Sessions that are to be opened when that is written.
    pub waiting: Vec<WaitingRequest>,
    /// Messages that a shared store is asked for.
    pub store: StoreRequests,
    /// Logs of turns that are over, which the client is told of first.
    pub unsynced: Vec<File>,
}

impl PendingChores {
    pub fn finish_chore(&mut self) {
        self.n_running = self.n_running.saturating_sub(1);
    }

    /// Who waited, unless more is to be written.
    pub fn finish_save(&mut self) -> Vec<WaitingRequest> {
        self.finish_chore();
        self.n_saves = self.n_saves.saturating_sub(1);
        if self.n_saves == 0 { std::mem::take(&mut self.waiting) } else { Vec::new() }
    }
}

/// Writes one of the user's own files.
pub type FileWrite = Box<dyn FnOnce() -> std::io::Result<Option<Warning>> + Send>;

/// Later sessions leave the parameter out.
pub fn save_refusal(home: AbsPath, row: RefusedParameter) -> FileWrite {
    Box::new(move || refused_parameters::remember(&home, row).map(|()| None))
}

/// Without it the model finds nothing where the mask points to, and has to call the tool again.
pub async fn stash(file: AbsPath, text: String) {
    let written = tokio::task::spawn_blocking(move || disk::write_private(&file, text.as_bytes())).await;
    if let Ok(Err(it)) = written {
        tracing::warn!("a tool's whole output could not be kept: {it}");
    }
}

/// Writes them one after the other: each is a yes for ever, or takes one back.
pub async fn run_saves(mut writes: UnboundedReceiver<FileWrite>, events: Sender<Event>) {
    while let Some(it) = writes.recv().await {
        match tokio::task::spawn_blocking(it).await {
            Ok(Ok(None)) | Err(_) => (),
            Ok(Ok(Some(it))) => tracing::warn!("{it}"),
            Ok(Err(it)) => tracing::warn!("a permanent permission could not be saved: {it}"),
        }
        _ = events.send(Event::GrantSaved).await;
    }
}
