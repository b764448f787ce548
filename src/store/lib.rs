//! the store keeps the logs of sessions: in files, or in a database that several castors share.

pub mod sessions;
