//! Saved grants: the questions that they answer, and those that they do not.

use super::*;
use castor_base::log::GRANTS_FILE;

fn saved(toml: &str) -> Vec<super::super::Rule> {
    let (written, warnings) = RuleSet::parse(toml, Tier::User, &format!("/h/.castor/policies/{GRANTS_FILE}")).unwrap();
    assert_eq!(warnings, Vec::<String>::new());
    written.rules
}

fn of_tier(toml: &str, tier: Tier) -> RuleSet {
    RuleSet::shipped(own_tools()).with(RuleSet::parse(toml, tier, "x.toml").unwrap().0)
}

/// What a yes to `prefix` makes of the command, for this session and for ever, and whether one was on offer.
fn said(rules: &RuleSet, mode: Mode, prefix: &str, command: &str) -> (&'static str, bool) {
    let grants = [Grant::Commands { prefixes: vec![prefix.to_owned()] }];
    let here = shell(rules, mode, true, command, &grants).decision;
    let rule = format!("[[rule]]\ntoolName = 'run_shell_command'\ncommandPrefix = ['{prefix}']\ndecision = 'allow'\n");
    let lasting = rules.clone().with(saved(&format!("{rule}priority = 950\n")));
    let ever = shell(&lasting, mode, true, command, &[]).decision;
    assert_eq!(here, ever, "{prefix}: {command} in {mode:?}: for this session, for ever");
    (word(here), shell(rules, mode, true, command, &[]).grant.is_some())
}

#[test]
fn grant_overrides_the_ask_rule_it_answered() {
    for (rule, prefix, command, want) in [
        ("commandPrefix = 'npm run'", "npm run a", "npm run a", ("allow", true)),
        ("commandPrefix = 'npm run'", "npm run a", "npm run a --x", ("allow", true)),
        ("commandPrefix = 'npm run'", "npm run a", "npm run b", ("ask", true)),
        ("commandPrefix = 'npm run'", "npm run a", "npm run a && npm run b", ("ask", true)),
        ("commandRegex = 'npm run'", "npm run a", "npm run a", ("allow", true)),
        ("", "npm run a", "npm run a", ("allow", true)),
        // A yes to more than the rule asks about was one to something else.
        ("commandPrefix = 'tool deploy --all'", "tool", "tool deploy --all", ("ask", false)),
        ("commandPrefix = 'make deploy'", "make", "make deploy", ("ask", true)),
        ("commandPrefix = 'tool deploy --all'", "tool", "tool build", ("allow", true)),
        ("argsPattern = 'npm run a'", "npm run a", "npm run a", ("ask", false)),
        // It may be what the rule means.
        ("commandPrefix = 'npm run a b'", "npm run a", "npm run a $X", ("ask", false)),
        // Asked about in every mode.
        ("commandPrefix = 'git push'", "git push", "git push -f", ("ask", false)),
        ("commandPrefix = 'cat'", "cat", "cat .env", ("ask", false)),
    ] {
        let rules = rules(&self::rule("ask_user", rule));
        assert_eq!(said(&rules, Mode::Default, prefix, command), want, "{rule}: {command}");
    }
    let rules = rules(&rule("ask_user", "commandPrefix = 'npm run'"));
    for mode in [Mode::AutoEdit, Mode::Yolo] {
        assert_eq!(said(&rules, mode, "npm run a", "npm run a"), ("allow", true), "{mode:?}");
    }
}

#[test]
fn grant_overrides_no_deny_and_no_admin_rule() {
    let asks = |what: &str| rule("ask_user", what);
    for what in ["", "commandPrefix = 'npm run'"] {
        let by_admin = of_tier(&asks(what), Tier::Admin);
        assert_eq!(said(&by_admin, Mode::Default, "npm run a", "npm run a"), ("ask", false), "{what}");
        let by_workspace = of_tier(&asks(what), Tier::Workspace);
        assert_eq!(said(&by_workspace, Mode::Default, "npm run a", "npm run a"), ("allow", true), "{what}");
    }
    let above = asks("commandPrefix = 'npm run'").replace("100", "951");
    assert_eq!(said(&rules(&above), Mode::Default, "npm run a", "npm run a"), ("ask", false));
    for deny in ["commandPrefix = 'npm run a --prod'", "commandPrefix = 'npm'", ""] {
        let denied = rules(&rule("deny", deny));
        assert_eq!(said(&denied, Mode::Default, "npm run a", "npm run a --prod"), ("deny", false), "{deny}");
    }
}

#[test]
fn tool_grant_does_not_override_argument_rules() {
    let rule = |decision: &str, more: &str| {
        format!("[[rule]]\ntoolName = 'web_fetch'\ndecision = '{decision}'\npriority = 100\n{more}\n")
    };
    let targets = Targets::default();
    let args = json!({ "url": "http://x" });
    let fetch = |rules: &RuleSet, grants: &[Grant]| {
        decide(rules, &Query { grants, ..Query::new("web_fetch", ToolKind::Fetch, &args, &targets) })
    };
    let yes = [Grant::Tool { tool: "web_fetch".to_owned() }];
    for (rules, want) in [
        (rules(&rule("ask_user", "")), ("allow", true)),
        (rules(&rule("ask_user", "argsPattern = 'x'")), ("ask", false)),
        (rules(&rule("deny", "argsPattern = 'x'")), ("deny", false)),
        (of_tier(&rule("ask_user", ""), Tier::Admin), ("ask", false)),
    ] {
        let offered = fetch(&rules, &[]).grant.is_some();
        assert_eq!((word(fetch(&rules, &yes).decision), offered), want);
        let lasting = rules.with(saved(&rule("allow", "").replace("100", "950")));
        assert_eq!(word(fetch(&lasting, &[]).decision), want.0);
    }
}
