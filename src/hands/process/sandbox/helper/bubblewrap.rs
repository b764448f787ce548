//! Namespaces by bubblewrap, for systems that forbid castor to make its own.
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
        unix::{
            ffi::{OsStrExt, OsStringExt},
            fs::MetadataExt,
        },
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

use super::{HelperTask, SetupError, become_it, broken, failed, init, mounts};
use crate::process::sandbox::{HELPER_ARG, HELPER_FAILED, SHARED_MEMORY, SandboxPlan, View};
use castor_base::path_text;

/// Where systems have it. Not what `$PATH` says: a folder of a repository may be on it.
const PLACES: &[&str] = &["/usr/bin/bwrap", "/run/wrappers/bin/bwrap", "/usr/local/bin/bwrap"];

/// What number 1 needs, in numbers of descriptors that it has.
#[derive(Debug, Serialize, Deserialize)]
struct PassedDescriptors {
    plan: SandboxPlan,
    places: Vec<FormerMount>,
    life: RawFd,
    record: Option<RawFd>,
    report: RawFd,
    /// The command's: bubblewrap, which waits until all processes ended, has none of them.
    stdio: [RawFd; 3],
}

/// What was mounted, as it was before.
#[derive(Debug, Serialize, Deserialize)]
struct FormerMount {
    #[serde(with = "path_text")]
    path: PathBuf,
    /// Device and number.
    number: (u64, u64),
    /// What must be so now.
    read_only: bool,
}

/// Those that belong to the system, and only the system writes.
pub(super) fn places() -> impl Iterator<Item = PathBuf> {
    let of_system =
        |it: &PathBuf| fs::metadata(it).is_ok_and(|it| it.is_file() && it.uid() == 0 && it.mode() & 0o022 == 0);
    PLACES.iter().map(PathBuf::from).filter(of_system)
}

/// Runs nothing in it, by all that commands are run by.
pub(super) fn try_it(program: &Path) -> Result<Infallible, SetupError> {
    let (life, mut writer) = io::pipe().map_err(broken)?;
    let plan = SandboxPlan { cwd: "/".into(), namespaces: true, ..SandboxPlan::default() };
    plan.send(&mut writer).map_err(broken)?;
    let nothing = ["/proc/self/exe", HELPER_ARG, &HelperTask::Nothing.to_string()].map(OsString::from);
    start(program, life, None, &nothing)
}

/// Starts a command in it, and ends as it ended. Returns only where something went wrong.
pub(super) fn start(
    program: &Path,
    mut life: PipeReader,
    record: Option<OwnedFd>,
    command: &[OsString],
) -> Result<Infallible, SetupError> {
    let mut plan = SandboxPlan::receive(&mut life).map_err(failed("no plan"))?;
    let mounts = fs::read("/proc/self/mountinfo").map_err(failed("/proc"))?;
    let below = below(&plan, &mounts);
    let places = look(&mut plan)?;
    let arguments = hold(arguments(&plan, &below, std::env::vars_os()).join(OsStr::new("\0")).as_bytes())?;
    let (reader, report) = io::pipe().map_err(failed("pipe"))?;
    let stdio = dup(io::stdin()).and_then(|a| Ok([a, dup(io::stdout())?, dup(io::stderr())?]));
    let stdio = stdio.map_err(failed("stdio"))?;
    let numbers = stdio.each_ref().map(AsRawFd::as_raw_fd);
    let (of_life, of_record) = (life.as_raw_fd(), record.as_ref().map(AsRawFd::as_raw_fd));
    let given = PassedDescriptors {
        plan,
        places,
        life: of_life,
        record: of_record,
        report: report.as_raw_fd(),
        stdio: numbers,
    };
    let given = hold(&serde_json::to_vec(&given).map_err(broken)?)?;
    // By its path there may be another castor by now.
    let own = File::open("/proc/self/exe").map_err(failed("castor"))?;
    let line = [
        program.as_os_str().to_owned(),
        "--args".into(),
        arguments.as_raw_fd().to_string().into(),
        "--".into(),
        format!("/proc/self/fd/{}", own.as_raw_fd()).into(),
        HELPER_ARG.into(),
        HelperTask::Within(given.as_raw_fd()).to_string().into(),
    ];
    let line: Result<Vec<CString>, _> = line.iter().chain(command).map(|it| CString::new(it.as_bytes())).collect();
    let (line, errors) = (line.map_err(broken)?, hold(&[])?);
    // What is sent to the group is for the command alone.
    SigSet::all().thread_block().map_err(failed("signals"))?;
    // When bubblewrap is gone, number 1 falls to this process.
    prctl::set_child_subreaper(true).map_err(failed("subreaper"))?;
    let [stdin, stdout, stderr] = &stdio;
    let passed: [&dyn AsRawFd; 8] = [&life, &report, stdin, stdout, stderr, &given, &arguments, &own];
    let passed: Vec<RawFd> = passed.into_iter().map(AsRawFd::as_raw_fd).chain(of_record).collect();
    // SAFETY: there is one thread only, so the new process may do anything.
    match unsafe { fork() }.map_err(failed("fork"))? {
        ForkResult::Child => Err(become_bubblewrap(&line, &passed, errors)),
        ForkResult::Parent { child } => {
            let [_, _, stderr] = stdio;
            drop((life, report, record));
            wait(child, reader, errors, stderr)
        }
    }
}

