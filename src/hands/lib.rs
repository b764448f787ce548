//! hands touch the machine: disk and checkpoints, processes and their sandbox, hosts, secrets. Everything else of castor goes through them.

#[cfg(unix)]
pub mod checkpoints;
pub mod disk;
pub mod door;
pub mod http;
pub mod process;
#[cfg(unix)]
pub mod provenance;
pub mod secrets;
