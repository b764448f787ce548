//! What the sandbox saw: questions come from what was refused, and not from words.
#![cfg(target_os = "linux")]

use std::{fs, net::TcpListener, os::unix::net::UnixListener};

use serde_json::{Value, json};

use crate::{
    client::{Client, Namespaces, Sandbox},
    model_server::{ModelServer, calls, says},
};

/// What came of a few command lines.
struct Played {
    /// The questions, in order.
    asked: Vec<String>,
    /// What the model was told of each line.
    told: Vec<String>,
    /// What `/network` says at the end.
    network: String,
}

/// Writes where it may not, and goes on.
const CACHES: &str =
    "import os, sys\ntry:\n    open(os.environ['HOME'] + '/there/cache', 'w')\nexcept OSError:\n    pass\n";

/// Asks for a host, says nothing, and fails.
const FETCHES: &str =
    "import socket, sys\ntry:\n    socket.create_connection(('192.0.2.1', 443), 5)\nexcept OSError:\n    sys.exit(6)\n";

/// Wants something in passing, goes on without it, and ends well.
const ASIDE: &str = r#"
import os, socket, sys, urllib.request
home = os.environ["HOME"]
def connect(): socket.create_connection(("192.0.2.1", 443), 5)
def lookup(): socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.1", 53))
def write(): open(home + "/there/cache", "w")
def unix(): socket.socket(socket.AF_UNIX).connect(home + "/hidden/own.sock")
def door(): urllib.request.urlopen("https://telemetry.test/", timeout=5)
try:
    globals()[sys.argv[1]]()
    print("done")
except OSError:
    print("went on")
"#;

/// Speaks to a program of the user's.
const SPEAKS: &str = "python3 aside.py unix | grep -q done || exit 3";

/// Runs each line in one session without approvals, and answers each question so.
fn play(namespaces: Namespaces, lines: &[&str], answer: &str) -> Played {
    let mut sandbox = Sandbox::new();
    sandbox.namespaces = namespaces;
    // Without mounts there is no mode `auto`.
    let mode = if namespaces == Namespaces::Nobody { "yolo" } else { "auto" };
    sandbox.args.extend(["--approval-mode", mode].map(Into::into));
    play_in(sandbox, lines, answer)
}

/// The same in a workspace of which the test decides what holds there.
fn play_in(mut sandbox: Sandbox, lines: &[&str], answer: &str) -> Played {
    let mut left: Vec<String> = lines.iter().rev().map(|it| (*it).to_owned()).collect();
    let server = ModelServer::answering(move |_| {
        let call = left.pop().map(|it| calls("run_shell_command", &json!({"command": it})));
        Some(call.unwrap_or_else(|| says("Done.")))
    });
    // The one is seen and not written, the other is not even seen.
    sandbox.write("home/there/kept", "");
    sandbox.write("home/hidden/kept", "");
    sandbox.write("home/.castor/settings.json", r#"{"security":{"sandbox":{"readable":["~/there"]}}}"#);
    sandbox.write("ws/cache.py", CACHES);
    sandbox.write("ws/fetch.py", FETCHES);
    sandbox.write("ws/aside.py", ASIDE);
    let _listens = UnixListener::bind(sandbox.home().join("hidden/own.sock")).unwrap();
    sandbox.write("ws/log", "cp: cannot create '/opt/x': Read-only file system\ncould not resolve host: x\n");
    sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), server.url.clone()));
    sandbox.env.push(("GEMINI_API_KEY".into(), "k".into()));
    let home = sandbox.home().display().to_string();
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]});
    client.request_as(json!("p"), "session/prompt", params);
    let mut asked = Vec::new();
    while let Some(it) = client.next().unwrap() {
        if it["id"] == "p" {
            assert_eq!(it["result"]["stopReason"], "end_turn", "{it}");
            break;
        }
        if it["method"] == "session/request_permission" {
            let text = it["params"]["toolCall"]["content"][0]["content"]["text"].as_str().unwrap_or_default();
            asked.push(text.replace(&home, "~"));
            let outcome = json!({"outcome": "selected", "optionId": answer});
            client.send(&json!({"jsonrpc": "2.0", "id": it["id"], "result": {"outcome": outcome}}));
        }
    }
    let last: Value = serde_json::from_str(&server.asked().last().unwrap().body).unwrap();
    let parts = last["contents"].as_array().unwrap().iter().flat_map(|it| it["parts"].as_array().unwrap());
    let told = parts.filter_map(|it| it.get("functionResponse")).map(|it| it.to_string().replace(&home, "~"));
    let told = told.collect();
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "/network"}]});
    let (_, said) = client.call("session/prompt", params).unwrap();
    let network = said.iter().map(|it| it.to_string().replace(&home, "~")).collect();
    Played { asked, told, network }
}

