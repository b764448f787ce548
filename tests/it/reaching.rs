//! Lines that need the network behind what changes something: asked about before, so that nothing is done twice.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use serde_json::{Value, json};

use crate::{
    client::Sandbox,
    confined::Bed,
    incidents::prompt,
    repositories::{commit, git},
};

const LINE: &str = "git commit -q --allow-empty -m two && git push -q origin main";
const WHY: &str = "`git push` needs the network: asked before anything runs";
const DENIED: &str = "kept this command from the network";
const TWICE: &str = "What the line had done before that is done twice then.";

/// A session in a repository of one commit with two remotes: `origin`, on a machine that a proxy leads to, and `near`, a
/// folder. Beside it how often the proxy was asked.
fn bed(commands: &[&str], prepare: impl FnOnce(&mut Sandbox)) -> (Bed, PathBuf, Arc<AtomicUsize>) {
    let mut proxy = String::new();
    let reached = Arc::new(AtomicUsize::new(0));
    let count = reached.clone();
    let bed = Bed::prepared(commands, |sandbox| {
        sandbox.write("home/.gitconfig", "[user]\n\tname = a\n\temail = a@b\n");
        proxy = listen(count);
        prepare(sandbox);
    });
    let root = bed.path("").canonicalize().unwrap();
    git(&root, &["init", "-q", "-b", "main"]);
    git(&root, &["init", "-q", "--bare", "-b", "main", "near.git"]);
    git(&root, &["config", "http.proxy", &proxy]);
    git(&root, &["remote", "add", "origin", "http://far.example/x.git"]);
    git(&root, &["remote", "add", "near", "./near.git"]);
    git(&root, &["add", "out"]);
    commit(&root);
    (bed, root, reached)
}

/// Knows of no repository.
fn listen(count: Arc<AtomicUsize>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            lines.map_while(Result::ok).take_while(|it| !it.is_empty()).for_each(drop);
            count.fetch_add(1, Ordering::SeqCst);
            _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
    });
    url
}

fn commits(root: &Path) -> usize {
    let said = Command::new("git").args(["rev-list", "--count", "HEAD"]).current_dir(root).output().unwrap();
    String::from_utf8(said.stdout).unwrap().trim().parse().unwrap()
}

/// How many questions there were, and what was told.
fn run(bed: &mut Bed, answer: &str) -> (usize, String) {
    let (asked, told) = prompt(&mut bed.client, &bed.session, "go", answer);
    (asked.len(), told)
}

#[test]
fn a_commit_is_made_once_where_its_push_needs_the_network() {
    let (mut bed, root, reached) = bed(&[LINE, LINE], |_| ());
    let (n, told) = run(&mut bed, "reject_once");
    assert!(n == 1 && told.contains(WHY), "{told}");
    assert!(told.contains("nothing of it was run. Run the parts that need no network by themselves"), "{told}");
    assert_eq!((commits(&root), reached.load(Ordering::SeqCst)), (1, 0), "{told}");
    let (n, told) = run(&mut bed, "allow_once");
    assert!(n == 1 && told.contains(WHY) && told.contains("far.example"), "{told}");
    assert_eq!(commits(&root), 2, "{told}");
    assert!(reached.load(Ordering::SeqCst) > 0 && !told.contains(DENIED), "{told}");
}

/// What changed nothing by then is asked about when it is denied, and what needs no network is not asked about.
#[test]
fn what_needs_no_question_before_has_none() {
    let near = "git commit -q --allow-empty -m two && git push -q near main";
    let commands = ["git push -q origin main", "git add out && git push -q origin main", near];
    let (mut bed, root, reached) = bed(&commands, |_| ());
    for _ in 0..2 {
        let (n, told) = run(&mut bed, "reject_once");
        assert!(n == 1 && told.contains(DENIED) && !told.contains("needs the network"), "{told}");
        assert!(told.contains("Allow runs all of it again with that") && !told.contains(TWICE), "{told}");
    }
    let (n, told) = run(&mut bed, "reject_once");
    assert!(n == 0 && told.contains("\"exitCode\":0"), "{told}");
    assert_eq!((commits(&root), commits(&root.join("near.git")), reached.load(Ordering::SeqCst)), (2, 2, 0), "{told}");
}

/// Where a push without words leads, the settings say.
#[test]
fn the_branch_says_where_a_push_without_words_leads() {
    let line = "git commit -q --allow-empty -m two && git push -q";
    let (mut bed, root, _) = bed(&[line, line, line], |_| ());
    let (n, told) = run(&mut bed, "reject_once");
    assert!(n == 0 && told.contains("no upstream branch"), "{told}");
    for (remote, asks) in [("origin", 1), ("near", 0)] {
        git(&root, &["config", "branch.main.remote", remote]);
        git(&root, &["config", "branch.main.merge", "refs/heads/main"]);
        let (n, told) = run(&mut bed, "reject_once");
        assert_eq!((n, told.contains(WHY)), (asks, asks == 1), "{told}");
    }
}

