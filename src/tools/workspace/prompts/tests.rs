//! Files of commands and skills: what comes of each, of clashes, and of those that are hostile.

#![allow(clippy::disallowed_methods)]

use super::{FoundPrompts, commands::name_of, parse_command, parse_skill};
use crate::workspace::folder_config::{self, FolderConfig};
use castor_base::{
    agent::AgentOrigin,
    file_prompt::CommandFormat::{self, Markdown, Toml},
    path::AbsPath,
    trust::TrustedFileKind,
};
use castor_hands::secrets::Env;

fn path(text: &str) -> AbsPath {
    AbsPath::new(text).unwrap()
}

fn origin() -> AgentOrigin {
    AgentOrigin::User(path("/h/x/SKILL.md"))
}

/// Description, hint, model and prompt, then what does not count; or the fault.
fn command(format: CommandFormat, text: &str) -> String {
    let fault = |it: &super::FileFault| {
        let at = it.at.map(|(line, _)| format!("{line}: ")).unwrap_or_default();
        format!("{at}{}", it.message)
    };
    match parse_command(text.as_bytes(), "c", format, origin()) {
        Ok((it, notes)) => {
            let model = it.model.unwrap_or_default();
            let notes: String = notes.iter().map(|it| format!(" !{}", fault(it))).collect();
            format!("{}|{}|{model}|{}{notes}", it.description, it.hint, it.prompt)
        }
        Err(it) => format!("fault {}", fault(&it)),
    }
}

#[test]
fn files_of_commands() {
    for (format, text, want) in [
        (Toml, "prompt = \"Do {{args}}.\"", "Do {{args}}.|arguments||Do {{args}}."),
        (Toml, "description = \"D\"\nprompt = '''\nA\nB\n'''", "D|||A\nB"),
        (Toml, "prompt = \"\"", "fault has no prompt"),
        (Toml, "description = \"D\"", "fault 1: missing field `prompt`"),
        (Toml, "prompt = \"a\"\nmodel = 1", "a|||a !model means nothing here; known are prompt and description"),
        (Markdown, "Just text about $1.\n", "Just text about $1.|arguments||Just text about $1."),
        (
            Markdown,
            "---\ndescription: Fix: it\nargument-hint: [issue] [priority]\nallowed-tools: Bash(git:*)\nmodel: haiku\n---\nFix $1",
            "Fix: it|[issue] [priority]|haiku|Fix $1 !4: allowed-tools has no effect: what is allowed is yours to say: rules \
             and answers of your own count",
        ),
        (
            Markdown,
            "---\ndescription: x\n",
            "fault 1: should begin with front matter: keys between a first line --- and another line ---",
        ),
        // Tags that only a model would read.
        (Toml, "prompt = \"a\u{e0041}\u{200b}b\"\ndescription = \"d\u{202e}e\"", "de|||ab"),
    ] {
        assert_eq!(command(format, text), want, "{text}");
    }
    assert!(command(Toml, "a = 1\nprompt = \"x").starts_with("fault 2: "), "faults have their line");
    for (file, format, want) in [
        ("fix.toml", Toml, "fix"),
        ("git/commit.toml", Toml, "git:commit"),
        ("a b/c:d.md", Markdown, "a_b:c_d"),
        (&format!("{}.md", "x".repeat(60)), Markdown, &format!("{}...", "x".repeat(47))),
    ] {
        assert_eq!(name_of(file, format), want);
    }
}

#[test]
fn files_of_skills() {
    for (text, want) in [
        ("---\nname: pdf\ndescription: Works with PDF files.\n---\nBody", "pdf|Works with PDF files.|Body"),
        ("---\nname: a/b c\ndescription: Use: for it\n  and more\n---\nBody", "a-b-c|Use: for it and more|Body"),
        ("---\nname: x\n---\nBody", "has no description in its front matter"),
        ("---\ndescription: x\n---\nBody", "has no name in its front matter"),
        ("---\nname: x\ndescription: y\n---\n", "has no instructions below its front matter"),
        ("no front matter", "should begin with front matter: keys between a first line --- and another line ---"),
        ("---\nname: x\ndescription: y\n---\na\u{e0041}b", "x|y|ab"),
    ] {
        let got = parse_skill(text.as_bytes(), origin());
        let got = got.map_or_else(|it| it.message, |it| format!("{}|{}|{}", it.name, it.description, it.instructions));
        assert_eq!(got, want, "{text}");
    }
}

