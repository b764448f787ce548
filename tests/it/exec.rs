//! `castor exec` and `castor shell`: a person's programs in the sandbox, as they are outside in all else.
#![cfg(target_os = "linux")]

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::process::ExitStatusExt,
    process::{Command, Output, Stdio},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::client::Sandbox;

/// A workspace that is a repository, and nothing else.
fn bed() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("ws/.git/HEAD", "ref: refs/heads/main");
    sandbox.write("ws/sub/a", "");
    sandbox.write("home/.aws/credentials", "canary");
    sandbox
}

fn castor(sandbox: &mut Sandbox, args: &[&str]) -> Command {
    sandbox.args = args.iter().map(Into::into).collect();
    sandbox.command()
}

fn ran(sandbox: &mut Sandbox, args: &[&str]) -> Output {
    castor(sandbox, args).stdin(Stdio::null()).output().unwrap()
}

fn sh(sandbox: &mut Sandbox, line: &str) -> (Option<i32>, String, String) {
    let it = ran(sandbox, &["exec", "--", "sh", "-c", line]);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (it.status.code(), text(it.stdout), text(it.stderr))
}

#[test]
fn streams_and_exit_codes_are_the_programs_own() {
    let mut sandbox = bed();
    let mut child = castor(&mut sandbox, &["exec", "--", "sh", "-c", "cat; echo error >&2; exit 7"]);
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let bytes = [b"\0\xff\n".as_slice(), &[b'x'; 200_000]].concat();
    let (mut stdin, sent) = (child.stdin.take().unwrap(), bytes.clone());
    let writer = std::thread::spawn(move || stdin.write_all(&sent));
    let out = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert_eq!((out.status.code(), out.stderr.as_slice()), (Some(7), b"error\n".as_slice()));
    assert!(out.stdout == bytes, "{} bytes of {}", out.stdout.len(), bytes.len());
    sandbox.env.push(("MINE".into(), "kept".into()));
    sandbox.env.push(("MY_API_TOKEN".into(), "canary".into()));
    assert_eq!(sh(&mut sandbox, "echo $MINE:$MY_API_TOKEN"), (Some(0), "kept:\n".to_owned(), String::new()));
    let out = ran(&mut sandbox, &["exec", "no-such-program"]);
    assert_eq!(out.status.code(), Some(127), "{out:?}");
}

#[test]
fn it_writes_in_the_repository_alone() {
    let mut sandbox = bed();
    let line = "cd sub && echo x >../made; echo x >$HOME/escaped; cat $HOME/.aws/credentials; \
                python3 -c 'import socket; socket.create_connection((\"192.0.2.1\", 80), 5)' 2>&1 | tail -1";
    let (code, out, _) = sh(&mut sandbox, line);
    assert_eq!(code, Some(0));
    assert!(out.contains("unreachable") && !out.contains("canary"), "{out}");
    assert!(sandbox.workspace().join("made").exists() && !sandbox.home().join("escaped").exists());
    // From a folder below, what is written is the repository.
    let mut below = castor(&mut sandbox, &["exec", "sh", "-c", "echo y >../from-below"]);
    assert!(below.current_dir(sandbox.workspace().join("sub")).status().unwrap().success());
    assert!(sandbox.workspace().join("from-below").exists());
}

#[test]
fn new_configuration_is_put_aside_and_said() {
    let mut sandbox = bed();
    let (code, _, errors) = sh(&mut sandbox, "echo evil >.envrc");
    assert_eq!(code, Some(0));
    assert!(errors.contains(".envrc"), "{errors}");
    assert!(sandbox.workspace().join(".envrc.castor-aside").exists() && !sandbox.workspace().join(".envrc").exists());
    // Nothing of castor's stays behind.
    let left = fs::read_dir(sandbox.home().join(".castor/tmp")).map_or(0, Iterator::count);
    assert_eq!(left, 0);
}

