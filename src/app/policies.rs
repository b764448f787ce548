//! The rules of a session: castor's own, the settings', and those of policy files.

use crate::{
    app::settings::{self, Sources},
    engine::policy::{Rule, Rules, Tier},
    world::workspace::{
        ground::Ground,
        policies::{self, Author},
        saved,
    },
};

/// The rules for a folder.
pub struct Found {
    pub rules: Rules,
    /// For the user.
    pub warnings: Vec<String>,
    /// Whether answers may hold for ever.
    pub saves: bool,
}

/// Reads everything that makes rules for a folder.
pub fn rules(ground: &Ground) -> Found {
    let layers = ground.layers();
    let sources = Sources { layers: &layers, env: &ground.env, flags: &[] };
    let mut rules = Rules::shipped().with(Rules::of_settings(&settings::lists(sources)));
    let (found, warnings) = ground.policies(&layers);
    let mut warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    // What was allowed for ever is switched off with the answers that do so.
    let no_saved = settings::Settings::merge(sources).0.disable_always_allow;
    for it in found {
        if no_saved && it.author == Author::User && it.file.as_path().ends_with(saved::FILE) {
            continue;
        }
        let (more, wrong) = read(&it);
        rules = rules.with(more);
        warnings.extend(wrong);
    }
    Found { rules, warnings, saves: settings::may_save(sources) }
}

fn read(it: &policies::PolicyFile) -> (Vec<Rule>, Vec<String>) {
    let tier = match it.author {
        Author::Workspace => Tier::Workspace,
        Author::User => Tier::User,
        Author::System => Tier::Admin,
    };
    let file = it.file.to_string();
    match &it.text {
        Some(text) => Rules::load(text, tier, &file),
        // Said where it was read.
        None => (vec![Rule::unread(tier, &file)], Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::rules;
    use crate::{
        base::{
            ids::CallId,
            log::{Decision, Grant, Lasting, Mode},
            path::AbsPath,
            tool::{Access, TargetPath, Targets, ToolCall, ToolKind},
        },
        engine::policy::{self, Query, Rules},
        world::{
            disk,
            secrets::Env,
            workspace::{ground, saved},
        },
    };

    fn ask(rules: &Rules, tool: &str, kind: ToolKind, args: &Value, mode: Mode) -> Decision {
        let path = AbsPath::new("/w/a").unwrap();
        let target = TargetPath { real: path.clone(), path, access: Access::Write, line: None, in_roots: true };
        let targets = Targets { paths: vec![target], ..Targets::default() };
        let query = Query { mode, ..Query::new(tool, kind, args, &targets) };
        policy::explain(rules, &query).verdict.decision
    }

    fn lasting(tool: &str, args: Value, grant: &Grant, mode: Mode) -> Option<Lasting> {
        let call = ToolCall { id: CallId::from("c"), name: tool.to_owned(), args };
        policy::lasting(&call, grant, None, mode)
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
        let save = |it: Option<Lasting>| saved::add(&home, &it.unwrap()).unwrap();
        save(lasting("run_shell_command", shell("git push"), &commands, Mode::Default));
        save(lasting("edit", json!({"file_path": "a.b"}), &Grant::Edits, Mode::Default));
        let read = Grant::Tool { tool: "read_file".to_owned() };
        assert_eq!(lasting("read_file", json!({}), &read, Mode::Default), None);
        let fetch = Grant::Tool { tool: "web_fetch".to_owned() };
        save(lasting("web_fetch", json!({}), &fetch, Mode::AutoEdit));

        let found = rules(&ground::look(&env, &root));
        assert_eq!(found.warnings, Vec::<String>::new());
        assert!(!found.saves);
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
        let fetch = |mode| ask(&found.rules, "web_fetch", ToolKind::Fetch, &json!({}), mode);
        assert_eq!((fetch(Mode::Default), fetch(Mode::Yolo)), (Decision::Ask, Decision::Allow));

        std::fs::write(home.join("settings.json"), r#"{"security": {"enablePermanentToolApproval": true}}"#).unwrap();
        assert!(rules(&ground::look(&env, &root)).saves);
        let never = r#"{"security": {"enablePermanentToolApproval": true, "disableAlwaysAllow": true}}"#;
        std::fs::write(home.join("settings.json"), never).unwrap();
        let found = rules(&ground::look(&env, &root));
        assert!(!found.saves);
        let args = shell("git push");
        assert_eq!(ask(&found.rules, "run_shell_command", ToolKind::Execute, &args, Mode::Default), Decision::Ask);
    }
}
