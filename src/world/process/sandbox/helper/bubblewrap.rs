//! Namespaces by bubblewrap: where the system lets it make them and castor not, as it is set-uid or AppArmor knows it.
//!
//! Four processes stand in a row then: the helper, bubblewrap, which only waits, number 1 (`init`) and the command.
//! bubblewrap mounts by paths, where anybody outside may put a link meanwhile: before number 1 starts the command, it looks
//! whether what is there now is what was there.

use std::{
    collections::BTreeSet,
    convert::Infallible,
    ffi::{CString, OsStr, OsString},
    fs::{self, File},
    io::{self, PipeReader, Read, Seek, Write},
    os::{
        fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
        unix::{ffi::OsStrExt, fs::MetadataExt},
    },
    path::{Path, PathBuf},
};

use nix::{
    fcntl::{FcntlArg, FdFlag, fcntl},
    libc,
    sys::{
        memfd::{MFdFlags, memfd_create},
        prctl,
        signal::{SigSet, Signal, kill},
        statvfs::{FsFlags, fstatvfs},
        wait::{WaitStatus, waitpid},
    },
    unistd::{ForkResult, Pid, dup, dup2_stderr, dup2_stdin, dup2_stdout, execve, fork},
};
use serde::{Deserialize, Serialize};

use super::{Task, become_it, init, mounts};
use crate::world::process::sandbox::{ARG, FAILED, Plan, SHARED_MEMORY, coded};

/// Where systems have it. Not what `$PATH` says: a folder of a repository may be on it.
const PLACES: &[&str] = &["/usr/bin/bwrap", "/run/wrappers/bin/bwrap", "/usr/local/bin/bwrap"];

/// What number 1 needs, in numbers of descriptors that it has.
#[derive(Debug, Serialize, Deserialize)]
struct Given {
    plan: Plan,
    places: Vec<Place>,
    life: RawFd,
    report: RawFd,
    /// The command's: bubblewrap, which waits for as long as anybody is left, has none of them.
    stdio: [RawFd; 3],
}

/// What was mounted, as it was before.
#[derive(Debug, Serialize, Deserialize)]
struct Place {
    #[serde(with = "coded::one")]
    path: PathBuf,
    /// Device and number.
    number: (u64, u64),
    /// What must be so now.
    read_only: bool,
}

/// Those that belong to the system, and nobody else writes.
pub(super) fn places() -> impl Iterator<Item = PathBuf> {
    let of_system =
        |it: &PathBuf| fs::metadata(it).is_ok_and(|it| it.is_file() && it.uid() == 0 && it.mode() & 0o022 == 0);
    PLACES.iter().map(PathBuf::from).filter(of_system)
}

/// Runs nothing in it, by all that commands are run by.
pub(super) fn try_it(program: &Path) -> Result<Infallible, String> {
    let (life, mut writer) = io::pipe().map_err(|it| it.to_string())?;
    let plan = Plan { cwd: "/".into(), namespaces: true, ..Plan::default() };
    plan.send(&mut writer).map_err(|it| it.to_string())?;
    let nothing = ["/proc/self/exe", ARG, &Task::Nothing.to_string()].map(OsString::from);
    start(program, life, &nothing)
}

