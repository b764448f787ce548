//! Guarded file names: secrets such as `.env` and keys, and configuration that makes programs run things.
//!
//! Data, for all who need it: policy asks about them, searches skip secrets, a sandbox keeps writers out. Memory files
//! (`GEMINI.md`) are not here: they are read as advice, change in plain sight, and models are told to keep them up;
//! nor are build files (`Makefile`, `package.json`), which are the user's sources, nor what only names a version
//! (`.tool-versions`, `.nvmrc`), nor `.jj` as a whole, in which every command of jj writes.

mod home;
#[cfg(test)]
mod tests;

use std::{
    borrow::Cow,
    path::{Component, Path, PathBuf},
};

pub use home::{SYSTEM_SECRETS, TOKEN_FILES, TOOL_FOLDERS, credentials};

/// Names of one kind. Case does not count: some disks do not tell it. All in lower case.
#[derive(Clone, Copy, Debug)]
pub struct GuardedNames {
    /// Whole names of files and folders; all that is below them counts. Sorted.
    pub names: &'static [&'static str],
    /// Beginnings of names.
    pub starts: &'static [&'static str],
    /// Ends of names.
    pub ends: &'static [&'static str],
    /// Names that follow each other, such as `.github/workflows`; `*` is any one name. Those with a `/` in front count
    /// from the top of the disk only.
    pub paths: &'static [&'static str],
    /// What was copied before it was changed counts, too.
    pub copies: bool,
}

/// How the question begins about what is kept there.
pub const SECRET_RULE: &str = "secrets may be kept there";

/// Where secrets are kept: to read them, or to change them, is asked about in every mode.
pub const SECRETS: GuardedNames = GuardedNames {
    names: &[
        ".authinfo",
        ".authinfo.gpg",
        ".aws",
        ".azure",
        ".bash_history",
        ".boto",
        ".claude.json",
        ".credentials.json",
        ".databrickscfg",
        ".dev.vars",
        ".dockercfg",
        ".env",
        ".envrc",
        ".git-credentials",
        ".gnupg",
        ".htpasswd",
        ".irb_history",
        ".keychain",
        ".kube",
        ".lesshst",
        ".mozilla",
        ".my.cnf",
        ".mysql_history",
        ".netrc",
        ".node_repl_history",
        ".npmrc",
        ".oci",
        ".password-store",
        ".pgpass",
        ".pry_history",
        ".psql_history",
        ".pypirc",
        ".python_history",
        ".rediscli_history",
        ".s3cfg",
        ".secrets",
        ".sh_history",
        ".sqlite_history",
        ".ssh",
        ".thunderbird",
        ".vault-token",
        ".vault_pass",
        ".yarnrc.yml",
        ".zhistory",
        ".zsh_history",
        ".zsh_sessions",
        "_netrc",
        "application_default_credentials.json",
        "credentials.json",
        "fish_history",
        "gshadow",
        "id_dsa",
        "id_ecdsa",
        "id_ecdsa_sk",
        "id_ed25519",
        "id_ed25519_sk",
        "id_rsa",
        "kubeconfig",
        "local.settings.json",
        "oauth_creds.json",
        "secrets.auto.tfvars",
        "secrets.json",
        "secrets.tfvars",
        "secrets.toml",
        "secrets.yaml",
        "secrets.yml",
        "shadow",
        "wp-config.php",
    ],
    starts: &[".env.", ".env-", ".env_", "client_secret", "firebase-adminsdk", "service-account", "service_account"],
    // Other `.tfvars` are not here: they are what a project is set up with, committed and edited like code, and nobody
    // could work on it without a question at each step.
    ends: &[
        ".env",
        ".jks",
        ".kdbx",
        ".key",
        ".keystore",
        ".p12",
        ".pem",
        ".pfx",
        ".ppk",
        ".tfstate",
        ".tfstate.backup",
    ],
    paths: &[
        ".cargo/credentials",
        ".cargo/credentials.toml",
        ".codex/auth.json",
        ".composer/auth.json",
        ".config/bravesoftware",
        ".config/chromium",
        ".config/gcloud",
        ".config/gh/hosts.yml",
        ".config/git/credentials",
        ".config/google-chrome",
        ".config/hub",
        ".config/op",
        ".config/rclone",
        ".config/sops",
        ".docker/config.json",
        ".gem/credentials",
        ".git/credentials",
        ".gradle/gradle.properties",
        ".huggingface/token",
        ".local/share/keyrings",
        ".m2/settings-security.xml",
        ".m2/settings.xml",
        ".terraform.d/credentials.tfrc.json",
        "appdata/local/google/chrome/user data",
        "appdata/roaming/mozilla",
        "huggingface/token",
        "library/application support/firefox",
        "library/application support/google/chrome",
        "library/cookies",
        "library/keychains",
        "opencode/auth.json",
        "/etc/kubernetes/admin.conf",
        "/etc/kubernetes/controller-manager.conf",
        "/etc/kubernetes/kubelet.conf",
        "/etc/kubernetes/scheduler.conf",
        "/etc/kubernetes/super-admin.conf",
        "/etc/ssl/private",
        "/proc/*/auxv",
        "/proc/*/environ",
        "/proc/*/mem",
        "/proc/*/task/*/environ",
        "/proc/*/task/*/mem",
        "/run/secrets",
        "/var/run/secrets",
    ],
    copies: true,
};

