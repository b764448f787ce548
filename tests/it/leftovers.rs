//! After each kind of end no process of castor's is left: by parent, by process group, and by what it was told.
#![cfg(target_os = "linux")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Stdio},
    thread,
    time::Instant,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};

use crate::{
    client::{Sandbox, WATCHDOG},
    mcp::server,
};

/// A command with a child of its own that ignores SIGTERM, and one in the background.
const COMMAND: &str = "(trap '' TERM; sleep 3333) & sleep 3333 & echo started; wait";

#[test]
fn the_end_of_input_leaves_nothing() {
    check(|it| it.stdin = None);
}

#[test]
fn sigterm_leaves_nothing() {
    check(|it| kill(it.pid(), Signal::SIGTERM).unwrap());
}

/// Both pipes are gone at once, in the middle of everything.
#[test]
fn a_crashed_client_leaves_nothing() {
    check(|it| (it.stdin, it.stdout) = (None, None));
}

#[test]
fn close_leaves_castor_alone() {
    check(|it| {
        let session = it.session.clone();
        it.ask("session/close", &json!({ "sessionId": session }));
    });
}

/// A session with servers and a command under way is ended by `end`.
fn check(end: impl FnOnce(&mut Busy)) {
    let mut busy = Busy::start();
    let before = busy.children();
    let groups: BTreeSet<i32> = before.values().map(|it| it.group).collect();
    assert!(!groups.contains(&busy.pid().as_raw()), "each child has a group of its own");
    end(&mut busy);
    let start = Instant::now();
    loop {
        let all = processes();
        let is_old = |(pid, it): &(&i32, &Process)| before.get(pid).is_some_and(|old| old.started == it.started);
        let is_ours = |it: &(&i32, &Process)| is_old(it) || groups.contains(&it.1.group);
        let left: Vec<String> = all.iter().filter(is_ours).map(|(pid, it)| format!("{pid} {}", it.name)).collect();
        if left.is_empty() && descendants(busy.pid()).is_empty() {
            break;
        }
        assert!(start.elapsed() < WATCHDOG, "left: {left:?}");
        thread::yield_now();
    }
    busy.stdin = None;
    busy.stdout = None;
    assert_eq!(busy.child.wait().unwrap().code(), Some(0));
}

struct Busy {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Option<BufReader<ChildStdout>>,
    session: String,
    _sandbox: Sandbox,
}

impl Busy {
    fn start() -> Self {
        let mut sandbox = Sandbox::new();
        let call = json!({"functionCall": {"name": "run_shell_command", "args": {"command": COMMAND}}});
        let chunk = json!({"candidates": [{"content": {"parts": [call]}, "finishReason": "STOP"}]});
        let line = json!({"method": "generateContentStream", "response": [chunk]});
        let script = sandbox.write("script.jsonl", &format!("{line}\n"));
        sandbox.args.extend(["--approval-mode", "yolo", "--fake-responses"].map(Into::into));
        sandbox.args.push(script.into());
        let stderr = fs::File::create(sandbox.write("stderr", "")).unwrap();
        let mut command = sandbox.command();
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().map(BufReader::new));
        let log = sandbox.write("mcp.log", "");
        let servers = [server("good", "", &log), server("stubborn", "stubborn", &log)];
        let mut res = Self { child, stdin, stdout, session: String::new(), _sandbox: sandbox };
        res.ask("initialize", &json!({"protocolVersion": 1, "clientCapabilities": {}}));
        let cwd = res._sandbox.workspace();
        let answer = res.ask("session/new", &json!({"cwd": cwd, "mcpServers": servers}));
        res.session = answer["result"]["sessionId"].as_str().unwrap().to_owned();
        // The prompt waits for the servers, so they are there when the command runs.
        let prompt = json!({"sessionId": res.session, "prompt": [{"type": "text", "text": "go"}]});
        res.send("prompt", "session/prompt", &prompt);
        while !res.line().contains("started\\n") {}
        res
    }

    /// Two servers, a shell and its children. What the shell says it started is a shell for a moment still.
    fn children(&self) -> BTreeMap<i32, Process> {
        let start = Instant::now();
        loop {
            let res = descendants(self.pid());
            let names: BTreeSet<&str> = res.values().map(|it| it.name.as_str()).collect();
            if res.len() >= 5 && names.contains("sleep") {
                return res;
            }
            assert!(start.elapsed() < WATCHDOG, "{names:?}");
            thread::yield_now();
        }
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }

    fn send(&mut self, id: &str, method: &str, params: &Value) {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(self.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        let read = self.stdout.as_mut().unwrap().read_line(&mut line).unwrap();
        assert_ne!(read, 0, "castor is gone");
        line
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.send(method, method, params);
        loop {
            let message: Value = serde_json::from_str(&self.line()).unwrap();
            if message["id"] == method {
                return message;
            }
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

struct Process {
    name: String,
    parent: i32,
    group: i32,
    /// In ticks since the machine began: numbers of processes are used again.
    started: String,
}

/// All that run; the dead that nobody has reaped yet do not count.
fn processes() -> BTreeMap<i32, Process> {
    let pids = fs::read_dir("/proc").unwrap().filter_map(|it| it.ok()?.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| Some((pid, process(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?))).collect()
}

/// `pid (name) state parent group …`; the name may hold anything.
fn process(stat: &str) -> Option<Process> {
    let (head, tail) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = tail.split(' ').collect();
    let number = |at: usize| fields.get(at)?.parse::<i32>().ok();
    let name = head.split_once('(')?.1.to_owned();
    let process = Process { name, parent: number(1)?, group: number(2)?, started: (*fields.get(19)?).to_owned() };
    (!matches!(fields.first(), Some(&"Z" | &"X"))).then_some(process)
}

fn descendants(of: Pid) -> BTreeMap<i32, Process> {
    let mut rest = processes();
    let mut res = BTreeMap::new();
    let mut parents = vec![of.as_raw()];
    while let Some(parent) = parents.pop() {
        let children: Vec<i32> = rest.iter().filter(|(_, it)| it.parent == parent).map(|(pid, _)| *pid).collect();
        for pid in children {
            parents.push(pid);
            res.extend(rest.remove_entry(&pid));
        }
    }
    res
}
