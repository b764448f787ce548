//! Clients on stdio that reach `castor serve` by the bridge.

use std::{
    net::{Shutdown, TcpListener, TcpStream},
    process::Stdio,
    sync::{Arc, Mutex},
    thread,
};

use serde_json::json;

use super::{Server, answer, call, is_question, prompt, say, script};
use crate::client::{Client, Sandbox};

/// `castor acp --connect` for an editor, and `castor run --connect` for a script.
#[test]
fn clients_on_stdio_come_in_by_the_bridge() {
    let server = Server::start(&script(&[vec![say("Hello.")], vec![say("And again.")]]), &[]);
    let url = format!("--connect=http://localhost:{}", server.port);
    let mut sandbox = Sandbox::new();
    sandbox.args = vec!["acp".into(), (&url).into()];
    sandbox.env.push(("CASTOR_TOKEN".into(), server.token.clone()));
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&server.sandbox.workspace()).unwrap();
    let (answer, before) = client.call("session/prompt", prompt(&session, "go")).unwrap();
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    assert!(json!(before).to_string().contains("Hello."));
    client.end().unwrap();

    sandbox.args = ["run", &url, "--no-stdin", "--cwd"].map(Into::into).to_vec();
    sandbox.args.extend([server.sandbox.workspace().into(), "hello".into()]);
    let output = sandbox.command().output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "And again.", "{errors}");

    sandbox.env.retain(|it| it.0 != "CASTOR_TOKEN");
    sandbox.args = vec!["acp".into(), (&url).into()];
    let output = sandbox.command().stdin(Stdio::null()).output().unwrap();
    assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains("CASTOR_TOKEN"));
}

/// What lies between client and server, and can cut the connection.
struct Between {
    port: u16,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Between {
    fn new(server: &Server) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let (port, target) = (listener.local_addr().unwrap().port(), server.port);
        let open = Arc::new(Mutex::new(Vec::new()));
        let all = open.clone();
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(("127.0.0.1", target)) else { return };
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    thread::spawn(move || std::io::copy(&mut from, &mut to));
                }
                all.lock().unwrap().extend([client, server]);
            }
        });
        Self { port, open }
    }

    fn cut(&self) {
        for it in self.open.lock().unwrap().drain(..) {
            let _ = it.shutdown(Shutdown::Both);
        }
    }
}

#[test]
fn the_bridge_survives_a_cut_in_the_middle_of_a_turn() {
    let touch = call("run_shell_command", json!({"command": "echo x > made"}));
    let server = Server::start(&script(&[vec![say("I will. "), touch], vec![say("Done.")]]), &[]);
    let between = Between::new(&server);
    let mut sandbox = Sandbox::new();
    sandbox.args = vec!["acp".into(), format!("--connect=ws://127.0.0.1:{}", between.port).into()];
    sandbox.env.push(("CASTOR_TOKEN".into(), server.token.clone()));
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&server.sandbox.workspace()).unwrap();
    client.request_as(json!("p"), "session/prompt", prompt(&session, "go"));
    let mut seen = Vec::new();
    loop {
        let it = client.next().unwrap().unwrap();
        if is_question(&it) {
            between.cut();
            client.send(&answer(&it, "allow_once"));
        }
        let is_end = it["id"] == "p";
        seen.push(it);
        if is_end {
            break;
        }
    }
    let text = serde_json::to_string(&seen).unwrap();
    for once in ["I will. ", "Done.", "\"stopReason\":\"end_turn\""] {
        assert_eq!(text.matches(once).count(), 1, "{once}: {text}");
    }
    client.end().unwrap();
}
