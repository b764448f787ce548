//! The hub by conversations: inputs on `>` lines, what it sends below.
//!
//! `> 1 + `: a connection begins, `> 1 ++`: that of a host; `> 1 - `: it ends; `> 1 {…}`: it says something; `> agent {…}`: the agent does;
//! `> agent - why`: the agent ends; `> tick MS`: time passes.

use bytes::Bytes;
use expect_test::expect_file;

use super::{Hub, HubInput, HubLimits, HubOutput};

const SCENARIOS: &str = include_str!("scenarios.txt");

fn format_outputs(outputs: Vec<HubOutput>) -> String {
    let text = |it: &[u8]| String::from_utf8(it.to_vec()).unwrap();
    let line = |it| match it {
        HubOutput::Agent(line) => {
            assert!(line.ends_with(b"\n"), "a line has an end");
            format!("agent {}", text(&line))
        }
        HubOutput::Send { to, message } => {
            assert!(!message.contains(&b'\n'), "a message is one line");
            format!("{to} {}\n", text(&message))
        }
    };
    let version = format!("\"version\":\"{}\"", env!("CARGO_PKG_VERSION"));
    outputs
        .into_iter()
        .map(line)
        .collect::<String>()
        .replace(&version, "\"version\":\"V\"")
        .replace("\"jsonrpc\":\"2.0\",", "")
}

fn run(scenario: &str) -> String {
    let limits = HubLimits { sessions: 2, requests: 2, idle_ms: 1000, awake: 1, sleep_ms: 10_000 };
    let (mut hub, mut res, mut now_ms) = (Hub::new("p", limits), String::new(), 0);
    for line in scenario.lines() {
        let Some(input) = line.strip_prefix("> ") else {
            if line.starts_with('#') {
                res += &format!("{line}\n");
            }
            continue;
        };
        res += &format!("{line}\n");
        let (head, rest) = input.split_once(' ').unwrap_or((input, ""));
        // Written without what every message has.
        let message = rest.replacen('{', "{\"jsonrpc\":\"2.0\",", 1);
        let agent = Bytes::from(message.clone());
        let number = head.parse::<u64>().unwrap_or_default();
        let input = match (head, rest) {
            ("tick", ms) => {
                now_ms += ms.parse::<u64>().unwrap();
                HubInput::Tick
            }
            ("agent", _) if rest.starts_with('-') => HubInput::AgentEnded(rest.trim_start_matches("- ")),
            ("agent", _) => HubInput::Agent(&agent),
            (_, "+") => HubInput::Connected(number),
            (_, "++") => HubInput::HostConnected(number),
            (_, "-") => HubInput::Disconnected(number),
            _ => HubInput::Message { from: number, text: message.as_bytes() },
        };
        res += &format_outputs(hub.handle(input, now_ms));
    }
    res
}

#[test]
fn scenarios_are_as_written() {
    let runs: Vec<String> = SCENARIOS.split("\n\n").map(run).collect();
    expect_file!["scenarios.txt"].assert_eq(&runs.join("\n"));
}
