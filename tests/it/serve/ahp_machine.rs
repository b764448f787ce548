//! The AHP host and its machine: files of the roots, watches of them, terminals; and what other principals have of these.

use std::fs;

use ahp::SubscriptionEvent;
use serde_json::{Value, json};

use super::{
    Server,
    ahp_client::{AhpSocket, ROOT},
    script, verb,
};
use crate::client::Sandbox;

fn uri(server: &Server, path: &str) -> String {
    format!("file://{}", server.sandbox.workspace().join(path).display())
}

fn order(uri: &str) -> Value {
    json!({ "channel": ROOT, "uri": uri })
}

#[test]
fn files_of_the_roots_are_read_and_changed() {
    let server = Server::start(&script(&[]), &[]);
    server.sandbox.write("ws/one.txt", "one\n");
    server.sandbox.write("ws/.env", "KEY=canary");
    let mut one = AhpSocket::begin(&server, "one");
    one.create(&server, "s", json!({}));
    let read = |path: &str| one.call("resourceRead", order(&uri(&server, path)));
    assert_eq!(read("one.txt").unwrap()["data"], "one\n");
    let listed = one.call("resourceList", order(&uri(&server, ""))).unwrap();
    assert!(listed["entries"].as_array().unwrap().contains(&json!({"name": "one.txt", "type": "file"})), "{listed}");
    let facts = one.call("resourceResolve", order(&uri(&server, "one.txt"))).unwrap();
    assert_eq!((&facts["type"], &facts["size"]), (&json!("file"), &json!(4)));
    let mut write = order(&uri(&server, "new.txt"));
    (write["data"], write["encoding"], write["createOnly"]) = (json!("bmV3"), json!("base64"), json!(true));
    one.call("resourceWrite", write.clone()).unwrap();
    assert!(one.call("resourceWrite", write).unwrap_err().contains("there is such a file"));
    let mut stale = order(&uri(&server, "one.txt"));
    (stale["data"], stale["encoding"], stale["ifMatch"]) = (json!("x"), json!("utf-8"), json!("other"));
    assert!(one.call("resourceWrite", stale).unwrap_err().contains("changed meanwhile"));
    one.call("resourceMkdir", order(&uri(&server, "a/b"))).unwrap();
    let pair = |from: &str, to: &str| json!({ "channel": ROOT, "source": uri(&server, from), "destination": uri(&server, to) });
    one.call("resourceCopy", pair("new.txt", "a/b/copy.txt")).unwrap();
    one.call("resourceMove", pair("new.txt", "a/moved.txt")).unwrap();
    let workspace = server.sandbox.workspace();
    assert_eq!(fs::read_to_string(workspace.join("a/b/copy.txt")).unwrap(), "new");
    assert!(!workspace.join("new.txt").exists() && workspace.join("a/moved.txt").exists());
    let mut delete = order(&uri(&server, "a"));
    assert!(one.call("resourceDelete", delete.clone()).is_err(), "it is not empty");
    delete["recursive"] = json!(true);
    one.call("resourceDelete", delete).unwrap();
    assert!(!workspace.join("a").exists());
    one.call("resourceRequest", order(&uri(&server, "one.txt"))).unwrap();
    for refused in [uri(&server, ".env"), "file:///etc/shadow".to_owned(), "file:///etc/hostname".to_owned()] {
        assert!(one.call("resourceRead", order(&refused)).is_err(), "{refused}");
    }
    assert!(read("no-such-file").unwrap_err().contains("no such file"));
}

#[test]
fn a_watch_tells_what_changed_until_nobody_follows_it() {
    let server = Server::start(&script(&[]), &[]);
    server.sandbox.write("ws/old.txt", "1");
    let mut one = AhpSocket::begin(&server, "one");
    one.create(&server, "s", json!({}));
    let mut watch = order(&uri(&server, ""));
    (watch["recursive"], watch["excludes"]) = (json!(true), json!({ "items": ["*.log"] }));
    let channel = one.call("createResourceWatch", watch).unwrap()["channel"].as_str().unwrap().to_owned();
    one.subscribe(&channel);
    server.sandbox.write("ws/x.log", "1");
    server.sandbox.write("ws/sub/new.txt", "1");
    server.sandbox.write("ws/old.txt", "22");
    let seen = |it: &AhpSocket| {
        let changes = it.told.iter().filter_map(|it| match &it.event {
            SubscriptionEvent::Action(it) => serde_json::to_value(&it.action).ok(),
            _ => None,
        });
        changes.map(|it| it.to_string()).collect::<String>()
    };
    one.follow_watch(&channel, |it| seen(it).contains("sub/new.txt") && seen(it).contains("old.txt"));
    assert!(!seen(&one).contains("x.log"), "{}", seen(&one));
    fs::remove_file(server.sandbox.workspace().join("old.txt")).unwrap();
    one.follow_watch(&channel, |it| seen(it).contains("deleted"));
}

