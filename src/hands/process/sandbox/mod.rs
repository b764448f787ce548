//! The sandbox of commands: prepares a confined start. `README.md` here says what it protects and what not.

#[cfg(target_os = "linux")]
mod apparmor;
mod committed;
pub mod denial;
mod environment;
mod git_config;
pub mod git_config_paths;
mod gitlinks;
mod guarded_paths;
#[cfg(target_os = "linux")]
pub(super) mod helper;
mod nested_config;
mod new_repositories;
mod online;
mod placeholder_files;
pub(super) mod placeholder_records;
mod placeholders;
mod plain_repository;
mod quarantine;
mod reachable;
pub mod repository;
pub(super) mod running;
#[cfg(any(target_os = "macos", test))]
mod seatbelt;
#[cfg(target_os = "linux")]
pub(super) mod secret_masks;
mod sockets;
mod submodules;
mod unfinished_work;
mod views;
#[cfg(target_os = "linux")]
mod watch;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs, io,
    net::SocketAddr,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use serde::{Deserialize, Serialize};

use super::{Spawn, Stdin, record::SandboxRecord};
#[cfg(target_os = "linux")]
use crate::door::Door;
use castor_base::{path::AbsPath, path_text, sandbox::Confinement};

pub(super) use environment::scrubbed;
#[cfg(target_os = "linux")]
pub use helper::enter_if_asked;
#[cfg(target_os = "linux")]
use helper::{HelperTask, Namespaces, Start};
pub use online::current_confinement;
pub use placeholder_records::remove_orphans;
pub use placeholders::{Placeholders, RemovedPlaceholders};
pub use plain_repository::is_plain;
pub use quarantine::{Quarantine, quarantine_orphans};
pub use reachable::opens;
#[cfg(target_os = "linux")]
use secret_masks::SecretMasks;
use views::View;
pub use views::own_tmp_path;

/// The first argument by which the binary knows that it is the helper.
pub const HELPER_ARG: &str = "__castor-sandbox";
/// The helper's exit code when it could not confine, and ran nothing.
pub const HELPER_FAILED: i32 = 125;

/// What the helper does, in paths that were there when it was made.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct SandboxPlan {
    #[serde(with = "path_text")]
    cwd: PathBuf,
    /// May be written, with all that is below.
    #[serde(with = "path_text::all")]
    writable: Vec<PathBuf>,
    #[serde(with = "path_text")]
    tmp: PathBuf,
    /// Below what is writable, and not.
    #[serde(with = "path_text::all")]
    protected: Vec<PathBuf>,
    /// Links to some of these: what they lead to is protected, and they must not be replaced. A mount cannot
    /// hold them: new entries beside them are refused.
    #[serde(with = "path_text::all")]
    links: Vec<PathBuf>,
    /// The same, deeper than the top of a root; only mounts hold it.
    #[serde(with = "path_text::all")]
    deep: Vec<PathBuf>,
    /// Written, though it lies in what is protected; only mounts do that.
    #[serde(with = "path_text::all")]
    inner: Vec<PathBuf>,
    /// Written, but neither renamed nor removed.
    #[serde(with = "path_text::all")]
    fixed: Vec<PathBuf>,
    /// Not needed when the rest is known.
    #[serde(skip)]
    notes: PlanNotes,
    /// What is hidden, and what is seen in it all the same. What is above comes first.
    views: Vec<View>,
    network: PlannedNetwork,
    /// Mounts, processes and networks of its own; else only what needs none.
    namespaces: bool,
}

/// The network of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct PlannedNetwork {
    /// It is the machine's.
    is_whole: bool,
    /// Where the door listens in one of the command's own; nowhere: there is no door.
    door: Vec<SocketAddr>,
}

impl PlannedNetwork {
    #[cfg(test)]
    const WHOLE: Self = Self { is_whole: true, door: Vec::new() };
}

/// What is known while a plan is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct PlanNotes {
    /// Configuration that may be written.
    open: Vec<PathBuf>,
    user_config: git_config_paths::UserGitConfig,
    /// Absent configuration that a program would obey.
    absent: Vec<PathBuf>,
}

