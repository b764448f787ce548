//! Guarded names in all their spellings.

use std::path::Path;

use super::{CONFIG, FILE, GuardedNames, Lists, SECRETS, TOOLS};

#[test]
fn lists_are_sound() {
    toml::from_str::<Lists>(FILE).unwrap();
    for list in [&SECRETS, &CONFIG, &TOOLS] {
        assert!(list.names.is_sorted() && list.names.len() + list.paths.len() > 5);
        let all = [&*list.names, &list.starts, &list.ends, &list.paths].concat();
        assert!(all.iter().all(|it| it.to_lowercase() == *it), "{all:?}");
        assert!(list.paths.iter().all(|it| it.trim_start_matches('/').contains('/') && !it.starts_with(['*'])));
        assert!(list.names.iter().all(|it| !it.contains('/')));
    }
}

#[test]
fn writable_tool_folder_keeps_guarded_parts() {
    let check = |list: &GuardedNames, root: &str, path: &str, want: Option<&str>| {
        assert_eq!(list.find_below(Path::new(root), Path::new(path)), want, "{root} {path}");
    };
    check(&CONFIG, "/h/.cargo", "/h/.cargo/config.toml", Some(".cargo/config.toml"));
    check(&CONFIG, "/h/.Cargo", "/h/.Cargo/Config.toml", Some(".cargo/config.toml"));
    check(&CONFIG, "/h/.cargo", "/h/.cargo/registry/config.toml", None);
    check(&CONFIG, "/h/.config", "/h/.config/git/config", Some(".config/git"));
    check(&CONFIG, "/h", "/h/.cargo/config.toml", Some(".cargo/config.toml"));
    check(&CONFIG, "/h/code", "/h/code/user/x", None);
    check(&CONFIG, "/h/.config/Code", "/h/.config/Code/User/x", Some(".config/code/user"));
    // Who works there, works there.
    check(&CONFIG, "/h/.config/nvim", "/h/.config/nvim/init.lua", None);
    check(&CONFIG, "/h/.cargo", "/h/config.toml", None);
    check(&TOOLS, "/h/.cargo", "/h/.cargo/bin/cargo", Some(".cargo/bin"));
    check(&TOOLS, "/h/go", "/h/go/bin/x", None);
}

/// Copies of secret files such as `.env~` and `id_rsa.bak` count, too.
#[test]
fn tells_guarded_paths() {
    let check = |path: &str, want: (Option<&str>, Option<&str>)| {
        assert_eq!((SECRETS.find(Path::new(path)), CONFIG.find(Path::new(path))), want, "{path}");
    };
    check("/w/src/main.rs", (None, None));
    check("/w/.env", (Some(".env"), None));
    check("/w/.ENV.", (Some(".env"), None));
    for copy in [".env~", ".env.bak", "#.env#", ".env.swp"] {
        assert!(SECRETS.find(&Path::new("/w").join(copy)).is_some(), "{copy}");
    }
    check("/w/id_rsa.old", (Some("id_rsa"), None));
    check("/w/server.key~", (Some(".key"), None));
    check("/w/example.env.bak", (None, None));
    check("/w/notes.bak", (None, None));
    check("/h/.bashrc.bak", (None, None));
    check("/w/~", (None, None));
    check("/w/.git/credentials", (Some(".git/credentials"), Some(".git")));
    check("/w/.env.local", (Some(".env."), None));
    check("/w/.env.example", (None, None));
    check("/w/environment.ts", (None, None));
    check("/w/config/prod.env", (Some(".env"), None));
    check("/w/Prod.ENV", (Some(".env"), None));
    check("/w/example.env", (None, None));
    check("/w/prod.sample.env", (None, None));
    check("/w/template.env", (None, None));
    check("/w/prod.env.example", (None, None));
    check("/w/terraform.tfstate", (Some(".tfstate"), None));
    check("/w/terraform.tfstate.backup", (Some(".tfstate.backup"), None));
    check("/w/terraform.tfvars", (None, None));
    check("/w/secrets.tfvars", (Some("secrets.tfvars"), None));
    check("/w/wp-config.php", (Some("wp-config.php"), None));
    check("/w/wp-config-sample.php", (None, None));
    check("/h/.ssh/id_ed25519.pub", (Some(".ssh"), Some(".ssh")));
    check("/w/keys/id_ed25519.pub", (None, None));
    check("/w/keys/id_ed25519", (Some("id_ed25519"), None));
    check("/w/tls/server.PEM", (Some(".pem"), None));
    check("/w/.pem", (None, None));
    check("/w/.config/nextest.toml", (None, None));
    check("/h/.config/gcloud/x.db", (Some(".config/gcloud"), None));
    check("/h/Library/Keychains/login.keychain-db", (Some("library/keychains"), None));
    check("/proc/self/environ", (Some("/proc/*/environ"), None));
    check("/w/proc/self/environ", (None, None));
    check("/w/.github/workflows/ci.yml", (None, Some(".github/workflows")));
    check("/w/.github/CODEOWNERS", (None, None));
    check("/h/.codex/auth.json", (Some(".codex/auth.json"), Some(".codex")));
    check("/h/.claude/.credentials.json", (Some(".credentials.json"), Some(".claude")));
    check("/h/.claude.json", (Some(".claude.json"), None));
    check("/h/.local/share/opencode/auth.json", (Some("opencode/auth.json"), None));
    check("/h/.cache/huggingface/token", (Some("huggingface/token"), None));
    check("/run/secrets/db", (Some("/run/secrets"), None));
    check("/w/run/secrets/db", (None, None));
    check("/etc/kubernetes/admin.conf", (Some("/etc/kubernetes/admin.conf"), None));
    check("/h/.zhistory", (Some(".zhistory"), None));
    check("/w/.yarnrc.yml", (Some(".yarnrc.yml"), Some(".yarnrc.yml")));
    check("/w/.Rprofile", (None, Some(".rprofile")));
    check("/w/.helix/config.toml", (None, Some(".helix")));
    check("/w/.pnpmfile.cjs", (None, Some(".pnpmfile.cjs")));
    check("/w/.git/hooks/pre-commit", (None, Some(".git")));
    check("/w/.g\u{200c}it/config", (None, Some(".git")));
    check("/w/.git::$INDEX_ALLOCATION/config", (None, Some(".git")));
    check("/w/GIT~1/config", (None, Some("git~1")));
    check("/w/.gitignore", (None, None));
    check("/w/.lefthook-local.yml", (None, Some(".lefthook-local.yml")));
    check("/w/.jj/repo/config.toml", (None, Some(".jj/repo/config.toml")));
    check("/w/.jj/repo/store/x", (None, None));
    check("/w/mise.toml", (None, Some("mise.toml")));
    check("/w/.tool-versions", (None, None));
    check("/w/a.code-workspace", (None, Some(".code-workspace")));
    check(".vscode", (None, Some(".vscode")));
}

/// Each starts a program in another agent, in an editor or in a build.
#[test]
fn configuration_of_other_agents_is_guarded() {
    let files =
        [".amazonq/mcp.json", ".bazelrc", ".crush.json", ".junie/mcp.json", ".kiro/settings/mcp.json", ".lvimrc"];
    for it in files.iter().chain(&[".mcp/servers.json", ".project.vim", "crush.json", ".kiro/hooks/a.kiro.hook"]) {
        assert!(CONFIG.find(&Path::new("/w").join(it)).is_some(), "{it}");
    }
    assert!(CONFIG.find(Path::new("/w/.kiro/specs/a.md")).is_none());
}
