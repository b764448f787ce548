//! Folders of tools in the home: what commands write there is castor's, and what is there stays the user's.
#![cfg(target_os = "linux")]

use std::{fs, process::Stdio};

use crate::client::Sandbox;

fn sh(sandbox: &mut Sandbox, line: &str) -> String {
    sandbox.args = ["exec", "--", "sh", "-c", line].map(Into::into).to_vec();
    let out = sandbox.command().stdin(Stdio::null()).output().unwrap();
    String::from_utf8([out.stdout, out.stderr].concat()).unwrap().replace(&sandbox.home().display().to_string(), "~")
}

#[test]
fn commands_write_a_layer_of_their_own() {
    let mut sandbox = Sandbox::new();
    sandbox.write("ws/.git/HEAD", "ref: refs/heads/main");
    for (path, text) in [
        (".cargo/registry/index", "there\n"),
        (".cargo/credentials.toml", "canary\n"),
        (".cargo/bin/cargo-x", "a program\n"),
        (".m2/settings.xml", "<password>canary</password>\n"),
        ("go/pkg/mod/x", "module\n"),
    ] {
        sandbox.write(format!("home/{path}"), text);
    }
    if sh(&mut sandbox, "grep -c ' overlay ' /proc/mounts") == "0\n" {
        eprintln!("skipped: this system has no overlays for users");
        return;
    }
    for (line, want) in [
        ("cat ~/.cargo/registry/index", "there\n"),
        ("echo mine >> ~/.cargo/registry/index; cat ~/.cargo/registry/index", "there\nmine\n"),
        // It lasts to the next command.
        ("cat ~/.cargo/registry/index", "there\nmine\n"),
        (
            "mkdir ~/.m2/repository ~/go/src && rm -r ~/go/pkg && ls ~/go ~/.m2",
            "~/.m2:\nrepository\nsettings.xml\n\n~/go:\nsrc\n",
        ),
        // Programs and secrets are not of it, by no name.
        ("echo evil > ~/.cargo/bin/cargo-x || cat ~/.cargo/bin/cargo-x", "a program\n"),
        ("cat ~/.cargo/credentials.toml ~/.m2/settings.xml", ""),
        ("ln ~/.cargo/credentials.toml ~/.cargo/x; mv ~/.cargo/credentials.toml ~/.cargo/y; cat ~/.cargo/[xy]", ""),
        ("mv ~/.cargo ~/cargo; mv ~/.m2 ~/m2; cat ~/cargo/credentials.toml ~/m2/settings.xml", ""),
    ] {
        let said: String = sh(&mut sandbox, line)
            .lines()
            .filter(|it| !is_complaint(it) && !it.starts_with("castor: The sandbox blocked writing below"))
            .fold(String::new(), |all, it| all + it + "\n");
        assert_eq!(said, want, "{line}");
    }
    let home = sandbox.home();
    let read = |path: &str| fs::read_to_string(home.join(path)).unwrap();
    assert_eq!((read(".cargo/registry/index"), read(".cargo/bin/cargo-x")), ("there\n".into(), "a program\n".into()));
    assert!(
        home.join("go/pkg/mod/x").exists() && !home.join("go/src").exists() && !home.join(".m2/repository").exists()
    );
    // Two at once have a layer each.
    let line = "echo first > ~/.cargo/first; echo ready; read line; ls ~/.cargo | grep -c first";
    sandbox.args = ["exec", "--", "sh", "-c", line].map(Into::into).to_vec();
    let mut first = sandbox.command().stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = std::io::BufReader::new(first.stdout.take().unwrap());
    let mut said = String::new();
    std::io::BufRead::read_line(&mut out, &mut said).unwrap();
    assert_eq!(said, "ready\n");
    assert_eq!(
        sh(&mut sandbox, "echo second > ~/.cargo/second; cat ~/.cargo/first ~/.cargo/second 2>/dev/null"),
        "second\n"
    );
    drop(first.stdin.take());
    std::io::Read::read_to_string(&mut out, &mut said).unwrap();
    assert_eq!(said, "ready\n1\n");
    assert!(first.wait().unwrap().success());
    // A folder of that name in the way of a secret that comes later.
    sh(&mut sandbox, "mkdir -p ~/.m2/settings-security.xml/x");
    sandbox.write("home/.m2/settings-security.xml", "canary");
    assert_eq!(sh(&mut sandbox, "cat ~/.m2/settings-security.xml; echo ok"), "ok\n");
    // Another workspace has another.
    sandbox.write("other/.git/HEAD", "ref: refs/heads/main");
    sandbox.args = ["exec", "--", "sh", "-c", "cat ~/.cargo/registry/index"].map(Into::into).to_vec();
    let other = sandbox.workspace().parent().unwrap().join("other");
    let out = sandbox.command().current_dir(other).stdin(Stdio::null()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&out.stdout), "there\n");
}

fn is_complaint(line: &str) -> bool {
    ["sh:", "ln:", "mv:", "cat:"].iter().any(|it| line.starts_with(it))
}
