//! The home of a life: its settings, agents and policies.

use std::{fs, path::Path};

use castor_base::hook::HookEvent;
use serde_json::{Map, Value, json};

/// In some lives somebody else is heard on calls.
const CHECKER: &str = "[[safety_checker]]\ntoolName = '*'\nmodes = ['default', 'yolo']\n\
                       checker = { type = 'external', name = '/check', timeout = 1000 }\n";

/// Agents that start agents: with castor's own they make trees of any shape.
const AGENTS: &[(&str, &str)] = &[
    ("planner", "sub_agents: [worker, generalist]\nmax_turns: 6"),
    ("worker", "sub_agents: [generalist]\nmodel: gemini-3.8-flash\nmax_turns: 3\ntimeout_mins: 0.5"),
    ("row", "kind: sequential\nagents: [worker, generalist]"),
    ("both", "kind: parallel\nagents: [worker, planner]\non_failure: continue"),
    ("rounds", "kind: loop\nagents: [worker]\nmax_iterations: 3"),
    ("reporter", "output: {name: report, schema: {type: object, required: [n]}}\nmax_turns: 3"),
];
/// Some turns may take so many tokens.
const BUDGET: u64 = 7;

/// Of a turn and of all below it; `None`: any.
pub fn budget(seed: u64) -> Option<u64> {
    seed.is_multiple_of(5).then_some(BUDGET)
}

pub fn furnish(home: &Path, seed: u64) {
    if seed.is_multiple_of(3) {
        fs::create_dir(home.join("policies")).unwrap();
        fs::write(home.join("policies/check.toml"), CHECKER).unwrap();
    }
    fs::create_dir(home.join("agents")).unwrap();
    for (name, keys) in AGENTS {
        // What runs others has no instructions of its own.
        let instructions = if keys.starts_with("kind") { String::new() } else { format!("You are a {name}.") };
        let text = format!("---\nname: {name}\ndescription: It is a {name}.\n{keys}\n---\n{instructions}");
        fs::write(home.join(format!("agents/{name}.md")), text).unwrap();
    }
    fs::write(home.join("settings.json"), settings(seed).to_string()).unwrap();
}

/// Who takes over is the default's matter in some lives; in others nobody is asked about it. Every other life has hooks at
/// every point, and some turns have limits.
fn settings(seed: u64) -> Value {
    let mut res = json!({});
    if seed.is_multiple_of(3) && !seed.is_multiple_of(2) {
        let fallback = json!({"models": ["gemini-3.8-flash", "ollama/m"], "action": "silent"});
        res["model"] = json!({"compressionThreshold": 0.0001, "fallback": fallback});
    }
    if seed.is_multiple_of(2) {
        let hook = [json!({"hooks": [{"type": "command", "command": "one"}, {"type": "command", "command": "two"}]})];
        let events = HookEvent::ALL.iter().map(|it| (it.as_str().to_owned(), json!(hook)));
        res["hooks"] = json!(Map::from_iter(events));
    }
    if let Some(tokens) = budget(seed) {
        res["limits"] = json!({"turn": {"tokens": tokens}});
    }
    res
}
