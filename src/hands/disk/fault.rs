//! Fault injection for tests of checkpoints: fails or ends the process at a step.

#[cfg(test)]
#[path = "tests/fault.rs"]
pub mod injected;

/// A disk that keeps only what was synced.
#[cfg(test)]
#[path = "tests/lasting.rs"]
pub mod disk;

/// A step that leaves something on a disk comes next.
#[cfg(not(test))]
pub fn step(_name: &'static str) -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
pub use injected::step;
