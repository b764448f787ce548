//! The process environment, read once, and the variables that children get.
#![allow(clippy::disallowed_methods)]

pub mod credentials;
pub mod google;
pub mod jwt;

use std::{collections::BTreeMap, fmt, sync::Arc};

/// Variables that a child may see by name alone. A trailing `*` stands for any rest.
pub const CHILD_VARS: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "TMPDIR",
    "TMP",
    "TEMP",
    "XDG_*",
    "ANDROID_HOME",
    "ANDROID_SDK_ROOT",
    "ASDF_DATA_DIR",
    "ASDF_DIR",
    "BUN_INSTALL",
    "CARGO_BUILD_JOBS",
    "CARGO_HOME",
    "CARGO_INCREMENTAL",
    "CARGO_NET_OFFLINE",
    "CARGO_TARGET_DIR",
    "CARGO_TERM_COLOR",
    "CC",
    "CFLAGS",
    "CI",
    "CONDA_*",
    "CXX",
    "CXXFLAGS",
    "DEBUG",
    "DENO_DIR",
    "DOTNET_ROOT",
    "FORCE_COLOR",
    "GEM_HOME",
    "GEM_PATH",
    "GOCACHE",
    "GOFLAGS",
    "GOMODCACHE",
    "GOPATH",
    "GOROOT",
    "GRADLE_USER_HOME",
    "JAVA_HOME",
    "LDFLAGS",
    "LD_LIBRARY_PATH",
    "MAKEFLAGS",
    "NODE_ENV",
    "NODE_PATH",
    "NVM_DIR",
    "PKG_CONFIG_PATH",
    "PNPM_HOME",
    "PYENV_ROOT",
    "PYTHONPATH",
    "RBENV_ROOT",
    "RUSTFLAGS",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "VIRTUAL_ENV",
    "VOLTA_HOME",
    // How often tools try again; the sandbox without network has them not try.
    "BUNDLE_RETRY",
    "CARGO_NET_RETRY",
    "NPM_CONFIG_FETCH_RETRIES",
    "PIP_RETRIES",
    "PNPM_CONFIG_FETCH_RETRIES",
    "POETRY_REQUESTS_MAX_RETRIES",
    "UV_HTTP_RETRIES",
    "YARN_HTTP_RETRY",
    "npm_config_fetch_retries",
    "pnpm_config_fetch_retries",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
];

/// Variables with the places of trusted authorities, also those of a company: files and folders that anybody may read.
/// Children see them where they are absolute paths.
pub const CERTIFICATES: &[&str] = &[
    "AWS_CA_BUNDLE",
    "CARGO_HTTP_CAINFO",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
];

/// Whom git writes into a commit, and when: everybody reads it there. In the middle of "author" is what a secret may be
/// called.
pub const GIT_IDENTITY: &[&str] = &[
    "GIT_AUTHOR_DATE",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_NAME",
    "GIT_COMMITTER_DATE",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_NAME",
];

/// Variables that a repository's settings may fill in: where they are used, and by whom. A server that it names sees
/// these anyway, but not what they could be sent to.
pub const WORKSPACE_VARS: &[&str] =
    &["HOME", "USER", "LOGNAME", "SHELL", "PWD", "PATH", "LANG", "LC_*", "TZ", "TMPDIR", "TMP", "TEMP", "XDG_*"];

/// Parts of a name that say "secret", upper case.
const SECRET_NAMES: &[&str] = &[
    "KEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "CREDS",
    "AUTH",
    "COOKIE",
    "PRIVATE",
    "SESSION",
];

/// The beginnings of values of well-known kinds of secrets.
const SECRET_VALUES: &[&str] = &[
    "sk-",
    "sk_live_",
    "rk_live_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "AIza",
    "ya29.",
    "AKIA",
    "ASIA",
    "xoxa-",
    "xoxb-",
    "xoxp-",
    "xoxr-",
    "xoxs-",
    "xapp-",
    "npm_",
    "hf_",
];

