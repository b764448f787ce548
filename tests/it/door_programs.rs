//! Real programs through the door: each fetches a package over TLS from a host that is open, and none from another.
#![cfg(target_os = "linux")]

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

use crate::client::{Namespaces, Sandbox};

const CERTIFICATE: &str = "cert.pem";
/// Of a login that is no secret, in a name that says nothing.
const LOGIN: &str = "own-login";

struct Server {
    child: Child,
    port: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn is_there(program: &str) -> bool {
    Command::new("sh").args(["-c", &format!("command -v {program}")]).output().is_ok_and(|it| it.status.success())
}

fn sh(folder: &Path, line: &str) {
    let out = Command::new("bash").args(["-c", line]).current_dir(folder).output().unwrap();
    assert!(out.status.success(), "{line}: {out:?}");
}

/// The server of `tests/door/registry.py`, with a certificate of an authority of its own.
fn packages(folder: &Path) -> Server {
    sh(
        folder,
        "openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out cert.pem -days 30 -subj /CN=own && \
         openssl req -newkey rsa:2048 -nodes -keyout key -out request -subj /CN=packages.test && \
         printf 'subjectAltName=DNS:packages.test,DNS:other.test' >names && \
         openssl x509 -req -in request -CA cert.pem -CAkey ca.key -CAcreateserial -days 30 -extfile names -out leaf",
    );
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/door/registry.py");
    let mut python = Command::new("python3");
    python.arg(script).args(["served", "leaf", "key"]).current_dir(folder);
    let mut child = python.stdout(Stdio::piped()).spawn().unwrap();
    let mut port = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
    Server { child, port: port.trim().to_owned() }
}

/// An ssh server that takes the login of the test's own key.
fn login(folder: &Path, workspace: &Path) -> Server {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    drop(listener);
    // A server that root starts wants it.
    _ = fs::create_dir_all("/run/sshd");
    let key = workspace.join(LOGIN);
    sh(
        folder,
        &format!("ssh-keygen -q -t ed25519 -N '' -f host && ssh-keygen -q -t ed25519 -N '' -f {}", key.display()),
    );
    let settings = format!(
        "ListenAddress 127.0.0.1\nPort {port}\nHostKey {}\nAuthorizedKeysFile {}.pub\nStrictModes no\nUsePAM no\nPidFile none\nPermitRootLogin yes\n",
        folder.join("host").display(),
        key.display(),
    );
    fs::write(folder.join("sshd"), settings).unwrap();
    let mut sshd = Command::new("/usr/sbin/sshd");
    sshd.args(["-D", "-e", "-f"]).arg(folder.join("sshd")).stderr(Stdio::piped());
    let mut child = sshd.spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while said.read_line(&mut line).unwrap() > 0 && !line.contains("listening") {}
    // Its words have a reader to the end.
    std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
    Server { child, port }
}

/// What `line` prints in the last line, and what castor says.
fn run(sandbox: &mut Sandbox, line: &str) -> (String, String) {
    sandbox.args = ["exec", "--", "bash", "-c", line].map(Into::into).to_vec();
    let out = sandbox.command().stdin(Stdio::null()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (text(out.stdout).lines().last().unwrap_or_default().to_owned(), text(out.stderr))
}

/// The programs, what each runs in a folder of its own, and what a success prints last. `HOST` is the server.
const LINES: &[(&str, &str, &str)] = &[
    ("curl", "curl -sSf https://HOST/pip/leftish/ | grep -o leftish-1.0.0 | head -1", "leftish-1.0.0"),
    (
        "wget",
        "wget -qO- --ca-certificate=$CA https://HOST/pip/leftish/ | grep -o leftish-1.0.0 | head -1",
        "leftish-1.0.0",
    ),
    (
        "npm",
        "npm install --no-audit --no-fund --cafile=$CA --registry https://HOST/npm/ leftish >&2 && node -p 'require(\"leftish\")'",
        "NPM",
    ),
    (
        "python3",
        "python3 -m pip install -q --disable-pip-version-check --target p --index-url https://HOST/pip/ leftish >&2; \
         PYTHONPATH=p python3 -c 'import leftish; print(leftish.SAYS)'",
        "PIP",
    ),
    (
        "cargo",
        "cargo init -q --vcs none --name c . && printf 'leftish = { version = \"1\", registry = \"own\" }\\n' >>Cargo.toml && \
         printf 'fn main() { println!(\"{}\", leftish::SAYS) }' >src/main.rs && \
         CARGO_REGISTRIES_OWN_INDEX=sparse+https://HOST/cargo/ cargo run -q",
        "CARGO",
    ),
    (
        "go",
        "printf 'module c\\n\\nrequire leftish.test/leftish v1.0.0\\n' >go.mod && \
         printf 'package main\\n\\nimport \"leftish.test/leftish\"\\n\\nfunc main() { print(leftish.Says + \"\\\\n\") }\\n' >main.go && \
         GOMODCACHE=$PWD/m GOPROXY=https://HOST/go GONOSUMDB=* GOFLAGS=\"-mod=mod -modcacherw\" go run . 2>&1",
        "GO",
    ),
    ("git", "git clone -q https://HOST/r.git r && git -C r log -1 --format=%s", "GIT"),
    ("sshd", "git clone -q ssh://$(id -un)@HOSTSERVED/r.git r && git -C r log -1 --format=%s", "GIT"),
];

#[test]
fn package_managers_fetch_from_a_host_that_is_open() {
    let mut sandbox = Sandbox::new();
    let all = ["openssl", "python3", "git", "curl"];
    if let Some(it) = all.iter().find(|it| !is_there(it)) {
        eprintln!("skipped: programs through the door ({it} is not here)");
        return;
    }
    if sandbox.namespaces == Namespaces::Nobody {
        eprintln!("skipped: programs through the door (this system makes no namespaces)");
        return;
    }
    let outside = tempfile::tempdir().unwrap();
    let (folder, workspace) = (outside.path().to_owned(), sandbox.workspace().to_owned());
    let server = packages(&folder);
    fs::copy(folder.join(CERTIFICATE), workspace.join(CERTIFICATE)).unwrap();
    let ssh = Path::new("/usr/sbin/sshd").exists().then(|| login(&folder, &workspace));
    sandbox.write("ws/.git/HEAD", "ref: refs/heads/main");
    sandbox.write(
        "home/.castor/settings.json",
        r#"{"security":{"network":{"allow":["packages.test:443","packages.test:22"]}}}"#,
    );
    let mut known: Vec<String> =
        ["packages.test", "other.test"].map(|it| format!("{it}:443=127.0.0.1:{}", server.port)).to_vec();
    known.extend(
        ssh.iter()
            .flat_map(|it| ["packages.test", "other.test"].map(|host| format!("{host}:22=127.0.0.1:{}", it.port))),
    );
    sandbox.env.push(("CASTOR_TEST_NETWORK".into(), known.join(",")));
    let certificate = workspace.join(CERTIFICATE).display().to_string();
    for name in [
        "CA",
        "PIP_CERT",
        "REQUESTS_CA_BUNDLE",
        "CARGO_HTTP_CAINFO",
        "GIT_SSL_CAINFO",
        "CURL_CA_BUNDLE",
        "SSL_CERT_FILE",
    ] {
        sandbox.env.push((name.into(), certificate.clone()));
    }
    let login = workspace.join(LOGIN).display().to_string();
    let options = "-o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR";
    sandbox.env.push(("GIT_SSH_COMMAND".into(), format!("ssh -i {login} {options}")));
    // Toolchains stand where they are on this machine, not in the test's home.
    let own_home = std::env::var("HOME").unwrap_or_default();
    for (name, folder) in [("RUSTUP_HOME", ".rustup"), ("PYENV_ROOT", ".pyenv")] {
        let place = std::env::var(name).unwrap_or_else(|_| format!("{own_home}/{folder}"));
        sandbox.env.push((name.into(), place));
    }
    for (program, line, want) in LINES {
        let is_missing = if *program == "sshd" { ssh.is_none() } else { !is_there(program) };
        // Programs without a word for proxies need the door's own names.
        if is_missing || *program == "sshd" && sandbox.namespaces != Namespaces::Castor {
            eprintln!("skipped: {program} through the door");
            continue;
        }
        let in_folder = |name: &str, host: &str| {
            let line = line.replace("HOSTSERVED", &format!("{host}{}/served", folder.display())).replace("HOST", host);
            format!("mkdir {name}-{program} && cd {name}-{program} && {line}")
        };
        let (said, errors) = run(&mut sandbox, &in_folder("open", "packages.test"));
        assert_eq!(said, *want, "{program}: {errors}");
        let (said, errors) = run(&mut sandbox, &in_folder("shut", "other.test"));
        assert!(said != *want && errors.contains("refused other.test:"), "{program}: {said} {errors}");
    }
}
