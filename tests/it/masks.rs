//! What confined commands do not see: credentials, and with the network the workspace's secrets and most of the home.
#![cfg(target_os = "linux")]

use std::{fs, os::unix::fs::symlink};

use crate::{
    client::{Namespaces, Sandbox},
    confined::{Bed, work_in_auto},
    incidents::prompt,
};

/// Prints what it can read of `list`, each in brackets, and which of these it can list or write. The command names no secret:
/// policy would ask.
const LOOK: &str = "for it in $(eval echo $(cat list)); do
    [ -f \"$it\" ] && echo \"<<$(cat \"$it\")>>\"
    [ -d \"$it\" ] && echo \"<<$it: $(ls -A \"$it\")>>\"
    (echo evil >> \"$it\") 2>/dev/null && echo \"<<wrote $it>>\"
done; echo '<<looked>>'";

fn bed(namespaces: Namespaces, settings: &str, list: &str) -> Bed {
    Bed::prepared(&["bash look.sh && bash more.sh"], |it| {
        it.namespaces = namespaces;
        it.write("home/.castor/settings.json", settings);
        it.write("ws/look.sh", LOOK);
        it.write("ws/list", list);
        it.write("ws/more.sh", "touch /tmp/own $TMPDIR/own made && ls /tmp/own made && echo '<<written>>'; true");
        home(it);
        work_in_auto(it);
    })
}

fn home(it: &Sandbox) {
    for (path, text) in [
        (".ssh/id_rsa", "s-ssh"),
        (".aws/credentials", "s-aws"),
        (".netrc", "s-netrc"),
        (".config/gh/hosts.yml", "s-gh"),
        ("dotfiles/kube/config", "s-kube"),
        (".cargo/credentials.toml", "s-cargo"),
        (".castor/notes", "s-castor"),
        (".claude/.credentials.json", "s-claude"),
        (".config/some/tool/x.pem", "-----BEGIN CERTIFICATE-----"),
        (".config/some/client_secret.json", "s-some"),
        (".gradle/gradle.properties", "repoPassword=s-gradle"),
        (".cargo/env", "cargo-env"),
        (".gitconfig", "[user]"),
        (".npmrc", "prefix=~/n"),
        ("notes", "my-notes"),
    ] {
        it.write(format!("home/{path}"), text);
    }
    symlink("dotfiles/kube", it.home().join(".kube")).unwrap();
}

const SECRETS: &str = "~/.ssh/id_rsa ~/.aws/credentials ~/.netrc ~/.config/gh/hosts.yml ~/.kube/config \
                       ~/dotfiles/kube/config ~/.cargo/credentials.toml ~/.castor/notes ~/.castor/settings.json \
                       ~/.claude/.credentials.json ~/.config/some/client_secret.json ~/.gradle/gradle.properties";

fn with_mounts() -> impl Iterator<Item = Namespaces> {
    Namespaces::all().filter(|it| *it != Namespaces::Nobody)
}

/// Without the network as well: no list of names says what is secret.
#[test]
fn of_the_home_tools_are_seen_without_their_credentials_and_nothing_else() {
    for namespaces in with_mounts() {
        let command = format!(
            "{SECRETS} ~/.ssh ~/.npmrc ~/.gitconfig ~/notes ~/.cargo/env ~/.config/some/tool/x.pem; touch $TMPDIR/x"
        );
        let mut bed = bed(namespaces, "{}", &command);
        let told = bed.run();
        assert!(told.contains("<<looked>>") && !told.contains("s-"), "{namespaces:?} {told}");
        // What tools keep has a layer of castor's own.
        let own = format!("<<wrote {}>>", bed.sandbox.home().join(".cargo/env").display());
        let elsewhere = told.replace(&own, "");
        assert!(!elsewhere.contains("<<wrote") && !told.contains("id_rsa>>"), "{namespaces:?} {told}");
        assert_eq!(fs::read_to_string(bed.sandbox.home().join(".cargo/env")).unwrap(), "cargo-env");
        for it in ["<<prefix=~/n>>", "<<[user]>>", "<<cargo-env>>"] {
            assert!(told.contains(it), "{namespaces:?} {it}: {told}");
        }
        assert!(!told.contains("my-notes") && !told.contains("BEGIN CERT"), "{namespaces:?} {told}");
        assert_eq!(fs::read_to_string(bed.sandbox.home().join(".ssh/id_rsa")).unwrap(), "s-ssh");
    }
}

#[test]
fn readable_setting_never_opens_the_castor_folder() {
    for namespaces in with_mounts() {
        let settings = r#"{"security": {"sandbox": {"readable": ["~/.aws", "~/.castor"]}}}"#;
        let mut bed = bed(namespaces, settings, SECRETS);
        let told = bed.run();
        assert!(told.contains("<<s-aws>>") && told.contains("<<looked>>"), "{namespaces:?} {told}");
        assert!(!told.contains("s-ssh") && !told.contains("s-castor"), "{namespaces:?} {told}");
    }
}

/// Secrets or the network, never both unasked.
#[test]
fn with_the_network_there_are_no_secrets_and_of_the_home_only_tools() {
    for namespaces in with_mounts() {
        let settings = r#"{"security": {"sandbox": {"network": true}}}"#;
        let shared = tempfile::Builder::new().prefix("castor-mask-test").tempfile_in("/tmp").unwrap();
        fs::write(shared.path(), "s-others").unwrap();
        let list = format!(
            "{SECRETS} .env sub/.env.local sub/server.key .env.example ~/.cargo/env ~/.gitconfig ~/notes {}",
            shared.path().display()
        );
        let mut bed = bed(namespaces, settings, &list);
        for (path, text) in [(".env", "s-env"), ("sub/.env.local", "s-local"), ("sub/server.key", "s-key")] {
            bed.sandbox.write(format!("ws/{path}"), text);
        }
        bed.sandbox.write("ws/.env.example", "example");
        let told = bed.run();
        assert!(told.contains("<<looked>>") && told.contains("<<written>>"), "{namespaces:?} {told}");
        assert!(!told.contains("s-") && !told.contains("my-notes"), "{namespaces:?} {told}");
        for it in ["<<cargo-env>>", "<<[user]>>", "<<example>>"] {
            assert!(told.contains(it), "{namespaces:?} {it}: {told}");
        }
        assert!(bed.path("made").exists() && !std::path::Path::new("/tmp/own").exists());
        assert_eq!(fs::read_to_string(bed.path(".env")).unwrap(), "s-env");
    }
}

/// However deep they lie, behind whatever else, and under whatever other name.
#[test]
fn with_the_network_no_folder_of_the_workspace_shows_its_secrets() {
    for namespaces in with_mounts() {
        let settings = r#"{"security": {"sandbox": {"network": true}}}"#;
        let files = ["a/b/c/d/e/f/.env", ".hid/.env", "vendor/x/.env.local", "p299/.env", "p0/.docker/config.json"];
        let list = format!("{} plain.txt public.pem", files.join(" "));
        let mut bed = bed(namespaces, settings, &list);
        for idx in 0..300 {
            fs::create_dir(bed.path(&format!("p{idx}"))).unwrap();
        }
        for it in files {
            bed.sandbox.write(format!("ws/{it}"), "s-deep");
        }
        bed.sandbox.write("ws/public.pem", "-----BEGIN CERTIFICATE-----");
        fs::hard_link(bed.path(".hid/.env"), bed.path("plain.txt")).unwrap();
        let told = bed.run();
        assert!(told.contains("<<looked>>") && told.contains("<<-----BEGIN CERT"), "{namespaces:?} {told}");
        assert!(!told.contains("s-deep") && !told.contains("<<wrote plain"), "{namespaces:?} {told}");
        assert_eq!(fs::read_to_string(bed.path(".hid/.env")).unwrap(), "s-deep");
    }
}

/// Nobody knows where the secrets are, so the network is not given unasked.
#[test]
fn incomplete_secret_scan_blocks_the_network() {
    let mut bed = Bed::new(&["cat .e*v"]);
    bed.sandbox.write("ws/.env", "s-top");
    for idx in 0..20_000 {
        fs::create_dir(bed.path(&format!("p{idx}"))).unwrap();
    }
    let told = bed.run();
    assert!(told.contains("more than 20000 folders") && !told.contains("s-top"), "{told}");
}

/// Who has the network by a yes stays behind; the next command, which nobody is asked about, has the secrets.
#[test]
fn beside_a_process_with_the_network_no_command_sees_secrets() {
    for namespaces in with_mounts() {
        let commands = ["bash stay.sh; bash far.sh", "cp .e*v k; cat k"];
        let mut bed = Bed::prepared(&commands, |it| {
            it.namespaces = namespaces;
            it.write("ws/.env", "A=b");
            it.write("ws/stay.sh", "setsid tail -f /dev/null > /dev/null 2>&1 &");
            it.write(
                "ws/far.sh",
                "python3 -c 'import socket; socket.create_connection((\"192.0.2.1\", 9), 1)' 2>/dev/null; exit 6",
            );
            work_in_auto(it);
        });
        let (asked, told) = prompt(&mut bed.client, &bed.session, "go", "allow_once");
        assert_eq!(asked.len(), 1, "{namespaces:?} {told}");
        assert!(told.contains("backgroundPids"), "{namespaces:?} {told}");
        let told = bed.run();
        assert!(told.contains("A command with network access still runs"), "{namespaces:?} {told}");
        assert_eq!(fs::read_to_string(bed.path("k")).unwrap(), "", "{namespaces:?} {told}");
    }
}

/// The workspace's secrets are what its programs and tests need, and nobody hears of them there.
#[test]
fn without_the_network_the_workspace_is_whole() {
    for namespaces in with_mounts() {
        let mut bed = bed(namespaces, "{}", ".env /tmp");
        bed.sandbox.write("ws/.env", "A=1");
        let told = bed.run();
        assert!(told.contains("<<A=1>>"), "{namespaces:?} {told}");
    }
}