fn each(check: impl FnMut(Namespaces)) {
    Namespaces::all().filter(|it| *it != Namespaces::Nobody).for_each(check);
}

/// Pipes, silence and codes that are swallowed hide nothing; words alone are nothing.
#[test]
fn questions_come_from_what_was_refused() {
    let write = "The sandbox blocked writing below ~/there. Run the whole command again with write access there?";
    let hidden = &write.replace("there. ", "hidden. ");
    let network = "The sandbox blocked network access. Run the whole command again with network?";
    for (line, want) in [
        ("touch ~/there/x 2>/dev/null | cat", Some(write)),
        ("touch ~/there/x 2>/dev/null; true", Some(write)),
        ("(cd ~/there && mkdir y || exit 3) 2>/dev/null | cat", Some(write)),
        ("(cd ~/there && rm kept || exit 3) 2>/dev/null | cat", Some(write)),
        ("mv log ~/there/log 2>/dev/null | cat", Some(write)),
        ("ln -s log ~/there/link 2>/dev/null | cat", Some(write)),
        ("bash -c 'echo x > ~/there/new' 2>/dev/null | cat", Some(write)),
        ("touch ~/hidden/x 2>/dev/null | cat", Some(hidden.as_str())),
        ("mkdir -p ~/hidden/x/y 2>/dev/null; true", Some(hidden.as_str())),
        ("touch ~/nowhere/x 2>/dev/null | cat", None),
        ("python3 fetch.py | tail -1", Some(network)),
        ("x=$(python3 fetch.py); echo got $x", Some(network)),
        // It met the refusal and went on; a shell above it did not.
        ("bash -c 'python3 cache.py; exit 4' | cat", Some(write)),
        ("python3 cache.py", None),
        ("python3 cache.py | cat", None),
        // Nothing was refused.
        ("cat log; exit 1", None),
        ("ls ~/nowhere", None),
        ("echo x > made && cat made && rm made; false", None),
        ("mkdir -p ~/there && false", None),
        ("python3 -c 'open(\"nowhere/x\", \"w\")'", None),
    ] {
        let Played { asked, told, .. } = play(Namespaces::Castor, &[line], "reject_once");
        let asked: Vec<&str> = asked.iter().map(|it| it.rsplit("```\n").next().unwrap()).collect();
        assert_eq!(asked, want.into_iter().collect::<Vec<_>>(), "{line}: {told:?}");
    }
}

#[test]
fn a_refusal_that_did_no_harm_is_one_line_for_the_model() {
    each(|namespaces| {
        let Played { asked, told, .. } =
            play(namespaces, &["python3 cache.py", "python3 fetch.py || true"], "reject_once");
        assert!(told[0].contains("The sandbox refused in passing: writing ~/there/cache."), "{told:?}");
        assert!(asked.len() == 1 && asked[0].contains("network"), "{asked:?}");
    });
}

#[test]
fn the_same_is_asked_once_unless_it_was_allowed_since() {
    let lines = ["touch ~/there/x | cat", "touch ~/there/y", "python3 fetch.py", "python3 fetch.py | cat"];
    let Played { asked, told, .. } = play(Namespaces::Castor, &lines, "reject_once");
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert!(told[1].contains("is not asked again") && told[3].contains("is not asked again"), "{told:?}");
    let lines = ["touch ~/there/x", "touch ~/there/y"];
    let Played { asked, told, .. } = play(Namespaces::Castor, &lines, "allow_once");
    assert_eq!(asked.len(), 2, "{asked:?} {told:?}");
}

