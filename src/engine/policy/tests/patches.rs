//! Policy on patches: rules for single files hold for each file of one.

use super::{
    super::{ToolLists, unconditional_deny},
    tools::path,
    *,
};
use castor_base::{patch::file_calls, tool::TargetPart};

/// A patch as the world resolves it, of lines such as `add PATH`, `update PATH`, `delete PATH`, `move PATH TO`.
fn patch_targets(files: &str) -> (Value, Targets) {
    let section = |it: &str| match it.split_whitespace().collect::<Vec<_>>()[..] {
        ["add", path] => format!("*** Add File: {path}\n+x\n"),
        ["update", path] => format!("*** Update File: {path}\n@@\n-old\n+new\n"),
        ["delete", path] => format!("*** Delete File: {path}\n"),
        ["move", path, to] => format!("*** Update File: {path}\n*** Move to: {to}\n"),
        _ => panic!("{it}"),
    };
    let text: String = files.split(", ").map(section).collect();
    let args = json!({ "input": format!("*** Begin Patch\n{text}*** End Patch") });
    let mut res = Targets::default();
    for call in file_calls(&args) {
        let paths = vec![path(&call.path, Access::Write)];
        res.paths.extend(paths.clone());
        let targets = Targets { title: call.path, paths, ..Targets::default() };
        res.parts.push(TargetPart { tool: call.tool.to_owned(), args: call.args, targets });
    }
    (args, res)
}

/// Rules that name the tools for single files hold for each file of a patch, whatever is done to it.
#[test]
fn patches_file_by_file() {
    let check = |mode: &str, more: &str, files: &str, expected: &str| {
        let (args, targets) = patch_targets(files);
        let interactive = !mode.ends_with('!');
        let mode = Mode::parse(mode.trim_end_matches('!')).unwrap();
        let query = Query { mode, interactive, ..Query::new("apply_patch", ToolKind::Edit, &args, &targets) };
        let got = decide(&rules(more), &query);
        let grant = if got.grant == Some(Grant::Edits) { " edits" } else { "" };
        let why = got.deny_message.as_deref().or(got.why.as_deref()).unwrap_or_default();
        assert_eq!(format!("{}{grant}", word(got.decision)), expected, "{files} {more}: {} {why}", got.rule);
        format!("{} {why}", got.rule)
    };
    let three = "update /w/a, add /w/b, delete /w/c";
    check("default", "", three, "ask edits");
    check("default!", "", three, "deny");
    check("autoEdit", "", three, "allow");
    check("yolo", "", three, "allow");
    check("plan", "", three, "deny");
    // What one file asks, all ask.
    for guarded in ["add /w/.git/hooks/x", "delete /w/.vscode/tasks.json", "move /w/x /w/.castor/y", "update /w/.env"] {
        for mode in ["autoEdit", "yolo"] {
            check(mode, "", &format!("{three}, {guarded}"), "ask");
        }
    }
    for outside in ["move /x/y /w/z", "move /w/z /x/y", "add /x/y"] {
        check("autoEdit", "", &format!("{three}, {outside}"), "ask");
    }
    let why = check("yolo", "", "update /w/a, add /w/.git/config", "ask");
    assert!(why.contains("/w/.git/config: "), "{why}");
    let rule = |tool: &str, decision: &str, args: &str| {
        let args = if args.is_empty() { String::new() } else { format!("argsPattern = '\"file_path\":\"{args}'\n") };
        format!("[[rule]]\ntoolName = '{tool}'\n{args}decision = '{decision}'\npriority = 100\n")
    };
    // A denial of any of their names, for one file of many.
    for tool in ["write_file", "replace", "edit", "apply_patch"] {
        for what in ["update /w/c", "add /w/c", "delete /w/c", "move /w/c /w/d", "move /w/d /w/c"] {
            let said = check("yolo", &rule(tool, "deny", "/w/c"), &format!("update /w/a, {what}, add /w/b"), "deny");
            assert!(said.contains("/w/c: "), "{said}");
        }
        check("yolo", &rule(tool, "deny", "/w/z"), three, "allow");
        check("autoEdit", &rule(tool, "ask_user", "/w/c"), three, "ask");
        check("autoEdit", &rule(tool, "ask_user", ""), three, "ask edits");
    }
    // An allowance is for what its tool does, and not for more.
    check("default!", &rule("apply_patch", "allow", ""), three, "allow");
    check("default!", &rule("replace", "allow", ""), "update /w/a, update /w/b", "allow");
    check("default!", &rule("edit", "allow", ""), "update /w/a", "allow");
    check("default!", &rule("replace", "allow", ""), "delete /w/a", "deny");
    check("default!", &rule("write_file", "allow", ""), "add /w/a, delete /w/b, move /w/c /w/d", "allow");
    check("default!", &rule("replace", "allow", "/w/a"), "update /w/a, update /w/b", "deny");
    check("default!", &(rule("write_file", "allow", "") + &rule("replace", "allow", "")), three, "allow");
}

/// A list of tools that names one for single files takes the patch in; one that excludes such a tool leaves it out.
#[test]
fn patches_in_lists_of_tools() {
    let spec = own_tools().iter().find(|it| it.name == "apply_patch").unwrap();
    let hidden = |lists: ToolLists| {
        let rules = rules("").with(RuleSet::from_settings(&lists));
        unconditional_deny(&rules, spec, None, true).is_some()
    };
    let names = |it: &[&str]| it.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    for (exclude, expected) in
        [("write_file", true), ("replace", true), ("edit", true), ("apply_patch", true), ("glob", false)]
    {
        assert_eq!(hidden(ToolLists { exclude: names(&[exclude]), ..ToolLists::default() }), expected, "{exclude}");
    }
    for core_allows in [true, false] {
        for (core, expected) in [("replace", false), ("write_file", false), ("apply_patch", false), ("glob", true)] {
            let lists = ToolLists { core: Some(names(&[core, "read_file"])), core_allows, ..ToolLists::default() };
            assert_eq!(hidden(lists), expected, "{core} {core_allows}");
        }
    }
}
