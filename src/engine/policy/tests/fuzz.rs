//! Random commands: nothing panics, and a rule that denies never makes anything allowed.

use super::*;
use crate::policy::{
    CheckerVerdict, PolicyFile, Rule,
    patterns::{CommandSpelling, MatchCertainty},
    shell::parse,
};

pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }
}

const PIECES: &[&str] = &[
    "ls",
    "rm",
    "-rf",
    "x",
    "git",
    "push",
    "log",
    "-c",
    "echo",
    "sh",
    "bash",
    "'",
    "\"",
    "`",
    "$(",
    ")",
    "(",
    "{",
    "}",
    "$",
    "$x",
    "${x@P}",
    ";",
    "&&",
    "||",
    "|",
    "&",
    "\n",
    "\\",
    "\\\n",
    " ",
    " ",
    " ",
    " ",
    "<",
    ">",
    ">>",
    "2>&1",
    "<<EOF\n",
    "\nEOF\n",
    "<(",
    "$'",
    "\u{a0}",
    "é",
    "#",
    "!",
    "[[",
    "]]",
    "((",
    "))",
    "eval",
    "sudo",
    "xargs",
    "env",
    "A=b",
    "for i in a; do",
    "done",
    "if",
    "then",
    "fi",
    "f()",
    "*",
    "~",
    ".env",
    "/dev/null",
    "\0",
    "\r",
    "find",
    "-exec",
];

#[test]
fn never_panics_and_denies_only_narrow() {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let base = rule("allow", "commandPrefix=['echo','git log','bash','xargs']\nallowRedirection=true");
    let denies = ["commandPrefix='rm'", "commandPrefix=['git push','ls']", "commandRegex='.*x'", "argsPattern='x'", ""];
    let before = rules(&base);
    let after: Vec<RuleSet> =
        denies.iter().map(|it| rules(&(base.clone() + &rule("deny", it).replace("100", "50")))).collect();
    let firm: Vec<RuleSet> =
        denies.iter().map(|it| rules(&(base.clone() + &rule("deny", it).replace("100", "500")))).collect();
    for _ in 0..4000 {
        let command: String = (0..1 + dice.roll(12)).map(|_| PIECES[dice.roll(PIECES.len())]).collect();
        let mode = Mode::OFFERED[dice.roll(5)];
        let interactive = dice.roll(4) > 0;
        let plain = shell(&before, mode, interactive, &command, &[]).decision;
        let at = dice.roll(denies.len());
        for rules in [&after[at], &firm[at]] {
            let narrowed = shell(rules, mode, interactive, &command, &[]).decision;
            assert!(plain == Decision::Allow || narrowed != Decision::Allow, "{command:?} {mode:?} {}", denies[at]);
        }
    }
}

/// A rule that would say something of a command is asked.
#[test]
fn no_rule_is_passed_over() {
    const WORDS: &[&str] = &[
        "git",
        "push",
        "log",
        "rm",
        "RM",
        "/bin/rm",
        "\"rm\"",
        "'git push'",
        "ls",
        "$x",
        "x",
        "-C",
        ";",
        "|",
        "$(rm x)",
    ];
    let whats = [
        "",
        "argsPattern='x'",
        "commandPrefix='rm'",
        "commandPrefix=['git push', '/bin/rm x', 'LS']",
        "commandRegex='git (push|log)( |$)'",
        "commandRegex='git ?push'",
        "commandRegex='(?i)rm .*'",
        "commandRegex='(ls|git) x'",
        "commandRegex='ls x|rm'",
        "commandRegex='.?rm'",
        "commandRegex='[gr](it|m) x'",
    ];
    let all: String = whats.iter().flat_map(|it| [rule("allow", it), rule("deny", it)]).collect();
    let (rules, mut dice, mut hits) = (rules(&all), Dice(11), 0);
    for _ in 0..4000 {
        let words: Vec<&str> = (0..1 + dice.roll(6)).map(|_| WORDS[dice.roll(WORDS.len())]).collect();
        let text = words.join(" ");
        let (line, args, targets) = (parse(&text), json!({ "command": text }), Targets::default());
        let query = Query::new("run_shell_command", ToolKind::Execute, &args, &targets);
        for it in &line.script().commands {
            let spelling = CommandSpelling::new(it, Some(&text), &args);
            let speaks = |it: &&Rule| it.applies(&query) && it.matches_command(&spelling) != MatchCertainty::No;
            let names = |it: &Rule| it.source.line;
            let found: Vec<usize> =
                rules.for_command(&query, &spelling).into_iter().filter(speaks).map(names).collect();
            assert_eq!(found, rules.iter().filter(speaks).map(names).collect::<Vec<_>>(), "{text}");
            hits += found.len();
        }
    }
    assert!(hits > 1000, "{hits}");
}

