//! A raw client: starts the binary, writes lines, reads messages with a deadline, and accepts no loose ends.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::{
        Arc, Condvar, Mutex, OnceLock,
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{ledger::Ledger, watched_castor::WatchedCastor};

/// The binary.
pub const CASTOR: &str = env!("CARGO_BIN_EXE_castor");

/// A guard against hanging, not a measurement.
pub const WATCHDOG: Duration = Duration::from_secs(30);

/// Parts a transcript from what the agent wrote on stderr.
pub const STDERR: &str = "\n-- stderr --\n";

/// A home, a workspace, and what the binary is started with.
pub struct Sandbox {
    dir: TempDir,
    pub program: OsString,
    pub args: Vec<OsString>,
    pub env: Vec<(String, String)>,
    pub namespaces: Namespaces,
    watched: OnceLock<WatchedCastor>,
}

/// Whom the system lets make namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Namespaces {
    Castor,
    /// Only it, as where it is set-uid, or known to AppArmor.
    Bubblewrap,
    Nobody,
}

impl Namespaces {
    /// Those that can be had here.
    #[cfg(target_os = "linux")]
    pub fn all() -> impl Iterator<Item = Self> {
        let mut bubblewrap = Command::new("/usr/bin/bwrap");
        bubblewrap.args([
            "--unshare-pid",
            "--unshare-net",
            "--ro-bind",
            "/",
            "/",
            "--dev",
            "/dev",
            "--proc",
            "/proc",
            "true",
        ]);
        let has_it = bubblewrap.stderr(Stdio::null()).status().is_ok_and(|it| it.success());
        [Self::Castor, Self::Bubblewrap, Self::Nobody].into_iter().filter(move |it| has_it || *it != Self::Bubblewrap)
    }

    /// `NAMESPACES=bubblewrap` lets all sandboxes be made by it.
    fn wanted() -> Self {
        if std::env::var("NAMESPACES").is_ok_and(|it| it == "bubblewrap") { Self::Bubblewrap } else { Self::Castor }
    }
}

impl Sandbox {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["home", "ws"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let env = vec![("CASTOR_TRUST_WORKSPACE".into(), "true".into())];
        Self {
            dir,
            program: CASTOR.into(),
            args: vec!["acp".into()],
            env,
            namespaces: Namespaces::wanted(),
            watched: OnceLock::new(),
        }
    }

    pub fn workspace(&self) -> PathBuf {
        fs::canonicalize(self.dir.path()).unwrap().join("ws")
    }

    pub fn home(&self) -> PathBuf {
        fs::canonicalize(self.dir.path()).unwrap().join("home")
    }

    /// The test binary, where confined programs see it: a session has a `/tmp` of its own, and of the home folder its tools.
    pub fn test_binary(&self) -> PathBuf {
        let own = std::env::current_exe().unwrap();
        if !own.starts_with("/tmp") {
            return own;
        }
        let folder = self.home().join(".local/bin");
        let link = folder.join(own.file_name().unwrap());
        fs::create_dir_all(folder).unwrap();
        if !link.exists() && fs::hard_link(&own, &link).is_err() {
            fs::copy(&own, &link).unwrap();
        }
        link
    }

    /// Writes a file into the sandbox, parents included.
    pub fn write(&self, path: impl AsRef<Path>, content: &str) -> PathBuf {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    pub fn stderr(&self) -> PathBuf {
        self.dir.path().join("stderr")
    }

    /// castor whose messages are checked, and those of its agent.
    pub fn watched(&self) -> &WatchedCastor {
        self.watched.get_or_init(WatchedCastor::new)
    }

    pub fn command(&self) -> Command {
        const CLIENTS: &[&str] = &["run", "chat", "doctor", "mcp"];
        let is_client = self.args.first().is_none_or(|it| CLIENTS.iter().any(|verb| it == verb));
        let mut res = match self.program == CASTOR && is_client {
            true => Command::new(self.watched().client()),
            false => Command::new(&self.program),
        };
        res.args(&self.args).current_dir(self.workspace());
        res.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        res.env("HOME", self.home()).env("CASTOR_HOME", self.home().join(".castor")).env("LANG", "C.UTF-8");
        res.envs(self.env.iter().map(|(name, value)| (name, value)));
        #[cfg(target_os = "linux")]
        if self.namespaces != Namespaces::Castor {
            forbid_namespaces(&mut res, self.namespaces);
        }
        res
    }
}

/// System calls answer "not permitted", to castor and all its children.
#[cfg(target_os = "linux")]
fn forbid_namespaces(command: &mut Command, but_for: Namespaces) {
    use std::os::unix::process::CommandExt;

    use nix::libc::{CLONE_NEWNS, CLONE_NEWUSER, SYS_clone, SYS_unshare};
    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen::Dword, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
        apply_filter,
    };
    let when = |op, flag: i32| {
        let condition = SeccompCondition::new(0, Dword, op, flag.try_into().unwrap()).unwrap();
        vec![SeccompRule::new(vec![condition]).unwrap()]
    };
    let mounts = u64::try_from(CLONE_NEWNS).unwrap();
    let rules = match but_for {
        // It clones, and asks for nothing else in this way.
        Namespaces::Bubblewrap => vec![(SYS_unshare, when(SeccompCmpOp::Ne, CLONE_NEWUSER))],
        _ => vec![(SYS_unshare, Vec::new()), (SYS_clone, when(SeccompCmpOp::MaskedEq(mounts), CLONE_NEWNS))],
    };
    let refuse = SeccompAction::Errno(nix::libc::EPERM as u32);
    let arch = std::env::consts::ARCH.try_into().unwrap();
    let rules = rules.into_iter().collect();
    let filter: BpfProgram = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch).unwrap().try_into().unwrap();
    let restrict = move || {
        nix::sys::prctl::set_no_new_privs()?;
        apply_filter(&filter).map_err(|_| std::io::ErrorKind::PermissionDenied.into())
    };
    // SAFETY: makes system calls only; the filter was made before.
    unsafe { command.pre_exec(restrict) };
}