/// With nothing of castor's environment: of a set-uid program the loader takes parts of it away.
fn become_bubblewrap(line: &[CString], passed: &[RawFd], errors: File) -> SetupError {
    init::silence();
    let opened = passed.iter().try_for_each(|it| {
        // SAFETY: its owner lives longer than this.
        let it = unsafe { BorrowedFd::borrow_raw(*it) };
        fcntl(it, FcntlArg::F_SETFD(FdFlag::empty())).map(drop)
    });
    let Some(program) = line.first() else { return broken("nobody") };
    let started = opened.and_then(|()| dup2_stderr(&errors)).and_then(|()| execve(program, line, &[] as &[CString]));
    match started {
        Ok(never) => match never {},
        Err(it) => failed(program.to_string_lossy())(it),
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
    let said = errors.rewind().and_then(|()| errors.read_to_string(&mut text)).is_ok() && !text.is_empty();
    match end {
        // Number 1 said why.
        Ok(WaitStatus::Exited(_, HELPER_FAILED)) if !said => std::process::exit(HELPER_FAILED),
        Ok(WaitStatus::Exited(_, 0..128)) => {
            let why = if said { text.as_str() } else { "bubblewrap does not run anything" };
            _ = writeln!(
                File::from(stderr),
                "castor: the command was not run, because there is no sandbox: {}",
                why.trim()
            );
            std::process::exit(HELPER_FAILED)
        }
        _ => init::end_as(None),
    }
}

/// Number 1 of what it made.
pub(super) fn enter(given: RawFd, command: &[OsString]) -> Result<Infallible, SetupError> {
    // Nothing of what came along is the command's.
    // SAFETY: takes numbers only.
    if unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) } != 0 {
        return Err(failed("close_range")(io::Error::last_os_error()));
    }
    // SAFETY: these were opened for this process alone, which nobody else here knows of.
    let own = |it: RawFd| unsafe { OwnedFd::from_raw_fd(it) };
    let (mut given, mut text) = (File::from(own(given)), Vec::new());
    given.rewind().and_then(|()| given.read_to_end(&mut text)).map_err(failed("what was given"))?;
    let PassedDescriptors { plan, places, life, record, report, stdio } =
        serde_json::from_slice(&text).map_err(broken)?;
    let [stdin, stdout, stderr] = stdio.map(own);
    let opened = dup2_stdin(stdin).and_then(|()| dup2_stdout(stdout)).and_then(|()| dup2_stderr(stderr));
    opened.map_err(failed("stdio"))?;
    SigSet::all().thread_block().map_err(failed("signals"))?;
    let arrange = |life: &mut PipeReader| {
        plan.open_door(life)?;
        if fs::read_link("/proc/self").map_err(failed("/proc"))? != Path::new("1") {
            return Err(broken("its processes are not alone"));
        }
        check(&plan, &places, &fs::read("/proc/self/mountinfo").map_err(failed("/proc"))?).map(|()| plan)
    };
    let mode = init::InitMode { own_numbers: true, in_front: false, record: record.map(own) };
    let become_command = |plan: SandboxPlan, installer| become_it(&plan, installer, command);
    init::be_first(own(life).into(), own(report).into(), mode, arrange, become_command)
}