const TOOLS: &[&str] = &[
    "run_shell_command",
    "ShellTool",
    "write_file",
    "edit",
    "read_file",
    "*",
    "mcp_*",
    "mcp_web_*",
    "mcp_web_get",
    "x",
];
const MATCHERS: &[&str] = &[
    "",
    "argsPattern='x'",
    "argsPattern='^.*$'",
    "argsPattern='('",
    "commandPrefix='rm'",
    "commandPrefix=['git push', 'ls']",
    "commandPrefix='git'",
    "commandRegex='.*x'",
    "commandRegex='echo( |$)'",
    "mcpName='web'",
    "mcpName='*'",
    "modes=['yolo', 'plan']",
    "modes=['default']",
    "interactive=false",
    "subagent='helper'",
    "toolAnnotations={readOnlyHint=true}",
    "allowRedirection=true",
    "match=['never this']",
];

/// A rule, often of the shell, sometimes one that does not load.
pub(super) fn any_rule(dice: &mut Dice, decision: &str) -> String {
    let tool = if dice.roll(2) == 0 { "run_shell_command" } else { TOOLS[dice.roll(TOOLS.len())] };
    let matcher = MATCHERS[dice.roll(MATCHERS.len())];
    format!("[[rule]]\ntoolName='{tool}'\ndecision='{decision}'\npriority={}\n{matcher}\n", dice.roll(1000))
}

pub(super) fn any_rules(dice: &mut Dice, text: &str) -> PolicyFile {
    let tier = [Tier::Default, Tier::Extension, Tier::Workspace, Tier::User, Tier::Admin][dice.roll(5)];
    RuleSet::load(text, tier, "fuzz.toml").0
}

/// A call, its command made of pieces; arguments and targets may disagree or be nonsense.
pub(super) struct AnyCall {
    tool: &'static str,
    server: Option<&'static str>,
    pub(super) args: Value,
    targets: Targets,
    pub(super) mode: Mode,
    interactive: bool,
    grants: Vec<Grant>,
    believed: bool,
    sandbox: SandboxFacts,
}

impl AnyCall {
    pub(super) fn roll(dice: &mut Dice) -> Self {
        let command: String = (0..1 + dice.roll(10)).map(|_| PIECES[dice.roll(PIECES.len())]).collect();
        let tool = if dice.roll(3) > 0 { "run_shell_command" } else { TOOLS[dice.roll(TOOLS.len())] };
        let server = [None, None, Some("web"), Some("evil")][if tool.starts_with("run") { 0 } else { dice.roll(4) }];
        let args = match dice.roll(8) {
            0 => json!(null),
            1 => json!({ "command": ["x", 1] }),
            2 => json!([command]),
            3 => json!({ "command": "ls", "file_path": command, "deep": { "x": [null, 1.5e300, "\0"] } }),
            _ => json!({ "command": command }),
        };
        let paths = ["/w/a", "/etc/x", "/w/.git/config", "/"].iter().take(dice.roll(4)).map(|it| {
            let path = AbsPath::new(it).unwrap();
            let access = if dice.roll(2) == 0 { Access::Read } else { Access::Write };
            let (in_roots, temporary) = (it.starts_with("/w"), it.starts_with("/w/tmp"));
            let hidden = it.starts_with("/h");
            TargetPath { in_roots, temporary, hidden, ..TargetPath::in_root(path, access) }
        });
        let paths = paths.collect();
        let command = (dice.roll(6) > 0 && tool.starts_with("run")).then_some(command);
        let grants = [
            Grant::Edits,
            Grant::Tool { tool: tool.to_owned() },
            Grant::Commands { prefixes: vec!["ls".to_owned(), String::new()] },
        ];
        Self {
            tool,
            server,
            args,
            targets: Targets { paths, command, ..Targets::default() },
            mode: Mode::OFFERED[dice.roll(5)],
            interactive: dice.roll(3) > 0,
            grants: grants.into_iter().filter(|_| dice.roll(4) == 0).collect(),
            believed: dice.roll(2) == 0,
            sandbox: if dice.roll(3) == 0 { SandboxFacts::default() } else { SandboxFacts::WHOLE },
        }
    }

