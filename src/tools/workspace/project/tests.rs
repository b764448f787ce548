//! Project files as they are found, hashed, trusted and used.

use std::fs;

use super::ProjectFiles;
use castor_base::{
    path::AbsPath,
    trust::{TrustedFileKind, split_covered, trusted_hashes},
};
use castor_hands::{disk, secrets::Env};

fn ground() -> (tempfile::TempDir, AbsPath, Env) {
    let temp = tempfile::tempdir().unwrap();
    let root = disk::real_path(&AbsPath::new(temp.path()).unwrap()).unwrap();
    let env = Env::from_pairs([("HOME", root.join("h").to_string().as_str())]);
    (temp, root, env)
}

#[allow(clippy::disallowed_methods)]
fn write(file: &AbsPath, text: &str) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

#[test]
#[allow(clippy::disallowed_methods)]
fn finds_every_kind_and_uses_what_it_hashed() {
    let (_keep, root, env) = ground();
    let ws = root.join("w/ws");
    for (name, text) in [
        (
            ".gemini/settings.json",
            r#"{"mcpServers": {"a": {"command": "sh", "args": ["-c", "x"]}, "b": {"url": "http://h"}},
            "hooks": {"BeforeAgent": [{"hooks": [{"type": "command", "command": "./h"}]}]}}"#,
        ),
        (".castor/policies/p.toml", "one"),
        (".castor/agents/a.md", "---\nname: a\ndescription: d\nmcp_servers: {c: {command: ./c}}\n---\nT"),
        (".castor/agents/_draft.md", ""),
        (".claude/agents/b.md", ""),
        (".gemini/commands/git/c.toml", ""),
        (".gemini/skills/s/SKILL.md", ""),
        (".castor/.env", "A=1"),
        ("GEMINI.md", ""),
        (".vscode/settings.json", "{}"),
    ] {
        write(&ws.join(name), text);
    }
    write(&root.join("w/.env"), "A=2");
    let mut project = ProjectFiles::read(&env, &ws, &root.join("w"));
    let names: Vec<String> = project.all_files().into_iter().map(|it| it.name).collect();
    let above = root.join("w/.env").to_string();
    assert_eq!(
        names,
        [
            ".gemini/settings.json",
            ".castor/policies/p.toml",
            ".castor/agents/a.md",
            ".claude/agents/b.md",
            ".gemini/commands/git/c.toml",
            ".gemini/skills/s/SKILL.md",
            ".castor/.env",
            above.as_str(),
            "GEMINI.md"
        ]
    );
    assert_eq!(
        project.describe_programs(|_| true),
        ["MCP server a: sh -c x", "MCP server b: http://h", "hook: ./h", "MCP server c: ./c"]
    );
    let policies = ws.join(".castor/policies");
    let look = |it: &ProjectFiles| {
        it.with_trusted(|reader, folders| {
            let names = (folders.list)(&policies).unwrap();
            (names, (reader.read)(&policies.join("p.toml")).ok(), (reader.read)(&root.join("w/.env")).ok())
        })
    };
    assert_eq!(look(&project), (vec![], None, Some(b"A=2".to_vec())));
    project.trust_all();
    write(&policies.join("p.toml"), "two");
    write(&policies.join("q.toml"), "new");
    assert_eq!(look(&project).0, ["p.toml"]);
    assert_eq!(look(&project).1.unwrap(), b"one");
    assert_eq!(project.env_file().unwrap().1, b"A=1");
}

