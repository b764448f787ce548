//! The helper: castor, started anew to confine itself and then become the command. It makes no thread and no runtime.

mod calls;
pub(in crate::world::process) mod init;
mod mounts;
mod rules;

use std::{
    ffi::OsString,
    io::PipeReader,
    os::{
        fd::{FromRawFd, OwnedFd},
        unix::process::CommandExt,
    },
    process::{Command, Stdio},
    sync::OnceLock,
};

use nix::{
    errno::Errno,
    fcntl::{FcntlArg, FdFlag},
    sys::wait::{WaitStatus, waitpid},
    unistd::{ForkResult, fork},
};

use super::{ARG, FAILED, Plan, Start};

/// In place of a plan: only tries namespaces, and says by its exit code whether they can be had.
const PROBE: &str = "probe";

/// What the trial exits with where the system is short of processes or memory.
const SHORT: i32 = 75;

/// Whether the kernel has Landlock, and it is switched on.
pub(super) fn has_landlock() -> bool {
    rules::abi() > 0
}

/// Whether this user may make namespaces; some distributions forbid it. Found out once, when it is first needed; but that
/// there is nothing left to find it out with is no answer.
pub(super) fn has_namespaces() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    let try_it = || {
        let mut probe = Command::new("/proc/self/exe");
        probe.args([ARG, PROBE]).env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        match probe.status().ok()?.code()? {
            SHORT => None,
            code => Some(code == 0),
        }
    };
    FOUND.get().copied().or_else(|| try_it().map(|it| *FOUND.get_or_init(|| it))).unwrap_or_default()
}

/// Does nothing unless this process was started as the helper; then it never returns.
pub fn enter_if_asked() {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_none_or(|it| it != ARG) {
        return;
    }
    let Err(why) = enter(args);
    eprintln!("castor: the command was not run, because the sandbox could not be set up: {why}");
    std::process::exit(FAILED)
}

fn enter(mut args: impl Iterator<Item = OsString>) -> Result<std::convert::Infallible, String> {
    let start = args.next().and_then(|it| it.into_string().ok()).ok_or("nothing to start with")?;
    if start == PROBE {
        probe();
    }
    let start: Start = serde_json::from_str(&start).map_err(|it| it.to_string())?;
    if start.life <= 2 {
        return Err("nobody to live for".to_owned());
    }
    let program = args.next().ok_or("no program")?;
    let args: Vec<OsString> = args.collect();
    // SAFETY: castor left it open for this process, and nobody else here knows of it.
    let life = unsafe { OwnedFd::from_raw_fd(start.life) };
    nix::fcntl::fcntl(&life, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).map_err(|it| format!("life: {it}"))?;
    nix::sys::prctl::set_no_new_privs().map_err(|it| format!("no_new_privs: {it}"))?;
    // What takes long and needs no plan is done while castor still looks at the folders.
    if start.namespaces {
        mounts::isolate(start.network)?;
    }
    let arrange = |life: &mut PipeReader| {
        let plan = Plan::receive(life).map_err(|it| format!("no plan: {it}"))?;
        if start.namespaces {
            mounts::arrange(&plan)?;
        }
        Ok(plan)
    };
    Err(init::start(life.into(), start.namespaces, arrange, |plan| match confine(&plan) {
        Ok(()) => {
            let why = Command::new(&program).args(&args).exec();
            format!("{}: {why}", program.to_string_lossy())
        }
        Err(it) => it,
    }))
}

/// Restricts the process that becomes the command.
fn confine(plan: &Plan) -> Result<(), String> {
    mounts::drop_capabilities();
    rules::restrict(plan)?;
    calls::restrict(plan)?;
    // The folder that it was started in is the one beneath the new mounts.
    std::env::set_current_dir(&plan.cwd).map_err(|it| format!("{}: {it}", plan.cwd.display()))
}

/// Number 1 of a namespace can do what it must: mounts, and a child.
fn probe() -> ! {
    let plan = Plan { cwd: "/".into(), fixed: vec!["/dev".into()], namespaces: true, ..Plan::default() };
    let tried = || -> Result<i32, String> {
        mounts::isolate(plan.network)?;
        // SAFETY: there is one thread only, so the new process may do anything.
        match unsafe { fork() } {
            Err(Errno::EAGAIN | Errno::ENOMEM) => Ok(SHORT),
            Err(it) => Err(it.to_string()),
            Ok(ForkResult::Child) => std::process::exit(mounts::arrange(&plan).map_or(FAILED, |()| 0)),
            Ok(ForkResult::Parent { child }) => match waitpid(child, None) {
                Ok(WaitStatus::Exited(_, code)) => Ok(code),
                _ => Ok(FAILED),
            },
        }
    };
    std::process::exit(tried().unwrap_or(FAILED))
}
