//! Power: what castor has on the disk itself before its log says so, as strace sees it.

use std::{fs, path::PathBuf, process::Command};

use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox},
    conversation::model::response,
};

/// What the disk was told.
#[derive(Debug)]
enum DiskCall {
    /// A file or a folder; all of its disk without a path.
    Sync(Option<String>),
    Rename(String, String),
    /// Something came into the session's log.
    Logged,
}

/// Puts strace before castor: where it writes. `None`: there is none.
fn observe(sandbox: &mut Sandbox) -> Option<PathBuf> {
    Command::new("strace").arg("-V").output().ok().filter(|it| it.status.success())?;
    let log = sandbox.home().join("strace.log");
    let castor = std::mem::replace(&mut sandbox.program, "strace".into());
    let calls = "trace=write,fdatasync,fsync,syncfs,rename,renameat,renameat2";
    let args = ["-f", "-qq", "-y", "-s", "256", "-e", calls, "-o"].map(Into::into);
    sandbox.args.splice(..0, args.into_iter().chain([log.clone().into_os_string(), castor]));
    Some(log)
}

fn disk_calls(text: &str) -> Vec<DiskCall> {
    let quoted = |it: &str| it.split('"').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    let folders = |it: &str| -> Vec<String> {
        it.split('<').skip(1).filter_map(|it| Some(it.split_once('>')?.0.to_owned())).collect()
    };
    let call = |line: &str| {
        let (_, line) = line.split_once(' ')?;
        let (name, args) = line.trim_start().split_once('(')?;
        Some(match name {
            "fdatasync" | "fsync" => DiskCall::Sync(Some(folders(args).first()?.clone())),
            "syncfs" => DiskCall::Sync(None),
            "write" if folders(args).first()?.ends_with(".jsonl") => DiskCall::Logged,
            "rename" | "renameat" | "renameat2" => {
                let (names, folders) = (quoted(args), folders(args));
                let path = |n: usize| match folders.get(n) {
                    Some(it) => format!("{it}/{}", names[n]),
                    None => names[n].clone(),
                };
                DiskCall::Rename(path(0), path(1))
            }
            _ => return None,
        })
    };
    text.lines().filter_map(call).collect()
}

/// Its bytes were on the disk before it got its name, and its name is before the log says more.
fn check_rename(calls: &[DiskCall], at: usize) {
    let DiskCall::Rename(from, to) = &calls[at] else { panic!() };
    let is_sync =
        |it: &DiskCall, path: &str| matches!(it, DiskCall::Sync(of) if of.as_deref().is_none_or(|it| it == path));
    assert!(calls[..at].iter().any(|it| is_sync(it, from)), "{from} became {to} before its bytes were written");
    let folder = to.rsplit_once('/').unwrap().0;
    let later = calls[at..].iter().take_while(|it| !matches!(it, DiskCall::Logged));
    assert!(later.into_iter().any(|it| is_sync(it, folder)), "{to} is in the log before it is on the disk");
}

fn prompt(client: &mut Client, session: &Value, text: &str) {
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
    let (ended, _) = client.call("session/prompt", params).unwrap();
    assert_eq!(ended["result"]["stopReason"], "end_turn", "{ended}");
}

#[test]
fn what_the_log_tells_of_is_on_the_disk_before() {
    let mut sandbox = Sandbox::new();
    sandbox.write("ws/old.txt", "one\n");
    let answers = [
        r#"call write_file {"file_path":"new.txt","content":"new\n"}"#,
        r#"call replace {"file_path":"old.txt","old_string":"one","new_string":"two"}"#,
        r#"text "Done.""#,
    ];
    let lines: String = answers.iter().map(|it| response(it).unwrap().to_string() + "\n").collect();
    let script = sandbox.write("script.jsonl", &lines);
    sandbox.args = ["acp", "--approval-mode", "yolo", "--fake-responses"].map(Into::into).to_vec();
    sandbox.args.push(script.into());
    let Some(log) = observe(&mut sandbox) else {
        return eprintln!("skipped: there is no strace");
    };
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    prompt(&mut client, &json!(session), "go");
    let (new, old) = (sandbox.workspace().join("new.txt"), sandbox.workspace().join("old.txt"));
    assert_eq!(
        (fs::read_to_string(&new).unwrap(), fs::read_to_string(&old).unwrap()),
        ("new\n".into(), "two\n".into())
    );
    prompt(&mut client, &json!(session), "/undo");
    assert_eq!((new.exists(), fs::read_to_string(&old).unwrap()), (false, "one\n".into()));
    client.end().unwrap();
    let calls = disk_calls(&fs::read_to_string(log).unwrap());
    let home = sandbox.workspace().display().to_string();
    let counts = |it: &str| it.contains("/blobs/") || it.starts_with(&home);
    let renames: Vec<usize> =
        (0..calls.len()).filter(|at| matches!(&calls[*at], DiskCall::Rename(_, to) if counts(to))).collect();
    // Contents of the files before and after, the files themselves, and one of them again.
    assert!(renames.len() >= 5, "{calls:#?}");
    renames.into_iter().for_each(|at| check_rename(&calls, at));
}
