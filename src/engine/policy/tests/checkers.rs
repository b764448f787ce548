//! Safety checkers in policy: which calls they review, and files that configure them wrongly.

use super::{
    super::{CheckerVerdict, PolicyFile, next_checker},
    fuzz::{AnyCall, Dice, any_rule, any_rules},
    *,
};
use castor_base::check::{CheckFinding, CheckerAction};

const EXTERNAL: &str = "checker = { type = 'external', name = '/check' }";

fn parse(what: &str, tier: Tier) -> (PolicyFile, Vec<String>) {
    RuleSet::parse(&format!("[[safety_checker]]\n{what}\n"), tier, "f.toml").unwrap()
}

fn with(what: &str) -> RuleSet {
    let (written, warnings) = parse(&format!("{what}\n{EXTERNAL}"), Tier::User);
    assert_eq!((written.checkers.len(), warnings), (1, Vec::new()), "{what}");
    RuleSet::shipped(own_tools()).with(written)
}

fn said(checker: usize, decision: Decision) -> CheckerVerdict {
    CheckerVerdict { checker, subject: 0, result: Ok(CheckFinding { decision, reason: "why".to_owned() }) }
}

#[test]
fn checkers_run_on_the_calls_they_name() {
    for (what, tool, args, heard) in [
        ("toolName='*'", "read_file", json!({}), true),
        ("toolName='*'", "run_shell_command", json!({"command": "ls ("}), true),
        ("toolName='write_file'", "read_file", json!({}), false),
        ("toolName='edit'", "replace", json!({}), true),
        ("toolName='*'\nmodes=['yolo']", "read_file", json!({}), false),
        ("toolName='*'\ninteractive=false", "read_file", json!({}), false),
        ("toolName='*'\nsubagent='helper'", "read_file", json!({}), false),
        ("mcpName='web'", "read_file", json!({}), false),
        ("toolName='*'\nargsPattern='\"url\":\"x'", "web_fetch", json!({"url": "xy"}), true),
        ("toolName='*'\nargsPattern='\"url\":\"x'", "web_fetch", json!({"url": "y"}), false),
        (
            "toolName='run_shell_command'\ncommandPrefix='git push'",
            "run_shell_command",
            json!({"command": "ls"}),
            false,
        ),
        // As generous as a rule that restricts.
        (
            "toolName='run_shell_command'\ncommandPrefix='rm'",
            "run_shell_command",
            json!({"command": "ls; /bin/rm x"}),
            true,
        ),
        ("toolName='run_shell_command'\ncommandPrefix='rm'", "run_shell_command", json!({"command": "ls; $X y"}), true),
        ("toolName='run_shell_command'\ncommandPrefix='rm'", "run_shell_command", json!({"command": "ls ("}), true),
        (
            "toolName='run_shell_command'\ncommandRegex='rm '",
            "run_shell_command",
            json!({"command": "a $(rm x)"}),
            true,
        ),
    ] {
        let (rules, targets) = (with(what), Targets::default());
        let query = Query::new(tool, ToolKind::Other, &args, &targets);
        assert_eq!(next_checker(&rules, &query).is_some(), heard, "{what} {args}");
        assert_eq!(super::super::explain(&rules, &query).checkers.len(), usize::from(heard), "{what}");
    }
}

/// Each answer, and none: only an allow leaves things as they are.
#[test]
fn a_word_makes_stricter() {
    let rules = with("toolName='read_file'");
    let (args, targets) = (json!({}), Targets::default());
    let ask = |heard: &[CheckerVerdict], interactive| {
        let query =
            Query { checker_verdicts: heard, interactive, ..Query::new("read_file", ToolKind::Read, &args, &targets) };
        let open = next_checker(&rules, &query).is_some();
        (decide(&rules, &query), open)
    };
    let (not_asked, open) = ask(&[], true);
    assert_eq!((not_asked.decision, open), (Decision::Deny, true));
    assert_eq!(ask(&[said(0, Decision::Allow)], true).0.decision, Decision::Allow);
    assert_eq!(ask(&[said(1, Decision::Allow)], true).0.decision, Decision::Deny);
    let (asked, open) = ask(&[said(0, Decision::Ask)], true);
    assert_eq!((asked.decision, asked.grant, open), (Decision::Ask, None, false));
    assert_eq!(asked.reason.as_deref(), Some("The safety checker /check says: why"));
    let (nobody, _) = ask(&[said(0, Decision::Ask)], false);
    assert_eq!((nobody.decision, nobody.reason), (Decision::Deny, None));
    assert!(nobody.deny_message.unwrap().contains("why"));
    let failed = CheckerVerdict { checker: 0, subject: 0, result: Err("it crashed".to_owned()) };
    let (failed, open) = ask(&[failed], true);
    assert_eq!((failed.decision, open), (Decision::Deny, false));
    assert!(failed.deny_message.unwrap().ends_with("gave no verdict: it crashed"));
}