/// Starts a command in it, and ends as it ended. Returns only where something went wrong.
pub(super) fn start(program: &Path, mut life: PipeReader, command: &[OsString]) -> Result<Infallible, String> {
    let mut plan = Plan::receive(&mut life).map_err(|it| format!("no plan: {it}"))?;
    let places = look(&mut plan)?;
    let arguments = hold(arguments(&plan, std::env::vars_os()).join(OsStr::new("\0")).as_bytes())?;
    let (reader, report) = io::pipe().map_err(|it| format!("pipe: {it}"))?;
    let stdio = dup(io::stdin()).and_then(|a| Ok([a, dup(io::stdout())?, dup(io::stderr())?]));
    let stdio = stdio.map_err(|it| format!("stdio: {it}"))?;
    let numbers = stdio.each_ref().map(AsRawFd::as_raw_fd);
    let given = Given { plan, places, life: life.as_raw_fd(), report: report.as_raw_fd(), stdio: numbers };
    let given = hold(&serde_json::to_vec(&given).map_err(|it| it.to_string())?)?;
    // By its path there may be another castor by now.
    let own = File::open("/proc/self/exe").map_err(|it| format!("castor: {it}"))?;
    let line = [
        program.as_os_str().to_owned(),
        "--args".into(),
        arguments.as_raw_fd().to_string().into(),
        "--".into(),
        format!("/proc/self/fd/{}", own.as_raw_fd()).into(),
        ARG.into(),
        Task::Within(given.as_raw_fd()).to_string().into(),
    ];
    let line: Result<Vec<CString>, _> = line.iter().chain(command).map(|it| CString::new(it.as_bytes())).collect();
    let (line, errors) = (line.map_err(|it| it.to_string())?, hold(&[])?);
    // What is sent to the group is for the command alone.
    SigSet::all().thread_block().map_err(|it| format!("signals: {it}"))?;
    // When bubblewrap is gone, number 1 falls to this process.
    prctl::set_child_subreaper(true).map_err(|it| format!("subreaper: {it}"))?;
    let [stdin, stdout, stderr] = &stdio;
    let passed: [&dyn AsRawFd; 8] = [&life, &report, stdin, stdout, stderr, &given, &arguments, &own];
    // SAFETY: there is one thread only, so the new process may do anything.
    match unsafe { fork() } {
        Err(it) => Err(format!("fork: {it}")),
        Ok(ForkResult::Child) => Err(become_bubblewrap(&line, &passed.map(AsRawFd::as_raw_fd), errors)),
        Ok(ForkResult::Parent { child }) => {
            let [_, _, stderr] = stdio;
            drop((life, report));
            wait(child, reader, errors, stderr)
        }
    }
}

/// With nothing of castor's environment: of a set-uid program the loader takes parts of it away.
fn become_bubblewrap(line: &[CString], passed: &[RawFd], errors: File) -> String {
    init::silence();
    let opened = passed.iter().try_for_each(|it| {
        // SAFETY: its owner lives longer than this.
        let it = unsafe { BorrowedFd::borrow_raw(*it) };
        fcntl(it, FcntlArg::F_SETFD(FdFlag::empty())).map(drop)
    });
    let Some(program) = line.first() else { return "nobody".to_owned() };
    let started = opened.and_then(|()| dup2_stderr(&errors)).and_then(|()| execve(program, line, &[] as &[CString]));
    match started {
        Ok(never) => match never {},
        Err(it) => format!("{}: {it}", program.to_string_lossy()),
    }
}

/// Ends as the command ended; what bubblewrap itself said is told where there was none.
fn wait(bubblewrap: Pid, mut reader: PipeReader, mut errors: File, stderr: OwnedFd) -> ! {
    init::silence();
    let report = init::Report::read(&mut reader);
    if let Some(it) = &report {
        // It waits for number 1, and is in nobody's way when it is gone.
        _ = kill(bubblewrap, Signal::SIGKILL);
        _ = waitpid(bubblewrap, None);
        if !it.left {
            // Whoever asks now who is left must not find it.
            _ = waitpid(None, None);
        }
        init::end_as(report);
    }
    let (end, mut text) = (waitpid(bubblewrap, None), String::new());
    if errors.rewind().and_then(|()| errors.read_to_string(&mut text)).is_ok() && !text.is_empty() {
        _ = write!(File::from(stderr), "castor: the command was not run, because there is no sandbox: {text}");
        std::process::exit(FAILED);
    }
    match end {
        Ok(WaitStatus::Exited(_, code)) => std::process::exit(code),
        _ => init::end_as(None),
    }
}

/// Number 1 of what it made.
pub(super) fn enter(given: RawFd, command: &[OsString]) -> Result<Infallible, String> {
    // Nothing of what came along is the command's.
    // SAFETY: takes numbers only.
    if unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) } != 0 {
        return Err(format!("close_range: {}", io::Error::last_os_error()));
    }
    // SAFETY: these were opened for this process alone, which nobody else here knows of.
    let own = |it: RawFd| unsafe { OwnedFd::from_raw_fd(it) };
    let (mut given, mut text) = (File::from(own(given)), Vec::new());
    given.rewind().and_then(|()| given.read_to_end(&mut text)).map_err(|it| format!("what was given: {it}"))?;
    let Given { plan, places, life, report, stdio } = serde_json::from_slice(&text).map_err(|it| it.to_string())?;
    let [stdin, stdout, stderr] = stdio.map(own);
    let opened = dup2_stdin(stdin).and_then(|()| dup2_stdout(stdout)).and_then(|()| dup2_stderr(stderr));
    opened.map_err(|it| format!("stdio: {it}"))?;
    SigSet::all().thread_block().map_err(|it| format!("signals: {it}"))?;
    let arrange = |_: &mut PipeReader| {
        let said = |it: io::Error| format!("/proc: {it}");
        if fs::read_link("/proc/self").map_err(said)? != Path::new("1") {
            return Err("its processes are not alone".to_owned());
        }
        check(&places, &fs::read("/proc/self/mountinfo").map_err(said)?).map(|()| plan)
    };
    init::be_first(own(life).into(), own(report).into(), true, arrange, |plan| become_it(&plan, command))
}