/// The start of a confined process.
pub(super) struct ConfinedStart<'c> {
    pub program: OsString,
    pub args: Vec<OsString>,
    /// Open in the new process, under the same numbers.
    pub passed: Vec<OwnedFd>,
    pub rest: AfterSpawn<'c>,
}

/// What is left to do when the process is there, which waits for it: so both get ready at the same time. Where it fails,
/// or is never done, nothing is run. What it returns is kept until the last of the process's children is gone.
pub(super) type AfterSpawn<'c> = Box<dyn FnOnce() -> io::Result<Placeholders> + 'c>;

/// Whether this system can confine at all. Cheap: asked for every session.
pub fn is_available() -> bool {
    #[cfg(target_os = "linux")]
    return *AVAILABLE.get_or_init(|| helper::has_landlock() && !super::surroundings::is_inside());
    #[cfg(not(target_os = "linux"))]
    return cfg!(target_os = "macos") && *AVAILABLE.get_or_init(|| Path::new("/usr/bin/sandbox-exec").exists());
}

/// Whether what is masked, and what no checkpoint gives back, is so: only mounts do that.
pub fn has_mounts() -> bool {
    #[cfg(target_os = "linux")]
    return is_available() && helper::namespaces() != Namespaces::None;
    #[cfg(not(target_os = "linux"))]
    return false;
}

/// Whether a confined process has a door to hosts: not where it has the whole network, or only looks.
pub fn has_door(it: &Confinement) -> bool {
    !it.network && !it.grant.read_only && has_mounts()
}

/// What this system has to confine with, and what it lacks, in words.
pub fn state() -> (&'static str, Option<&'static str>) {
    #[cfg(target_os = "linux")]
    return match helper::namespaces() {
        _ if super::surroundings::is_inside() => ("nothing of its own", Some(super::surroundings::INSIDE)),
        _ if !is_available() => ("nothing", Some("the kernel has no Landlock, or it is switched off")),
        Namespaces::Helper => ("namespaces, Landlock and seccomp", None),
        Namespaces::Bubblewrap(_) => ("bubblewrap's namespaces, Landlock and seccomp", None),
        Namespaces::None => ("Landlock and seccomp", Some(NO_NAMESPACES)),
    };
    #[cfg(not(target_os = "linux"))]
    return match is_available() {
        true => ("sandbox-exec", None),
        false => ("nothing", Some("castor knows no sandbox of this system")),
    };
}

/// Whether not all that lies below a root is held while commands run, in words.
pub fn unprotected_note(root: &Path) -> Option<String> {
    #[cfg(target_os = "linux")]
    if helper::namespaces().max_below().is_some_and(|most| nested_config::protected(root).len() > most) {
        let root = root.display();
        return Some(format!("{root} has more repositories below it than bubblewrap can protect while commands run."));
    }
    nested_config::unscanned_note(root)
}

/// Whether castor guesses what a sandbox denied, in words.
pub fn record_note() -> Option<&'static str> {
    #[cfg(target_os = "linux")]
    if !is_available() || helper::can_record() {
        return None;
    }
    Some(GUESSED)
}

/// Whether commands cannot write above the folders of tools, and what follows from it, in words. `castor`: its own folder.
pub fn layer_note(castor: &Path) -> Option<&'static str> {
    #[cfg(target_os = "linux")]
    if has_mounts() && (helper::namespaces() != Namespaces::Helper || !helper::can_layer(&castor.join(TRIAL))) {
        return Some(NO_LAYERS);
    }
    _ = castor;
    None
}

/// Where a layer is tried, below castor's own folder.
#[cfg(target_os = "linux")]
const TRIAL: &str = "caches/trial";
#[cfg(target_os = "linux")]
const NO_LAYERS: &str = "commands cannot write in the folders of tools (~/.cargo, ~/.m2, ~/go and others), and castor asks when one \
    fails there: this kernel, bubblewrap's namespaces or the disk of castor's home give castor no overlay mounts";

