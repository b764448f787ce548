//! Origins of rules: tiers, settings, MCP servers and broken files.

use super::{super::ToolLists, *};
use crate::policy::{rule::ToolIdentity, unconditional_deny};
use castor_base::{schema::Schema, tool::ToolSpec};

fn load(text: &str, tier: Tier) -> (RuleSet, Vec<String>) {
    let (rules, warnings) = RuleSet::load(text, tier, "f.toml");
    (RuleSet::shipped(own_tools()).with(rules), warnings)
}

/// A call of `server/tool`, or of a built-in tool.
fn ask(rules: &RuleSet, mode: Mode, interactive: bool, tool: &str) -> Decision {
    let (server, tool) = tool.split_once('/').map_or((None, tool), |(server, tool)| (Some(server), tool));
    let (args, targets) = (json!({}), Targets::default());
    let annotations = json!({"readOnlyHint": true});
    let (annotations, subagent) = (Some(Annotations { members: &annotations, trusted: true }), Some("helper"));
    let query = Query::new(tool, ToolKind::Other, &args, &targets);
    let origin = CallOrigin { server, annotations, subagent, ..CallOrigin::default() };
    decide(rules, &Query { mode, interactive, origin, ..query }).decision
}

/// A yes for ever to a server's tool is none to what the server makes of it later.
#[test]
fn grant_ends_when_the_tool_description_changes() {
    let saved = "toolName='mcp_web_get'\nmcpName='web'\ndecision='allow'\npriority=5\ntoolDigest='one'";
    let (rules, warnings) = load(&format!("[[rule]]\n{saved}"), Tier::User);
    assert_eq!(warnings, Vec::<String>::new());
    let (args, targets) = (json!({}), Targets::default());
    for (digest, want) in [(Some("one"), Decision::Allow), (Some("two"), Decision::Ask), (None, Decision::Ask)] {
        let query = Query::new("mcp_web_get", ToolKind::Other, &args, &targets);
        let origin = CallOrigin { server: Some("web"), digest, ..CallOrigin::default() };
        let said = decide(&rules, &Query { origin, ..query });
        assert_eq!(said.decision, want, "{digest:?}");
    }
}

#[test]
fn names_of_mcp_tools() {
    let one = |decision: &str, what: &str| {
        let text = format!("[[rule]]\ndecision='{decision}'\npriority=5\n{what}");
        let (rules, warnings) = load(&text, Tier::User);
        assert_eq!(warnings, Vec::<String>::new(), "{what}");
        rules
    };
    let named = |decision: &str, what: &str, tool: &str| {
        let (server, name) = tool.split_once('/').map_or((None, tool), |(server, tool)| (Some(server), tool));
        let rules = one(decision, what);
        rules.iter().next().unwrap().names_tool(ToolIdentity { tool: name, server })
    };
    for (what, tool, allows, denies) in [
        ("toolName='mcp_*'", "web/mcp_web_get", true, true),
        ("toolName='mcp_*'", "mcp_web_get", false, true),
        ("toolName='mcp_web_*'", "web/mcp_web_get", true, true),
        ("toolName='mcp_web_*'", "evil/mcp_web_get", false, true),
        ("toolName='mcp_web_*'", "web_b/mcp_web_b_get", false, true),
        ("toolName='mcp_web_b_*'", "web_b/mcp_web_b_get", true, true),
        ("toolName='mcp_web_get'", "web/mcp_web_get", true, true),
        ("toolName='mcp_web_get'", "mcp_web/mcp_web_get", false, true),
        ("toolName='mcp_a_b_c'", "a_b/mcp_a_b_c", false, true),
        ("toolName='get'\nmcpName='web'", "web/mcp_web_get", true, true),
        ("toolName='mcp_web_get'\nmcpName='web'", "web/get", true, true),
        ("toolName='get'\nmcpName='web'", "evil/get", false, false),
        ("toolName='get'\nmcpName='web'", "get", false, false),
        ("toolName='*'\nmcpName='web'", "web/anything", true, true),
        ("mcpName='web'", "web/anything", true, true),
        ("mcpName='*'", "other/x", true, true),
        ("mcpName='*'", "read_file", false, false),
        ("toolName='read_file'", "evil/read_file", false, true),
        ("toolName='read_file'", "read_file", true, true),
        ("toolName='edit'", "replace", true, true),
    ] {
        assert_eq!((named("allow", what, tool), named("deny", what, tool)), (allows, denies), "{what} {tool}");
    }
}