/// Configuration that castor, editors, shells, version control or build servers obey: writing it runs things.
pub const CONFIG: GuardedNames = GuardedNames {
    names: &[
        ".aider.conf.yml",
        ".bash_aliases",
        ".bash_login",
        ".bash_logout",
        ".bash_profile",
        ".bashrc",
        ".bazelrc",
        ".buildkite",
        ".castor",
        ".castorignore",
        ".circleci",
        ".claude",
        ".codex",
        ".continue",
        ".crush.json",
        ".cshrc",
        ".cursor",
        ".cursorrules",
        ".devcontainer",
        ".devcontainer.json",
        ".dir-locals.el",
        ".drone.yml",
        ".emacs",
        ".emacs.d",
        ".envrc",
        ".exrc",
        ".fleet",
        ".gdbinit",
        ".gemini",
        ".geminiignore",
        ".git",
        ".gitconfig",
        ".githooks",
        ".gitlab-ci.yml",
        ".gitmodules",
        ".gvimrc",
        ".helix",
        ".hg",
        ".hgrc",
        ".husky",
        ".idea",
        ".inputrc",
        ".irbrc",
        ".kshrc",
        ".lazy.lua",
        ".lefthook",
        ".lefthook-local.json",
        ".lefthook-local.toml",
        ".lefthook-local.yaml",
        ".lefthook-local.yml",
        ".lefthook.json",
        ".lefthook.toml",
        ".lefthook.yaml",
        ".lefthook.yml",
        ".lldbinit",
        ".login",
        ".lvimrc",
        ".mcp.json",
        ".mise",
        ".mise.local.toml",
        ".mise.toml",
        ".npmrc",
        ".nvim.lua",
        ".nvimrc",
        ".opencode",
        ".pdbrc",
        ".pnpmfile.cjs",
        ".pre-commit-config.yaml",
        ".pre-commit-config.yml",
        ".profile",
        ".project.vim",
        ".pryrc",
        ".qwen",
        ".roo",
        ".rprofile",
        ".ssh",
        ".svn",
        ".tcshrc",
        ".tmux.conf",
        ".travis.yml",
        ".vim",
        ".vimrc",
        ".vscode",
        ".windsurf",
        ".woodpecker.yml",
        ".xinitrc",
        ".xprofile",
        ".xsession",
        ".yarnrc",
        ".yarnrc.yml",
        ".zed",
        ".zlogin",
        ".zlogout",
        ".zprofile",
        ".zshenv",
        ".zshrc",
        "azure-pipelines.yml",
        "crush.json",
        // What FAT and NTFS call `.git`.
        "git~1",
        "jenkinsfile",
        "lefthook-local.json",
        "lefthook-local.toml",
        "lefthook-local.yaml",
        "lefthook-local.yml",
        "lefthook.json",
        "lefthook.toml",
        "lefthook.yaml",
        "lefthook.yml",
        "mcp.json",
        "mise.local.toml",
        "mise.toml",
        "opencode.json",
        "prek.toml",
    ],
    starts: &[],
    ends: &[".code-workspace"],
    paths: &[
        ".amazonq/agents",
        ".amazonq/cli-agents",
        ".amazonq/mcp.json",
        ".cargo/config",
        ".cargo/config.toml",
        ".config/autostart",
        ".config/code/user",
        ".config/fish",
        ".config/git",
        ".config/lefthook-local.json",
        ".config/lefthook-local.toml",
        ".config/lefthook-local.yaml",
        ".config/lefthook-local.yml",
        ".config/lefthook.json",
        ".config/lefthook.toml",
        ".config/lefthook.yaml",
        ".config/lefthook.yml",
        ".config/mise",
        ".config/mise.toml",
        ".config/nvim",
        ".config/systemd",
        ".config/zed",
        ".forgejo/workflows",
        ".gitea/workflows",
        ".github/actions",
        ".github/workflows",
        ".jj/repo/config.toml",
        ".jj/workspace-config.toml",
        ".junie/mcp",
        ".junie/mcp.json",
        ".kiro/hooks",
        ".kiro/settings",
        ".mcp/servers.json",
        "library/application support/code/user",
        "library/launchagents",
        "library/launchdaemons",
        "mise/config.toml",
    ],
    copies: false,
};