/// What is to be mounted, as it is now. What went since it was looked for is not written.
fn look(plan: &mut SandboxPlan) -> Result<Vec<FormerMount>, SetupError> {
    let mut res = Vec::new();
    for it in std::mem::take(&mut plan.writable) {
        match FormerMount::now(&it) {
            Ok(place) => {
                res.push(FormerMount { read_only: false, ..place });
                plan.writable.push(it);
            }
            Err(why) if why.kind() == io::ErrorKind::NotFound => (),
            Err(why) => return Err(failed(it.display())(why)),
        }
    }
    let fixed = plan.fixed.iter().map(|it| (it, false));
    let tmp = Some((&plan.tmp, false)).filter(|it| it.0.is_absolute());
    let within = plan.nested_mounts();
    let fixed = fixed.chain(tmp).map(|it| (it.0.as_path(), it.1));
    for (path, read_only) in fixed.chain(within) {
        let place = FormerMount::now(path).map_err(failed(path.display()))?;
        res.push(FormerMount { read_only, ..place });
    }
    for View { place, shows, written, own: _ } in &plan.views {
        let from = shows.as_ref().unwrap_or(place);
        let there = FormerMount::now(from).map_err(failed(from.display()))?;
        res.push(FormerMount { path: place.clone(), read_only: shows.is_some() && !written, ..there });
    }
    // By what is mounted last there.
    res.reverse();
    let mut known = BTreeSet::new();
    res.retain(|it| known.insert(it.path.clone()));
    Ok(res)
}

/// What is mounted below places that are written: it comes along, and is not.
fn below(plan: &SandboxPlan, mounts: &[u8]) -> Vec<PathBuf> {
    let is_below = |it: &Path| plan.writable.iter().any(|root| it.starts_with(root) && it != root);
    let points: BTreeSet<PathBuf> = lines(mounts).map(|it| it.point).filter(|it| is_below(it) && !is_own(it)).collect();
    let is_open = |it: &PathBuf| !plan.writable.contains(it) && mounts::open(it).is_ok();
    points.into_iter().filter(is_open).collect()
}

/// Made anew by bubblewrap.
fn is_own(point: &Path) -> bool {
    point.starts_with("/dev") && !point.starts_with(SHARED_MEMORY) || point.starts_with("/proc")
}

/// Whether all is mounted, by the kernel's list of mounts, and is what it was, and nothing else is written.
fn check(plan: &SandboxPlan, places: &[FormerMount], mounts: &[u8]) -> Result<(), SetupError> {
    let points: BTreeSet<PathBuf> = lines(mounts).map(|it| it.point).collect();
    for it in places {
        let now = FormerMount::now(&it.path).map_err(failed(it.path.display()))?;
        let is_held = points.contains(&it.path) && (now.read_only || !it.read_only);
        if now.number != it.number || !is_held {
            return Err(broken(format!("{} is not what it was", it.path.display())));
        }
    }
    let is_planned = |it: &PathBuf| {
        let is_shown = plan.views.iter().any(|view| view.place == *it && (view.written || view.shows.is_none()));
        [&plan.writable, &plan.fixed, &plan.inner].iter().any(|them| them.contains(it)) || plan.tmp == *it || is_shown
    };
    let memory = Path::new(SHARED_MEMORY);
    let is_own = |it: &PathBuf| is_own(it) || plan.has_own_memory() && it == memory;
    let more = lines(mounts).find(|it| it.is_written && !is_planned(&it.point) && !is_own(&it.point) && it.is_seen());
    more.map_or(Ok(()), |it| Err(broken(format!("{} is mounted, and could be written", it.point.display()))))
}

/// A line of the kernel's list of mounts.
struct MountLine<'l> {
    number: &'l [u8],
    point: PathBuf,
    is_written: bool,
}

impl MountLine<'_> {
    /// Not beneath another one, and not where this user never comes.
    fn is_seen(&self) -> bool {
        let number = |it: OwnedFd| fs::read_to_string(format!("/proc/self/fdinfo/{}", it.as_raw_fd()));
        let Ok(about) = mounts::open(&self.point).and_then(number) else { return false };
        let number = about.lines().find_map(|it| it.strip_prefix("mnt_id:"));
        number.is_some_and(|it| it.trim().as_bytes() == self.number)
    }
}

/// Number, parent, device, root, place, options.
fn lines(mounts: &[u8]) -> impl Iterator<Item = MountLine<'_>> {
    mounts.split(|it| *it == b'\n').filter_map(|line| {
        let mut words = line.split(|it| *it == b' ');
        let number = words.next()?;
        let (point, options) = (unescaped(words.nth(3)?), words.next()?);
        Some(MountLine { number, point, is_written: options.split(|it| *it == b',').any(|it| it == b"rw") })
    })
}

