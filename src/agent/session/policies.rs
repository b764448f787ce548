//! Policy rules of a session: built-in ones, those of settings and of policy files.

use std::sync::LazyLock;

use crate::settings::{self, Flag, Sources};
use castor_base::{
    log::{Decision, GRANTS_FILE, Mode},
    path::AbsPath,
    tool::ToolSpec,
};
use castor_engine::{
    policy::{self, PolicyFile, Rule, RuleSet, Tier},
    scheduler::{self, SavedAnswers},
    session_tools,
};
use castor_hands::{process::Groups, secrets::Env};
use castor_tools::{
    builtin::builtins,
    workspace::{
        folder_config::FolderConfig,
        policies::{self, PolicyAuthor, PolicyPaths},
        settings::{Layers, Scope, settings_files},
    },
};

/// The rules for a folder.
pub struct FolderRules {
    pub rules: RuleSet,
    /// For the user.
    pub warnings: Vec<String>,
    /// Whether answers may hold for ever.
    pub saves: SavedAnswers,
}

/// Castor's own tools, built in or the session's.
pub fn own_tools() -> &'static [ToolSpec] {
    static OWN: LazyLock<Vec<ToolSpec>> = LazyLock::new(|| {
        let builtins = builtins(Groups::default());
        let of_servers = scheduler::resource_tools().iter().cloned();
        let more = session_tools::delegate::tools_of_agents()
            .into_iter()
            .chain([session_tools::skills::spec(&[])])
            .chain(of_servers);
        session_tools::own_tools(builtins.iter().map(|it| it.spec()).chain(more))
    });
    &OWN
}

/// Castor's own rules, read once: they cannot change while it runs, and take longer than all else that a session begins
/// with.
static SHIPPED: LazyLock<RuleSet> = LazyLock::new(|| RuleSet::shipped(own_tools()));

/// Reads castor's own rules, beside the loop.
pub fn load_shipped() {
    LazyLock::force(&SHIPPED);
}

/// Reads everything that makes rules for a folder.
///
/// `flags`: settings of the command line.
pub fn rules(ground: &FolderConfig, flags: &[Flag]) -> FolderRules {
    rules_over(SHIPPED.clone(), ground, flags)
}

/// What would be done without a question if the folder were trusted as it is, and is not so now, a line each.
pub fn allowed_if_trusted(ground: &FolderConfig, env: &Env) -> Vec<String> {
    let lines_of = |ground: &FolderConfig| {
        let found = rules_over(RuleSet::default(), ground, &[]);
        let allow = found.rules.iter().filter(|it| it.decision == Decision::Allow);
        let mut lines: Vec<String> = allow.map(|it| it.name(&it.tools.join(", "))).collect();
        let layers = ground.layers();
        let sources = Sources { layers, env: &ground.env, flags: &[] };
        let mode = settings::Settings::merge(sources).0.approval_mode;
        if mode > Mode::Default {
            lines.push(format!("general.defaultApprovalMode: {}", mode.as_str()));
        }
        lines
    };
    let now = lines_of(ground);
    let folder = format!("{}/", ground.folder);
    let new = lines_of(&ground.clone().with_trust(env, "")).into_iter().filter(|it| !now.contains(it));
    new.map(|it| it.strip_prefix(&folder).unwrap_or(&it).to_owned()).collect()
}

fn rules_over(rules: RuleSet, ground: &FolderConfig, flags: &[Flag]) -> FolderRules {
    let layers = ground.layers();
    let sources = Sources { layers, env: &ground.env, flags };
    let mut rules = rules.with(RuleSet::from_settings(&settings::lists(sources)));
    let (named, odd) = read_policy_paths(&ground.env, settings::policy_paths(sources));
    let (found, warnings) = ground.policies(layers, &named);
    let mut warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    let unread = unreadable_settings(ground, layers).into_iter().chain(settings::invalid_deny_lists(sources));
    rules = rules.with(unread.map(|(scope, what)| Rule::broken_file(tier_of(scope), &what)).collect::<Vec<_>>());
    for (tier, path) in odd {
        warnings.push(format!(
            "{path} is no absolute path and not below ~/; castor asks about everything that it may deny"
        ));
        rules = rules.with(vec![Rule::broken_file(tier, &path)]);
    }
    // What was allowed for ever is switched off with the answers that do so.
    let no_saved = settings::bars_saved(sources);
    for it in found {
        if no_saved && it.author == PolicyAuthor::User && it.file.as_path().ends_with(GRANTS_FILE) {
            continue;
        }
        let (more, wrong) = read(&it);
        rules = rules.with(more.for_folder(&ground.folder));
        warnings.extend(wrong);
    }
    FolderRules { rules, warnings, saves: settings::saved_answers(sources) }
}