/// A home, a workspace and what is found there.
struct Place {
    temp: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { temp: tempfile::tempdir().unwrap() }
    }

    fn root(&self) -> AbsPath {
        castor_hands::disk::real_path(&path(self.temp.path().to_str().unwrap())).unwrap()
    }

    fn write(&self, name: &str, text: &str) {
        let file = self.temp.path().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    fn ground(&self, trust: Option<&str>) -> FolderConfig {
        let home = self.root().join("h").to_string();
        let trust = trust.map(|it| ("CASTOR_TRUST_WORKSPACE", it));
        let env = Env::from_pairs([("HOME", home.as_str())].into_iter().chain(trust));
        folder_config::load(&env, &self.root().join("w"))
    }

    fn found(&self, trust: Option<&str>) -> FoundPrompts {
        self.ground(trust).prompts(&|it| it == "help")
    }

    fn commands(&self, trust: &str) -> Vec<String> {
        let found = self.found(Some(trust));
        found.commands.iter().map(|it| format!("{}={}", it.name, it.prompt)).collect()
    }

    fn skills(&self, trust: &str) -> Vec<String> {
        let found = self.found(Some(trust));
        found.skills.iter().map(|it| format!("{}={} {:?}", it.name, it.instructions, it.files)).collect()
    }

    fn warnings(&self) -> Vec<String> {
        let root = format!("{}/", self.root());
        self.found(Some("true")).warnings().map(|it| it.to_string().replace(&root, "")).collect()
    }
}

fn toml(text: &str) -> String {
    format!("prompt = \"{text}\"")
}

fn skill(name: &str, text: &str) -> String {
    format!("---\nname: {name}\ndescription: D\n---\n{text}")
}

/// No file takes the place of castor's own command, of the user's, or of the workspace's.
#[test]
fn names_that_two_want_are_nobodys() {
    let it = Place::new();
    it.write("h/.gemini/commands/fix.toml", &toml("user"));
    it.write("h/.castor/commands/plain.toml", &toml("plain"));
    it.write("h/.gemini/commands/plain.toml", &toml("second"));
    it.write("w/.gemini/commands/fix.toml", &toml("workspace"));
    it.write("w/.claude/commands/a/only.md", "only");
    it.write("w/.gemini/commands/help.toml", &toml("shadow"));
    assert_eq!(
        it.commands("true"),
        ["a:only=only", "plain=plain", "user.fix=user", "workspace.fix=workspace", "workspace.help=shadow"]
    );
    assert_eq!(
        it.warnings(),
        [
            "h/.gemini/commands/plain.toml: h/.castor/commands/plain.toml defines /plain already; the file is skipped",
            "h/.gemini/commands/fix.toml: /fix is defined by user and workspace; this one is /user.fix",
            "w/.gemini/commands/fix.toml: /fix is defined by user and workspace; this one is /workspace.fix",
            "w/.gemini/commands/help.toml: /help is a command of castor; this one is /workspace.help",
        ]
    );
    assert_eq!(it.commands("false"), ["fix=user", "plain=plain"], "nothing of a folder that is not trusted");
}

#[test]
fn skills_of_the_workspace_come_first() {
    let it = Place::new();
    it.write("h/.claude/skills/x/SKILL.md", &skill("x", "user"));
    it.write("h/.agents/skills/y/SKILL.md", &skill("y", "y"));
    it.write("h/.agents/skills/y/run.py", "");
    it.write("h/.agents/skills/y/docs/more.md", "");
    it.write("w/.gemini/skills/x/SKILL.md", &skill("x", "gemini"));
    it.write("w/.agents/skills/x/SKILL.md", &skill("x", "agents"));
    it.write("w/.agents/skills/x/notSKILL.md", "no skill");
    assert_eq!(it.skills("true"), ["x=agents [\"notSKILL.md\"]", "y=y [\"docs/more.md\", \"run.py\"]"]);
    assert_eq!(it.skills("false"), ["x=user []", "y=y [\"docs/more.md\", \"run.py\"]"]);
    assert_eq!(it.warnings().len(), 2);
}

/// By size before anything parses it, in both places.
#[test]
fn huge_files_are_refused_by_size() {
    let it = Place::new();
    let huge = format!("prompt = \"{}\"", "x".repeat(10 << 20));
    it.write("h/.gemini/commands/huge.toml", &huge);
    it.write("h/.gemini/commands/good.toml", &toml("good"));
    it.write("w/.gemini/commands/huge.toml", &huge);
    it.write("w/.gemini/commands/large.toml", &toml(&"x".repeat(300 << 10)));
    it.write("w/.agents/skills/huge/SKILL.md", &skill("huge", &"x".repeat(5 << 20)));
    assert_eq!(it.commands("true"), ["good=good"]);
    assert!(it.skills("true").is_empty());
    let unread = "is too large, cannot be read, or a link leads out of the folder";
    assert_eq!(
        it.warnings(),
        [
            "h/.gemini/commands/huge.toml: is over 256 KiB; the file is skipped".to_owned(),
            "w/.gemini/commands/large.toml: is over 256 KiB; the file is skipped".to_owned(),
            format!("w/.gemini/commands/huge.toml: cannot be used: it {unread}"),
            format!("w/.agents/skills/huge/SKILL.md: cannot be used: it or what lies beside it {unread}"),
        ]
    );
}