#[test]
fn checkers_run_by_tier_then_priority() {
    let one = |name: &str, priority: u16, tier| {
        let checker = format!("checker = {{ type = 'external', name = '{name}' }}");
        parse(&format!("toolName='*'\npriority={priority}\n{checker}"), tier).0
    };
    let rules = RuleSet::shipped(own_tools()).with(one("/a", 5, Tier::Workspace)).with(one("/b", 1, Tier::Admin));
    let rules = rules.with(one("/c", 900, Tier::Workspace));
    let names: Vec<&str> = rules.checkers().iter().map(|it| it.checker.name.as_str()).collect();
    assert_eq!(names, ["/b", "/c", "/a"]);
}

/// What cannot be held to what it says is asked about.
#[test]
fn misspelled_checker_fails_closed() {
    for (what, tier) in [
        ("toolName='read_file'", Tier::User),
        ("toolName='read_file'\nchecker='allowed-path'", Tier::User),
        ("toolName='read_file'\nchecker={ type='in-process', name='conseca' }", Tier::User),
        ("toolName='read_file'\nchecker={ type='in-process', name='/check' }", Tier::User),
        ("toolName='read_file'\nchecker={ type='remote', name='/check' }", Tier::User),
        ("toolName='read_file'\nchecker={ type='external' }", Tier::User),
        ("toolName='read_file'\nchecker={ type='external', name='check' }", Tier::User),
        ("toolName='read_file'\nchecker={ type='external', name='./check' }", Tier::Workspace),
        ("toolName='read_file'\nchecker={ type='external', name='/check' }", Tier::Extension),
        ("toolName='read_file'\nchecker={ type='external', name='/check', timeout=0 }", Tier::User),
        ("toolName='read_file'\nchecker={ type='external', name='/check', timeout=300001 }", Tier::User),
        ("toolName='read_file'\npriority=1000\nchecker={ type='external', name='/check' }", Tier::User),
        ("toolName='read_file'\nargsPattern='('\nchecker={ type='external', name='/check' }", Tier::User),
        ("checker={ type='external', name='/check' }", Tier::User),
        ("toolName='read_file'\nchecker={ type='external', name='/check', sandbox={ writable='/x' } }", Tier::User),
        ("toolName='read_file'\nchecker={ type='external', name='/check', sandbox={ wide=true } }", Tier::User),
        ("toolName='read_file'\nchecker={ type='external', name='/check', sandbox=false }", Tier::Workspace),
        ("toolName='read_file'\ndecision='allow'\nchecker={ type='external', name='check' }", Tier::User),
    ] {
        let (written, warnings) = parse(what, tier);
        assert_eq!((written.checkers.len(), warnings.len()), (0, 1), "{what}");
        let (args, targets) = (json!({}), Targets::default());
        let query = Query::new("read_file", ToolKind::Read, &args, &targets);
        assert_eq!(decide(&RuleSet::shipped(own_tools()).with(written), &query).decision, Decision::Ask, "{what}");
    }
    let own = "toolName='*'\nchecker={ type='in-process', name='allowed-path', config={ included_args=['x'] } }";
    let (own, _) = parse(own, Tier::Extension);
    assert_eq!(own.checkers[0].checker.action, CheckerAction::AllowedPath);
    assert_eq!(own.checkers[0].checker.config, json!({"included_args": ["x"]}));
    let own = "toolName='*'\nchecker={ type='external', name='/check', sandbox={ writable=['/x'] } }";
    let (own, _) = parse(own, Tier::User);
    let CheckerAction::External { sandbox, .. } = &own.checkers[0].checker.action else { panic!() };
    assert_eq!(sandbox.writable, ["/x"]);
    // Beside a rule it would not be heard: the rule must not allow.
    for decision in ["allow", "ask_user"] {
        let text =
            format!("[[rule]]\ntoolName='x'\ndecision='{decision}'\npriority=1\n[rule.safety_checker]\nname='y'");
        let (written, warnings) = RuleSet::parse(&text, Tier::User, "f.toml").unwrap();
        assert!(written.rules.iter().all(|it| it.decision != Decision::Allow));
        assert_eq!(warnings.len(), 1);
    }
}

/// Whatever the rules are: one more checker, whatever it says, allows nothing that was not, and undoes no denial.
#[test]
fn one_more_checker_never_allows_more() {
    let (mut dice, mut changed) = (Dice::new(0x5afe), 0);
    for _ in 0..300 {
        let mut before = RuleSet::shipped(own_tools());
        for _ in 0..dice.roll(4) {
            let decision = ["allow", "allow", "ask_user", "deny"][dice.roll(4)];
            let text = any_rule(&mut dice, decision);
            before = before.with(any_rules(&mut dice, &text));
        }
        let checker = any_rule(&mut dice, "x").replace("[[rule]]", "[[safety_checker]]") + EXTERNAL;
        let after = before.clone().with(any_rules(&mut dice, &checker));
        for _ in 0..10 {
            let word = [Decision::Allow, Decision::Ask, Decision::Deny][dice.roll(3)];
            let heard = [
                vec![],
                vec![said(0, word)],
                vec![CheckerVerdict { checker: 0, subject: 0, result: Err("no".to_owned()) }],
            ];
            let call = AnyCall::roll(&mut dice);
            let (was, is) = (call.decide(&before), call.decide_after(&after, &heard[dice.roll(3)]));
            assert!(is >= was, "{was:?} became {is:?}: {:?} {:?}\n{checker}", call.args, call.mode);
            changed += usize::from(was != is);
        }
    }
    assert!(changed > 100, "{changed}");
}