/// Programs and settings of a home folder that its user's tools run or obey. Commands name them all day to use them
/// (`. ~/.cargo/env`), so nobody is asked about the names: a sandbox holds them.
pub const TOOLS: GuardedNames = GuardedNames {
    names: &[],
    starts: &[],
    ends: &[],
    paths: &[
        ".cargo/bin",
        ".cargo/env",
        ".gradle/gradle.properties",
        ".gradle/init.d",
        ".gradle/init.gradle",
        ".gradle/init.gradle.kts",
        ".m2/extensions.xml",
        ".m2/settings.xml",
        ".pip/pip.conf",
    ],
    copies: false,
};

/// What people publish in place of a secret file.
const TEMPLATES: &[&str] = &[".example", ".sample", ".template", ".dist", ".defaults", ".schema", ".pub"];
/// The same in front of `.env`; and what code reads variables from (`process.env`, `import.meta.env`).
const NO_ENV: &[&str] = &["example", "sample", "template", "process", "meta"];

impl GuardedNames {
    /// The entry that covers `path`, if one does.
    pub fn find(&self, path: &Path) -> Option<&'static str> {
        let mut names = Vec::new();
        for part in path.components() {
            if let Component::Normal(it) = part {
                names.push(it.to_string_lossy());
            }
        }
        self.find_names(names.iter().map(|it| &**it), path.has_root())
    }

    /// As [`GuardedNames::find`], for a path in pieces; `from_top`: it begins at the top of the disk.
    pub fn find_names<'a>(&self, names: impl Iterator<Item = &'a str>, from_top: bool) -> Option<&'static str> {
        let names: Vec<Cow<str>> = names.map(fold_name).collect();
        (0..names.len()).find_map(|at| {
            let rest = names.get(at..)?;
            let name = rest.first()?;
            self.find_name(name).or_else(|| {
                let top = at == 0 && from_top;
                let mut paths = self.paths.iter().filter(|_| rest.len() > 1);
                paths.find(|it| begins_with(rest, it, top)).copied()
            })
        })
    }

    /// The entry that covers `path`, and not all of `root`, in which it lies: what was given away by its name is obeyed in
    /// parts only, as `config.toml` in `~/.cargo` is.
    pub fn find_below(&self, root: &Path, path: &Path) -> Option<&'static str> {
        let below = path.strip_prefix(root).ok()?;
        let starts = |end: &Path| below.iter().count() >= end.iter().count() && is_same(&first_names(below, end), end);
        let tail = || self.paths_below(root).into_iter().find(|(_, end)| starts(end)).map(|it| it.0);
        self.find(below).or_else(tail)
    }

    /// Where names that follow each other would be below `root`, also those that begin with its own name.
    pub fn paths_below(&self, root: &Path) -> Vec<(&'static str, PathBuf)> {
        let mut res = Vec::new();
        for entry in self.paths.iter().filter(|it| !it.starts_with('/')) {
            let names: Vec<&str> = entry.split('/').collect();
            for at in 0..names.len() {
                let (begun, end) = names.split_at_checked(at).unwrap_or_default();
                let begun: PathBuf = begun.iter().collect();
                if is_same(&last_names(root, &begun), &begun) {
                    res.push((*entry, end.iter().collect()));
                }
            }
        }
        res
    }

    /// The entry of a name, or of the one that it is a copy of.
    fn find_name(&self, name: &str) -> Option<&'static str> {
        self.entry(name).or_else(|| self.entry(original_name(name).filter(|_| self.copies)?))
    }

    fn entry(&self, name: &str) -> Option<&'static str> {
        if let Some(it) = self.names.binary_search(&name).ok().and_then(|it| self.names.get(it)) {
            return Some(it);
        }
        let start = self.starts.iter().find(|it| name.starts_with(**it));
        let end = || self.ends.iter().find(|it| name.ends_with(**it) && name.len() > it.len());
        let found = start.or_else(end)?;
        (!TEMPLATES.iter().any(|it| name.ends_with(it)) && !is_no_env(name)).then_some(found)
    }
}

