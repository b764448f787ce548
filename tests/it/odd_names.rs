//! Files whose names are no UTF-8, or look like another's: a turn goes on beside them, and each can be named.

use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt};

use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox},
    conversation::model::response,
};

/// A name of GBK, one with a stray byte, and one in a folder of such a name.
const ODD: [&[u8]; 3] = [b"\xb2\xe2\xca\xd4.txt", b"bad\xff.txt", b"dir\xe9/caf\xe9.txt"];

fn write(sandbox: &Sandbox, name: &[u8], text: &str) {
    let path = sandbox.workspace().join(OsStr::from_bytes(name));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn read(sandbox: &Sandbox, name: &[u8]) -> Option<String> {
    fs::read_to_string(sandbox.workspace().join(OsStr::from_bytes(name))).ok()
}

/// The calls, one turn each, and what the model was told of each at last.
struct Talk {
    client: Client,
    session: String,
}

impl Talk {
    fn start(sandbox: &mut Sandbox, calls: &[String]) -> Self {
        let answers = calls.iter().flat_map(|it| [it.as_str(), r#"text "Done.""#]);
        let script: String = answers.map(|it| response(it).unwrap().to_string() + "\n").collect();
        let script = sandbox.write("script.jsonl", &script);
        sandbox.args = ["acp", "--approval-mode", "yolo", "--fake-responses"].map(Into::into).to_vec();
        sandbox.args.push(script.into());
        let mut client = Client::start(sandbox);
        client.initialize(&json!({})).unwrap();
        let session = client.new_session(&sandbox.workspace()).unwrap();
        Self { client, session }
    }

    /// All that the client was told of the turn.
    fn turn(&mut self) -> String {
        let prompt = [json!({"type": "text", "text": "go"})];
        let params = json!({"sessionId": self.session, "prompt": prompt});
        let (answer, told) = self.client.call("session/prompt", params).unwrap();
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
        told.iter().map(|it| it["params"]["update"].to_string() + "\n").collect()
    }
}

fn call(name: &str, args: &Value) -> String {
    format!("call {name} {args}")
}

#[test]
fn names_that_are_no_text_end_no_turn() {
    let mut sandbox = Sandbox::new();
    ODD.iter().for_each(|it| write(&sandbox, it, "needle\n"));
    write(&sandbox, b"ok.txt", "needle\n");
    let odd = "bad\\xff.txt";
    let calls = [
        call("read_many_files", &json!({"include": ["*.txt", "**/*"]})),
        call("glob", &json!({"pattern": "**/*.txt"})),
        call("grep_search", &json!({"pattern": "needle"})),
        call("list_directory", &json!({"dir_path": "."})),
        call("read_file", &json!({"file_path": odd})),
        call("run_shell_command", &json!({"command": "for f in *.txt dir*/*; do echo shell >> \"$f\"; done"})),
        call("replace", &json!({"file_path": odd, "old_string": "needle", "new_string": "edited", "instruction": "x"})),
        call("write_file", &json!({"file_path": "dir\\xe9/new.txt", "content": "new\n"})),
    ];
    let mut talk = Talk::start(&mut sandbox, &calls);
    for it in &calls {
        let told = talk.turn();
        assert!(told.contains("\"completed\"") && !told.contains("\"failed\""), "{it}: {told}");
        assert!(!told.contains('\u{fffd}'), "{it}: {told}");
    }
    assert_eq!(read(&sandbox, ODD[1]).as_deref(), Some("edited\nshell\n"));
    assert_eq!(read(&sandbox, ODD[2]).as_deref(), Some("needle\nshell\n"));
    assert_eq!(read(&sandbox, b"dir\xe9/new.txt").as_deref(), Some("new\n"));
    // The log reads back to the same files, in another process.
    let place = json!({"sessionId": talk.session, "cwd": sandbox.workspace(), "mcpServers": []});
    talk.client.end().unwrap();
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    client.call("session/load", place).unwrap();
    let all = client.result("_castor/session/checkpoints", json!({"sessionId": talk.session})).unwrap();
    assert!(all.to_string().contains("bad\\\\xff.txt") && !all.to_string().contains('\u{fffd}'), "{all}");
    let rewind = json!({
        "sessionId": talk.session, "checkpointId": all["checkpoints"][0]["id"], "what": "files",
        "paths": [sandbox.workspace().join(odd), sandbox.workspace().join("dir\\xe9")],
    });
    let done = client.result("_castor/session/rewind", rewind).unwrap();
    assert_eq!(done["restored"].as_array().unwrap().len(), 3, "{done}");
    assert_eq!(read(&sandbox, ODD[1]).as_deref(), Some("needle\n"));
    assert_eq!(read(&sandbox, ODD[2]).as_deref(), Some("needle\n"));
    assert_eq!(read(&sandbox, b"dir\xe9/new.txt"), None);
    assert_eq!(read(&sandbox, ODD[0]).as_deref(), Some("needle\nshell\n"), "nobody named it");
    client.end().unwrap();
}

/// What an editor is told is the file that is there, and the write goes to it.
#[test]
fn a_decomposed_name_has_no_twin() {
    let (composed, decomposed) = ("r\u{e9}sum\u{e9}.txt", "re\u{301}sume\u{301}.txt");
    let mut sandbox = Sandbox::new();
    write(&sandbox, decomposed.as_bytes(), "one\n");
    let edit = json!({"file_path": composed, "old_string": "one", "new_string": "two", "instruction": "x"});
    let calls = [
        call("read_file", &json!({"file_path": composed})),
        call("replace", &edit),
        call("write_file", &json!({"file_path": composed, "content": "three\n"})),
    ];
    let mut talk = Talk::start(&mut sandbox, &calls);
    for _ in &calls {
        let told = talk.turn();
        let shown = sandbox.workspace().join(decomposed);
        assert!(told.contains("\"completed\"") && told.contains(shown.to_str().unwrap()), "{told}");
    }
    talk.client.end().unwrap();
    assert_eq!(read(&sandbox, decomposed.as_bytes()).as_deref(), Some("three\n"));
    assert_eq!(fs::read_dir(sandbox.workspace()).unwrap().count(), 1);
}

#[test]
fn a_parted_hard_link_is_said() {
    let mut sandbox = Sandbox::new();
    write(&sandbox, b"a.txt", "one\n");
    fs::hard_link(sandbox.workspace().join("a.txt"), sandbox.workspace().join("b.txt")).unwrap();
    let edit = json!({"file_path": "a.txt", "old_string": "one", "new_string": "two", "instruction": "x"});
    let calls = [call("replace", &edit), call("write_file", &json!({"file_path": "a.txt", "content": "three\n"}))];
    let mut talk = Talk::start(&mut sandbox, &calls);
    let log = |it: &Talk| {
        let path = sandbox.home().join(".castor/sessions").join(format!("{}.jsonl", it.session));
        fs::read_to_string(path).unwrap().matches("other names keep the old text").count()
    };
    talk.turn();
    let told = log(&talk);
    assert!(told > 0, "the model is told");
    talk.turn();
    assert_eq!(log(&talk), told, "there is one name by now");
    talk.client.end().unwrap();
    assert_eq!([read(&sandbox, b"a.txt"), read(&sandbox, b"b.txt")].map(Option::unwrap), ["three\n", "one\n"]);
}

/// The folder of a session may have such a name itself.
#[test]
fn castor_run_works_in_a_folder_with_an_odd_name() {
    let mut sandbox = Sandbox::new();
    let call = r#"call write_file {"file_path":"made.txt","content":"here\n"} + call run_shell_command {"command":"cat made.txt > copy.txt"}"#;
    let script: String = [call, "text \"Done.\""].iter().map(|it| response(it).unwrap().to_string() + "\n").collect();
    let script = sandbox.write("script.jsonl", &script);
    sandbox.args = ["run", "--no-stdin", "--approval-mode", "yolo", "go", "--fake-responses"].map(Into::into).to_vec();
    sandbox.args.push(script.into());
    let folder = sandbox.workspace().join(OsStr::from_bytes(b"od\xffd"));
    fs::create_dir(&folder).unwrap();
    let out = sandbox.command().current_dir(&folder).output().unwrap();
    assert_eq!((out.status.code(), &*out.stdout), (Some(0), &b"Done.\n"[..]), "{out:?}");
    assert_eq!(fs::read_to_string(folder.join("copy.txt")).unwrap(), "here\n");
}
