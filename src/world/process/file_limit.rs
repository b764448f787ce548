//! The limit of open files: raised as far as the system lets it be, for a process that serves many.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// How many files this process may have open from now on. Those that it starts have the same limit.
pub fn raise_file_limit() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let is_raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok();
    if is_raised { maximum } else { current }.unwrap_or(u64::MAX)
}