/// What a workspace names is what lies in it.
#[cfg(unix)]
#[test]
fn links_bring_nothing_in_from_outside() {
    use std::os::unix::fs::symlink;

    let it = Place::new();
    it.write("secret/SKILL.md", &skill("stolen", "outside"));
    it.write("secret/key.toml", &toml("outside"));
    it.write("w/.agents/skills/own/SKILL.md", &skill("own", "own"));
    it.write("w/.gemini/commands/own.toml", &toml("own"));
    let at = |name: &str| it.temp.path().join(name);
    symlink(at("secret"), at("w/.agents/skills/evil")).unwrap();
    symlink(at("secret/key.toml"), at("w/.gemini/commands/evil.toml")).unwrap();
    symlink(at("secret"), at("w/.gemini/commands/sub")).unwrap();
    assert_eq!(it.commands("true"), ["own=own"]);
    assert_eq!(it.skills("true"), ["own=own []"]);
    assert_eq!(it.warnings().len(), 3, "{:?}", it.warnings());
    // What lies elsewhere is no part of a yes to the skill.
    symlink(at("secret"), at("w/.agents/skills/own/docs")).unwrap();
    assert!(it.skills("true").is_empty());
    let why = it.warnings().into_iter().find(|it| it.contains("own/SKILL.md")).unwrap();
    assert!(why.contains("what lies beside it") && why.contains("a link leads out"), "{why}");
}

/// A yes is to the files as they were.
#[test]
fn files_changed_after_trust_do_not_count() {
    let it = Place::new();
    it.write("w/.gemini/commands/go.toml", &toml("good"));
    it.write("w/.claude/commands/md.md", "good");
    it.write("w/.claude/skills/s/SKILL.md", &skill("s", "good"));
    let w = it.root().join("w").to_string();
    it.write("h/.castor/trustedFolders.json", &serde_json::json!({ w: "TRUST_FOLDER" }).to_string());
    let counts = |it: &Place| {
        let found = it.found(None);
        (found.commands.iter().map(|it| it.name.clone()).collect::<Vec<_>>(), found.skills.len())
    };
    assert_eq!(counts(&it), (vec!["go".to_owned(), "md".to_owned()], 1));
    it.write("w/.gemini/commands/go.toml", &toml("bad"));
    it.write("w/.claude/skills/s/SKILL.md", &skill("s", "bad"));
    it.write("w/.claude/commands/new.md", "new");
    assert_eq!(counts(&it), (vec!["md".to_owned()], 0));
}

type Change = fn(&Place);

/// A skill says what to run, and the yes was to what would run then.
#[test]
fn what_lies_beside_a_skill_is_a_part_of_the_yes() {
    let (run, folder) = (".agents/skills/s/scripts/run.py", "w/.agents/skills/s");
    let changes: &[(&str, Change)] = &[
        ("scripts/run.py, which is changed", |it| it.write("w/.agents/skills/s/scripts/run.py", "evil()")),
        ("deep/er/est/new.py, which is new", |it| it.write("w/.agents/skills/s/deep/er/est/new.py", "evil()")),
    ];
    for (why, change) in changes {
        let it = Place::new();
        it.write(&format!("{folder}/SKILL.md"), &skill("s", "Run scripts/run.py."));
        it.write(&format!("w/{run}"), "good()");
        it.write("w/.agents/skills/other/SKILL.md", &skill("other", "o"));
        let w = it.root().join("w").to_string();
        it.write("h/.castor/trustedFolders.json", &serde_json::json!({ w: "TRUST_FOLDER" }).to_string());
        let names = || it.found(None).skills.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(), ["other", "s"]);
        // What programs leave behind is no part of it.
        it.write(&format!("{folder}/scripts/__pycache__/run.pyc"), "");
        assert_eq!(names(), ["other", "s"]);
        change(&it);
        assert_eq!(names(), ["other"], "{why}");
        let ground = it.ground(None);
        let said = ground.project.changes(TrustedFileKind::Skill);
        assert_eq!(said.len(), 1);
        assert!(said[0].contains("skills/s/SKILL.md is not used: it brings") && said[0].contains(why), "{said:?}");
        let asked = ground.doubt.unwrap().form.message;
        assert!(asked.contains(why.split(',').next().unwrap()) && !asked.contains("SKILL.md"), "{asked}");
    }
}
