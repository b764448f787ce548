//! Approval modes of a session: those that trust, settings and the system allow.

use jsonrpsee::types::ErrorObjectOwned;

use super::confinement;
use crate::settings::{Settings, options::Options};
use castor_base::{
    log::Mode,
    trust::{Trust, TrustChoice, mode_refusal},
};
use castor_tools::workspace::folder_config::{self, FolderConfig};
use castor_wire::jsonrpc::error;

/// The mode that a session begins in, and what is to be said about it. A mode of the settings that is not allowed here
/// is a wish that waits; one that castor was started with is an order.
///
/// # Errors
/// As [`allow_mode`], for a mode of the command line.
pub fn first_mode(
    options: &Options,
    trust: &Trust,
    settings: &Settings,
) -> Result<(Mode, Option<String>), ErrorObjectOwned> {
    let wanted = settings.approval_mode;
    match allow_mode(wanted, trust, settings) {
        Ok(()) => Ok((wanted, None)),
        Err(it) if options.approval_mode.is_some() => Err(it),
        Err(_) => {
            let mode = least_mode(settings);
            let (begun, why) = (mode.flag(), why_not_here(wanted, trust));
            let wanted = wanted.flag();
            let notice = format!("The settings ask for the mode {wanted}, {why}: this session is in the mode {begun}.");
            Ok((mode, Some(notice)))
        }
    }
}

/// Behind the name of a mode.
fn why_not_here(mode: Mode, trust: &Trust) -> &'static str {
    if mode == Mode::Auto && trust.is_trusted() {
        return "which needs a sandbox with mounts and checkpoints, and is not available here";
    }
    "which needs a trusted folder"
}

/// What does more without asking needs a folder that is trusted; `auto` also what holds commands and takes them back.
///
/// # Errors
/// For the client, with what would allow it.
pub fn allow_mode(mode: Mode, trust: &Trust, settings: &Settings) -> Result<(), ErrorObjectOwned> {
    if settings.barred_modes.contains(&mode) {
        return Err(error::invalid_params(&mode_refusal(mode, true)));
    }
    if mode > Mode::Default && !trust.is_trusted() {
        return Err(error::untrusted(&mode_refusal(mode, false)));
    }
    // To find out may start a process: only for whom it matters.
    let lack = if mode == Mode::Auto { confinement::lacks_for_auto(settings) } else { None };
    lack.map_or(Ok(()), |why| Err(error::invalid_params(why)))
}

pub fn offered_modes(settings: &Settings) -> Vec<Mode> {
    Mode::OFFERED.iter().copied().filter(|it| !settings.barred_modes.contains(it)).collect()
}

/// The mode where the one that is wanted is not to be had.
pub fn least_mode(settings: &Settings) -> Mode {
    if settings.barred_modes.contains(&Mode::Default) { Mode::Plan } else { Mode::Default }
}

/// The same with `auto` in a folder that brings nothing to trust: to choose it is to trust the folder.
pub fn modes_on_offer(ground: &FolderConfig, settings: &Settings) -> Vec<Mode> {
    let mut res = allowed_modes(&ground.trust, settings);
    let is_narrow = || folder_config::broad_folder(&ground.env, ground, TrustChoice::Folder).is_none();
    let is_free = ground.trust == Trust::Unknown && confinement::is_harmless(ground) && is_narrow();
    let may_be = !settings.barred_modes.contains(&Mode::Auto) && !settings.disable_always_allow;
    if is_free && may_be && confinement::lacks_for_auto(settings).is_none() {
        res.push(Mode::Auto);
    }
    res
}

pub fn allowed_modes(trust: &Trust, settings: &Settings) -> Vec<Mode> {
    Mode::OFFERED.iter().copied().filter(|it| allow_mode(*it, trust, settings).is_ok()).collect()
}
