//! The limit of open files: raised for a process that serves many clients and sessions.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// No more, as far as the system lets it be: some programs close all that they might have open, one by one, and all that
/// this process starts have its limit.
const WANTED: u64 = 64 << 10;

/// How many files this process may have open from now on.
pub fn raise_file_limit() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let now = current.unwrap_or(u64::MAX);
    let wanted = WANTED.min(maximum.unwrap_or(u64::MAX));
    let is_raised = now < wanted && setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }).is_ok();
    if is_raised { wanted } else { now }
}