/// Telemetry, update checks and caches: whatever a command that ended well wanted aside, nobody is asked, the model hears of it
/// once, and `/network` has it.
#[test]
fn commands_that_end_well_ask_nothing_whatever_was_refused_aside() {
    for (kind, said) in [
        ("connect", "connecting to 192.0.2.1:443"),
        ("lookup", "looking up a host"),
        ("write", "writing ~/there/cache"),
        ("unix", "connecting to ~/hidden/own.sock, a socket of another program"),
        ("door", "telemetry.test:443"),
    ] {
        let lines = [format!("python3 aside.py {kind}"), format!("python3 aside.py {kind} | cat; echo end")];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let Played { asked, told, network } = play(Namespaces::Castor, &lines, "reject_once");
        assert!(asked.is_empty(), "{kind}: {asked:?}");
        for it in &told {
            assert!(it.contains("went on"), "{kind}: {it}");
            assert_eq!(it.matches(said).count(), 1, "{kind}: {it}");
        }
        assert!(network.contains(&format!("- {said}, by 2 commands")), "{kind}: {network}");
    }
}

/// A socket is asked about by its path, and a yes leads to it alone.
#[test]
fn a_socket_of_another_program_is_asked_about() {
    let Played { asked, .. } = play(Namespaces::Castor, &[SPEAKS], "reject_once");
    let want = "The sandbox hid ~/hidden/own.sock, by which another program is spoken to. Run the whole command again with that \
                socket, this once? It can have done then what that program may do.";
    assert!(asked.len() == 1 && asked[0].ends_with(want), "{asked:?}");
    let Played { asked, told, .. } = play(Namespaces::Castor, &[SPEAKS, "ls ~/hidden"], "allow_once");
    assert!(
        asked.len() == 1 && told[0].contains("Output: (empty)") && !told[0].contains("Exit Code"),
        "{asked:?} {told:?}"
    );
    assert!(!told[1].contains("kept"), "{told:?}");
}

/// A person's own program is recorded, too: what it failed for is said with the way out.
#[test]
fn what_a_program_of_castor_exec_failed_for_is_said() {
    let exec = |line: &str| {
        let mut sandbox = Sandbox::new();
        sandbox.namespaces = Namespaces::Castor;
        sandbox.write("home/there/kept", "");
        sandbox.write("home/.castor/settings.json", r#"{"security":{"sandbox":{"readable":["~/there"]}}}"#);
        sandbox.write("ws/fetch.py", FETCHES);
        sandbox.args = ["exec", "--", "bash", "-c", line].map(Into::into).to_vec();
        let out = sandbox.command().output().unwrap();
        let home = sandbox.home().display().to_string();
        (out.status.code(), String::from_utf8_lossy(&out.stderr).replace(&home, "~"))
    };
    let (code, said) = exec("touch ~/there/x 2>/dev/null | cat");
    let way =
        "castor: The sandbox blocked writing below ~/there. security.sandbox.writable = [\"~/there\"] in your settings";
    assert!(code == Some(0) && said.contains(way), "{said}");
    let (code, said) = exec("python3 fetch.py");
    assert!(code == Some(6) && said.contains("blocked network access. castor exec --network allows that"), "{said}");
    for line in
        ["touch ~/there/x 2>/dev/null || true; true", "python3 fetch.py || true", "echo x > made; rm made; exit 3"]
    {
        let (_, said) = exec(line);
        let is_said = said.contains("castor:");
        // A program that failed counts, whatever its shell made of it.
        assert_eq!(is_said, !line.starts_with("echo"), "{line}: {said}");
    }
}

/// In a folder that nobody trusts the question says so, and a yes opens the folder for this once.
#[test]
fn a_session_in_an_untrusted_folder_says_why_it_is_read_only() {
    for (answer, is_made) in [("allow_once", true), ("reject_once", false)] {
        let mut sandbox = Sandbox::new();
        sandbox.namespaces = Namespaces::Castor;
        sandbox.env.clear();
        sandbox.write("ws/.castor/settings.json", "{\"hooks\": {\"SessionStart\": []}}");
        let workspace = sandbox.workspace().canonicalize().unwrap();
        let Played { asked, told, .. } = play_in(sandbox, &["echo made >made; cat made"], answer);
        let why =
            format!("The sandbox blocked writing below {}, because the folder is not trusted", workspace.display());
        if is_made {
            let asked = asked.last().unwrap();
            assert!(asked.contains(&why) && asked.contains("`castor trust`"), "{asked:?}");
        }
        assert!(told[0].contains("\\nmade\\n") == is_made, "{told:?}");
    }
}

/// The output stands above the question about it.
#[test]
fn output_comes_before_the_question() {
    let Played { asked, .. } = play(Namespaces::Castor, &["seq 1 30; touch ~/there/x"], "reject_once");
    let end = "29\n30\ntouch: cannot touch '~/there/x': Read-only file system\n```\nThe sandbox blocked";
    assert!(asked[0].contains(end) && !asked[0].contains("\n3\n"), "{}", asked[0]);
}

/// A server of the user's is out of reach, and the model is told so; a port where nobody listens is no matter.
#[test]
fn a_server_of_this_machine_is_named() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let connect = |port: u16| {
        format!("python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}))' 2>/dev/null; true")
    };
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let own = "python3 -c 'import socket; s = socket.create_server((\"127.0.0.1\", 0)); socket.create_connection(s.getsockname())'";
    let lines = [connect(port), connect(closed), own.to_owned()];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let Played { asked, told, .. } = play(Namespaces::Castor, &lines, "reject_once");
    let said = format!("connecting to 127.0.0.1:{port}, a server outside the sandbox");
    assert!(told[0].contains(&said), "{told:?}");
    assert!(!told[1].contains("refused in passing") && !told[2].contains("refused in passing"), "{told:?}");
    assert!(asked.iter().all(|it| !it.contains("network access")), "{asked:?}");
}

