//! Confined commands in roots whose repository lies elsewhere, and in writable folders that hold one another.
#![cfg(target_os = "linux")]

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use serde_json::json;

use crate::{
    client::{Namespaces, WATCHDOG},
    confined::{Bed, work_in_auto},
    incidents::prompt,
};

const WORK: &str = "echo x > q && git add q && git commit -qm two && git branch two && git status --short && \
                    [ $(git log --format=%s | head -1) = two ] && echo '<<worked>>'";
/// What git obeys in the common folder of a repository and of its worktrees.
const OBEY: &str = "git=$(git rev-parse --path-format=absolute --git-common-dir)
    for it in hooks/pre-commit config config.worktree info/attributes modules/x/config commondir branches/x \\
        worktrees/tree/config.worktree worktrees/tree/commondir worktrees/tree/gitdir
    do mkdir -p $(dirname $git/$it); echo evil >> $git/$it && echo \"<<wrote $it>>\"; done 2>/dev/null
    mv $git/hooks $git/h 2>/dev/null && echo '<<moved>>'; [ -d $git ] && echo '<<looked>>'";

pub fn git(folder: &Path, args: &[&str]) {
    let mut git = Command::new("git");
    git.args(args).current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    assert!(git.output().unwrap().status.success(), "{args:?}");
}

/// All that is in a folder becomes the first commit of a repository, whose user has a name.
pub fn commit_all(folder: &Path) {
    git(folder, &["init", "-q", "-b", "main"]);
    git(folder, &["config", "user.name", "a"]);
    git(folder, &["config", "user.email", "a@b"]);
    git(folder, &["add", "-A"]);
    git(folder, &["commit", "-qm", "one"]);
}

/// A session in `root`, beside `repo`, a repository with a linked worktree `tree`; `writable` below the folder of both.
fn bed(root: &str, writable: &[&str], commands: &[&str]) -> Bed {
    placed(Bed::new(commands), root, writable)
}

fn placed(mut bed: Bed, root: &str, writable: &[&str]) -> Bed {
    bed.sandbox.write("repo/sub/a", "");
    let top = bed.path("..").canonicalize().unwrap();
    let repo = top.join("repo");
    commit_all(&repo);
    git(&repo, &["worktree", "add", "-q", "../tree"]);
    fs::write(top.join(root).join("work.sh"), WORK).unwrap();
    fs::write(top.join(root).join("obey.sh"), OBEY).unwrap();
    let writable: Vec<_> = writable.iter().map(|it| top.join(it)).collect();
    writable.iter().for_each(|it| fs::create_dir_all(it).unwrap());
    let settings = json!({"security": {"sandbox": {"writable": writable}}});
    bed.sandbox.write("home/.castor/settings.json", &settings.to_string());
    let new = json!({"cwd": top.join(root), "mcpServers": []});
    bed.session = bed.client.result("session/new", new).unwrap()["sessionId"].as_str().unwrap().to_owned();
    bed
}

/// The guards are the same there, and only where the repository knows of the root.
#[test]
fn git_works_in_linked_worktrees_and_in_folders_of_a_repository() {
    for root in ["tree", "repo/sub"] {
        let mut bed = bed(root, &[], &["bash work.sh", "bash obey.sh"]);
        let told = bed.run();
        assert!(told.contains("<<worked>>"), "{root}: {told}");
        let told = bed.run();
        assert!(
            told.contains("<<looked>>") && !told.contains("<<wrote") && !told.contains("<<moved"),
            "{root}: {told}"
        );
        for it in ["hooks/evil", "commondir", "config.worktree"] {
            assert!(!bed.path("../repo/.git").join(it).exists(), "{it}");
        }
    }
}