const GUESSED: &str = "castor guesses from the output of commands what the sandbox denied them, because this system does not \
    tell (no namespaces, no seccomp notification, or another program gets it already)";

/// What an administrator can do, so that castor makes namespaces itself, in lines. `program`: this binary.
pub fn advice(program: &Path) -> Vec<String> {
    #[cfg(target_os = "linux")]
    return apparmor::profile(program).unwrap_or_default();
    #[cfg(not(target_os = "linux"))]
    {
        _ = program;
        Vec::new()
    }
}

#[cfg(target_os = "linux")]
const NO_NAMESPACES: &str = "no namespaces, which would hold more: neither this user nor bubblewrap (/usr/bin/bwrap) may \
    make them; in a container, --security-opt seccomp=unconfined allows them";

static AVAILABLE: OnceLock<bool> = OnceLock::new();

/// Prepares the start of a program.
///
/// # Errors
/// When it cannot be confined, or the program is not there: then nothing is started.
pub(super) fn prepare_start<'c>(it: &'c Confinement, spawn: &Spawn<'c>) -> io::Result<ConfinedStart<'c>> {
    let Spawn { program, args, cwd, env, .. } = *spawn;
    if !is_available() {
        let why = "this system has nothing to confine it with; security.sandbox.level = \"off\" runs it unconfined";
        return Err(io::Error::new(io::ErrorKind::Unsupported, why));
    }
    if !is_there(program, cwd, env) {
        return Err(io::ErrorKind::NotFound.into());
    }
    make_private(it.own_folders.tmp.as_path())?;
    let value = |wanted: &str| env.iter().rev().find(|(name, _)| name == wanted).map(|it| it.1.as_str());
    let around = GuardContext {
        cwd,
        home: value("HOME").map(Path::new),
        env,
        program,
        args,
        in_front: spawn.stdin == Stdin::Inherited,
    };
    through(it, around)
}

#[cfg(target_os = "linux")]
fn through<'c>(it: &'c Confinement, around: GuardContext<'c>) -> io::Result<ConfinedStart<'c>> {
    use std::os::{
        fd::{AsFd, AsRawFd},
        unix::net::UnixStream,
    };
    let by = helper::namespaces();
    let below = by.max_below();
    let (record, taker) = below.and_then(|_| SandboxRecord::new().ok()).unzip();
    // Both ways: the plan goes in, and the door's sockets come out.
    let (life, writer) = UnixStream::pair()?;
    let (life, mut writer) = (OwnedFd::from(life), io::PipeWriter::from(OwnedFd::from(writer)));
    let door = has_door(it).then(|| Door::new(&it.grant.reach));
    let running = running::RunningProcess::of(it);
    let start = Start {
        life: life.as_raw_fd(),
        record: taker.as_ref().map(AsRawFd::as_raw_fd),
        network: it.network,
        namespaces: by,
        in_front: around.in_front,
    };
    let task = HelperTask::Start(start).to_string();
    let args = [HELPER_ARG, &task, around.program].iter().chain(around.args).map(OsString::from).collect();
    let rest = move || {
        let (mut plan, mut standing) = guarded_paths::plan(it, around, below)?;
        plan.network.door = door.as_ref().map(Door::addresses).unwrap_or_default();
        standing.running = Some(running);
        let mounts = plan.views.iter().filter_map(|it| Some((it.shows.as_deref()?, it.place.as_path())));
        standing.record = record.map(|it| Arc::new(SandboxRecord { masks: SecretMasks::watch(mounts), ..it }));
        match plan.send(&mut writer) {
            // The helper is gone, and its last words say why.
            Err(it) if it.kind() == io::ErrorKind::BrokenPipe => (),
            it => it?,
        }
        if let Some(it) = door {
            standing.door = Some(it.open(writer.as_fd().try_clone_to_owned()?)?);
        }
        standing.life = Some(writer);
        Ok(standing)
    };
    // Of the forked child, before it is anything else: this very binary, also when an update replaced its file.
    let passed = std::iter::once(life).chain(taker.map(OwnedFd::from)).collect();
    Ok(ConfinedStart { program: "/proc/self/exe".into(), args, passed, rest: Box::new(rest) })
}