/// Debuggers work on what is in the sandbox; its first process holds castor's descriptors and is closed to all.
#[test]
fn processes_of_a_sandbox_trace_their_own_and_never_its_first() {
    let script = "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\nsaid = []\n\
        pid = os.fork()\nif pid == 0:\n    os._exit(0 if libc.ptrace(0, 0, 0, 0) == 0 else 9)\n\
        said.append('traced' if os.WEXITSTATUS(os.waitpid(pid, 0)[1]) == 0 else 'not traced')\n\
        said.append('attached' if libc.ptrace(16, 1, 0, 0) == 0 else 'kept off')\n\
        for it in ('mem', 'environ', 'fd/0', 'cwd'):\n    try:\n        os.readlink('/proc/1/' + it) if it in ('fd/0', 'cwd') else open('/proc/1/' + it, 'rb').read(1)\n        said.append(it)\n    except OSError:\n        pass\n\
        print(' '.join(said))\n";
    each(|namespaces| {
        let line = format!("python3 - <<'E'\n{script}E");
        let Played { told, .. } = play(namespaces, &[&line], "reject_once");
        assert!(told[0].contains("traced kept off\\n") && !told[0].contains("not traced"), "{namespaces:?} {told:?}");
    });
}

/// Without namespaces nothing is recorded: castor guesses as it did, and doctor says so.
#[test]
fn where_nothing_is_recorded_castor_guesses_and_says_so() {
    let Played { told, .. } = play(Namespaces::Nobody, &["touch ~/there/x; true"], "allow_once");
    assert!(told[0].contains("ended with exit code 0, but"), "{told:?}");
    for (namespaces, want) in [(Namespaces::Castor, false), (Namespaces::Nobody, true)] {
        let mut sandbox = Sandbox::new();
        sandbox.namespaces = namespaces;
        sandbox.args = ["doctor", "--all"].map(Into::into).to_vec();
        let out = sandbox.command().output().unwrap();
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        assert_eq!(text.contains("castor guesses from the output"), want, "{text}");
    }
}

/// Castor reads nothing that commands could write into.
#[test]
fn a_record_is_closed_to_the_command() {
    let line = "ls -l /proc/self/fd | grep -c castor; exit 0";
    let Played { told, .. } = play(Namespaces::Castor, &[line], "reject_once");
    assert!(told[0].contains("untrusted_context>\\n0\\n"), "{told:?}");
    assert!(fs::exists("/proc/self/fd").unwrap());
}