#[test]
fn conditions() {
    for (what, want) in [
        ("toolAnnotations={readOnlyHint=true}", Decision::Allow),
        ("toolAnnotations={readOnlyHint=false}", Decision::Ask),
        ("toolAnnotations={readOnlyHint=true, other=1}", Decision::Ask),
        ("subagent='helper'", Decision::Allow),
        ("subagent='other'", Decision::Ask),
        ("interactive=true", Decision::Allow),
        ("interactive=false", Decision::Ask),
        ("modes=['default', 'autoEdit']", Decision::Allow),
        ("modes=['yolo']", Decision::Ask),
    ] {
        let (rules, _) = load(&format!("[[rule]]\nmcpName='s'\ndecision='allow'\npriority=5\n{what}"), Tier::User);
        assert_eq!(ask(&rules, Mode::Default, true, "s/x"), want, "{what}");
    }
    let (rules, _) = load("[[rule]]\ntoolName='spy'\ndecision='deny'\npriority=5", Tier::User);
    let (args, targets) = (json!({"agent_name": "spy"}), Targets::default());
    let call = Query::new("invoke_agent", ToolKind::Other, &args, &targets);
    assert_eq!(decide(&rules, &call).decision, Decision::Deny);
}

#[test]
fn settings_as_rules() {
    let list = |it: &[&str]| it.iter().map(|it| (*it).to_owned()).collect::<Vec<String>>();
    let lists = ToolLists {
        exclude: list(&["web_fetch", "run_shell_command(git push)"]),
        allowed: list(&["write_file", "shell(git commit)", "run_shell_command(cargo)", "glob(x)"]),
        confirm: list(&["read_file", "write_file"]),
        mcp_excluded: list(&["bad"]),
        mcp_allowed: list(&["ok"]),
        mcp_trusted: list(&["mine", "bad"]),
        ..ToolLists::default()
    };
    let rules = RuleSet::shipped(own_tools()).with(RuleSet::from_settings(&lists));
    for (tool, want) in [
        ("web_fetch", Decision::Deny),
        ("read_file", Decision::Ask),
        ("write_file", Decision::Ask),
        ("glob", Decision::Allow),
        ("bad/x", Decision::Deny),
        ("mine/x", Decision::Allow),
        ("ok/x", Decision::Allow),
        ("other/x", Decision::Ask),
    ] {
        assert_eq!(ask(&rules, Mode::Default, true, tool), want, "{tool}");
    }
    check(
        &rules,
        &[],
        "
        default  git commit -m x => allow
        default!  git commit -m x => allow
        default  git commit -m x && make => deny
        default  cargo build => allow
        yolo  git push => deny
        yolo  make => deny
        default  git commit -m x; git push => deny",
    );
    let plain = ToolLists { allowed: list(&["shell", "shell(git)"]), ..ToolLists::default() };
    check(&RuleSet::shipped(own_tools()).with(RuleSet::from_settings(&plain)), &[], "default  make => allow");
}

/// What stands in brackets behind any tool but the shell cannot be held: it is no yes to the whole tool.
#[test]
fn an_allowed_tool_with_brackets_is_not_allowed_as_a_whole() {
    for (entry, want) in [("web_fetch", Decision::Allow), ("web_fetch(x)", Decision::Ask)] {
        let lists = ToolLists { allowed: vec![entry.to_owned()], ..ToolLists::default() };
        let rules = RuleSet::shipped(own_tools()).with(RuleSet::from_settings(&lists));
        assert_eq!(ask(&rules, Mode::Default, true, "web_fetch"), want, "{entry}");
    }
}

/// Rows of commands that castor's table knows to look only.
fn looking(modes: &[&str], want: &str) -> String {
    let commands = ["ls", "git status", "cat a.txt", "ls | wc -l"];
    let rows = modes.iter().flat_map(|mode| commands.map(|it| format!("{mode}  {it} => {want}\n")));
    rows.collect()
}

