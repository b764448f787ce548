//! The sandbox helper: castor starts itself anew, confines itself and becomes the command. It has no thread and no
//! runtime.

mod bubblewrap;
mod calls;
pub(in crate::process) mod init;
mod mounts;
mod rules;

use std::{
    convert::Infallible,
    ffi::OsString,
    fmt,
    io::PipeReader,
    os::{
        fd::{FromRawFd, OwnedFd, RawFd},
        unix::process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

use nix::{
    errno::Errno,
    fcntl::{FcntlArg, FdFlag},
    sys::wait::{WaitStatus, waitpid},
    unistd::{ForkResult, fork},
};
use serde::{Deserialize, Serialize};

use init::InitMode;

use super::{HELPER_ARG, HELPER_FAILED, SandboxPlan};
use crate::{
    door::inside,
    process::record::{self, Installer},
};
use castor_base::path_text;

/// What a trial exits with where the system is short of processes or memory.
const SHORT: i32 = 75;

/// The task of the helper process: its second argument.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum HelperTask {
    /// Only tries namespaces, and says by its exit code whether they can be had.
    Try(Namespaces),
    /// Says by its exit code whether a sandbox can be recorded.
    TryRecord,
    /// Says by its exit code whether a layer can be mounted that lies in this folder.
    TryLayer(#[serde(with = "path_text")] PathBuf),
    /// Does nothing: the command of a trial.
    Nothing,
    /// Becomes the command that follows.
    Start(Start),
    /// The same, as number 1 of what bubblewrap made; the number of the descriptor with the rest.
    Within(RawFd),
}

/// The helper's data before it has its plan.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Start {
    /// The number of the descriptor that brings the plan, and closes when castor lets go.
    pub life: RawFd,
    /// The number of the descriptor that takes the record.
    pub record: Option<RawFd>,
    pub network: bool,
    pub namespaces: Namespaces,
    /// The command has the user's terminal.
    pub in_front: bool,
}

/// The program that makes namespaces of mounts, processes and network for a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Namespaces {
    /// The system forbids namespaces.
    None,
    Helper,
    /// The system lets this program, and not castor.
    Bubblewrap(#[serde(with = "path_text")] PathBuf),
}

/// bubblewrap reads the list of all mounts for each: with a few hundred of them, seconds.
const BELOW_BY_BUBBLEWRAP: usize = 32;

impl Namespaces {
    /// How many repositories and editors' folders below a root are held; `None`: nothing can be mounted.
    pub fn max_below(&self) -> Option<usize> {
        match self {
            Self::None => None,
            Self::Helper => Some(usize::MAX),
            Self::Bubblewrap(_) => Some(BELOW_BY_BUBBLEWRAP),
        }
    }
}

/// Why a sandbox could not be set up.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum SetupError {
    /// A step that the system refused, and why.
    #[error("{0}: {1}")]
    Failed(String, String),
    /// Something is not there, or not what castor passed on and planned.
    #[error("{0}")]
    Broken(String),
}

fn failed<E: fmt::Display>(step: impl fmt::Display) -> impl FnOnce(E) -> SetupError {
    move |it| SetupError::Failed(step.to_string(), it.to_string())
}

fn broken(it: impl fmt::Display) -> SetupError {
    SetupError::Broken(it.to_string())
}

impl fmt::Display for HelperTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

/// Whether the kernel has Landlock, and it is switched on.
pub(super) fn has_landlock() -> bool {
    rules::abi() > 0
}

/// Who can make namespaces for this user; some distributions forbid it to all but few programs. Found out once: who asks
/// meanwhile waits. But that there was nothing left to find it out with is no answer, and it is tried again.
pub(super) fn namespaces() -> Namespaces {
    static FOUND: OnceLock<Option<Namespaces>> = OnceLock::new();
    FOUND.get_or_init(find_namespaces).clone().or_else(find_namespaces).unwrap_or(Namespaces::None)
}

/// Whether the system tells what a sandbox refused.
pub(super) fn can_record() -> bool {
    namespaces() != Namespaces::None && works(&HelperTask::TryRecord) == Some(true)
}

/// Whether a layer that lies in this folder can be mounted above another one.
pub(super) fn can_layer(folder: &Path) -> bool {
    let res = works(&HelperTask::TryLayer(folder.to_owned())) == Some(true);
    // The layer ended with its helper.
    _ = std::fs::remove_dir_all(folder);
    res
}

/// `None`: there was nothing left to find it out with.
fn works(task: &HelperTask) -> Option<bool> {
    let mut trial = Command::new("/proc/self/exe");
    trial.args([HELPER_ARG, &task.to_string()]).env_clear();
    trial.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    trial.status().ok()?.code().filter(|code| *code != SHORT).map(|code| code == 0)
}

fn find_namespaces() -> Option<Namespaces> {
    for it in std::iter::once(Namespaces::Helper).chain(bubblewrap::places().map(Namespaces::Bubblewrap)) {
        if works(&HelperTask::Try(it.clone()))? {
            return Some(it);
        }
    }
    Some(Namespaces::None)
}

