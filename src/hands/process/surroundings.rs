//! The surroundings of this castor: another castor's sandbox, which says so in a variable, and is not believed without a look.

use std::sync::OnceLock;

/// Set for every confined process. It alone says nothing: a shell may have it from anywhere.
pub const VARIABLE: &str = "CASTOR_SANDBOXED";

/// Processes above one that are looked at.
const MAX_ABOVE: usize = 100;

/// In words, for doctor and sessions.
pub const INSIDE: &str =
    "castor itself runs in the sandbox of another castor, which holds its commands: it starts no sandbox of its own";

/// Whether another castor holds this one, and with it all that it starts.
pub fn is_inside() -> bool {
    static INSIDE: OnceLock<bool> = OnceLock::new();
    *INSIDE.get_or_init(|| std::env::var_os(VARIABLE).is_some() && is_held())
}

/// Whether a castor started this one, or what started it, as far as the system tells.
pub fn descends_from_castor() -> bool {
    is_inside() || ancestors().any(is_castor)
}

/// The processes above this one, nearest first.
fn ancestors() -> impl Iterator<Item = u32> {
    let parent = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in it may hold anything; what follows its last bracket does not.
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok().filter(|it| *it > 1)
    };
    std::iter::successors(parent(&std::process::id()), parent).take(MAX_ABOVE)
}

fn is_castor(pid: u32) -> bool {
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).ok();
    let own = std::fs::read_link("/proc/self/exe").ok();
    let name = program.as_deref().and_then(|it| it.file_name()).map(|it| it.to_string_lossy().into_owned());
    (program.is_some() && program == own) || name.is_some_and(|it| it == "castor" || it.starts_with("castor "))
}

/// What only a sandbox such as ours refuses: system calls are filtered, for good, and sockets of other programs are among
/// what is refused. A container's filter leaves those.
#[cfg(target_os = "linux")]
fn is_held() -> bool {
    use std::os::unix::net::UnixDatagram;
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return false };
    let says =
        |key: &str, value: &str| status.lines().any(|it| it.strip_prefix(key).is_some_and(|rest| rest.trim() == value));
    let refused = UnixDatagram::unbound().is_err_and(|it| it.raw_os_error() == Some(nix::libc::EPERM));
    says("NoNewPrivs:", "1") && says("Seccomp:", "2") && refused
}

#[cfg(not(target_os = "linux"))]
fn is_held() -> bool {
    false
}

#[cfg(test)]
mod tests {
    /// Tests are not confined: the variable alone would switch nothing off.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_variable_is_not_believed() {
        assert!(!super::is_held());
    }
}