/// Settings that count for nothing, as they cannot be read: what they would have denied is asked about. It is said where
/// they are read.
fn unreadable_settings(ground: &FolderConfig, layers: &Layers) -> Vec<(Scope, String)> {
    let all =
        settings_files(&ground.env, Some(&ground.folder)).into_iter().map(|(scope, file)| (scope, file.to_string()));
    all.filter(|(_, file)| layers.unread_files().any(|it| it.origin == *file)).collect()
}

fn tier_of(scope: Scope) -> Tier {
    match scope {
        Scope::SystemDefaults | Scope::Extension | Scope::User => Tier::User,
        Scope::Workspace => Tier::Workspace,
        Scope::SystemOverrides => Tier::Admin,
    }
}

/// What settings name, and what cannot be meant.
fn read_policy_paths(env: &Env, (user, admin): (Vec<String>, Vec<String>)) -> (PolicyPaths, Vec<(Tier, String)>) {
    let home = env.get("HOME").and_then(AbsPath::new);
    let place = |it: &String| AbsPath::written(it, home.as_ref());
    let mut odd = Vec::new();
    let mut places = |tier, all: Vec<String>| -> Vec<AbsPath> {
        let (known, strange): (Vec<String>, Vec<String>) = all.into_iter().partition(|it| place(it).is_some());
        odd.extend(strange.into_iter().map(|it| (tier, it)));
        known.iter().filter_map(place).collect()
    };
    let res = PolicyPaths { user: places(Tier::User, user), admin: places(Tier::Admin, admin) };
    (res, odd)
}