/// What is to be mounted, as it is now. What went since it was looked for is not written.
fn look(plan: &mut Plan) -> Result<Vec<Place>, String> {
    let mut res = Vec::new();
    for it in std::mem::take(&mut plan.writable) {
        match Place::now(&it) {
            Ok(place) => {
                res.push(Place { read_only: false, ..place });
                plan.writable.push(it);
            }
            Err(why) if why.kind() == io::ErrorKind::NotFound => (),
            Err(why) => return Err(format!("{}: {why}", it.display())),
        }
    }
    let fixed = plan.fixed.iter().map(|it| (it, false));
    let tmp = Some((&plan.tmp, false)).filter(|it| it.0.is_absolute());
    let protected = plan.protected.iter().chain(&plan.deep).map(|it| (it, true));
    for (path, read_only) in fixed.chain(tmp).chain(protected) {
        let place = Place::now(path).map_err(|it| format!("{}: {it}", path.display()))?;
        res.push(Place { read_only, ..place });
    }
    Ok(res)
}

/// Whether all is mounted, by the kernel's list of mounts, and is what it was.
fn check(places: &[Place], mounts: &[u8]) -> Result<(), String> {
    let points: BTreeSet<&[u8]> = mounts.split(|it| *it == b'\n').filter_map(point).collect();
    for it in places {
        let now = Place::now(&it.path).map_err(|why| format!("{}: {why}", it.path.display()))?;
        let is_held = points.contains(&*escaped(&it.path)) && (now.read_only || !it.read_only);
        if now.number != it.number || !is_held {
            return Err(format!("{} is not what it was", it.path.display()));
        }
    }
    Ok(())
}

/// The fifth word says where it is mounted; what lies beneath another mount has its line, too.
fn point(line: &[u8]) -> Option<&[u8]> {
    line.split(|it| *it == b' ').nth(4)
}

/// As the kernel writes it there.
fn escaped(path: &Path) -> Vec<u8> {
    let octal = |it: u8| format!("\\{it:03o}").into_bytes();
    let parts = path.as_os_str().as_bytes().iter().map(|it| match it {
        b' ' | b'\t' | b'\n' | b'\\' => octal(*it),
        it => vec![*it],
    });
    parts.flatten().collect()
}

/// What bubblewrap is told. In the order of `mounts::arrange`, but that what may not be renamed comes before what it lies in:
/// so it is mounted beneath that.
fn arguments(plan: &Plan, env: impl Iterator<Item = (OsString, OsString)>) -> Vec<OsString> {
    let is_written = |it: &Path| plan.writable.iter().any(|root| it.starts_with(root));
    let way = |written: bool| if written { "--bind" } else { "--ro-bind" };
    let mount = |way: &str, it: &Path| [way.into(), it.into(), it.into()];
    let (root, memory) = (Path::new("/"), Path::new(SHARED_MEMORY));
    let mut res = ["--unshare-pid", "--unshare-ipc", "--as-pid-1", "--cap-drop", "ALL"].map(OsString::from).to_vec();
    res.extend((!plan.network).then(|| "--unshare-net".into()));
    res.extend(mount(way(is_written(root)), root));
    res.extend(["--dev", "/dev", "--proc", "/proc"].map(OsString::from));
    if !plan.has_own_memory() && memory.is_dir() {
        res.extend(mount(way(false), memory));
    }
    res.extend(plan.fixed.iter().flat_map(|it| mount(way(is_written(it)), it)));
    res.extend(plan.writable.iter().filter(|it| *it != root).flat_map(|it| mount(way(true), it)));
    res.extend(plan.protected.iter().chain(&plan.deep).flat_map(|it| mount(way(false), it)));
    // Last: it lies within castor's own folder, which may lie within what is protected.
    res.extend(Some(&plan.tmp).filter(|it| it.is_absolute()).into_iter().flat_map(|it| mount(way(true), it)));
    res.extend(["--chdir".into(), plan.cwd.clone().into()]);
    let env = env.filter(|(name, _)| !name.is_empty() && !name.as_bytes().contains(&b'='));
    res.extend(env.flat_map(|(name, value)| ["--setenv".into(), name, value]));
    res
}