/// An immutable snapshot of the process environment, which all sessions share. Names and values that are not Unicode
/// are left out.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Env {
    vars: Arc<BTreeMap<String, String>>,
    /// The files, by name, that some come from, with the line.
    files: BTreeMap<String, (String, usize)>,
}

impl Env {
    /// Reads the environment of this process; app does so once.
    pub fn from_process() -> Self {
        let pairs = std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)));
        let res = Self { vars: Arc::new(pairs.collect()), files: BTreeMap::new() };
        res.with_home(home_of_user)
    }

    /// Launchers such as editors, cron and systemd may leave `HOME` out; the user has a home all the same.
    fn with_home(mut self, home: impl FnOnce() -> Option<String>) -> Self {
        if self.get("HOME").is_none()
            && let Some(home) = home()
        {
            self.set("HOME", &home);
        }
        self
    }

    pub fn from_pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let vars = pairs.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
        Self { vars: Arc::new(vars), files: BTreeMap::new() }
    }

    /// The value; a variable that is set to nothing counts as absent.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.vars.get(name).map(String::as_str).filter(|it| !it.is_empty())
    }

    /// Sets a variable that is not there: what the process was given stays.
    pub fn set_if_absent(&mut self, name: &str, value: &str, (file, line): (&str, usize)) {
        if self.get(name).is_none() {
            Arc::make_mut(&mut self.vars).insert(name.to_owned(), value.to_owned());
            self.files.insert(name.to_owned(), (file.to_owned(), line));
        }
    }

    /// Sets a variable, whatever it was.
    pub fn set(&mut self, name: &str, value: &str) {
        Arc::make_mut(&mut self.vars).insert(name.to_owned(), value.to_owned());
    }

    /// The file that a variable comes from; `None`: the process was given it.
    pub fn source_file(&self, name: &str) -> Option<&str> {
        self.files.get(name).map(|it| it.0.as_str())
    }

    /// The same with the line: `/ws/.env:3`.
    pub fn source_line(&self, name: &str) -> Option<(&str, usize)> {
        self.files.get(name).map(|(file, line)| (file.as_str(), *line))
    }

    /// The first of `names` that is set, with its value.
    pub fn first_set<'n>(&self, names: &[&'n str]) -> Option<(&'n str, &str)> {
        names.iter().find_map(|name| Some((*name, self.get(name)?)))
    }

    /// Everything, for a process that is castor again.
    pub fn all(&self) -> impl Iterator<Item = (String, String)> {
        self.vars.iter().map(|(name, value)| (name.clone(), value.clone()))
    }

    /// Variables for tools' children, sorted by name. In this order: `blocked` names (in any case) are dropped; names
    /// the user allowed exactly pass, secret or not; the rest passes only when listed here and neither its name nor its
    /// value looks like a secret.
    pub fn child_env(&self, allowed_extra: &[String], blocked: &[String]) -> Vec<(String, String)> {
        let passes = |name: &str, value: &str| {
            let allowed = || allowed_extra.iter().any(|it| it == name);
            let certificates = || CERTIFICATES.contains(&name) && are_paths(value);
            let listed =
                || CHILD_VARS.iter().any(|it| matches(it, name)) || GIT_IDENTITY.contains(&name) || certificates();
            let named_so = || name_looks_secret(name) && !GIT_IDENTITY.contains(&name);
            let secret = || named_so() || value_looks_secret(value);
            !blocked.iter().any(|it| it.eq_ignore_ascii_case(name)) && (allowed() || listed() && !secret())
        };
        let kept = self.vars.iter().filter(|(name, value)| passes(name, value));
        kept.map(|(name, value)| (name.clone(), if name == "PATH" { absolute_entries(value) } else { value.clone() }))
            .collect()
    }
}

/// The home folder in the system's list of users.
fn home_of_user() -> Option<String> {
    let user = nix::unistd::User::from_uid(nix::unistd::Uid::current()).ok()??;
    user.dir.into_os_string().into_string().ok().filter(|it| it.starts_with('/'))
}

