//! What five tasks send to a model, in all and cached: read, edit, debug, refactor, explore. The answers are recorded, so
//! every agent does the same. Prints a table, and fails where castor sends more than it may. Other agents beside it:
//! `cargo bench --bench tokens -- agent.json ...`, each a file with `name`, `command`, `mode`, `env` and `home_files`, in
//! which `{PORT}`, `{HOME}`, `{PEERS}` and `{CASTOR}` are replaced.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::indexing_slicing, clippy::unwrap_used)]

#[path = "tokens/dialect.rs"]
mod dialect;
#[path = "tokens/tasks.rs"]
mod tasks;

use std::{
    env, fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    path::Path,
    process::{Command, Stdio},
    sync::{Arc, Mutex},
    thread,
};

use castor_engine::context::tokens;
use serde_json::{Value, json};
use tempfile::TempDir;

use self::{
    dialect::Asked,
    tasks::{Action, TASKS},
};

/// The tools before sub-agents, memory, skills, servers' resources and pages of the web came.
const EARLIER_TOOLS: &[&str] = &[
    "ask_user",
    "enter_plan_mode",
    "exit_plan_mode",
    "glob",
    "grep_search",
    "list_directory",
    "read_file",
    "replace",
    "run_shell_command",
    "update_topic",
    "write_file",
    "write_todos",
];
/// What castor sent for the five tasks in 30 requests, in tokens, before the others came; and the day and the tree of the
/// folder, which each request has had since.
const MOST_WITH_EARLIER_TOOLS: u64 = 165_300 + 30 * 55;
/// In tokens, at four bytes each.
const MOST_OF_A_DECLARATION: usize = 150;
/// Tokens that the tree of a folder with more items than it shows may take.
const MOST_OF_THE_TREE: u64 = 600;
const MOST_OF_THE_FIRST_REQUEST: u64 = 4_000;

fn main() {
    let castor = json!({
        "name": "castor",
        "command": ["{CASTOR}", "acp", "--model", "gemini-2.5-flash"],
        "mode": "yolo",
        "env": {"GEMINI_API_KEY": "x", "GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:{PORT}", "CASTOR_TRUST_WORKSPACE": "true"},
    });
    let mut earlier = castor.clone();
    earlier["name"] = json!("castor, earlier tools");
    earlier["home_files"] = json!({".castor/settings.json": {"tools": {"core": EARLIER_TOOLS}}});
    let others = env::args().skip(1).filter(|it| !it.starts_with("--"));
    let others = others.map(|file| serde_json::from_str(&fs::read_to_string(&file).expect(&file)).expect(&file));
    println!("| agent | task | requests | tokens sent | per request | cached |\n|---|---|---|---|---|---|");
    let all: Vec<u64> = [earlier, castor.clone()].into_iter().chain(others).map(|it| all_tasks(&it)).collect();
    check(&castor, all[0]);
    let fewest = all[2..].iter().min().is_none_or(|it| all[1] < *it);
    assert!(fewest, "another agent sends less");
}

/// The limits, which hold for castor alone.
fn check(castor: &Value, with_earlier_tools: u64) {
    let first = |n_files| {
        let world = World::new(castor, |_| ());
        (0..n_files).for_each(|n| fs::write(world.workspace().join(format!("file-{n}.txt")), "").unwrap());
        world.run("Say hello.", &[]).swap_remove(0)
    };
    let (empty, full) = (first(0), first(300));
    let size = tokens::of_text(&empty.text());
    let tree = tokens::of_text(&full.text()) - size;
    let declared = empty.declarations();
    // The declaration of `invoke_agent` lists the agents.
    let known = |name: &str| EARLIER_TOOLS.contains(&name) || name == "invoke_agent";
    let new = declared.iter().filter(|(name, _)| !known(name));
    println!("\nfirst request: {size} tokens, of these tools: {:?}", new.clone().collect::<Vec<_>>());
    println!("tree of a folder of 300 files: {tree} tokens");
    for (name, size) in new {
        assert!(*size <= MOST_OF_A_DECLARATION, "{name} takes {size} tokens");
    }
    assert!(size <= MOST_OF_THE_FIRST_REQUEST && tree <= MOST_OF_THE_TREE);
    assert!(with_earlier_tools <= MOST_WITH_EARLIER_TOOLS, "{with_earlier_tools} tokens with the earlier tools");
}

