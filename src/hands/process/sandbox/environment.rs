//! Environment variables of confined processes: without those that lead out of the sandbox or wait for a user.

use std::path::Path;

use crate::door;
use castor_base::sandbox::{self, Confinement};

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

/// Variables that name wide folders, or none of a tool. A trailing `*` is any rest.
const NO_TOOLS: &[&str] = &["HOME", "OLDPWD", "PWD", "TEMP", "TMP", "TMPDIR", "XDG_*"];

/// Paths that the user's variables name, such as `CARGO_HOME` and what is on `PATH`: tools lie there.
pub(super) fn named_paths(env: &[(String, String)]) -> impl Iterator<Item = (&str, &Path)> {
    let named = env.iter().filter(|(name, _)| !is_listed(LEADS_OUT, name) && !is_listed(NO_TOOLS, name));
    let paths = named.flat_map(|(name, value)| value.split(':').map(move |it| (name.as_str(), Path::new(it))));
    paths.filter(|it| it.1.is_absolute())
}

fn is_listed(list: &[&str], name: &str) -> bool {
    list.iter().any(|it| it.strip_suffix('*').map_or(*it == name, |start| name.starts_with(start)))
}

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

/// Caches of castor's own, as a home folder is read-only: each below a folder that the workspace has for itself.
const CACHES: &[(&str, &str)] = &[
    ("BUN_INSTALL_CACHE_DIR", "bun"),
    ("CCACHE_DIR", "ccache"),
    ("COMPOSER_CACHE_DIR", "composer"),
    ("DENO_DIR", "deno"),
    ("GOCACHE", "go-build"),
    ("MYPY_CACHE_DIR", "mypy"),
    ("NUGET_HTTP_CACHE_PATH", "nuget"),
    ("PIP_CACHE_DIR", "pip"),
    ("POETRY_CACHE_DIR", "poetry"),
    ("PRE_COMMIT_HOME", "pre-commit"),
    ("RUFF_CACHE_DIR", "ruff"),
    ("SCCACHE_DIR", "sccache"),
    ("UV_CACHE_DIR", "uv"),
    ("YARN_CACHE_FOLDER", "yarn"),
    ("npm_config_cache", "npm"),
];

/// The same, where the user has no folder of that name for the tool yet.
const NEW_CACHES: &[(&str, &str, &str)] =
    &[("CARGO_HOME", ".cargo", "cargo"), ("GOPATH", "go", "go"), ("GRADLE_USER_HOME", ".gradle", "gradle")];