/// Where Linux has it.
#[cfg(target_os = "linux")]
const SHARED_MEMORY: &str = "/dev/shm";

#[cfg(target_os = "linux")]
impl SandboxPlan {
    /// Whether shared memory is a private one. Who works in it works in the machine's, and shares no more of it.
    fn has_own_memory(&self) -> bool {
        let mut places = self.writable.iter().chain([&self.cwd, &self.tmp]);
        self.namespaces && !places.any(|it| it.starts_with(SHARED_MEMORY))
    }

    /// Whether no socket of other programs is seen but those that were given, and it may have its own.
    fn hides_sockets(&self) -> bool {
        self.namespaces && self.views.iter().any(|it| it.place == Path::new(views::SOCKETS) && it.shows.is_some())
    }

    /// Folders that are written, but in which no name comes or goes: of what lies in them Landlock knows only by name.
    fn closed_folders(&self) -> Vec<PathBuf> {
        let is_written = |it: &Path| self.writable.iter().any(|root| it.starts_with(root));
        let held = self.protected.iter().chain(&self.links).filter(|_| !self.links.is_empty());
        held.flat_map(|it| it.ancestors().skip(1)).filter(|it| is_written(it)).map(Path::to_owned).collect()
    }

    /// What is mounted in places that are written, and whether it is read-only. What is above comes first.
    fn nested_mounts(&self) -> BTreeMap<&Path, bool> {
        let inner = self.inner.iter().map(|it| (it.as_path(), false));
        inner.chain(self.protected.iter().chain(&self.deep).map(|it| (it.as_path(), true))).collect()
    }

    /// Behind its length: what comes after it is the end.
    fn send(&self, to: &mut impl io::Write) -> io::Result<()> {
        let text = serde_json::to_vec(self).map_err(io::Error::other)?;
        to.write_all(&[&text.len().to_ne_bytes(), text.as_slice()].concat())
    }

    /// Waits until castor knows what is to be done.
    fn receive(from: &mut impl io::Read) -> io::Result<Self> {
        let mut length = [0; size_of::<usize>()];
        from.read_exact(&mut length)?;
        let mut text = vec![0; usize::from_ne_bytes(length)];
        from.read_exact(&mut text)?;
        serde_json::from_slice(&text).map_err(io::Error::other)
    }
}

#[cfg(not(target_os = "linux"))]
fn through<'c>(it: &'c Confinement, around: GuardContext<'c>) -> io::Result<ConfinedStart<'c>> {
    #[cfg(target_os = "macos")]
    {
        let (plan, standing) = guarded_paths::plan(it, around, None)?;
        let profile = seatbelt::profile(&plan);
        let args = ["-p", &profile, around.program].iter().chain(around.args).map(OsString::from).collect();
        Ok(ConfinedStart {
            program: "/usr/bin/sandbox-exec".into(),
            args,
            passed: Vec::new(),
            rest: Box::new(|| Ok(standing)),
        })
    }
    #[cfg(not(target_os = "macos"))]
    {
        _ = (it, around);
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// The folder, environment and program of a command.
#[derive(Clone, Copy)]
struct GuardContext<'a> {
    pub cwd: &'a AbsPath,
    /// As its environment says.
    pub home: Option<&'a Path>,
    pub env: &'a [(String, String)],
    pub program: &'a str,
    pub args: &'a [&'a str],
    /// It has the user's terminal.
    pub in_front: bool,
}

/// What is there now that somebody would obey, and could be made by whoever is confined so. Reads one folder for each
/// that may be written.
///
/// # Errors
/// A folder that is not the one that it was.
pub fn snapshot_config(it: &Confinement) -> io::Result<Arc<Quarantine>> {
    let roots = guarded_paths::writable_roots(it)?;
    new_repositories::look(&roots);
    Ok(Quarantine::take_snapshot(&roots).with_commits(committed::session_commits(it)).watched())
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
