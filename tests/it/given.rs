//! One yes opens what it was given for: files outside that a command's output goes to, and configuration that it names.
#![cfg(target_os = "linux")]

use std::{
    fs,
    os::unix::fs::{MetadataExt, symlink},
    path::{Path, PathBuf},
    thread,
    time::Instant,
};

use serde_json::json;

use crate::{
    client::{Client, Namespaces, WATCHDOG},
    confined::Bed,
    incidents::prompt,
};

/// A session in the workspace, with its home.
fn bed(namespaces: Namespaces, commands: &[&str]) -> (Bed, PathBuf) {
    let bed = Bed::with(namespaces, commands);
    let home = bed.sandbox.home();
    (bed, home)
}

/// The number of questions, and what was told.
fn run(bed: &mut Bed, answer: &str) -> (usize, String) {
    let (asked, told) = prompt(&mut bed.client, &bed.session, "go", answer);
    (asked.len(), told)
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|it| format!("{it}"))
}

/// Names in a folder, but for castor's own.
fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|it| it != ".castor").collect();
    names.sort();
    names
}

fn none() -> Vec<String> {
    Vec::new()
}

#[test]
fn a_yes_opens_the_file_that_output_goes_to() {
    for namespaces in Namespaces::all() {
        let commands = ["echo x > ~/new; ls", "echo x > ~/new", "echo y >> ~/new; touch ~/more; true"];
        let (mut bed, home) = bed(namespaces, &commands);
        let (n, told) = run(&mut bed, "reject_once");
        assert!(n == 1 && told.contains("its output goes outside the workspace: ~/new"), "{namespaces:?} {told}");
        assert_eq!(names(&home), none());
        let (n, told) = run(&mut bed, "allow_once");
        assert_eq!((n, read(&home.join("new")).as_str()), (1, "x\n"), "{namespaces:?} {told}");
        // For all who may read it, as the shell makes files: who is told of it is not the user alone.
        assert_eq!(fs::metadata(home.join("new")).unwrap().mode() & 0o7444, 0o444);
        // What was not asked about is not opened with it.
        let (n, told) = run(&mut bed, "allow_once");
        assert_eq!((n, read(&home.join("new")).as_str()), (1, "x\ny\n"), "{namespaces:?} {told}");
        assert_eq!(names(&home), ["new"], "{told}");
    }
}

#[test]
fn all_that_the_question_names_is_opened_and_nothing_else() {
    let all = "echo x | tee ~/a > ../b; cd ../side && echo z > c";
    for namespaces in Namespaces::all() {
        let (mut bed, home) =
            bed(namespaces, &[all, "echo x > ~/d; touch ~/e ../side/e; true", "echo x > $HOME/'with space'"]);
        bed.sandbox.write("side/there", "");
        let side = bed.path("../side");
        let (n, told) = run(&mut bed, "allow_once");
        let named = told.contains("goes outside the workspace: ")
            && ["~/a", "../b", "../side/c"].iter().all(|it| told.contains(it));
        assert!(n == 1 && named, "{namespaces:?} {told}");
        assert_eq!(
            [home.join("a"), bed.path("../b"), side.join("c")].map(|it| read(&it)),
            ["x\n", "x\n", "z\n"],
            "{told}"
        );
        let (n, told) = run(&mut bed, "allow_once");
        assert_eq!((n, read(&home.join("d")).as_str()), (1, "x\n"), "{namespaces:?} {told}");
        assert_eq!(
            (names(&home), names(&side)),
            (vec!["a".to_owned(), "d".to_owned()], vec!["c".to_owned(), "there".to_owned()])
        );
        let (n, told) = run(&mut bed, "allow_once");
        assert_eq!((n, read(&home.join("with space")).as_str()), (1, "x\n"), "{namespaces:?} {told}");
    }
}

#[test]
fn nothing_is_left_where_nothing_came() {
    for namespaces in Namespaces::all() {
        let commands =
            ["false && echo x > ~/a", "exit 3; echo x > ~/a", ": > ~/b", "rm -f ~/c; echo x > ~/no/c", "echo x > ~/d"];
        let (mut bed, home) = bed(namespaces, &commands);
        fs::create_dir(home.join("d")).unwrap();
        for _ in 0..2 {
            let (n, told) = run(&mut bed, "allow_once");
            assert_eq!((n, names(&home)), (1, vec!["d".to_owned()]), "{namespaces:?} {told}");
        }
        // What the command made empty is what it was to be.
        let (n, told) = run(&mut bed, "allow_once");
        assert_eq!((n, names(&home)), (1, vec!["b".to_owned(), "d".to_owned()]), "{namespaces:?} {told}");
        for it in ["No such file or directory", "Is a directory"] {
            let (n, told) = run(&mut bed, "allow_once");
            assert!(n == 1 && told.contains(it), "{namespaces:?} {told}");
            assert_eq!(names(&home), ["b", "d"]);
        }
    }
}

