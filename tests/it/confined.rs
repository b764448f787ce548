//! Confined commands as the system sees them: who lives on, and what they reach where namespaces are forbidden.
#![cfg(target_os = "linux")]

use std::{fs, path::PathBuf, thread, time::Instant};

use serde_json::{Value, json};

use crate::{
    client::{Client, Namespaces, Sandbox, WATCHDOG, is_worked_in},
    model_server::{ModelServer, calls, says},
};

/// Forks, leaves session and parent, empties its environment, and waits to write where it may not.
const STRAY: &str = "import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        null = os.open('/dev/null', os.O_RDWR)
        for it in (0, 1, 2):
            os.dup2(null, it)
        os.execve(sys.executable, [sys.executable, '-c', '''
import os, time
while True:
    for it in ('.vscode/tasks.json', '.mcp.json', '.git/hooks/pre-commit', '.git/commondir'):
        try:
            os.makedirs(os.path.dirname(it) or '.', exist_ok=True)
            open(it, 'w').write('evil')
        except OSError:
            pass
    open('out/alive', 'w').write(str(time.time()))
    time.sleep(0.005)
'''], {})
    os._exit(0)
while not os.path.exists('out/alive'):
    time.sleep(0.005)
";

pub struct Bed {
    pub sandbox: Sandbox,
    pub client: Client,
    pub session: String,
}

/// In yolo commands have the network, where the system has mounts: for what is about those that have not.
pub fn work_in_auto(sandbox: &mut Sandbox) {
    if sandbox.namespaces != Namespaces::Nobody {
        sandbox.args.iter_mut().filter(|it| *it == "yolo").for_each(|it| *it = "auto".into());
    }
}

impl Bed {
    /// A session whose model calls for each of the commands, one in each prompt: in the background behind a `&`, and for
    /// an empty one it only says something.
    pub fn new(commands: &[&str]) -> Self {
        Self::prepared(commands, |_| ())
    }

    pub fn with(namespaces: Namespaces, commands: &[&str]) -> Self {
        Self::prepared(commands, |it| it.namespaces = namespaces)
    }

