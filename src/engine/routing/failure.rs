//! tmp
use crate::base::{model::Failure, now::Now};
pub enum OnFailure {
    RetryAt { at_ms: u64, why: String },
    GiveUp { why: String },
}
pub fn on_failure(failure: &Failure, _attempt: u32, _shown: bool, _now: Now) -> OnFailure {
    OnFailure::GiveUp { why: failure.message.clone() }
}
