//! The environment of confined processes: nothing that leads out of the sandbox, and nothing that waits for what cannot come.

use std::{fs, io};

use super::excludes;
use crate::base::{
    path::AbsPath,
    sandbox::{Confinement, Granted},
};

/// Variables that lead to other programs' sockets, and with them out of the sandbox. A trailing `*` is any rest.
const LEADS_OUT: &[&str] = &[
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "GPG_AGENT_INFO",
    "GNOME_KEYRING_*",
    "DBUS_*",
    "DOCKER_*",
    "CONTAINER_HOST",
    "CONTAINERD_*",
    "PODMAN_*",
    "XDG_RUNTIME_DIR",
    "DISPLAY",
    "WAYLAND_*",
    "XAUTHORITY",
    "TMUX",
    "NVIM",
    "VSCODE_*",
];
/// Where programs look for the folder of temporary files.
const TMP: &[&str] = &["TMPDIR", "TMP", "TEMP"];

/// How often tools try again what the network did not give: npm alone for more than a minute. Without network it never
/// does, and the sooner they fail the sooner somebody is asked. Those of npm count in any case, also for pnpm.
const NO_RETRIES: &[&str] = &[
    "BUNDLE_RETRY",
    "CARGO_NET_RETRY",
    "PIP_RETRIES",
    "POETRY_REQUESTS_MAX_RETRIES",
    "UV_HTTP_RETRIES",
    "YARN_HTTP_RETRY",
    "npm_config_fetch_retries",
    "pnpm_config_fetch_retries",
];

/// What is left of an environment, and what comes to it. What the user set of [`NO_RETRIES`] stays.
pub fn scrubbed<'e>(it: &'e Confinement, env: &'e [(String, String)]) -> impl Iterator<Item = (String, String)> + 'e {
    let leads_out = |name: &str| {
        LEADS_OUT.iter().any(|it| it.strip_suffix('*').map_or(*it == name, |start| name.starts_with(start)))
    };
    let kept = env.iter().filter(move |(name, _)| !leads_out(name) && !TMP.contains(&name.as_str())).cloned();
    let is_set = |name: &str| env.iter().any(|it| it.0.eq_ignore_ascii_case(name));
    let retries = NO_RETRIES.iter().filter(move |name| !it.network && !is_set(name));
    let tmp = TMP.iter().map(|name| ((*name).to_owned(), it.tmp.to_string()));
    let git = excludes::variables(it.tmp.as_path(), is_set);
    kept.chain(tmp).chain(git).chain(mkdir(it)).chain(retries.map(|name| ((*name).to_owned(), "0".to_owned())))
}

/// Where folders are given that castor makes so that they can be: a function by which bash's `mkdir`, without `-p`, takes
/// them as they are.
fn mkdir(it: &Confinement) -> Option<(String, String)> {
    let folders: Vec<String> = it.granted.iter().filter_map(is_new).filter_map(quoted).collect();
    let is_one = folders.iter().map(|it| format!("$it -ef {it}")).reduce(|all, it| format!("{all} || {it}"))?;
    let body = format!(
        "() {{ local it; for it; do if [[ {is_one} ]]; then command mkdir -p \"$@\"; return; fi; done; command mkdir \"$@\"; }}"
    );
    Some(("BASH_FUNC_mkdir%%".to_owned(), body))
}

/// A folder that was given, and has nothing in it: castor makes it, or made it for the same command just before.
pub(super) fn is_new(it: &Granted) -> Option<&AbsPath> {
    let Granted::Folder(folder) = it else { return None };
    let is_new = match fs::read_dir(folder.as_path()) {
        Ok(mut it) => it.next().is_none(),
        Err(why) => why.kind() == io::ErrorKind::NotFound,
    };
    is_new.then_some(folder)
}

/// As bash reads it.
fn quoted(path: &AbsPath) -> Option<String> {
    Some(format!("'{}'", path.as_path().to_str()?.replace('\'', "'\\''")))
}