/// Settings count while all that they would run is what was trusted.
#[test]
#[allow(clippy::disallowed_methods)]
fn programs_are_a_part_of_their_settings() {
    let (_keep, root, env) = ground();
    let settings = r#"{"mcpServers": {
        "a": {"command": "node", "args": ["--import=./boot.js", "tools/s.js", "src", "no.js"], "env": {"X": "-r $PWD/lib/r.js"}},
        "b": {"command": "./run", "cwd": "tools"}, "c": {"command": ".venv/bin/python"}},
        "hooks": {"BeforeAgent": [{"hooks": [{"command": "sh '$GEMINI_PROJECT_DIR/hook.sh' && ../up.sh"}]}]}}"#;
    let ws = root.join("w");
    write(&ws.join(".gemini/settings.json"), settings);
    write(&ws.join(".castor/settings.json"), "{}");
    let files = ["boot.js", "tools/s.js", "tools/run", "lib/r.js", "hook.sh", "../up.sh", "src/x", "start"];
    files.iter().for_each(|it| write(&ws.join(it), it));
    fs::create_dir_all(ws.join(".venv/bin")).unwrap();
    write(&root.join("python3"), "");
    std::os::unix::fs::symlink(root.join("python3"), ws.join(".venv/bin/python")).unwrap();
    let read = || ProjectFiles::read(&env, &ws, &ws);
    let of_programs = |it: &ProjectFiles| {
        let all = it.all_files().into_iter().filter(|it| it.kind == TrustedFileKind::Program);
        all.map(|it| it.name).collect::<Vec<_>>()
    };
    let want = [".venv/bin/python", "boot.js", "hook.sh", "lib/r.js", "tools/run", "tools/s.js"];
    let mut found = of_programs(&read());
    found.sort();
    assert_eq!(found, want);

    let first = trusted_hashes(&read().all_files());
    let standing = |project: &ProjectFiles, name: &str| project.file_states().find(|it| it.0 == name).unwrap().1;
    let ours = ".gemini/settings.json";
    for changed in want {
        let mut project = read();
        project.trust_files(split_covered(&project.all_files(), &first).0);
        assert!(standing(&project, ours), "{changed}");
        let file = ws.join(changed);
        let before = fs::read_to_string(&file).unwrap();
        fs::remove_file(&file).unwrap();
        write(&file, "other");
        let mut project = read();
        let (names, open) = split_covered(&project.all_files(), &first);
        assert_eq!(open, [(changed.to_owned(), false)]);
        assert_eq!(project.describe_programs(|it| it == changed).len(), 4, "{changed}");
        project.trust_files(names);
        project.mark_unapproved(&open);
        let why = match changed == ours {
            true => "changed since you trusted the folder".to_owned(),
            false => format!("it starts {changed}, which is changed since you trusted the folder"),
        };
        assert_eq!(project.changes(TrustedFileKind::Settings), [format!("{ours} is not used: {why}")]);
        assert!(!standing(&project, ours) && standing(&project, ".castor/settings.json"), "{changed}");
        fs::remove_file(&file).unwrap();
        match changed.starts_with(".venv") {
            true => std::os::unix::fs::symlink(root.join("python3"), &file).unwrap(),
            false => write(&file, &before),
        }
    }
    write(
        &ws.join(".gemini/settings.json"),
        &settings.replace("no.js", &(0..5000).map(|it| format!("{it} ")).collect::<String>()),
    );
    let mut project = read();
    project.trust_all();
    assert!(!standing(&project, ours));
}

#[test]
#[allow(clippy::disallowed_methods)]
fn links_out_and_the_users_own_folders_are_no_part_of_it() {
    let (_keep, root, env) = ground();
    write(&root.join("secret"), "A=1");
    write(&root.join("h/.gemini/settings.json"), "{}");
    fs::create_dir_all(root.join("w")).unwrap();
    std::os::unix::fs::symlink(root.join("secret"), root.join("w/.env")).unwrap();
    let mut project = ProjectFiles::read(&env, &root.join("w"), &root.join("w"));
    project.trust_all();
    assert_eq!(project.all_files().len(), 1);
    assert!(project.all_files()[0].hash.is_none() && project.env_file().is_none());
    assert!(ProjectFiles::read(&env, &root.join("h"), &root.join("h")).all_files().is_empty());
}

/// Rules in it might have denied something.
#[test]
#[allow(clippy::disallowed_methods)]
fn folder_that_cannot_be_read_is_named_and_never_used() {
    let (_keep, root, env) = ground();
    fs::create_dir_all(root.join("w/.castor")).unwrap();
    std::os::unix::fs::symlink("policies", root.join("w/.castor/policies")).unwrap();
    let mut project = ProjectFiles::read(&env, &root.join("w"), &root.join("w"));
    project.trust_all();
    assert_eq!(project.file_states().collect::<Vec<_>>(), [(".castor/policies", false)]);
    assert!(project.all_files()[0].hash.is_none());
}
