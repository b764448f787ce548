//! castor as a client: a test keeps all messages between it and its own agent, and checks them.
//!
//! Linux names a program whose file is gone by the path of that file and ` (deleted)`. castor starts its own program as its
//! agent, by that name; a script has the name here. It runs castor, and keeps what goes in and out.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    os::{
        fd::AsRawFd,
        unix::fs::{PermissionsExt, symlink},
    },
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{client::CASTOR, schema, schemas::files};

/// Checks, when it is dropped, all that was said.
pub struct WatchedCastor {
    folder: TempDir,
    /// Keeps the program in its place.
    _program: Option<File>,
}

impl WatchedCastor {
    pub fn new() -> Self {
        // A file has two names on one disk alone.
        let mut res = Self::agent_in(Path::new(env!("CARGO_TARGET_TMPDIR")));
        let name = res.client();
        // Elsewhere than on Linux nothing is read along.
        if !cfg!(target_os = "linux") {
            symlink(CASTOR, name).unwrap();
            return res;
        }
        fs::hard_link(CASTOR, &name).unwrap();
        let program = File::open(&name).unwrap();
        fs::remove_file(&name).unwrap();
        symlink(format!("/proc/{}/fd/{}", std::process::id(), program.as_raw_fd()), &name).unwrap();
        res._program = Some(program);
        res
    }

    /// An agent alone. It keeps its messages in a folder of `parent`, which its sandbox lets it write.
    pub fn agent_in(parent: &Path) -> Self {
        let res = Self { folder: TempDir::new_in(parent).unwrap(), _program: None };
        let program = res.folder.path().join("program");
        // A confined agent sees nothing of the machine's own `/tmp` but its workspace.
        if CASTOR.starts_with("/tmp/") { fs::hard_link(CASTOR, program) } else { symlink(CASTOR, program) }.unwrap();
        fs::write(res.agent(), include_str!("watched_castor.sh")).unwrap();
        fs::set_permissions(res.agent(), fs::Permissions::from_mode(0o755)).unwrap();
        for it in [res.folder.path().join("castor (deleted)"), res.agent_of_others()] {
            fs::hard_link(res.agent(), it).unwrap();
        }
        res
    }

    /// castor, for verbs that start their agent.
    pub fn client(&self) -> PathBuf {
        self.folder.path().join("castor")
    }

    /// castor, for other clients of ours that start `castor acp` themselves.
    pub fn agent(&self) -> PathBuf {
        self.folder.path().join("agent")
    }

    /// The same for clients whose messages are not ours, and may be wrong.
    fn agent_of_others(&self) -> PathBuf {
        self.folder.path().join(OF_OTHERS)
    }

    /// At least so many messages of client and agent fit, and wrong ones of either would be found.
    pub fn assert_checks(&self, least: [usize; 2]) {
        let [n_client, n_agent] = self.check().unwrap();
        assert!(n_client >= least[0] && n_agent >= least[1], "{n_client} {n_agent}");
        let log = files(self.folder.path(), "in").into_iter().min_by_key(|it| is_of_others(it)).unwrap();
        for (name, wrong) in WRONG.iter().filter(|it| it.0 == "out" || !is_of_others(&log)) {
            let path = log.with_extension(name);
            let right = fs::read_to_string(&path).unwrap();
            fs::write(&path, format!("{right}{wrong}\n")).unwrap();
            self.check().expect_err(wrong);
            fs::write(&path, right).unwrap();
        }
    }

