//! Settings layers as text, and the merged values.

use std::io;

use super::{Flag, Settings, Sources, check, explain, without_effect};
use castor_base::{limits::Limits, log::Mode, path::AbsPath};
use castor_hands::secrets::Env;
use castor_tools::workspace::{
    Reader,
    settings::{Layers, read},
};

/// Files by a short name: `defaults`, `gemini`, `castor` (the user's), `ws-gemini`, `ws`, `system`.
fn layers(files: &[(&str, &str)], env: &Env, trusted: bool) -> Layers {
    let path = |name: &str| match name {
        "defaults" => "/etc/castor/system-defaults.json",
        "gemini" => "/h/.gemini/settings.json",
        "castor" => "/h/.castor/settings.json",
        "ws-gemini" => "/w/.gemini/settings.json",
        "ws" => "/w/.castor/settings.json",
        _ => "/etc/castor/settings.json",
    };
    let reader = Reader {
        read: &|it| match files.iter().find(|(name, _)| AbsPath::new(path(name)).as_ref() == Some(it)) {
            Some((_, text)) => Ok(text.as_bytes().to_vec()),
            None => Err(io::ErrorKind::NotFound.into()),
        },
        real_path: &|it| Ok(it.clone()),
    };
    read(env, &AbsPath::new("/w").unwrap(), trusted, reader)
}

struct Case<'a> {
    files: &'a [(&'a str, &'a str)],
    env: &'a [(&'a str, &'a str)],
    flags: &'a [Flag],
}

impl Case<'_> {
    fn env(&self) -> Env {
        Env::from_pairs(self.env.iter().copied().chain([("HOME", "/h")]))
    }

    fn merge(&self) -> (Settings, Vec<String>) {
        let env = self.env();
        let layers = layers(self.files, &env, true);
        let (settings, warnings) = Settings::merge(Sources { layers: &layers, env: &env, flags: self.flags });
        (settings, warnings.iter().map(ToString::to_string).collect())
    }

    fn explain(&self, key: &str, trusted: bool) -> (String, bool) {
        let env = self.env();
        let layers = layers(self.files, &env, trusted);
        explain(key, Sources { layers: &layers, env: &env, flags: self.flags })
    }
}

fn files<'a>(files: &'a [(&'a str, &'a str)]) -> Case<'a> {
    Case { files, env: &[], flags: &[] }
}

#[test]
fn defaults_are_quiet() {
    let (it, warnings) = files(&[]).merge();
    assert_eq!(warnings, [""; 0]);
    assert_eq!((it.model_name, it.approval_mode, it.limits), (None, Mode::Default, Limits::default()));
    assert_eq!(
        (it.caps.truncate_above, it.on_failure.patience.max_attempts, it.on_failure.patience.retry_broken),
        (40_000, None, true)
    );
    assert_eq!(it.tools, castor_tools::builtin::ToolSettings::default());
    assert_eq!((it.children.allowed, it.children.blocked, it.models.auth_type), (vec![], vec![], None));
    assert!(it.barred_modes.is_empty() && !it.disable_always_allow);
}