/// In the list blanks and backslashes are `\040` and the like.
fn unescaped(word: &[u8]) -> PathBuf {
    let (mut res, mut rest) = (Vec::new(), word);
    while let Some((first, more)) = rest.split_first() {
        let octal = more.get(..3).filter(|_| *first == b'\\').and_then(|it| std::str::from_utf8(it).ok());
        let (byte, behind) = match octal.and_then(|it| u8::from_str_radix(it, 8).ok()) {
            Some(it) => (it, more.get(3..).unwrap_or_default()),
            None => (*first, more),
        };
        res.push(byte);
        rest = behind;
    }
    OsString::from_vec(res).into()
}

/// What bubblewrap is told. In the order of `mounts::arrange`, but that what may not be renamed comes before what it lies in:
/// so it is mounted beneath that.
fn arguments(plan: &SandboxPlan, below: &[PathBuf], env: impl Iterator<Item = (OsString, OsString)>) -> Vec<OsString> {
    let is_written = |it: &Path| plan.writable.iter().any(|root| it.starts_with(root));
    let way = |written: bool| if written { "--bind" } else { "--ro-bind" };
    let mount = |way: &str, it: &Path| [way.into(), it.into(), it.into()];
    let (root, memory) = (Path::new("/"), Path::new(SHARED_MEMORY));
    let mut res = ["--unshare-pid", "--unshare-ipc", "--as-pid-1", "--cap-drop", "ALL"].map(OsString::from).to_vec();
    res.extend((!plan.network.is_whole).then(|| "--unshare-net".into()));
    res.extend(mount(way(is_written(root)), root));
    res.extend(["--dev", "/dev", "--proc", "/proc"].map(OsString::from));
    if !plan.has_own_memory() && memory.is_dir() {
        res.extend(mount(way(false), memory));
    }
    // What hides things in a place that is written comes on top of it, what hides the place beneath it.
    let is_within = |it: &&View| plan.writable.iter().any(|root| it.place.starts_with(root) && it.place != *root);
    let is_protected = |it: &Path| plan.protected.iter().any(|protected| it.starts_with(protected));
    let is_open = |it: &Path| plan.writable.iter().any(|root| root == it) || is_written(it) && !is_protected(it);
    let show = |it: &View| match &it.shows {
        Some(from) => [way(it.written).into(), from.into(), it.place.clone().into()],
        None => mount(way(is_open(&it.place)), &it.place),
    };
    res.extend(plan.views.iter().filter(|it| !is_within(it)).flat_map(show));
    res.extend(plan.fixed.iter().flat_map(|it| mount(way(is_written(it)), it)));
    let mut open: Vec<&PathBuf> = plan.writable.iter().chain(below).filter(|it| *it != root).collect();
    open.sort_unstable();
    res.extend(open.into_iter().flat_map(|it| mount(way(plan.writable.contains(it)), it)));
    res.extend(plan.nested_mounts().into_iter().flat_map(|(it, read_only)| mount(way(!read_only), it)));
    res.extend(plan.views.iter().filter(is_within).flat_map(show));
    // Last: it lies within castor's own folder, which may lie within what is protected.
    res.extend(Some(&plan.tmp).filter(|it| it.is_absolute()).into_iter().flat_map(|it| mount(way(true), it)));
    res.extend(["--chdir".into(), plan.cwd.clone().into()]);
    let env = env.filter(|(name, _)| !name.is_empty() && !name.as_bytes().contains(&b'='));
    res.extend(env.flat_map(|(name, value)| ["--setenv".into(), name, value]));
    res
}

impl FormerMount {
    fn now(path: &Path) -> io::Result<Self> {
        let place = File::from(mounts::open(path)?);
        let (about, system) = (place.metadata()?, fstatvfs(&place)?);
        let read_only = system.flags().contains(FsFlags::ST_RDONLY);
        Ok(Self { path: path.to_owned(), number: (about.dev(), about.ino()), read_only })
    }
}

/// A file without a name, read from its beginning.
fn hold(content: &[u8]) -> Result<File, SetupError> {
    let mut res =
        File::from(memfd_create("castor", MFdFlags::MFD_CLOEXEC).map_err(|it| failed("memory")(io::Error::from(it)))?);
    res.write_all(content).and_then(|()| res.rewind()).map_err(failed("memory"))?;
    Ok(res)
}