    /// How many messages each side has sent; what is wrong with one.
    fn check(&self) -> Result<[usize; 2], String> {
        let mut n_messages = [0, 0];
        for path in files(self.folder.path(), "in") {
            let [client, agent] = [read(&path)?, read(&path.with_extension("out"))?];
            let [asked_client, asked_agent] = [requests(&agent), requests(&client)];
            let version = agent.iter().find_map(|it| it["result"]["protocolVersion"].as_u64()).unwrap_or(1);
            for it in client.iter().filter(|_| !is_of_others(&path)) {
                schema::check_as_client(it, request_of(&asked_client, it)).map_err(|why| format!("{why} in {it}"))?;
            }
            for it in &agent {
                let asked = request_of(&asked_agent, it);
                schema::check_message(version, it, asked).map_err(|why| format!("{why} in {it}"))?;
                if it.get("method").is_none() && asked.is_none() && !it["id"].is_null() {
                    return Err(format!("an answer to nothing: {it}"));
                }
            }
            n_messages[0] += client.len();
            n_messages[1] += agent.len();
        }
        Ok(n_messages)
    }
}

impl Drop for WatchedCastor {
    fn drop(&mut self) {
        if !thread::panicking()
            && let Err(why) = self.check()
        {
            panic!("{why}");
        }
    }
}

/// Lines that fit nothing, of the client (`in`) and of the agent (`out`).
const WRONG: &[(&str, &str)] = &[
    ("in", r#"{"id":9,"method":"session/prompt","params":{"prompt":[]}}"#),
    ("in", r#"{"id":9,"method":"_castor/session/shout","params":{}}"#),
    (
        "in",
        r#"{"id":9,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"_meta":{"castor":{"events":1}}}}}"#,
    ),
    ("out", r#"{"method":"session/update","params":{}}"#),
    ("out", r#"{"id":1,"result":{"session":"s"}}"#),
    ("out", "Hello"),
];

const OF_OTHERS: &str = "agent-of-others";

fn is_of_others(log: &Path) -> bool {
    log.file_name().is_some_and(|it| it.to_string_lossy().starts_with(OF_OTHERS))
}

/// The messages of one side. One that a kill cut off is none.
fn read(path: &Path) -> Result<Vec<Value>, String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |it| &text[..it]);
    whole.lines().map(|it| serde_json::from_str(it).map_err(|why| format!("{why} in {it}"))).collect()
}

/// Methods of requests, by their ids.
fn requests(messages: &[Value]) -> BTreeMap<String, String> {
    let method = |it: &Value| Some((it["id"].to_string(), it["method"].as_str()?.to_owned()));
    messages.iter().filter(|it| it.get("id").is_some()).filter_map(method).collect()
}

fn request_of<'a>(requests: &'a BTreeMap<String, String>, answer: &Value) -> Option<&'a str> {
    requests.get(&answer["id"].to_string()).map(String::as_str)
}

/// castor's verbs that have an agent of their own.
#[cfg(target_os = "linux")]
#[test]
fn messages_of_verbs_and_their_agents_are_checked() {
    for (verb, least) in [
        (&["run", "--no-stdin", "--model", "demo", "hi"][..], [3, 6]),
        (&["doctor"], [4, 5]),
        (&["mcp", "list"], [7, 8]),
    ] {
        let home = tempfile::tempdir().unwrap();
        let castor = WatchedCastor::new();
        let mut command = Command::new(castor.client());
        command.args(verb).current_dir(home.path()).env("HOME", home.path());
        let output = command.output().unwrap();
        castor.assert_checks(least);
        assert!(output.status.success() || verb == ["doctor"], "{output:?}");
    }
}

/// A line of a shell with castor in its place: `WATCHED='.ci/examples "$CASTOR"'`, as `.ci/run` has it. The clients of
/// `$CASTOR_OF_OTHERS` are not ours.
#[test]
fn messages_of_a_script_are_checked() {
    let Ok(script) = std::env::var("WATCHED") else { return };
    let castor = WatchedCastor::new();
    let mut shell = Command::new("bash");
    shell.args(["-c", &script]).env("CASTOR", castor.agent()).env("CASTOR_OF_OTHERS", castor.agent_of_others());
    let ended = shell.status().unwrap();
    assert!(ended.success(), "{script}: {ended}");
    if files(castor.folder.path(), "in").is_empty() {
        return println!("skipped: nothing here ran castor");
    }
    castor.assert_checks([2, 2]);
    println!("ok: {:?} messages of clients and agents", castor.check().unwrap());
}
