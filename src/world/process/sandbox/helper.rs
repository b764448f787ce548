//! The helper: castor, started anew to confine itself and then become the command. It makes no thread and no runtime.

mod calls;
mod mounts;
mod rules;

use std::{
    ffi::OsString,
    io,
    os::unix::process::CommandExt,
    process::{Command, Stdio},
    sync::OnceLock,
};

use super::{ARG, FAILED, Plan};

/// In place of a plan: only tries namespaces, and says by its exit code whether they can be had.
const PROBE: &str = "probe";

/// Whether the kernel has Landlock, and it is switched on.
pub(super) fn has_landlock() -> bool {
    rules::abi() > 0
}

/// Whether this user may make namespaces; some distributions forbid it. Found out once, when it is first needed.
pub(super) fn has_namespaces() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let mut probe = Command::new("/proc/self/exe");
        probe.args([ARG, PROBE]).env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        probe.status().is_ok_and(|it| it.success())
    })
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
    let plan = args.next().and_then(|it| it.into_string().ok()).ok_or("no plan")?;
    if plan == PROBE {
        mounts::isolate(&Plan { cwd: "/".into(), namespaces: true, ..Plan::default() })?;
        std::process::exit(0);
    }
    let plan: Plan = serde_json::from_str(&plan).map_err(|it| it.to_string())?;
    let program = args.next().ok_or("no program")?;
    nix::sys::prctl::set_no_new_privs().map_err(|it| format!("no_new_privs: {it}"))?;
    if plan.namespaces {
        mounts::isolate(&plan)?;
    }
    mounts::drop_capabilities();
    rules::restrict(&plan)?;
    calls::restrict(&plan)?;
    // The folder that it was started in is the one beneath the new mounts.
    std::env::set_current_dir(&plan.cwd).map_err(|it| format!("{}: {it}", plan.cwd.display()))?;
    let why: io::Error = Command::new(&program).args(args).exec();
    Err(format!("{}: {why}", program.to_string_lossy()))
}