/// The real place is what is asked about, and no other name of what is held is opened.
#[test]
fn links_are_followed_before_the_question_and_not_after_it() {
    for namespaces in Namespaces::all() {
        let commands = ["echo x > out/led", "echo x > ~/led", "echo x > ~/rc", "echo x > ~/second", "echo x > ~/late"];
        let (mut bed, home) = bed(namespaces, &commands);
        bed.sandbox.write("home/.bashrc", "mine");
        bed.sandbox.write("home/late", "mine");
        bed.sandbox.write("home/other", "mine");
        symlink("../../home/real", bed.path("out/led")).unwrap();
        symlink("real", home.join("led")).unwrap();
        symlink(".bashrc", home.join("rc")).unwrap();
        fs::hard_link(home.join(".bashrc"), home.join("second")).unwrap();
        for _ in 0..2 {
            let (n, told) = run(&mut bed, "allow_once");
            assert!(n == 1 && told.contains("/home/real (outside the workspace)"), "{namespaces:?} {told}");
            assert_eq!((read(&home.join("real")).as_str(), home.join("led").is_symlink()), ("x\n", true), "{told}");
            fs::remove_file(home.join("real")).unwrap();
        }
        for _ in ["rc", "second"] {
            // One yes, and then a no: what it was given for is not this.
            let mut answers = ["allow_once", "reject_once"].into_iter();
            let told = answered(&mut bed, &mut |_| answers.next().unwrap_or("reject_once"));
            assert_eq!(read(&home.join(".bashrc")), "mine", "{namespaces:?} {told}");
        }
        // Somebody is faster than the yes.
        let late = home.join("late");
        let mut first = true;
        let told = answered(&mut bed, &mut |_| {
            if std::mem::take(&mut first) {
                fs::remove_file(&late).unwrap();
                symlink("other", &late).unwrap();
                return "allow_once";
            }
            "reject_once"
        });
        assert_eq!(read(&home.join("other")), "mine", "{namespaces:?} {told}");
    }
}

/// A prompt, each of its questions answered.
fn answered(bed: &mut Bed, answer: &mut dyn FnMut(&str) -> &'static str) -> String {
    let mut said = String::new();
    let params = json!({"sessionId": bed.session, "prompt": [{"type": "text", "text": "go"}]});
    bed.client.request_as(
        json!(format!("p{}", fs::read_dir("/proc/self/fd").unwrap().count())),
        "session/prompt",
        params,
    );
    loop {
        let message = bed.client.next().unwrap().expect("more was to come");
        said += &message.to_string();
        if message["method"] == "session/request_permission" {
            let kind = answer(&message["params"]["toolCall"].to_string());
            let options = message["params"]["options"].as_array().unwrap();
            let option = options.iter().find(|it| it["kind"] == kind).expect("an option of that kind");
            let outcome = json!({"outcome": {"outcome": "selected", "optionId": option["optionId"]}});
            bed.client.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": outcome}));
        } else if message.get("method").is_none() {
            return said;
        }
    }
}

