//! How a session's commands are confined: settings, trust and what the system can.

use crate::{
    app::{
        settings::{SandboxSettings, Settings},
        state::State,
    },
    base::{
        ids::SessionId,
        log::Grant,
        path::AbsPath,
        sandbox::{Confinement, HOME_CONFIG, Hold, Level},
        trust::Trust,
    },
    engine::policy,
    world::{
        disk,
        process::sandbox,
        workspace::{ground::Ground, saved},
    },
};

/// How commands would be held in a folder.
pub fn hold(ground: &Ground, settings: &Settings) -> Hold {
    let (wished, trusted, available) = (&settings.children.sandbox, is_harmless(ground), sandbox::is_available());
    Hold { level: level(wished, trusted, available), network: wished.network, available, trusted }
}

/// Whether commands may write in the folder: it is trusted, or nobody forbade it and nothing in it could be obeyed.
pub fn is_harmless(ground: &Ground) -> bool {
    ground.trust.is_trusted() || (ground.trust == Trust::Unknown && ground.doubt.is_none())
}

/// `None`: commands may do what the user may.
pub fn of(
    state: &State,
    session: &SessionId,
    harmless: bool,
    roots: &[AbsPath],
    settings: &Settings,
) -> Option<Confinement> {
    let level = level(&settings.children.sandbox, harmless, sandbox::is_available());
    let read_only = match level {
        Level::Off => return None,
        Level::WorkspaceWrite => false,
        Level::ReadOnly => true,
    };
    let home = state.env.get("HOME").and_then(AbsPath::new);
    let real = |it: AbsPath| disk::real_path(&it).unwrap_or(it);
    let (writable, gone): (Vec<_>, Vec<_>) = folders(&settings.children.sandbox.writable, home.as_ref())
        .into_iter()
        .map(real)
        .partition(|it| it.as_path().symlink_metadata().is_ok());
    for it in gone {
        tracing::warn!("security.sandbox.writable names {it}, which is not there: commands cannot write it");
    }
    let mut kept = vec![real(state.world.store.home().clone())];
    if let Some(home) = home.clone().map(real) {
        kept.extend([".gemini", ".castor"].iter().chain(HOME_CONFIG).map(|it| home.join(it)));
        // Dotfiles are often links.
        let led: Vec<AbsPath> = kept.iter().cloned().map(real).filter(|it| !kept.contains(it)).collect();
        kept.extend(led);
    }
    let home = home.map(real);
    // Who works in a folder of the home folder does not work with the one that may be in it.
    let of_home = home.as_ref().map(|it| it.join(".git"));
    let gits = roots.iter().filter_map(sandbox::repository::outside_of).filter(|it| Some(it) != of_home.as_ref());
    Some(Confinement {
        read_only,
        roots: roots.to_vec(),
        gits: gits.filter(|_| !read_only).collect(),
        writable,
        granted: Vec::new(),
        kept,
        open: Vec::new(),
        tmp: state.world.store.scratch(session).join("tmp"),
        records: records(state.world.store.home()),
        network: settings.children.sandbox.network,
    })
}

/// Where castor writes down what stands in for configuration while commands run.
pub fn records(home: &AbsPath) -> AbsPath {
    home.join("stand-ins")
}

/// By which it is known what holds beyond the sandbox for ever.
pub fn folder<'f>(roots: &'f [AbsPath], cwd: &'f AbsPath) -> &'f AbsPath {
    roots.first().unwrap_or(cwd)
}

/// What holds for ever there. Nothing where the folder may do harm, or such answers are switched off. What was written
/// by hand is held to the same limits as what was offered.
pub fn kept(home: &AbsPath, folder: &AbsPath, harmless: bool, settings: &Settings) -> Vec<Grant> {
    if !harmless || settings.disable_always_allow {
        return Vec::new();
    }
    let (grants, warning) = saved::kept(home, folder);
    if let Some(it) = warning {
        tracing::warn!("{it}");
    }
    grants.into_iter().filter(policy::may_be_kept).collect()
}

/// A folder that may do harm is not written to by commands, whatever the settings say. What was asked for by name
/// stays also where the system cannot: then commands fail, with the reason.
fn level(settings: &SandboxSettings, harmless: bool, available: bool) -> Level {
    match settings.level {
        _ if !harmless && available => Level::ReadOnly,
        Some(it) => it,
        None if available => Level::WorkspaceWrite,
        None => Level::Off,
    }
}

fn folders(written: &[String], home: Option<&AbsPath>) -> Vec<AbsPath> {
    let read = |it: &String| match (it.strip_prefix('~'), home) {
        (Some(""), Some(home)) => Some(home.clone()),
        (Some(rest), Some(home)) => rest.strip_prefix('/').map(|it| home.join(it)),
        _ => AbsPath::new(it),
    };
    written.iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::{folders, level};
    use crate::{
        app::settings::SandboxSettings,
        base::{path::AbsPath, sandbox::Level},
    };

    #[test]
    fn trust_and_the_system_have_their_say() {
        let wish = |level| SandboxSettings { level, network: false, writable: Vec::new() };
        for (wished, trusted, available, want) in [
            (None, true, true, Level::WorkspaceWrite),
            (None, true, false, Level::Off),
            (None, false, true, Level::ReadOnly),
            (Some(Level::Off), true, true, Level::Off),
            (Some(Level::Off), false, true, Level::ReadOnly),
            (Some(Level::ReadOnly), true, false, Level::ReadOnly),
            (Some(Level::WorkspaceWrite), false, true, Level::ReadOnly),
        ] {
            assert_eq!(level(&wish(wished), trusted, available), want, "{wished:?} {trusted} {available}");
        }
    }

    #[test]
    fn folders_are_absolute_or_at_home() {
        let home = AbsPath::new("/h").unwrap();
        let written = ["~/.cache", "~", "/x", "rel", "~other/x"].map(str::to_owned);
        let read: Vec<String> = folders(&written, Some(&home)).iter().map(ToString::to_string).collect();
        assert_eq!(read, ["/h/.cache", "/h", "/x"]);
    }
}
