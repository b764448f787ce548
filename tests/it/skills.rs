//! Skills that are installed and linked: shown before they count, in a session until they change, and gone when removed.

use std::{fs, os::unix::fs::symlink};

use crate::{
    client::Sandbox,
    extensions::{castor, commit_repository, start, typed},
    model_server::{ModelServer, says},
};

const TIDY: &str = "---\nname: tidy\ndescription: Tidies up\n---\nRun tidy.sh.";

fn beside(sandbox: &Sandbox, path: &str) -> String {
    sandbox.workspace().parent().unwrap().join(path).display().to_string()
}

/// Of skills that are installed, the names of the files that castor keeps.
fn installed_files(sandbox: &Sandbox) -> Vec<String> {
    let found = fs::read_dir(sandbox.home().join(".castor/extensions"));
    let mut res: Vec<String> =
        found.into_iter().flatten().map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    res.sort();
    res
}

#[test]
fn a_skill_from_git_counts_until_it_changes() {
    let mut sandbox = Sandbox::new();
    sandbox.write("repo/skills/tidy/SKILL.md", TIDY);
    sandbox.write("repo/skills/tidy/tidy.sh", "echo swept");
    sandbox.write("repo/skills/write/SKILL.md", "---\nname: write\ndescription: Writes notes\n---\nWrite.");
    sandbox.write("repo/skills/README.md", "Not a skill.");
    let commit = commit_repository(&sandbox);
    let url = format!("file://{}", beside(&sandbox, "repo"));
    let install = |path: &str, more: &[&str]| {
        castor(&sandbox, &[&["skills", "install", &url, "--path", path][..], more].concat())
    };
    let (code, text) = install("skills/tidy", &[]);
    assert!(code == 1 && text.contains("nobody can be asked here"), "{text}");
    let shown = format!(
        "tidy (skill), skills/tidy of {url} at {commit}\nTidies up\nIt brings:\n  skill: tidy: Tidies up\n  file: tidy.sh\n"
    );
    assert!(text.contains(&shown), "{text}");
    assert_eq!(installed_files(&sandbox), [""; 0]);
    for outside in ["../home", "none", "skills/tidy/SKILL.md"] {
        let (code, text) = install(outside, &["--consent"]);
        assert!(code == 42 && text.contains(&format!("the repository has no folder {outside}")), "{text}");
    }
    let (code, text) = install(".", &["--consent"]);
    assert!(code == 42 && text.contains("the repository has no SKILL.md, nor has a folder in it"), "{text}");
    // All that lie in a folder.
    let (code, text) = install("skills", &["--consent", "--ref", &commit]);
    assert!(code == 0 && text.contains("write (skill) is installed; it counts from the next session on."), "{text}");
    assert_eq!(installed_files(&sandbox), ["tidy", "tidy.json", "write", "write.json"]);
    let (_, list) = castor(&sandbox, &["skills", "list"]);
    assert!(list.contains("Tidies up") && list.contains("Writes notes"), "{list}");

    let model = ModelServer::start(vec![says("Hi."), says("Hello.")]);
    sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), model.url.clone()));
    sandbox.env.push(("GEMINI_API_KEY".into(), "k".into()));
    let (mut client, session) = start(&sandbox);
    typed(&mut client, &session, "hello");
    assert!(model.asked().last().unwrap().body.contains("Tidies up"));
    // While the session runs; what lies beside the skill is a part of the yes.
    fs::write(sandbox.home().join(".castor/extensions/tidy/tidy.sh"), "echo evil").unwrap();
    let (_, updates) = typed(&mut client, &session, "hello");
    let asked = model.asked().last().unwrap().body.clone();
    assert!(!asked.contains("Tidies up") && asked.contains("Writes notes"), "{asked}");
    assert!(updates.contains("skill"), "{updates}");
    let (said, _) = typed(&mut client, &session, "/skills");
    let why = "The skill tidy is not used: changed since your yes: tidy.sh; `castor extensions update tidy` shows it";
    assert!(said.contains(why), "{said}");
    drop(client);
    let (code, text) = castor(&sandbox, &["extensions", "update", "tidy", "--consent"]);
    assert!(code == 0 && text.contains("tidy (skill) is updated"), "{text}");
    assert!(castor(&sandbox, &["skills", "show", "tidy"]).1.contains("Run tidy.sh."));
    assert_eq!(castor(&sandbox, &["skills", "uninstall", "tidy"]).0, 0);
    assert_eq!(installed_files(&sandbox), ["write", "write.json"]);
    assert!(!castor(&sandbox, &["skills", "list"]).1.contains("Tidies up"));
}