#[test]
fn what_a_killed_castor_made_goes_if_nothing_came() {
    let command = "touch out/ready; echo y > ~/b; read < out/never; echo x > ~/a";
    let (mut bed, home) = bed(Namespaces::Castor, &[command]);
    nix::unistd::mkfifo(&bed.path("out/never"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let params = json!({"sessionId": bed.session, "prompt": [{"type": "text", "text": "go"}]});
    bed.client.request_as(json!("go"), "session/prompt", params);
    loop {
        let message = bed.client.next().unwrap().expect("a question was to come");
        if message["method"] == "session/request_permission" {
            let options = message["params"]["options"].as_array().unwrap();
            let option = options.iter().find(|it| it["kind"] == "allow_once").unwrap();
            let outcome = json!({"outcome": {"outcome": "selected", "optionId": option["optionId"]}});
            bed.client.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": outcome}));
            break;
        }
    }
    let start = Instant::now();
    while read(&home.join("b")) != "y\n" {
        assert!(start.elapsed() < WATCHDOG, "no command");
        thread::yield_now();
    }
    bed.client.kill().unwrap();
    assert_eq!(names(&home), ["a", "b"], "the test has nothing to find");
    bed.client = Client::start(&bed.sandbox);
    bed.client.initialize(&json!({})).unwrap();
    bed.client.new_session(&bed.sandbox.workspace()).unwrap();
    assert_eq!((names(&home), read(&home.join("b")).as_str()), (vec!["b".to_owned()], "y\n"));
}

/// Git makes a file beside them in a home folder: nothing less than all of it would do, and that is said.
#[test]
fn settings_of_the_user_are_asked_about_once_by_their_name() {
    for command in [
        "git config --global user.name me",
        "git config --global alias.st status",
        "git config --global x.y z; git config --global --get x.y",
    ] {
        let (mut bed, home) = bed(Namespaces::Castor, &[command, command, "git config --global --get user.name; true"]);
        bed.sandbox.write("home/.gitconfig", "[core]\n");
        let (n, told) = run(&mut bed, "reject_once");
        let said = "git would write ~/.gitconfig, which the sandbox keeps: a yes runs all of it without the sandbox";
        assert!(n == 1 && told.contains(said) && !told.contains(": .git;"), "{command}: {told}");
        assert_eq!(read(&home.join(".gitconfig")), "[core]\n");
        let (n, told) = run(&mut bed, "allow_once");
        assert!(n == 1 && read(&home.join(".gitconfig")).len() > "[core]\n".len(), "{command}: {told}");
        assert_eq!(run(&mut bed, "reject_once").0, 0, "to read them is nobody's question");
    }
}

/// Also where nothing of the workspace is written.
#[test]
fn a_repository_is_made_with_one_yes() {
    for namespaces in Namespaces::all() {
        for level in ["read-only", "workspace-write"] {
            if (namespaces, level) == (Namespaces::Nobody, "workspace-write") {
                // Nothing new is made at the top of a root there.
                continue;
            }
            let command = "bash more.sh 2>/dev/null; git init -q && git rev-parse --git-dir";
            let mut bed = Bed::prepared(&[command, command], |it| {
                it.namespaces = namespaces;
                it.args.extend(["--sandbox", level].map(Into::into));
                fs::remove_dir_all(it.workspace().join(".git")).unwrap();
                it.write("ws/more.sh", "echo x > a; echo y > .vscode");
            });
            let (n, told) = run(&mut bed, "reject_once");
            assert_eq!((n, bed.path(".git").exists()), (1, false), "{namespaces:?} {level} {told}");
            let (n, told) = run(&mut bed, "allow_once");
            assert!(n == 1 && bed.path(".git/config").is_file(), "{namespaces:?} {level} {told}");
            assert_eq!(bed.path("a").exists(), level == "workspace-write", "{namespaces:?} {told}");
            assert!(!bed.path(".vscode").is_file(), "{namespaces:?} {level} {told}");
        }
    }
}

/// All pieces of configuration that a line names, and no others.
#[test]
fn a_yes_opens_all_the_configuration_that_a_line_names() {
    const MORE: &str = "bash more.sh 2>/dev/null; true";
    // Where nothing can be mounted, nothing is renamed at the top of a root.
    for namespaces in Namespaces::all().filter(|it| *it != Namespaces::Nobody) {
        for (command, named, stays) in [
            ("mv .npmrc .yarnrc.yml", ".npmrc, .yarnrc.yml", false),
            ("cp .npmrc .yarnrc.yml", ".npmrc, .yarnrc.yml", true),
            ("echo a=1 > .pdbrc; echo a=1 > .yarnrc.yml", ".pdbrc, .yarnrc.yml", true),
        ] {
            let both = format!("{command}; {MORE}");
            let (mut bed, _) = bed(namespaces, &[&both, &both]);
            for (path, text) in [
                ("ws/.npmrc", "a=1"),
                ("ws/.pdbrc", ""),
                ("ws/.yarnrc.yml", ""),
                ("ws/.vscode/settings.json", "mine"),
                ("ws/more.sh", "echo evil > .zshrc; echo evil > .vscode/settings.json"),
            ] {
                bed.sandbox.write(path, text);
            }
            let (n, told) = run(&mut bed, "reject_once");
            assert!(n == 1 && told.contains(&format!(": {named}")), "{namespaces:?} {command}: {told}");
            assert_eq!(["ws/.npmrc", "ws/.yarnrc.yml"].map(|it| read(&bed.path("..").join(it))), ["a=1", ""]);
            let (n, told) = run(&mut bed, "allow_once");
            assert_eq!((n, read(&bed.path(".yarnrc.yml")).trim()), (1, "a=1"), "{namespaces:?} {command}: {told}");
            assert_eq!(bed.path(".npmrc").exists(), stays, "{namespaces:?} {command}: {told}");
            let others = (bed.path(".zshrc").exists(), read(&bed.path(".vscode/settings.json")));
            assert_eq!(others, (false, "mine".to_owned()), "{namespaces:?} {command}: {told}");
        }
    }
}
