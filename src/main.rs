//! The binary: argv in, exit code out.

fn main() {}
