//! `castor run` from outside: what only the real process shows.

use std::{
    fs::{self, File},
    io::{Read, Write},
    os::fd::OwnedFd,
    process::{Command, Stdio},
    sync::mpsc,
};

use serde_json::json;

use crate::{
    model_server::{ModelServer, calls, says},
    watched_castor::WatchedCastor,
};

/// What a flag names must be there: that is configuration, and has its own exit code.
#[test]
fn a_script_that_is_not_there_is_bad_configuration() {
    let home = tempfile::tempdir().unwrap();
    let watched = WatchedCastor::new();
    let mut castor = Command::new(watched.client());
    castor.args(["run", "hi", "--fake-responses", "no-such-file"]).current_dir(home.path());
    let output = castor.env("HOME", home.path()).stdin(Stdio::null()).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(52), "{error}");
    assert!(error.contains("--fake-responses"), "{error}");
}

/// Nobody can be asked, so it is said what is not used, and how it would be.
#[test]
fn untrusted_folder_is_reported() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("ws");
    fs::create_dir_all(folder.join(".castor")).unwrap();
    fs::write(folder.join(".castor/settings.json"), r#"{"model": {"name": "x"}}"#).unwrap();
    let watched = WatchedCastor::new();
    let mut castor = Command::new(watched.client());
    castor.args(["run", "--model", "demo", "hi"]).current_dir(&folder).env("HOME", home.path());
    let output = castor.env_remove("CASTOR_TRUST_WORKSPACE").stdin(Stdio::null()).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{error}");
    assert!(error.contains("This folder is not trusted") && error.contains("castor trust"), "{error}");
}

/// A terminal of its own, and castor on it: what is typed while the model works enters with its next request.
#[test]
fn typed_lines_enter_the_next_model_request() {
    let home = tempfile::tempdir().unwrap();
    let (asked, was_asked) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel::<()>();
    let mut n = 0;
    let server = ModelServer::answering(move |request| {
        n += 1;
        _ = asked.send(());
        // The model thinks until the user has typed, and works until it is told: words are still on their way then.
        (n > 1 || goes_on.recv().is_ok()).then(|| match request.body.contains("use tabs") {
            true => says("With tabs."),
            false => calls("glob", &json!({ "pattern": format!("{n}*") })),
        })
    });
    let Pty { mut master, slave } = pty();
    // Its own session, with the terminal as the controlling one.
    let castor = WatchedCastor::new();
    let mut run = Command::new("setsid");
    run.arg("--ctty").arg(castor.client()).args(["run", "go"]).current_dir(home.path());
    run.env("HOME", home.path()).env("GOOGLE_GEMINI_BASE_URL", &server.url).env("GEMINI_API_KEY", "k");
    run.stdin(slave.try_clone().unwrap()).stderr(slave).stdout(Stdio::piped());
    let mut run = run.spawn().unwrap();
    was_asked.recv().unwrap();
    master.write_all(b"use tabs\n").unwrap();
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("the agent reads this with its next step") {
        let mut piece = [0; 1024];
        let n = master.read(&mut piece).unwrap();
        seen.extend_from_slice(&piece[..n]);
    }
    go_on.send(()).unwrap();
    let mut answer = String::new();
    run.stdout.take().unwrap().read_to_string(&mut answer).unwrap();
    assert_eq!((run.wait().unwrap().code(), answer.trim()), (Some(0), "With tabs."));
    let body = server.asked().last().unwrap().body.replace("\\u003c", "<");
    assert!(body.contains("<user_input>\\nuse tabs\\n</user_input>"), "{body}");
}

struct Pty {
    master: File,
    slave: OwnedFd,
}

fn pty() -> Pty {
    let it = nix::pty::openpty(None, None).unwrap();
    Pty { master: it.master.into(), slave: it.slave }
}