const LOOKING_MODES: &[&str] = &["default", "autoEdit", "plan", "default!", "plan!"];

/// The table spares the shipped question and no, never people's own.
#[test]
fn ask_rule_for_all_commands_covers_looking_ones() {
    check(&rules(""), &[], &looking(LOOKING_MODES, "allow"));
    let asks = rules(&rule("ask_user", ""));
    check(&asks, &[], &looking(&["default", "autoEdit"], "ask"));
    check(&asks, &[], &looking(&["default!"], "deny"));
}

/// A denial is never softened, in yolo and for read-only commands neither.
#[test]
fn deny_rule_for_all_commands_covers_looking_ones() {
    check(&rules(&rule("deny", "")), &[], &looking(LOOKING_MODES, "deny"));
}

/// Its own no is no reason to pass over a question that people want.
#[test]
fn plan_mode_softens_no_question() {
    for what in ["", "modes=['plan']"] {
        let asks = rules(&rule("ask_user", what));
        check(&asks, &[], &looking(&["plan"], "ask"));
        check(&asks, &[], &looking(&["plan!"], "deny"));
    }
    check(&rules(&rule("ask_user", "")), &[], "plan  make => deny");
    check(&rules(&rule("ask_user", "commandPrefix='ls'")), &[], "plan  ls => ask\nplan  pwd => allow");
}

/// Who is asked sees one of the two; the other is what would run.
#[test]
fn a_call_that_names_two_commands_is_not_allowed() {
    let decision = |argument: &str, target: &str| {
        let args = json!({ "command": argument });
        let targets = Targets { command: Some(target.to_owned()), ..Targets::default() };
        let query = Query::new("run_shell_command", ToolKind::Execute, &args, &targets);
        decide(&rules(""), &Query { interactive: true, ..query }).decision
    };
    assert_eq!(decision("ls ", "ls"), Decision::Allow);
    for (argument, target) in [("ls", "pwd"), ("ls", "make"), ("make", "ls"), ("ls", ""), ("", "ls")] {
        assert_eq!(decision(argument, target), Decision::Ask, "{argument:?} {target:?}");
    }
}

#[test]
fn core_tools_of_the_user_and_of_the_workspace() {
    let core = Some(vec!["read_file".to_owned(), "run_shell_command(git)".to_owned()]);
    let users = ToolLists { core: core.clone(), core_allows: true, ..ToolLists::default() };
    let rules = RuleSet::shipped(own_tools()).with(RuleSet::from_settings(&users));
    check(&rules, &[], "default!  git commit => allow\ndefault  make => deny\nyolo  git push -f => ask");
    assert_eq!(ask(&rules, Mode::Default, true, "read_file"), Decision::Allow);
    assert_eq!(ask(&rules, Mode::Default, true, "glob"), Decision::Deny);
    let workspaces = ToolLists { core, core_allows: false, ..ToolLists::default() };
    let rules = RuleSet::shipped(own_tools()).with(RuleSet::from_settings(&workspaces));
    check(&rules, &[], "default  git commit => ask\ndefault!  git commit => deny");
    assert_eq!(ask(&rules, Mode::Default, true, "glob"), Decision::Deny);
    assert_eq!(ask(&rules, Mode::Default, true, "read_file"), Decision::Allow);
    assert_eq!(ask(&rules, Mode::Default, true, "s/x"), Decision::Ask);
}

#[test]
fn a_workspace_stays_below_the_user() {
    let text = |decision: &str| rule(decision, "commandPrefix='make'");
    let (user, _) = RuleSet::load(&text("ask_user"), Tier::User, "u");
    let (workspace, _) = RuleSet::load(&text("allow").replace("100", "999"), Tier::Workspace, "w");
    check(&RuleSet::shipped(own_tools()).with(workspace.clone()), &[], "default  make => allow\ndefault  rm x => ask");
    check(
        &RuleSet::shipped(own_tools()).with(workspace.clone()).with(user),
        &[],
        "default  make => ask\nyolo  make => ask",
    );
    let (admin, _) = RuleSet::load(&text("deny"), Tier::Admin, "a");
    let (user, _) = RuleSet::load(&text("allow").replace("100", "999"), Tier::User, "u");
    check(&RuleSet::shipped(own_tools()).with(user).with(workspace).with(admin), &[], "yolo  make => deny");
}