/// It may try: nobody would be asked after it either.
#[test]
fn where_nobody_can_be_asked_it_runs() {
    let (mut bed, root, reached) = bed(&[LINE], |_| ());
    bed.client.end().unwrap();
    bed.client = crate::client::Client::start(&bed.sandbox);
    bed.client.initialize(&json!({"_meta": {"castor": {"interactive": false}}})).unwrap();
    bed.session = bed.client.new_session(&root).unwrap();
    let (n, told) = run(&mut bed, "reject_once");
    assert!(n == 0 && told.contains(DENIED), "{told}");
    assert_eq!((commits(&root), reached.load(Ordering::SeqCst)), (2, 0), "{told}");
}

#[test]
fn who_has_the_network_or_no_sandbox_is_not_asked() {
    for settings in [json!({"network": true}), json!({"level": "off"})] {
        let settings = json!({"security": {"sandbox": settings}}).to_string();
        let (mut bed, root, reached) = bed(&[LINE], |it| _ = it.write("home/.castor/settings.json", &settings));
        let (n, told) = run(&mut bed, "reject_once");
        assert_eq!((n, commits(&root)), (0, 2), "{told}");
        assert!(reached.load(Ordering::SeqCst) > 0, "{told}");
    }
}

/// The options of the questions, each answered with the option of an id.
fn options(bed: &mut Bed, id: &str) -> Vec<Value> {
    let mut res = Vec::new();
    let params = json!({"sessionId": bed.session, "prompt": [{"type": "text", "text": "go"}]});
    bed.client.request_as(json!(format!("p{id}")), "session/prompt", params);
    loop {
        let message = bed.client.next().unwrap().expect("more was to come");
        if message["method"] == "session/request_permission" {
            res.push(message["params"]["options"].clone());
            let outcome = json!({"outcome": {"outcome": "selected", "optionId": id}});
            bed.client.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": outcome}));
        } else if message.get("method").is_none() {
            return res;
        }
    }
}

#[test]
fn the_choices_are_those_after_a_denial() {
    for (id, kept) in [("allow_session", 0), ("allow_always_save", 1)] {
        let settings = json!({"security": {"enablePermanentToolApproval": true}}).to_string();
        let write = |it: &mut Sandbox| _ = it.write("home/.castor/settings.json", &settings);
        let (mut bed, root, reached) = bed(&[LINE, LINE, LINE], write);
        let asked = options(&mut bed, id);
        let names: Vec<_> = asked.iter().flat_map(|it| it.as_array().unwrap()).map(|it| it["name"].clone()).collect();
        let always = "Always allow `git commit`, `git push` the network in this folder, also in future sessions";
        assert_eq!(names, ["Allow", "Allow commands the network for this session", always, "Reject"]);
        let before = reached.load(Ordering::SeqCst);
        assert_eq!((options(&mut bed, id), commits(&root)), (vec![], 3));
        assert!(before > 0 && reached.load(Ordering::SeqCst) > before);
        bed.session = bed.client.new_session(&root).unwrap();
        assert_eq!(options(&mut bed, "reject_once").len(), 1 - kept, "{id}");
    }
}

/// What would be asked about anyway is asked about once.
#[test]
fn one_question_is_for_the_commands_and_the_network() {
    let to_default =
        |it: &mut Sandbox| it.args.iter_mut().filter(|it| *it == "yolo").for_each(|it| *it = "default".into());
    let (mut bed, root, reached) = bed(&[LINE, LINE], to_default);
    let (n, told) = run(&mut bed, "reject_once");
    assert!(n == 1 && told.contains(WHY) && told.contains("run the parts apart"), "{told}");
    assert_eq!(commits(&root), 1);
    let (n, told) = run(&mut bed, "allow_once");
    assert_eq!((n, commits(&root)), (1, 2), "{told}");
    assert!(reached.load(Ordering::SeqCst) > 0, "{told}");
}

/// What a script does nobody knows before: then the question says what a yes comes to.
#[test]
fn what_was_not_foreseen_is_said_to_be_done_twice() {
    let (mut bed, root, _) = bed(&["git commit -q --allow-empty -m two && bash push.sh"], |_| ());
    fs::write(root.join("push.sh"), "git push -q origin main").unwrap();
    let (n, told) = run(&mut bed, "reject_once");
    assert!(n == 1 && told.contains(DENIED) && told.contains(TWICE), "{told}");
}