#[cfg(test)]
mod tests {
    use std::{
        ffi::OsString,
        fs,
        os::unix::fs::symlink,
        path::{Path, PathBuf},
    };

    use super::{FormerMount, arguments, check, look};
    use crate::process::sandbox::{PlannedNetwork, SandboxPlan};

    #[test]
    fn what_is_not_renamed_is_mounted_beneath_what_is_written_and_configuration_above_it() {
        let path = |it: &[&str]| it.iter().map(Into::into).collect();
        let plan = SandboxPlan {
            cwd: "/ws".into(),
            tmp: "/home/.castor/tmp".into(),
            writable: path(&["/home/.cache", "/ws"]),
            fixed: path(&["/ws/.git", "/ws/a"]),
            protected: path(&["/ws/.git/config"]),
            deep: path(&["/ws/a/.vscode"]),
            namespaces: true,
            ..SandboxPlan::default()
        };
        let env =
            [("PATH", "/bin"), ("", "x"), ("a=b", "x")].map(|(name, it)| (OsString::from(name), OsString::from(it)));
        let below = [PathBuf::from("/ws/a/disk")];
        let said = arguments(&plan, &below, env.into_iter()).join(" ".as_ref()).into_string().unwrap();
        let want = "--unshare-pid --unshare-ipc --as-pid-1 --cap-drop ALL --unshare-net --ro-bind / / --dev /dev \
            --proc /proc --bind /ws/.git /ws/.git --bind /ws/a /ws/a --bind /home/.cache /home/.cache --bind /ws /ws \
            --ro-bind /ws/a/disk /ws/a/disk --ro-bind /ws/.git/config /ws/.git/config \
            --ro-bind /ws/a/.vscode /ws/a/.vscode --bind /home/.castor/tmp /home/.castor/tmp --chdir /ws \
            --setenv PATH /bin";
        assert_eq!(said, want);
        let online = arguments(&SandboxPlan { network: PlannedNetwork::WHOLE, ..plan }, &below, std::iter::empty());
        assert!(!online.contains(&"--unshare-net".into()));
    }

    #[test]
    fn nothing_runs_where_another_thing_is_mounted_or_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("with \\ and space");
        fs::create_dir_all(root.join("a")).unwrap();
        let mut plan = SandboxPlan { writable: vec![root.join("a"), root.join("gone")], ..SandboxPlan::default() };
        let places = look(&mut plan).unwrap();
        assert_eq!(plan.writable, [root.join("a")], "what went is not written");
        let line = |it: &str| format!("36 35 98:0 / {}/{it} rw,noatime - ext4 /dev/root rw\n", dir.path().display());
        let mounts = line("with\\040\\134\\040and\\040space/a");
        assert_eq!(check(&plan, &places, mounts.as_bytes()), Ok(()));
        assert!(check(&plan, &places, line("other").as_bytes()).is_err(), "it is not mounted");
        let about = fs::read("/proc/self/mountinfo").unwrap();
        let written = super::lines(&about).find(|it| it.is_written && !super::is_own(&it.point) && it.is_seen());
        let written = written.expect("a disk that can be written");
        let number = String::from_utf8_lossy(written.number);
        let more = |number: &str| format!("{mounts}{number} 35 98:0 / {} rw - ext4 x rw\n", written.point.display());
        assert!(check(&plan, &places, more(&number).as_bytes()).is_err(), "another one is written");
        assert_eq!(check(&plan, &places, more("0").as_bytes()), Ok(()), "it lies beneath another one");
        let protected: Vec<FormerMount> = places.into_iter().map(|it| FormerMount { read_only: true, ..it }).collect();
        assert!(check(&plan, &protected, mounts.as_bytes()).is_err(), "it is written");
        let places: Vec<FormerMount> = protected.into_iter().map(|it| FormerMount { read_only: false, ..it }).collect();
        fs::rename(root.join("a"), root.join("b")).unwrap();
        fs::create_dir(root.join("a")).unwrap();
        assert!(check(&plan, &places, mounts.as_bytes()).is_err(), "another folder");
        fs::remove_dir(root.join("a")).unwrap();
        symlink(Path::new("b"), root.join("a")).unwrap();
        assert!(check(&plan, &places, mounts.as_bytes()).is_err(), "a link to it");
    }
}