/// Tokens that an agent sends for all of them.
fn all_tasks(agent: &Value) -> u64 {
    let name = agent["name"].as_str().unwrap();
    let (mut n_requests, mut sent, mut cached) = (0, 0, 0);
    for (task, actions) in TASKS {
        let world = World::new(agent, tasks::write_project);
        let asked = world.run(&format!("Please {task}."), actions);
        let sizes: Vec<u64> = asked.iter().map(|it| tokens::of_text(&it.text())).collect();
        let of_before: Vec<u64> = (0..asked.len()).map(|at| shared(&asked[..at], &asked[at])).collect();
        row(name, task, asked.len(), sizes.iter().sum(), of_before.iter().sum());
        n_requests += asked.len();
        sent += sizes.iter().sum::<u64>();
        cached += of_before.iter().sum::<u64>();
    }
    row(name, "all", n_requests, sent, cached);
    sent
}

fn row(name: &str, task: &str, n: usize, sent: u64, cached: u64) {
    println!("| {name} | {task} | {n} | {sent} | {} | {} % |", sent / n.max(1) as u64, 100 * cached / sent.max(1));
}

/// Tokens at the start of a request that an earlier one had as well: what a provider's cache can have kept.
fn shared(before: &[Asked], asked: &Asked) -> u64 {
    let text = asked.text();
    let same = |it: &Asked| it.text().bytes().zip(text.bytes()).take_while(|(a, b)| a == b).count();
    let most = before.iter().map(same).max().unwrap_or(0);
    tokens::of_text(&String::from_utf8_lossy(&text.as_bytes()[..most]))
}

/// A home, a workspace and an agent that may work in them.
struct World<'a> {
    agent: &'a Value,
    dir: TempDir,
}

impl<'a> World<'a> {
    fn new(agent: &'a Value, fill: impl FnOnce(&Path)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        ["home", "ws"].iter().for_each(|it| fs::create_dir(dir.path().join(it)).unwrap());
        fill(&dir.path().join("ws"));
        Self { agent, dir }
    }

    fn workspace(&self) -> std::path::PathBuf {
        self.dir.path().canonicalize().unwrap().join("ws")
    }

    /// One prompt, answered with these calls and a last word; what the model was asked meanwhile.
    fn run(&self, prompt: &str, actions: &'static [Action]) -> Vec<Asked> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (seen, workspace) = (asked.clone(), self.workspace());
        thread::spawn(move || {
            let mut next = actions.iter();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let Some(it) = read(&stream) else { continue };
                let action = if it.has_tools() { next.next() } else { None };
                let answer = it.answer(action, &workspace);
                if it.is_for_model() {
                    seen.lock().unwrap().push(it);
                }
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        let agent = self.placed(port);
        let words: Vec<&str> = agent["command"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
        let home = self.dir.path().join("home");
        for (path, content) in agent["home_files"].as_object().into_iter().flatten() {
            let path = home.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content.as_str().map_or_else(|| content.to_string(), str::to_owned)).unwrap();
        }
        let mut run = Command::new(env!("CARGO_BIN_EXE_castor"));
        run.args(["run", "--agent", &words.join(" "), prompt]);
        run.args(agent["mode"].as_str().into_iter().flat_map(|it| ["--approval-mode", it]));
        run.env_clear().env("HOME", &home).env("PATH", env::var_os("PATH").unwrap_or_default());
        run.envs(agent["env"].as_object().into_iter().flatten().map(|(name, it)| (name, it.as_str().unwrap())));
        let ended = run.current_dir(self.workspace()).stdin(Stdio::null()).output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        std::mem::take(&mut asked.lock().unwrap())
    }

    /// The agent's file, for this home and this port.
    fn placed(&self, port: u16) -> Value {
        let home = self.dir.path().join("home");
        let peers = env::var("BENCH_PEERS").unwrap_or_default();
        let text = self.agent.to_string().replace("{PORT}", &port.to_string()).replace("{PEERS}", &peers);
        let text = text.replace("{HOME}", &home.to_string_lossy()).replace("{CASTOR}", env!("CARGO_BIN_EXE_castor"));
        serde_json::from_str(&text).unwrap()
    }
}

/// One request; `None`: the connection was closed without any.
fn read(from: impl Read) -> Option<Asked> {
    let mut reader = BufReader::new(from);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length =
        head.lines().find_map(|it| it.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    let mut body = Vec::new();
    reader.take(length.unwrap_or(0)).read_to_end(&mut body).ok()?;
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    Some(Asked { path, body: serde_json::from_slice(&body).unwrap_or_default() })
}