fn read(it: &policies::PolicyFile) -> (PolicyFile, Vec<String>) {
    let tier = match it.author {
        PolicyAuthor::Extension => Tier::Extension,
        PolicyAuthor::Workspace => Tier::Workspace,
        PolicyAuthor::User => Tier::User,
        PolicyAuthor::System => Tier::Admin,
    };
    let file = it.file.to_string();
    match &it.text {
        Some(text) => {
            let (found, mut warnings) = RuleSet::load(text, tier, &file);
            warnings.extend(policy::misspelt_tools(&found.rules, own_tools()));
            (found, warnings)
        }
        // Said where it was read.
        None => (vec![Rule::broken_file(tier, &file)].into(), Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{own_tools, rules};
    use castor_base::{
        ids::CallId,
        log::{Decision, Grant, Mode, PersistentGrant},
        path::AbsPath,
        tool::{Access, TargetPath, Targets, ToolCall, ToolKind, find_traits},
    };
    use castor_engine::{
        policy::{self, Query, RuleSet},
        scheduler::SavedAnswers,
    };
    use castor_hands::{disk, secrets::Env};
    use castor_tools::workspace::{folder_config, saved};

    /// What the engine's own tests decide about.
    #[test]
    fn the_engine_tests_these_tools() {
        let actual = serde_json::to_string_pretty(own_tools()).unwrap() + "\n";
        expect_test::expect_file!["../../engine/testing/own_tools.json"].assert_eq(&actual);
    }

    fn ask(rules: &RuleSet, tool: &str, kind: ToolKind, args: &Value, mode: Mode) -> Decision {
        let path = AbsPath::new("/w/a").unwrap();
        let target = TargetPath::in_root(path, Access::Write);
        let targets = Targets { paths: vec![target], ..Targets::default() };
        let query = Query { mode, ..Query::new(tool, kind, args, &targets) };
        policy::explain(rules, &query).verdict.decision
    }

    fn lasting(tool: &str, args: Value, grant: &Grant, mode: Mode) -> Option<PersistentGrant> {
        let call = ToolCall { id: CallId::from("c"), name: tool.to_owned(), args };
        policy::persistent_grant(&call, find_traits(own_tools(), tool), grant, None, mode)
    }

    /// What a yes to a folder opens, and the user's own rules do not.
    #[test]
    #[allow(clippy::disallowed_methods)]
    fn a_yes_is_told_what_it_allows() {
        let temp = tempfile::tempdir().unwrap();
        let root = disk::real_path(&AbsPath::new(temp.path()).unwrap()).unwrap();
        let env = Env::from_pairs([("HOME", root.join("home").to_string().as_str())]);
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let own = r#"{"tools": {"allowed": ["web_fetch"]}}"#;
        let theirs = r#"{"tools": {"allowed": ["web_fetch", "run_shell_command(make)"]},
            "general": {"defaultApprovalMode": "auto_edit"}}"#;
        let rule = |decision: &str, command: &str| {
            let which = format!("toolName = 'run_shell_command'\ncommandPrefix = '{command}'\n");
            format!("[[rule]]\n{which}decision = '{decision}'\npriority = 1\n")
        };
        write("home/.castor/settings.json", own);
        write("ws/.castor/settings.json", theirs);
        write("ws/.castor/policies/a.toml", &(rule("allow", "touch") + &rule("deny", "cp")));
        let ground = folder_config::load(&env, &root.join("ws"));
        assert_eq!(
            super::allowed_if_trusted(&ground, &env),
            [
                // Its `tools.allowed` counts for nothing.
                ".castor/policies/a.toml:1: run_shell_command touch",
                "general.defaultApprovalMode: autoEdit",
            ]
        );
        assert!(super::allowed_if_trusted(&ground.clone().with_trust(&env, ""), &env).is_empty());
    }

    /// The user's settings name policies; a workspace's cannot, and a place that cannot be meant closes.
    #[test]
    #[allow(clippy::disallowed_methods)]
    fn settings_name_policies() {
        let temp = tempfile::tempdir().unwrap();
        let root = disk::real_path(&AbsPath::new(temp.path()).unwrap()).unwrap();
        let pairs = [("HOME", root.to_string()), ("CASTOR_TRUST_WORKSPACE", "true".to_owned())];
        let env = Env::from_pairs(pairs.iter().map(|(name, value)| (*name, value.as_str())));
        let ws = root.join("ws");
        for dir in ["ws/.castor", ".castor"] {
            std::fs::create_dir_all(root.join(dir)).unwrap();
        }
        let rule =
            |decision: &str| format!("[[rule]]\ntoolName = 'web_fetch'\ndecision = '{decision}'\npriority = 1\n");
        std::fs::write(root.join("more.toml"), rule("allow")).unwrap();
        std::fs::write(root.join("admin.toml"), rule("deny")).unwrap();
        let set = |file: &str, text: &str| std::fs::write(root.join(file), text).unwrap();
        let fetch = || {
            let found = rules(&folder_config::load(&env, &ws), &[]);
            (ask(&found.rules, "web_fetch", ToolKind::Fetch, &json!({}), Mode::Default), found.warnings.len())
        };
        set("ws/.castor/settings.json", r#"{"policyPaths": ["~/more.toml"]}"#);
        assert_eq!(fetch().0, Decision::Ask);
        set(".castor/settings.json", r#"{"policyPaths": ["~/more.toml"]}"#);
        assert_eq!(fetch(), (Decision::Allow, 0));
        set(".castor/settings.json", r#"{"policyPaths": ["~/more.toml", "more.toml"]}"#);
        assert_eq!(fetch(), (Decision::Ask, 1));
        let admin = r#"{"policyPaths": ["~/more.toml"], "adminPolicyPaths": ["~/admin.toml"]}"#;
        set(".castor/settings.json", admin);
        assert_eq!(fetch(), (Decision::Deny, 0));
    }

    /// A broken file may have denied anything.
    #[test]
    #[allow(clippy::disallowed_methods)]
    fn settings_that_cannot_be_read_make_everything_a_question() {
        let temp = tempfile::tempdir().unwrap();
        let root = disk::real_path(&AbsPath::new(temp.path()).unwrap()).unwrap();
        let pairs = [("HOME", root.to_string()), ("CASTOR_TRUST_WORKSPACE", "true".to_owned())];
        let env = Env::from_pairs(pairs.iter().map(|(name, value)| (*name, value.as_str())));
        for dir in ["ws/.castor", ".castor"] {
            std::fs::create_dir_all(root.join(dir)).unwrap();
        }
        let check = |file: &str, text: &str, mode: Mode, want: Decision| {
            std::fs::write(root.join(file), text).unwrap();
            let found = rules(&folder_config::load(&env, &root.join("ws")), &[]);
            let got = ask(&found.rules, "run_shell_command", ToolKind::Execute, &json!({"command": "ls"}), mode);
            assert_eq!(got, want, "{file}: {text}");
            std::fs::write(root.join(file), "{}").unwrap();
        };
        for file in [".castor/settings.json", "ws/.castor/settings.json"] {
            check(file, r#"{"tools": {"exclude": ["web_fetch"]}}"#, Mode::Yolo, Decision::Allow);
            check(file, r#"{"tools": {"exclude": ["run_shell_command"]}}"#, Mode::Yolo, Decision::Deny);
            check(file, r#"{"tools": {"exclude": ["run_shell_command"]}"#, Mode::Yolo, Decision::Ask);
            check(file, "[]", Mode::Default, Decision::Ask);
        }
        check(".castor/settings.json", r#"{"tools": {"exclude": "run_shell_command"}}"#, Mode::Yolo, Decision::Ask);
        check(".castor/settings.json", r#"{"model": {"name": 3}}"#, Mode::Yolo, Decision::Allow);
        // What a workspace may not say, and what it says of it wrongly, takes nothing.
        check("ws/.castor/settings.json", r#"{"policyPaths": ["/x"]}"#, Mode::Yolo, Decision::Allow);
    }

    /// What is allowed for ever is allowed in the next session, and nothing more.
    #[test]
    #[allow(clippy::disallowed_methods)]
    fn a_yes_for_ever_is_as_narrow_as_its_question() {
        let temp = tempfile::tempdir().unwrap();
        let root = disk::real_path(&AbsPath::new(temp.path()).unwrap()).unwrap();
        let home = root.join("h");
        let text = home.to_string();
        let env = Env::from_pairs([("HOME", root.to_string().as_str()), ("CASTOR_HOME", text.as_str())]);
        let shell = |command: &str| json!({ "command": command });
        let commands = Grant::Commands { prefixes: vec!["git push".to_owned()] };
        let save = |it: Option<PersistentGrant>| saved::add(&home, &root.join("w"), &it.unwrap()).unwrap();
        save(lasting("run_shell_command", shell("git push"), &commands, Mode::Default));
        save(lasting("edit", json!({"file_path": "a.b"}), &Grant::Edits, Mode::Default));
        let read = Grant::Tool { tool: "read_file".to_owned() };
        assert_eq!(lasting("read_file", json!({}), &read, Mode::Default), None);
        let fetch = Grant::Hosts { tool: "web_fetch".to_owned(), hosts: vec!["a.b".to_owned()] };
        save(lasting("web_fetch", json!({ "url": "https://a.b/c" }), &fetch, Mode::AutoEdit));
        assert_eq!(lasting("web_fetch", json!({ "url": "https://a.b.c/" }), &fetch, Mode::AutoEdit), None);

        std::fs::create_dir_all(root.join("w/sub")).unwrap();
        // Elsewhere it is another command, and another file.
        let elsewhere = rules(&folder_config::load(&env, &root), &[]).rules;
        let (push, fetch) = (shell("git push"), json!({}));
        assert_eq!(ask(&elsewhere, "run_shell_command", ToolKind::Execute, &push, Mode::Default), Decision::Ask);
        assert_eq!(ask(&elsewhere, "web_fetch", ToolKind::Fetch, &fetch, Mode::Yolo), Decision::Allow);
        let found = rules(&folder_config::load(&env, &root.join("w/sub")), &[]);
        assert_eq!(found.warnings, Vec::<String>::new());
        assert_eq!(found.saves, SavedAnswers::Commands);
        let run =
            |command: &str| ask(&found.rules, "run_shell_command", ToolKind::Execute, &shell(command), Mode::Default);
        assert_eq!(run("git push origin main"), Decision::Allow);
        for other in ["git pull", "git push --force", "git push && make", "git push $(make)", "git push > f"] {
            assert_eq!(run(other), Decision::Ask, "{other}");
        }
        let edit = |file: &str| {
            ask(&found.rules, "replace", ToolKind::Edit, &json!({"file_path": file, "old_string": "x"}), Mode::Default)
        };
        assert_eq!((edit("a.b"), edit("axb"), edit("z/a.b")), (Decision::Allow, Decision::Ask, Decision::Ask));
        let fetch = |mode, url: &str| ask(&found.rules, "web_fetch", ToolKind::Fetch, &json!({ "url": url }), mode);
        let a = "https://a.b/x";
        assert_eq!((fetch(Mode::Default, a), fetch(Mode::Auto, a)), (Decision::Ask, Decision::Allow));
        for other in ["https://a.b.c/", "https://axb/", "https://a.b:8080/", "https://a.b@c/", "http://a.b/"] {
            assert_eq!(fetch(Mode::Auto, other), Decision::Ask, "{other}");
        }

        std::fs::write(home.join("settings.json"), r#"{"security": {"enablePermanentToolApproval": true}}"#).unwrap();
        assert_eq!(rules(&folder_config::load(&env, &root), &[]).saves, SavedAnswers::All);
        let never = r#"{"security": {"enablePermanentToolApproval": true, "disableAlwaysAllow": true}}"#;
        std::fs::write(home.join("settings.json"), never).unwrap();
        let found = rules(&folder_config::load(&env, &root), &[]);
        assert_eq!(found.saves, SavedAnswers::Nothing);
        let args = shell("git push");
        assert_eq!(ask(&found.rules, "run_shell_command", ToolKind::Execute, &args, Mode::Default), Decision::Ask);
    }
}