/// A search path without the folders that depend on where a command runs: there, `ls` may be anything.
fn absolute_entries(path: &str) -> String {
    let kept: Vec<&str> = path.split(':').filter(|it| it.starts_with('/')).collect();
    kept.join(":")
}

/// Tells whether a value is paths: there may be several folders with certificates.
fn are_paths(value: &str) -> bool {
    value.split(':').all(|it| it.starts_with('/')) && !value.contains(char::is_control)
}

/// Names only: a value in a log would be a leak.
impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.vars.keys()).finish()
    }
}

/// Tells whether a variable, header or setting of this name usually holds a secret.
pub fn name_looks_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET_NAMES.iter().any(|it| name.contains(it))
}

/// Tells whether a workspace's settings may have this variable's value.
pub fn is_open_to_workspace(name: &str, value: &str) -> bool {
    WORKSPACE_VARS.iter().any(|it| matches(it, name)) && !name_looks_secret(name) && !value_looks_secret(value)
}

/// Tells whether this text has the form of a well-known kind of secret.
pub fn value_looks_secret(value: &str) -> bool {
    let value = value.trim();
    let bare = value.strip_prefix("Bearer ").unwrap_or(value);
    SECRET_VALUES.iter().any(|it| bare.starts_with(it))
        || bare.contains("-----BEGIN")
        || bare.starts_with("eyJ") && bare.matches('.').count() == 2
        || url_has_password(bare)
        || url_has_key(bare)
}

/// `https://host/path?key=…`: the form in which servers have theirs in their addresses.
fn url_has_key(value: &str) -> bool {
    let query = value.split_once("://").and_then(|(_, rest)| rest.split_once('?')).map_or("", |(_, it)| it);
    let mut pairs = query.split(['&', ';', '#']).filter_map(|it| it.split_once('='));
    pairs.any(|(name, value)| !value.is_empty() && name_looks_secret(name))
}

