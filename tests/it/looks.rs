//! Who only looks: everything is read-only, whatever the settings and the user allow otherwise.
#![cfg(target_os = "linux")]

use std::fs;

use castor_base::{
    path::AbsPath,
    sandbox::{Confinement, OwnFolders, SandboxGrant},
};
use castor_hands::process::{CommandEvent, Exit, Groups, Spawn, Stdin, sandbox};

/// This binary is the sandbox's helper, too: before its own `main`, which would take the arguments for its own.
#[used]
#[unsafe(link_section = ".init_array")]
static ENTER: extern "C" fn() = {
    extern "C" fn enter() {
        sandbox::enter_if_asked();
    }
    enter
};

struct Ground {
    _dir: tempfile::TempDir,
    top: AbsPath,
}

impl Ground {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let top = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
        for it in ["w/src", "more", "castor/session/tmp"] {
            fs::create_dir_all(top.join(it).as_path()).unwrap();
        }
        Self { _dir: dir, top }
    }

    fn confined(&self) -> Confinement {
        let at = |it: &str| self.top.join(it);
        Confinement {
            writable: vec![at("more")],
            grant: SandboxGrant { write: vec![at("more")], ..SandboxGrant::default() },
            own_folders: OwnFolders { tmp: at("castor/session/tmp"), records: at("castor/stand-ins"), caches: None },
            ..Confinement::for_folder(&at("w"))
        }
    }

    async fn run(&self, it: &Confinement, line: &str) -> (String, Exit) {
        let env = [("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())];
        let (cwd, groups) = (self.top.join("w"), Groups::default());
        let args = ["-c", line];
        let spawn =
            Spawn { program: "bash", args: &args, cwd: &cwd, env: &env, stdin: Stdin::Null, confined: Some(it) };
        let (mut child, mut text) = (spawn.start(&groups).unwrap(), String::new());
        loop {
            match child.next().await {
                CommandEvent::Output(it) => text += &it,
                CommandEvent::Exited(it) => return (text, it),
                _ => (),
            }
        }
    }
}

/// No placeholders are made for it.
#[tokio::test]
async fn looking_command_writes_only_temporary_files() {
    if !sandbox::has_mounts() {
        return;
    }
    let ground = Ground::new();
    let line = "for it in a src/a ../more/a .git/x /tmp/castor-look $TMPDIR/a /dev/null; do
        echo x > $it && echo \"<<$it>>\"; done 2>/dev/null; mkdir .vscode; ls -A; echo \"locks $GIT_OPTIONAL_LOCKS\"";
    let (told, _) = ground.run(&ground.confined().into_read_only(), line).await;
    let wrote: Vec<&str> = told.lines().filter(|it| it.starts_with("<<")).collect();
    assert_eq!(wrote, ["<</tmp/castor-look>>", "<</tmp/a>>", "<</dev/null>>"], "{told}");
    assert!(ground.top.join("castor/session/tmp/castor-look").as_path().exists(), "it is the session's own");
    assert!(!std::path::Path::new("/tmp/castor-look").exists());
    assert!(told.contains("src") && told.contains("locks 0"), "{told}");
    // Nothing was prepared for it, either.
    assert!(!ground.top.join("castor/stand-ins").as_path().exists());
}

/// What no checkpoint can give back is read-only, and a yes opens it.
#[tokio::test]
async fn uncheckpointed_paths_are_read_only_until_approved() {
    if !sandbox::has_mounts() {
        return;
    }
    let ground = Ground::new();
    let at = |it: &str| ground.top.join(it);
    fs::write(at("w/big").as_path(), "big").unwrap();
    let it = Confinement { read_only_paths: vec![at("w/big"), at("w/src")], ..ground.confined() };
    let line = "echo x > big; rm big; touch src/x; touch free; ls . src";
    let (told, exit) = ground.run(&it, line).await;
    assert!(told.contains("Read-only file system") && exit.code == Some(0), "{told}");
    assert_eq!(fs::read_to_string(at("w/big").as_path()).unwrap(), "big");
    assert!(at("w/free").as_path().exists() && !at("w/src/x").as_path().exists());
    let denial =
        sandbox::denial::recognise_denial(&it, &at("w"), line, Some(1), "bash: line 1: big: Read-only file system");
    let Some(denial) = denial else { panic!("{told}") };
    let (told, _) = ground.run(&it.with_grant(&denial.grant_once()).unwrap(), line).await;
    assert!(!at("w/big").as_path().exists() && !at("w/src/x").as_path().exists(), "{told}");
}

/// S15: what is not there yet is made, and gets another name before anybody obeys it.
#[tokio::test]
async fn new_configuration_is_quarantined() {
    let ground = Ground::new();
    let line = "mkdir .claude .vscode && echo evil > .claude/settings.json && echo evil > .mcp.json && echo '<<made>>'";
    let (told, exit) = ground.run(&ground.confined(), line).await;
    assert!(told.contains("<<made>>"), "{told}");
    let aside: Vec<String> = exit.findings.quarantined.iter().map(ToString::to_string).collect();
    let w = ground.top.join("w");
    assert_eq!(aside, [".claude", ".mcp.json", ".vscode"].map(|it| w.join(it).to_string()));
    assert!(!w.join(".claude").as_path().exists() && w.join(".claude.castor-aside/settings.json").as_path().exists());
}