/// Git leaves alone what it cannot write: `git gc` makes lists for who fetches by plain HTTP (`info/refs`) beside what it
/// obeys.
const GIT: &[(&str, &str)] =
    &[("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "repack.updateServerInfo"), ("GIT_CONFIG_VALUE_0", "false")];
/// For read-only commands: git does not refresh its index.
const LOOKING: (&str, &str) = ("GIT_OPTIONAL_LOCKS", "0");

/// What is left of an environment, and what comes to it. What the user set of caches and [`NO_RETRIES`] stays. `mounts`: a
/// session's own folder is mounted on `/tmp`. `has_door`: the user's own proxy is out of reach, and the door goes through it.
pub fn scrubbed(it: &Confinement, env: &[(String, String)], (mounts, has_door): (bool, bool)) -> Vec<(String, String)> {
    let is_set = |name: &str| env.iter().any(|it| it.0.eq_ignore_ascii_case(name));
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let tmp = if mounts && it.has_own_tmp() { sandbox::TMP.to_owned() } else { it.own_folders.tmp.to_string() };
    let mut res: Vec<_> =
        env.iter().filter(|(name, _)| !is_listed(LEADS_OUT, name) && !TMP.contains(&name.as_str())).cloned().collect();
    res.extend(TMP.iter().map(|name| ((*name).to_owned(), tmp.clone())));
    if !is_set("GIT_CONFIG_COUNT") {
        res.extend(GIT.iter().map(own));
    }
    if it.grant.read_only {
        res.push(own(&LOOKING));
    }
    if let Some(caches) = &it.own_folders.caches {
        let is_new = |folder: &str| it.home.as_ref().is_some_and(|home| !home.join(folder).as_path().exists());
        let new = NEW_CACHES.iter().filter(|it| is_new(it.1)).map(|it| (it.0, it.2));
        let unset = CACHES.iter().copied().chain(new).filter(|it| !is_set(it.0));
        res.extend(unset.map(|(name, below)| (name.to_owned(), caches.join(below).to_string())));
    }
    if has_door {
        res.extend(door::variables());
    }
    if !it.network {
        let unset = NO_RETRIES.iter().filter(|name| !is_set(name));
        res.extend(unset.map(|name| ((*name).to_owned(), "0".to_owned())));
    }
    res
}

#[cfg(test)]
mod tests {
    use super::scrubbed;
    use castor_base::{
        path::AbsPath,
        sandbox::{Confinement, OwnFolders},
    };

    const GIT: &str = "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=repack.updateServerInfo GIT_CONFIG_VALUE_0=false";

    fn confined(network: bool) -> Confinement {
        Confinement { network, ..Confinement::for_folder(&AbsPath::new("/w").unwrap()) }
    }

    fn words(network: bool, env: &[(&str, &str)]) -> String {
        let env: Vec<_> = env.iter().map(|it| (it.0.to_owned(), it.1.to_owned())).collect();
        let words: Vec<String> =
            scrubbed(&confined(network), &env, (false, false)).iter().map(|it| format!("{}={}", it.0, it.1)).collect();
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
    fn temporary_files_go_to_tmp_where_that_is_the_sessions() {
        let check = |it: &Confinement, mounts, want: &str| {
            let said = scrubbed(it, &[("TMPDIR".to_owned(), "/mine".to_owned())], (mounts, false));
            let all: Vec<_> = said.iter().filter(|it| it.0 == "TMPDIR").map(|it| it.1.as_str()).collect();
            assert_eq!(all, [want], "{mounts}");
        };
        check(&confined(false), true, "/tmp");
        check(&confined(false), false, "/t");
        check(&Confinement { roots: vec![AbsPath::new("/tmp").unwrap()], ..confined(false) }, true, "/t");
    }

    #[test]
    fn package_managers_have_caches_of_their_own_unless_the_user_set_them() {
        let it = confined(true);
        let it = Confinement { own_folders: OwnFolders { caches: AbsPath::new("/c"), ..it.own_folders.clone() }, ..it };
        let env = [("GOCACHE".to_owned(), "/mine".to_owned())];
        let said = scrubbed(&it, &env, (false, false));
        let value = |name: &str| said.iter().rfind(|it| it.0 == name).map(|it| it.1.as_str());
        assert_eq!((value("GOCACHE"), value("npm_config_cache")), (Some("/mine"), Some("/c/npm")));
        assert!(!words(true, &[]).contains("npm_config_cache"));
    }

    #[test]
    fn who_only_looks_lets_git_write_nothing() {
        let said = scrubbed(&confined(false).into_read_only(), &[], (false, false));
        assert!(said.contains(&("GIT_OPTIONAL_LOCKS".to_owned(), "0".to_owned())));
        assert!(!words(false, &[]).contains("GIT_OPTIONAL_LOCKS"));
    }

    #[test]
    fn the_door_takes_the_place_of_the_users_proxy() {
        let env = [("HTTPS_PROXY".to_owned(), "http://me:pw@corp:1".to_owned())];
        let value = |has_door: bool| {
            let said = scrubbed(&confined(false), &env, (false, has_door));
            said.iter().rfind(|it| it.0 == "HTTPS_PROXY").map(|it| it.1.clone())
        };
        assert_eq!(value(true).as_deref(), Some("http://127.0.0.1:10053"));
        assert_eq!(value(false).as_deref(), Some("http://me:pw@corp:1"));
    }

    /// Variables that name sockets of containers, agents and desktops are removed.
    #[test]
    fn what_leads_out_is_left_out() {
        let said = words(true, &[("SSH_AUTH_SOCK", "/s"), ("DOCKER_HOST", "x"), ("DBUS_A", "x"), ("HOME", "/h")]);
        assert_eq!(said, format!("HOME=/h TMPDIR=/t TMP=/t TEMP=/t {GIT}"));
        let own = words(true, &[("GIT_CONFIG_COUNT", "0")]);
        assert_eq!(own, "GIT_CONFIG_COUNT=0 TMPDIR=/t TMP=/t TEMP=/t");
    }
}
