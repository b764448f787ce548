//! Credentials and tool folders in the home folder and the system's folders.

use super::{LISTS, SECRETS};

/// Below a home folder, beside what [`SECRETS`] names there.
#[rustfmt::skip]
const MORE_CREDENTIALS: &[&str] = &[
    ".bundle/config", ".cache/huggingface/token", ".config/doctl", ".config/gh", ".config/glab-cli",
    ".gemini/google_accounts.json", ".gemini/oauth_creds.json", ".local/share/opencode/auth.json",
    ".nuget/NuGet/NuGet.Config", ".terraformrc",
];

/// Sockets and secrets of the system and the desktop.
pub const SYSTEM_SECRETS: &[&str] = &["/run/secrets", "/run/user", "/var/run/secrets"];

/// Settings of package managers, in which there may be a token. Without one they are no secret.
pub const TOKEN_FILES: &[&str] = &[".npmrc", ".yarnrc.yml", "gradle.properties", "settings.xml"];

/// Below a home folder: where programs and what they need lie. With the network, nothing else of it is seen.
#[rustfmt::skip]
pub const TOOL_FOLDERS: &[&str] = &[
    ".asdf", ".bun", ".cabal", ".cargo", ".composer", ".conda", ".config/composer", ".config/git", ".config/pip",
    ".config/pnpm", ".deno", ".dotnet", ".gem", ".ghcup", ".gitconfig", ".gradle", ".julia", ".local/bin",
    ".local/lib", ".local/share/fnm", ".local/share/mise", ".local/share/pipx", ".local/share/pnpm",
    ".local/share/rtx", ".local/share/uv", ".m2", ".mix", ".nix-profile", ".npm", ".npmrc", ".nuget", ".nvm", ".opam",
    ".pip", ".pub-cache", ".pyenv", ".rbenv", ".rustup", ".rvm", ".sdkman", ".stack", ".volta", ".yarn",
    ".yarnrc.yml", "anaconda3", "go", "miniconda3", "node_modules", "sdk",
];

/// Below a home folder: what opens other machines and accounts. A sandbox masks it.
pub fn credentials() -> impl Iterator<Item = &'static str> {
    let of_home = |it: &&&str| !it.starts_with('/') && (it.starts_with('.') || it.contains('/'));
    SECRETS.names.iter().chain(&SECRETS.paths).filter(of_home).chain(MORE_CREDENTIALS).copied()
}

/// Below a home folder: what shells and git obey, where that is a workspace.
pub fn home_config() -> &'static [&'static str] {
    &LISTS.home_config
}