impl Place {
    fn now(path: &Path) -> io::Result<Self> {
        let place = File::from(mounts::open(path)?);
        let (about, system) = (place.metadata()?, fstatvfs(&place)?);
        let read_only = system.flags().contains(FsFlags::ST_RDONLY);
        Ok(Self { path: path.to_owned(), number: (about.dev(), about.ino()), read_only })
    }
}

/// A file without a name, read from its beginning.
fn hold(content: &[u8]) -> Result<File, String> {
    let said = |it: io::Error| format!("memory: {it}");
    let mut res = File::from(memfd_create("castor", MFdFlags::MFD_CLOEXEC).map_err(|it| said(it.into()))?);
    res.write_all(content).and_then(|()| res.rewind()).map_err(said)?;
    Ok(res)
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsString, fs, os::unix::fs::symlink, path::Path};

    use super::{Place, arguments, check, look};
    use crate::world::process::sandbox::Plan;

    #[test]
    fn what_is_not_renamed_is_mounted_beneath_what_is_written_and_configuration_above_it() {
        let path = |it: &[&str]| it.iter().map(Into::into).collect();
        let plan = Plan {
            cwd: "/ws".into(),
            tmp: "/home/.castor/tmp".into(),
            writable: path(&["/home/.cache", "/ws"]),
            fixed: path(&["/ws/.git", "/ws/a"]),
            protected: path(&["/ws/.git/config"]),
            deep: path(&["/ws/a/.vscode"]),
            namespaces: true,
            ..Plan::default()
        };
        let env =
            [("PATH", "/bin"), ("", "x"), ("a=b", "x")].map(|(name, it)| (OsString::from(name), OsString::from(it)));
        let said = arguments(&plan, env.into_iter()).join(" ".as_ref()).into_string().unwrap();
        let want = "--unshare-pid --unshare-ipc --as-pid-1 --cap-drop ALL --unshare-net --ro-bind / / --dev /dev \
            --proc /proc --bind /ws/.git /ws/.git --bind /ws/a /ws/a --bind /home/.cache /home/.cache --bind /ws /ws \
            --ro-bind /ws/.git/config /ws/.git/config --ro-bind /ws/a/.vscode /ws/a/.vscode \
            --bind /home/.castor/tmp /home/.castor/tmp --chdir /ws --setenv PATH /bin";
        assert_eq!(said, want);
        let online = arguments(&Plan { network: true, ..plan }, std::iter::empty());
        assert!(!online.contains(&"--unshare-net".into()));
    }

    #[test]
    fn nothing_runs_where_another_thing_is_mounted_or_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("with \\ and space");
        fs::create_dir_all(root.join("a")).unwrap();
        let mut plan = Plan { writable: vec![root.join("a"), root.join("gone")], ..Plan::default() };
        let places = look(&mut plan).unwrap();
        assert_eq!(plan.writable, [root.join("a")], "what went is not written");
        let line = |it: &str| format!("36 35 98:0 / {}/{it} rw,noatime - ext4 /dev/root rw\n", dir.path().display());
        let mounts = line("with\\040\\134\\040and\\040space/a");
        assert_eq!(check(&places, mounts.as_bytes()), Ok(()));
        assert!(check(&places, line("other").as_bytes()).is_err(), "it is not mounted");
        let protected: Vec<Place> = places.into_iter().map(|it| Place { read_only: true, ..it }).collect();
        assert!(check(&protected, mounts.as_bytes()).is_err(), "it is written");
        let places: Vec<Place> = protected.into_iter().map(|it| Place { read_only: false, ..it }).collect();
        fs::rename(root.join("a"), root.join("b")).unwrap();
        fs::create_dir(root.join("a")).unwrap();
        assert!(check(&places, mounts.as_bytes()).is_err(), "another folder");
        fs::remove_dir(root.join("a")).unwrap();
        symlink(Path::new("b"), root.join("a")).unwrap();
        assert!(check(&places, mounts.as_bytes()).is_err(), "a link to it");
    }
}