#[test]
fn rules_must_match_their_examples() {
    let shell = |decision: &str, what: &str| rule(decision, what);
    for (text, ok) in [
        (shell("allow", "commandPrefix='git log'\nmatch=['git log -p', 'run_shell_command git log']\nnot_match=['git logout']"), true),
        (shell("allow", "commandPrefix='git log'\nmatch=['ls; git log']"), true),
        (shell("allow", "commandPrefix='git log'\nmatch=['git push']"), false),
        (shell("allow", "commandRegex='git (log|show)'\nnot_match=['git shower']"), false),
        (shell("deny", "commandPrefix='rm'\nmatch=['/bin/rm x', 'sudo rm x']\nnot_match=['rmdir']"), true),
        (shell("deny", "commandPrefix='rm'\nnot_match=['rm x']"), false),
        ("[[rule]]\ntoolName='write_file'\ndecision='deny'\npriority=1\nargsPattern='secret'\nmatch=['write_file {\"a\":\"secret\"}']\nnot_match=['write_file {\"a\":\"x\"}', 'read_file']".to_owned(), true),
        ("[[rule]]\nmcpName='s'\ntoolName='get'\ndecision='allow'\npriority=1\nmatch=['mcp_s_get', 'get']\nnot_match=['mcp_s_put']".to_owned(), true),
    ] {
        let (_, warnings) = load(&text, Tier::User);
        assert_eq!(warnings.is_empty(), ok, "{text}: {warnings:?}");
    }
}

/// A rule that would have restricted something and cannot be read leaves a question in its place.
#[test]
fn broken_rules_fail_closed() {
    let text = "\n\n[[rule]]\ntoolName='run_shell_command'\ndecision='deny'\npriority=500\ncommandRegex='('\n
        [[rule]]\ntoolName='run_shell_command'\ndecision='deny'\npriority=100\ncommandPrefix='curl'
        [[rule]]\ntoolName='read_file'\ndecision='allow'\npriority=100\nargsPattern='('";
    let (rules, warnings) = load(text, Tier::User);
    assert!(
        warnings[0].starts_with("f.toml:3: ") && warnings[0].ends_with("castor asks about everything that it may deny"),
        "{warnings:?}"
    );
    assert!(warnings[1].starts_with("f.toml:14: "), "{warnings:?}");
    check(
        &rules,
        &[],
        "yolo  make => ask\ndefault  ls => ask\nyolo!  make => deny\nyolo  curl x => deny\nyolo  ls ( => deny",
    );
    assert_eq!(ask(&rules, Mode::Default, true, "read_file"), Decision::Allow);
    // What names no tool that can be read may have meant any; so may a whole file.
    for text in ["[[rule]]\ndecision='deny'\npriority=1", "[[rule]]\ntoolName=5\ndecision='dney'", "[[rule"] {
        let (rules, warnings) = load(text, Tier::User);
        assert_eq!(warnings.len(), 1, "{text}");
        assert_eq!(ask(&rules, Mode::Yolo, true, "read_file"), Decision::Ask, "{text}");
    }
}

