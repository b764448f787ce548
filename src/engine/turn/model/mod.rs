//! Requests of a turn and their model: built, routed, sent, and made again where they failed.

pub(super) mod build;
pub mod compressing;
pub(super) mod credential_renewal;
pub(super) mod distilling;
pub(super) mod failure_recovery;
pub(super) mod leaving_out;
pub(super) mod omissions;
pub(super) mod request_builder;
pub(super) mod request_hooks;
pub(super) mod response;
pub(super) mod route;
pub(super) mod router;
pub(super) mod sampling;
pub mod windows;