/// One yes is for all of a folder beside the workspace, and nothing in it is kept from the command then.
#[test]
fn a_bare_repository_beside_the_workspace_is_made_anew() {
    let line = "rm -rf ../bare.git; git clone -q --bare . ../bare.git && git push -q ../bare.git HEAD:refs/heads/zz && \
                echo '<<pushed>>'";
    for namespaces in Namespaces::all().filter(|it| *it != Namespaces::Nobody) {
        let mut bed = Bed::prepared(&[line], |it| {
            it.namespaces = namespaces;
            work_in_auto(it);
            let ws = it.workspace();
            commit_all(&ws);
            git(&ws, &["clone", "-q", "--bare", ".", "../bare.git"]);
            git(&ws.join("../bare.git"), &["tag", "old"]);
        });
        let (asked, said) = prompt(&mut bed.client, &bed.session, "go", "allow_once");
        assert_eq!(asked.len(), 1, "{namespaces:?}: {asked:?} {said}");
        assert!(said.contains("bare.git. Run the whole command again with write access there?"), "{said}");
        assert!(said.contains("<<pushed>>"), "{namespaces:?}: {said}");
        let bare = bed.path("../bare.git");
        git(&bare, &["rev-parse", "--verify", "refs/heads/zz"]);
        git(&bare, &["fsck", "--strict"]);
        let left = |it: &str| bare.join(it).exists();
        assert!(left("HEAD") && left("config") && left("description") && left("info/exclude"), "{said}");
        let old =
            Command::new("git").args(["rev-parse", "-q", "--verify", "refs/tags/old"]).current_dir(&bare).status();
        assert!(!old.unwrap().success(), "the repository of before is gone, as the line said");
    }
}

/// What no checkpoint can give back is not written unasked.
#[test]
fn auto_asks_before_it_writes_a_repository_outside_the_roots() {
    let git_folder = |bed: &Bed| bed.path("../repo/.git").canonicalize().unwrap();
    let heads = |bed: &Bed| fs::read_dir(git_folder(bed).join("refs/heads")).unwrap().count();
    for root in ["tree", "repo/sub"] {
        let mut bed = placed(Bed::prepared(&["git branch new"], work_in_auto), root, &[]);
        if bed.sandbox.namespaces == Namespaces::Nobody {
            return;
        }
        let prompt = json!({"sessionId": bed.session, "prompt": [{"type": "text", "text": "go"}]});
        bed.client.request_as(json!("p"), "session/prompt", prompt);
        let question = loop {
            let it = bed.client.next().unwrap().expect("the question");
            if it["method"] == "session/request_permission" {
                break it;
            }
        };
        let asked = question.to_string();
        let folder = git_folder(&bed).display().to_string();
        assert!(asked.contains(&format!("blocked writing below {folder}.")), "{root}: {asked}");
        let before = heads(&bed);
        let yes = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
        bed.client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": yes}));
        while bed.client.next().unwrap().expect("the end")["id"] != "p" {}
        assert_eq!(heads(&bed), before + 1, "{root}");
        bed.client.end().unwrap();
    }
}

/// They may also be absent.
#[test]
fn writable_folders_may_hold_roots_guards_and_one_another() {
    for writable in [&["repo"][..], &["repo/.git"], &["repo", "repo/.git", "repo/sub"], &["gone"], &["", "repo/.git"]] {
        let mut bed = bed("repo/sub", writable, &["bash work.sh", "bash obey.sh"]);
        let told = bed.run();
        assert!(told.contains("<<worked>>"), "{writable:?}: {told}");
        let told = bed.run();
        assert!(
            told.contains("<<looked>>") && !told.contains("<<wrote") && !told.contains("<<moved"),
            "{writable:?}: {told}"
        );
        assert!(fs::read_to_string(bed.path("../repo/.git/config")).unwrap().contains("a@b"));
    }
}

/// Commits what no commit had, and checks it out.
const FORGE: &str = "blob=$(echo evil | git hash-object -w --stdin); export GIT_INDEX_FILE=$TMPDIR/index
    git read-tree HEAD && git update-index --add --cacheinfo 100644,$blob,.mcp.json
    new=$(git commit-tree -p HEAD -m evil $(git write-tree)); unset GIT_INDEX_FILE
    git branch evil $new && git checkout -qf evil && git show editor:.mcp.json && echo '<<forged>>'";

