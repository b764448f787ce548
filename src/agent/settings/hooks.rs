//! Hooks in settings, with the layer of each.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{Sources, keys, mcp::pairs, resolve};
use castor_base::{
    hook::{Hook, HookEvent, HookSource, HookSubject},
    sandbox::ProgramSandbox,
};
use castor_tools::workspace::{Warning, settings::Scope};

/// Keys that Gemini CLI once had here.
const OLD: &[&str] = &["enabled", "disabled", "notifications"];
/// Longest timeout, in milliseconds: a day.
const MAX_TIMEOUT_MS: u64 = 86_400_000;

/// Hooks in settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HookSettings {
    /// In the order in which they run: the project's, the user's, the system's, those of extensions.
    pub hooks: Vec<Hook>,
    /// By name, or command, those that do not run.
    pub disabled: BTreeSet<String>,
}

/// Reads them; empty where `hooksConfig.enabled` says so. Whatever is not well formed is left out by itself.
pub fn hooks(sources: Sources<'_>) -> (HookSettings, Vec<Warning>) {
    let (mut rows, mut warnings) = (Vec::new(), Vec::new());
    for layer in &sources.layers.layers {
        let Some(value) = resolve::at(&layer.value, "hooks").and_then(Value::as_object) else { continue };
        let mut warn = |key: String, message: String| {
            warnings.push(Warning { origin: layer.file.to_string(), at: None, key: Some(key), message });
        };
        let source = match layer.scope {
            Scope::Workspace => HookSource::Project,
            Scope::Extension => HookSource::Extension,
            _ => HookSource::User,
        };
        for (name, groups) in value.iter().filter(|(name, _)| !OLD.contains(&name.as_str())) {
            let key = format!("hooks.{name}");
            match (HookEvent::parse(name), groups.as_array()) {
                (None, _) => warn(key, format!("is no event that hooks know and is ignored{}", meant(name))),
                (_, None) => warn(key, "should be a list; ignored".to_owned()),
                (Some(event), Some(groups)) => {
                    let found =
                        groups.iter().flat_map(|it| group((event, source), it, &mut |why| warn(key.clone(), why)));
                    rows.extend(found.map(|it| (rank(layer.scope), it)));
                }
            }
        }
    }
    rows.sort_by_key(|(rank, _)| *rank);
    let value = |path: &str| keys::find(path).and_then(|it| resolve::resolve(it, sources).value);
    if value("hooksConfig.enabled") == Some(Value::Bool(false)) {
        return (HookSettings::default(), warnings);
    }
    let disabled = value("hooksConfig.disabled");
    let disabled = disabled.as_ref().and_then(Value::as_array).into_iter().flatten();
    let disabled = disabled.filter_map(Value::as_str).map(str::to_owned).collect();
    (HookSettings { hooks: rows.into_iter().map(|(_, it)| it).collect(), disabled }, warnings)
}

/// The event whose name this nearly is, in words.
fn meant(name: &str) -> String {
    let scored = HookEvent::ALL.iter().filter_map(|it| Some((keys::edits(name, it.as_str(), 3)?, it.as_str())));
    scored.min_by_key(|it| it.0).map(|it| format!("; did you mean {}?", it.1)).unwrap_or_default()
}

fn rank(scope: Scope) -> u8 {
    match scope {
        Scope::Workspace => 0,
        Scope::User => 1,
        Scope::Extension => 3,
        Scope::SystemDefaults | Scope::SystemOverrides => 2,
    }
}

fn group((event, source): (HookEvent, HookSource), it: &Value, warn: &mut dyn FnMut(String)) -> Vec<Hook> {
    let Some(hooks) = it.get("hooks").and_then(Value::as_array) else {
        warn("an entry without a list `hooks`; ignored".to_owned());
        return Vec::new();
    };
    let matcher = it.get("matcher").and_then(Value::as_str).map(str::to_owned);
    let tools = event.row().subject == HookSubject::Tool;
    if let Some(odd) = matcher.as_ref().filter(|it| tools && *it != "*" && regex::Regex::new(it).is_err()) {
        warn(format!("the matcher {odd:?} is no regular expression that castor can read: it is taken as a name"));
    }
    let sequential = it.get("sequential").and_then(Value::as_bool).unwrap_or_default();
    let mut res = Vec::new();
    for it in hooks {
        match it.as_object().ok_or("a hook that is no object").and_then(|it| hook(event, it)) {
            Ok(hook) => {
                let sandbox = sandbox(source, it, warn);
                res.push(Hook { matcher: matcher.clone(), sequential, source, sandbox, ..hook });
            }
            Err(why) => warn(format!("{why}; ignored")),
        }
    }
    res
}

/// What its own settings say of its sandbox. A workspace or an extension must not widen what holds it.
fn sandbox(source: HookSource, it: &Value, warn: &mut dyn FnMut(String)) -> ProgramSandbox {
    match (source, it.get("sandbox")) {
        (HookSource::User, said) => ProgramSandbox::read(said).unwrap_or_else(|why| {
            warn(format!("`sandbox` of a hook {why}"));
            ProgramSandbox::default()
        }),
        (_, None) => ProgramSandbox::default(),
        (_, Some(_)) => {
            warn("`sandbox` of a hook counts in your own settings only; ignored".to_owned());
            ProgramSandbox::default()
        }
    }
}

