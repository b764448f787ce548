//! Extensions on a real disk: what counts of them, and what does not any more.
#![allow(clippy::disallowed_methods)]

use std::{fs, os::unix::fs::symlink};

use serde_json::Value;

use super::{
    Extension, ExtensionState, Extensions, contents,
    record::{self, ExtensionKind, ExtensionRecord, ExtensionSource},
};
use crate::workspace::folder_config::{self, FolderConfig};
use castor_base::path::AbsPath;
use castor_hands::{disk, secrets::Env};

const MANIFEST: &str = r#"{"name": "ext", "version": "1"}"#;

struct Place {
    _dir: tempfile::TempDir,
    root: AbsPath,
}

impl Place {
    /// With an extension of this manifest, which is not installed.
    fn new(manifest: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = disk::real_path(&AbsPath::new(dir.path()).unwrap()).unwrap();
        let res = Self { _dir: dir, root };
        res.write("w/a.txt", "");
        res.write("e/gemini-extension.json", manifest);
        res
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn env(&self, more: &[(&str, &str)]) -> Env {
        let home = self.root.join("h").to_string();
        let usual = [("HOME", home.as_str()), ("CASTOR_TRUST_WORKSPACE", "true")];
        Env::from_pairs(usual.into_iter().chain(more.iter().copied()))
    }

    fn home(&self) -> AbsPath {
        self.root.join("h/.castor")
    }

    /// As the user's yes to a linked folder.
    fn link(&self) -> Result<ExtensionRecord, String> {
        let path = self.root.join("e");
        let found = contents::read(&path, ExtensionKind::Extension)?;
        let record = ExtensionRecord::new("ext", "1", ExtensionSource::Link { path }, found.hashes);
        record::write(&self.home(), &record).unwrap();
        Ok(record)
    }

    fn ground(&self) -> FolderConfig {
        folder_config::load(&self.env(&[]), &self.root.join("w"))
    }

    fn state(&self) -> String {
        match self.ground().extensions.all.first().map(|it| it.state.clone()) {
            Some(ExtensionState::On(_)) => "on".to_owned(),
            Some(ExtensionState::Off(why)) => why.to_owned(),
            Some(ExtensionState::Unusable(why)) => why,
            None => "none".to_owned(),
        }
    }
}

#[test]
fn all_that_it_brings_counts() {
    let it = Place::new(
        r#"{"name": "ext", "version": "1", "excludeTools": ["web_fetch"], "mcpServers": {"s": {
            "command": "${extensionPath}${/}run", "args": ["$KEY", "${workspacePath}"], "trust": true}}}"#,
    );
    it.write("e/GEMINI.md", "Be kind.");
    it.write("e/run", "#!/bin/sh");
    it.write("e/commands/git/fix.toml", "prompt = 'Fix.'");
    it.write("e/skills/tidy/SKILL.md", "---\nname: tidy\ndescription: D\n---\nSweep.");
    it.write("e/agents/helper.md", "---\nname: helper\ndescription: d\n---\nHelp.");
    it.write("e/policies/p.toml", "[[rule]]\ntoolName = 'glob'\ndecision = 'deny'\npriority = 1\n");
    let line = r#"sh \"${extensionPath}${/}run\""#;
    it.write(
        "e/hooks/hooks.json",
        &format!(r#"{{"hooks": {{"BeforeTool": [{{"hooks": [{{"type": "command", "command": "{line}"}}]}}]}}}}"#),
    );
    it.link().unwrap();
    record::write_values(&it.home(), "ext", &[("KEY".to_owned(), "canary".to_owned())].into()).unwrap();
    let ground = it.ground();
    assert_eq!(it.state(), "on");
    let layers = ground.layers();
    let layer = layers.layers.iter().find(|it| it.scope == super::Scope::Extension).unwrap();
    let server = &layer.value["mcpServers"]["s"];
    assert_eq!(server["command"], format!("{}/e/run", it.root));
    assert_eq!(server["args"], serde_json::json!(["canary", format!("{}/w", it.root)]));
    assert_eq!((&server["env"]["KEY"], &server["trust"]), (&"canary".into(), &Value::Null));
    let hook = &layer.value["hooks"]["BeforeTool"][0]["hooks"][0];
    assert_eq!(hook["command"], r#"sh "${extensionPath}/run""#, "the shell fills it in");
    assert_eq!(hook["env"]["extensionPath"], format!("{}/e", it.root));
    assert_eq!(layer.value["tools"]["exclude"][0], "web_fetch");
    assert!(!format!("{:?}", ground.extensions.all).contains("canary"));
    assert_eq!(ground.extensions.context()[0].1, "Be kind.");
    let prompts = ground.prompts(&|_| false);
    assert_eq!((prompts.commands[0].name.as_str(), prompts.skills[0].name.as_str()), ("git:fix", "tidy"));
    let agents = ground.agents(&|_| None);
    assert_eq!(agents.definitions.last().unwrap().descriptor.name, "helper");
    let (policies, _) = ground.policies(layers, &Default::default());
    assert!(policies.iter().any(|it| it.file.to_string().ends_with("e/policies/p.toml")));
    let bound = ground.extensions.programs(&layer.value);
    assert_eq!(bound[0].0, it.root.join("e/run"), "its program runs only as it is");
}

type Change = fn(&Place);

/// Whatever it is that changed, and whether castor reads it or a program does.
#[test]
fn what_changes_after_the_yes_does_not_count() {
    let changes: &[(&str, Change)] = &[
        ("gemini-extension.json", |it| it.write("e/gemini-extension.json", r#"{"name": "ext", "version": "2"}"#)),
        ("run.js", |it| it.write("e/run.js", "other();")),
        ("new.js", |it| it.write("e/new.js", "")),
        ("commands/a.toml", |it| fs::remove_file(it.root.join("e/commands/a.toml")).unwrap()),
    ];
    for (file, change) in changes {
        let it = Place::new(MANIFEST);
        it.write("e/run.js", "start();");
        it.write("e/commands/a.toml", "prompt = 'A'");
        it.link().unwrap();
        assert_eq!(it.state(), "on");
        // No part of it: what programs leave behind.
        it.write("e/__pycache__/x.pyc", "");
        assert_eq!(it.state(), "on");
        change(&it);
        let state = it.state();
        assert!(state.starts_with("changed since your yes: ") && state.contains(file), "{state}");
        let ground = it.ground();
        assert!(ground.prompts(&|_| false).commands.is_empty());
        assert!(ground.layers().layers.iter().all(|it| it.scope != super::Scope::Extension));
        it.link().unwrap();
        assert_eq!(it.state(), "on", "after another yes");
    }
}

/// The same length and the same time: only the change time tells.
#[test]
fn a_file_that_hides_its_change_is_found() {
    let it = Place::new(MANIFEST);
    it.write("e/run.js", "aaaa");
    it.link().unwrap();
    let path = it.root.join("e/run.js");
    let old = fs::metadata(path.as_path()).unwrap().modified().unwrap();
    // The system's clock for files may stand still for some milliseconds.
    let is_found = |_| {
        it.write("e/run.js", "bbbb");
        fs::File::options().write(true).open(path.as_path()).unwrap().set_modified(old).unwrap();
        it.state().contains("run.js")
    };
    assert!((0..500).any(is_found));
}

#[test]
fn nothing_leads_out_of_it() {
    let it = Place::new(MANIFEST);
    it.write("secret.md", "canary");
    let at = |name: &str| it.root.join(name);
    fs::create_dir_all(at("e/skills/x").as_path()).unwrap();
    symlink("../../../secret.md", at("e/skills/x/SKILL.md").as_path()).unwrap();
    assert!(it.link().unwrap_err().contains("leads out of the folder"));
    fs::remove_file(at("e/skills/x/SKILL.md").as_path()).unwrap();
    symlink(at("e/GEMINI.md").as_path(), at("e/absolute").as_path()).unwrap();
    assert!(it.link().unwrap_err().contains("leads out of the folder"));
    fs::remove_file(at("e/absolute").as_path()).unwrap();
    symlink("skills", at("e/inside").as_path()).unwrap();
    it.link().unwrap();
    assert_eq!(it.state(), "on");
    // A link that comes later is a change, wherever it leads.
    fs::remove_file(at("e/inside").as_path()).unwrap();
    symlink("../secret.md", at("e/inside").as_path()).unwrap();
    assert!(it.state().contains("leads out"), "{}", it.state());
    fs::remove_file(at("e/inside").as_path()).unwrap();
    it.write("e/gemini-extension.json", r#"{"name": "ext", "version": "1", "contextFileName": "../secret.md"}"#);
    assert!(it.link().unwrap_err().contains("its own folder"));
}

#[test]
fn what_is_too_large_is_not_parsed() {
    let it = Place::new(MANIFEST);
    it.write("e/commands/big.toml", &format!("prompt = '{}'", "x".repeat(10 << 20)));
    it.write("e/commands/fine.toml", "prompt = 'A'");
    it.link().unwrap();
    let found = it.ground().prompts(&|_| false);
    assert_eq!(found.commands.len(), 1);
    assert!(
        found.command_warnings[0].to_string().contains("big.toml: is over 256 KiB"),
        "{:?}",
        found.command_warnings
    );
    it.write("e/gemini-extension.json", &format!(r#"{{"name": "ext", "version": "{}"}}"#, "1".repeat(10 << 20)));
    assert_eq!(it.link().unwrap_err(), "gemini-extension.json is over 1 MiB");
    assert!(it.state().contains("is over 1 MiB"));
}

/// No name of castor's, the user's or the workspace's becomes an extension's.
#[test]
fn it_takes_no_name_of_others() {
    let it = Place::new(MANIFEST);
    it.write("e/commands/help.toml", "prompt = 'shadow'");
    it.write("e/commands/fix.toml", "prompt = 'shadow'");
    it.write("e/skills/s/SKILL.md", "---\nname: s\ndescription: D\n---\nShadow.");
    it.write("e/agents/generalist.md", "---\nname: generalist\ndescription: d\n---\nShadow.");
    it.write("h/.castor/commands/fix.toml", "prompt = 'user'");
    it.write("h/.castor/skills/s/SKILL.md", "---\nname: s\ndescription: D\n---\nUser.");
    it.link().unwrap();
    let ground = it.ground();
    let found = ground.prompts(&|name| name == "help");
    let commands: Vec<String> = found.commands.iter().map(|it| format!("{}={}", it.name, it.prompt)).collect();
    assert_eq!(commands, ["ext.fix=shadow", "ext.help=shadow", "user.fix=user"]);
    let skills: Vec<String> = found.skills.iter().map(|it| format!("{}={}", it.name, it.instructions)).collect();
    assert_eq!(skills, ["ext.s=Shadow.", "s=User."]);
    let agents = ground.agents(&|_| None);
    assert!(agents.definitions.iter().all(|it| it.origin.file().is_none()));
    assert!(agents.warnings[0].to_string().contains("the agent generalist is defined by castor itself"));
}

#[test]
fn it_is_off_where_the_user_says_so() {
    let it = Place::new(MANIFEST);
    let mut record = it.link().unwrap();
    it.write("h/.castor/settings.json", r#"{"extensions": {"disabled": ["EXT"]}}"#);
    assert_eq!(it.state(), "off by `extensions.disabled`");
    it.write("h/.castor/settings.json", r#"{"security": {"allowedExtensions": ["^https://github.com/me/"]}}"#);
    assert_eq!(it.state(), "its source is not among `security.allowedExtensions`");
    it.write("h/.castor/settings.json", "{}");
    it.write("w/.castor/settings.json", r#"{"security": {"allowedExtensions": ["^no"]}}"#);
    assert_eq!(it.state(), "on", "a workspace has no say in that");
    record.switches.set(Some(&it.root.join("w")), false);
    record::write(&it.home(), &record).unwrap();
    assert_eq!(it.state(), "you switched it off");
    let limited = Extensions::of(Extension::candidate(
        &it.root.join("e"),
        contents::read(&it.root.join("e"), ExtensionKind::Extension).unwrap(),
    ));
    assert!(limited.clone().only(&["EXT".to_owned()]).all[0].contents().is_some());
    let none = limited.only(&["other".to_owned()]);
    assert!(none.all[0].contents().is_none() && none.faults()[0].contains("there is no extension other"));
}
