//! engine decides: pure state machines. No async, clock, disk, environment or randomness.

pub mod policy;
pub mod routing;