fn hook(event: HookEvent, it: &Map<String, Value>) -> Result<Hook, &'static str> {
    let text = |key: &str| it.get(key).and_then(Value::as_str).map(str::trim).filter(|it| !it.is_empty());
    if text("type") != Some("command") {
        return Err("a hook whose `type` is not command");
    }
    let timeout_ms = match it.get("timeout") {
        None | Some(Value::Null) => Hook::TIMEOUT_MS,
        Some(it) => {
            let ms = it.as_u64().filter(|it| (1..=MAX_TIMEOUT_MS).contains(it));
            ms.ok_or("a hook whose `timeout` is not a number of milliseconds, a day at most")?
        }
    };
    Ok(Hook {
        event,
        matcher: None,
        sequential: false,
        observes: it.get("observes").and_then(Value::as_bool).unwrap_or_default(),
        command: text("command").ok_or("a hook without a `command`")?.to_owned(),
        name: text("name").map(str::to_owned),
        description: text("description").map(str::to_owned),
        timeout_ms,
        env: pairs(it, "env"),
        source: HookSource::User,
        scripts: Vec::new(),
        sandbox: ProgramSandbox::default(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{HookSettings, hooks};
    use crate::settings::Sources;
    use castor_base::{hook::HookSource, path::AbsPath};
    use castor_hands::secrets::Env;
    use castor_tools::workspace::settings::{Layer, Layers, Scope, WorkspaceFiles};

    fn read(layers: &[(Scope, Value)]) -> (HookSettings, String) {
        let layer = |(scope, value): &(Scope, Value)| {
            let (value, written) = (value.clone(), value.clone());
            Layer { scope: *scope, file: AbsPath::new("/f").unwrap(), raw: written, value }
        };
        let layers = layers.iter().map(layer).collect();
        let layers = Layers { layers, workspace: WorkspaceFiles::Read, warnings: Vec::new() };
        let (found, warnings) = hooks(Sources { layers: &layers, env: &Env::default(), flags: &[] });
        (found, warnings.iter().map(|it| format!("{it}\n")).collect())
    }

    fn one(command: &str) -> Value {
        json!({"BeforeTool": [{"hooks": [{"type": "command", "command": command}]}]})
    }

    #[test]
    fn every_member_is_read() {
        let hook = json!({"type": "command", "command": " c ", "name": "n", "description": "d", "timeout": 5, "env": {"A": 1},
            "observes": true});
        let hooks = json!({"BeforeTool": [{"matcher": "m", "sequential": true, "hooks": [hook]}]});
        let (found, warnings) = read(&[(Scope::User, json!({ "hooks": hooks }))]);
        let it = &found.hooks[0];
        assert_eq!((it.command.as_str(), it.key(), it.timeout_ms, it.sequential), ("c", "n", 5, true));
        assert_eq!((it.matcher.as_deref(), it.env.as_slice()), (Some("m"), &[("A".to_owned(), "1".to_owned())][..]));
        assert_eq!((it.source, it.observes, warnings.as_str()), (HookSource::User, true, ""));
    }

    #[test]
    fn the_projects_come_first_and_say_nothing_of_others() {
        let config = json!({"enabled": false, "disabled": ["u"]});
        let (found, _) = read(&[
            (Scope::SystemDefaults, json!({"hooks": one("s")})),
            (Scope::User, json!({"hooks": one("u")})),
            (Scope::Workspace, json!({"hooks": one("p"), "hooksConfig": config})),
        ]);
        let rows: Vec<(&str, HookSource)> = found.hooks.iter().map(|it| (it.key(), it.source)).collect();
        assert_eq!(rows, [("p", HookSource::Project), ("u", HookSource::User), ("s", HookSource::User)]);
        assert!(found.disabled.is_empty());
        let (found, _) = read(&[(Scope::User, json!({"hooks": one("u"), "hooksConfig": {"disabled": ["u"]}}))]);
        assert!(found.disabled.contains("u"));
        let (found, _) = read(&[(Scope::User, json!({"hooks": one("u"), "hooksConfig": {"enabled": false}}))]);
        assert!(found.hooks.is_empty());
    }

    #[test]
    fn what_is_malformed_is_told_and_takes_nothing_with_it() {
        let good = json!({"type": "command", "command": "c"});
        let (found, warnings) = read(&[(
            Scope::User,
            json!({"hooks": {
                "disabled": ["x"], "BeforeTools": [], "AfterTool": {"hooks": []}, "SessionEnd": [{"matcher": "exit"}],
                "BeforeTool": [null, {"matcher": "(?!x)", "hooks": [
                    5, {"type": "plugin", "command": "c"}, {"type": "command"}, good,
                    {"type": "command", "command": "c", "timeout": 0}, {"type": "command", "command": "c", "timeout": "1"}
                ]}]
            }}),
        )]);
        assert_eq!(found.hooks.len(), 1);
        expect_test::expect![[r#"
            /f: hooks.BeforeTools: is no event that hooks know and is ignored; did you mean BeforeTool?
            /f: hooks.AfterTool: should be a list; ignored
            /f: hooks.SessionEnd: an entry without a list `hooks`; ignored
            /f: hooks.BeforeTool: an entry without a list `hooks`; ignored
            /f: hooks.BeforeTool: the matcher "(?!x)" is no regular expression that castor can read: it is taken as a name
            /f: hooks.BeforeTool: a hook that is no object; ignored
            /f: hooks.BeforeTool: a hook whose `type` is not command; ignored
            /f: hooks.BeforeTool: a hook without a `command`; ignored
            /f: hooks.BeforeTool: a hook whose `timeout` is not a number of milliseconds, a day at most; ignored
            /f: hooks.BeforeTool: a hook whose `timeout` is not a number of milliseconds, a day at most; ignored
        "#]]
        .assert_eq(&warnings);
    }
}