    pub(super) fn decide(&self, rules: &RuleSet) -> Decision {
        self.decide_after(rules, &[])
    }

    pub(super) fn decide_after(&self, rules: &RuleSet, heard: &[CheckerVerdict]) -> Decision {
        let kind = if self.tool == "write_file" { ToolKind::Edit } else { ToolKind::Execute };
        let annotations = json!({"readOnlyHint": true});
        let roots = [AbsPath::new("/w").unwrap()];
        let query = Query {
            mode: self.mode,
            interactive: self.interactive,
            grants: &self.grants,
            roots: &roots,
            origin: CallOrigin {
                server: self.server,
                annotations: Some(Annotations { members: &annotations, trusted: self.believed }),
                ..CallOrigin::default()
            },
            checker_verdicts: heard,
            sandbox: self.sandbox,
            ..Query::new(self.tool, kind, &self.args, &self.targets)
        };
        let got = decide(rules, &query);
        assert!(self.interactive || got.decision != Decision::Ask, "nobody can be asked");
        assert!(got.grant.is_none() || got.decision == Decision::Ask);
        assert!(!got.rule.is_empty());
        got.decision
    }
}

/// Whatever rules there are: one more that denies, even one that cannot be read, allows nothing that was not allowed,
/// and turns no denial into anything else.
#[test]
fn one_more_deny_never_allows_more() {
    let (mut dice, mut changed) = (Dice(0x2545_f491_4f6c_dd1d), 0);
    for _ in 0..600 {
        let mut before = RuleSet::shipped(own_tools());
        for _ in 0..dice.roll(5) {
            let decision = ["allow", "allow", "ask_user", "deny"][dice.roll(4)];
            let text = any_rule(&mut dice, decision);
            before = before.with(any_rules(&mut dice, &text));
        }
        let deny = any_rule(&mut dice, "deny");
        let after = before.clone().with(any_rules(&mut dice, &deny));
        for _ in 0..12 {
            let call = AnyCall::roll(&mut dice);
            let (was, is) = (call.decide(&before), call.decide(&after));
            assert!(was == Decision::Allow || is != Decision::Allow, "{:?} {:?}\n{deny}", call.args, call.mode);
            assert!(was != Decision::Deny || is == Decision::Deny, "{:?} {:?}\n{deny}", call.args, call.mode);
            changed += usize::from(was != is);
        }
    }
    assert!(changed > 100, "{changed}");
}

/// Any bytes as a policy file, any text as a command: an answer, and never a panic.
#[test]
fn loading_and_reading_never_panic() {
    const WORDS: &[&str] = &[
        "[[rule]]\n",
        "[[safety_checker]]\n",
        "checker",
        "{ type = 'external', name = '/x' }",
        "toolName",
        "=",
        "'x'",
        "[",
        "]",
        "decision",
        "'deny'",
        "\n",
        "priority",
        "1",
        "match",
        "{",
        "}",
        "\"",
        "\0",
        "é",
        "#",
    ];
    let mut dice = Dice(7);
    for _ in 0..3000 {
        let text: String = (0..dice.roll(14)).map(|_| WORDS[dice.roll(WORDS.len())]).collect();
        let rules = RuleSet::shipped(own_tools()).with(any_rules(&mut dice, &text));
        _ = AnyCall::roll(&mut dice).decide(&rules);
    }
    let shipped = RuleSet::shipped(own_tools());
    for _ in 0..1500 {
        let bytes: Vec<u8> = (0..dice.roll(60))
            .map(|_| [b'<', b'$', b'(', b'\'', b'"', b'\\', b'\n', 0xc3, 0xa9, b'E'][dice.roll(10)])
            .collect();
        let text = String::from_utf8_lossy(&bytes);
        _ = shell(&shipped, Mode::Yolo, true, &text, &[]);
        _ = shell(&shipped, Mode::Yolo, true, &format!("cat <<E\n{text}"), &[]);
    }
}