#[test]
fn a_terminal_runs_what_is_typed_and_tells_its_commands_apart() {
    let mut sandbox = Sandbox::new();
    sandbox.env.push(("SHELL".into(), "/bin/bash".into()));
    let server = Server::start_in(sandbox, &[]);
    let mut one = AhpSocket::begin(&server, "one");
    let terminal = "ahp-terminal:/t";
    let wanted = json!({
        "channel": terminal, "claim": { "kind": "client", "clientId": "one" }, "name": "Mine",
        "cwd": uri(&server, ""), "cols": 90, "rows": 30,
    });
    one.call("createTerminal", wanted).unwrap();
    one.until(|it| it.state(ROOT)["terminals"][0]["title"] == "Mine");
    one.subscribe(terminal);
    one.until(|it| it.state(terminal)["supportsCommandDetection"] == true);
    let typed = |keys: &str| json!({ "type": "terminal/input", "data": keys });
    one.dispatch(terminal, json!({ "type": "terminal/resized", "cols": 77, "rows": 20 }));
    one.dispatch(terminal, typed("echo here; tty; stty size\r"));
    let commands = |it: &AhpSocket| -> Vec<Value> {
        let content = it.state(terminal)["content"].clone();
        content
            .as_array()
            .unwrap()
            .iter()
            .filter(|it| it["type"] == "command" && it["isComplete"] == true)
            .cloned()
            .collect()
    };
    one.until(|it| commands(it).len() == 1);
    let first = commands(&one)[0].clone();
    assert_eq!((&first["commandLine"], &first["exitCode"]), (&json!("echo here; tty; stty size"), &json!(0)));
    let output = first["output"].as_str().unwrap();
    assert!(output.starts_with("here\r\n/dev/pts/") && output.contains("20 77"), "{output}");
    // Signals reach what runs.
    one.dispatch(terminal, typed("sh -c 'echo ready; exec sleep 1000'\r"));
    // By its own word, as a shell that is about to start something takes the signal itself.
    one.until(|it| it.state(terminal)["content"].to_string().contains(r#""ready\r\n"#));
    one.dispatch(terminal, typed("\u{3}"));
    one.until(|it| commands(it).len() == 2);
    assert_eq!(commands(&one)[1]["exitCode"], 130);
    one.dispatch(terminal, typed("exit 3\r"));
    one.until(|it| it.state(terminal)["lifecycle"]["status"] == "exited");
    assert_eq!(one.state(terminal)["lifecycle"]["exitCode"], 3);
    one.call("disposeTerminal", json!({ "channel": terminal })).unwrap();
    one.until(|it| it.state(ROOT)["terminals"] == json!([]));
}

#[test]
fn other_principals_read_their_roots_and_change_nothing_by_the_host() {
    let mut sandbox = Sandbox::new();
    sandbox.write("ws/work/mine", "mine");
    sandbox.write("ws/beside/secret", "canary");
    let token = verb(&mut sandbox, &["serve", "token", "add", "bot", "--principal=bots", "--root=work"]);
    let mut server = Server::start_in(sandbox, &[]);
    server.token = token;
    std::os::unix::fs::symlink(server.sandbox.workspace().join("beside"), server.sandbox.workspace().join("work/link"))
        .unwrap();
    let one = AhpSocket::begin(&server, "one");
    let ask = |method: &str, path: &str| one.call(method, order(&uri(&server, path)));
    assert_eq!(ask("resourceRead", "work/mine").unwrap()["data"], "mine");
    for path in ["beside/secret", "work/link/secret", "work/../beside/secret"] {
        assert!(ask("resourceRead", path).unwrap_err().contains("no folder of your sessions"), "{path}");
    }
    assert!(ask("resourceList", "").is_err());
    assert!(ask("resourceMkdir", "work/x").unwrap_err().contains("only the user"));
    let wanted = json!({ "channel": "ahp-terminal:/t", "claim": { "kind": "client", "clientId": "one" } });
    assert!(one.call("createTerminal", wanted).unwrap_err().contains("only the user"));
}
