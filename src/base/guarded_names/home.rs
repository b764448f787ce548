//! Tool folders in the home folder, and secrets in the system's folders.

use std::sync::LazyLock;

use super::{LISTS, SECRETS};

/// Below a home folder, beside what [`SECRETS`] names there.
pub const CREDENTIALS_OF_TOOLS: &[&str] = &[".castor", ".nuget/NuGet/NuGet.Config"];

/// Sockets and secrets of the system and the desktop.
pub const SYSTEM_SECRETS: &[&str] = &["/run/secrets", "/run/user", "/var/run/secrets"];

/// Settings of package managers, in which there may be a token. Without one they are no secret.
pub const TOKEN_FILES: &[&str] = &[".npmrc", ".yarnrc.yml", "gradle.properties", "settings.xml"];

/// Below a home folder: where programs and what they need lie. Commands see nothing else of it.
pub static TOOL_FOLDERS: LazyLock<&Vec<&str>> = LazyLock::new(|| &LISTS.home.folders);

/// Of these, where tools keep what they fetched or made: commands write a layer of castor's own above them.
pub static TOOL_CACHES: LazyLock<&Vec<&str>> = LazyLock::new(|| &LISTS.home.caches);

/// Variables that name such a folder elsewhere.
pub static CACHE_VARIABLES: LazyLock<&Vec<&str>> = LazyLock::new(|| &LISTS.home.variables);

/// Below a home folder: what opens other machines and accounts, by the names of [`SECRETS`].
pub fn credentials() -> impl Iterator<Item = &'static str> {
    let of_home = |it: &&&str| !it.starts_with('/') && (it.starts_with('.') || it.contains('/'));
    SECRETS.names.iter().chain(&SECRETS.paths).filter(of_home).chain(CREDENTIALS_OF_TOOLS).copied()
}

/// Below a home folder: what shells and git obey, where that is a workspace.
pub fn home_config() -> &'static [&'static str] {
    &LISTS.home_config
}