#[test]
fn later_layers_win_key_by_key() {
    let all = [
        ("defaults", r#"{"model": {"name": "1", "maxSessionTurns": 1}}"#),
        ("gemini", r#"{"model": {"name": "2", "maxSessionTurns": 2}, "general": {"maxAttempts": 2}}"#),
        ("castor", r#"{"model": {"name": "3"}, "tools": {"shell": {"inactivityTimeout": 3}}}"#),
        ("ws-gemini", r#"{"model": {"name": "4"}}"#),
        ("ws", r#"{"model": {"name": "5"}, "general": {"defaultApprovalMode": "auto_edit"}}"#),
        ("system", r#"{"model": {"name": "6"}}"#),
    ];
    for (at, (_, _)) in all.iter().enumerate() {
        let (it, _) = files(&all[..=at]).merge();
        assert_eq!(it.model_name, Some((at + 1).to_string()));
    }
    let mut case = files(&all);
    let (it, warnings) = case.merge();
    assert_eq!(
        (it.limits.session.requests, it.on_failure.patience.max_attempts, it.tools.shell_inactivity_s),
        (Some(2), Some(2), 3)
    );
    assert_eq!((it.approval_mode, warnings), (Mode::AutoEdit, vec![]));
    case.env = &[("GEMINI_MODEL", "7")];
    assert_eq!(case.merge().0.model_name.as_deref(), Some("7"));
    case.env = &[("GEMINI_MODEL", "7"), ("CASTOR_MODEL", "8")];
    assert_eq!(case.merge().0.model_name.as_deref(), Some("8"));
    let flags = [Flag::model("9"), Flag::approval_mode("yolo")];
    case.flags = &flags;
    let (it, warnings) = case.merge();
    assert_eq!((it.model_name.as_deref(), it.approval_mode, warnings), (Some("9"), Mode::Yolo, vec![]));
}

#[test]
fn a_workspace_can_only_tighten() {
    let allow = r#"{"security": {"environmentVariableRedaction": {"allowed": ["A"], "blocked": ["X"]},
        "auth": {"selectedType": "gateway"}, "disableYoloMode": true}}"#;
    let loosen = r#"{"security": {"environmentVariableRedaction": {"allowed": ["EVIL"], "blocked": ["X", "Y"]},
        "auth": {"selectedType": "evil"}, "disableYoloMode": false, "disableAlwaysAllow": true}}"#;
    for name in ["ws", "ws-gemini"] {
        let (it, warnings) = files(&[("castor", allow), (name, loosen)]).merge();
        assert_eq!(
            (it.children.allowed, it.children.blocked),
            (vec!["A".to_owned()], vec!["X".to_owned(), "Y".to_owned()])
        );
        assert_eq!(
            (it.models.auth_type.as_deref(), !it.barred_modes.is_empty(), it.disable_always_allow),
            (Some("gateway"), true, true)
        );
        assert_eq!(warnings.len(), 3, "{warnings:?}");
        assert!(warnings.iter().all(|it| it.contains("a workspace may ") && it.starts_with("/w/.")), "{warnings:?}");
    }
    let mut yolo = files(&[("ws", r#"{"security": {"disableYoloMode": true}}"#)]);
    let flags = [Flag::approval_mode("yolo")];
    yolo.flags = &flags;
    let (it, warnings) = yolo.merge();
    assert_eq!(it.approval_mode, Mode::Default);
    assert_eq!(warnings, ["--approval-mode: yolo is switched off by security.disableYoloMode; default is used"]);
    let over = [("castor", allow), ("system", r#"{"security": {"disableYoloMode": false}}"#)];
    assert!(files(&over).merge().0.barred_modes.is_empty());
    let odd = files(&[("castor", r#"{"security": {"disableYoloMode": "true", "disableAlwaysAllow": 1}}"#)]).merge().0;
    assert!(!odd.barred_modes.is_empty() && odd.disable_always_allow, "what cannot be read closes");
}

#[test]
fn variables_become_numbers() {
    let text = r#"{"model": {"name": "$M-pro", "maxSessionTurns": "${TURNS:-7}"},
        "general": {"retryFetchErrors": "$NO", "maxAttempts": "5"}}"#;
    let case = Case { files: &[("castor", text)], env: &[("NO", "false"), ("M", "gemini")], flags: &[] };
    let (it, warnings) = case.merge();
    assert_eq!((it.model_name.as_deref(), it.limits.session.requests), (Some("gemini-pro"), Some(7)));
    assert!(!it.on_failure.patience.retry_broken);
    assert_eq!(it.on_failure.patience.max_attempts, None);
    assert_eq!(
        warnings,
        ["/h/.castor/settings.json: general.maxAttempts: should be a whole number, at least 1; ignored"]
    );
}

#[test]
fn warns_of_what_does_not_count() {
    for (text, want) in [
        (r#"{"ui": {"theme": 1}, "general": {"vimMode": true}, "$schema": "x", "model": null}"#, ""),
        (r#"{"modle": {}}"#, "modle: is not a setting that castor knows; did you mean model?"),
        (r#"{"model": "x"}"#, "model: should be an object {…}; did you mean model.name?"),
        (r#"{"model": {"nmae": "x"}}"#, "model.nmae: is not a setting that castor knows; did you mean model.name?"),
        (
            r#"{"general": {"maxAtempts": 1}}"#,
            "general.maxAtempts: is not a setting that castor knows; did you mean general.maxAttempts?",
        ),
        (r#"{"general": []}"#, "general: should be an object {…}"),
        (r#"{"zzz": 1}"#, "zzz: is not a setting that castor knows"),
        (r#"{"excludeTools": []}"#, "excludeTools: is not a setting that castor knows; did you mean tools.exclude?"),
        (
            r#"{"general": {"defaultApprovalMode": "yolo"}}"#,
            "general.defaultApprovalMode: yolo cannot be set in a file, only by --approval-mode yolo; ignored",
        ),
        (
            r#"{"general": {"defaultApprovalMode": "all"}}"#,
            "general.defaultApprovalMode: should be default, auto_edit, auto or plan; ignored",
        ),
        (r#"{"model": {"name": " "}}"#, "model.name: should be a text that is not empty; ignored"),
        (
            r#"{"tools": {"truncateToolOutputThreshold": 1.5}}"#,
            "tools.truncateToolOutputThreshold: should be a whole number, at least 1; ignored",
        ),
        (
            r#"{"tools": {"shell": {"pager": "x", "inactivityTimeout": -1}}}"#,
            "tools.shell.inactivityTimeout: should be a whole number, at least 0; ignored",
        ),
        (
            r#"{"security": {"environmentVariableRedaction": {"allowed": ["a", 1]}}}"#,
            "security.environmentVariableRedaction.allowed: should be a list of texts; ignored",
        ),
        (r#"{"experimental": {"adk": {"agentSessionInteractiveEnabled": true}, "x": 1}}"#, ""),
    ] {
        let (it, warnings) = files(&[("castor", text)]).merge();
        let want = Some(want).filter(|it| !it.is_empty()).map(|it| format!("/h/.castor/settings.json: {it}"));
        assert_eq!(warnings, Vec::from_iter(want), "{text}");
        assert_eq!(it, files(&[]).merge().0, "{text}");
    }
    let flags = [Flag::approval_mode("fast")];
    let case = Case { files: &[("castor", "{,")], env: &[("CASTOR_MODEL", " ")], flags: &flags };
    assert_eq!(
        case.merge().1,
        [
            "/h/.castor/settings.json:1:2: not valid JSON: key must be a string; the file is skipped",
            "flag --approval-mode: general.defaultApprovalMode: should be default, auto_edit, auto, plan or yolo",
            "environment CASTOR_MODEL: model.name: should be a text that is not empty",
        ]
    );
}

#[test]
fn tells_what_has_no_effect() {
    for (text, want) in [
        (r#"{"general": {"maxAttempts": 2}, "$schema": "x", "hooks": {}, "mcpServers": {"ui": {"theme": "x"}}}"#, ""),
        (r#"{"ui": {"theme": 1, "footer": {"items": []}}}"#, "ui.theme, ui.footer.items: no such setting here"),
        (r#"{"ui": {"zzz": {"a": 1}}}"#, "ui.zzz: is not a setting that castor knows"),
        (
            r#"{"general": {"preferredEditor": "x", "zzz": 1}}"#,
            "general.preferredEditor: `castor chat` opens, general.zzz: is not a setting",
        ),
        (
            r#"{"security": {"enforcedType": 1, "enableConseca": true}}"#,
            "security.enableConseca: no model checks calls",
        ),
        (r#"{"security": {"folderTrust": {"enabled": false}}}"#, "security.folderTrust.enabled: castor always asks"),
        (
            r#"{"experimental": {"adk": {"agentSessionInteractiveEnabled": true}}}"#,
            "experimental.adk: is accepted without effect",
        ),
        (
            r#"{"modelConfigs": {"modelChains": {}, "aliases": {}}}"#,
            "modelConfigs.modelChains: castor has a model catalog",
        ),
        (
            r#"{"telemetry": {"logPrompts": true, "enabled": true}}"#,
            "telemetry.logPrompts: castor's telemetry holds no",
        ),
        (
            r#"{"telemetry": {"otlpProtocol": "grpc", "target": "gcp"}}"#,
            "telemetry.otlpProtocol: castor speaks OTLP over HTTP, telemetry.target: castor exports to a collector",
        ),
        (r#"{"telemetry": {"otlpProtocol": "http", "target": "local"}}"#, ""),
        (r#"{"telemetry": null, "zzz": 1}"#, ""),
    ] {
        let env = Env::default();
        let layers = layers(&[("system", text)], &env, true);
        let found = without_effect(Sources { layers: &layers, env: &env, flags: &[] });
        let said: Vec<(String, &str)> = found.iter().map(|it| (it.key.clone().unwrap(), &*it.message)).collect();
        let mut parts = want.split(", ").filter(|it| !it.is_empty());
        for (at, (key, why)) in said.iter().enumerate() {
            let part = parts.next().unwrap_or_else(|| panic!("{text}: {key}: {why}"));
            let (name, start) = part.split_once(": ").unwrap_or((part, ""));
            assert!(key == name && why.starts_with(start), "{text} {at}: {key}: {why}");
        }
        assert_eq!(parts.next(), None, "{text}");
    }
}

#[test]
fn many_warnings_of_one_file_are_cut() {
    let members: Vec<_> = (0..1000).map(|it| format!("\"zz{it}\": 1")).collect();
    let text = format!("{{{}}}", members.join(","));
    let env = Env::default();
    let layers = layers(&[("system", &text)], &env, true);
    assert_eq!(check(Sources { layers: &layers, env: &env, flags: &[] }).len(), 50);
}

fn check_explain(case: &Case<'_>, key: &str, trusted: bool, want: &str) {
    assert_eq!(case.explain(key, trusted), (want.trim_start().to_owned(), true), "{key}");
}

#[test]
fn explains_each_layer_and_the_winner() {
    let model = [("gemini", r#"{"model": {"name": "flash"}}"#), ("ws", r#"{"model": {"name": "$USER"}}"#)];
    let case = Case { files: &model, env: &[("USER", "pro")], flags: &[] };
    let want = r#"
model.name = "pro"
  The model that sessions start with.

    /h/.gemini/settings.json (user)       "flash"
  * /w/.castor/settings.json (workspace)  "$USER" = "pro"  <- wins
"#;
    check_explain(&case, "model.name", true, want);

    let flags = [Flag::model("mine")];
    let case = Case { files: &model, env: &[("GEMINI_MODEL", "e")], flags: &flags };
    let want = r#"
model.name = "mine"
  The model that sessions start with.

    /h/.gemini/settings.json (user)  "flash"
    environment GEMINI_MODEL         "e"
  * flag --model                     "mine"  <- wins

The workspace's own settings were not read: the folder is not trusted.
"#;
    check_explain(&case, "model.name", false, want);

    let want = "model.name = (not set)\n  The model that sessions start with.\n\n    No layer sets it.\n";
    check_explain(&files(&[]), "model.name", true, want);
}

#[test]
fn explains_what_is_ignored_or_without_effect() {
    let (on, off) = (r#"{"security": {"disableYoloMode": true}}"#, r#"{"security": {"disableYoloMode": false}}"#);
    let want = r#"
security.disableYoloMode = true
  Takes the modes yolo and auto off the list.

    default                               false
  * /h/.castor/settings.json (user)       true  <- wins
  ! /w/.castor/settings.json (workspace)  false  <- ignored: a workspace may only set this to true
"#;
    check_explain(&files(&[("castor", on), ("ws", off)]), "security.disableYoloMode", true, want);

    let text = r#"{"experimental": {"adk": {"agentSessionInteractiveEnabled": true}}}"#;
    let want = r#"
experimental.adk.agentSessionInteractiveEnabled = true
  Which runtime Gemini CLI uses.
  It is accepted without effect: castor has one runtime for all sessions.

  * /h/.castor/settings.json (user)  true  <- wins
"#;
    let key = "experimental.adk.agentSessionInteractiveEnabled";
    check_explain(&files(&[("castor", text)]), key, true, want);
}

#[test]
fn explains_objects_and_what_is_in_them() {
    let servers = [
        ("gemini", r#"{"mcpServers": {"a": {"command": "x"}, "b": {}}}"#),
        ("ws", r#"{"mcpServers": {"a": {"command": "y"}}}"#),
    ];
    let want = r#"
mcpServers.a.command = "y"
  MCP servers by name; those of a workspace start only where it is trusted.

    /h/.gemini/settings.json (user)       "x"
  * /w/.castor/settings.json (workspace)  "y"  <- wins
"#;
    check_explain(&files(&servers), "mcpServers.a.command", true, want);

    let hooks = [("gemini", r#"{"hooks": {"A": [1]}}"#), ("castor", r#"{"hooks": {"A": [2], "B": [3]}}"#)];
    let want = r#"
hooks = {"A":[1,2],"B":[3]}
  Commands to run at points of a session, by event; those of a workspace run only where it is trusted.

  + default                          {}
  + /h/.gemini/settings.json (user)  {"A":[1]}
  + /h/.castor/settings.json (user)  {"A":[2],"B":[3]}
"#;
    check_explain(&files(&hooks), "hooks", true, want);

    let allowed = [("gemini", r#"{"mcp": {"allowed": ["A", "b"]}}"#), ("ws", r#"{"mcp": {"allowed": ["a", "c"]}}"#)];
    let want = "
mcp.allowed = [\"A\"]  <- /h/.gemini/settings.json (user) + /w/.castor/settings.json (workspace)
mcp.excluded = []  <- default
mcp.startBudgetMs = 10000  <- default
mcp.maxRestarts = 8  <- default
mcp.sampling.enabled = true  <- default
mcp.sampling.maxRequests = 20  <- default
mcp.sampling.maxTokens = 100000  <- default
";
    check_explain(&files(&allowed), "mcp", true, want);
}

#[test]
fn explain_says_when_it_does_not_know() {
    for (key, want) in [
        ("model.nam", "model.nam is not a setting that castor knows; did you mean model.name?\n"),
        ("", " is not a setting that castor knows\n"),
        (
            "general.maxAtempts",
            "general.maxAtempts is not a setting that castor knows; did you mean general.maxAttempts?\n",
        ),
        ("zz", "zz is not a setting that castor knows\n  ! /h/.castor/settings.json (user)  {\"a\":1}\n"),
    ] {
        assert_eq!(files(&[("castor", r#"{"zz": {"a": 1}}"#)]).explain(key, true), (want.to_owned(), false));
    }
}

#[test]
fn explain_stars_secrets_out() {
    let text = r#"{"mcpServers": {"a": {"env": {"API_KEY": "canary", "B": "$GH_TOKEN", "C": "AIzacanary", "PGPASS": "canary", "F": "$PLAIN", "D": "${LATER_KEY}",
        "E_KEY": "$canary"}, "headers": {"Authorization": "Bearer ${GH_TOKEN:-canary}", "X-Plain": "canary"},
        "url": "https://h/mcp?a=b&key=canary", "args": ["ghp_canary", "ok", "--token", "canary", "--api-key=canary"]}}}"#;
    let case = Case { files: &[("castor", text)], env: &[("GH_TOKEN", "canary"), ("PLAIN", "canary")], flags: &[] };
    for key in ["", ".a", ".a.env", ".a.env.API_KEY", ".a.env.PGPASS", ".a.headers", ".a.headers.X-Plain", ".a.args"] {
        let key = &format!("mcpServers{key}");
        let (text, known) = case.explain(key, true);
        assert!(known && !text.contains("canary") && text.contains("***"), "{key}: {text}");
    }
}

#[test]
fn unknown_sandbox_level_means_read_only() {
    use castor_base::sandbox::SandboxLevel::{self, Off, ReadOnly, WorkspaceWrite};
    let level = |text: &str| format!(r#"{{"security": {{"sandbox": {{"level": {text}}}}}}}"#);
    let case = |user: &str, system: &str, want: Option<SandboxLevel>, told: usize| {
        let (it, warnings) = files(&[("castor", user), ("system", system)]).merge();
        assert_eq!((it.children.sandbox.level, it.children.sandbox.invalid.len()), (want, told), "{user} {warnings:?}");
    };
    for odd in [r#""readonly""#, r#""none""#, r#""""#, "false", "{}"] {
        case(&level(odd), "{}", Some(ReadOnly), 1);
    }
    case(&level(r#""off""#), "{}", Some(Off), 0);
    case(&level("null"), "{}", None, 0);
    case(&level(r#""none""#), &level(r#""workspace-write""#), Some(WorkspaceWrite), 1);
    case(&level(r#""off""#), &level(r#""none""#), Some(ReadOnly), 1);
    case(r#"{"security": {"sandbox": "off"}}"#, "{}", Some(ReadOnly), 1);
    case(r#"{"security": {"sandbox": {"levle": "read-only", "network": "no"}}}"#, "{}", None, 2);
    case(r#"{"security": {"sanbox": {"level": "read-only"}}}"#, "{}", None, 1);
    case(r#"{"securty": {}, "tools": {"sandbox": 1}}"#, "{}", None, 0);
    // A workspace has no say in it, and nobody is told in each session.
    let (it, warnings) = files(&[("ws", &level(r#""none""#))]).merge();
    assert_eq!((it.children.sandbox.level, it.children.sandbox.invalid, warnings.len()), (None, Vec::new(), 1));

    let text = level(r#""readonly""#);
    let written = [("castor", text.as_str())];
    let case = files(&written);
    let why = "/h/.castor/settings.json: security.sandbox.level: should be off or workspace-write or read-only; counts \
               as read-only";
    assert_eq!(case.merge().1, [why]);
    assert!(case.explain("security.sandbox.level", true).0.starts_with("security.sandbox.level = \"read-only\"\n"));
}