    pub fn prepared(commands: &[&str], prepare: impl FnOnce(&mut Sandbox)) -> Self {
        let mut sandbox = Sandbox::new();
        let part = |part: Value| {
            let chunk = json!({"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}]});
            format!("{}\n", json!({"method": "generateContentStream", "response": [chunk]}))
        };
        let call = |it: &&str| {
            let args = match it.strip_prefix("& ") {
                Some(it) => json!({"command": it, "is_background": true, "delay_ms": 0}),
                None => json!({"command": it}),
            };
            let call = part(json!({"functionCall": {"name": "run_shell_command", "args": args}}));
            if it.is_empty() { String::new() } else { call }
        };
        let lines: String = commands.iter().map(|it| call(it) + &part(json!({"text": "done"}))).collect();
        let script = sandbox.write("script.jsonl", &lines);
        sandbox.args.extend(["--approval-mode", "yolo", "--fake-responses"].map(Into::into));
        sandbox.args.push(script.into());
        sandbox.write("ws/.git/HEAD", "ref: refs/heads/main");
        sandbox.write("ws/.git/config", "[core]");
        sandbox.write("ws/stray.py", STRAY);
        sandbox.write("ws/out/there", "");
        prepare(&mut sandbox);
        let mut client = Client::start(&sandbox);
        client.initialize(&json!({})).unwrap();
        let session = client.new_session(&sandbox.workspace()).unwrap();
        Self { sandbox, client, session }
    }

    /// Runs the next command; what the client was told about it.
    pub fn run(&mut self) -> String {
        let prompt = json!({"sessionId": self.session, "prompt": [{"type": "text", "text": "go"}]});
        let (_, told) = self.client.call("session/prompt", prompt).unwrap();
        told.iter().map(ToString::to_string).collect()
    }

    /// Waits until a file is there.
    pub fn until(&self, name: &str) {
        self.wait_for(name, || self.path(name).exists());
    }

    pub fn wait_for(&self, name: &str, is_there: impl Fn() -> bool) {
        let start = Instant::now();
        while !is_there() {
            assert!(start.elapsed() < WATCHDOG, "no {name}");
            thread::yield_now();
        }
    }

    pub fn path(&self, it: &str) -> PathBuf {
        self.sandbox.workspace().join(it)
    }

    /// Nothing of the workspace's is at work, and nothing was made that somebody obeys.
    fn is_clean(&self) {
        self.is_over();
        let left = || {
            [".vscode", ".mcp.json", ".git/hooks", ".git/commondir"]
                .into_iter()
                .find(|it| self.path(it).symlink_metadata().is_ok())
        };
        let start = Instant::now();
        while let Some(it) = left() {
            assert!(start.elapsed() < WATCHDOG, "{it}");
            thread::yield_now();
        }
    }

    fn is_over(&self) {
        let start = Instant::now();
        while is_worked_in(&self.path("")) {
            assert!(start.elapsed() < WATCHDOG, "somebody is left");
            thread::yield_now();
        }
    }
}

fn check(namespaces: Namespaces, end: impl FnOnce(&mut Bed)) {
    let mut bed = Bed::with(namespaces, &["python3 stray.py"]);
    let told = bed.run();
    assert!(told.contains("backgroundPids"), "who is left is told: {told}");
    assert!(is_worked_in(&bed.path("")), "the test has nobody to look for");
    end(&mut bed);
    bed.is_clean();
}

/// A process that left its group is still in the sandbox.
#[test]
fn a_stray_does_not_outlive_its_session() {
    for namespaces in Namespaces::all() {
        check(namespaces, |it| {
            let session = json!({"sessionId": it.session});
            it.client.result("session/close", session).unwrap();
        });
    }
}

#[test]
fn a_stray_does_not_outlive_castor() {
    for namespaces in Namespaces::all() {
        check(namespaces, |it| _ = it.client.end().unwrap());
    }
}

/// Nobody can tidy up then, but nobody writes any more either; what stood in a repository the next castor removes.
#[test]
fn a_stray_does_not_outlive_a_killed_castor() {
    for namespaces in Namespaces::all() {
        let mut bed = Bed::with(namespaces, &["python3 stray.py"]);
        bed.run();
        bed.client.kill().unwrap();
        bed.is_over();
        assert!(!bed.path(".git/hooks/pre-commit").exists(), "{namespaces:?}");
    }
}

/// Nobody was left to look at what it made; the next castor does, and says so.
#[test]
fn next_castor_quarantines_config_left_after_a_kill() {
    let mut bed = Bed::new(&["& bash make.sh"]);
    bed.sandbox.write("ws/make.sh", "mkdir .vscode; echo evil > .vscode/tasks.json; echo > .ready; sleep 100");
    bed.sandbox.write("ws/.npmrc", "mine");
    bed.run();
    bed.until(".ready");
    bed.client.kill().unwrap();
    bed.is_over();
    assert!(bed.path(".vscode/tasks.json").exists(), "the test has nothing to look for");
    fs::remove_file(bed.path("make.sh")).unwrap();
    bed.client = Client::start(&bed.sandbox);
    bed.client.initialize(&json!({})).unwrap();
    bed.session = bed.client.new_session(&bed.sandbox.workspace()).unwrap();
    assert!(!bed.path(".vscode").exists() && bed.path(".vscode.castor-aside/tasks.json").exists());
    let told = bed.run();
    assert!(told.contains("a castor that was killed") && bed.path(".npmrc").exists(), "{told}");
}

/// What the commands of `script` reached, `$PID` being castor.
fn reached(namespaces: Namespaces, script: &str) -> Vec<String> {
    let mut bed = Bed::with(namespaces, &["bash reach.sh"]);
    let pid = bed.client.pid().to_string();
    fs::write(bed.path("reach.sh"), format!("PID={pid}\n{script}")).unwrap();
    let told = bed.run();
    let words = told.split("<<").skip(1).filter_map(|it| it.split_once(">>"));
    let res: std::collections::BTreeSet<String> = words.map(|it| it.0.to_owned()).collect();
    res.into_iter().collect()
}

/// No signals, sockets, network, debugging or variables lead out of the sandbox.
#[test]
fn castor_and_what_all_share_are_out_of_reach() {
    let tries = "
        for it in 'kill -9 $PID' 'kill -0 $PID' 'head -c 1 /proc/$PID/environ' 'prlimit -p $PID --nofile=10:10' \\
            'renice -n 19 -p $PID' 'taskset -p 1 $PID' 'ionice -c 3 -p $PID' 'chrt -b -p 0 $PID'
        do eval \"$it\" >/dev/null 2>&1 && echo \"<<$it>>\"; done
        echo '<<ran>>'";
    for namespaces in Namespaces::all() {
        assert_eq!(reached(namespaces, tries), ["ran"], "{namespaces:?}");
    }
    let memory =
        "perl -e 'print \"<<memory>>\" if defined shmget(0, 4096, 0600)'; echo '<<'$(readlink /proc/self/ns/ipc)'>>'";
    let ours = fs::read_link("/proc/self/ns/ipc").unwrap().display().to_string();
    for namespaces in Namespaces::all() {
        let seen = reached(namespaces, memory);
        match namespaces {
            Namespaces::Nobody => assert_eq!(seen, std::slice::from_ref(&ours)),
            _ => assert!(seen.len() == 2 && !seen.contains(&ours), "{namespaces:?} {seen:?}"),
        }
    }
}

/// Nothing by which castor and its helpers speak to each other.
#[test]
fn commands_have_no_descriptors_but_their_own() {
    for namespaces in Namespaces::all() {
        assert_eq!(
            reached(namespaces, "echo \"<<$(echo /proc/self/fd/*)>>\""),
            ["/proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 /proc/self/fd/3"]
        );
    }
}

/// Commands neither read nor set the user's terminals.
#[test]
fn the_users_terminals_are_out_of_reach_and_commands_have_their_own() {
    Namespaces::all().filter(|it| *it != Namespaces::Nobody).for_each(has_terminals_of_its_own);
}

fn has_terminals_of_its_own(namespaces: Namespaces) {
    let mut bed = Bed::with(namespaces, &["bash type.sh"]);
    let nix::pty::OpenptyResult { master, slave } = nix::pty::openpty(None, None).unwrap();
    let name = nix::unistd::ttyname(&slave).unwrap();
    nix::unistd::write(&master, b"canary\n").unwrap();
    let own = "python3 -c 'import os, pty; m, s = pty.openpty(); os.write(s, b\"own\"); open(os.ttyname(s), \"w\").write(\"!\")
print(\"<<\" + os.read(m, 9).decode() + \">>\")'";
    let look = format!("T={}; timeout 5 head -n 1 $T; stty -F $T -echo && echo '<<set>>'; {own}", name.display());
    fs::write(bed.path("type.sh"), look).unwrap();
    let told = bed.run();
    assert!(!told.contains("canary") && !told.contains("<<set>>") && told.contains("<<own"), "{told}");
}

/// Runs a command that waits until somebody outside has done `outside`, then `script`; what the client was told.
fn meddled(script: &str, outside: impl FnOnce(PathBuf) + Send + 'static) -> (Bed, String) {
    let mut bed = Bed::new(&["bash wait.sh"]);
    let wait = format!("touch out/ready; until [ -e out/go ]; do sleep 0.01; done; {script}");
    bed.sandbox.write("ws/wait.sh", &wait);
    let (root, ready, go) = (bed.path(""), bed.path("out/ready"), bed.path("out/go"));
    let outside = thread::spawn(move || {
        let start = Instant::now();
        while !ready.exists() {
            assert!(start.elapsed() < WATCHDOG, "no command");
            thread::yield_now();
        }
        outside(root);
        fs::write(go, "").unwrap();
    });
    let told = bed.run();
    outside.join().unwrap();
    (bed, told)
}

/// The user removed the placeholder, and a command made a file in its place.
#[test]
fn file_replacing_a_placeholder_is_quarantined() {
    let script = "mkdir .git/hooks && echo evil > .git/hooks/pre-commit";
    let (bed, told) = meddled(script, |root| fs::remove_dir(root.join(".git/hooks")).unwrap());
    assert!(told.contains("put aside") && !bed.path(".git/hooks").exists(), "{told}");
}

/// The same holds for a hook, in its own turn.
#[test]
fn config_of_a_cancelled_command_is_quarantined_and_reported() {
    // It does not heed the first signal either.
    let make = "trap '' TERM; echo evil > .npmrc; touch out/ready; while sleep 0.01; do echo evil > .npmrc; done";
    let commands = [&["bash make.sh"][..], &[""; 20]].concat();
    let mut bed = Bed::new(&commands);
    bed.sandbox.write("ws/make.sh", make);
    let prompt = json!({"sessionId": bed.session, "prompt": [{"type": "text", "text": "go"}]});
    bed.client.request_as(json!("cut"), "session/prompt", prompt);
    bed.until("out/ready");
    bed.client.notify("session/cancel", json!({"sessionId": bed.session}));
    bed.until(".npmrc.castor-aside");
    bed.is_over();
    assert!(!bed.path(".npmrc").exists());
    // It is known a moment later.
    let told = (1..commands.len()).any(|_| bed.run().contains("while a command that was cut short ran"));
    assert!(told, "nobody was told");
}

/// Damage by a background command is mended at its end.
#[test]
fn notice_reports_background_findings() {
    let turns = [&["& bash wait.sh"][..], &[""; 300]].concat();
    let mut bed = Bed::new(&turns);
    let late = "echo evil > .npmrc; rm .git/HEAD";
    bed.sandbox.write("ws/wait.sh", &format!("touch out/ready; until [ -e out/go ]; do sleep 0.01; done; {late}"));
    bed.run();
    bed.until("out/ready");
    fs::write(bed.path("out/go"), "").unwrap();
    bed.is_over();
    bed.until(".npmrc.castor-aside");
    assert_eq!(fs::read_to_string(bed.path(".git/HEAD")).unwrap(), "ref: refs/heads/main");
    // It is under way when nobody is there any more.
    let said = |bed: &mut Bed| bed.run().contains("while a command in the background ran");
    assert!((0..299).any(|_| said(&mut bed)), "nobody was told");
    assert!(!said(&mut bed), "it was told twice");
}

/// A `.git/HEAD` that is gone or broken is restored when the call ends.
#[test]
fn a_repository_keeps_its_head() {
    for script in
        ["rm .git/HEAD", "echo x > .git/HEAD", "rm .git/HEAD; ln -s nowhere .git/HEAD", "rm .git/HEAD; mkdir .git/HEAD"]
    {
        let mut bed = Bed::new(&["bash spoil.sh"]);
        bed.sandbox.write("ws/spoil.sh", script);
        let told = bed.run();
        assert!(told.contains("restored"), "{script}: {told}");
        let head = bed.path(".git/HEAD");
        assert!(!head.is_symlink() && fs::read_to_string(head).unwrap() == "ref: refs/heads/main", "{script}");
    }
    let mut bed = Bed::new(&["bash switch.sh"]);
    bed.sandbox.write("ws/switch.sh", "echo ref: refs/heads/side > .git/HEAD");
    assert!(!bed.run().contains("restored"));
    assert_eq!(fs::read_to_string(bed.path(".git/HEAD")).unwrap(), "ref: refs/heads/side\n");
}

/// A root that gets a `HEAD` and `objects` would be a bare repository, whose configuration git obeys.
#[test]
fn a_root_does_not_become_a_repository() {
    let mut bed = Bed::new(&["bash make.sh"]);
    bed.sandbox
        .write("ws/make.sh", "rm .git/HEAD; mkdir objects refs; echo ref: refs/heads/m > HEAD; echo evil > config");
    let told = bed.run();
    assert!(told.contains("put aside") && !bed.path("HEAD").exists(), "{told}");
    assert!(bed.path("HEAD.castor-aside").exists());
}

/// A castor is killed while a command runs: what stood in for configuration is there still, and a file of the user's in
/// one of the folders.
fn killed() -> Bed {
    let mut bed = Bed::new(&["touch out/ready; read < out/never"]);
    fs::create_dir(bed.path(".idea")).unwrap();
    nix::unistd::mkfifo(&bed.path("out/never"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let prompt = json!({"sessionId": bed.session, "prompt": [{"type": "text", "text": "go"}]});
    bed.client.request_as(json!("go"), "session/prompt", prompt);
    bed.until("out/ready");
    bed.client.kill().unwrap();
    bed.is_over();
    for it in LEFT {
        assert!(bed.path(it).exists(), "the test has nothing to find: {it}");
    }
    fs::write(bed.path(".git/info/exclude"), "mine").unwrap();
    bed
}

const LEFT: &[&str] = &[".git/info", ".git/hooks", ".git/commondir", ".git/config.worktree"];

fn is_tidy(bed: &Bed) {
    for it in LEFT.iter().filter(|it| **it != ".git/info") {
        assert!(bed.path(it).symlink_metadata().is_err(), "{it} is left");
    }
    assert_eq!(fs::read_to_string(bed.path(".git/info/exclude")).unwrap(), "mine");
    assert!(bed.path(".idea").is_dir() && bed.path(".git/config").is_file(), "the user's own is gone");
}

fn records(bed: &Bed) -> Vec<PathBuf> {
    let folder = fs::read_dir(bed.sandbox.home().join(".castor/stand-ins"));
    folder.into_iter().flatten().map(|it| it.unwrap().path()).collect()
}

/// The sweep runs before a folder is looked at.
#[test]
fn next_session_removes_placeholders_of_a_killed_castor() {
    let mut bed = killed();
    let left = records(&bed);
    // What stands, and what was there before.
    assert_eq!(left.len(), 2, "{left:?}");
    bed.client = Client::start(&bed.sandbox);
    bed.client.initialize(&json!({})).unwrap();
    bed.client.new_session(&bed.sandbox.workspace()).unwrap();
    is_tidy(&bed);
    assert_eq!(records(&bed), Vec::<PathBuf>::new());
}

#[test]
fn doctor_removes_placeholders_of_a_killed_castor() {
    let mut bed = killed();
    bed.sandbox.args = vec!["doctor".into()];
    let said = || String::from_utf8(bed.sandbox.command().output().unwrap().stdout).unwrap();
    let (first, second) = (said(), said());
    let line = first.lines().find(|it| it.contains("removed")).unwrap_or_default();
    for it in [".git/hooks", ".git/commondir"] {
        assert!(line.contains(&bed.path(it).display().to_string()), "{first}");
    }
    assert!(!line.contains(".git/info") && !line.contains(".idea") && !second.contains("removed"), "{first}{second}");
    is_tidy(&bed);
}

/// Nothing leads there, as where the home is another one: whoever works there next takes them for what they are.
#[test]
fn next_command_removes_placeholders_of_a_killed_castor() {
    let mut bed = killed();
    records(&bed).iter().for_each(|it| fs::remove_file(it).unwrap());
    let script = bed.sandbox.home().join("../script.jsonl");
    let text = fs::read_to_string(&script).unwrap().replace("read < out/never", "true");
    fs::write(&script, text).unwrap();
    bed.client = Client::start(&bed.sandbox);
    bed.client.initialize(&json!({})).unwrap();
    bed.session = bed.client.new_session(&bed.sandbox.workspace()).unwrap();
    assert!(bed.path(".git/hooks").exists(), "the session has nothing to know it by");
    bed.run();
    is_tidy(&bed);
}

/// The exit code of `a; b` is that of b: what a was kept from is told to the model all the same.
#[test]
fn hidden_denial_is_reported_to_the_model() {
    let denied = "touch /opt/castor-never";
    let (hidden, piped) = (format!("{denied}; true"), format!("{denied} 2>&1 | cat"));
    let commands = [denied.to_owned(), hidden, piped, "echo fine".into(), "sh harmless.sh".into()];
    let mut left = commands.clone().into_iter();
    let server = ModelServer::answering(move |_| {
        let call = left.next().map(|it| calls("run_shell_command", &json!({"command": it})));
        Some(call.unwrap_or_else(|| says("Done.")))
    });
    let mut sandbox = Sandbox::new();
    // A program that ends well, although one below it did not.
    fs::write(sandbox.workspace().join("harmless.sh"), format!("{denied}; exit 0")).unwrap();
    sandbox.args.extend(["--approval-mode", "yolo"].map(Into::into));
    sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), server.url.clone()));
    sandbox.env.push(("GEMINI_API_KEY".into(), "k".into()));
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({"_meta": {"castor": {"interactive": false}}})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]});
    let (answer, _) = client.call("session/prompt", params).unwrap();
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");

    let last: Value = serde_json::from_str(&server.asked().last().unwrap().body).unwrap();
    let parts = last["contents"].as_array().unwrap().iter().flat_map(|it| it["parts"].as_array().unwrap());
    let results = parts.filter_map(|it| it.get("functionResponse")).map(Value::to_string);
    let told: Vec<(bool, bool)> = results
        .map(|it| {
            let kept = it.contains("The sandbox blocked writing below /opt");
            (kept, it.contains("ended with exit code 0, but"))
        })
        .collect();
    assert_eq!(told, [(true, false), (true, false), (true, false), (false, false), (true, false)], "{last}");
}
