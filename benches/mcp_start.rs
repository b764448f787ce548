//! How long session/new takes while ten MCP servers start, two of which hang and one of which ends at once. Prints
//! figures, asserts none. `CASTOR_BIN` names another binary than the one that was built with this.

#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::indexing_slicing, clippy::unwrap_used)]

mod timing;

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};

const N_ROUNDS: usize = 100;
/// A server with one tool, without a process for each message.
const GOOD: &str = r#"
while IFS= read -r line; do
  [[ $line =~ \"id\":([0-9]+) ]] || continue
  id=${BASH_REMATCH[1]}
  case $line in
    *'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
    *) result='{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}' ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done"#;

fn main() {
    let dir = tempfile::tempdir().unwrap_or_else(|it| panic!("{it}"));
    let mut castor = Castor::start(dir.path());
    let capabilities = json!({ "protocolVersion": 1, "clientCapabilities": {} });
    castor.ask("initialize", &capabilities);
    for (what, n_servers) in [("none", 0), ("ten servers", 10)] {
        let mut times = Vec::new();
        for round in 0..N_ROUNDS {
            let params = json!({ "cwd": dir.path(), "mcpServers": servers(n_servers, round) });
            let mut id = Value::Null;
            times.extend(timing::times(1, || id = castor.ask("session/new", &params)["sessionId"].clone()));
            castor.ask("session/close", &json!({ "sessionId": id }));
        }
        times.sort();
        let at = |percent| timing::percentile(&times, percent);
        println!("session/new, {what:12} p50 {:>9.3?}  p99 {:>9.3?}  ({N_ROUNDS} times)", at(50), at(99));
    }
}

/// Servers of one configuration are shared: each round has its own.
fn servers(n: usize, round: usize) -> Vec<Value> {
    let server = |at: usize| {
        let script = match at {
            0 | 1 => "sleep 600",
            2 => "exit 1",
            _ => GOOD,
        };
        json!({ "name": format!("s{at}"), "command": "bash", "args": ["-c", script, round.to_string()], "env": [] })
    };
    (0..n).map(server).collect()
}

struct Castor {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    n_asked: u64,
}

impl Castor {
    fn start(home: &Path) -> Self {
        let bin = std::env::var("CASTOR_BIN").unwrap_or_else(|_| env!("CARGO_BIN_EXE_castor").to_owned());
        let mut command = Command::new(bin);
        command.args(["acp", "--model", "demo"]).env("CASTOR_HOME", home.join(".castor"));
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = started.unwrap_or_else(|it| panic!("{it}"));
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else { panic!("no pipes") };
        Self { child, stdin, stdout: BufReader::new(stdout), n_asked: 0 }
    }

    /// The result; what else comes is passed over.
    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.n_asked += 1;
        let request = json!({ "jsonrpc": "2.0", "id": self.n_asked, "method": method, "params": params });
        writeln!(self.stdin, "{request}").unwrap_or_else(|it| panic!("{it}"));
        let mut line = String::new();
        loop {
            line.clear();
            let read = self.stdout.read_line(&mut line).unwrap_or_else(|it| panic!("{it}"));
            assert_ne!(read, 0, "castor is gone");
            let message: Value = serde_json::from_str(&line).unwrap_or_default();
            if message["id"] == self.n_asked {
                assert!(message["error"].is_null(), "{message}");
                return message["result"].clone();
            }
        }
    }
}

impl Drop for Castor {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
