//! Files and terminals of this machine, for clients: what runs and is watched, by orders to the server.

mod command_marks;
pub mod files;
pub mod orders;
pub mod path_begin;
pub mod terminals;
mod watches;

use std::collections::BTreeMap;

use files::FileJob;
use terminals::HostedTerminal;
use watches::ResourceWatch;

/// What the server does for a host.
#[derive(Default)]
pub struct HostMachine {
    jobs: BTreeMap<u64, FileJob>,
    n_jobs: u64,
    pub watches: BTreeMap<String, ResourceWatch>,
    n_watches: u64,
    pub terminals: BTreeMap<String, HostedTerminal>,
}