#[test]
fn a_linked_skill_is_used_where_it_is() {
    let sandbox = Sandbox::new();
    sandbox.write("mine/tidy/SKILL.md", TIDY);
    sandbox.write("ws/sub/x", "");
    let (code, text) = castor(&sandbox, &["skills", "link", "../mine/tidy"]);
    assert!(
        code == 1 && text.contains("nobody can be asked here") && text.contains("skill: tidy: Tidies up"),
        "{text}"
    );
    let link = |more: &[&str]| castor(&sandbox, &[&["skills", "link", "../mine", "--consent"][..], more].concat());
    let (code, text) = link(&["--scope", "workspace"]);
    assert!(code == 0 && text.contains(&format!("linked to {}", beside(&sandbox, "mine/tidy"))), "{text}");
    assert_eq!(installed_files(&sandbox), ["tidy.json"], "the folder is the user's");
    let lists = |args: &[&str]| castor(&sandbox, &[&["skills", "list"][..], args].concat()).1.contains("Tidies up");
    let elsewhere = beside(&sandbox, "mine");
    assert!(lists(&[]) && lists(&["--cwd", "sub"]) && !lists(&["--cwd", &elsewhere]));
    let (code, text) = link(&[]);
    assert!(code == 42 && text.contains("tidy is installed already"), "{text}");
    sandbox.write("mine/tidy/new.sh", "echo evil");
    assert!(!lists(&[]), "it changed");
    assert_eq!(castor(&sandbox, &["skills", "uninstall", "tidy"]).0, 0);
    assert_eq!(installed_files(&sandbox), [""; 0]);
    assert_eq!(fs::read_to_string(beside(&sandbox, "mine/tidy/SKILL.md")).unwrap(), TIDY);
}

#[test]
fn a_folder_without_a_skill_is_refused_and_leaves_nothing() {
    let sandbox = Sandbox::new();
    let skill = |name: &str| format!("---\nname: {name}\ndescription: D\n---\nDo.");
    sandbox.write("empty/x", "");
    sandbox.write("text/SKILL.md", "No front matter.");
    sandbox.write("up/SKILL.md", &skill("../up"));
    sandbox.write("dots/SKILL.md", &skill(".."));
    sandbox.write("mine/SKILL.md", &skill("mine"));
    sandbox.write("user/SKILL.md", &skill("user"));
    sandbox.write("home/.agents/skills/mine/SKILL.md", &skill("mine"));
    sandbox.write("link/SKILL.md", &skill("link"));
    sandbox.write("secret", "CANARY");
    symlink("../secret", beside(&sandbox, "link/notes")).unwrap();
    let mine = sandbox.home().join(".agents/skills/mine");
    let shadowed = format!("there is a skill mine already, in {}", mine.display());
    for (folder, code, why) in [
        ("none", 42, "cannot be looked into"),
        ("secret", 42, "is no folder"),
        ("empty", 42, "has no SKILL.md, nor has a folder in it"),
        ("text", 1, "SKILL.md: "),
        ("up", 1, "the name \"..-up\" is not possible"),
        ("dots", 1, "the name \"..\" is not possible"),
        ("user", 1, "the name \"user\" is not possible"),
        ("link", 1, "leads out of the folder"),
        ("mine", 42, shadowed.as_str()),
    ] {
        for verb in ["install", "link"] {
            let said = castor(&sandbox, &["skills", verb, &beside(&sandbox, folder), "--consent"]);
            assert!(said.0 == code && said.1.contains(why) && !said.1.contains("CANARY"), "{verb} {folder}: {said:?}");
        }
    }
    let (code, text) = castor(&sandbox, &["skills", "install", &beside(&sandbox, "empty"), "--path", "x"]);
    assert!(code == 42 && text.contains("--path is for git repositories"), "{text}");
    assert_eq!(installed_files(&sandbox), [""; 0]);

    sandbox.write("ext/gemini-extension.json", "{\"name\": \"ext\", \"version\": \"1\"}");
    assert_eq!(castor(&sandbox, &["extensions", "link", &beside(&sandbox, "ext"), "--consent"]).0, 0);
    let ours = format!("castor did not install the skill mine; it is gone when you remove {}", mine.display());
    for (name, why) in [
        ("mine", ours.as_str()),
        ("none", "there is no skill none; `castor skills list` lists them"),
        ("../../x", "there is no skill ../../x;"),
        ("ext", "ext is an extension: write `castor extensions uninstall ext`"),
    ] {
        let (code, text) = castor(&sandbox, &["skills", "uninstall", name]);
        assert!(code == 42 && text.contains(why), "{name}: {text}");
    }
    assert!(mine.join("SKILL.md").exists() && installed_files(&sandbox) == ["ext.json"]);
}