/// `scheme://user:password@host`: the form in which proxies and databases carry theirs.
fn url_has_password(value: &str) -> bool {
    let Some((_, rest)) = value.split_once("://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    }
}

#[cfg(test)]
mod tests {
    use super::{Env, value_looks_secret};

    fn names(env: &[(&str, &str)], allowed: &[&str], blocked: &[&str]) -> String {
        let own = |it: &[&str]| it.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let kept = Env::from_pairs(env.iter().copied()).child_env(&own(allowed), &own(blocked));
        kept.into_iter().map(|(name, _)| name).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn empty_counts_as_absent_and_debug_shows_no_value() {
        let env = Env::from_pairs([("A", ""), ("B", "canary")]);
        assert_eq!(env.get("A"), None);
        assert_eq!(env.first_set(&["A", "B"]), Some(("B", "canary")));
        assert_eq!(format!("{env:?}"), r#"{"A", "B"}"#);
    }

    #[test]
    fn a_home_that_nobody_named_is_the_users() {
        let home = |pairs: &[(&str, &str)], found: Option<&str>| {
            let env = Env::from_pairs(pairs.iter().copied()).with_home(|| found.map(str::to_owned));
            env.get("HOME").map(str::to_owned)
        };
        assert_eq!(home(&[("HOME", "/h")], Some("/u")).as_deref(), Some("/h"));
        assert_eq!(home(&[("HOME", "")], Some("/u")).as_deref(), Some("/u"));
        assert_eq!(home(&[], Some("/u")).as_deref(), Some("/u"));
        assert_eq!(home(&[], None), None);
    }

    #[test]
    fn children_see_the_list_and_what_the_user_allowed() {
        let env = &[
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("XDG_RUNTIME_DIR", "/run/user/1"),
            ("XDG_SESSION_ID", "4"),
            ("CONDA_PREFIX", "/c"),
            ("CONDA_TOKEN", "canary"),
            ("ACPV_RUN", "x"),
            ("GEMINI_API_KEY", "canary"),
            ("GOOGLE_API_KEY", "canary"),
            ("CASTOR_HOME", "/h"),
            ("AWS_SECRET_ACCESS_KEY", "canary"),
            ("DATABASE_URL", "postgres://u:canary@h/db"),
            ("SSH_AUTH_SOCK", "/s"),
            ("DISPLAY", ":0"),
            ("TERM", "ghp_canary"),
            ("https_proxy", "http://u:canary@proxy:3128"),
            ("no_proxy", "localhost"),
        ];
        let always = "CONDA_PREFIX LC_ALL PATH XDG_RUNTIME_DIR no_proxy";
        for (allowed, blocked, want) in [
            (&[][..], &[][..], always.to_owned()),
            (&["ACPV_RUN"], &[], format!("ACPV_RUN {always}")),
            (&["acpv_run", "ACPV_*"], &[], always.to_owned()),
            (&["GEMINI_API_KEY"], &[], always.replace("LC_ALL", "GEMINI_API_KEY LC_ALL")),
            (&["TERM"], &[], always.replace("PATH", "PATH TERM")),
            (&["ACPV_RUN"], &["acpv_run", "LC_ALL"], always.replace("LC_ALL ", "")),
        ] {
            assert_eq!(names(env, allowed, blocked), want, "{allowed:?} {blocked:?}");
        }
    }

    /// Only a path passes, and only where the sandbox lets it be read.
    #[test]
    fn children_find_certificates_by_their_paths() {
        for name in super::CERTIFICATES {
            assert_eq!(names(&[(name, "/etc/ca.pem")], &[], &[]), *name);
            assert_eq!(names(&[(name, "/etc/ca.pem")], &[], &[&name.to_lowercase()]), "", "{name}");
            for no in ["", "ca.pem", "-----BEGIN CERTIFICATE-----", "/a\nb", "https://u:pw@host/ca", "/a:b"] {
                assert_eq!(names(&[(name, no)], &[], &[]), "", "{name} {no}");
            }
        }
        assert_eq!(names(&[("SSL_CERT_DIR", "/a:/b")], &[], &[]), "SSL_CERT_DIR");
        assert_eq!(names(&[("SSL_CERT_KEY", "/a")], &[], &[]), "");
    }

    #[test]
    fn children_know_whom_git_writes_into_commits() {
        for name in super::GIT_IDENTITY {
            assert_eq!(names(&[(name, "Ada")], &[], &[]), *name);
            assert_eq!(names(&[(name, "ghp_canary")], &[], &[]), "", "{name}");
        }
        assert_eq!(names(&[("GIT_AUTHOR_TOKEN", "Ada"), ("GIT_DIR", "/x")], &[], &[]), "");
    }

    #[test]
    fn children_find_programs_in_absolute_folders_only() {
        for (path, want) in [("/a:/b", "/a:/b"), (":.:/b:node_modules/.bin:", "/b"), ("", "")] {
            let env = Env::from_pairs([("PATH", path)]).child_env(&[], &[]);
            assert_eq!(env, [("PATH".to_owned(), want.to_owned())], "{path}");
        }
    }

    #[test]
    fn knows_secrets_by_their_form() {
        for secret in [
            "sk-abc",
            "ghp_abc",
            "AIzaSy",
            "xoxb-1",
            "-----BEGIN RSA PRIVATE KEY-----",
            "eyJhbGciOi.eyJzdWIi.sig",
            "Bearer sk-abc",
            "https://me:pw@host/x",
            "https://host/mcp?a=b&api_key=x",
            "https://host?key=x#top",
        ] {
            assert!(value_looks_secret(secret), "{secret}");
        }
        for plain in [
            "",
            "/usr/bin:/bin",
            "en_US.UTF-8",
            "https://host:80/a@b:c",
            "eyJ",
            "sk_SK.UTF-8",
            "a:b@c",
            "https://h/?key=&a=b",
        ] {
            assert!(!value_looks_secret(plain), "{plain}");
        }
    }
}
