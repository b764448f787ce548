//! Folder configuration under different trust decisions on the folder and its parents.

use std::fs;

use super::{load, save_decision, save_fresh_decision};
use crate::workspace::{policies::PolicyPaths, trust};
use castor_base::{
    agent::{AgentDefinition, AgentOrigin},
    path::AbsPath,
    trust::{Trust, TrustChoice},
};
use castor_hands::{disk, secrets::Env};

struct Disk {
    root: AbsPath,
    env: Env,
    _keep: tempfile::TempDir,
}

impl Disk {
    fn new() -> Self {
        let keep = tempfile::tempdir().unwrap();
        let root = disk::real_path(&AbsPath::new(keep.path()).unwrap()).unwrap();
        let env = Env::from_pairs([("HOME", root.join("h").to_string().as_str())]);
        Self { root, env, _keep: keep }
    }

    #[allow(clippy::disallowed_methods)]
    fn write(&self, file: &str, text: &str) {
        let file = self.root.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    fn trust(&self, folder: &str, choice: TrustChoice) {
        let ground = load(&self.env, &self.root.join(folder));
        save_decision(&self.root.join("h/.castor"), &ground, choice).unwrap();
    }

    /// What the user is asked about, and which settings count.
    fn asked(&self, folder: &str) -> (Vec<String>, usize) {
        let ground = load(&self.env, &self.root.join(folder));
        let message = ground.doubt.as_ref().map(|it| it.form.message.clone()).unwrap_or_default();
        let names = message.lines().filter_map(|it| it.strip_prefix("- ").map(str::to_owned)).collect();
        (names, ground.layers().layers.len())
    }
}

/// A yes to a repository is none to what a part of it brings, perhaps since then.
#[test]
fn subfolder_of_a_trusted_repository_asks_once() {
    let disk = Disk::new();
    disk.write("r/.git/HEAD", "");
    disk.write("r/.castor/settings.json", "{}");
    disk.write("r/.env", "GEMINI_MODEL=a");
    disk.write("r/part/x", "");
    disk.trust("r", TrustChoice::Folder);
    assert_eq!(disk.asked("r"), (vec![], 1));
    assert_eq!(disk.asked("r/part"), (vec![], 0), "what it has from above is known");
    disk.write("r/late/.castor/settings.json", "{}");
    assert_eq!(disk.asked("r/late"), (vec![".castor/settings.json (new)".to_owned()], 0));
    disk.trust("r/late", TrustChoice::Folder);
    assert_eq!(disk.asked("r/late"), (vec![], 1));
    assert_eq!(disk.asked("r/late"), (vec![], 1), "once");
}

/// A folder of projects is the user's own, and so is what they put there.
#[test]
fn a_project_in_a_trusted_folder_is_trusted_as_it_is_found() {
    let disk = Disk::new();
    disk.write("work/one/.git/HEAD", "");
    disk.write("work/one/.castor/settings.json", "{}");
    disk.trust("work", TrustChoice::Folder);
    assert_eq!(disk.asked("work/one"), (vec![], 1));
    disk.write("work/one/.castor/settings.json", "{ }");
    assert_eq!(disk.asked("work/one"), (vec![".castor/settings.json (changed)".to_owned()], 0));
}

/// What a repository puts in the place of a folder is not what the user spoke of.
#[test]
#[allow(clippy::disallowed_methods)]
fn a_link_in_the_place_of_a_trusted_folder_is_not_trusted() {
    let disk = Disk::new();
    disk.write("r/.git/HEAD", "");
    disk.write("r/part/.castor/settings.json", "{}");
    disk.trust("r/part", TrustChoice::Folder);
    assert_eq!(disk.asked("r/part"), (vec![], 1));
    fs::rename(disk.root.join("r/part"), disk.root.join("r/other")).unwrap();
    std::os::unix::fs::symlink("other", disk.root.join("r/part")).unwrap();
    let ground = load(&disk.env, &disk.root.join("r/part"));
    assert_eq!(ground.trust, Trust::Unknown);
    // The user's own link is the user's word.
    std::os::unix::fs::symlink("r", disk.root.join("mine")).unwrap();
    let home = disk.root.join("h/.castor/trustedFolders.json");
    disk.write("h/.castor/trustedFolders.json", &format!("{{\"{}\": \"TRUST_FOLDER\"}}", disk.root.join("mine")));
    assert!(load(&disk.env, &disk.root.join("r")).trust.is_trusted(), "{home}");
    assert_eq!(trust::list_rules(&disk.env).unwrap().len(), 1);
}

/// Keys of a `.env` file count from the yes on. Where nobody said anything the file is only known.
#[test]
fn env_file_counts_only_after_trust() {
    let disk = Disk::new();
    disk.write("r/.env", "GEMINI_API_KEY=theirs");
    let key = || load(&disk.env, &disk.root.join("r")).env.get("GEMINI_API_KEY").map(str::to_owned);
    assert_eq!(key(), None);
    disk.trust("r", TrustChoice::Never);
    assert_eq!(key(), None);
    let ground = load(&disk.env, &disk.root.join("r"));
    save_fresh_decision(&disk.env, &disk.root.join("h/.castor"), &ground, TrustChoice::Folder).unwrap();
    assert_eq!(key().as_deref(), Some("theirs"));
    disk.write("r/.env", "GEMINI_API_KEY=others");
    assert_eq!(key(), None, "as it is now nobody said yes to it");
}

/// The record of a repository covers its parts, too: where it is spoilt, that is said and not only asked about.
#[test]
#[allow(clippy::disallowed_methods)]
fn a_spoilt_record_of_the_repository_is_said_in_its_parts() {
    let disk = Disk::new();
    disk.write("r/.git/HEAD", "");
    disk.write("r/.castor/settings.json", "{}");
    disk.write("r/part/.castor/settings.json", "{}");
    disk.trust("r", TrustChoice::Folder);
    for record in fs::read_dir(disk.root.join("h/.castor/integrity")).unwrap() {
        fs::write(record.unwrap().path(), "garbage").unwrap();
    }
    let ground = load(&disk.env, &disk.root.join("r/part"));
    assert!(ground.doubt.is_some());
    assert!(ground.warnings.iter().any(|it| it.message.contains("cannot be used")), "{:?}", ground.warnings);
}

/// Who spoils the record of a yes gets no yes by that.
#[test]
#[allow(clippy::disallowed_methods)]
fn a_spoilt_record_admits_nothing() {
    let disk = Disk::new();
    disk.write("r/.castor/policies/all.toml", "[[rule]]\ntoolName='*'\ndecision='allow'\npriority=9\n");
    disk.write("r/.castor/settings.json", "{}");
    disk.trust("r", TrustChoice::Folder);
    let counts = || {
        let ground = load(&disk.env, &disk.root.join("r"));
        let layers = ground.layers();
        let (policies, _) = ground.policies(layers, &PolicyPaths::default());
        let said = ground.warnings.iter().any(|it| it.message.contains("cannot be used"));
        (policies.len(), layers.layers.len(), ground.doubt.is_some(), said)
    };
    assert_eq!(counts(), (1, 1, false, false));
    let records = fs::read_dir(disk.root.join("h/.castor/integrity")).unwrap();
    let files: Vec<_> = records.map(|it| it.unwrap().path()).collect();
    let [file] = files.as_slice() else { panic!("{files:?}") };
    let good = fs::read_to_string(file).unwrap();
    let elsewhere = good.replace(&disk.root.join("r").to_string(), "/elsewhere");
    let newer = good.replace("\"version\": 1", "\"version\": 2");
    for spoilt in ["", "{}", "null", "garbage", &good[..good.len() / 2], &elsewhere, &newer] {
        assert_ne!(spoilt, good);
        fs::write(file, spoilt).unwrap();
        assert_eq!(counts(), (0, 0, true, true), "{spoilt}");
    }
    fs::write(file, &good).unwrap();
    assert_eq!(counts(), (1, 1, false, false));
}

/// An agent counts as it was trusted, with what its servers run.
#[test]
fn agents_count_under_trust_alone() {
    let agent = |name: &str, more: &str| format!("---\nname: {name}\ndescription: d\n{more}---\nT");
    let disk = Disk::new();
    disk.write("w/.claude/agents/a.md", &agent("a", ""));
    disk.write("w/.gemini/agents/b.md", &agent("b", "mcp_servers: {s: {command: ./run}}\n"));
    disk.write("w/.gemini/agents/_c.md", "x");
    disk.write("w/run", "1");
    let own = || {
        let found = load(&disk.env, &disk.root.join("w")).agents(&|_| None);
        let of_workspace = |it: &&AgentDefinition| matches!(it.origin, AgentOrigin::Workspace(_));
        found.definitions.iter().filter(of_workspace).map(|it| it.descriptor.name.clone()).collect::<Vec<_>>().join(" ")
    };
    let notice = load(&disk.env, &disk.root.join("w")).doubt.unwrap().notice;
    assert!(notice.starts_with("This folder is not trusted, so its own programs and agents are not used."), "{notice}");
    let all = [".gemini/agents/b.md", ".claude/agents/a.md", "run (would run)", "MCP server s: ./run"];
    assert_eq!((disk.asked("w").0, own()), (all.map(str::to_owned).to_vec(), String::new()));
    disk.trust("w", TrustChoice::Folder);
    assert_eq!((disk.asked("w").0, own()), (vec![], "b a".to_owned()));
    disk.write("w/.claude/agents/a.md", &agent("a", "model: haiku\n"));
    disk.write("w/.castor/agents/d.md", &agent("d", ""));
    let changed = [".castor/agents/d.md (new)", ".claude/agents/a.md (changed)"];
    assert_eq!((disk.asked("w").0, own()), (changed.map(str::to_owned).to_vec(), "b".to_owned()));
    disk.trust("w", TrustChoice::Folder);
    assert_eq!(own(), "d b a");
    disk.write("w/run", "2");
    let changed = ["run (changed)", "MCP server s: ./run"];
    assert_eq!((disk.asked("w").0, own()), (changed.map(str::to_owned).to_vec(), "d a".to_owned()));
    disk.trust("w", TrustChoice::Never);
    assert_eq!(own(), "");
}
