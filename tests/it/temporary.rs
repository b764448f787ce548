//! A session's own `/tmp`: what commands do there, what they see of the machine's, and how long it stays.
#![cfg(target_os = "linux")]

use std::{fs, path::Path};

use crate::{
    client::{Client, Namespaces},
    confined::{Bed, work_in_auto},
    incidents::prompt,
};

fn with_mounts() -> impl Iterator<Item = Namespaces> {
    Namespaces::all().filter(|it| *it != Namespaces::Nobody)
}

fn bed(namespaces: Namespaces, script: &str) -> Bed {
    Bed::prepared(&["bash script.sh"], |it| {
        it.namespaces = namespaces;
        it.write("ws/script.sh", script);
        work_in_auto(it);
    })
}

/// What the script printed in brackets.
fn words(told: &str) -> Vec<&str> {
    let mut res: Vec<&str> = Vec::new();
    for it in told.split("<<").skip(1).filter_map(|it| it.split_once(">>")) {
        if !res.contains(&it.0) {
            res.push(it.0);
        }
    }
    res
}

/// Each line says its word if the program works there as it does in the machine's.
const WORK: &str = "
    d=$(mktemp -d) && case $d in /tmp/*) echo x > $d/a && rm -r $d && echo '<<mktemp>>';; esac
    d=$(mktemp -d /tmp/x.XXXX) && echo x > $d/a && echo '<<mktemp in /tmp>>'
    echo y | tee /tmp/log.txt > /dev/null && [ $(cat /tmp/log.txt) = y ] && echo '<<tee>>'
    echo z > /var/tmp/z && echo '<<var>>'
    python3 -m venv --without-pip /tmp/v && [ $(/tmp/v/bin/python -c 'print(1)') = 1 ] && echo '<<venv>>'
    python3 -c 'import tempfile; f = tempfile.NamedTemporaryFile(); f.write(b\"hi\"); f.flush(); print(open(f.name).read())' \\
        | grep -q hi && echo '<<tempfile>>'
    python3 -c 'import multiprocessing as m; print(m.Pool(2).map(abs, [-1, -2]))' | grep -q 1 && echo '<<pool>>'
    printf '#!/bin/sh\\necho ran' > /tmp/run && chmod +x /tmp/run && /tmp/run | grep -q ran && echo '<<exec>>'
    mkfifo /tmp/f && ln -s /tmp/log.txt /tmp/l && [ $(cat /tmp/l) = y ] && echo '<<links>>'
    git init -q /tmp/r && git -C /tmp/r status -s && echo '<<git>>'
    cp script.sh /tmp/a && mv /tmp/a . && rm a && echo '<<move>>'";

#[test]
fn programs_work_in_a_tmp_of_the_sessions_own() {
    let all = ["mktemp", "mktemp in /tmp", "tee", "var", "venv", "tempfile", "pool", "exec", "links", "git", "move"];
    for namespaces in with_mounts() {
        let mut bed = bed(namespaces, WORK);
        let told = bed.run();
        assert_eq!(words(&told), all, "{namespaces:?} {told}");
        let own = bed.sandbox.home().join(".castor/tmp").join(&bed.session).join("tmp");
        assert!(own.join("log.txt").exists() && own.join("v/bin").exists(), "{namespaces:?}");
        assert!(!Path::new("/tmp/log.txt").exists() && !Path::new("/var/tmp/z").exists());
    }
}

/// A path below the machine's folder that the user names is read; a link there that leads elsewhere, and others' files are
/// not.
#[test]
fn of_the_machines_tmp_what_the_user_names_is_read() {
    for namespaces in with_mounts() {
        let file = |text: &str| {
            let res = tempfile::Builder::new().prefix("castor-named").suffix(".log").tempfile_in("/tmp").unwrap();
            fs::write(res.path(), text).unwrap();
            res
        };
        let (named, other) = (file("s-named"), file("s-other"));
        let (named, other) = (named.path().display(), other.path().display());
        let script = format!(
            "cat {named} {other}; echo evil >> {named} && echo '<<wrote>>'; rm -f {named}; mv {named} /tmp/x
             ls /tmp; cat $(readlink -f {named}); echo '<<ran>>'"
        );
        let mut bed = bed(namespaces, &script);
        let (asked, told) = prompt(&mut bed.client, &bed.session, &format!("look at {named}."), "reject_once");
        assert!(asked.len() <= 1, "{namespaces:?} {asked:?}");
        assert!(told.contains("s-named") && told.contains("<<ran>>"), "{namespaces:?} {told}");
        assert!(!told.contains("s-other") && !told.contains("<<wrote>>"), "{namespaces:?} {told}");
        assert_eq!(fs::read_to_string(named.to_string()).unwrap(), "s-named");
    }
}

/// Commands of one session see each other's files, those of another do not.
#[test]
fn temporary_files_outlive_castor_and_go_with_their_session() {
    let mut bed =
        Bed::prepared(&["echo x > /tmp/kept; echo y > $TMPDIR/too", "cat /tmp/kept && echo '<<kept>>'"], work_in_auto);
    bed.run();
    let (castor, id) = (bed.sandbox.home().join(".castor"), bed.session.clone());
    let own = castor.join("tmp").join(&id).join("tmp");
    assert!(own.join("kept").exists() && own.join("too").exists());
    bed.client.end().unwrap();
    assert!(own.join("kept").exists() && !castor.join("tmp").join(&id).join("view").exists());
    bed.client = Client::start(&bed.sandbox);
    bed.client.initialize(&serde_json::json!({})).unwrap();
    bed.session = bed.client.new_session(&bed.sandbox.workspace()).unwrap();
    bed.run();
    let told = bed.run();
    assert!(told.contains("<<kept>>"), "its own: {told}");
    bed.client.end().unwrap();
    bed.sandbox.args = ["sessions", "delete", "--yes", &id].map(Into::into).to_vec();
    let deleted = bed.sandbox.command().output().unwrap();
    assert!(deleted.status.success() && !own.exists(), "{deleted:?}");
}

/// What commands put in the place of a mount point does not keep the next one from running.
#[test]
fn a_mount_point_that_was_replaced_is_made_anew() {
    for namespaces in with_mounts() {
        let mut bed = Bed::prepared(&["bash break.sh", "cat script.sh && echo '<<whole>>'"], |it| {
            it.namespaces = namespaces;
            let name = it.workspace().parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
            it.write("ws/break.sh", &format!("mv /tmp/{name} /tmp/moved; ln -s /etc /tmp/{name}; true"));
            it.write("ws/script.sh", "x");
            work_in_auto(it);
        });
        bed.run();
        let told = bed.run();
        assert!(told.contains("<<whole>>"), "{namespaces:?} {told}");
    }
}

/// Sockets in `/tmp` and in the workspace are the session's own; those of other programs are not there.
#[test]
fn a_command_has_sockets_of_its_own_and_reaches_no_others() {
    let server = "import socket, sys
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); print('up', flush=True); sys.stdin.read()";
    let own = "import socket, sys, threading
for at in sys.argv[1:]:
    s = socket.socket(socket.AF_UNIX); s.bind(at); s.listen()
    threading.Thread(target=lambda: s.accept()[0].send(b'x'), daemon=True).start()
    c = socket.socket(socket.AF_UNIX); c.connect(at); print('<<own ' + c.recv(1).decode() + at[:4] + '>>')";
    let reach = "import socket, sys
for at in sys.argv[1:]:
    try:
        socket.socket(socket.AF_UNIX).connect(at); print('<<reached ' + at + '>>')
    except OSError as it:
        print('<<no>>')";
    for namespaces in with_mounts() {
        let other = tempfile::Builder::new().prefix("castor-sock").tempdir_in("/tmp").unwrap();
        let mut bed = bed(namespaces, "");
        let (root, home) = (bed.path(""), bed.sandbox.home());
        let at = [root.join("abs.sock"), home.join("h.sock"), other.path().join("t.sock")];
        let _open: Vec<_> = at.iter().map(|it| std::os::unix::net::UnixListener::bind(it).unwrap()).collect();
        let mut relative = std::process::Command::new("python3");
        relative.args(["-c", server, "rel.sock"]).current_dir(&root);
        relative.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut relative = relative.spawn().unwrap();
        let mut up = [0; 2];
        std::io::Read::read_exact(relative.stdout.as_mut().unwrap(), &mut up).unwrap();
        for (name, text) in [("own.py", own), ("reach.py", reach)] {
            fs::write(bed.path(name), text).unwrap();
        }
        let all: Vec<String> = at.iter().map(|it| it.display().to_string()).collect();
        let script =
            format!("python3 own.py /tmp/a.sock ./b.sock; python3 reach.py {} ./rel.sock; rm b.sock", all.join(" "));
        fs::write(bed.path("script.sh"), script).unwrap();
        let told = bed.run();
        relative.kill().unwrap();
        relative.wait().unwrap();
        assert_eq!(words(&told), ["own x/tmp", "own x./b.", "no"], "{namespaces:?} {told}");
    }
}