#[test]
fn an_untrusted_folder_is_read_only_and_without_a_sandbox_nothing_runs() {
    let mut sandbox = bed();
    sandbox.env.clear();
    sandbox.write("ws/.castor/settings.json", "{\"hooks\": {\"SessionStart\": []}}");
    let (_, _, errors) = sh(&mut sandbox, "echo x >made");
    assert!(!sandbox.workspace().join("made").exists(), "{errors}");
    let mut sandbox = bed();
    sandbox.write("home/.castor/settings.json", r#"{"security": {"sandbox": {"level": "off"}}}"#);
    let (code, _, errors) = sh(&mut sandbox, "echo x >made");
    assert!(code == Some(1) && errors.contains("security.sandbox.level"), "{code:?} {errors}");
    assert!(!sandbox.workspace().join("made").exists());
}

/// The reason is said, and following the advice helps, whatever the program is and however it takes the refusal.
#[test]
fn an_untrusted_folder_is_named_with_the_way_to_trust_it() {
    for line in [
        "echo x >made",
        "cd sub && echo x >../made",
        "mkdir -p deep/er && echo x >made",
        "rm sub/a && echo x >made",
        "python3 -c 'open(\"made\", \"w\")'",
        "touch made 2>/dev/null | cat",
    ] {
        let mut sandbox = bed();
        sandbox.env.clear();
        sandbox.write("ws/.castor/settings.json", "{\"hooks\": {\"SessionStart\": []}}");
        let (_, _, errors) = sh(&mut sandbox, line);
        let last = errors.lines().last().unwrap_or_default();
        let workspace = sandbox.workspace().canonicalize().unwrap();
        let why =
            format!("castor: The sandbox blocked writing below {}, because the folder is not", workspace.display());
        assert!(last.starts_with(&why) && last.contains("`castor trust`"), "{line}: {errors}");
        assert!(!errors.contains("security.sandbox") && !workspace.join("made").exists(), "{line}: {errors}");
        let trusted = ran(&mut sandbox, &["trust", "--yes"]);
        assert!(trusted.status.success(), "{trusted:?}");
        let (code, _, errors) = sh(&mut sandbox, line);
        assert!(code == Some(0) && errors.is_empty() && workspace.join("made").exists(), "{line}: {errors}");
    }
    // Elsewhere trust changes nothing.
    let mut sandbox = bed();
    sandbox.env.clear();
    sandbox.write("ws/.castor/settings.json", "{\"hooks\": {\"SessionStart\": []}}");
    let (_, _, errors) = sh(&mut sandbox, "echo x >/opt/made");
    assert!(errors.contains("security.sandbox.writable = [\"/opt\"]") && !errors.contains("trust"), "{errors}");
}

#[test]
fn signals_reach_the_program_and_end_castor_as_they_ended_it() {
    let mut sandbox = bed();
    let out = ran(&mut sandbox, &["exec", "--", "sh", "-c", "kill -USR1 $$"]);
    assert_eq!(out.status.signal(), Some(Signal::SIGUSR1 as i32), "{out:?}");
    let line = "trap 'echo got; exit 9' TERM; echo ready; while :; do sleep 0.02; done";
    let mut child = castor(&mut sandbox, &["exec", "--", "sh", "-c", line]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM).unwrap();
    assert_eq!((lines.next().unwrap().unwrap().as_str(), child.wait().unwrap().code()), ("got", Some(9)));
}

/// A shell on a terminal, with castor in its foreground: what it says to each of the lines.
const TERMINAL: &str = r#"
import os, pty, re, select, sys, time
pid, fd = pty.fork()
if pid == 0:
    os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
seen = b""
def wait(pattern):
    global seen
    end = time.time() + 60
    while not re.search(pattern, seen):
        if time.time() > end or not select.select([fd], [], [], 60)[0]:
            sys.exit("waited for %r, saw %r" % (pattern, seen))
        seen += os.read(fd, 65536)
    seen = seen[re.search(pattern, seen).end():]
def type(text):
    os.write(fd, text)
castor = os.environ["CASTOR"].encode()
type(b"PS1='$ '; stty rows 33 cols 77; set +H\n")
wait(rb"\n.*\$ ")
type(castor + b" exec -- python3 -c 'import os; print(os.isatty(0), os.isatty(1), os.get_terminal_size().lines, len(open(\"/dev/tty\").name))'\n")
wait(rb"True True 33 8")
# Ctrl-Z stops it and gives the terminal back, fg goes on, Ctrl-C ends it.
type(castor + b" exec -- sh -c 'echo here; exec sleep 1000'\n")
wait(rb"\nhere")
type(b"\x1a")
wait(rb"Stopped")
type(b"echo now-$((40+2))\n")
wait(rb"now-42")
type(b"fg\n")
wait(rb"sleep 1000")
# The shell says the line first, and then gives the terminal away.
while os.tcgetpgrp(fd) == pid:
    time.sleep(0.01)
type(b"\x03")
wait(rb"\$ ")
type(b"echo code-$?\n")
wait(rb"code-130")
# A program that stops itself, as an editor does at Ctrl-Z.
type(castor + b" exec -- sh -c 'kill -STOP $$; echo gone-on'\n")
wait(rb"Stopped")
type(b"fg\n")
wait(rb"\ngone-on")
# A shell inside has jobs of its own.
type(b"SHELL=/bin/bash " + castor + b" shell\n")
time.sleep(1)
type(b"set -o | grep monitor; sleep 1000 &\n")
wait(rb"monitor *\t?on")
type(b"jobs; echo x >$HOME/escaped; exit 5\n")
wait(rb"Running")
type(b"echo code-$?\n")
wait(rb"code-5")
type(b"exit\n")
print("whole")
"#;

#[test]
fn a_terminal_works_as_outside() {
    let sandbox = bed();
    let mut python = Command::new("python3");
    python.args(["-c", TERMINAL]).current_dir(sandbox.workspace()).env_clear();
    python.env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", sandbox.home());
    python.env("CASTOR_HOME", sandbox.home().join(".castor")).env("CASTOR", env!("CARGO_BIN_EXE_castor"));
    let out = python.output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert!(!sandbox.home().join("escaped").exists());
}