/// A server that is not trusted cannot talk its tools into anything, but out of it.
#[test]
fn annotations_of_others_only_make_stricter() {
    let annotated = |decision: &str, more: &str| {
        format!(
            "[[rule]]\nmcpName='*'\ntoolName='*'\ntoolAnnotations={{readOnlyHint=true}}\ndecision='{decision}'\npriority=9\n{more}\n"
        )
    };
    let plain = |decision: &str| format!("[[rule]]\nmcpName='web'\ntoolName='*'\ndecision='{decision}'\npriority=5\n");
    for (text, believed, want) in [
        (annotated("allow", ""), true, Decision::Allow),
        (annotated("allow", ""), false, Decision::Ask),
        (annotated("deny", ""), true, Decision::Deny),
        (annotated("deny", ""), false, Decision::Deny),
        (annotated("ask_user", "") + &plain("deny"), true, Decision::Ask),
        (annotated("ask_user", "") + &plain("deny"), false, Decision::Deny),
        (annotated("ask_user", "") + &plain("allow"), false, Decision::Ask),
        (annotated("allow", "") + &plain("deny"), false, Decision::Deny),
        (annotated("deny", "") + &plain("allow"), false, Decision::Deny),
        (annotated("allow", "modes=['yolo']") + &plain("allow"), false, Decision::Allow),
    ] {
        let (rules, warnings) = load(&text, Tier::User);
        assert_eq!(warnings, Vec::<String>::new(), "{text}");
        let (said, args, targets) = (json!({"readOnlyHint": true}), json!({}), Targets::default());
        let annotations = Some(Annotations { members: &said, trusted: believed });
        let query = Query::new("mcp_web_get", ToolKind::Other, &args, &targets);
        let origin = CallOrigin { server: Some("web"), annotations, ..CallOrigin::default() };
        let query = Query { origin, interactive: true, ..query };
        assert_eq!(decide(&rules, &query).decision, want, "believed: {believed}\n{text}");
    }
}

#[test]
fn always_denied_tool_is_hidden() {
    let spec = |name: &str| ToolSpec {
        name: name.to_owned().into(),
        title: "".into(),
        description: "".into(),
        kind: ToolKind::Other,
        traits: Default::default(),
        parameters: Schema::default(),
    };
    for (text, want) in [
        ("toolName='t'\ndecision='deny'\npriority=5", true),
        ("toolName='*'\ndecision='deny'\npriority=5", true),
        ("toolName='t'\ndecision='deny'\npriority=5\nargsPattern='x'", false),
        ("toolName='t'\ndecision='deny'\npriority=5\nmodes=['plan']", false),
        ("toolName='t'\ndecision='deny'\npriority=5\ninteractive=false", false),
        ("toolName='t'\ndecision='deny'\npriority=5\ninteractive=true", true),
        (
            "toolName='t'\ndecision='deny'\npriority=5\n[[rule]]\ntoolName='t'\ndecision='allow'\npriority=6\nmodes=['yolo']",
            false,
        ),
        ("toolName='u'\ndecision='deny'\npriority=5", false),
    ] {
        let (rules, _) = load(&format!("[[rule]]\n{text}"), Tier::User);
        assert_eq!(unconditional_deny(&rules, &spec("t"), None, true).is_some(), want, "{text}");
    }
    let shipped = rules("");
    let kept = ["run_shell_command", "write_file", "read_file", "unknown"];
    assert!(kept.iter().all(|it| unconditional_deny(&shipped, &spec(it), None, false).is_none()));
}

/// A yes for ever or for a session is one for the folders of the session.
#[test]
fn grant_does_not_reach_other_folders() {
    let lasting = rules(&rule("allow", "commandPrefix='make test'\nfolder='/w'"));
    let yes = [Grant::Commands { prefixes: vec!["make test".to_owned()] }];
    let decisions = |command| {
        let by_rule = shell(&lasting, Mode::Default, true, command, &[]);
        let by_grant = shell(&rules(""), Mode::Default, true, command, &yes);
        assert_eq!(by_rule.decision, by_grant.decision, "{command}");
        (by_rule.decision, by_grant.grant.is_some())
    };
    for command in ["make test", "make test -C sub", "make test -j 4", "make test -C /w/sub"] {
        assert_eq!(decisions(command), (Decision::Allow, false), "{command}");
    }
    for command in [
        "make test -C ../b",
        "make test -C/x",
        "make test --directory=$D",
        "make test -C sub/../../b",
        "make test -kC ../b",
        "make test --dir=../b",
        "make test -f ../b/Makefile",
    ] {
        assert_eq!(decisions(command), (Decision::Ask, false), "{command}");
    }
    let denied = rules(&rule("deny", "commandPrefix='make test'\nfolder='/w'"));
    assert_eq!(shell(&denied, Mode::Default, true, "make test -C ../b", &[]).decision, Decision::Deny);
}
