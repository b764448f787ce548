//! Checkpoints on real disks.