/// A yes to a line that names a configuration file opens that file, and keeps it if it is new.
#[test]
fn earlier_commits_stay_and_session_commits_are_quarantined() {
    for packed in [false, true] {
        let mut bed = bed("repo", &[], &["bash forge.sh", "git checkout -qf editor~2", "git checkout -q editor"]);
        let root = bed.path("../repo").canonicalize().unwrap();
        (0..200).for_each(|n| fs::write(root.join(format!("file-{n}")), n.to_string()).unwrap());
        git(&root, &["checkout", "-qb", "editor"]);
        for (file, text) in [(".mcp.json", "{}"), (".vscode/deep/run", "mine"), ("file-0", "later")] {
            fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            fs::write(root.join(file), text).unwrap();
            git(&root, &["add", "."]);
            git(&root, &["commit", "-qm", file]);
        }
        git(&root, &["tag", "-am", "last", "last"]);
        git(&root, &["checkout", "-q", "main"]);
        fs::write(root.join("forge.sh"), FORGE).unwrap();
        if packed {
            git(&root, &["gc", "-q", "--aggressive", "--prune=now"]);
        }
        let told = bed.run();
        assert!(told.contains("<<forged>>") && told.contains("put aside"), "{told}");
        assert!(!root.join(".mcp.json").exists() && root.join(".mcp.json.castor-aside").exists());
        for file in [".mcp.json", ".vscode/deep/run"] {
            let told = bed.run();
            assert!(!told.contains("put aside") && root.join(file).exists(), "{packed} {file}: {told}");
        }
    }
}

/// Makes the root a repository of its own, with a program that git would run.
const ATTACK: &str = "mkdir objects refs; cp .git/HEAD HEAD
    printf '[core]\\nrepositoryformatversion=0\\nbare=false\\nworktree=%s\\nfsmonitor=touch %s/PWNED; false\\n' $PWD $PWD > config
    mv .git/HEAD .git/h";

/// What git runs in the root when the user calls it there.
fn git_status(root: &Path) {
    assert!(!git_runs_something(root));
}

fn git_runs_something(root: &Path) -> bool {
    _ = Command::new("git").arg("status").current_dir(root).output().unwrap();
    root.join("PWNED").exists()
}

