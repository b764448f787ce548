//! The sandbox of commands: what is prepared before a process starts. `README.md` here says what it holds and what not.

mod aside;
pub mod denied;
mod guards;
mod held;
#[cfg(target_os = "linux")]
pub(super) mod helper;
#[cfg(any(target_os = "macos", test))]
mod seatbelt;

use std::{
    ffi::OsString,
    fs, io,
    os::fd::{AsRawFd, OwnedFd, RawFd},
    path::{Path, PathBuf},
    sync::OnceLock,
};

use serde::{Deserialize, Serialize};

use crate::base::{path::AbsPath, sandbox::Confinement};

pub use aside::Before;
pub use held::Held;
#[cfg(target_os = "linux")]
pub use helper::enter_if_asked;

/// The first argument by which the binary knows that it is the helper.
pub const ARG: &str = "__castor-sandbox";
/// The helper's exit code when it could not confine, and ran nothing.
pub const FAILED: i32 = 125;

/// Variables that lead to other programs' sockets, and with them out of the sandbox. A trailing `*` is any rest.
const LEADS_OUT: &[&str] = &[
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "GPG_AGENT_INFO",
    "GNOME_KEYRING_*",
    "DBUS_*",
    "DOCKER_*",
    "CONTAINER_HOST",
    "CONTAINERD_*",
    "PODMAN_*",
    "XDG_RUNTIME_DIR",
    "DISPLAY",
    "WAYLAND_*",
    "XAUTHORITY",
    "TMUX",
    "NVIM",
    "VSCODE_*",
];
/// Where programs look for the folder of temporary files.
const TMP: &[&str] = &["TMPDIR", "TMP", "TEMP"];

/// What the helper does, in paths that were there when it was made.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Plan {
    cwd: PathBuf,
    /// May be written, with all that is below.
    writable: Vec<PathBuf>,
    tmp: PathBuf,
    /// Below what is writable, and not.
    protected: Vec<PathBuf>,
    /// Links to some of these: what they lead to is protected, and they must not be replaced.
    links: Vec<PathBuf>,
    /// The same, deeper than the top of a root; only mounts hold it.
    deep: Vec<PathBuf>,
    /// Written, but neither renamed nor removed.
    fixed: Vec<PathBuf>,
    network: bool,
    /// The number of the descriptor that closes when castor lets go.
    life: Option<RawFd>,
    /// Mounts, processes and networks of its own; else only what needs none.
    namespaces: bool,
    /// Something protected is a symlink, which a mount cannot hold: new entries beside it are refused.
    strict: bool,
}

/// How to start something confined.
pub(super) struct Door {
    pub program: OsString,
    pub args: Vec<OsString>,
    /// Kept until the last of its processes is gone.
    pub held: Held,
    /// Open in the new process, under the same number.
    pub life: Option<OwnedFd>,
}

/// Whether this system can confine at all. Cheap: asked for every session.
pub fn is_available() -> bool {
    #[cfg(target_os = "linux")]
    return *AVAILABLE.get_or_init(helper::has_landlock);
    #[cfg(not(target_os = "linux"))]
    return cfg!(target_os = "macos") && *AVAILABLE.get_or_init(|| Path::new("/usr/bin/sandbox-exec").exists());
}

/// What this system has to confine with, and what it lacks, in words.
pub fn state() -> (&'static str, Option<&'static str>) {
    #[cfg(target_os = "linux")]
    return match (is_available(), helper::has_namespaces()) {
        (false, _) => ("nothing", Some("the kernel has no Landlock, or it is switched off")),
        (true, true) => ("namespaces, Landlock and seccomp", None),
        (true, false) => ("Landlock and seccomp", Some("this user may make no namespaces, which would hold more")),
    };
    #[cfg(not(target_os = "linux"))]
    return match is_available() {
        true => ("sandbox-exec", None),
        false => ("nothing", Some("castor knows no sandbox of this system")),
    };
}

static AVAILABLE: OnceLock<bool> = OnceLock::new();

/// Prepares the start of a program.
///
/// # Errors
/// When it cannot be confined, or the program is not there: then nothing is started.
pub(super) fn door(
    it: &Confinement,
    program: &str,
    args: &[&str],
    cwd: &AbsPath,
    env: &[(String, String)],
) -> io::Result<Door> {
    if !is_available() {
        let why = "this system has nothing to confine it with; security.sandbox.level = \"off\" runs it unconfined";
        return Err(io::Error::new(io::ErrorKind::Unsupported, why));
    }
    if !is_there(program, cwd, env) {
        return Err(io::ErrorKind::NotFound.into());
    }
    make_private(it.tmp.as_path())?;
    through(it, program, args, cwd)
}

#[cfg(target_os = "linux")]
fn through(it: &Confinement, program: &str, args: &[&str], cwd: &AbsPath) -> io::Result<Door> {
    let namespaces = helper::has_namespaces();
    let (mut plan, mut held) = guards::plan(it, cwd, namespaces)?;
    let life = held.lives()?;
    plan.life = Some(life.as_raw_fd());
    let plan = serde_json::to_string(&plan).map_err(io::Error::other)?;
    let args = [ARG, &plan, program].iter().chain(args).map(OsString::from).collect();
    // Of the forked child, before it is anything else: this very binary, also when an update replaced its file.
    Ok(Door { program: "/proc/self/exe".into(), args, held, life: Some(life) })
}

#[cfg(not(target_os = "linux"))]
fn through(it: &Confinement, program: &str, args: &[&str], cwd: &AbsPath) -> io::Result<Door> {
    #[cfg(target_os = "macos")]
    {
        let (plan, held) = guards::plan(it, cwd, false)?;
        let profile = seatbelt::profile(&plan);
        let args = ["-p", &profile, program].iter().chain(args).map(OsString::from).collect();
        Ok(Door { program: "/usr/bin/sandbox-exec".into(), args, held, life: None })
    }
    #[cfg(not(target_os = "macos"))]
    {
        _ = (it, program, args, cwd);
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// What is there now that somebody would obey, and could be made by whoever is confined so. Reads one folder for each
/// that may be written.
pub fn look(it: &Confinement) -> Before {
    let roots = guards::writable(it).unwrap_or_default();
    Before::look(&roots, Vec::new())
}

/// The environment of a confined process.
pub(super) fn scrubbed<'e>(
    it: &'e Confinement,
    env: &'e [(String, String)],
) -> impl Iterator<Item = (String, String)> + 'e {
    let leads_out = |name: &str| {
        LEADS_OUT.iter().any(|it| it.strip_suffix('*').map_or(*it == name, |start| name.starts_with(start)))
    };
    let kept = env.iter().filter(move |(name, _)| !leads_out(name) && !TMP.contains(&name.as_str())).cloned();
    kept.chain(TMP.iter().map(|name| ((*name).to_owned(), it.tmp.to_string())))
}

fn make_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// The helper cannot say "not found" in a way that its caller could tell from the program's own words.
fn is_there(program: &str, cwd: &AbsPath, env: &[(String, String)]) -> bool {
    if program.contains('/') {
        return cwd.join(program).as_path().exists();
    }
    let path = env.iter().rev().find(|(name, _)| name == "PATH").map_or("/usr/local/bin:/usr/bin:/bin", |it| &it.1);
    path.split(':').any(|dir| Path::new(dir).join(program).is_file())
}
