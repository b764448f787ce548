//! What a decision costs: medians with 200 rules of the user, printed one a line.
#![allow(clippy::indexing_slicing)]

mod timing;

use std::hint::black_box;

use castor_base::tool::{Targets, ToolKind};
use castor_engine::policy::{Query, RuleSet, SandboxFacts, Tier, decide};

/// 200 rules as people write them: prefixes, patterns over arguments, MCP servers.
fn rules() -> RuleSet {
    let mut text = String::new();
    for n in 0..200 {
        let what = match n % 4 {
            0 => format!("toolName='run_shell_command'\ncommandPrefix='tool{n} run'"),
            1 => format!("toolName='run_shell_command'\ncommandRegex='program{n} (build|test)'"),
            2 => format!("toolName='write_file'\nargsPattern='secret{n}'"),
            _ => format!("mcpName='server{n}'\ntoolName='get'"),
        };
        let decision = ["allow", "deny", "ask_user"][n % 3];
        text += &format!("[[rule]]\ndecision='{decision}'\npriority={}\n{what}\n", n + 1);
    }
    let (rules, warnings) = RuleSet::load(&text, Tier::User, "bench.toml");
    assert!(warnings.is_empty(), "{warnings:?}");
    RuleSet::shipped(castor_agent::session::policies::own_tools()).with(rules)
}

fn median(times: usize, run: impl FnMut()) -> std::time::Duration {
    timing::percentile(&timing::times(times, run), 50)
}

fn main() {
    let rules = rules();
    let distinct: Vec<String> = (0..6_000).map(|n| format!("echo {n}")).collect();
    let same = vec!["ls"; 10_000].join("; ");
    for (name, times, command) in [
        ("ls", 2_000, "ls -la src".to_owned()),
        ("typical", 2_000, "cd sub && cargo test --workspace 2>&1 | tail -20".to_owned()),
        (
            "commit with a here-document",
            2_000,
            "git commit -m \"$(cat <<'EOF'\nSay why\n\nIt was so.\nEOF\n)\"".to_owned(),
        ),
        ("unparsable", 2_000, "ls (".to_owned()),
        ("10,000 equal parts, the last denied", 21, format!("{same}; program1 build")),
        ("6,000 different parts", 21, distinct.join("; ")),
    ] {
        let args = serde_json::json!({ "command": command });
        let targets = Targets { command: Some(command.clone()), ..Targets::default() };
        let query = Query::new("run_shell_command", ToolKind::Execute, &args, &targets);
        let query = Query { sandbox: SandboxFacts::WHOLE, ..query };
        let decision = decide(&rules, &query).decision;
        let time = median(times, || _ = black_box(decide(black_box(&rules), &query)));
        println!("{time:>12.1?}  {name} ({decision:?})");
    }
    let time = median(200, || _ = black_box(RuleSet::shipped(castor_agent::session::policies::own_tools())));
    println!("{time:>12.1?}  shipped rules loaded");
}