#[cfg(test)]
mod tests {
    use super::scrubbed;
    use crate::base::{
        path::AbsPath,
        sandbox::{Confinement, Granted},
    };

    const GIT: &str = "GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=core.excludesFile GIT_CONFIG_VALUE_0=/t/excludes-of-git \
                       GIT_CONFIG_KEY_1=repack.updateServerInfo GIT_CONFIG_VALUE_1=false";

    fn confined(network: bool) -> Confinement {
        Confinement { network, ..Confinement::of(&AbsPath::new("/w").unwrap()) }
    }

    fn words(network: bool, env: &[(&str, &str)]) -> String {
        let env: Vec<_> = env.iter().map(|it| (it.0.to_owned(), it.1.to_owned())).collect();
        let words: Vec<String> = scrubbed(&confined(network), &env).map(|it| format!("{}={}", it.0, it.1)).collect();
        words.join(" ")
    }

    #[test]
    fn without_network_nobody_tries_again_unless_the_user_wants_it() {
        let tmp = format!("TMPDIR=/t TMP=/t TEMP=/t {GIT}");
        let all = "BUNDLE_RETRY=0 CARGO_NET_RETRY=0 PIP_RETRIES=0 POETRY_REQUESTS_MAX_RETRIES=0 UV_HTTP_RETRIES=0 \
                   YARN_HTTP_RETRY=0 npm_config_fetch_retries=0 pnpm_config_fetch_retries=0";
        assert_eq!(words(false, &[("PATH", "/bin"), ("TMP", "/x")]), format!("PATH=/bin {tmp} {all}"));
        assert_eq!(words(true, &[("PATH", "/bin")]), format!("PATH=/bin {tmp}"));
        let own = words(false, &[("PIP_RETRIES", "2"), ("NPM_CONFIG_FETCH_RETRIES", "1")]);
        let rest = all.replace("PIP_RETRIES=0 ", "").replace(" npm_config_fetch_retries=0", "");
        assert_eq!(own, format!("PIP_RETRIES=2 NPM_CONFIG_FETCH_RETRIES=1 {tmp} {rest}"));
    }

    #[test]
    fn to_bash_a_folder_that_castor_makes_is_not_there_yet() {
        let dir = tempfile::tempdir().unwrap();
        let at = |it: &str| AbsPath::new(dir.path().join(it)).unwrap();
        for it in ["old", "it's"] {
            std::fs::create_dir(at(it).as_path()).unwrap();
        }
        std::fs::write(at("old/x").as_path(), "").unwrap();
        let said = |folders: &[&str]| {
            let granted = folders.iter().map(|it| Granted::Folder(at(it))).collect();
            let it = Confinement { granted, ..confined(true) };
            scrubbed(&it, &[]).find(|it| it.0.starts_with("BASH_FUNC_"))
        };
        assert_eq!((said(&[]), said(&["old"])), (None, None));
        let (name, body) = said(&["old", "new", "it's"]).unwrap();
        let run = |command: &str| {
            let mut bash = std::process::Command::new("bash");
            bash.args(["-euc", command]).current_dir(dir.path()).env(&name, &body);
            bash.stderr(std::process::Stdio::null()).status().unwrap().success()
        };
        std::fs::create_dir(at("new").as_path()).unwrap();
        assert!(run("mkdir new && mkdir ./it\\'s/ && mkdir -m 700 other") && at("other").as_path().is_dir());
        assert!(!run("mkdir old") && !run("mkdir no/a"));
    }

    #[test]
    fn what_leads_out_is_left_out() {
        let said = words(true, &[("SSH_AUTH_SOCK", "/s"), ("DOCKER_HOST", "x"), ("DBUS_A", "x"), ("HOME", "/h")]);
        assert_eq!(said, format!("HOME=/h TMPDIR=/t TMP=/t TEMP=/t {GIT}"));
        let own = words(true, &[("GIT_CONFIG_COUNT", "0")]);
        assert_eq!(own, "GIT_CONFIG_COUNT=0 TMPDIR=/t TMP=/t TEMP=/t");
    }
}