/// Does nothing unless this process was started as the helper; then it never returns.
pub fn enter_if_asked() {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_none_or(|it| it != HELPER_ARG) {
        return;
    }
    let Err(why) = enter(args);
    eprintln!("castor: the command was not run, because the sandbox could not be set up: {why}");
    std::process::exit(HELPER_FAILED)
}

fn enter(mut args: impl Iterator<Item = OsString>) -> Result<Infallible, SetupError> {
    let task = args.next().and_then(|it| it.into_string().ok()).ok_or_else(|| broken("nothing to start with"))?;
    match serde_json::from_str(&task).map_err(broken)? {
        HelperTask::Try(Namespaces::Bubblewrap(it)) => bubblewrap::try_it(&it),
        HelperTask::Try(Namespaces::Helper) => try_own(),
        HelperTask::Try(Namespaces::None) => Err(broken("nothing to try")),
        HelperTask::TryRecord => {
            nix::sys::prctl::set_no_new_privs().map_err(failed("no_new_privs"))?;
            std::process::exit(if record::can_install() { 0 } else { HELPER_FAILED })
        }
        HelperTask::TryLayer(it) => mounts::try_layer(&it).map(|()| std::process::exit(0)),
        HelperTask::Nothing => std::process::exit(0),
        HelperTask::Start(it) => enter_new(&it, &args.collect::<Vec<_>>()),
        HelperTask::Within(given) => bubblewrap::enter(given, &args.collect::<Vec<_>>()),
    }
}

/// With what castor left open for it.
fn enter_new(start: &Start, command: &[OsString]) -> Result<Infallible, SetupError> {
    let life = PipeReader::from(own(start.life)?);
    let record = start.record.map(own).transpose()?;
    if let Namespaces::Bubblewrap(it) = &start.namespaces {
        // Not before it: what it may, it may by its file.
        return bubblewrap::start(it, life, record, command);
    }
    nix::sys::prctl::set_no_new_privs().map_err(failed("no_new_privs"))?;
    // What takes long and needs no plan is done while castor still looks at the folders.
    let own_numbers = start.namespaces == Namespaces::Helper;
    if own_numbers {
        mounts::isolate(start.network)?;
    }
    let arrange = |life: &mut PipeReader| {
        let plan = SandboxPlan::receive(life).map_err(failed("no plan"))?;
        plan.open_door(life)?;
        if own_numbers {
            mounts::arrange(&plan)?;
        }
        Ok(plan)
    };
    let mode = InitMode { own_numbers, in_front: start.in_front, record };
    init::start(life, mode, arrange, |plan, installer| become_it(&plan, installer, command))
}

/// A descriptor that castor left open for this process.
fn own(number: RawFd) -> Result<OwnedFd, SetupError> {
    if number <= 2 {
        return Err(broken("nobody to live for"));
    }
    // SAFETY: nobody else here knows of it.
    let res = unsafe { OwnedFd::from_raw_fd(number) };
    nix::fcntl::fcntl(&res, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).map_err(failed("descriptors"))?;
    Ok(res)
}

impl SandboxPlan {
    /// Within the command's own network, which nobody else has.
    fn open_door(&self, life: &PipeReader) -> Result<(), SetupError> {
        match self.network.door.is_empty() {
            true => Ok(()),
            false => inside::pass_sockets(&self.network.door, life).map_err(failed("the door")),
        }
    }
}

/// Returns only where the command cannot be had.
fn become_it(plan: &SandboxPlan, installer: Option<Installer>, command: &[OsString]) -> SetupError {
    let Some((program, args)) = command.split_first() else { return broken("no program") };
    match confine(plan, installer) {
        Ok(()) => failed(program.to_string_lossy())(Command::new(program).args(args).exec()),
        Err(it) => it,
    }
}

/// Restricts the process that becomes the command.
fn confine(plan: &SandboxPlan, installer: Option<Installer>) -> Result<(), SetupError> {
    mounts::drop_capabilities();
    rules::restrict(plan)?;
    calls::restrict(plan)?;
    // The folder that it was started in is the one beneath the new mounts.
    std::env::set_current_dir(&plan.cwd).map_err(failed(plan.cwd.display()))?;
    // Last: nothing that is done here is of interest.
    installer.map_or(Ok(()), |it| it.install(!plan.network.is_whole)).map_err(failed("record"))
}

/// Number 1 of a namespace can do what it must: mounts, and a child.
fn try_own() -> ! {
    let plan = SandboxPlan { cwd: "/".into(), fixed: vec!["/dev".into()], namespaces: true, ..SandboxPlan::default() };
    let tried = || -> Result<i32, SetupError> {
        mounts::isolate(plan.network.is_whole)?;
        // SAFETY: there is one thread only, so the new process may do anything.
        match unsafe { fork() } {
            Err(Errno::EAGAIN | Errno::ENOMEM) => Ok(SHORT),
            Err(it) => Err(failed("fork")(it)),
            Ok(ForkResult::Child) => std::process::exit(mounts::arrange(&plan).map_or(HELPER_FAILED, |()| 0)),
            Ok(ForkResult::Parent { child }) => match waitpid(child, None) {
                Ok(WaitStatus::Exited(_, code)) => Ok(code),
                _ => Ok(HELPER_FAILED),
            },
        }
    };
    std::process::exit(tried().unwrap_or(HELPER_FAILED))
}
