//! The integration tests: the real binary, over pipes.

#![allow(clippy::disallowed_methods)]

mod client;
mod conversation;

mod kill9;
mod ledger;
mod schema;
mod stderr;
