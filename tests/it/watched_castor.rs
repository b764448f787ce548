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
    thread,
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{client::CASTOR, schema, schemas::files};

/// Checks, when it is dropped, all that was said.
pub struct WatchedCastor {
    folder: TempDir,
    /// Keeps the program in its place.
    _program: File,
}

impl WatchedCastor {
    pub fn new() -> Self {
        // A file has two names on one disk alone.
        let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let name = folder.path().join("castor");
        fs::hard_link(CASTOR, &name).unwrap();
        let program = File::open(&name).unwrap();
        fs::remove_file(&name).unwrap();
        symlink(format!("/proc/{}/fd/{}", std::process::id(), program.as_raw_fd()), &name).unwrap();
        let res = Self { folder, _program: program };
        fs::write(res.agent(), script()).unwrap();
        fs::set_permissions(res.agent(), fs::Permissions::from_mode(0o755)).unwrap();
        res
    }

    /// castor, for `run` and `chat`.
    pub fn client(&self) -> PathBuf {
        // Elsewhere than on Linux nothing is read along.
        if cfg!(target_os = "linux") { self.folder.path().join("castor") } else { CASTOR.into() }
    }

    /// castor, for other clients that start `castor acp` themselves.
    pub fn agent(&self) -> PathBuf {
        self.folder.path().join("castor (deleted)")
    }

    /// How many messages each side has sent; what is wrong with one.
    fn check(&self) -> Result<[usize; 2], String> {
        let mut n_messages = [0, 0];
        for path in files(self.folder.path(), "in") {
            let [client, agent] = [read(&path)?, read(&path.with_extension("out"))?];
            let [asked_client, asked_agent] = [requests(&agent), requests(&client)];
            for (all, asked, check) in [(&client, &asked_client, as_client as Check), (&agent, &asked_agent, as_agent)]
            {
                for it in all {
                    let method = asked.get(&it["id"].to_string()).map(String::as_str);
                    check(it, method).map_err(|why| format!("{why} in {it}"))?;
                }
            }
            n_messages[0] += client.len();
            n_messages[1] += agent.len();
        }
        Ok(n_messages)
    }
}

type Check = fn(&Value, Option<&str>) -> Result<(), String>;

fn as_client(message: &Value, asked: Option<&str>) -> Result<(), String> {
    schema::check_as_client(message, asked)
}

fn as_agent(message: &Value, asked: Option<&str>) -> Result<(), String> {
    schema::check_message(1, message, asked)
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

/// What the agent says is written down before it goes on: an answer to it is never there without it.
fn script() -> String {
    format!(
        r#"#!/usr/bin/env bash
[ "$1" = acp ] || exec {CASTOR} "$@"
log=${{0%/*}}/$$
# A test may leave no room for a file.
{{ : >"$log.in" && : >"$log.out"; }} 2>/dev/null || exec {CASTOR} "$@"
exec {CASTOR} "$@" < <(exec tee /dev/fd/3 3>&1 >"$log.in") > >(exec tee /dev/fd/3 3>&1 >"$log.out")
"#
    )
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

#[cfg(target_os = "linux")]
#[test]
fn messages_of_castor_run_and_its_agent_are_checked() {
    use std::process::Command;
    let home = tempfile::tempdir().unwrap();
    let castor = WatchedCastor::new();
    let mut run = Command::new(castor.client());
    run.args(["run", "--no-stdin", "--model", "demo", "hi"]).current_dir(home.path()).env("HOME", home.path());
    assert!(run.output().unwrap().status.success());
    let [n_client, n_agent] = castor.check().unwrap();
    assert!(n_client > 2 && n_agent > 5, "{n_client} {n_agent}");
    let log = files(castor.folder.path(), "in").remove(0);
    for (name, wrong) in [
        ("in", r#"{"id":9,"method":"session/prompt","params":{"prompt":[]}}"#),
        ("in", r#"{"id":9,"method":"_castor/session/shout","params":{}}"#),
        (
            "in",
            r#"{"id":9,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"_meta":{"castor":{"events":1}}}}}"#,
        ),
        ("out", r#"{"method":"session/update","params":{}}"#),
        ("out", r#"{"id":1,"result":{"session":"s"}}"#),
        ("out", "Hello"),
    ] {
        let path = log.with_extension(name);
        let right = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{right}{wrong}\n")).unwrap();
        castor.check().expect_err(wrong);
        fs::write(&path, right).unwrap();
    }
}