/// Whether any process but castor works in that folder. What a command says of its own number counts in the sandbox only.
#[cfg(target_os = "linux")]
pub fn is_worked_in(folder: &Path) -> bool {
    let folder = folder.canonicalize().unwrap();
    let works = |pid: &str| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|it| it == folder) && name.trim() != "castor"
    };
    fs::read_dir("/proc").unwrap().flatten().any(|it| it.file_name().to_str().is_some_and(works))
}

/// One running agent. Dropping it closes it and fails the test where something was left unsaid.
pub struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    /// Whether nothing more is read from the agent.
    held: Arc<Held>,
    stderr: PathBuf,
    pub ledger: Ledger,
    transcript: Vec<String>,
    next_id: u64,
    done: bool,
}

impl Client {
    pub fn start(sandbox: &Sandbox) -> Self {
        let errors = File::options().create(true).append(true).open(sandbox.stderr()).unwrap();
        let mut command = sandbox.command();
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        let held = Arc::new(Held::default());
        let gate = held.clone();
        thread::spawn(move || {
            for line in stdout.split(b'\n').map_while(Result::ok) {
                let _ = sender.send(line);
                gate.pass();
            }
        });
        Self {
            stdin: child.stdin.take(),
            child,
            lines,
            held,
            stderr: sandbox.stderr(),
            ledger: Ledger::default(),
            transcript: Vec::new(),
            next_id: 0,
            done: false,
        }
    }

    pub fn pid(&self) -> nix::unistd::Pid {
        nix::unistd::Pid::from_raw(self.child.id().cast_signed())
    }

