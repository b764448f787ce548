//! Tool folders in the home folder, and secrets in the system's folders.

use super::{LISTS, SECRETS};

/// Below a home folder, beside what [`SECRETS`] names there.
pub const CREDENTIALS_OF_TOOLS: &[&str] = &[".castor", ".nuget/NuGet/NuGet.Config"];

/// Sockets and secrets of the system and the desktop.
pub const SYSTEM_SECRETS: &[&str] = &["/run/secrets", "/run/user", "/var/run/secrets"];

/// Settings of package managers, in which there may be a token. Without one they are no secret.
pub const TOKEN_FILES: &[&str] = &[".npmrc", ".yarnrc.yml", "gradle.properties", "settings.xml"];

/// Below a home folder: where programs and what they need lie. Commands see nothing else of it.
#[rustfmt::skip]
pub const TOOL_FOLDERS: &[&str] = &[
    ".asdf", ".bun", ".cabal", ".cache/Cypress", ".cache/coursier", ".cache/ms-playwright", ".cache/node",
    ".cache/puppeteer", ".cache/pypoetry", ".cargo", ".ccache", ".composer", ".conda", ".config/ccache",
    ".config/composer", ".config/fontconfig", ".config/git", ".config/go", ".config/matplotlib", ".config/pip",
    ".config/pnpm", ".config/uv", ".deno", ".dotnet", ".elan", ".fonts", ".fnm", ".gem", ".ghcup", ".gitconfig",
    ".gitignore", ".gitignore_global", ".gradle", ".ivy2", ".julia", ".juliaup", ".linuxbrew", ".local/bin",
    ".local/lib", ".local/share/fnm", ".local/share/fonts", ".local/share/gem", ".local/share/hatch",
    ".local/share/mise", ".local/share/pipx", ".local/share/pnpm", ".local/share/rtx", ".local/share/uv",
    ".local/share/virtualenvs", ".luarocks", ".m2", ".mix", ".nix-profile", ".npm", ".npmrc", ".nuget", ".nvm",
    ".opam", ".pip", ".pixi", ".pub-cache", ".pyenv", ".rbenv", ".rustup", ".rvm", ".sbt", ".sdkman", ".stack",
    ".virtualenvs", ".volta", ".yarn", ".yarnrc.yml", "anaconda3", "flutter", "go", "mambaforge", "miniconda3",
    "miniforge3", "node_modules", "perl5", "sdk",
];

/// Below a home folder: what opens other machines and accounts, by the names of [`SECRETS`].
pub fn credentials() -> impl Iterator<Item = &'static str> {
    let of_home = |it: &&&str| !it.starts_with('/') && (it.starts_with('.') || it.contains('/'));
    SECRETS.names.iter().chain(&SECRETS.paths).filter(of_home).chain(CREDENTIALS_OF_TOOLS).copied()
}

/// Below a home folder: what shells and git obey, where that is a workspace.
pub fn home_config() -> &'static [&'static str] {
    &LISTS.home_config
}