/// What editors and people put beside a file before they change it: `.env~`, `#id_rsa#`, `server.key.bak`.
fn original_name(name: &str) -> Option<&str> {
    const COPIES: &[&str] = &["~", ".bak", ".old", ".orig", ".save", ".swp"];
    let behind = || COPIES.iter().find_map(|it| name.strip_suffix(it));
    name.strip_prefix('#').and_then(|it| it.strip_suffix('#')).or_else(behind).filter(|it| !it.is_empty())
}

/// `example.env`, `prod.sample.env`; and what is left out, or stands in a sentence, is `.env` alone: `:!.env`, `ignore .env`.
fn is_no_env(name: &str) -> bool {
    let Some(stem) = name.strip_suffix(".env") else { return false };
    let last = stem.rsplit('.').next().unwrap_or_default();
    NO_ENV.contains(&last) || !stem.ends_with(|it: char| it.is_alphanumeric() || "_-*?]}".contains(it))
}

/// As many names of `path` as `like` has, from its beginning.
fn first_names(path: &Path, like: &Path) -> PathBuf {
    path.iter().take(like.iter().count()).collect()
}

/// The same from its end.
fn last_names(path: &Path, like: &Path) -> PathBuf {
    let more = path.iter().count().saturating_sub(like.iter().count());
    path.iter().skip(more).collect()
}

fn is_same(path: &Path, lower: &Path) -> bool {
    path.as_os_str().eq_ignore_ascii_case(lower)
}

fn begins_with(names: &[Cow<str>], entry: &str, at_top: bool) -> bool {
    let plain = entry.strip_prefix('/');
    // Most end here: no entry begins with a star.
    let fits = names.first().is_some_and(|it| plain.unwrap_or(entry).starts_with(&**it));
    let mut names = names.iter();
    fits && (at_top || plain.is_none())
        && plain.unwrap_or(entry).split('/').all(|want| names.next().is_some_and(|it| want == "*" || want == it))
}

/// The name as a disk may read it: case aside, without blanks and dots at its end, without the name of a stream, without
/// characters that some disks pass over.
fn fold_name(name: &str) -> Cow<'_, str> {
    let name = name.split_once(':').map_or(name, |it| it.0);
    let name = name.trim_end_matches(['.', ' ']);
    match name.bytes().all(|it| it.is_ascii() && !it.is_ascii_uppercase()) {
        true => Cow::Borrowed(name),
        false => Cow::Owned(name.chars().filter(|it| !is_passed_over(*it)).flat_map(char::to_lowercase).collect()),
    }
}

/// As HFS+ does: `.g\u{200c}it` is `.git` there.
fn is_passed_over(it: char) -> bool {
    matches!(it, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}