/// While the command runs git obeys it: the README of the sandbox says so.
#[test]
fn call_cannot_leave_a_root_as_a_bare_repository() {
    let mut bed = bed("repo", &[], &["bash attack.sh"]);
    let root = bed.path("../repo").canonicalize().unwrap();
    fs::write(root.join("attack.sh"), ATTACK).unwrap();
    let told = bed.run();
    assert!(told.contains("put aside") && told.contains("restored"), "{told}");
    git_status(&root);
    assert!(!root.join("HEAD").exists() && root.join(".git/HEAD").exists());
    // What the castor of this test has kept git from.
    fs::rename(root.join(".git"), root.join("aside")).unwrap();
    fs::write(root.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    assert!(git_runs_something(&root), "the attack is none to this git");
}

/// `.git/HEAD` is there again after a background command that ends with castor.
#[test]
fn background_damage_to_a_repository_ends_with_castor() {
    let mut bed = Bed::new(&["& bash attack.sh"]);
    bed.sandbox.write("ws/attack.sh", "mv .git/HEAD out/h; touch out/ready; sleep 100");
    bed.run();
    let start = Instant::now();
    while !bed.path("out/ready").exists() {
        assert!(start.elapsed() < WATCHDOG, "no command");
        std::thread::yield_now();
    }
    assert!(!bed.path(".git/HEAD").exists(), "the test has nothing to restore");
    bed.client.end().unwrap();
    assert_eq!(fs::read_to_string(bed.path(".git/HEAD")).unwrap(), "ref: refs/heads/main");
}

/// A new link is quarantined itself; the target of a dangling link cannot be made.
#[test]
fn config_behind_links_is_quarantined_or_guarded() {
    let link = "mkdir cfg; echo evil > cfg/config.toml; ln -s cfg .cargo";
    let mut bed = Bed::new(&["bash link.sh", "echo x > new && echo '<<new>>'", "bash make.sh"]);
    bed.sandbox.write("ws/link.sh", link);
    bed.sandbox.write("ws/make.sh", "mkdir -p hidden/vs && echo evil > hidden/vs/tasks.json; echo '<<made>>'");
    let told = bed.run();
    assert!(told.contains("put aside") && told.contains("/.cargo") && bed.path(".cargo").symlink_metadata().is_err());
    assert!(bed.path("cfg/config.toml").exists() && bed.path(".cargo.castor-aside").is_symlink(), "{told}");
    let told = bed.run();
    assert!(told.contains("<<new>>"), "{told}");
    symlink("hidden/vs", bed.path(".vscode")).unwrap();
    let told = bed.run();
    assert!(told.contains("<<made>>") && !bed.path("hidden/vs/tasks.json").exists(), "{told}");
}

/// Some work on a disk in memory.
#[test]
fn a_root_in_shared_memory_is_a_root_as_others() {
    let Ok(root) = tempfile::tempdir_in("/dev/shm") else { return };
    let script = "touch made; touch ../castor-escaped || echo '<<kept>>'; echo x > .vscode/x || echo '<<held>>'";
    fs::create_dir(root.path().join(".vscode")).unwrap();
    let mut bed = Bed::new(&["bash try.sh"]);
    fs::write(root.path().join("try.sh"), script).unwrap();
    let new = json!({"cwd": root.path(), "mcpServers": []});
    bed.session = bed.client.result("session/new", new).unwrap()["sessionId"].as_str().unwrap().to_owned();
    let told = bed.run();
    assert!(told.contains("<<kept>>") && told.contains("<<held>>") && root.path().join("made").exists(), "{told}");
}

#[test]
fn names_that_are_no_text_are_guarded_and_in_nobodys_way() {
    let make = "mkdir -p $'odd\\xff/.vscode'; git init -q $'odd\\xff'; echo '<<made>>'";
    let write = "echo evil > $'odd\\xff/.vscode/x' || echo evil > $'odd\\xff/.git/hooks/x' || echo '<<kept>>'";
    let mut bed = Bed::new(&["bash make.sh", "bash write.sh"]);
    bed.sandbox.write("ws/make.sh", make);
    bed.sandbox.write("ws/write.sh", write);
    bed.run();
    let told = bed.run();
    assert!(told.contains("<<kept>>"), "{told}");
}

#[test]
fn guards_survive_many_new_folders() {
    let many = "mkdir $(seq -f a%g 400); echo '<<many>>'";
    let mut bed = Bed::new(&["bash many.sh", "bash write.sh"]);
    bed.sandbox.write("ws/many.sh", many);
    let write = "for it in z*; do echo evil > $it/repo/.git/hooks/evil; done 2>/dev/null; ls z*/repo/.git/hooks; echo '<<tried>>'";
    bed.sandbox.write("ws/write.sh", write);
    for idx in 0..20 {
        bed.sandbox.write(format!("ws/z{idx}/repo/.git/HEAD"), "ref: refs/heads/main");
        bed.sandbox.write(format!("ws/z{idx}/repo/.git/hooks/there"), "");
    }
    assert!(bed.run().contains("<<many>>"));
    let told = bed.run();
    // What was refused is named beside the list.
    assert!(told.contains("<<tried>>") && told.contains("there") && !told.contains("\\nevil"), "{told}");
}

/// Hooks, attributes, includes and programs; settings that cannot be read stop the command.
#[test]
fn paths_in_git_config_are_guarded_like_hooks() {
    let mut bed = Bed::new(&["bash write.sh"]);
    let config = "[core]\nhooksPath = dev/hooks\nfsmonitor = sh tools/mon.sh\n[include]\npath = ../dev/none/more\n";
    bed.sandbox.write("ws/.git/config", config);
    // As the user's own settings have it for all repositories, or below the home folder.
    bed.sandbox.write("home/.gitconfig", "[core]\nhooksPath = everywhere\n[alias]\nx = other\n");
    bed.sandbox.write("ws/everywhere/there", "");
    bed.sandbox.write("ws/dev/hooks/there", "");
    bed.sandbox.write("ws/tools/mon.sh", "mine");
    let write = "for it in everywhere/evil dev/hooks/evil tools/mon.sh dev/none/more dev/other tools/other
        do mkdir -p $(dirname $it); echo evil > $it && echo \"<<$it>>\"; done 2>/dev/null; mv dev/hooks dev/h && echo '<<moved>>'
        true";
    bed.sandbox.write("ws/write.sh", write);
    let told = bed.run();
    for it in ["everywhere/evil", "dev/hooks/evil", "tools/mon.sh", "moved"] {
        assert!(!told.contains(&format!("<<{it}>>")), "{it}: {told}");
    }
    assert!(told.contains("<<dev/other>>") && told.contains("<<tools/other>>"), "{told}");
    assert_eq!(fs::read_to_string(bed.path("tools/mon.sh")).unwrap(), "mine");
    // What was not there is put aside.
    assert!(told.contains("put aside") && !bed.path("dev/none/more").exists(), "{told}");
    assert!(bed.path("dev/none/more.castor-aside").exists());
}

/// As `~/.cargo` is given for its registry.
#[test]
fn config_in_a_writable_tool_folder_is_guarded() {
    let write =
        "cd ../x/.cargo; for it in bin/cargo env registry/y; do echo evil > $it && echo \"<<$it>>\"; done 2>/dev/null
        echo evil > config.toml; mv bin b 2>/dev/null && echo '<<moved>>'; true";
    let mut bed = bed("repo", &["x/.cargo"], &["bash write.sh"]);
    fs::write(bed.path("../repo/write.sh"), write).unwrap();
    for it in ["bin/cargo", "env", "registry/x"] {
        bed.sandbox.write(format!("x/.cargo/{it}"), "mine");
    }
    let told = bed.run();
    assert!(told.contains("<<registry/y>>") && !told.contains("<<bin") && !told.contains("<<env"), "{told}");
    assert!(
        !told.contains("<<moved>>") && told.contains("put aside") && told.contains("x/.cargo/config.toml"),
        "{told}"
    );
    let given = bed.path("../x/.cargo");
    assert!(!given.join("config.toml").exists() && given.join("config.toml.castor-aside").exists());
}

/// What git obeys in them is held as the repository's own is, and no new one is made.
#[test]
fn git_works_in_submodules() {
    let work = "cd vendor/lib && echo x > q && git add q && git commit -qm two && git branch two && git status --short && \
                cd deep/er && echo x > q && git add q && git commit -qm three && cd ../.. && git add deep/er && \
                git commit -qm four && cd ../.. && git add vendor/lib && git commit -qm five && echo '<<worked>>'";
    let obey = "for it in vendor/lib vendor/lib/modules/deep/er
        do for name in hooks/evil config config.worktree info/attributes modules/x/config commondir branches/x
            do mkdir -p $(dirname .git/modules/$it/$name); echo evil >> .git/modules/$it/$name && echo \"<<wrote $it/$name>>\"
            done
        mv .git/modules/$it .git/modules/$it.old && echo '<<moved>>'
        mv .git/modules/$it/hooks .git/modules/$it/h && echo '<<moved>>'
        done 2>/dev/null
        mkdir .git/modules/new .git/modules/vendor/new 2>/dev/null && echo '<<made>>'
        mv .git/modules .git/m 2>/dev/null && echo '<<moved>>'; [ -d .git/modules/vendor/lib ] && echo '<<looked>>'";
    let mut bed = bed("repo", &[], &["bash work.sh", "bash obey.sh"]);
    let repo = bed.path("../repo").canonicalize().unwrap();
    fs::write(repo.join("work.sh"), work).unwrap();
    fs::write(repo.join("obey.sh"), obey).unwrap();
    for (name, inner) in [("er", None), ("lib", Some(("../er", "deep/er")))] {
        let top = repo.parent().unwrap().join(name);
        bed.sandbox.write(format!("{name}/a"), "x");
        git(&top, &["init", "-q"]);
        git(&top, &["add", "."]);
        commit(&top);
        inner.iter().for_each(|(from, to)| add_submodule(&top, from, to));
    }
    add_submodule(&repo, "../lib", "vendor/lib");
    let both = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init", "--recursive"];
    git(&repo, &both);
    bed.sandbox.write("home/.gitconfig", "[user]\n\tname = a\n\temail = a@b\n");
    let told = bed.run();
    assert!(told.contains("<<worked>>"), "{told}");
    let told = bed.run();
    assert!(told.contains("<<looked>>"), "{told}");
    for it in ["<<wrote", "<<moved", "<<made"] {
        assert!(!told.contains(it), "{told}");
    }
    assert!(!repo.join(".git/modules/vendor/lib/commondir").exists(), "the placeholder is left");
}

/// A repository that was cloned, with a branch `feat` at its origin.
fn cloned(commands: &[&str]) -> (Bed, PathBuf) {
    let mut bed = bed("repo", &[], commands);
    let top = bed.path("..").canonicalize().unwrap();
    git(&top.join("repo"), &["branch", "feat"]);
    git(&top, &["clone", "-q", "repo", "mine"]);
    bed.sandbox.write("home/.gitconfig", "[user]\n\tname = a\n\temail = a@b\n");
    let new = json!({"cwd": top.join("mine"), "mcpServers": []});
    bed.session = bed.client.result("session/new", new).unwrap()["sessionId"].as_str().unwrap().to_owned();
    (bed, top.join("mine"))
}

/// Git fails at its settings; a yes is for them alone. Where it ends well all the same, nobody is asked.
#[test]
fn git_that_cannot_write_its_settings_is_offered_them() {
    let (mut bed, repo) = cloned(&["bash remote.sh", "bash branch.sh"]);
    fs::write(repo.join("remote.sh"), "git remote add r x && (echo evil > .git/hooks/evil; echo '<<added>>')").unwrap();
    fs::write(repo.join("branch.sh"), "git checkout -q -b x origin/feat; echo '<<done>>'").unwrap();
    let (asked, told) = prompt(&mut bed.client, &bed.session, "go", "allow_once");
    assert!(asked.len() == 1 && told.contains("<<added>>"), "{told}");
    assert!(told.contains("with ") && told.contains(".git/config writable, this once"), "{told}");
    let config = fs::read_to_string(repo.join(".git/config")).unwrap();
    assert!(config.contains("[remote \"r\"]") && !repo.join(".git/hooks/evil").exists(), "{config}");
    let (asked, told) = prompt(&mut bed.client, &bed.session, "go", "allow_once");
    assert!(asked.is_empty() && told.contains("<<done>>"), "{told}");
}

/// People, watchers and models saw folders there that nobody had made.
#[test]
fn root_shows_no_placeholders_and_keeps_a_harmless_new_repository() {
    let mut bed = Bed::prepared(&["ls -A; git init -q . && echo '<<made>>'", "bash evil.sh"], |it| {
        fs::remove_dir_all(it.workspace().join(".git")).unwrap();
        it.write("ws/evil.sh", "rm -rf .git; git init -q .; git config core.fsmonitor ./evil; echo '<<made>>'");
    });
    let told = bed.run();
    for it in [".vscode", ".envrc", ".gemini", ".zed", "put aside"] {
        assert!(!told.contains(it), "{it}: {told}");
    }
    assert!(told.contains("<<made>>") && bed.path(".git/config").exists(), "{told}");
    fs::remove_dir_all(bed.path(".git")).unwrap();
    let told = bed.run();
    assert!(told.contains("<<made>>") && told.contains("put aside"), "{told}");
    assert!(!bed.path(".git").exists() && bed.path(".git.castor-aside").exists());
}

pub fn commit(folder: &Path) {
    git(folder, &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one"]);
}

pub fn add_submodule(folder: &Path, from: &str, to: &str) {
    git(folder, &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", from, to]);
    commit(folder);
}

/// Nothing stands in the way of what removes all that git does not know.
#[test]
fn git_stashes_and_cleans() {
    let script = "echo changed > a; echo new > b; git stash -u && ls b || echo '<<stashed>>'
git stash pop; git clean -nd; git clean -fd && echo '<<cleaned>>'; cat a";
    let mut bed = Bed::new(&["bash stash.sh"]);
    let root = bed.path("");
    fs::write(bed.path("a"), "first").unwrap();
    fs::write(bed.path("stash.sh"), script).unwrap();
    git(&root, &["init", "-q"]);
    git(&root, &["config", "user.name", "a"]);
    git(&root, &["config", "user.email", "a@b"]);
    git(&root, &["add", "."]);
    git(&root, &["commit", "-qm", "one"]);
    let told = bed.run();
    assert!(told.contains("<<stashed>>") && told.contains("<<cleaned>>") && told.contains("changed"), "{told}");
    assert!(!told.contains("Would remove .") && !told.contains("failed to remove"), "{told}");
}
