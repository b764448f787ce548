//! Checks of a turn's progress: loops, and what a model says about them.

pub(super) mod loop_detection;
pub(super) mod loop_recovery;
pub(super) mod model_checks;