    /// Sends bytes as they are. An agent that is gone shows when its messages are read.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.transcript.push(format!("-> {}", shown(bytes)));
        self.ledger.sent(bytes);
        if let Some(stdin) = &mut self.stdin {
            let _ = stdin.write_all(bytes).and_then(|()| stdin.flush());
        }
    }

    pub fn send(&mut self, message: &Value) {
        self.send_bytes(format!("{message}\n").as_bytes());
    }

    pub fn request_as(&mut self, id: Value, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// The next message, or `None` at the end of the agent's output.
    pub fn next(&mut self) -> Result<Option<Value>, String> {
        match self.next_within(WATCHDOG)? {
            Next::Nothing => Err(format!("nothing came for {} s", WATCHDOG.as_secs())),
            Next::End => Ok(None),
            Next::Message(it) => Ok(Some(it)),
        }
    }

    pub fn next_within(&mut self, limit: Duration) -> Result<Next, String> {
        let line = match self.lines.recv_timeout(limit) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => return Ok(Next::Nothing),
            Err(RecvTimeoutError::Disconnected) => return Ok(Next::End),
        };
        self.transcript.push(format!("<- {}", shown(&line)));
        let message = self.ledger.received(&line);
        match (message, self.ledger.problems(false).first()) {
            (Some(it), None) => Ok(Next::Message(it)),
            (_, Some(why)) => Err(why.clone()),
            (None, None) => Err("an unreadable line".to_owned()),
        }
    }

    /// Sends a request and reads up to its response; returns it and what came before. Whatever the user is asked meanwhile, the
    /// answer is no.
    pub fn call(&mut self, method: &str, params: Value) -> Result<(Value, Vec<Value>), String> {
        self.next_id += 1;
        let id = json!(format!("call-{}", self.next_id));
        self.request_as(id.clone(), method, params);
        let mut before = Vec::new();
        while let Some(message) = self.next()? {
            if message["id"] == id && message.get("method").is_none() {
                return Ok((message, before));
            }
            if message["method"] == "session/request_permission" {
                let no = json!({"outcome": {"outcome": "selected", "optionId": "reject_once"}});
                self.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": no}));
            }
            before.push(message);
        }
        Err(format!("the agent ended before it answered {method}"))
    }

    /// As [`Client::call`], for requests that must work.
    pub fn result(&mut self, method: &str, params: Value) -> Result<Value, String> {
        let (response, _) = self.call(method, params)?;
        response.get("result").cloned().ok_or_else(|| format!("{method} failed: {}", response["error"]))
    }

    pub fn initialize(&mut self, capabilities: &Value) -> Result<Value, String> {
        let info = json!({"name": "it", "version": "1"});
        let params = json!({"protocolVersion": 1, "clientCapabilities": capabilities, "clientInfo": info});
        self.result("initialize", params)
    }

    /// The same in version 2.
    pub fn initialize_v2(&mut self, capabilities: &Value) -> Result<Value, String> {
        let info = json!({"name": "it", "version": "1"});
        self.result("initialize", json!({"protocolVersion": 2, "capabilities": capabilities, "info": info}))
    }

    /// A session in `cwd`; gives back its id.
    pub fn new_session(&mut self, cwd: &Path) -> Result<String, String> {
        self.new_session_with(cwd, json!([]))
    }

    /// A session in `cwd` with these MCP servers.
    pub fn new_session_with(&mut self, cwd: &Path, servers: Value) -> Result<String, String> {
        let result = self.result("session/new", json!({"cwd": cwd, "mcpServers": servers}))?;
        Ok(result["sessionId"].as_str().unwrap_or_default().to_owned())
    }

    /// Stops reading: at most what is read of the next line already is still taken.
    pub fn hold(&mut self) {
        self.transcript.push("-- reads no more --".to_owned());
        self.held.set(true);
    }

    pub fn read_on(&mut self) {
        self.transcript.push("-- reads on --".to_owned());
        self.held.set(false);
    }

    /// Waits for the agent's end and reads nothing.
    pub fn ends_unread(&mut self) -> Result<ExitStatus, String> {
        self.done = true;
        let start = Instant::now();
        loop {
            match self.child.try_wait().map_err(|it| it.to_string())? {
                Some(status) => return Ok(status),
                None if start.elapsed() > WATCHDOG => return Err("it does not end".to_owned()),
                None => thread::yield_now(),
            }
        }
    }

    pub fn close_stdin(&mut self) {
        self.transcript.push("-> (end)".to_owned());
        self.ledger.close();
        self.stdin = None;
    }

    /// SIGKILL, then everything that had been shown before it.
    pub fn kill(&mut self) -> Result<Vec<Value>, String> {
        self.ledger.close();
        self.done = true;
        self.child.kill().map_err(|it| it.to_string())?;
        self.child.wait().map_err(|it| it.to_string())?;
        let mut res = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(WATCHDOG) {
            // The last line may be cut off.
            if serde_json::from_slice::<Value>(&line).is_ok() {
                res.extend(self.ledger.received(&line));
            }
        }
        self.ledger.problems(false).first().map_or(Ok(res), |it| Err(it.clone()))
    }

    /// Closes the agent's input, unless that is done, and waits for its end. Returns its last messages, unread until now.
    pub fn end(&mut self) -> Result<(ExitStatus, Vec<Value>), String> {
        self.done = true;
        let owed = self.ledger.problems(true);
        if let Some(first) = owed.first() {
            return Err(first.clone());
        }
        if self.stdin.is_some() {
            self.close_stdin();
        }
        let mut rest = Vec::new();
        while let Some(message) = self.next()? {
            rest.push(message);
        }
        let status = self.child.wait().map_err(|it| it.to_string())?;
        Ok((status, rest))
    }

    /// The last line on stderr.
    pub fn last_error(&self) -> String {
        let errors = fs::read_to_string(&self.stderr).unwrap_or_default();
        errors.lines().last().unwrap_or_default().to_owned()
    }

    /// What was said on all three channels.
    pub fn transcript(&self) -> String {
        let errors = fs::read(&self.stderr).unwrap_or_default();
        let errors = String::from_utf8_lossy(&errors);
        format!("{}{STDERR}{errors}", self.transcript.join("\n"))
    }
}

#[derive(Default)]
struct Held(Mutex<bool>, Condvar);

impl Held {
    fn set(&self, held: bool) {
        *self.0.lock().unwrap() = held;
        self.1.notify_all();
    }

    fn pass(&self) {
        drop(self.1.wait_while(self.0.lock().unwrap(), |held| *held));
    }
}

pub enum Next {
    Message(Value),
    /// Nothing within the time.
    Nothing,
    /// The agent closed its output.
    End,
}

impl Drop for Client {
    fn drop(&mut self) {
        let ended = if self.done || thread::panicking() { Ok(None) } else { self.end().map(Some) };
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.held.set(false);
        match ended {
            Ok(Some((_, mut rest))) => {
                // Told beside every session; what it says is a matter of the conversations.
                rest.retain(|it| it["params"]["update"]["sessionUpdate"] != "available_commands_update");
                assert!(rest.is_empty(), "nobody read {rest:?}\n{}", self.transcript());
            }
            Ok(None) => (),
            Err(why) => panic!("{why}\n{}", self.transcript()),
        }
    }
}

fn shown(bytes: &[u8]) -> String {
    const MAX: usize = 2000;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(MAX)]);
    let more = if bytes.len() > MAX { format!("… ({} bytes)", bytes.len()) } else { String::new() };
    format!("{}{more}", text.trim_end_matches('\n'))
}
