//! Tests of policy as data: one table after another through one check.

mod checkers;
mod commands;
mod everyday;
mod fuzz;
mod incidents;
mod origins;
mod patches;
mod persistent;
mod shell;
mod temporary;
mod tools;

use serde_json::{Value, json};

use super::{Annotations, CallOrigin, Query, RuleSet, SandboxFacts, Tier, Verdict, VerdictBasis, decide};
use crate::testing::own_tools;
use castor_base::{
    log::{Decision, Grant, Mode},
    path::AbsPath,
    tool::{Access, TargetPath, Targets, ToolKind},
};

/// The shipped rules and these, which are the user's.
fn rules(toml: &str) -> RuleSet {
    let (rules, warnings) = RuleSet::parse(toml, Tier::User, "user.toml").unwrap();
    assert_eq!(warnings, Vec::<String>::new());
    RuleSet::shipped(own_tools()).with(rules)
}

fn rule(decision: &str, what: &str) -> String {
    format!("[[rule]]\ntoolName = 'run_shell_command'\ndecision = '{decision}'\npriority = 100\n{what}\n")
}

fn shell(rules: &RuleSet, mode: Mode, interactive: bool, command: &str, grants: &[Grant]) -> Verdict {
    let args = json!({ "command": command });
    let targets = Targets { command: Some(command.to_owned()), ..Targets::default() };
    let kind = ToolKind::Execute;
    let roots = [AbsPath::new("/w").unwrap()];
    let (tool, sandbox) = ("run_shell_command", SandboxFacts::WHOLE);
    decide(
        rules,
        &Query { mode, interactive, grants, roots: &roots, sandbox, ..Query::new(tool, kind, &args, &targets) },
    )
}

fn word(it: Decision) -> &'static str {
    match it {
        Decision::Allow => "allow",
        Decision::Ask => "ask",
        Decision::Deny => "deny",
    }
}

/// Lines of `mode  command  => decision`; `mode!` is a session where nobody can be asked, `⏎` is a newline, and so on.
fn check(rules: &RuleSet, grants: &[Grant], table: &str) -> usize {
    let (mut wrong, mut count) = (Vec::new(), 0);
    for line in table.lines().map(str::trim).filter(|it| !it.is_empty() && !it.starts_with("##")) {
        let (call, want) = line.rsplit_once("=>").unwrap();
        let (mode, command) = call.split_once("  ").unwrap();
        let interactive = !mode.ends_with('!');
        let mode = Mode::parse(mode.trim_end_matches('!')).unwrap();
        let got = shell(rules, mode, interactive, &unescaped(command.trim()), grants);
        if word(got.decision) != want.trim() {
            wrong.push(format!("{line}   got {} by {}", word(got.decision), got.rule));
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    count
}

/// What is invisible in a row has a sign of its own.
fn unescaped(text: &str) -> String {
    let text = text.replace("⏎", "\n").replace("⇥", "\t").replace("␀", "\0").replace("␍", "\r");
    text.replace("⇄", "\u{202e}").replace("␣", "\u{a0}")
}
